//! The read side: opens an index, follows its commits, and answers.

mod accumulate;
mod admitted;
mod answerer;
mod bare;
mod bm25;
mod candidates;
mod columns;
mod completions;
mod counts;
mod cursor;
mod deadline;
mod facets;
mod frequencies;
mod loaded;
#[cfg(test)]
mod made;
mod matrix;
mod nearest;
mod order;
mod postings;
mod rank;
mod rows;
mod snippet;
mod state;
mod suggest;
mod warm;
mod wishes;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use manifest::CapabilityId;
use store::FeedPosition;

use crate::answer::{FacetBuckets, Hit, SearchAnswer, Suggestion};
use crate::error::{IndexError, SearchError};
use crate::index::Generations;
use crate::query::Associations;
use crate::request::{ExploreRequest, SearchRequest};
use crate::vectors::{Asked, Embedder};
pub use bare::BareSearch;
use loaded::Loaded;
use state::State;

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
    /// What requests are given vectors with, where the operator named a model.
    asked: Option<Arc<Asked>>,
    /// Swapped as a whole: commit, vectors and what tells one answer from another never disagree.
    state: RwLock<Arc<State>>,
    /// Held by whoever prepares the next state; those who search never wait for it.
    reloading: Mutex<()>,
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
        let asked = embedder.map(|embedder| Arc::new(Asked::of(embedder)));
        let loaded = Loaded::open(&generations, associations)?;
        let state = RwLock::new(Arc::new(State::first(dir, loaded, asked.as_ref())));
        Ok(Self { inner: Arc::new(Inner { generations, asked, state, reloading: Mutex::default() }) })
    }

    /// Looks for a newer commit, for an index that was swapped in, and for newer vectors. True when what is seen has changed.
    pub fn reload(&self) -> Result<bool, IndexError> {
        let _one_at_a_time = self.inner.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state();
        let newer = before.loaded.newer(&self.inner.generations)?;
        let is_newer = newer.is_some();
        let Some(next) = before.next(self.inner.generations.dir(), newer, self.inner.asked.as_ref()) else {
            return Ok(false);
        };
        let is_other = is_newer || next.generation != before.generation;
        *self.inner.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(is_other)
    }

    /// The state that answers now.
    pub fn generation(&self) -> IndexGeneration {
        self.state().generation.clone()
    }

    /// Whether the index was built from the database with this feed.
    pub fn check_feed(&self, feed_id: &str) -> Result<(), IndexError> {
        if self.state().generation.feed_id == feed_id {
            return Ok(());
        }
        Err(IndexError::FeedOther { dir: self.inner.generations.dir().to_owned() })
    }

    /// Capabilities in the index, deleted ones that are still counted included.
    pub fn capabilities(&self) -> u64 {
        self.state().loaded.searcher.num_docs()
    }

    /// Answers one search. Blocking: reads files and computes.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, SearchError> {
        let state = self.state();
        answerer::answer(&state.loaded, state.nearness(), request)
    }

    /// Counts what a search would find, for each facet in turn. Blocking.
    pub fn explore(&self, request: &ExploreRequest) -> Result<Vec<FacetBuckets>, SearchError> {
        answerer::explore(&self.state().loaded, request)
    }

    /// The same search as the engine alone would do it: for benchmarks.
    #[doc(hidden)]
    pub fn bare(&self, request: &SearchRequest) -> Result<Option<BareSearch>, SearchError> {
        answerer::bare(&self.state().loaded, request)
    }

    /// The row of one capability.
    pub fn find(&self, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
        rows::find(&self.state().loaded, id)
    }

    /// The most frequent completions of what is being typed.
    pub fn suggest(&self, prefix: &str, max: usize) -> Result<Vec<Suggestion>, IndexError> {
        suggest::suggest(&self.state().loaded, prefix, max)
    }

    /// Capabilities that are described alike; `None` when the index does not have this one.
    pub fn similar(&self, id: &CapabilityId, max: usize) -> Result<Option<Vec<Hit>>, SearchError> {
        let state = self.state();
        answerer::similar(&state.loaded, state.nearness(), id, max)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.inner.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}
