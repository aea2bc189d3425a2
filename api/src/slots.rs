//! Searches, a bounded number at once.
//!
//! A search blocks, so it runs on the blocking pool behind a semaphore: a flood of searches waits here for a moment and is
//! then turned away, instead of starving everything else. A search that was begun keeps its slot to its end, even where its
//! client has gone. Documents of clients are read elsewhere (see `validation`).
//!
//! A queue that is long for a moment is a burst, and serves itself; one that stays long is too much to do, and makes
//! everybody wait without anybody being served sooner. `are_overloaded` tells the two apart, as controlled delay does for
//! routers (RFC 8289): by how long the queue has been there, not by how long it is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::problem::Problem;

/// Longest wait for a free slot.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Pieces at once for each core: two, so that one may wait for the disk.
const PER_CORE: usize = 2;
/// Searches for each slot that may always wait: where a search takes long, a handful of them is no overload.
const WAITING_PER_SLOT: usize = 8;
/// A queue that has not been empty for so long is no burst any more.
const BURST: Duration = Duration::from_millis(100);
/// Longest expected wait while a queue stays.
const STANDING_WAIT_MAX: Duration = Duration::from_millis(40);
/// Longest expected wait ever: with the search itself, most are answered within a hundred milliseconds.
const BURST_WAIT_MAX: Duration = Duration::from_millis(80);
/// Weight of the newest search in the time that one is expected to take.
const NEWEST: f64 = 0.05;

/// The slots of this process.
#[derive(Debug, Clone)]
pub(crate) struct Slots(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    permits: Arc<Semaphore>,
    count: usize,
    load: Mutex<Load>,
}

/// What tells a burst from overload.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    /// What a search takes, as an average over the last ones.
    seconds: Option<f64>,
    waiting: usize,
    /// Since when somebody has always been waiting.
    queue_since: Option<Instant>,
}

impl Load {
    fn took(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        self.seconds = Some(self.seconds.map_or(seconds, |old| old + NEWEST * (seconds - old)));
    }

    fn is_overload(&self, slots: usize, now: Instant) -> bool {
        let Some(seconds) = self.seconds.filter(|_| self.waiting > slots * WAITING_PER_SLOT) else {
            return false;
        };
        #[expect(clippy::cast_precision_loss, reason = "a few hundred searches at most")]
        let expected = seconds * self.waiting as f64 / slots as f64;
        let stands = self.queue_since.is_some_and(|since| now.duration_since(since) > BURST);
        let most = if stands { STANDING_WAIT_MAX } else { BURST_WAIT_MAX };
        expected > most.as_secs_f64()
    }
}

/// Somebody who waits for a slot, or whose request has gone away meanwhile.
struct Waiting<'a>(&'a Inner);

impl<'a> Waiting<'a> {
    fn begin(inner: &'a Inner, now: Instant) -> Self {
        let mut load = inner.load();
        load.waiting += 1;
        load.queue_since.get_or_insert(now);
        drop(load);
        Self(inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut load = self.0.load();
        load.waiting = load.waiting.saturating_sub(1);
        if load.waiting == 0 {
            load.queue_since = None;
        }
    }
}

impl Inner {
    fn load(&self) -> MutexGuard<'_, Load> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slots {
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cores * PER_CORE)
    }

    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Inner { permits: Arc::new(Semaphore::new(count)), count, load: Mutex::default() }))
    }

    /// Whether there is more to search than there is time for: one more would only make others wait.
    pub(crate) fn are_overloaded(&self, now: Instant) -> bool {
        self.0.load().is_overload(self.0.count, now)
    }

    #[cfg(test)]
    pub(crate) fn are_free(&self) -> bool {
        self.0.permits.available_permits() > 0
    }

    /// Runs one piece of blocking work.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let permits = Arc::clone(&self.0.permits);
        let slot = if let Ok(slot) = Arc::clone(&permits).try_acquire_owned() {
            slot
        } else {
            let _waiting = Waiting::begin(&self.0, Instant::now());
            tokio::time::timeout(WAIT_MAX, permits.acquire_owned())
                .await
                .map_err(|_| Problem::unavailable("too much to do at once; try again in a moment"))?
                .map_err(|error| Problem::internal(&error))?
        };
        let inner = Arc::clone(&self.0);
        let worked = tokio::task::spawn_blocking(move || {
            let begun = Instant::now();
            let result = work();
            inner.load().took(begun.elapsed());
            drop(slot);
            result
        });
        worked.await.map_err(|error| Problem::internal(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_served_and_a_queue_that_stays_is_overload() {
        let start = Instant::now();
        let mut load = Load { queue_since: Some(start), ..Load::default() };
        load.took(Duration::from_millis(4));
        let (soon, later) = (start + BURST / 2, start + BURST * 2);
        let is_overload = |load: Load, waiting, now| Load { waiting, ..load }.is_overload(4, now);
        assert!(!is_overload(load, 60, soon), "60 ms, for a moment");
        assert!(is_overload(load, 60, later), "60 ms, and it stays");
        assert!(!is_overload(load, 36, later));
        assert!(is_overload(load, 90, soon), "90 ms");
        load.took(Duration::from_secs(20));
        assert!(load.seconds.is_some_and(|seconds| seconds > 1.0));
        assert!(!is_overload(load, 32, later), "where searches take long, a handful is no overload");
    }

    #[tokio::test]
    async fn whoever_leaves_the_queue_no_longer_counts() {
        let slots = Slots::new(1);
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let first = slots.run(move || finished.recv().unwrap());
        let leaves = async {
            while slots.are_free() {
                tokio::task::yield_now().await;
            }
            let left = tokio::time::timeout(Duration::from_millis(50), slots.run(|| ())).await;
            assert!(left.is_err(), "the slot is taken");
            assert_eq!(slots.0.load().waiting, 0);
            assert!(slots.0.load().queue_since.is_none());
            finish.send(()).unwrap();
        };
        let (first, ()) = tokio::join!(first, leaves);
        first.unwrap();
        assert!(slots.0.load().seconds.is_some());
        slots.run(|| ()).await.unwrap();
    }
}
