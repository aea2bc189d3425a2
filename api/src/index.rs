//! A handle on the index: open, or unavailable with the reason and what to do.
//!
//! It polls once a second for new commits and for an index that appears or is replaced.

use std::path::Path;
use std::sync::{Arc, OnceLock, RwLock};
use std::time::Duration;

use indexer::{Embedder, IndexConfig, IndexError, Searcher, WordWeights};
use store::{BackgroundTask, Store, TaskFailure, TaskMonitor};
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::clock;
use crate::concurrency::ConcurrencyLimit;
use crate::problem::Problem;
use crate::suppressed::Suppressed;

/// Poll interval for new commits.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the query for the id of the database feed. It is repeated until it succeeds.
const FEED_WAIT: Duration = Duration::from_secs(1);

/// The state of the index.
#[derive(Clone)]
enum IndexState {
    Open(Searcher),
    /// The reason, and what to do about it.
    Unavailable(&'static str),
}

/// The index that the routes use.
pub(crate) struct IndexHandle {
    config: IndexConfig,
    embedder: Option<Arc<dyn Embedder>>,
    state: RwLock<IndexState>,
    /// Id of the database feed, once it is known. An index of another feed is rejected, because it has other sites.
    feed_id: OnceLock<String>,
    searches: ConcurrencyLimit,
    suppressed: Suppressed,
    source: IndexSource,
}

/// The source of the index. It determines the advice if the index cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexSource {
    /// An indexer on this machine.
    Indexer,
    /// Snapshots of an indexer elsewhere.
    Snapshots,
}

impl IndexSource {
    /// The error for clients, without paths of this machine.
    const fn in_public(self, error: &IndexError) -> &'static str {
        match (self, error) {
            (Self::Snapshots, IndexError::Missing { .. }) => {
                "there is no index yet: the first snapshot has not been fetched"
            }
            (Self::Snapshots, IndexError::FeedOther { .. }) => {
                "the snapshots are from another database: name that of the indexer that publishes them with --database-url, DATABASE_URL or database_url_file"
            }
            (
                Self::Snapshots,
                IndexError::SchemaOther { .. }
                | IndexError::ExamplesOther { .. }
                | IndexError::OnCluster { .. }
                | IndexError::NotOnCluster { .. }
                | IndexError::Corrupt { .. },
            ) => "the snapshot cannot be used: publish a new one with an indexer of this version",
            _ => error.in_public(),
        }
    }

    /// The error for the log. `indexer rebuild` is no help on a machine without an indexer.
    fn in_log(self, error: &IndexError) -> String {
        let in_public = self.in_public(error);
        if in_public == error.in_public() {
            return error.to_string();
        }
        let about_it = match error {
            IndexError::Missing { .. } => "the first snapshot has not been fetched",
            _ => in_public,
        };
        format!("{}; {about_it}", error.without_advice())
    }
}

impl IndexHandle {
    pub(crate) fn new(
        config: IndexConfig,
        embedder: Option<Arc<dyn Embedder>>,
        searches: ConcurrencyLimit,
        source: IndexSource,
    ) -> Self {
        let unavailable = IndexState::Unavailable("the index has not been opened yet");
        Self {
            config,
            embedder,
            state: RwLock::new(unavailable),
            feed_id: OnceLock::new(),
            searches,
            suppressed: Suppressed::default(),
            source,
        }
    }

    fn state(&self) -> IndexState {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn set(&self, state: IndexState) {
        *self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner) = state;
    }

    /// Sites that are excluded from search results.
    pub(crate) fn suppressed(&self) -> &Suppressed {
        &self.suppressed
    }

    /// Runs searches and other blocking work.
    pub(crate) fn searches(&self) -> &ConcurrencyLimit {
        &self.searches
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.config.dir
    }

    /// The searcher, or the reason why there is none.
    pub(crate) fn searcher(&self) -> Result<Searcher, Problem> {
        match self.state() {
            IndexState::Open(searcher) => Ok(searcher),
            IndexState::Unavailable(reason) => Err(Problem::unavailable(reason)),
        }
    }

    /// Opens the index, or makes a newer commit visible. Blocking.
    fn refresh(&self) -> Result<(), TaskFailure> {
        match self.opened() {
            Ok(searcher) => {
                if matches!(self.state(), IndexState::Unavailable(_)) {
                    tracing::info!(capabilities = searcher.capabilities(), "the index is open");
                }
                self.set(IndexState::Open(searcher));
                Ok(())
            }
            Err(error) => {
                self.set_unavailable(&error);
                match error {
                    // the indexer creates it, or the first snapshot brings it
                    IndexError::Missing { .. } => Ok(()),
                    error => Err(TaskFailure::advised(self.source.in_log(&error))),
                }
            }
        }
    }

    /// The newest commit of the index, if it was built from this database.
    fn opened(&self) -> Result<Searcher, IndexError> {
        let searcher = match self.state() {
            IndexState::Open(searcher) => {
                searcher.reload()?;
                searcher
            }
            IndexState::Unavailable(_) => {
                Searcher::open_configured(&self.config, &WordWeights::built_in(), self.embedder.clone())?
            }
        };
        if let Some(feed_id) = self.feed_id.get() {
            searcher.check_feed(feed_id)?;
        }
        Ok(searcher)
    }

    /// Reads the feed id of the database, unless it is known.
    async fn know_feed(&self, store: &Store) {
        if self.feed_id.get().is_none()
            && let Ok(Ok(feed_id)) = tokio::time::timeout(FEED_WAIT, store.feed_id()).await
        {
            self.feed_id.get_or_init(|| feed_id);
        }
    }

    /// Stores the error for clients, which contains no paths of this machine. Logs a missing index, once.
    fn set_unavailable(&self, error: &IndexError) {
        let reason = self.source.in_public(error);
        let is_known = matches!(self.state(), IndexState::Unavailable(known) if known == reason);
        if !is_known && matches!(error, IndexError::Missing { .. }) {
            tracing::info!(error = self.source.in_log(error), "the index is not available");
        }
        self.set(IndexState::Unavailable(reason));
    }

    /// Runs one piece of blocking work on the searcher for a client.
    pub(crate) async fn run<T, F>(&self, client: Client, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Searcher) -> T + Send + 'static,
    {
        let searcher = self.searcher()?;
        self.searches.run(client, move || work(&searcher)).await
    }
}

/// Opens the index of this database, or makes its newest commit visible.
pub(crate) async fn refresh(index: &Arc<IndexHandle>, store: &Store) -> Result<(), TaskFailure> {
    index.know_feed(store).await;
    let handle = Arc::clone(index);
    let refreshed = tokio::task::spawn_blocking(move || handle.refresh()).await;
    refreshed.unwrap_or_else(|error| Err(TaskFailure::new(error, "report it as a bug")))
}

/// Keeps an open index current until it is cancelled.
pub(crate) async fn follow(index: Arc<IndexHandle>, store: Store, cancel: CancellationToken) {
    let monitor = TaskMonitor::new(store.clone(), BackgroundTask::OpenIndex);
    while cancel.run_until_cancelled(tokio::time::sleep(RELOAD_INTERVAL)).await.is_some() {
        monitor.ended(refresh(&index, &store).await, clock::now()).await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_replica_is_not_told_to_rebuild_its_index() {
        let dir = || PathBuf::from("index");
        for error in [
            IndexError::Missing { dir: dir() },
            IndexError::FeedOther { dir: dir() },
            IndexError::SchemaOther { dir: dir(), found: 1, needed: 2 },
            IndexError::Corrupt { dir: dir(), reason: "a file is missing".to_owned() },
        ] {
            assert!(IndexSource::Indexer.in_log(&error).contains("indexer rebuild"), "{error}");
            assert_eq!(IndexSource::Indexer.in_public(&error), error.in_public());
            let replica = IndexSource::Snapshots.in_log(&error);
            assert!(!replica.contains("rebuild") && replica.contains("snapshot"), "{replica}");
            assert!(replica.contains("index"), "the log has the directory: {replica}");
        }
        let missing = IndexSource::Snapshots.in_log(&IndexError::Missing { dir: dir() });
        assert_eq!(missing, "there is no index in index; the first snapshot has not been fetched");
        let other = IndexSource::Snapshots.in_log(&IndexError::FeedOther { dir: dir() });
        assert!(other.contains("--database-url"), "{other}");
    }
}
