//! The interface of snapshot storage.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::error::SnapshotError;
use super::manifest::{Snapshot, SnapshotFile};

/// The manifest of the newest snapshot.
pub(super) const CURRENT: &str = "current.json";
/// The directory of the files, which are named by their hash.
pub(super) const FILES: &str = "files";
/// A file that is written and removed to check the permission to write.
pub(super) const WRITE_CHECK: &str = "write-check";

/// Holds `current.json`, and files by their SHA-256 below `files/`. Every call blocks.
pub trait SnapshotStorage: Send + Sync {
    /// The location as configured, for messages.
    fn location(&self) -> String;

    /// The newest snapshot; [`SnapshotError::Missing`] if there is none.
    fn current(&self) -> Result<Snapshot, SnapshotError>;

    /// Copies one file, and at most one byte more than its size in the manifest.
    fn copy(&self, file: &SnapshotFile, to: &Path) -> Result<CopiedFile, SnapshotError>;

    /// Checks the permission to write with a small file, which is removed again.
    fn check_writable(&self) -> Result<(), SnapshotError>;

    /// Begins a publication. A concurrent publication fails here or in [`Publication::end`].
    fn begin(&self) -> Result<Box<dyn Publication + '_>, SnapshotError>;
}

/// Size and hash of a file that was copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedFile {
    pub bytes: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

/// Writes a snapshot: first its files, then its manifest.
pub trait Publication {
    /// The previous snapshot, if it can be used.
    fn last(&self) -> Option<&Snapshot>;

    /// Whether there is a file with this hash and size.
    fn has(&self, sha256: &str, bytes: u64) -> bool;

    fn put(&mut self, name: &str, from: &Path) -> Result<CopiedFile, SnapshotError>;

    /// Makes the snapshot the current one, then removes files that belong neither to it nor to the previous one.
    fn end(self: Box<Self>, snapshot: &Snapshot) -> Result<(), SnapshotError>;
}

/// The previous snapshot; `None` if it is missing or cannot be used.
pub(super) fn usable(current: Result<Snapshot, SnapshotError>) -> Result<Option<Snapshot>, SnapshotError> {
    match current {
        Ok(last) => Ok(Some(last)),
        Err(SnapshotError::Missing { .. }) => Ok(None),
        Err(error @ SnapshotError::Invalid { .. }) => {
            tracing::warn!(%error, "replacing the previous snapshot as a whole");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Copies at most `bytes_max` bytes.
pub(super) fn copy_hashed(
    from: &mut impl Read,
    to: &mut impl Write,
    bytes_max: u64,
) -> io::Result<CopiedFile> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut copied = 0;
    let mut from = from.take(bytes_max);
    loop {
        let read = from.read(&mut buffer)?;
        let Some(chunk) = buffer.get(..read).filter(|chunk| !chunk.is_empty()) else { break };
        hash.update(chunk);
        to.write_all(chunk)?;
        copied += read as u64;
    }
    Ok(CopiedFile { bytes: copied, sha256: HEXLOWER.encode(&hash.finalize()) })
}

/// Hashes of the files of some snapshots.
pub(super) fn file_hashes<'a>(
    snapshots: impl IntoIterator<Item = Option<&'a Snapshot>>,
) -> BTreeSet<&'a str> {
    let files = snapshots.into_iter().flatten().flat_map(|snapshot| &snapshot.files);
    files.map(|file| file.sha256.as_str()).collect()
}
