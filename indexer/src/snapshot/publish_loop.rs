//! Publishes snapshots while the index is followed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use store::{TaskFailure, TaskMonitor};
use tokio_util::sync::CancellationToken;

use super::error::SnapshotError;
use super::publish::{PublishResult, publish};
use super::storage::SnapshotStorage;
use crate::error::IndexError;

/// Interval between snapshots. Replicas lag by this plus their own interval, and several small commits share a snapshot.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(30);

/// Poll interval while there is no index: replicas wait for the first snapshot.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What the operator can do about a snapshot that was not published.
const ADVICE: &str = "`agentdex doctor --only snapshots` checks --publish";

/// Publishes new commits until cancelled. Failures are reported and retried.
pub async fn keep_publishing(
    index_dir: PathBuf,
    to: Arc<dyn SnapshotStorage>,
    monitor: Arc<TaskMonitor>,
    cancel: CancellationToken,
) {
    loop {
        let delay = match publish_logged(index_dir.clone(), Arc::clone(&to), &monitor).await {
            PublishOutcome::Done | PublishOutcome::Failed => PUBLISH_INTERVAL,
            PublishOutcome::NoIndex => POLL_INTERVAL,
        };
        if cancel.run_until_cancelled(tokio::time::sleep(delay)).await.is_none() {
            return;
        }
    }
}

/// The result of one attempt to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishOutcome {
    /// The newest snapshot has the current commit.
    Done,
    NoIndex,
    /// The reason was reported, unless the program stops.
    Failed,
}

/// Publishes once and reports the result.
pub async fn publish_logged(
    index_dir: PathBuf,
    to: Arc<dyn SnapshotStorage>,
    monitor: &TaskMonitor,
) -> PublishOutcome {
    let published = tokio::task::spawn_blocking(move || publish(&index_dir, &*to, now())).await;
    let (outcome, result) = match published {
        Ok(Ok(published)) => {
            if let PublishResult::New { snapshot, bytes_new } = published {
                let (position, files) = (snapshot.position.0, snapshot.files.len());
                tracing::info!(feed.position = position, files, bytes_new, "snapshot published");
            }
            (PublishOutcome::Done, Ok(()))
        }
        Ok(Err(SnapshotError::Index(IndexError::Missing { .. }))) => {
            tracing::debug!("there is no index to publish yet");
            return PublishOutcome::NoIndex;
        }
        Ok(Err(SnapshotError::Stopped { .. })) => return PublishOutcome::Failed,
        Ok(Err(error)) => (PublishOutcome::Failed, Err(TaskFailure::new(error, ADVICE))),
        Err(error) => (PublishOutcome::Failed, Err(TaskFailure::new(error, "report it as a bug"))),
    };
    monitor.ended(result, now()).await;
    outcome
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
