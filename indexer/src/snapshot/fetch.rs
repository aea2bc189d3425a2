//! Fetches a snapshot into an index directory and swaps it in, while searches continue.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tantivy::{Index, ReloadPolicy};

use super::error::SnapshotError;
use super::manifest::{Snapshot, SnapshotFile};
use super::storage::SnapshotStorage;
use crate::error::IndexError;
use crate::index::{Generations, Payload, register_tokenizers};

/// The manifest of the snapshot from which a generation was copied.
const FETCHED: &str = "snapshot.json";

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchResult {
    /// This snapshot is already served.
    Unchanged(Snapshot),
    New {
        snapshot: Snapshot,
        /// Number of copied bytes; other files already existed here.
        bytes_copied: u64,
    },
}

impl FetchResult {
    /// The snapshot that is served now.
    pub fn snapshot(&self) -> &Snapshot {
        match self {
            Self::Unchanged(snapshot) | Self::New { snapshot, .. } => snapshot,
        }
    }
}

/// Updates the index below `index_dir` to the current snapshot. Blocking. All files are verified before the index is swapped; an incomplete
/// snapshot changes nothing.
pub fn fetch(from: &dyn SnapshotStorage, index_dir: &Path) -> Result<FetchResult, SnapshotError> {
    let snapshot = from.current()?;
    let generations = Generations::new(index_dir);
    let _lock = generations.lock()?;
    let here = generations.current().ok();
    let fetched =
        here.as_deref().and_then(|dir| Snapshot::read(&dir.display().to_string(), &dir.join(FETCHED)).ok());
    if fetched.as_ref() == Some(&snapshot) {
        generations.remove_others()?;
        return Ok(FetchResult::Unchanged(snapshot));
    }
    let have = files_by_name(fetched.as_ref());
    let next = generations.prepare_next()?;
    let mut bytes_copied = 0;
    for file in &snapshot.files {
        let is_here = have.get(file.name.as_str()) == Some(&file);
        let linked = here
            .as_deref()
            .filter(|_| is_here)
            .is_some_and(|here| fs::hard_link(here.join(&file.name), next.join(&file.name)).is_ok());
        if !linked {
            copy(from, file, &next)?;
            bytes_copied += file.bytes;
        }
    }
    verify(index_dir, &next, &snapshot)?;
    snapshot.write(&next.join(FETCHED))?;
    generations.switch_to(&next)?;
    generations.remove_others()?;
    Ok(FetchResult::New { snapshot, bytes_copied })
}

fn files_by_name(snapshot: Option<&Snapshot>) -> BTreeMap<&str, &SnapshotFile> {
    snapshot.into_iter().flat_map(|snapshot| &snapshot.files).map(|file| (file.name.as_str(), file)).collect()
}

/// Copies one file and checks its size and hash.
fn copy(from: &dyn SnapshotStorage, file: &SnapshotFile, to: &Path) -> Result<(), SnapshotError> {
    let copied = from.copy(file, &to.join(&file.name))?;
    if copied.bytes == file.bytes && copied.sha256 == file.sha256 {
        return Ok(());
    }
    let reason = format!("{} does not match the manifest", file.name);
    Err(SnapshotError::Invalid { location: from.location(), reason })
}

/// Opens the fetched index as a search would.
fn verify(index_dir: &Path, next: &Path, snapshot: &Snapshot) -> Result<(), SnapshotError> {
    let corrupt = |error: tantivy::TantivyError| IndexError::Corrupt {
        dir: index_dir.to_owned(),
        reason: error.to_string(),
    };
    let index = Index::open_in_dir(next).map_err(corrupt)?;
    register_tokenizers(&index);
    // without the watcher of the default policy, which would outlive the directory
    index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(corrupt)?;
    let payload = Payload::read(index_dir, &index)?;
    if payload.feed_id == snapshot.feed_id && payload.position == snapshot.position {
        return Ok(());
    }
    let reason = "its files have another feed position than its manifest".to_owned();
    Err(SnapshotError::Invalid { location: index_dir.display().to_string(), reason })
}
