//! A replica without an indexer fetches published snapshots. The API checks once a second for a newer index, and switches to it without
//! dropping a request.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use indexer::snapshot::{FetchResult, SnapshotStorage, fetch};
use store::{TaskFailure, TaskMonitor};
use tokio_util::sync::CancellationToken;

use crate::clock;

/// Poll interval for the snapshot manifest, which is a few kilobytes long.
const FETCH_EVERY: Duration = Duration::from_secs(5);
/// Maximum age of a snapshot while there are newer changes. An indexer publishes twice a minute, so an older snapshot indicates a fault.
const AGE_MAX: TimeDelta = TimeDelta::minutes(15);

/// What the operator can do if no snapshot can be fetched.
const ADVICE: &str = "one that was fetched before is still served; `agentdex doctor --only snapshots` checks --index-from, and an indexer with --publish writes there";

/// When the current snapshot of a replica was published.
#[derive(Debug, Default)]
pub(crate) struct Replica {
    published_at: RwLock<Option<DateTime<Utc>>>,
}

impl Replica {
    /// When the served snapshot was published.
    pub(crate) fn published_at(&self) -> Option<DateTime<Utc>> {
        *self.published_at.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, at: DateTime<Utc>) {
        *self.published_at.write().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Why this replica is not ready, if its snapshot is too old and lacks changes.
    pub(crate) fn staleness(&self, changes_behind: i64, now: DateTime<Utc>) -> Option<String> {
        let age = now - self.published_at()?;
        (changes_behind > 0 && age > AGE_MAX).then(|| {
            format!(
                "index: its snapshot is {} minutes old and {changes_behind} changes behind; check the indexer that publishes snapshots",
                age.num_minutes()
            )
        })
    }
}

/// Fetches new snapshots until it is cancelled. On errors, the current one is still served.
pub(crate) async fn follow(
    from: Arc<dyn SnapshotStorage>,
    index_dir: PathBuf,
    (replica, monitor): (Arc<Replica>, TaskMonitor),
    cancel: CancellationToken,
) {
    loop {
        let (source, target) = (Arc::clone(&from), index_dir.clone());
        let result = match tokio::task::spawn_blocking(move || fetch(&*source, &target)).await {
            Ok(Ok(fetched)) => {
                replica.set(fetched.snapshot().published_at);
                if let FetchResult::New { snapshot, bytes_copied } = fetched {
                    tracing::info!(feed.position = snapshot.position.0, bytes_copied, "snapshot fetched");
                }
                Ok(())
            }
            Ok(Err(error)) => Err(TaskFailure::new(error, ADVICE)),
            Err(error) => Err(TaskFailure::new(error, "report it as a bug")),
        };
        monitor.ended(result, clock::now()).await;
        if cancel.run_until_cancelled(tokio::time::sleep(FETCH_EVERY)).await.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_snapshot_is_current_until_something_changed() {
        let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap();
        let replica = Replica::default();
        assert_eq!(replica.staleness(100, now), None);
        replica.set(now - TimeDelta::hours(1));
        assert_eq!(replica.staleness(0, now), None);
        assert!(replica.staleness(3, now).unwrap().contains("60 minutes old and 3 changes behind"));
        replica.set(now - TimeDelta::minutes(1));
        assert_eq!(replica.staleness(3, now), None);
    }
}
