//! Checks the locations of snapshots: whether the one of the indexer can be written, and the one of the API read. The same
//! for directories and buckets.

use std::time::Duration;

use indexer::snapshot::{Snapshot, SnapshotError, SnapshotLocation, SnapshotStorage};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Finding, Subject};

/// Time for some small requests to a bucket, with retries.
const PLACE_WAIT: Duration = Duration::from_secs(30);

/// The locations of snapshots.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// What the indexer publishes to.
    pub(super) publish: Option<SnapshotLocation>,
    /// What the interface fetches from.
    pub(super) index_from: Option<SnapshotLocation>,
}

/// How a location is used.
#[derive(Debug, Clone, Copy)]
enum Use {
    Published,
    Fetched,
}

pub(super) async fn all(places: &Places) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(place) = &places.publish {
        findings.push(look(place, Use::Published).await);
    }
    if let Some(place) = &places.index_from {
        findings.push(look(place, Use::Fetched).await);
    }
    if findings.is_empty() {
        findings.push(Finding::good(Subject::Snapshots, "none are published or fetched"));
    }
    findings
}

async fn look(place: &SnapshotLocation, usage: Use) -> Finding {
    let cancel = CancellationToken::new();
    let shelf = match place.open(cancel.clone()) {
        Ok(shelf) => shelf,
        Err(error) => return refused(&error),
    };
    let looking = tokio::task::spawn_blocking(move || judge(&*shelf, usage));
    let looked = timeout(PLACE_WAIT, looking).await;
    cancel.cancel();
    match looked {
        Ok(Ok(finding)) => finding,
        Ok(Err(error)) => Finding::bad(Subject::Snapshots, error.to_string(), "report this as a bug"),
        Err(_) => Finding::bad(
            Subject::Snapshots,
            format!("{place} does not answer within {} s", PLACE_WAIT.as_secs()),
            "check whether it is mounted, or whether the store at AWS_ENDPOINT_URL answers",
        ),
    }
}

fn judge(shelf: &dyn SnapshotStorage, usage: Use) -> Finding {
    let place = shelf.location();
    match usage {
        Use::Published => match shelf.current().map(Some).or_else(none_yet) {
            Ok(snapshot) => match shelf.check_writable() {
                Ok(()) => Finding::good(
                    Subject::Snapshots,
                    format!("{place} can be written to; {}", holds(snapshot.as_ref())),
                ),
                Err(error) => refused(&error),
            },
            Err(error) => refused(&error),
        },
        Use::Fetched => match shelf.current() {
            Ok(snapshot) => {
                Finding::good(Subject::Snapshots, format!("{place} can be read; {}", holds(Some(&snapshot))))
            }
            Err(error) => refused(&error),
        },
    }
}

/// A location without a snapshot can be published to, and so can one with an invalid manifest, which is replaced.
fn none_yet(error: SnapshotError) -> Result<Option<Snapshot>, SnapshotError> {
    match error {
        SnapshotError::Missing { .. } | SnapshotError::Invalid { .. } => Ok(None),
        error => Err(error),
    }
}

fn holds(snapshot: Option<&Snapshot>) -> String {
    snapshot.map_or_else(
        || "it holds no usable snapshot".to_owned(),
        |snapshot| format!("it holds that of {}", snapshot.published_at.format("%Y-%m-%d %H:%M:%S UTC")),
    )
}

fn refused(error: &SnapshotError) -> Finding {
    let bad = |found: String, advice: &str| Finding::bad(Subject::Snapshots, found, advice);
    match error {
        SnapshotError::Missing { location } => Finding::doubtful(
            Subject::Snapshots,
            format!("there is no snapshot in {location}"),
            "start the indexer with --publish there",
        ),
        SnapshotError::Store { location, operation, reason, advice } => {
            bad(format!("{location} cannot be {operation} ({reason})"), advice)
        }
        SnapshotError::Io { .. } => {
            bad(error.to_string(), "make the directory, or let the user that indexer and api run as use it")
        }
        SnapshotError::Invalid { .. } => bad(
            error.to_string(),
            "look whether an indexer of this version publishes there, and what it logs",
        ),
        _ => bad(error.to_string(), "look at the place and at what the indexer logs"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[tokio::test]
    async fn a_directory_is_good_once_a_snapshot_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let place: SnapshotLocation = folder.path().join("snapshots").to_str().unwrap().parse().unwrap();
        let both = Places { publish: Some(place.clone()), index_from: Some(place.clone()) };
        let told = all(&both).await;
        assert_eq!([told[0].health, told[1].health], [Health::Good, Health::Doubtful], "{told:?}");
        assert!(told[1].advice.as_ref().unwrap().contains("--publish"), "{told:?}");

        let store = store::Store::open_in_data_dir(folder.path()).await.unwrap();
        let index = folder.path().join("index");
        let config = indexer::IndexConfig { dir: index.clone() };
        indexer::follow::rebuild(store, config).await.unwrap();
        let now = super::super::machine::now();
        let shelf = place.open(CancellationToken::new()).unwrap();
        indexer::snapshot::publish(&index, &*shelf, now).unwrap();
        for finding in all(&both).await {
            let at = now.format("it holds that of %Y-%m-%d").to_string();
            assert!(finding.health == Health::Good && finding.found.contains(&at), "{finding:?}");
        }

        std::fs::write(folder.path().join("snapshots/current.json"), "{}").unwrap();
        let told = all(&both).await;
        assert_eq!([told[0].health, told[1].health], [Health::Good, Health::Bad], "{told:?}");
    }

    #[tokio::test]
    async fn an_unusable_location_is_reported_with_advice() {
        let publish = Some("/proc/1/snapshots".parse().unwrap());
        let told = all(&Places { publish, index_from: None }).await;
        assert_eq!((told.len(), told[0].health), (1, Health::Bad), "{told:?}");
        assert!(told[0].found.contains("/proc/1") && told[0].advice.is_some(), "{told:?}");
        let told = all(&Places::default()).await;
        assert_eq!((told.len(), told[0].health), (1, Health::Good));
        let refusal = SnapshotError::Store {
            location: "s3://books/x".to_owned(),
            operation: "written",
            reason: "AccessDenied".to_owned(),
            advice: "look at the policy",
        };
        let finding = refused(&refusal);
        assert_eq!(finding.found, "s3://books/x cannot be written (AccessDenied)");
        assert_eq!(finding.advice.as_deref(), Some("look at the policy"));
    }
}
