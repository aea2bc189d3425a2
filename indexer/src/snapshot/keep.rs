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
            Source::Index => PUBLISH_EVERY,
            Source::Nothing => LOOK_EVERY,
        };
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Whether there is something to publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Index,
    Nothing,
}

/// Publishes once and says what it came to.
pub async fn publish_logged(index_dir: PathBuf, to: Arc<dyn Shelf>) -> Source {
    let published = tokio::task::spawn_blocking(move || publish(&index_dir, &*to, now())).await;
    match published {
        Ok(Ok(Published::New { snapshot, bytes_new })) => tracing::info!(
            feed.position = snapshot.position.0,
            files = snapshot.files.len(),
            bytes_new,
            "snapshot published"
        ),
        Ok(Ok(Published::Unchanged)) => {}
        Ok(Err(SnapshotError::Index(IndexError::Missing { .. }))) => {
            tracing::debug!("there is no index to publish yet");
            return Source::Nothing;
        }
        Ok(Err(error)) => tracing::error!(%error, "the snapshot was not published"),
        Err(error) => tracing::error!(%error, "publishing broke off"),
    }
    Source::Index
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program, where time comes in")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
