//! The engine alone: what a search costs before this crate looks closer. For benchmarks.

use tantivy::collector::{Count, TopDocs};
use tantivy::query::Query;

use super::candidates::{WINDOW, is_skipping};
use crate::error::IndexError;

/// The query that a search selects its candidates with, and the engine to run it on.
pub struct BareSearch {
    pub(super) searcher: tantivy::Searcher,
    pub(super) query: Box<dyn Query>,
    pub(super) terms: usize,
}

impl BareSearch {
    /// Collects the same number of documents with the same collector as a search does; returns how many there are.
    pub fn run(&self) -> Result<usize, IndexError> {
        let failed = IndexError::engine("search");
        let best = TopDocs::with_limit(WINDOW).order_by_score();
        if is_skipping(self.terms) {
            return Ok(self.searcher.search(&self.query, &best).map_err(failed)?.len());
        }
        let (best, _) = self.searcher.search(&self.query, &(best, Count)).map_err(failed)?;
        Ok(best.len())
    }
}
