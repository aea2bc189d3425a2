//! The directory of an index: a sub-directory for each generation, and a file that names the current one.
//!
//! A rebuild fills a new sub-directory and then replaces the pointer file atomically. Readers keep open files of the old generation,
//! which Unix deletes when they are closed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::IndexError;

const POINTER_FILE: &str = "current";
const LOCK_FILE: &str = "writer.lock";
const GENERATION_PREFIX: &str = "generation-";

/// The generations below one index directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Generations {
    dir: PathBuf,
}

/// The lock of the writing process.
#[derive(Debug)]
pub(crate) struct WriterLock {
    _file: File,
}

impl Generations {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The sub-directory that the pointer names.
    pub(crate) fn current(&self) -> Result<PathBuf, IndexError> {
        let missing = || IndexError::Missing { dir: self.dir.clone() };
        let name = fs::read_to_string(self.dir.join(POINTER_FILE)).map_err(|_| missing())?;
        number_of(name.trim()).ok_or_else(missing)?;
        let path = self.dir.join(name.trim());
        if path.is_dir() { Ok(path) } else { Err(missing()) }
    }

    /// Makes an empty sub-directory for the next generation. The caller holds the lock.
    ///
    /// Removes the remains of a writer that was killed. Its number is not reused, because a reader may still have that generation open.
    pub(crate) fn prepare_next(&self) -> Result<PathBuf, IndexError> {
        let last = self.all().iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        self.remove_others()?;
        let path = self.dir.join(format!("{GENERATION_PREFIX}{:06}", last + 1));
        fs::create_dir_all(&path).map_err(|source| not_writable(&path, source))?;
        Ok(path)
    }

    /// Makes a sub-directory the current one.
    pub(crate) fn switch_to(&self, generation: &Path) -> Result<(), IndexError> {
        let pointer = self.dir.join(POINTER_FILE);
        let draft = self.dir.join(format!("{POINTER_FILE}.new"));
        let name = generation.file_name().unwrap_or_default().to_string_lossy();
        let write = || -> io::Result<()> {
            let mut file = File::create(&draft)?;
            writeln!(file, "{name}")?;
            file.sync_all()?;
            fs::rename(&draft, &pointer)?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|source| not_writable(&pointer, source))
    }

    /// Removes all generations except the current one, including incomplete ones. The caller holds the lock, so none of them is being
    /// written. A reader that has one open keeps its files.
    pub(crate) fn remove_others(&self) -> Result<(), IndexError> {
        let current = self.current().ok();
        for name in self.all() {
            let path = self.dir.join(&name);
            if current.as_ref() != Some(&path) {
                fs::remove_dir_all(&path).map_err(|source| not_writable(&path, source))?;
            }
        }
        Ok(())
    }

    /// Locks the directory for writing; fails if another process has the lock.
    pub(crate) fn lock(&self) -> Result<WriterLock, IndexError> {
        fs::create_dir_all(&self.dir).map_err(|source| not_writable(&self.dir, source))?;
        let path = self.dir.join(LOCK_FILE);
        let file = File::create(&path).map_err(|source| not_writable(&path, source))?;
        match file.try_lock() {
            Ok(()) => Ok(WriterLock { _file: file }),
            Err(fs::TryLockError::WouldBlock) => Err(IndexError::Locked { dir: self.dir.clone() }),
            Err(fs::TryLockError::Error(source)) => Err(not_writable(&path, source)),
        }
    }

    fn all(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| number_of(name).is_some())
            .collect()
    }
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix(GENERATION_PREFIX)?.parse().ok()
}

fn not_writable(path: &Path, source: io::Error) -> IndexError {
    IndexError::NotWritable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_all_generations_but_the_current_one() {
        let dir = tempfile::tempdir().unwrap();
        let generations = Generations::new(dir.path());
        assert!(matches!(generations.current(), Err(IndexError::Missing { .. })));
        let first = generations.prepare_next().unwrap();
        generations.switch_to(&first).unwrap();
        let second = generations.prepare_next().unwrap();
        assert_eq!(generations.current().unwrap(), first);
        generations.switch_to(&second).unwrap();
        generations.remove_others().unwrap();
        assert_eq!(generations.current().unwrap(), second);
        assert!(!first.exists());
    }

    #[test]
    fn next_generation_replaces_incomplete_ones_under_a_new_number() {
        let dir = tempfile::tempdir().unwrap();
        let generations = Generations::new(dir.path());
        let killed = generations.prepare_next().unwrap();
        fs::write(killed.join("segment"), "half").unwrap();
        let first = generations.prepare_next().unwrap();
        assert!(!killed.exists() && first != killed);
        generations.switch_to(&first).unwrap();
        let killed = generations.prepare_next().unwrap();
        let second = generations.prepare_next().unwrap();
        assert!(!killed.exists() && second != killed);
        assert_eq!(
            generations.all().len(),
            2,
            "the current generation is kept while the next one is written"
        );
        assert_eq!(generations.current().unwrap(), first);
    }

    #[test]
    fn only_one_writer_gets_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let generations = Generations::new(dir.path());
        let held = generations.lock().unwrap();
        assert!(matches!(generations.lock(), Err(IndexError::Locked { .. })));
        drop(held);
        assert!(generations.lock().is_ok());
    }

    #[test]
    fn does_not_follow_a_pointer_outside_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(POINTER_FILE), "../../etc").unwrap();
        assert!(matches!(Generations::new(dir.path()).current(), Err(IndexError::Missing { .. })));
    }
}
