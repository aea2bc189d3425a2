//! The engine alone: what a search costs before this crate looks closer. For benchmarks.

use tantivy::collector::{Count, TopDocs};
use tantivy::query::Query;

use super::candidates::WINDOW;
use crate::error::IndexError;

/// Terms up to which the engine is faster when it may skip what cannot be among the best; of more, when it also counts.
const SKIPPING_TERMS_MAX: usize = 4;

/// The query that the engine would select a search's candidates with, and the engine to run it on.
pub struct BareSearch {
    pub(super) searcher: tantivy::Searcher,
    pub(super) query: Box<dyn Query>,
    pub(super) terms: usize,
}

impl BareSearch {
    /// Collects as many documents as a search does, with the collector that is the faster one; returns how many there are.
    pub fn run(&self) -> Result<usize, IndexError> {
        let failed = IndexError::engine("search");
        let best = TopDocs::with_limit(WINDOW).order_by_score();
        if self.terms <= SKIPPING_TERMS_MAX {
            return Ok(self.searcher.search(&self.query, &best).map_err(failed)?.len());
        }
        let (best, _) = self.searcher.search(&self.query, &(best, Count)).map_err(failed)?;
        Ok(best.len())
    }
}
