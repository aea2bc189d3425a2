//! Locks an embedded database for one crawler. The leases of a killed crawler are released immediately.
//!
//! A fleet on PostgreSQL detects a dead worker when its leases expire. On one machine, the operating system
//! releases the file lock of a dead process immediately, so the next holder knows that the worker named in the file is
//! dead, and releases its leases.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use store::WorkerId;

/// File name extension of the lock file next to the database.
const LOCK_EXTENSION: &str = "crawler.lock";
/// Maximum bytes of a worker name that are read from the file. Names are shorter, but the file may contain anything.
const NAME_BYTES_MAX: u64 = 1024;

/// Why the database cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error(
        "{holder} is already crawling on {database}: stop it, name another directory with --data-dir, or use PostgreSQL \
         (--database-url) to run several crawlers"
    )]
    Taken { holder: String, database: PathBuf },
    #[error("cannot lock {path}: {source}; {}, or name another directory with --data-dir", advice(source))]
    Unusable { path: PathBuf, source: io::Error },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some space",
        io::ErrorKind::ReadOnlyFilesystem => "mount its file system for writing",
        _ => "run this as the user that wrote it",
    }
}

/// The lock of an embedded database. It is released when dropped, and by the operating system when the process ends.
#[derive(Debug)]
pub struct DatabaseLock {
    _locked: File,
    /// The previous holder.
    pub(crate) before: Option<WorkerId>,
}

impl DatabaseLock {
    /// Locks the database for `worker`.
    pub(crate) fn take(database: &Path, worker: &WorkerId) -> Result<Self, LockError> {
        let path = database.with_extension(LOCK_EXTENSION);
        let unusable = |source| LockError::Unusable { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder_in_words(&mut file);
                return Err(LockError::Taken { holder, database: database.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        let before = read_name(&mut file).map_err(unusable)?;
        write_name(&mut file, worker).map_err(unusable)?;
        Ok(Self { _locked: file, before })
    }
}

/// The last crawler on an embedded database, which no longer runs. While this exists, no other crawler starts on it.
#[derive(Debug)]
pub(crate) struct EndedHolder {
    _locked: File,
    pub(crate) worker: WorkerId,
}

impl EndedHolder {
    /// `None` if a crawler holds the lock, or none has held it before.
    pub(crate) fn of(database: &Path) -> Option<Self> {
        let mut file = File::open(database.with_extension(LOCK_EXTENSION)).ok()?;
        file.try_lock().ok()?;
        let worker = read_name(&mut file).ok().flatten()?;
        Some(Self { _locked: file, worker })
    }
}

/// The crawler that holds the lock of an embedded database, in words.
pub fn holder_of_lock(database: &Path) -> Option<String> {
    let mut file = File::open(database.with_extension(LOCK_EXTENSION)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Some(holder_in_words(&mut file)),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn holder_in_words(file: &mut File) -> String {
    let holder = read_name(file).ok().flatten();
    holder.map_or_else(|| "another crawler".to_owned(), |worker| worker.in_words())
}

fn read_name(file: &mut File) -> io::Result<Option<WorkerId>> {
    let mut bytes = Vec::new();
    file.take(NAME_BYTES_MAX).read_to_end(&mut bytes)?;
    let name = String::from_utf8_lossy(&bytes);
    Ok((!name.trim().is_empty()).then(|| WorkerId::new(name.trim())))
}

fn write_name(file: &mut File, worker: &WorkerId) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{worker}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advises_on_a_lock_that_cannot_be_written() {
        for (kind, advice) in [
            (io::ErrorKind::StorageFull, "; free some space, or name another directory"),
            (io::ErrorKind::ReadOnlyFilesystem, "; mount its file system for writing, or name"),
            (io::ErrorKind::PermissionDenied, "; run this as the user that wrote it, or name"),
        ] {
            let error = LockError::Unusable { path: PathBuf::from("data"), source: kind.into() }.to_string();
            assert!(error.contains(advice), "{error}");
        }
    }

    #[test]
    fn names_the_current_and_the_previous_holder_of_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("agentdex.db");
        let first = DatabaseLock::take(&database, &WorkerId::new("here/1")).unwrap();
        assert_eq!(first.before, None);
        let refused = DatabaseLock::take(&database, &WorkerId::new("here/2")).unwrap_err().to_string();
        assert!(refused.starts_with("process 1 on here is already crawling on"), "{refused}");
        assert_eq!(holder_of_lock(&database).as_deref(), Some("process 1 on here"));
        assert!(EndedHolder::of(&database).is_none(), "it still runs");
        drop(first);
        assert_eq!(holder_of_lock(&database), None);
        assert_eq!(EndedHolder::of(&database).map(|ended| ended.worker), Some(WorkerId::new("here/1")));
        let next = DatabaseLock::take(&database, &WorkerId::new("here/3")).unwrap();
        assert_eq!(next.before, Some(WorkerId::new("here/1")));
    }

    #[test]
    fn names_the_lock_file_that_cannot_be_created() {
        let refused = DatabaseLock::take(Path::new("/nowhere/agentdex.db"), &WorkerId::new("here/1"));
        assert!(refused.unwrap_err().to_string().contains("/nowhere/agentdex.crawler.lock"));
    }
}
