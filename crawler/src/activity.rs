//! The current activity of a process's visits, for the display of progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts that visits keep up to date; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    names: AtomicU64,
    delays: AtomicU64,
    answers: AtomicU64,
}

/// The counts at one time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActivityCounts {
    /// Requests sent since the start.
    pub requests: u64,
    /// Visits that wait for name servers.
    pub names: u64,
    /// Visits that wait for the delay before their next request.
    pub delays: u64,
    /// Visits that wait for an answer.
    pub answers: u64,
}

/// A wait of a visit; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a>(&'a AtomicU64);

impl<'a> WaitGuard<'a> {
    fn begin(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    /// A request is sent; the visit waits for its answer.
    pub(crate) fn request(&self) -> WaitGuard<'_> {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        WaitGuard::begin(&self.0.answers)
    }

    /// A name is resolved.
    pub(crate) fn resolution(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.0.names)
    }

    /// A visit waits for a permit.
    pub(crate) fn delay(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.0.delays)
    }

    /// The counts now.
    pub(crate) fn counts(&self) -> ActivityCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, names, delays, answers } = &*self.0;
        ActivityCounts {
            requests: read(requests),
            names: read(names),
            delays: read(delays),
            answers: read(answers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end_with_their_guards() {
        let activity = Activity::default();
        let (request, delay) = (activity.request(), activity.clone());
        let waiting = (delay.delay(), delay.resolution());
        assert_eq!(activity.counts(), ActivityCounts { requests: 1, names: 1, delays: 1, answers: 1 });
        drop((request, waiting));
        assert_eq!(activity.counts(), ActivityCounts { requests: 1, ..ActivityCounts::default() });
    }
}
