//! What can go wrong with snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::IndexError;

/// Why a snapshot cannot be published or fetched.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("there is no snapshot in {place}: start the indexer with --publish {place}")]
    Missing { place: String },
    #[error("the snapshot in {place} cannot be used: {reason}")]
    Wrong { place: String, reason: String },
    #[error("{} cannot be read or written: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another indexer publishes to {place}: give each indexer another --publish")]
    Locked { place: String },
    #[error("{place} cannot be {doing} ({reason}): {advice}")]
    Store { place: String, doing: &'static str, reason: String, advice: &'static str },
    #[error("the call to {place} was cancelled because the program stops")]
    Stopped { place: String },
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// For `map_err`: names the file that failed.
pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { path: path.to_owned(), source }
}
