//! Retrieval from a cluster: the documents of the shortlist, and the counts of the engine.

use std::cell::Cell;
use std::collections::HashSet;

use tantivy::DocAddress;

use super::super::admitted::Admitted;
use super::super::counts::Counts;
use super::super::opened::OpenedIndex;
use super::super::order::Position;
use super::super::plans::PlannedQuery;
use super::super::retrieval::{Among, Best, ColumnPage, CountedUnder, LocalRetrieval, Retrieval};
use super::calls::Calls;
use super::shortlist::{Depth, EngineConditions, Shortlist, scored};
use crate::answer::Completeness;
use crate::cluster::{EngineError, EngineSearch};
use crate::error::{IndexError, SearchError};
use crate::filter::FacetKey;
use crate::request::Sort;

pub(super) struct ClusterRetrieval<'a> {
    /// Retrieval from the shortlist.
    local: LocalRetrieval<'a>,
    query: &'a PlannedQuery,
    calls: &'a Calls<'a>,
    shortlist: &'a Shortlist,
    depth: Depth,
    needs_more: Cell<bool>,
    /// Whether a count is an estimate.
    has_estimated: Cell<bool>,
}

impl<'a> ClusterRetrieval<'a> {
    pub(super) fn of(
        local: LocalRetrieval<'a>,
        query: &'a PlannedQuery,
        calls: &'a Calls<'a>,
        shortlist: &'a Shortlist,
        depth: Depth,
    ) -> Self {
        let has_estimated = Cell::new(!shortlist.is_whole && !shortlist.total_is_exact);
        Self { local, query, calls, shortlist, depth, needs_more: Cell::new(false), has_estimated }
    }

    /// Whether results are missing that a longer shortlist may have.
    pub(super) fn needs_more(&self) -> bool {
        self.needs_more.get()
    }

    /// The counts of the engine for each key; `None` if it cannot count by it.
    fn engine_counts(
        &self,
        keys: &[FacetKey],
        under: CountedUnder,
    ) -> Result<Vec<Option<Counts>>, SearchError> {
        let fields = &self.opened().fields;
        let searches: Vec<EngineSearch> = keys
            .iter()
            .map(|key| {
                let without = (under == CountedUnder::OtherFilters).then_some(*key);
                let EngineConditions { required, excluded, is_complete } =
                    EngineConditions::of(fields, &self.query.conditions, without);
                // the facet is a fact of sites, which the engine does not have
                let is_known = is_complete && *key != FacetKey::AgentEndpoint;
                let facets = if is_known { vec![key.as_str()] } else { Vec::new() };
                EngineSearch { scored: scored(self.query), required, excluded, limit: 0, facets }
            })
            .collect();
        let found = self.calls.search(&searches).map_err(IndexError::from)?;
        let counts = found.into_iter().map(|results| {
            let values = results.facets.into_iter().next()??;
            let mut counts = Counts::default();
            for (value, count) in values {
                counts.add(&value, count);
            }
            Some(counts)
        });
        Ok(counts.collect())
    }
}

impl Retrieval for ClusterRetrieval<'_> {
    fn opened(&self) -> &OpenedIndex {
        self.local.opened()
    }

    fn admitted(&self) -> &Admitted {
        self.local.admitted()
    }

    fn best(&self) -> Result<Best, SearchError> {
        let best = self.local.best()?;
        let total = if self.shortlist.is_whole { best.total } else { self.shortlist.total };
        Ok(Best { total, ..best })
    }

    /// Results end with those of the longest shortlist.
    fn by_score(
        &self,
        limit: usize,
        after: Option<&Position>,
        skip: &HashSet<u32>,
    ) -> Result<Vec<(Position, DocAddress)>, SearchError> {
        self.needs_more.set(!self.shortlist.is_whole && self.depth != Depth::All);
        self.local.by_score(limit, after, skip)
    }

    /// The engine does not sort, so all documents must be in the shortlist.
    fn by_column(
        &self,
        sort: Sort,
        limit: usize,
        after: Option<&Position>,
        among: Among<'_>,
    ) -> Result<ColumnPage, SearchError> {
        if matches!(among, Among::Matching) && !self.shortlist.is_whole {
            if self.depth == Depth::All {
                return Err(IndexError::Cluster(EngineError::Unsorted).into());
            }
            self.needs_more.set(true);
        }
        self.local.by_column(sort, limit, after, among)
    }

    fn counts(
        &self,
        keys: &[FacetKey],
        under: CountedUnder,
        among: Among<'_>,
    ) -> Result<Vec<Counts>, SearchError> {
        let mut counts = self.local.counts(keys, under, among)?;
        let is_whole = |key: &FacetKey| {
            self.shortlist.is_whole
                && (under == CountedUnder::AllFilters || !self.query.conditions.has_filter_of(*key))
        };
        if matches!(among, Among::Only(_)) || keys.iter().all(is_whole) {
            return Ok(counts);
        }
        let of_engine = self.engine_counts(keys, under)?;
        for ((key, counts), of_engine) in keys.iter().zip(&mut counts).zip(of_engine) {
            match of_engine {
                _ if is_whole(key) => {}
                Some(of_engine) => *counts = of_engine,
                None => self.has_estimated.set(true),
            }
        }
        Ok(counts)
    }

    fn completeness(&self) -> Completeness {
        let missing_shards = self.calls.missing();
        Completeness { is_estimate: self.has_estimated.get() || !missing_shards.is_empty(), missing_shards }
    }
}
