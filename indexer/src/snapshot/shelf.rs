//! What a place for snapshots has to do, whatever holds it.

use std::path::Path;

use super::SnapshotError;
use super::manifest::{Snapshot, SnapshotFile};

/// A place that holds snapshots: `current.json`, and files by their SHA-256 below `files/`. Every call blocks.
pub trait Shelf: Send + Sync {
    /// How its operator names it.
    fn place(&self) -> String;

    /// The manifest that it names as current; [`SnapshotError::Missing`] where nothing was published yet.
    fn current(&self) -> Result<Snapshot, SnapshotError>;

    /// Copies one file, and at most one octet more than it should have; returns how many octets there were, and their hash.
    fn copy(&self, file: &SnapshotFile, to: &Path) -> Result<Copied, SnapshotError>;

    /// Proves that a publication could be written there, and leaves nothing behind: a small file comes and goes.
    fn check_writable(&self) -> Result<(), SnapshotError>;

    /// Begins a publication; two at once are refused here, or when the second one ends.
    fn begin(&self) -> Result<Box<dyn Publication + '_>, SnapshotError>;
}

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// A snapshot on its way: first its files, then its manifest.
pub trait Publication {
    /// The snapshot that is current until this one ends; absent where there is none that can be used.
    fn last(&self) -> Option<&Snapshot>;

    /// Whether a file of that size is there below its hash.
    fn has(&self, sha256: &str, bytes: u64) -> bool;

    /// Puts a file below its hash.
    fn put(&mut self, name: &str, from: &Path) -> Result<Copied, SnapshotError>;

    /// Names the snapshot as current, then removes what neither it nor the one before names.
    fn end(self: Box<Self>, snapshot: &Snapshot) -> Result<(), SnapshotError>;
}

/// The last snapshot, unless it is missing or of no use.
pub(super) fn usable(current: Result<Snapshot, SnapshotError>) -> Result<Option<Snapshot>, SnapshotError> {
    match current {
        Ok(last) => Ok(Some(last)),
        Err(SnapshotError::Missing { .. }) => Ok(None),
        Err(error @ SnapshotError::Wrong { .. }) => {
            tracing::warn!(%error, "the last snapshot is replaced by a whole one");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
