//! Searches of a cluster.
//!
//! The words of a request are looked up in the vocabulary and in the statistics of the engine. The engine selects a shortlist, which
//! becomes an index in memory, with the statistics of the whole cluster. Ranking runs over it as over any index. Counts are those of the
//! engine, unless the shortlist has every document that matches.

mod calls;
mod lookup;
mod retrieval;
mod shortlist;

use std::collections::HashSet;

use manifest::CapabilityId;

use self::calls::Calls;
use self::lookup::{ClusterLookup, Known};
use self::retrieval::ClusterRetrieval;
pub(super) use self::shortlist::Depth;
use self::shortlist::{DOCUMENTS_MAX, Shortlist};
use super::deadline::Deadline;
use super::opened::OpenedIndex;
use super::plans::PlannedQuery;
use super::retrieval::{LocalRetrieval, Retrieval};
use super::{rows, spam_list};
use crate::analysis::fold_exact;
use crate::answer::{Hit, SpamSite};
use crate::cluster::{Cluster, EngineCondition, EngineSearch, EngineTerm, MissingShards};
use crate::error::{IndexError, SearchError};
use crate::query::ParsedQuery;
use crate::request::{SearchRequest, TIME_MAX};

/// A cluster, and the commit of its vocabulary.
#[derive(Clone, Copy)]
pub(super) struct ClusterSource<'a> {
    cluster: &'a Cluster,
    pub(super) vocabulary: &'a OpenedIndex,
}

/// A planned request, with the statistics of the terms of its plans.
pub(super) struct Planned<'a> {
    pub(super) query: PlannedQuery,
    calls: Calls<'a>,
    known: Known,
}

impl<'a> ClusterSource<'a> {
    pub(super) fn of(cluster: &'a Cluster, vocabulary: &'a OpenedIndex) -> Self {
        Self { cluster, vocabulary }
    }

    pub(super) fn plan(
        self,
        request: &SearchRequest,
        phrasings: Vec<ParsedQuery>,
        deadline: Deadline,
    ) -> Result<Planned<'a>, SearchError> {
        let missing_shards =
            if request.accepts_missing_shards { self.cluster.missing_shards } else { MissingShards::Fail };
        let calls = Calls::of(self, missing_shards, deadline);
        let lookup = ClusterLookup::of(self.vocabulary, &calls);
        lookup.learn(&phrasings, deadline)?;
        let query = PlannedQuery::of(self.vocabulary, &lookup, &request.filters, phrasings, deadline)?;
        lookup.learn_terms(&query.plans)?;
        let known = lookup.into_known();
        Ok(Planned { query, calls, known })
    }

    /// Runs a search over the shortlist of a request, and again over a longer one if it needs more documents.
    pub(super) fn retrieve<T>(
        self,
        planned: &Planned<'_>,
        depth: Depth,
        deadline: Deadline,
        run: impl Fn(&dyn Retrieval) -> Result<T, SearchError>,
    ) -> Result<T, SearchError> {
        let Planned { query, calls, known } = planned;
        let run_over = |depth| {
            let shortlist = Shortlist::of(self.vocabulary, calls, query, known, depth)?;
            let local = LocalRetrieval::of(&shortlist.opened, query, deadline)?;
            let retrieval = ClusterRetrieval::of(local, query, calls, &shortlist, depth);
            Ok::<_, SearchError>((run(&retrieval)?, retrieval.needs_more()))
        };
        match run_over(depth)? {
            (_, true) => Ok(run_over(Depth::All)?.0),
            (found, false) => Ok(found),
        }
    }

    pub(super) fn find(self, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
        let ids = vec![EngineTerm { field: "id", text: id.as_str().to_owned() }];
        rows::find(&self.documents(ids, 1)?, id)
    }

    /// The first thousand capabilities with such names decide.
    pub(super) fn held_among(self, names: &[String]) -> Result<HashSet<String>, IndexError> {
        let forms = names.iter().flat_map(|name| [name.to_lowercase(), fold_exact(name)]);
        let terms = forms.map(|text| EngineTerm { field: "exact", text }).collect();
        rows::held_among(&self.documents(terms, DOCUMENTS_MAX)?, names)
    }

    /// Counts at most a thousand capabilities whose own documents make them spam.
    pub(super) fn spam(self, max: usize) -> Result<Vec<SpamSite>, IndexError> {
        let spam = vec![EngineTerm { field: "spam", text: true.to_string() }];
        spam_list::list(&self.documents(spam, DOCUMENTS_MAX)?, max)
    }

    /// Documents with any of some terms, as an index in memory.
    fn documents(self, terms: Vec<EngineTerm>, limit: usize) -> Result<OpenedIndex, IndexError> {
        let required = vec![EngineCondition::AnyOf(terms)];
        let search = EngineSearch { required, limit, ..EngineSearch::default() };
        let found = self.strict_calls().search(&[search])?;
        shortlist::in_memory(self.vocabulary, &found, &Known::default())
    }

    fn strict_calls(self) -> Calls<'a> {
        Calls::of(self, MissingShards::Fail, Deadline::after(TIME_MAX))
    }
}
