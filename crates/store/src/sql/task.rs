//! Background tasks that fail.

use chrono::{DateTime, Utc};

use super::Connection;
use super::rows::decode;
use crate::StoreError;
use crate::convert::{RowRef, intact, millis, text, to_i32, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{BackgroundTask, FailingTask};

struct FailureRow {
    task: String,
    machine: String,
    since_ms: i64,
    last_ms: i64,
    failures: i32,
    reason: String,
}

from_row!(FailureRow { task, machine, since_ms, last_ms, failures, reason });

impl TryFrom<FailureRow> for FailingTask {
    type Error = StoreError;

    fn try_from(row: FailureRow) -> Result<Self, StoreError> {
        let at = RowRef::new("task_failure", &row.task);
        Ok(Self {
            task: at.parse("task", &row.task)?,
            since: at.time("since_ms", row.since_ms)?,
            last_at: at.time("last_ms", row.last_ms)?,
            failures: to_u32(row.failures),
            machine: row.machine,
            reason: row.reason,
        })
    }
}

/// Adds failures to those of a task since its last success.
pub(crate) async fn task_failed(
    connection: &mut Connection,
    (task, machine): (BackgroundTask, &str),
    (failures, reason): (u32, &str),
    now: DateTime<Utc>,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO task_failure (task, machine, since_ms, last_ms, failures, reason)
         VALUES ($1, $2, $3, $3, $4, $5)
         ON CONFLICT (task, machine) DO UPDATE SET last_ms = excluded.last_ms,
             failures = CASE WHEN task_failure.failures < 1000000000 THEN task_failure.failures + excluded.failures
                             ELSE task_failure.failures END,
             reason = excluded.reason",
    )
    .bind(task.as_str())
    .bind(text(machine))
    .bind(millis(now))
    .bind(to_i32(failures))
    .bind(text(reason))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Removes the failures of a task, which succeeded.
pub(crate) async fn task_succeeded(
    connection: &mut Connection,
    task: BackgroundTask,
    machine: &str,
) -> Outcome<()> {
    sqlx::query("DELETE FROM task_failure WHERE task = $1 AND machine = $2")
        .bind(task.as_str())
        .bind(text(machine))
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The tasks that fail, those that have failed longest first.
pub(crate) async fn tasks_failing(connection: &mut Connection, limit: u32) -> Outcome<Vec<FailingTask>> {
    let rows = sqlx::query(
        "SELECT task, machine, since_ms, last_ms, failures, reason FROM task_failure
         ORDER BY since_ms, task, machine LIMIT $1",
    )
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode::<FailureRow>(&["task_failure"], &rows), FailingTask::try_from))
}
