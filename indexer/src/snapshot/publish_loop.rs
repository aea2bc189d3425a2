//! Publishes snapshots while the index is followed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::error::SnapshotError;
use super::publish::{PublishResult, publish};
use super::storage::SnapshotStorage;
use crate::error::IndexError;

/// Interval between snapshots. Replicas lag by this plus their own interval, and several small commits share a snapshot.
const PUBLISH_INTERVAL: Duration = Duration::from_secs(30);

/// Poll interval while there is no index: replicas wait for the first snapshot.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Publishes new commits until cancelled. Failures are logged and retried.
pub async fn keep_publishing(index_dir: PathBuf, to: Arc<dyn SnapshotStorage>, cancel: CancellationToken) {
    loop {
        let delay = match publish_logged(index_dir.clone(), Arc::clone(&to)).await {
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
    /// The reason is in the log.
    Failed,
}

/// Publishes once and logs the result.
pub async fn publish_logged(index_dir: PathBuf, to: Arc<dyn SnapshotStorage>) -> PublishOutcome {
    let published = tokio::task::spawn_blocking(move || publish(&index_dir, &*to, now())).await;
    match published {
        Ok(Ok(PublishResult::New { snapshot, bytes_new })) => {
            tracing::info!(
                feed.position = snapshot.position.0,
                files = snapshot.files.len(),
                bytes_new,
                "snapshot published"
            );
            PublishOutcome::Done
        }
        Ok(Ok(PublishResult::Unchanged)) => PublishOutcome::Done,
        Ok(Err(SnapshotError::Index(IndexError::Missing { .. }))) => {
            tracing::debug!("there is no index to publish yet");
            PublishOutcome::NoIndex
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "cannot publish the snapshot");
            PublishOutcome::Failed
        }
        Err(error) => {
            tracing::error!(%error, "publishing panicked");
            PublishOutcome::Failed
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
