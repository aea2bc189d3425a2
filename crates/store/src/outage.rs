//! Outages of the database: logs when operations begin to fail, why, and when they succeed again.
//!
//! A process has one [`OUTAGE`], which all tasks report to, because a process uses one database. Otherwise each task would log the same
//! outage on its own, with another duration.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::failure_log::{FailureLog, in_words};

/// Maximum number of lines a minute about an outage. Each of the operations that fail has its own reason.
const LINES_MAX: u32 = 1;
/// Minimum interval between two lines about slow operations.
const SLOW_INTERVAL: Duration = Duration::from_mins(1);

/// The outage of the database of this process.
pub static OUTAGE: Outage = Outage::new();

/// Whether the database answers, as far as the operations of this process show.
#[derive(Debug)]
pub struct Outage(Mutex<State>);

#[derive(Debug)]
struct State {
    failures: FailureLog,
    /// When an operation was last logged as slow.
    slow_at: Option<Instant>,
    /// Number of operations that failed and are being retried.
    retried: usize,
}

/// An operation that failed and is retried until it succeeds. The outage does not end before: if the disk is full, reads succeed.
#[derive(Debug)]
#[must_use = "dropping it ends the retries"]
pub struct RetriedOperation<'o>(&'o Outage);

impl Drop for RetriedOperation<'_> {
    fn drop(&mut self) {
        self.0.state().retried -= 1;
    }
}

/// An operation that is logged as slow. It ends on its own, whatever other operations do.
#[derive(Debug)]
#[must_use = "its end is logged too"]
pub struct SlowOperation {
    operation: String,
    began: Instant,
}

impl Outage {
    const fn new() -> Self {
        Self(Mutex::new(State { failures: FailureLog::new(LINES_MAX), slow_at: None, retried: 0 }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an operation failed because the database is not available, and logs the beginning of an outage. `began` is when the
    /// operation began, which may have waited for a connection.
    pub fn failed(&self, operation: &str, reason: impl fmt::Display, began: Instant) {
        let reason = reason.to_string();
        let is_due = self.state().failures.failed(&reason, began, Instant::now());
        if is_due {
            tracing::warn!(error = reason, operation, "the database is unavailable");
        } else {
            tracing::debug!(error = reason, operation, "the database is unavailable");
        }
    }

    /// Whether an outage has not ended.
    pub fn is_on(&self) -> bool {
        self.state().failures.is_failing()
    }

    /// Records that an operation that failed is retried.
    pub fn retried(&self) -> RetriedOperation<'_> {
        self.state().retried += 1;
        RetriedOperation(self)
    }

    /// Records that the database answered, and logs the end of an outage, unless an operation that failed is still being retried.
    pub fn answered(&self) {
        let mut state = self.state();
        let ended = if state.retried == 0 { state.failures.succeeded(Instant::now()) } else { None };
        drop(state);
        if let Some(lasted) = ended {
            tracing::info!("the database answers again after {}", in_words(lasted));
        }
    }

    /// Logs that an operation which began at `began` takes long: at most once a minute, and not in an outage, which has its own line.
    pub fn slow(&self, operation: &str, began: Instant) -> Option<SlowOperation> {
        if !self.state().is_slow_due(Instant::now()) {
            return None;
        }
        tracing::warn!(operation, "waiting for the database");
        Some(SlowOperation { operation: operation.to_owned(), began })
    }
}

impl State {
    fn is_slow_due(&mut self, now: Instant) -> bool {
        let is_due = !self.failures.is_failing() && self.slow_at.is_none_or(|at| now - at >= SLOW_INTERVAL);
        if is_due {
            self.slow_at = Some(now);
        }
        is_due
    }
}

impl SlowOperation {
    /// Logs that the database answered the operation.
    pub fn answered(self) {
        let waited = in_words(self.began.elapsed());
        tracing::info!(operation = self.operation, "the database answered after {waited}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::LogLines;

    #[test]
    fn an_outage_has_one_line_at_its_beginning_and_one_at_its_end() {
        let (outage, (lines, _guard)) = (Outage::new(), LogLines::collect());
        outage.answered();
        let began = Instant::now();
        for operation in ["save a visit", "read the feed", "save a visit"] {
            outage.failed(operation, format_args!("no connection to {operation}"), began);
            assert!(outage.is_on());
        }
        outage.answered();
        outage.answered();
        let expected = ["WARN the database is unavailable", "INFO the database answers again after 0 s"];
        assert_eq!(lines.all(), expected);
        assert!(!outage.is_on());
    }

    #[test]
    fn a_slow_operation_ends_with_itself_and_not_with_another_one() {
        let (outage, (lines, _guard)) = (Outage::new(), LogLines::collect());
        let began = Instant::now();
        let slow = outage.slow("save a visit", began).unwrap();
        assert!(outage.slow("read the feed", began).is_none(), "one line a minute");
        outage.answered();
        assert_eq!(lines.all(), ["WARN waiting for the database"], "another operation was answered");
        slow.answered();
        assert_eq!(lines.all()[1..], ["INFO the database answered after 0 s"]);
    }

    /// On a full disk, reads succeed.
    #[test]
    fn an_outage_lasts_as_long_as_an_operation_is_retried() {
        let (outage, (lines, _guard)) = (Outage::new(), LogLines::collect());
        outage.failed("write clocks", "the disk is full", Instant::now());
        let retried = outage.retried();
        outage.answered();
        assert!(outage.is_on() && lines.all() == ["WARN the database is unavailable"]);
        drop(retried);
        outage.answered();
        assert_eq!(lines.all()[1..], ["INFO the database answers again after 0 s"]);
    }

    #[test]
    fn operations_that_are_slow_in_an_outage_have_no_line() {
        let outage = Outage::new();
        outage.failed("save a visit", "pool timed out", Instant::now());
        assert!(outage.slow("read the feed", Instant::now()).is_none());
        outage.answered();
        assert!(outage.slow("read the feed", Instant::now()).is_some());
    }
}
