//! Snapshots: the index of one machine, published to a directory that others see, fetched by replicas that have no indexer.
//!
//! A snapshot is a manifest, `current.json`, and files by their SHA-256 below `files/`. Segments of the index never change, so the next
//! snapshot adds what is new and nothing else, and a replica that has the last one copies as little. The manifest is written
//! last and by renaming: whoever reads it finds every file that it names, at the latest version or the one before. That holds
//! as well for a copy of the directory made by a tool that copies `current.json` after the rest.

mod fetch;
mod keep;
mod manifest;
mod publish;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::error::IndexError;

pub use fetch::{Fetched, fetch};
pub use keep::{keep_publishing, publish_logged};
pub use manifest::{Snapshot, SnapshotFile};
pub use publish::{Published, publish};

/// Names the newest snapshot.
const CURRENT: &str = "current.json";
/// Files by their hash.
const FILES: &str = "files";
/// Begins the names of files that are being written.
const PART: &str = ".part-";

/// Why there is no snapshot to publish or to serve from.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("there is no snapshot in {}: start the indexer with --publish there", dir.display())]
    Missing { dir: PathBuf },
    #[error("the snapshot in {} cannot be used: {reason}", dir.display())]
    Wrong { dir: PathBuf, reason: String },
    #[error("{} cannot be read or written: {source}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("another indexer publishes to {}", dir.display())]
    Locked { dir: PathBuf },
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// For `map_err`: names the file that failed.
fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { path: path.to_owned(), source }
}

/// Copies at most `bytes_max` octets and returns how many, and their hash.
fn copy_hashed(from: &mut impl Read, to: &mut impl Write, bytes_max: u64) -> io::Result<(u64, String)> {
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
    Ok((copied, HEXLOWER.encode(&hash.finalize())))
}
