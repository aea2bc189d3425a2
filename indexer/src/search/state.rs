//! The state that searches read: a commit, its vectors, and the generation that identifies both.
//!
//! Vectors belong to texts, so the loaded vectors stay valid if a newer file cannot be read: searches continue with them, and newer texts
//! are found by their words.

use std::path::Path;
use std::sync::Arc;

use super::opened::{IndexGeneration, OpenedIndex};
use super::vector_search::{OpenedVectors, VectorSearch};
use crate::vectors::{QueryEmbedder, Stamp, VectorsError, stamp};

/// Immutable.
pub(super) struct SearchState {
    pub(super) opened: Arc<OpenedIndex>,
    pub(super) generation: IndexGeneration,
    vectors: LoadedVectors,
}

#[derive(Clone, Default)]
struct LoadedVectors {
    /// The last file that was opened, whether or not it could be used.
    last: Option<Stamp>,
    /// Whether opening it failed in a way that may be temporary.
    should_retry: bool,
    /// The vectors that are searched, and their file.
    search: Option<(Stamp, Arc<VectorSearch>)>,
}

impl SearchState {
    pub(super) fn first(
        index_dir: &Path,
        opened: OpenedIndex,
        embedder: Option<&Arc<QueryEmbedder>>,
    ) -> Self {
        let vectors =
            embedder.and_then(|embedder| LoadedVectors::default().next(index_dir, &opened, embedder));
        Self::new(Arc::new(opened), vectors.unwrap_or_default())
    }

    /// The next state; `None` if nothing has changed.
    pub(super) fn next(
        &self,
        index_dir: &Path,
        newer: Option<OpenedIndex>,
        embedder: Option<&Arc<QueryEmbedder>>,
    ) -> Option<Self> {
        let is_same_commit = newer.is_none();
        let opened = newer.map_or_else(|| Arc::clone(&self.opened), Arc::new);
        match embedder.and_then(|embedder| self.vectors.next(index_dir, &opened, embedder)) {
            None if is_same_commit => None,
            vectors => Some(Self::new(opened, vectors.unwrap_or_else(|| self.vectors.clone()))),
        }
    }

    pub(super) fn vectors(&self) -> Option<&VectorSearch> {
        self.vectors.search.as_ref().map(|(_, search)| &**search)
    }

    fn new(opened: Arc<OpenedIndex>, vectors: LoadedVectors) -> Self {
        let number = vectors.search.as_ref().map_or(0, |(stamp, _)| stamp.number());
        let generation = IndexGeneration { vectors: number, ..opened.generation.clone() };
        Self { opened, generation, vectors }
    }
}

impl LoadedVectors {
    /// The current vectors for this commit; `None` if nothing has changed.
    fn next(&self, index_dir: &Path, opened: &OpenedIndex, embedder: &Arc<QueryEmbedder>) -> Option<Self> {
        let now = stamp(index_dir);
        if now == self.last && !self.should_retry {
            return self.for_commit(opened);
        }
        let mut next = Self { last: now, should_retry: false, search: None };
        match (VectorSearch::open(index_dir, embedder, opened), now) {
            (Ok(OpenedVectors::Usable(search)), Some(stamp)) => next.search = Some((stamp, Arc::new(search))),
            (Ok(OpenedVectors::OfAnotherModel), _) => tracing::warn!(
                "the vectors are from another model: searching by words only until the indexer has replaced them"
            ),
            (Ok(_), _) => {
                if self.search.is_some() {
                    tracing::warn!(
                        "the vectors are missing: searching by words only until the indexer has replaced them"
                    );
                }
            }
            (Err(error), _) => {
                next.should_retry = matches!(error, VectorsError::File { .. });
                self.log_failure(&error, next.should_retry);
                next.search.clone_from(&self.search);
                return Some(next.for_commit(opened).unwrap_or(next));
            }
        }
        Some(next)
    }

    /// These vectors for another commit; `None` if they are already for this commit.
    fn for_commit(&self, opened: &OpenedIndex) -> Option<Self> {
        let (stamp, search) = self.search.as_ref().filter(|(_, search)| !search.is_for(opened))?;
        Some(Self { search: Some((*stamp, Arc::new(search.for_commit(opened)))), ..self.clone() })
    }

    /// Warns once about a failure that is retried.
    fn log_failure(&self, error: &VectorsError, should_retry: bool) {
        let searching_by = if self.search.is_some() { "those in memory" } else { "words alone" };
        if should_retry && self.should_retry {
            tracing::debug!(%error, searching_by, "the vectors still cannot be read");
        } else {
            tracing::warn!(%error, searching_by, "the vectors cannot be read");
        }
    }
}
