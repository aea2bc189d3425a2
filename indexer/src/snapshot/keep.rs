//! Publishes again and again while the index is followed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio_util::sync::CancellationToken;

use super::shelf::Shelf;
use super::{Published, SnapshotError, publish};
use crate::error::IndexError;

/// How often is looked for a new state: replicas lag by this and their own pause, and small commits are put together.
const PUBLISH_EVERY: Duration = Duration::from_secs(30);

/// How often is looked for an index while there is none: replicas wait for its first snapshot.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Publishes what is new until told to stop. What cannot be published is said and tried again.
pub async fn keep_publishing(index_dir: PathBuf, to: Arc<dyn Shelf>, cancel: CancellationToken) {
    loop {
        let pause = match publish_logged(index_dir.clone(), Arc::clone(&to)).await {
            Attempt::Done | Attempt::Failed => PUBLISH_EVERY,
            Attempt::NoIndex => LOOK_EVERY,
        };
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// What one attempt to publish came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The newest snapshot shows the index as it is.
    Done,
    /// There is nothing to publish yet.
    NoIndex,
    /// The log says why.
    Failed,
}

/// Publishes once and says what it came to.
pub async fn publish_logged(index_dir: PathBuf, to: Arc<dyn Shelf>) -> Attempt {
    let published = tokio::task::spawn_blocking(move || publish(&index_dir, &*to, now())).await;
    match published {
        Ok(Ok(Published::New { snapshot, bytes_new })) => {
            tracing::info!(
                feed.position = snapshot.position.0,
                files = snapshot.files.len(),
                bytes_new,
                "snapshot published"
            );
            Attempt::Done
        }
        Ok(Ok(Published::Unchanged)) => Attempt::Done,
        Ok(Err(SnapshotError::Index(IndexError::Missing { .. }))) => {
            tracing::debug!("there is no index to publish yet");
            Attempt::NoIndex
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the snapshot was not published");
            Attempt::Failed
        }
        Err(error) => {
            tracing::error!(%error, "publishing broke off");
            Attempt::Failed
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program, where time comes in")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
