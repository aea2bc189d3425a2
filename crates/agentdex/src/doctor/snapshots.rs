//! Checks the locations of snapshots: whether the indexer can write to its location, and the API can read from its own. The
//! checks are the same for directories and buckets.

use std::time::Duration;

use indexer::snapshot::{Snapshot, SnapshotError, SnapshotLocation, SnapshotStorage};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Finding, Subject};

/// Time for some small requests to a bucket, with retries.
const LOCATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The locations of snapshots.
#[derive(Debug, Default)]
pub(super) struct SnapshotLocations {
    /// The location that the indexer publishes to.
    pub(super) publish: Option<SnapshotLocation>,
    /// The location that the API fetches from.
    pub(super) index_from: Option<SnapshotLocation>,
}

/// How a location is used.
#[derive(Debug, Clone, Copy)]
enum Usage {
    Published,
    Fetched,
}

pub(super) async fn all(locations: &SnapshotLocations) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(location) = &locations.publish {
        findings.push(check(location, Usage::Published).await);
    }
    if let Some(location) = &locations.index_from {
        findings.push(check(location, Usage::Fetched).await);
    }
    if findings.is_empty() {
        findings.push(Finding::good(Subject::Snapshots, "none are published or fetched"));
    }
    findings
}

async fn check(location: &SnapshotLocation, usage: Usage) -> Finding {
    let cancel = CancellationToken::new();
    let storage = match location.open(cancel.clone()) {
        Ok(storage) => storage,
        Err(error) => return finding_of(&error),
    };
    let checking = tokio::task::spawn_blocking(move || judge(&*storage, usage));
    let checked = timeout(LOCATION_TIMEOUT, checking).await;
    cancel.cancel();
    match checked {
        Ok(Ok(finding)) => finding,
        Ok(Err(error)) => Finding::bad(Subject::Snapshots, error.to_string(), "report this as a bug"),
        Err(_) => Finding::bad(
            Subject::Snapshots,
            format!("{location} does not respond within {} s", LOCATION_TIMEOUT.as_secs()),
            "check whether it is mounted, or whether the storage at AWS_ENDPOINT_URL responds",
        ),
    }
}

fn judge(storage: &dyn SnapshotStorage, usage: Usage) -> Finding {
    let location = storage.location();
    match usage {
        Usage::Published => match storage.current().map(Some).or_else(none_yet) {
            Ok(snapshot) => match storage.check_writable() {
                Ok(()) => Finding::good(
                    Subject::Snapshots,
                    format!("{location} can be written to; {}", describe(snapshot.as_ref())),
                ),
                Err(error) => finding_of(&error),
            },
            Err(error) => finding_of(&error),
        },
        Usage::Fetched => match storage.current() {
            Ok(snapshot) => Finding::good(
                Subject::Snapshots,
                format!("{location} can be read; {}", describe(Some(&snapshot))),
            ),
            Err(error) => finding_of(&error),
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

fn describe(snapshot: Option<&Snapshot>) -> String {
    snapshot.map_or_else(
        || "it has no usable snapshot".to_owned(),
        |snapshot| {
            format!("it has the snapshot of {}", snapshot.published_at.format("%Y-%m-%d %H:%M:%S UTC"))
        },
    )
}

fn finding_of(error: &SnapshotError) -> Finding {
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
            bad(error.to_string(), "create the directory, or give the user of indexer and api access to it")
        }
        SnapshotError::Invalid { .. } => {
            bad(error.to_string(), "check whether an indexer of this version publishes there, and its log")
        }
        _ => bad(error.to_string(), "check the location and the log of the indexer"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Health;
    use super::*;

    #[tokio::test]
    async fn a_directory_is_good_once_a_snapshot_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let location: SnapshotLocation = folder.path().join("snapshots").to_str().unwrap().parse().unwrap();
        let both = SnapshotLocations { publish: Some(location.clone()), index_from: Some(location.clone()) };
        let findings = all(&both).await;
        assert_eq!(
            [findings[0].health, findings[1].health],
            [Health::Good, Health::Doubtful],
            "{findings:?}"
        );
        assert!(findings[1].advice.as_ref().unwrap().contains("--publish"), "{findings:?}");

        let store = store::Store::open_in_data_dir(folder.path()).await.unwrap();
        let index = folder.path().join("index");
        let config = indexer::IndexConfig::at(index.clone());
        indexer::follow::rebuild(store, config).await.unwrap();
        let now = super::super::machine::now();
        let storage = location.open(CancellationToken::new()).unwrap();
        indexer::snapshot::publish(&index, &*storage, now).unwrap();
        for finding in all(&both).await {
            let at = now.format("it has the snapshot of %Y-%m-%d").to_string();
            assert!(finding.health == Health::Good && finding.found.contains(&at), "{finding:?}");
        }

        std::fs::write(folder.path().join("snapshots/current.json"), "{}").unwrap();
        let findings = all(&both).await;
        assert_eq!([findings[0].health, findings[1].health], [Health::Good, Health::Bad], "{findings:?}");
    }

    #[tokio::test]
    async fn an_unusable_location_is_reported_with_advice() {
        let publish = Some("/proc/1/snapshots".parse().unwrap());
        let findings = all(&SnapshotLocations { publish, index_from: None }).await;
        assert_eq!((findings.len(), findings[0].health), (1, Health::Bad), "{findings:?}");
        assert!(findings[0].found.contains("/proc/1") && findings[0].advice.is_some(), "{findings:?}");
        let findings = all(&SnapshotLocations::default()).await;
        assert_eq!((findings.len(), findings[0].health), (1, Health::Good));
        let error = SnapshotError::Store {
            location: "s3://books/x".to_owned(),
            operation: "written",
            reason: "AccessDenied".to_owned(),
            advice: "check the policy",
        };
        let finding = finding_of(&error);
        assert_eq!(finding.found, "s3://books/x cannot be written (AccessDenied)");
        assert_eq!(finding.advice.as_deref(), Some("check the policy"));
    }
}
