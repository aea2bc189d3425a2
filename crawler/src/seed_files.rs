//! Seed files that change while the crawler runs.
//!
//! A list is read again when its size, time or inode has changed since it was read and is the same at two polls in a row, because
//! a list that is being written is incomplete. Only regular files are read again.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};

use crate::config::SeedSource;
use crate::seeds::SeedError;

/// Poll interval of seed files: long enough that two polls of a file that is being written rarely agree.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// The properties by which a changed file is recognised.
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

/// Opens a file to read it again. Never blocks, unlike a plain open of a named pipe.
pub(crate) fn open_again(path: &Path) -> io::Result<File> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"))
    }
}

/// A file that is missing while the crawler runs.
pub(crate) fn missing(path: &Path) -> SeedError {
    let advice = "the sites that it named are still visited, and the file is read when it exists again";
    SeedError::Missing {
        name: path.display().to_string(),
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        advice: advice.to_owned(),
    }
}

/// Why seed files are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadAgain {
    /// A file has changed since it was read.
    Changed,
    /// A file may have been incomplete, or was not stored, when it was read.
    Uncertain,
}

/// Polls seed files for changes.
#[derive(Debug)]
pub(crate) struct SeedFiles {
    sources: Vec<SeedSource>,
    /// State of each file when it was read.
    read: Vec<Option<FileState>>,
    /// Whether a file may have been incomplete, or was not stored, when it was read.
    is_uncertain: bool,
    last: Vec<Option<FileState>>,
    /// Files that polls found missing.
    gone: Vec<PathBuf>,
}

impl SeedFiles {
    /// Starts polling files that were read at `time`.
    pub(crate) fn read_at(sources: &[SeedSource], time: DateTime<Utc>) -> Self {
        let read = states(sources);
        Self {
            is_uncertain: are_recent(&read, time),
            last: read.clone(),
            read,
            gone: Vec::new(),
            sources: sources.to_vec(),
        }
    }

    /// Returns why the files must be read again, if they must and have not changed since the last poll. In that case they count as read.
    pub(crate) fn poll(&mut self) -> Option<ReadAgain> {
        let now = states(&self.sources);
        let gone: Vec<PathBuf> = self.gone(&now).map(Path::to_owned).collect();
        self.gone.extend(gone);
        // a file that was missing is read again even if it has not changed, so that it no longer counts as failed
        self.is_uncertain |= now.iter().zip(&self.last).any(|(now, last)| now.is_some() && last.is_none());
        let is_settled = now == self.last;
        self.last.clone_from(&now);
        let has_changed = now.iter().zip(&self.read).any(|(now, read)| now.is_some() && now != read);
        let why = if has_changed { ReadAgain::Changed } else { ReadAgain::Uncertain };
        if !is_settled || !(has_changed || self.is_uncertain) {
            return None;
        }
        self.read = now;
        self.is_uncertain = false;
        Some(why)
    }

    /// The files that polls found missing since the last call, each once.
    pub(crate) fn take_gone(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.gone)
    }

    /// The files that existed at the last poll and are missing now.
    fn gone<'a>(&'a self, now: &'a [Option<FileState>]) -> impl Iterator<Item = &'a Path> {
        let files = self.sources.iter().filter_map(SeedSource::file);
        let states = self.last.iter().zip(now);
        files.zip(states).filter(|(_, (last, now))| last.is_some() && now.is_none()).map(|(path, _)| path)
    }

    /// Records that the files could not be stored, so that a later poll returns that they must be read again.
    pub(crate) const fn forget(&mut self) {
        self.is_uncertain = true;
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
        assert_eq!([files.poll(), files.poll()], [None, None], "nothing has changed");

        std::fs::write(&list, "").unwrap();
        assert_eq!(files.poll(), None, "it is being written");
        std::fs::write(&list, "a.example\nb.example\n").unwrap();
        assert_eq!(files.poll(), None, "it has changed since the last poll");
        assert_eq!([files.poll(), files.poll()], [Some(ReadAgain::Changed), None], "it is read once");

        for time in [old - Duration::from_mins(1), now + Duration::from_hours(24)] {
            set_modified(&list, time);
            assert_eq!(
                [files.poll(), files.poll(), files.poll()],
                [None, Some(ReadAgain::Changed), None],
                "any other modification time counts as a change: {time}"
            );
        }
        let other = dir.path().join("other");
        std::fs::write(&other, "b.example\na.example\n").unwrap();
        set_modified(&other, now + Duration::from_hours(24));
        std::fs::rename(&other, &list).unwrap();
        assert_eq!(
            [files.poll(), files.poll()],
            [None, Some(ReadAgain::Changed)],
            "another file of the same size and time"
        );
        std::fs::remove_file(&list).unwrap();
        assert_eq!([files.poll(), files.poll()], [None, None], "a missing file is not read");
        assert_eq!(files.take_gone(), [list], "a missing file is reported once");
        assert_eq!((files.poll(), files.take_gone()), (None, Vec::new()));
    }

    /// A list is moved away and back, for example because its file system was not mounted.
    #[test]
    fn reads_a_list_again_that_was_missing_and_is_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let (list, away) = (dir.path().join("list"), dir.path().join("away"));
        std::fs::write(&list, "a.example\n").unwrap();
        let later = crate::clock::now() + Duration::from_hours(1);
        let mut files = SeedFiles::read_at(&[SeedSource::File(list.clone())], later);
        assert_eq!(files.poll(), None);
        std::fs::rename(&list, &away).unwrap();
        assert_eq!((files.poll(), files.take_gone()), (None, vec![list.clone()]));
        assert_eq!(files.poll(), None);
        std::fs::rename(&away, &list).unwrap();
        assert_eq!([files.poll(), files.poll(), files.poll()], [None, Some(ReadAgain::Uncertain), None]);
    }

    #[test]
    fn reads_a_list_again_that_was_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.example\n").unwrap();
        let mut files = SeedFiles::read_at(&[SeedSource::File(list)], crate::clock::now());
        assert_eq!([files.poll(), files.poll()], [Some(ReadAgain::Uncertain), None]);
    }

    #[test]
    fn reads_a_list_again_that_was_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        std::fs::write(&list, "a.example\n").unwrap();
        let later = crate::clock::now() + Duration::from_hours(1);
        let mut files = SeedFiles::read_at(&[SeedSource::File(list)], later);
        assert_eq!(files.poll(), None);
        files.forget();
        assert_eq!([files.poll(), files.poll()], [Some(ReadAgain::Uncertain), None]);
    }

    #[test]
    fn does_not_open_named_pipes_and_devices_again() {
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
