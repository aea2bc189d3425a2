//! Publishes the current commit of an index.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use tantivy::{Index, ReloadPolicy};

use super::error::{SnapshotError, failed};
use super::manifest::{Snapshot, SnapshotFile};
use super::storage::SnapshotStorage;
use crate::error::IndexError;
use crate::index::{Generations, Payload, register_tokenizers};

/// The directory of hard links to the files of one commit, so that merges cannot remove them.
const STAGING: &str = "snapshot-staging";
/// Maximum number of attempts to link one commit. An attempt fails if a merge removes files.
const ATTEMPTS_MAX: u32 = 5;
/// Files that tantivy rewrites; all others never change.
const REWRITTEN: [&str; 2] = ["meta.json", ".managed.json"];

/// The result of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishResult {
    /// The newest snapshot already has this commit.
    Unchanged,
    New {
        snapshot: Snapshot,
        /// Bytes of new files.
        bytes_new: u64,
    },
}

/// Publishes the index below `index_dir`, which may be written at the same time. Blocking.
pub fn publish(
    index_dir: &Path,
    to: &dyn SnapshotStorage,
    now: DateTime<Utc>,
) -> Result<PublishResult, SnapshotError> {
    let mut publication = to.begin()?;
    let staged = Staged::of(index_dir)?;
    let is_published =
        |last: &Snapshot| last.feed_id == staged.payload.feed_id && last.position == staged.payload.position;
    if publication.last().is_some_and(is_published) {
        return Ok(PublishResult::Unchanged);
    }
    let known = known_files(publication.last());
    let mut files = Vec::with_capacity(staged.names.len());
    let mut bytes_new = 0;
    for name in &staged.names {
        let from = staged.dir.join(name);
        let bytes = fs::metadata(&from).map_err(failed(&from))?.len();
        let hash = known.get(&(name.clone(), bytes)).filter(|hash| publication.has(hash, bytes));
        let file = if let Some(hash) = hash {
            SnapshotFile { name: name.clone(), bytes, sha256: hash.clone() }
        } else {
            let copied = publication.put(name, &from)?;
            bytes_new += copied.bytes;
            SnapshotFile { name: name.clone(), bytes: copied.bytes, sha256: copied.sha256 }
        };
        files.push(file);
    }
    let Payload { feed_id, position, .. } = staged.payload.clone();
    let snapshot = Snapshot::new(feed_id, position, now, files);
    publication.end(&snapshot)?;
    Ok(PublishResult::New { snapshot, bytes_new })
}

/// Hashes by name and size of the files that never change.
fn known_files(last: Option<&Snapshot>) -> BTreeMap<(String, u64), String> {
    let files = last.into_iter().flat_map(|last| &last.files);
    files
        .filter(|file| !REWRITTEN.contains(&file.name.as_str()))
        .map(|file| ((file.name.clone(), file.bytes), file.sha256.clone()))
        .collect()
}

/// Links to the files of one commit, removed on drop.
struct Staged {
    dir: PathBuf,
    names: BTreeSet<String>,
    payload: Payload,
}

impl Drop for Staged {
    fn drop(&mut self) {
        // leftovers are removed before the next snapshot
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
        Err(last.unwrap_or_else(|| SnapshotError::Missing { location: index_dir.display().to_string() }))
    }

    /// Links the commit's metadata first, then the segments that it names. Opening fails if a merge removed one between the two.
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
        register_tokenizers(&index);
        // without the watcher of the default policy, which would outlive the directory
        index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(corrupt)?;
        let payload = Payload::read(index_dir, &index)?;
        Ok(Self { dir, names, payload })
    }
}

/// Links a file. Ignores a file that a merge has removed, because opening the index detects that.
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
