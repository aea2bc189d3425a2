//! The index as the routes see it: open, or away for a reason that says what to do.
//!
//! Searching blocks, so it runs on the blocking pool behind a semaphore: a flood of searches waits here for a moment
//! and is then turned away, instead of starving everything else. A new commit is looked for once a second.

use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use indexer::{IndexError, Searcher};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::problem::Problem;

/// How often a new commit is looked for.
const RELOAD_EVERY: Duration = Duration::from_secs(1);
/// Longest wait for a free search slot; a search takes milliseconds, so a longer queue would only grow.
const SLOT_WAIT_MAX: Duration = Duration::from_secs(2);
/// Searches at once for each core: two, so that one may wait for the disk.
const SEARCHES_PER_CORE: usize = 2;

/// Whether there is something to search.
#[derive(Clone)]
enum IndexState {
    Open(Searcher),
    /// Why not, and what to do about it.
    Away(String),
}

/// The index behind the routes.
pub(crate) struct IndexHandle {
    dir: PathBuf,
    state: RwLock<IndexState>,
    slots: Arc<Semaphore>,
}

impl IndexHandle {
    pub(crate) fn new(dir: PathBuf) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let away = IndexState::Away("the index has not been opened yet".to_owned());
        Self { dir, state: RwLock::new(away), slots: Arc::new(Semaphore::new(cores * SEARCHES_PER_CORE)) }
    }

    fn state(&self) -> IndexState {
        self.state.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn set(&self, state: IndexState) {
        *self.state.write().unwrap_or_else(std::sync::PoisonError::into_inner) = state;
    }

    /// The searcher, or why there is none.
    pub(crate) fn searcher(&self) -> Result<Searcher, Problem> {
        match self.state() {
            IndexState::Open(searcher) => Ok(searcher),
            IndexState::Away(reason) => Err(Problem::unavailable(reason)),
        }
    }

    /// Opens the index, or makes a newer commit visible. Blocking.
    pub(crate) fn refresh(&self) {
        let IndexState::Open(searcher) = self.state() else {
            let opened = Searcher::open(&self.dir);
            return self.set(opened.map_or_else(|error| IndexState::Away(away(&error)), IndexState::Open));
        };
        if let Err(error) = searcher.reload() {
            tracing::warn!(error = &error as &dyn std::error::Error, "index reload failed");
            self.set(IndexState::Away(away(&error)));
        }
    }

    /// Runs one piece of blocking work on the searcher.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&Searcher) -> T + Send + 'static,
    {
        let searcher = self.searcher()?;
        let slot = tokio::time::timeout(SLOT_WAIT_MAX, Arc::clone(&self.slots).acquire_owned())
            .await
            .map_err(|_| Problem::unavailable("too many searches at once; try again in a moment"))?
            .map_err(|error| Problem::internal(&error))?;
        let worked = tokio::task::spawn_blocking(move || {
            let result = work(&searcher);
            drop(slot);
            result
        });
        worked.await.map_err(|error| Problem::internal(&error))
    }
}

fn away(error: &IndexError) -> String {
    error.to_string()
}

/// Keeps the index current until told to stop.
pub(crate) async fn follow(index: Arc<IndexHandle>, cancel: CancellationToken) {
    loop {
        let handle = Arc::clone(&index);
        if let Err(error) = tokio::task::spawn_blocking(move || handle.refresh()).await {
            tracing::error!(error = &error as &dyn std::error::Error, "index refresh failed");
        }
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(RELOAD_EVERY) => {}
        }
    }
}
