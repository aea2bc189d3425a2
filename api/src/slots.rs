//! Searches, a bounded number at once.
//!
//! A search blocks, so it runs on the blocking pool behind a semaphore: a flood of searches waits here for a moment and is
//! then turned away, instead of starving everything else. A search that was begun keeps its slot to its end, even where its
//! client has gone. Documents of clients are read elsewhere (see `validation`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// Longest wait for a free slot; the work takes milliseconds, so a longer queue would only grow.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Pieces at once for each core: two, so that one may wait for the disk.
const PER_CORE: usize = 2;

/// A slot that is taken; given back before others hear of it, also after a panic.
#[derive(Debug)]
struct Held {
    slot: Option<OwnedSemaphorePermit>,
    of: Arc<Shared>,
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.slot.take());
        self.of.ended.notify_waiters();
    }
}

/// The slots of this process.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    free: Arc<Semaphore>,
    /// Told whenever a piece has ended.
    ended: Notify,
}

impl Slots {
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cores * PER_CORE)
    }

    pub(crate) fn new(slots: usize) -> Self {
        Self(Arc::new(Shared { free: Arc::new(Semaphore::new(slots)), ended: Notify::new() }))
    }

    /// Whether a slot is free, or becomes free within a time. However long the queue is, it moves then.
    pub(crate) async fn make_progress(&self, within: Duration) -> bool {
        let ended = self.0.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        self.0.free.available_permits() > 0 || tokio::time::timeout(within, ended).await.is_ok()
    }

    #[cfg(test)]
    pub(crate) fn are_free(&self) -> bool {
        self.0.free.available_permits() > 0
    }

    /// Runs one piece of blocking work.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let slot = tokio::time::timeout(WAIT_MAX, Arc::clone(&self.0.free).acquire_owned())
            .await
            .map_err(|_| Problem::unavailable("too much to do at once; try again in a moment"))?
            .map_err(|error| Problem::internal(&error))?;
        let held = Held { slot: Some(slot), of: Arc::clone(&self.0) };
        let worked = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(held);
            result
        });
        worked.await.map_err(|error| Problem::internal(&error))
    }
}
