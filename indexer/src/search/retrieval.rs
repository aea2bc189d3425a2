//! The seam between finding documents and ranking them.
//!
//! A request is planned first: its words become terms, its filters and phrases conditions. A [`Retrieval`] finds the best documents of this
//! query, counts all that match, and counts them by facet. What is above (re-ranking, groups, explanations, snippets, pages) runs over any
//! retrieval. [`LocalRetrieval`] reads an index on this machine.

use std::collections::HashSet;

use fixedbitset::FixedBitSet;
use tantivy::{DocAddress, Score};

use super::accumulate::accumulate;
use super::admitted::{Admitted, matching, with_words};
use super::counts::Counts;
use super::deadline::Deadline;
use super::facets::FacetCounter;
use super::opened::OpenedIndex;
use super::order::{PageByColumn, PageByScore, Position};
use super::plans::PlannedQuery;
use super::selection::{select, selecting};
use super::term_bits::sets_of;
use crate::answer::Completeness;
use crate::error::{IndexError, SearchError};
use crate::filter::FacetKey;
use crate::request::Sort;

/// The best documents by the words of a query.
pub(super) struct Best {
    /// At most [`WINDOW`](super::selection::WINDOW), the best first, with spam after others of the same score.
    pub(super) documents: Vec<(Score, DocAddress)>,
    /// Number of documents that contain any of the words and satisfy the conditions.
    pub(super) total: u64,
}

/// A page in the order of a column.
pub(super) struct ColumnPage {
    pub(super) documents: Vec<(Position, DocAddress)>,
    /// Number of documents on all pages.
    pub(super) total: u64,
}

/// The documents that are sorted or counted.
#[derive(Clone, Copy)]
pub(super) enum Among<'a> {
    /// Documents that contain any of the words; all documents if the query has no words.
    Matching,
    Only(&'a [DocAddress]),
}

/// The filters under which a facet is counted. Phrases and exclusions always apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedUnder {
    AllFilters,
    /// All except the filter of the facet itself.
    OtherFilters,
}

/// Finds the documents of one planned query.
pub(super) trait Retrieval {
    /// The index with the documents of the results, which ranking reads.
    fn opened(&self) -> &OpenedIndex;

    /// The documents of [`Self::opened`] that satisfy the conditions.
    fn admitted(&self) -> &Admitted;

    fn best(&self) -> Result<Best, SearchError>;

    /// The documents after a position in the order of their scores by words, without those whose short tie is to be skipped.
    fn by_score(
        &self,
        limit: usize,
        after: Option<&Position>,
        skip: &HashSet<u32>,
    ) -> Result<Vec<(Position, DocAddress)>, SearchError>;

    /// The documents after a position in the order of a column.
    fn by_column(
        &self,
        sort: Sort,
        limit: usize,
        after: Option<&Position>,
        among: Among<'_>,
    ) -> Result<ColumnPage, SearchError>;

    /// The counts of each key.
    fn counts(
        &self,
        keys: &[FacetKey],
        under: CountedUnder,
        among: Among<'_>,
    ) -> Result<Vec<Counts>, SearchError>;

    /// How complete the results and counts so far are.
    fn completeness(&self) -> Completeness;
}

/// Retrieval from a commit of an index on this machine. All counts are exact.
pub(super) struct LocalRetrieval<'a> {
    opened: &'a OpenedIndex,
    query: &'a PlannedQuery,
    admitted: Admitted,
    deadline: Deadline,
}

impl<'a> LocalRetrieval<'a> {
    pub(super) fn of(
        opened: &'a OpenedIndex,
        query: &'a PlannedQuery,
        deadline: Deadline,
    ) -> Result<Self, SearchError> {
        let admitted = Admitted::of(opened, &query.conditions, None, || deadline.tantivy_check());
        let admitted = admitted.map_err(IndexError::engine("apply the filters"))?;
        Ok(Self { opened, query, admitted, deadline })
    }

    fn documents(&self, among: Among<'_>) -> Result<Vec<FixedBitSet>, SearchError> {
        match among {
            Among::Matching => {
                let terms = self.query.plans.iter().flat_map(selecting);
                let found = with_words(self.opened, terms, || self.deadline.tantivy_check());
                Ok(found.map_err(IndexError::engine("look words up"))?)
            }
            Among::Only(documents) => Ok(sets_of(&self.opened.searcher, documents)),
        }
    }
}

impl Retrieval for LocalRetrieval<'_> {
    fn opened(&self) -> &OpenedIndex {
        self.opened
    }

    fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    fn best(&self) -> Result<Best, SearchError> {
        let selected = select(self.opened, &self.query.plans, &self.admitted, self.deadline);
        let (documents, total) = selected.map_err(IndexError::engine("search"))?;
        Ok(Best { documents, total })
    }

    fn by_score(
        &self,
        limit: usize,
        after: Option<&Position>,
        skip: &HashSet<u32>,
    ) -> Result<Vec<(Position, DocAddress)>, SearchError> {
        let mut page = PageByScore::new(self.opened, limit, after, skip);
        let terms = self.query.plans.iter().flat_map(selecting);
        accumulate(self.opened, terms, &self.admitted, &mut page, || self.deadline.tantivy_check())
            .map_err(IndexError::engine("search"))?;
        Ok(page.into_page())
    }

    fn by_column(
        &self,
        sort: Sort,
        limit: usize,
        after: Option<&Position>,
        among: Among<'_>,
    ) -> Result<ColumnPage, SearchError> {
        let failed = IndexError::engine("sort");
        let documents = self.documents(among)?;
        let mut page = PageByColumn::new(self.opened, sort, limit, after.cloned());
        let mut total = 0;
        let segments = self.opened.searcher.segment_readers().iter().zip(&documents);
        for ((segment, documents), ordinal) in segments.zip(0..) {
            let documents = matching(segment, documents, self.admitted.segment(ordinal));
            total += documents.len() as u64;
            let addresses = documents.into_iter().map(|document| DocAddress::new(ordinal, document));
            page.add_segment(segment, addresses, || self.deadline.tantivy_check()).map_err(&failed)?;
        }
        Ok(ColumnPage { documents: page.into_page(), total })
    }

    fn counts(
        &self,
        keys: &[FacetKey],
        under: CountedUnder,
        among: Among<'_>,
    ) -> Result<Vec<Counts>, SearchError> {
        let counter = FacetCounter {
            opened: self.opened,
            with_words: &self.documents(among)?,
            conditions: &self.query.conditions,
            admitted: &self.admitted,
            deadline: self.deadline,
        };
        let counts = match under {
            CountedUnder::AllFilters => counter.under_all_filters(keys),
            CountedUnder::OtherFilters => counter.under_other_filters(keys),
        };
        Ok(counts.map_err(IndexError::engine("count facets"))?)
    }

    fn completeness(&self) -> Completeness {
        Completeness::default()
    }
}
