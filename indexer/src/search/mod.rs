//! The read side: opens an index, follows its commits, and answers.

mod answerer;
mod bare;
mod candidates;
mod columns;
mod completions;
mod cursor;
mod deadline;
mod facets;
mod frequencies;
mod loaded;
mod matrix;
mod nearest;
mod order;
mod postings;
mod rank;
mod rows;
mod snippet;
mod suggest;
mod warm;
mod wishes;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use manifest::CapabilityId;
use store::FeedPosition;

use crate::answer::{FacetBuckets, Hit, SearchAnswer, Suggestion};
use crate::error::{IndexError, SearchError};
use crate::index::Generations;
use crate::query::Associations;
use crate::request::{ExploreRequest, SearchRequest};
use crate::vectors::{Embedder, Stamp, stamp};
pub use bare::BareSearch;
use loaded::Loaded;
use nearest::Nearness;

/// Which state of the index answers; changes with every commit that is visible.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexGeneration {
    pub feed_id: String,
    pub position: FeedPosition,
    pub opstamp: u64,
    pub schema_version: u32,
    /// Tells one state of the vectors beside the index from another; 0 where none are searched.
    pub vectors: u64,
}

/// Searches an index. Cheap to clone; all clones see the same commit.
#[derive(Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
}

struct Inner {
    generations: Generations,
    loaded: RwLock<Arc<Loaded>>,
    /// What requests are given vectors with, where the operator named a model.
    embedder: Option<Arc<dyn Embedder>>,
    seen: RwLock<Seen>,
}

/// The vectors beside the index, as they were when they were last looked at.
#[derive(Clone, Default)]
struct Seen {
    stamp: Option<Stamp>,
    /// None where there are none, or none that can be used.
    nearness: Option<Arc<Nearness>>,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Searcher").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

impl Searcher {
    /// Opens the index below a directory.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        Self::open_with(dir, &Associations::built_in(), None)
    }

    /// Opens the index below a directory, to be searched with other associations than those that ship, and by the vectors
    /// beside it where there is an embedder.
    pub fn open_with(
        dir: &Path,
        associations: &Arc<Associations>,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, IndexError> {
        let generations = Generations::new(dir);
        let loaded = RwLock::new(Arc::new(Loaded::open(&generations, associations)?));
        let inner = Inner { generations, loaded, embedder, seen: RwLock::default() };
        let searcher = Self { inner: Arc::new(inner) };
        searcher.reload_nearness();
        Ok(searcher)
    }

    /// Looks for a newer commit, for an index that was swapped in, and for newer vectors. True when what is seen has changed.
    pub fn reload(&self) -> Result<bool, IndexError> {
        let newer = self.loaded().newer(&self.inner.generations)?;
        let is_newer = newer.is_some();
        if let Some(newer) = newer {
            *self.inner.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(newer);
        }
        Ok(self.reload_nearness() || is_newer)
    }

    /// Takes up the vectors as they stand beside the index now. Searches do without those that cannot be read.
    fn reload_nearness(&self) -> bool {
        let Some(embedder) = &self.inner.embedder else { return false };
        let (dir, loaded, before) = (self.inner.generations.dir(), self.loaded(), self.seen());
        let stamp = stamp(dir);
        let nearness = match &before.nearness {
            Some(known) if before.stamp == stamp && known.is_of(&loaded) => return false,
            Some(known) if before.stamp == stamp => Some(known.beside(&loaded)),
            None if before.stamp == stamp => return false,
            _ => Nearness::open(dir, embedder, &loaded).unwrap_or_else(|error| {
                tracing::warn!(%error, "searching by words alone");
                None
            }),
        };
        let is_other = nearness.is_some() || before.nearness.is_some();
        let seen = Seen { stamp, nearness: nearness.map(Arc::new) };
        *self.inner.seen.write().unwrap_or_else(PoisonError::into_inner) = seen;
        is_other
    }

    /// The state that answers now.
    pub fn generation(&self) -> IndexGeneration {
        let seen = self.seen();
        let vectors = seen.stamp.filter(|_| seen.nearness.is_some()).map_or(0, Stamp::number);
        IndexGeneration { vectors, ..self.loaded().generation.clone() }
    }

    /// Whether the index was built from the database with this feed.
    pub fn check_feed(&self, feed_id: &str) -> Result<(), IndexError> {
        if self.loaded().generation.feed_id == feed_id {
            return Ok(());
        }
        Err(IndexError::FeedOther { dir: self.inner.generations.dir().to_owned() })
    }

    /// Capabilities in the index, deleted ones that are still counted included.
    pub fn capabilities(&self) -> u64 {
        self.loaded().searcher.num_docs()
    }

    /// Answers one search. Blocking: reads files and computes.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, SearchError> {
        answerer::answer(&self.loaded(), self.nearness().as_deref(), request)
    }

    /// Counts what a search would find, for each facet in turn. Blocking.
    pub fn explore(&self, request: &ExploreRequest) -> Result<Vec<FacetBuckets>, SearchError> {
        answerer::explore(&self.loaded(), request)
    }

    /// The same search as the engine alone would do it: for benchmarks.
    #[doc(hidden)]
    pub fn bare(&self, request: &SearchRequest) -> Result<Option<BareSearch>, SearchError> {
        answerer::bare(&self.loaded(), request)
    }

    /// The row of one capability.
    pub fn find(&self, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
        rows::find(&self.loaded(), id)
    }

    /// The most frequent completions of what is being typed.
    pub fn suggest(&self, prefix: &str, max: usize) -> Result<Vec<Suggestion>, IndexError> {
        suggest::suggest(&self.loaded(), prefix, max)
    }

    /// Capabilities that are described alike; `None` when the index does not have this one.
    pub fn similar(&self, id: &CapabilityId, max: usize) -> Result<Option<Vec<Hit>>, SearchError> {
        answerer::similar(&self.loaded(), self.nearness().as_deref(), id, max)
    }

    fn seen(&self) -> Seen {
        self.inner.seen.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn nearness(&self) -> Option<Arc<Nearness>> {
        self.seen().nearness
    }

    fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.inner.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}
