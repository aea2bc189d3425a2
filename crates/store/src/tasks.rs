//! Failures of background tasks, reported in one way by every program: a warning when a task begins to fail or fails for another reason,
//! none for its repetitions, and a line when it succeeds again; metrics; and a row of the database, which `status` shows.
//!
//! A task that fails because the database is not available is reported as an outage of the database ([`OUTAGE`]).

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::model::BackgroundTask;
use crate::{OUTAGE, Store, StoreError};

const FAILING: &str = "agentdex_task_failing";
const FAILURES: &str = "agentdex_task_failures_total";
/// Minimum interval between two writes about a task that goes on failing: some tasks are tried every few seconds.
const WRITE_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// Maximum number of characters of a stored reason. A reason names a file, a URL or an address, and what to do.
const REASON_CHARS_MAX: usize = 1_000;

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
        Self::advised(format_args!("{cause}; {advice}"))
    }

    /// A reason that says what the operator can do.
    pub fn advised(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), outage_began: None }
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

/// Reports how the runs of one task of this process end.
#[derive(Debug)]
pub struct TaskMonitor {
    store: Store,
    task: BackgroundTask,
    machine: String,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// No run has ended, or the row of an earlier failure could not be removed.
    Unknown,
    Succeeding,
    Failing {
        reason: String,
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
        Self { store, task, machine: machine(), state: Mutex::new(State::Unknown) }
    }

    /// Reports the end of a run.
    pub async fn ended(&self, result: Result<(), TaskFailure>, now: DateTime<Utc>) {
        let mut state = self.state.lock().await;
        match result {
            Ok(()) => self.succeeded(&mut state).await,
            Err(TaskFailure { reason, outage_began: Some(began) }) => {
                let operation = self.task.label();
                if OUTAGE.failed(began) {
                    tracing::warn!(error = reason, operation, "waiting for the database");
                } else {
                    tracing::debug!(error = reason, operation, "waiting for the database");
                }
            }
            Err(TaskFailure { reason, outage_began: None }) => self.failed(&mut state, reason, now).await,
        }
    }

    async fn succeeded(&self, state: &mut State) {
        if matches!(state, State::Succeeding) {
            return;
        }
        if matches!(state, State::Failing { .. }) {
            tracing::info!(task = %self.task, "{} succeeds again", self.task.label());
        }
        gauge!(FAILING, "task" => self.task.as_str()).set(0.0);
        *state = match self.store.task_succeeded(self.task, &self.machine).await {
            Ok(()) => State::Succeeding,
            Err(error) => {
                tracing::debug!(%error, task = %self.task, "the success of a task was not stored");
                State::Unknown
            }
        };
    }

    async fn failed(&self, state: &mut State, reason: String, now: DateTime<Utc>) {
        counter!(FAILURES, "task" => self.task.as_str()).increment(1);
        gauge!(FAILING, "task" => self.task.as_str()).set(1.0);
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let (written_at, unwritten) = match state {
            State::Failing { reason: known, written_at, unwritten } if is_same(known, &reason) => {
                tracing::debug!(task = %self.task, "{} failed again: {reason}", self.task.label());
                (*written_at, *unwritten + 1)
            }
            State::Failing { unwritten, .. } => {
                self.warn(&reason);
                (None, *unwritten + 1)
            }
            State::Unknown | State::Succeeding => {
                self.warn(&reason);
                (None, 1)
            }
        };
        let is_due = written_at.is_none_or(|at| now - at >= WRITE_INTERVAL);
        let (written_at, unwritten) = if is_due {
            let written = self.store.task_failed((self.task, &self.machine), (unwritten, &reason), now).await;
            match written {
                Ok(()) => (Some(now), 0),
                Err(error) => {
                    tracing::debug!(%error, task = %self.task, "the failure of a task was not stored");
                    (written_at, unwritten)
                }
            }
        } else {
            (written_at, unwritten)
        };
        *state = State::Failing { reason, written_at, unwritten };
    }

    fn warn(&self, reason: &str) {
        tracing::warn!(task = %self.task, "{} failed: {reason}", self.task.label());
    }
}

/// Whether two reasons differ at most in their numbers, such as times and durations.
fn is_same(known: &str, reason: &str) -> bool {
    let letters = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    letters(known) == letters(reason)
}

/// The name of this machine.
pub fn machine() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "host".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;

    /// The lines of this module at warnings and at information.
    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Lines {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let (target, level) = (event.metadata().target(), event.metadata().level());
            if target == module_path!().trim_end_matches("::tests") && *level <= tracing::Level::INFO {
                event.record(&mut Message(self, *level));
            }
        }
    }

    struct Message<'l>(&'l Lines, tracing::Level);

    impl Visit for Message<'_> {
        fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
            if field.name() == "message" {
                self.0.0.lock().unwrap().push(format!("{} {value:?}", self.1));
            }
        }
    }

    #[tokio::test]
    async fn a_failing_task_is_logged_once_for_each_reason_and_when_it_succeeds_again() {
        let lines = Lines::default();
        let _log = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
        let dir = tempfile::tempdir().unwrap();
        let monitor =
            TaskMonitor::new(Store::open_in_data_dir(dir.path()).await.unwrap(), BackgroundTask::Seeds);
        let outage = || TaskFailure {
            outage_began: Some(Instant::now()),
            ..TaskFailure::advised("the database is not available")
        };
        let waits = |until: u32| TaskFailure::new(format_args!("not before 10:{until}"), "start again then");
        let missing = || TaskFailure::new("no file", "check the path");
        let now = DateTime::UNIX_EPOCH;
        for result in [
            Ok(()),
            Err(waits(15)),
            Err(waits(16)),
            Err(outage()),
            Err(waits(17)),
            Err(missing()),
            Err(missing()),
            Ok(()),
            Ok(()),
            Err(missing()),
        ] {
            monitor.ended(result, now).await;
        }
        let of_tasks: Vec<String> = lines.0.lock().unwrap().clone();
        let expected = [
            "WARN reading the seeds failed: not before 10:15; start again then",
            "WARN waiting for the database",
            "WARN reading the seeds failed: no file; check the path",
            "INFO reading the seeds succeeds again",
            "WARN reading the seeds failed: no file; check the path",
        ];
        assert_eq!(of_tasks, expected);
    }
}
