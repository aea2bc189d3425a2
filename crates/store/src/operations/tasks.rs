//! Background tasks that fail.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};

use super::Store;
use crate::StoreError;
use crate::model::{BackgroundTask, FailingTask};

impl Store {
    /// Adds failures to those of a task on a machine since its last success. `reason` is that of the last one.
    #[boxed]
    pub async fn task_failed(
        &self,
        task: (BackgroundTask, &str),
        failures: (u32, &str),
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "task_failed", task::task_failed(task, failures, now))
    }

    /// Removes the failures of a task on a machine, which succeeded.
    #[boxed]
    pub async fn task_succeeded(&self, task: BackgroundTask, machine: &str) -> Result<(), StoreError> {
        writing!(self, "task_succeeded", task::task_succeeded(task, machine))
    }

    /// The tasks that fail, at most `limit`, those that have failed longest first.
    #[boxed]
    pub async fn tasks_failing(&self, limit: u32) -> Result<Vec<FailingTask>, StoreError> {
        reading!(self, "tasks_failing", task::tasks_failing(limit))
    }
}
