//! The read side: opens an index, follows its commits, and executes searches.
//!
//! From the bottom up: `opened` holds a commit with its caches; `admitted` and `accumulate` find documents by conditions and by
//! words; `retrieval` is what ranking needs of them; `window` selects and ranks candidates; `executor` turns a request into a response;
//! `state` adds vectors.

mod accumulate;
mod admitted;
mod bm25;
#[cfg(feature = "cluster")]
mod cluster;
mod columns;
mod completions;
mod conditions;
mod counts;
mod cursor;
mod deadline;
mod engine_query;
mod evidence;
mod executor;
mod facets;
mod group;
mod listing;
mod opened;
mod order;
mod phrasings;
mod plans;
mod postings;
mod publishers;
mod rank;
mod retrieval;
mod rows;
mod selection;
mod site_counts;
mod site_endpoints;
mod snippet;
mod source;
mod spam_list;
mod spam_sites;
mod state;
mod suggest;
mod term_bits;
mod term_cache;
mod term_scores;
#[cfg(test)]
mod tests;
mod text_bits;
mod vector_search;
mod warm;
mod window;

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use manifest::CapabilityId;

#[cfg(feature = "cluster")]
use self::cluster::ClusterSource;
use crate::answer::{FacetBuckets, Hit, SearchAnswer, SpamSite, Suggestion};
#[cfg(feature = "cluster")]
use crate::cluster::Cluster;
use crate::config::{Contents, IndexConfig};
use crate::error::{IndexError, SearchError};
use crate::index::Generations;
use crate::lexicon::WordWeights;
use crate::request::{ExploreRequest, SearchRequest, TIME_MAX};
use crate::vectors::{Embedder, QueryEmbedder};
pub use cursor::CURSOR_BYTES_MAX;
use deadline::Deadline;
pub use engine_query::EngineQuery;
pub use listing::ListedCapability;
pub use opened::IndexGeneration;
use opened::OpenedIndex;
use source::Source;
use state::SearchState;

/// Searches an index. Cheap to clone; all clones see the same commit.
#[derive(Clone)]
pub struct Searcher {
    inner: Arc<Inner>,
}

struct Inner {
    generations: Generations,
    embedder: Option<Arc<QueryEmbedder>>,
    /// The engine that has the documents; the state is then that of its vocabulary.
    #[cfg(feature = "cluster")]
    cluster: Option<Cluster>,
    /// Replaced as a whole, so that commit, vectors and generation are always consistent.
    state: RwLock<Arc<SearchState>>,
    /// Held while the next state is prepared; searches do not wait for it.
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
        Self::open_with(dir, &WordWeights::built_in(), None)
    }

    /// Opens the index below a directory with these word weights, and with the vectors next to it if there is an embedder.
    pub fn open_with(
        dir: &Path,
        word_weights: &Arc<WordWeights>,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, IndexError> {
        let generations = Generations::new(dir);
        let embedder = embedder.map(|embedder| Arc::new(QueryEmbedder::new(embedder)));
        let opened = OpenedIndex::open(&generations, Contents::Capabilities, word_weights)?;
        let state = RwLock::new(Arc::new(SearchState::first(dir, opened, embedder.as_ref())));
        Ok(Self {
            inner: Arc::new(Inner {
                generations,
                embedder,
                #[cfg(feature = "cluster")]
                cluster: None,
                state,
                reloading: Mutex::default(),
            }),
        })
    }

    /// Opens the index of a configuration, on this machine or on a cluster, with the built-in word weights and without vectors.
    pub fn of(config: &IndexConfig) -> Result<Self, IndexError> {
        Self::open_configured(config, &WordWeights::built_in(), None)
    }

    /// Opens the index of a configuration, on this machine or on a cluster.
    pub fn open_configured(
        config: &IndexConfig,
        word_weights: &Arc<WordWeights>,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<Self, IndexError> {
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &config.cluster {
            return Self::over_cluster(&config.dir, word_weights, cluster.clone());
        }
        Self::open_with(&config.dir, word_weights, embedder)
    }

    /// Opens the vocabulary of a cluster below a directory. Searches use no vectors.
    #[cfg(feature = "cluster")]
    pub fn over_cluster(
        dir: &Path,
        word_weights: &Arc<WordWeights>,
        cluster: Cluster,
    ) -> Result<Self, IndexError> {
        let generations = Generations::new(dir);
        let opened = OpenedIndex::open(&generations, Contents::Vocabulary, word_weights)?;
        let state = RwLock::new(Arc::new(SearchState::first(dir, opened, None)));
        let (embedder, cluster, reloading) = (None, Some(cluster), Mutex::default());
        Ok(Self { inner: Arc::new(Inner { generations, embedder, cluster, state, reloading }) })
    }

    /// Opens a newer commit, generation or file of vectors if there is one. True if searches now use it.
    pub fn reload(&self) -> Result<bool, IndexError> {
        let _one_at_a_time = self.inner.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state();
        let newer = before.opened.newer(&self.inner.generations)?;
        let is_newer = newer.is_some();
        let Some(next) = before.next(self.inner.generations.dir(), newer, self.inner.embedder.as_ref())
        else {
            return Ok(false);
        };
        let is_other = is_newer || next.generation != before.generation;
        *self.inner.state.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
        Ok(is_other)
    }

    pub fn generation(&self) -> IndexGeneration {
        self.state().generation.clone()
    }

    /// Fails if the index was built from another feed.
    pub fn check_feed(&self, feed_id: &str) -> Result<(), IndexError> {
        if self.state().generation.feed_id == feed_id {
            return Ok(());
        }
        Err(IndexError::FeedOther { dir: self.inner.generations.dir().to_owned() })
    }

    /// Capabilities in the index; of a cluster, manifests in its vocabulary.
    pub fn capabilities(&self) -> u64 {
        self.state().opened.searcher.num_docs()
    }

    /// Blocking: reads files and computes.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchAnswer, SearchError> {
        let state = self.state();
        executor::search(self.source(&state), state.vectors(), request)
    }

    /// Counts the results of a search by each facet. Blocking.
    pub fn explore(&self, request: &ExploreRequest) -> Result<Vec<FacetBuckets>, SearchError> {
        executor::explore(self.source(&self.state()), request)
    }

    /// The selection of a search as a query of tantivy: for benchmarks.
    #[doc(hidden)]
    pub fn engine_query(&self, request: &SearchRequest) -> Result<Option<EngineQuery>, SearchError> {
        EngineQuery::of(&self.state().opened, request)
    }

    pub fn find(&self, id: &CapabilityId) -> Result<Option<Hit>, IndexError> {
        self.source(&self.state()).find(id)
    }

    /// Those of some identifiers that a capability of their publisher has, in any case. Blocking.
    pub fn held_among(&self, identifiers: &[String]) -> Result<HashSet<String>, IndexError> {
        self.source(&self.state()).held_among(identifiers)
    }

    /// The most frequent completions of a prefix, within the time of a search.
    pub fn suggest(&self, prefix: &str, max: usize) -> Result<Vec<Suggestion>, SearchError> {
        suggest::suggest(&self.state().opened, prefix, max, Deadline::after(TIME_MAX))
    }

    /// Capabilities with a similar description; `None` if the index does not have this one.
    pub fn similar(&self, id: &CapabilityId, max: usize) -> Result<Option<Vec<Hit>>, SearchError> {
        let state = self.state();
        executor::similar(self.source(&state), state.vectors(), id, max)
    }

    /// The sites that rank lower because they are spam, sorted by name, at most `max`. Blocking.
    pub fn spam(&self, max: usize) -> Result<Vec<SpamSite>, SearchError> {
        Ok(self.source(&self.state()).spam(max)?)
    }

    #[cfg_attr(not(feature = "cluster"), expect(clippy::unused_self, reason = "the cluster is in self"))]
    fn source<'a>(&'a self, state: &'a SearchState) -> Source<'a> {
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.inner.cluster {
            return Source::Cluster(ClusterSource::of(cluster, &state.opened));
        }
        Source::Local(&state.opened)
    }

    /// Capabilities that are not spam and not of the sites `without`, at most `max`. Blocking.
    pub fn list(&self, max: usize, without: &[String]) -> Result<Vec<ListedCapability>, SearchError> {
        Ok(listing::list(&self.state().opened, max, without)?)
    }

    fn state(&self) -> Arc<SearchState> {
        Arc::clone(&self.inner.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}
