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
mod order;
mod postings;
mod rank;
mod rows;
mod snippet;
mod suggest;
mod warm;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use manifest::CapabilityId;
use store::FeedPosition;

use crate::answer::{FacetBuckets, Hit, SearchAnswer, Suggestion};
use crate::error::{IndexError, SearchError};
use crate::index::Generations;
use crate::query::Associations;
use crate::request::{ExploreRequest, SearchRequest};
pub use bare::BareSearch;
use loaded::Loaded;

/// Which state of the index answers; changes with every commit that is visible.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexGeneration {
    pub feed_id: String,
    pub position: FeedPosition,
    pub opstamp: u64,
    pub schema_version: u32,
}

/// Searches an index. Cheap to clone; all clones see the same commit.
#[derive(Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
}

struct Inner {
    generations: Generations,
    loaded: RwLock<Arc<Loaded>>,
}

impl std::fmt::Debug for Searcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Searcher").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

impl Searcher {
    /// Opens the index below a directory.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        Self::open_with(dir, &Associations::built_in())
    }

    /// Opens the index below a directory, to be searched with other associations than those that ship.
    pub fn open_with(dir: &Path, associations: &Arc<Associations>) -> Result<Self, IndexError> {
        let generations = Generations::new(dir);
        let loaded = RwLock::new(Arc::new(Loaded::open(&generations, associations)?));
        Ok(Self { inner: Arc::new(Inner { generations, loaded }) })
    }

    /// Looks for a newer commit, and for an index that was swapped in. True when what is seen has changed.
    pub fn reload(&self) -> Result<bool, IndexError> {
        let before = self.loaded();
        let Some(newer) = before.newer(&self.inner.generations)? else { return Ok(false) };
        *self.inner.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(newer);
        Ok(true)
    }

    /// The state that answers now.
    pub fn generation(&self) -> IndexGeneration {
        self.loaded().generation.clone()
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
        answerer::answer(&self.loaded(), request)
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
        answerer::similar(&self.loaded(), id, max)
    }

    fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.inner.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}
