//! Builds a new generation of the index, and swaps it in.

use std::path::{Path, PathBuf};

use store::{FeedPosition, StoredManifest};
use tantivy::TantivyDocument;

use crate::config::IndexConfig;
use crate::error::IndexError;
use crate::index::{Generations, Shared, Writer, WriterLock};

/// Analysed documents.
#[doc(hidden)]
pub struct PreparedDocuments(Vec<TantivyDocument>);

/// A new generation, which is not served before [`Self::finish`].
pub struct IndexBuilder {
    generations: Generations,
    path: PathBuf,
    writer: Writer,
    lock: WriterLock,
}

impl IndexBuilder {
    /// Begins a generation below a directory, from the manifests of one feed. Locks the directory.
    pub fn begin(dir: &Path, feed_id: &str) -> Result<Self, IndexError> {
        Self::begin_with(&IndexConfig::at(dir.to_owned()), feed_id)
    }

    /// [`Self::begin`] with the examples and the cluster of a configuration.
    pub fn begin_with(config: &IndexConfig, feed_id: &str) -> Result<Self, IndexError> {
        let lock = Generations::new(&config.dir).lock()?;
        Self::begin_locked(config, feed_id, lock)
    }

    pub(crate) fn begin_locked(
        config: &IndexConfig,
        feed_id: &str,
        lock: WriterLock,
    ) -> Result<Self, IndexError> {
        let generations = Generations::new(&config.dir);
        let path = generations.prepare_next()?;
        let writer = Writer::create(&path, feed_id, config)?;
        Ok(Self { generations, path, writer, lock })
    }

    /// Adds a manifest's capabilities, as if no other document declared them; returns their number.
    pub fn add(&self, stored: &StoredManifest) -> Result<usize, IndexError> {
        self.writer.replace(stored, &nothing_shared())
    }

    /// Analyses manifests for [`Self::add_prepared`]: for benchmarks.
    #[doc(hidden)]
    pub fn prepare(&self, stored: &[StoredManifest]) -> Result<PreparedDocuments, IndexError> {
        let shared = nothing_shared();
        let documents: Result<Vec<_>, _> =
            stored.iter().map(|stored| self.writer.documents_of(stored, &shared)).collect();
        Ok(PreparedDocuments(documents?.into_iter().flatten().collect()))
    }

    /// Adds analysed documents: for benchmarks.
    #[doc(hidden)]
    pub fn add_prepared(&self, documents: PreparedDocuments) -> Result<(), IndexError> {
        self.writer.add(documents.0)
    }

    /// Adds the capabilities whose leading declarations are in these manifests; returns their number.
    pub(crate) fn add_all(&self, stored: &[StoredManifest], shared: &Shared) -> Result<usize, IndexError> {
        self.writer.replace_all(stored, shared)
    }

    /// Commits at a feed position, and makes the generation the current one.
    pub fn finish(self, position: FeedPosition) -> Result<(), IndexError> {
        let (writer, _lock) = self.switch(position)?;
        writer.finish()
    }

    /// [`Self::finish`], but returns the writer.
    pub(crate) fn switch(mut self, position: FeedPosition) -> Result<(Writer, WriterLock), IndexError> {
        self.writer.commit(position)?;
        self.generations.switch_to(&self.path)?;
        self.generations.remove_others()?;
        Ok((self.writer, self.lock))
    }
}

fn nothing_shared() -> Shared {
    Shared::new(Vec::new(), 0)
}
