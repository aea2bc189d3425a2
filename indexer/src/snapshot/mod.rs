//! Snapshots: the index of one machine, published to a directory or a bucket that others see, fetched by replicas that have no
//! indexer.
//!
//! A snapshot is a manifest, `current.json`, and files by their SHA-256 below `files/`. Segments of the index never change, so the next
//! snapshot adds what is new and nothing else, and a replica that has the last one copies as little. The manifest is written
//! last, and at once: whoever reads it finds every file that it names, at the latest version or the one before. That holds
//! as well for a copy made by a tool that copies `current.json` after the rest.

mod bucket;
mod directory;
mod fetch;
mod keep;
mod manifest;
mod place;
mod publish;
mod refusal;
mod shelf;

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::error::IndexError;

pub use bucket::Bucket;
pub use directory::Directory;
pub use fetch::{Fetched, fetch};
pub use keep::{Attempt, keep_publishing, publish_logged};
pub use manifest::{Snapshot, SnapshotFile};
pub use place::{Place, PlaceError};
pub use publish::{Published, publish};
pub use shelf::{Copied, Publication, Shelf};

/// Names the newest snapshot.
const CURRENT: &str = "current.json";
/// Files by their hash.
const FILES: &str = "files";
/// Comes and goes where it is looked whether something can be written.
const WRITE_CHECK: &str = "write-check";

/// Why there is no snapshot to publish or to serve from.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("there is no snapshot in {place}: start the indexer with --publish there")]
    Missing { place: String },
    #[error("the snapshot in {place} cannot be used: {reason}")]
    Wrong { place: String, reason: String },
    #[error("{} cannot be read or written: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another indexer publishes to {place}: give each a place of its own")]
    Locked { place: String },
    #[error("{place} cannot be {doing} ({reason}): {advice}")]
    Store { place: String, doing: &'static str, reason: String, advice: &'static str },
    #[error("{place} was being spoken to when the program was stopped")]
    Stopped { place: String },
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// For `map_err`: names the file that failed.
fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { path: path.to_owned(), source }
}

/// Copies at most `bytes_max` octets and returns how many, and their hash.
fn copy_hashed(from: &mut impl Read, to: &mut impl Write, bytes_max: u64) -> io::Result<Copied> {
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
    Ok(Copied { bytes: copied, sha256: HEXLOWER.encode(&hash.finalize()) })
}

/// Hashes of the files that these snapshots name.
fn named<'a>(snapshots: impl IntoIterator<Item = Option<&'a Snapshot>>) -> BTreeSet<&'a str> {
    let files = snapshots.into_iter().flatten().flat_map(|snapshot| &snapshot.files);
    files.map(|file| file.sha256.as_str()).collect()
}
