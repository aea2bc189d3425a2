//! The current activity of a process's visits, for the display of progress.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::clock;

/// Counts that visits keep up to date; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    names: AtomicU64,
    delays: AtomicU64,
    answers: AtomicU64,
    /// The remaining work of each open visit. The key is the number of the visit.
    planned: Mutex<HashMap<u64, Planned>>,
    visits: AtomicU64,
}

/// The remaining work of a visit.
#[derive(Debug, Clone, Copy)]
struct Planned {
    /// Requests that are planned and not sent yet.
    requests: u64,
    /// Expected time of the last response, if nothing is added to the plan and no other visit delays a request.
    ends_at: DateTime<Utc>,
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
    /// Open visits whose plan is known: they have resolved their site.
    pub begun: u64,
    /// Requests that these visits have planned and not sent yet.
    pub planned: u64,
    /// Minimum remaining time of the longest of these visits.
    pub longest: Duration,
}

/// The plan of an open visit. Dropping this removes the plan.
#[derive(Debug)]
pub(crate) struct VisitPlan {
    activity: Activity,
    number: u64,
}

impl VisitPlan {
    /// Sets the number of requests that are planned and not sent yet, and when the last of them will be answered.
    pub(crate) fn set(&self, requests: u64, ends_at: DateTime<Utc>) {
        self.activity.planned().insert(self.number, Planned { requests, ends_at });
    }
}

impl Drop for VisitPlan {
    fn drop(&mut self) {
        self.activity.planned().remove(&self.number);
    }
}

/// Counts a visit as waiting. Dropping this ends the wait.
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
    /// Counts a request, and a visit that waits for its response until the guard is dropped.
    pub(crate) fn request(&self) -> WaitGuard<'_> {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        WaitGuard::begin(&self.0.answers)
    }

    /// Counts a visit that waits for name servers.
    pub(crate) fn resolution(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.0.names)
    }

    /// Counts a visit that waits for the delay before its next request.
    pub(crate) fn delay(&self) -> WaitGuard<'_> {
        WaitGuard::begin(&self.0.delays)
    }

    /// Registers a visit that begins. Its plan is counted as soon as it is set.
    pub(crate) fn visit(&self) -> VisitPlan {
        VisitPlan { activity: self.clone(), number: self.0.visits.fetch_add(1, Ordering::Relaxed) }
    }

    fn planned(&self) -> MutexGuard<'_, HashMap<u64, Planned>> {
        self.0.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counts now.
    pub(crate) fn counts(&self) -> ActivityCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { requests, names, delays, answers, .. } = &*self.0;
        let planned = self.planned();
        let last_end = planned.values().map(|visit| visit.ends_at).max();
        ActivityCounts {
            requests: read(requests),
            names: read(names),
            delays: read(delays),
            answers: read(answers),
            begun: planned.len() as u64,
            planned: planned.values().map(|visit| visit.requests).sum(),
            longest: last_end.map(|at| (at - clock::now()).to_std().unwrap_or_default()).unwrap_or_default(),
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
        let waits =
            ActivityCounts { requests: 1, names: 1, delays: 1, answers: 1, ..ActivityCounts::default() };
        assert_eq!(activity.counts(), waits);
        drop((request, waiting));
        assert_eq!(activity.counts(), ActivityCounts { requests: 1, ..ActivityCounts::default() });
    }

    #[test]
    fn plans_count_until_their_visits_end() {
        let activity = Activity::default();
        let (short, long, unknown) = (activity.visit(), activity.visit(), activity.visit());
        let after = |seconds| clock::now() + chrono::TimeDelta::seconds(seconds);
        short.set(9, after(10));
        short.set(4, after(5));
        long.set(7, after(60));
        let counts = activity.counts();
        assert_eq!((counts.begun, counts.planned), (2, 11));
        assert!(
            counts.longest > Duration::from_secs(50) && counts.longest <= Duration::from_mins(1),
            "{counts:?}"
        );
        drop((long, unknown));
        assert_eq!(activity.counts().planned, 4);
        short.set(0, after(-5));
        assert_eq!(activity.counts().longest, Duration::ZERO);
        drop(short);
        assert_eq!(activity.counts(), ActivityCounts::default());
    }
}
