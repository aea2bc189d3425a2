//! Errors of snapshots.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::IndexError;

/// Why a snapshot cannot be published or fetched.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("there is no snapshot in {location}: start the indexer with --publish {location}")]
    Missing { location: String },
    #[error("the snapshot in {location} cannot be used: {reason}")]
    Invalid { location: String, reason: String },
    #[error("{} cannot be read or written: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another indexer publishes to {location}: give each indexer another --publish")]
    Locked { location: String },
    #[error("{location} cannot be {operation} ({reason}): {advice}")]
    Store { location: String, operation: &'static str, reason: String, advice: &'static str },
    #[error("the call to {location} was cancelled because the program stops")]
    Stopped { location: String },
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// Adds the path of the file to an error of the operating system, for `map_err`.
pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { path: path.to_owned(), source }
}
