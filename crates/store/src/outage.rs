//! Outages of the database: since when operations fail, and which of the failures are worth a line in the log.
//!
//! A process has one [`OUTAGE`], which all tasks report to, because a process uses one database. Otherwise each task would log the same
//! outage on its own, with another duration.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Minimum interval between two lines about an outage.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// The outage of the database of this process.
pub static OUTAGE: Outage = Outage::new();

/// Whether the database answers, as far as the operations of this process show.
#[derive(Debug)]
pub struct Outage(Mutex<State>);

#[derive(Debug)]
struct State {
    /// When the first operation that failed began; `None` while the database answers.
    since: Option<Instant>,
    /// When a line about a failure or a wait was last due.
    logged_at: Option<Instant>,
    /// When the last outage ended.
    ended_at: Option<Instant>,
    /// How long it lasted, until a line about its end was written.
    unreported: Option<Duration>,
}

impl Outage {
    const fn new() -> Self {
        Self(Mutex::new(State { since: None, logged_at: None, ended_at: None, unreported: None }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an operation failed because the database is not available. `began` is when the operation began, which may have waited
    /// for a connection. Returns whether a line in the log is due: at the beginning of an outage, and once a minute while it lasts.
    pub fn failed(&self, began: Instant) -> bool {
        self.state().failed(began, Instant::now())
    }

    /// Records that an operation which began at `began` takes long. Returns whether a line in the log is due: at most once a minute, and none
    /// in an outage, which has its own. The wait then counts as an outage, so that its end has a line, too.
    pub fn is_slow(&self, began: Instant) -> bool {
        self.state().is_slow(began, Instant::now())
    }

    /// Whether an outage, or a wait that has a line in the log, has not ended.
    pub fn is_on(&self) -> bool {
        self.state().since.is_some()
    }

    /// Records that the database answered, which ends an outage.
    pub fn answered(&self) {
        self.state().answered(Instant::now());
    }

    /// How long an outage lasted, once after its end: the caller writes the line about it, for example with [`log_outage_end`].
    pub fn ended(&self) -> Option<Duration> {
        self.state().unreported.take()
    }
}

impl State {
    fn failed(&mut self, began: Instant, now: Instant) -> bool {
        // operations that began in an outage may fail after its end
        if self.since.is_none() && self.ended_at.is_some_and(|ended| began < ended) {
            return false;
        }
        if self.since.is_none() {
            self.logged_at = None;
        }
        self.since = Some(self.since.map_or(began, |since| since.min(began)));
        self.is_line_due(now)
    }

    fn is_slow(&mut self, began: Instant, now: Instant) -> bool {
        let is_due = self.since.is_none() && self.is_line_due(now);
        if is_due {
            self.since = Some(began);
        }
        is_due
    }

    /// Whether a minute has passed since the last line. The caller writes one then.
    fn is_line_due(&mut self, now: Instant) -> bool {
        let is_due = self.logged_at.is_none_or(|at| now - at >= LOG_INTERVAL);
        if is_due {
            self.logged_at = Some(now);
        }
        is_due
    }

    fn answered(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.ended_at = Some(now);
            self.unreported = Some(now - since);
        }
    }
}

/// Logs the end of an outage that lasted this long, at every level that shows warnings.
pub fn log_outage_end(lasted: Duration) {
    let seconds = lasted.as_secs();
    let lasted = if seconds < 60 {
        format!("{seconds} s")
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    };
    tracing::info!("the database answers again after {lasted}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_due_at_once_and_then_every_minute_whatever_fails() {
        let outage = Outage::new();
        let mut state = outage.state();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        // an operation that waited ten seconds for a connection, then three failures in each second
        assert!(state.failed(at(0), at(10)));
        let lines =
            (11..386).flat_map(|second| [at(second); 3]).filter(|now| state.failed(*now, *now)).count();
        assert_eq!(lines, 6, "376 seconds are six minutes after the first line");
        assert!(!state.failed(at(1), at(386)), "the earliest operation that failed counts");
        state.answered(at(386));
        state.answered(at(387));
        drop(state);
        assert_eq!((outage.is_on(), outage.ended()), (false, Some(Duration::from_secs(386))));
        assert_eq!(outage.ended(), None, "the end is reported once");
    }

    #[test]
    fn operations_that_began_in_an_outage_do_not_begin_another_one() {
        let outage = Outage::new();
        let mut state = outage.state();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(state.failed(at(0), at(1)));
        state.answered(at(2));
        assert!(!state.failed(at(0), at(3)) && state.since.is_none());
        assert!(state.failed(at(4), at(4)), "a new outage has its first line at once");
    }

    #[test]
    fn slow_operations_have_one_line_a_minute_and_none_in_an_outage() {
        let outage = Outage::new();
        let mut state = outage.state();
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        assert!(state.is_slow(at(0), at(2)) && !state.is_slow(at(1), at(3)));
        assert!(!state.failed(at(4), at(4)), "the wait has its line already");
        state.answered(at(5));
        assert!(!state.is_slow(at(6), at(8)) && state.since.is_none(), "one line a minute");
        drop(state);
        assert_eq!(outage.ended(), Some(Duration::from_secs(5)), "a wait with a line has one at its end");
    }
}
