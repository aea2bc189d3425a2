//! Builds a whole index beside the one that serves, and swaps it in.

use std::path::{Path, PathBuf};

use store::{FeedPosition, StoredManifest};

use crate::error::IndexError;
use crate::index::{Generations, Writer, WriterLock};

/// An index in the making; nobody sees it before [`Self::finish`].
pub struct IndexBuilder {
    generations: Generations,
    path: PathBuf,
    writer: Writer,
    lock: WriterLock,
}

impl IndexBuilder {
    /// Begins an index below a directory, from the manifests of one feed. Nobody else may write there meanwhile.
    pub fn begin(dir: &Path, feed_id: &str) -> Result<Self, IndexError> {
        let lock = Generations::new(dir).lock()?;
        Self::begin_locked(dir, feed_id, lock)
    }

    pub(crate) fn begin_locked(dir: &Path, feed_id: &str, lock: WriterLock) -> Result<Self, IndexError> {
        let generations = Generations::new(dir);
        let path = generations.prepare_next()?;
        let writer = Writer::create(&path, feed_id)?;
        Ok(Self { generations, path, writer, lock })
    }

    /// Adds a manifest's capabilities; returns how many.
    pub fn add(&self, stored: &StoredManifest) -> Result<usize, IndexError> {
        self.writer.replace(stored)
    }

    /// Adds the capabilities of several manifests; returns how many.
    pub fn add_all(&self, stored: &[StoredManifest]) -> Result<usize, IndexError> {
        self.writer.replace_all(stored)
    }

    /// Commits at a feed position and puts the index in the place of the one that served.
    pub fn finish(self, position: FeedPosition) -> Result<(), IndexError> {
        let (writer, _lock) = self.switch(position)?;
        writer.finish()
    }

    /// Like [`Self::finish`], and hands the writer over to go on with.
    pub(crate) fn switch(mut self, position: FeedPosition) -> Result<(Writer, WriterLock), IndexError> {
        self.writer.commit(position)?;
        self.generations.switch_to(&self.path)?;
        self.generations.remove_others()?;
        Ok((self.writer, self.lock))
    }
}
