//! Publishes the current state of an index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use tantivy::Index;

use super::manifest::{Snapshot, SnapshotFile};
use super::{CURRENT, FILES, PART, SnapshotError, copy_hashed, failed};
use crate::error::IndexError;
use crate::index::{Generations, Payload};

/// Holds the files of one state by hard links, so that merges cannot take them away meanwhile.
const STAGING: &str = "snapshot-staging";
/// Times that is begun anew when a merge removes files in the middle of it.
const ATTEMPTS_MAX: u32 = 5;
const LOCK_FILE: &str = "publisher.lock";
/// Files that the engine rewrites; all others of an index never change.
const REWRITTEN: [&str; 2] = ["meta.json", ".managed.json"];

/// What publishing came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The newest snapshot shows this state already.
    Unchanged,
    New {
        snapshot: Snapshot,
        /// Octets that were not there before.
        bytes_new: u64,
    },
}

/// Publishes the index below `index_dir` to the directory `to`. Blocking. The index may be written to meanwhile.
pub fn publish(index_dir: &Path, to: &Path, now: DateTime<Utc>) -> Result<Published, SnapshotError> {
    let files_dir = to.join(FILES);
    fs::create_dir_all(&files_dir).map_err(failed(&files_dir))?;
    let _lock = lock(to)?;
    let last = match Snapshot::current(to) {
        Ok(last) => Some(last),
        Err(SnapshotError::Missing { .. }) => None,
        Err(error) => {
            tracing::warn!(%error, "the last snapshot is replaced by a whole one");
            None
        }
    };
    let staged = Staged::of(index_dir)?;
    let is_shown =
        |last: &Snapshot| last.feed_id == staged.payload.feed_id && last.position == staged.payload.position;
    if last.as_ref().is_some_and(is_shown) {
        return Ok(Published::Unchanged);
    }
    let known = known_files(last.as_ref());
    let mut files = Vec::with_capacity(staged.names.len());
    let mut bytes_new = 0;
    for name in &staged.names {
        let (file, is_new) = store_file(&staged.dir.join(name), name, &files_dir, &known)?;
        bytes_new += if is_new { file.bytes } else { 0 };
        files.push(file);
    }
    File::open(&files_dir).and_then(|dir| dir.sync_all()).map_err(failed(&files_dir))?;
    let Payload { feed_id, position, .. } = staged.payload.clone();
    let snapshot = Snapshot::new(feed_id, position, now, files);
    snapshot.write(&to.join(CURRENT))?;
    remove_stale(&files_dir, &[last.as_ref(), Some(&snapshot)])?;
    Ok(Published::New { snapshot, bytes_new })
}

fn lock(to: &Path) -> Result<File, SnapshotError> {
    let path = to.join(LOCK_FILE);
    let file = File::create(&path).map_err(failed(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(SnapshotError::Locked { dir: to.to_owned() }),
        Err(fs::TryLockError::Error(source)) => Err(failed(&path)(source)),
    }
}

/// Hashes by name and size of the files that never change.
fn known_files(last: Option<&Snapshot>) -> BTreeMap<(&str, u64), &str> {
    let files = last.into_iter().flat_map(|last| &last.files);
    files
        .filter(|file| !REWRITTEN.contains(&file.name.as_str()))
        .map(|file| ((file.name.as_str(), file.bytes), file.sha256.as_str()))
        .collect()
}

/// Puts a file below its hash unless it is there.
fn store_file(
    from: &Path,
    name: &str,
    files_dir: &Path,
    known: &BTreeMap<(&str, u64), &str>,
) -> Result<(SnapshotFile, bool), SnapshotError> {
    let bytes = fs::metadata(from).map_err(failed(from))?.len();
    let file = |bytes, sha256| SnapshotFile { name: name.to_owned(), bytes, sha256 };
    if let Some(hash) = known.get(&(name, bytes)).filter(|hash| files_dir.join(hash).exists()) {
        return Ok((file(bytes, (*hash).to_owned()), false));
    }
    let part = files_dir.join(format!("{PART}{name}"));
    let write = || {
        let mut to = File::create(&part)?;
        let copied = copy_hashed(&mut File::open(from)?, &mut to, u64::MAX)?;
        to.sync_all()?;
        fs::rename(&part, files_dir.join(&copied.1))?;
        Ok(copied)
    };
    let (bytes, sha256) = write().map_err(failed(&part))?;
    Ok((file(bytes, sha256), true))
}

/// Removes what neither this snapshot nor the one before names, and what was left half written.
fn remove_stale(files_dir: &Path, snapshots: &[Option<&Snapshot>]) -> Result<(), SnapshotError> {
    let named: BTreeSet<&str> = snapshots
        .iter()
        .flatten()
        .flat_map(|snapshot| &snapshot.files)
        .map(|file| file.sha256.as_str())
        .collect();
    for entry in fs::read_dir(files_dir).map_err(failed(files_dir))? {
        let path = entry.map_err(failed(files_dir))?.path();
        let is_named =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| named.contains(name));
        if !is_named {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// The files of one commit, held by links until this is dropped.
struct Staged {
    dir: PathBuf,
    names: BTreeSet<String>,
    payload: Payload,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // what stays is removed before the next snapshot
        drop(fs::remove_dir_all(&self.dir));
    }
}

impl Staged {
    fn of(index_dir: &Path) -> Result<Self, SnapshotError> {
        let generations = Generations::new(index_dir);
        let mut last = None;
        for _ in 0..ATTEMPTS_MAX {
            match Self::attempt(index_dir, &generations.current()?) {
                Ok(staged) => return Ok(staged),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| SnapshotError::Missing { dir: index_dir.to_owned() }))
    }

    /// The commit's own description first: it names the segments, which are linked next. What a merge removed between
    /// the two makes the opening fail.
    fn attempt(index_dir: &Path, generation: &Path) -> Result<Self, SnapshotError> {
        let dir = index_dir.join(STAGING);
        if dir.exists() {
            fs::remove_dir_all(&dir).map_err(failed(&dir))?;
        }
        fs::create_dir(&dir).map_err(failed(&dir))?;
        let mut names = BTreeSet::new();
        for name in REWRITTEN {
            link(generation, &dir, name, &mut names)?;
        }
        let corrupt = |error: tantivy::TantivyError| IndexError::Corrupt {
            dir: index_dir.to_owned(),
            reason: error.to_string(),
        };
        let index = Index::open_in_dir(&dir).map_err(corrupt)?;
        let segments: BTreeSet<String> = index
            .load_metas()
            .map_err(corrupt)?
            .segments
            .iter()
            .map(|segment| segment.id().uuid_string())
            .collect();
        for entry in fs::read_dir(generation).map_err(failed(generation))? {
            let name = entry.map_err(failed(generation))?.file_name().to_string_lossy().into_owned();
            if name.split('.').next().is_some_and(|segment| segments.contains(segment)) {
                link(generation, &dir, &name, &mut names)?;
            }
        }
        crate::index::register_tokenizers(&index);
        index.reader().map_err(corrupt)?;
        let payload = Payload::read(index_dir, &index)?;
        Ok(Self { dir, names, payload })
    }
}

/// What a merge removed since the folder was listed is found out by opening the rest.
fn link(
    generation: &Path,
    dir: &Path,
    name: &str,
    names: &mut BTreeSet<String>,
) -> Result<(), SnapshotError> {
    let from = generation.join(name);
    match fs::hard_link(&from, dir.join(name)) {
        Ok(()) => {
            names.insert(name.to_owned());
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(&from)(error)),
    }
}
