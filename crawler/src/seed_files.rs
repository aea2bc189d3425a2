//! Seed files that change while the crawler runs.
//!
//! A list is read again when its size, its time or its inode is not that of the list that was read, and the same at two polls in a
//! row: a list that is being written is not complete. Only regular files are read again.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use crate::config::SeedSource;

/// Poll interval of seed files: two polls of a list that is written at once are rarely equal.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// By what a changed file is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    bytes: u64,
    modified: SystemTime,
    device: u64,
    inode: u64,
}

impl FileState {
    fn of(metadata: &Metadata) -> io::Result<Self> {
        let (device, inode) = (metadata.dev(), metadata.ino());
        Ok(Self { bytes: metadata.len(), modified: metadata.modified()?, device, inode })
    }

    /// Whether it was modified shortly before a time, or after it.
    fn is_recent_at(&self, time: DateTime<Utc>) -> bool {
        let modified: DateTime<Utc> = self.modified.into();
        modified + POLL_INTERVAL > time
    }
}

/// The states of the files among sources; `None` for one that is missing for now.
pub(crate) fn states(sources: &[SeedSource]) -> Vec<Option<FileState>> {
    let files = sources.iter().filter_map(SeedSource::file);
    files.map(|path| FileState::of(&std::fs::metadata(path).ok()?).ok()).collect()
}

/// Whether a file was modified shortly before a time, or after it, so that it may be incomplete.
pub(crate) fn are_recent(states: &[Option<FileState>], time: DateTime<Utc>) -> bool {
    states.iter().flatten().any(|state| state.is_recent_at(time))
}

/// Opens a file to read it again. Never waits, as opening a named pipe would.
pub(crate) fn open_again(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// Why lists are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reread {
    /// A list is not the one that was read.
    Changed,
    /// A list was modified shortly before it was read, and may not have been complete.
    Recent,
}

/// Polls seed files for changes.
#[derive(Debug)]
pub(crate) struct SeedFiles {
    sources: Vec<SeedSource>,
    /// As they were at first; `None` as soon as they were read again.
    first: Option<Vec<Option<FileState>>>,
    /// Of the lists that were read; `None` for one that may not have been complete.
    read: Vec<Option<FileState>>,
    last: Vec<Option<FileState>>,
}

impl SeedFiles {
    /// The files were read at a time.
    pub(crate) fn read_at(sources: &[SeedSource], time: DateTime<Utc>) -> Self {
        let last = states(sources);
        let read = last.iter().map(|state| state.clone().filter(|state| !state.is_recent_at(time)));
        Self { read: read.collect(), sources: sources.to_vec(), first: Some(last.clone()), last }
    }

    /// Whether the files have to be read again, and are the same as at the last poll. They count as read then.
    pub(crate) fn poll(&mut self) -> Option<Reread> {
        let now = states(&self.sources);
        let is_settled = now == self.last;
        let has_changed = now.iter().zip(&self.read).any(|(now, read)| now.is_some() && now != read);
        self.last.clone_from(&now);
        if !(is_settled && has_changed) {
            return None;
        }
        let is_first = self.first.take().is_some_and(|first| first == now);
        self.read = now;
        Some(if is_first { Reread::Recent } else { Reread::Changed })
    }

    /// The files could not be stored: the next polls find them changed.
    pub(crate) fn forget(&mut self) {
        self.read.fill(None);
    }
}

/// Waits until two polls of the files are equal.
pub(crate) async fn settled(sources: &[SeedSource]) {
    if !sources.iter().any(|source| source.file().is_some()) {
        return;
    }
    let mut last = states(sources);
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let now = states(sources);
        if now == last {
            return;
        }
        last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_modified(path: &Path, time: DateTime<Utc>) {
        File::options().append(true).open(path).unwrap().set_modified(time.into()).unwrap();
    }

    #[test]
    fn acts_on_a_changed_list_after_two_equal_polls() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        let sources = [SeedSource::File(list.clone()), SeedSource::Stdin];
        let now = crate::clock::now();
        let old = now - Duration::from_hours(1);
        std::fs::write(&list, "a.example\n").unwrap();
        set_modified(&list, old);
        let mut files = SeedFiles::read_at(&sources, now);
        assert!(files.poll().is_none() && files.poll().is_none(), "nothing has changed");

        std::fs::write(&list, "").unwrap();
        assert!(files.poll().is_none(), "it is being written");
        std::fs::write(&list, "a.example\nb.example\n").unwrap();
        assert!(files.poll().is_none(), "it has changed since the last poll");
        assert_eq!(files.poll(), Some(Reread::Changed));
        assert_eq!(files.poll(), None, "it is read once");

        for time in [old - Duration::from_mins(1), now + Duration::from_hours(24)] {
            set_modified(&list, time);
            assert!(
                files.poll().is_none() && files.poll().is_some() && files.poll().is_none(),
                "any other time counts: {time}"
            );
        }
        let other = dir.path().join("other");
        std::fs::write(&other, "b.example\na.example\n").unwrap();
        set_modified(&other, now + Duration::from_hours(24));
        std::fs::rename(&other, &list).unwrap();
        assert!(files.poll().is_none() && files.poll().is_some(), "another file of the same size and time");
        std::fs::remove_file(&list).unwrap();
        assert!(files.poll().is_none() && files.poll().is_none(), "a missing file is not read");
    }

    #[test]
    fn a_list_that_was_written_when_it_was_read_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.example\n").unwrap();
        let mut files = SeedFiles::read_at(&[SeedSource::File(list)], crate::clock::now());
        assert_eq!(files.poll(), Some(Reread::Recent));
        assert_eq!(files.poll(), None);
    }

    #[test]
    fn a_list_that_was_not_stored_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.example\n").unwrap();
        let later = crate::clock::now() + Duration::from_hours(1);
        let mut files = SeedFiles::read_at(&[SeedSource::File(list)], later);
        assert!(files.poll().is_none());
        files.forget();
        assert!(files.poll().is_some() && files.poll().is_none());
    }

    #[test]
    fn a_named_pipe_and_a_device_are_not_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), dir.path()] {
            assert!(open_again(path).is_err(), "{}", path.display());
        }
        let list = dir.path().join("list");
        std::fs::write(&list, "a.example\n").unwrap();
        assert!(open_again(&list).is_ok());
    }
}
