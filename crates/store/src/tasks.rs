//! Failures of background tasks, reported in one way by every program: a warning when a task begins to fail or fails for another reason,
//! none for its repetitions, and a line when it succeeds again ([`FailureLog`]); metrics; and a row of the database, which `status` shows.
//!
//! A task that fails because the database is not available is reported as an outage of the database ([`OUTAGE`]).

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::failure_log::{FailureLog, in_words};
use crate::model::BackgroundTask;
use crate::{OUTAGE, Store, StoreError};

const FAILING: &str = "agentdex_task_failing";
const FAILURES: &str = "agentdex_task_failures_total";
/// Minimum interval between two writes about a task that goes on failing: some tasks are tried every few seconds.
const WRITE_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// Maximum number of lines a minute about a task that fails for changing reasons: an operator who corrects one mistake after the other sees
/// each reason.
const LINES_MAX: u32 = 3;
/// Maximum number of characters of a reason. A reason names a file, a URL or an address, and what to do. With the name of the task, it fits
/// into the message of a log line.
const REASON_CHARS_MAX: usize = 900;
/// Maximum number of characters of a cause, which may quote a server, so that the advice after it is not cut off.
const CAUSE_CHARS_MAX: usize = 600;
/// Appended to a text that was truncated.
const CUT_MARK: char = '…';

/// Why a run of a task failed.
#[derive(Debug)]
pub struct TaskFailure {
    reason: String,
    /// When the operation began that failed because the database is not available.
    outage_began: Option<Instant>,
}

impl TaskFailure {
    /// A cause, and what the operator can do.
    pub fn new(cause: impl fmt::Display, advice: impl fmt::Display) -> Self {
        Self::advised(format_args!("{}; {advice}", cut(&cause.to_string(), CAUSE_CHARS_MAX)))
    }

    /// A reason that says what the operator can do.
    pub fn advised(reason: impl fmt::Display) -> Self {
        Self { reason: cut(&reason.to_string(), REASON_CHARS_MAX), outage_began: None }
    }

    /// Whether the database was not available.
    pub const fn is_outage(&self) -> bool {
        self.outage_began.is_some()
    }

    /// A failure of the database in an operation that began at this time.
    pub fn of_store(error: &StoreError, began: Instant) -> Self {
        let advice = "it is tried again; `agentdex doctor --only database,disk` checks the database";
        Self { outage_began: error.is_transient().then_some(began), ..Self::new(error, advice) }
    }
}

impl fmt::Display for TaskFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// Truncates a text, and marks that it was truncated.
fn cut(text: &str, chars_max: usize) -> String {
    let is_long = text.chars().nth(chars_max).is_some();
    let kept = text.chars().take(chars_max);
    kept.chain(is_long.then_some(CUT_MARK)).collect()
}

/// Reports how the runs of one task of this process end.
#[derive(Debug)]
pub struct TaskMonitor {
    store: Store,
    task: BackgroundTask,
    machine: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    log: FailureLog,
    row: FailureRow,
}

/// The row of the database about the failures of this task.
#[derive(Debug)]
enum FailureRow {
    /// An earlier process, or a success that was not stored, may have left one.
    Unknown,
    /// There is none.
    Absent,
    Present {
        written_at: Option<DateTime<Utc>>,
        /// Failures that are not in the database.
        unwritten: u32,
    },
}

impl TaskMonitor {
    pub fn new(store: Store, task: BackgroundTask) -> Self {
        describe_gauge!(FAILING, "1 while a background task fails, otherwise 0");
        describe_counter!(FAILURES, "runs of background tasks that failed");
        gauge!(FAILING, "task" => task.as_str()).increment(0.0);
        counter!(FAILURES, "task" => task.as_str()).increment(0);
        let state = State { log: FailureLog::new(LINES_MAX), row: FailureRow::Unknown };
        Self { store, task, machine: machine(), state: Mutex::new(state) }
    }

    /// Reports the end of a run.
    pub async fn ended(&self, result: Result<(), TaskFailure>, now: DateTime<Utc>) {
        let mut state = self.state.lock().await;
        match result {
            Ok(()) => self.succeeded(&mut state).await,
            Err(TaskFailure { reason, outage_began: Some(began) }) => {
                OUTAGE.failed(self.task.label(), reason, began);
            }
            Err(TaskFailure { reason, outage_began: None }) => self.failed(&mut state, &reason, now).await,
        }
    }

    async fn succeeded(&self, state: &mut State) {
        if let Some(lasted) = state.log.succeeded(Instant::now()) {
            tracing::info!(task = %self.task, "{} succeeds again after {}", self.task.label(), in_words(lasted));
        }
        if matches!(state.row, FailureRow::Absent) {
            return;
        }
        gauge!(FAILING, "task" => self.task.as_str()).set(0.0);
        state.row = match self.store.task_succeeded(self.task, &self.machine).await {
            Ok(()) => FailureRow::Absent,
            Err(error) => {
                tracing::debug!(%error, task = %self.task, "the success of a task was not stored");
                FailureRow::Unknown
            }
        };
    }

    async fn failed(&self, state: &mut State, reason: &str, now: DateTime<Utc>) {
        counter!(FAILURES, "task" => self.task.as_str()).increment(1);
        gauge!(FAILING, "task" => self.task.as_str()).set(1.0);
        let run_ended = Instant::now();
        let is_logged = state.log.failed(reason, run_ended, run_ended);
        if is_logged {
            tracing::warn!(task = %self.task, "{} failed: {reason}", self.task.label());
        } else {
            tracing::debug!(task = %self.task, "{} failed again: {reason}", self.task.label());
        }
        let (written_at, unwritten) = match state.row {
            FailureRow::Present { written_at, unwritten } => (written_at, unwritten + 1),
            FailureRow::Unknown | FailureRow::Absent => (None, 1),
        };
        let is_due = is_logged || written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        let is_written = is_due && self.is_written((unwritten, reason), now).await;
        state.row = if is_written {
            FailureRow::Present { written_at: Some(now), unwritten: 0 }
        } else {
            FailureRow::Present { written_at, unwritten }
        };
    }

    /// Writes failures to the database. Returns whether this succeeded.
    async fn is_written(&self, failures: (u32, &str), now: DateTime<Utc>) -> bool {
        let written = self.store.task_failed((self.task, &self.machine), failures, now).await;
        if let Err(error) = &written {
            tracing::debug!(%error, task = %self.task, "the failure of a task was not stored");
        }
        written.is_ok()
    }
}

/// The name of this machine.
pub fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "host".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::LogLines;

    #[tokio::test]
    async fn a_failing_task_is_logged_once_for_each_reason_and_when_it_succeeds_again() {
        let (lines, _guard) = LogLines::collect();
        let dir = tempfile::tempdir().unwrap();
        let monitor =
            TaskMonitor::new(Store::open_in_data_dir(dir.path()).await.unwrap(), BackgroundTask::Seeds);
        let outage = || TaskFailure {
            outage_began: Some(Instant::now()),
            ..TaskFailure::advised("the database is not available")
        };
        let status = |status: u32| TaskFailure::new(format_args!("it answered {status}"), "try later");
        let missing = || TaskFailure::new("no file", "check the path");
        let now = DateTime::UNIX_EPOCH;
        for result in [
            Ok(()),
            Err(status(503)),
            Err(status(404)),
            Err(outage()),
            Err(status(404)),
            Ok(()),
            Ok(()),
            Err(missing()),
            Err(missing()),
            Err(status(503)),
            Ok(()),
        ] {
            monitor.ended(result, now).await;
        }
        let expected = [
            "WARN reading the seeds failed: it answered 503; try later",
            "WARN reading the seeds failed: it answered 404; try later",
            "WARN the database is unavailable",
            "INFO reading the seeds succeeds again after 0 s",
            "WARN reading the seeds failed: no file; check the path",
            "INFO reading the seeds succeeds again after 0 s",
        ];
        assert_eq!(lines.all(), expected);
    }

    #[test]
    fn a_long_cause_is_cut_and_keeps_its_advice() {
        let failure = TaskFailure::new("ü".repeat(100_000), "check the path").to_string();
        assert_eq!(failure, format!("{}…; check the path", "ü".repeat(CAUSE_CHARS_MAX)));
        let advised = TaskFailure::advised("x".repeat(100_000)).to_string();
        assert_eq!(advised.chars().count(), REASON_CHARS_MAX + 1);
    }
}
