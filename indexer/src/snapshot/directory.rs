//! Stores snapshots in a directory, which several machines share or another tool copies.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::{SnapshotError, failed};
use super::manifest::{Snapshot, SnapshotFile};
use super::storage::{
    CURRENT, CopiedFile, FILES, Publication, SnapshotStorage, WRITE_CHECK, copy_hashed, file_hashes, usable,
};

/// Prefix of files that are being written.
const PART: &str = ".part-";
const LOCK_FILE: &str = "publisher.lock";

/// A directory of snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory(PathBuf);

impl Directory {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self(dir.into())
    }

    fn files(&self) -> PathBuf {
        self.0.join(FILES)
    }

    fn lock(&self) -> Result<File, SnapshotError> {
        let path = self.0.join(LOCK_FILE);
        let file = File::create(&path).map_err(failed(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(fs::TryLockError::WouldBlock) => Err(SnapshotError::Locked { location: self.location() }),
            Err(fs::TryLockError::Error(source)) => Err(failed(&path)(source)),
        }
    }
}

impl SnapshotStorage for Directory {
    fn location(&self) -> String {
        self.0.display().to_string()
    }

    fn current(&self) -> Result<Snapshot, SnapshotError> {
        Snapshot::read(&self.location(), &self.0.join(CURRENT))
    }

    fn copy(&self, file: &SnapshotFile, to: &Path) -> Result<CopiedFile, SnapshotError> {
        let from = self.files().join(&file.sha256);
        let copied = || {
            let mut out = File::create(to)?;
            // reads one byte more than expected, to detect a longer file
            let copied = copy_hashed(&mut File::open(&from)?, &mut out, file.bytes.saturating_add(1))?;
            out.sync_all()?;
            Ok(copied)
        };
        copied().map_err(failed(&from))
    }

    fn check_writable(&self) -> Result<(), SnapshotError> {
        // A publication creates missing parents.
        let dir = std::path::absolute(&self.0).map_err(failed(&self.0))?;
        let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or(&dir);
        let path = existing.join(format!("{PART}{WRITE_CHECK}"));
        File::create(&path).and_then(|_| fs::remove_file(&path)).map_err(failed(&path))
    }

    fn begin(&self) -> Result<Box<dyn Publication + '_>, SnapshotError> {
        let files = self.files();
        fs::create_dir_all(&files).map_err(failed(&files))?;
        let lock = self.lock()?;
        let last = usable(self.current())?;
        Ok(Box::new(Publishing { dir: &self.0, files, last, _lock: lock }))
    }
}

struct Publishing<'a> {
    dir: &'a Path,
    files: PathBuf,
    last: Option<Snapshot>,
    _lock: File,
}

impl Publication for Publishing<'_> {
    fn last(&self) -> Option<&Snapshot> {
        self.last.as_ref()
    }

    fn has(&self, sha256: &str, bytes: u64) -> bool {
        fs::metadata(self.files.join(sha256)).is_ok_and(|file| file.len() == bytes)
    }

    fn put(&mut self, name: &str, from: &Path) -> Result<CopiedFile, SnapshotError> {
        let part = self.files.join(format!("{PART}{name}"));
        let write = || {
            let mut to = File::create(&part)?;
            let copied = copy_hashed(&mut File::open(from)?, &mut to, u64::MAX)?;
            to.sync_all()?;
            fs::rename(&part, self.files.join(&copied.sha256))?;
            Ok(copied)
        };
        write().map_err(failed(&part))
    }

    fn end(self: Box<Self>, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        File::open(&self.files).and_then(|dir| dir.sync_all()).map_err(failed(&self.files))?;
        snapshot.write(&self.dir.join(CURRENT))?;
        remove_stale(&self.files, &file_hashes([self.last.as_ref(), Some(snapshot)]))
    }
}

/// Removes the files that are not in `named`, including incomplete ones.
fn remove_stale(files: &Path, named: &BTreeSet<&str>) -> Result<(), SnapshotError> {
    for entry in fs::read_dir(files).map_err(failed(files))? {
        let path = entry.map_err(failed(files))?.path();
        let is_named =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| named.contains(name));
        if !is_named {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}
