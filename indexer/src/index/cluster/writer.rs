//! Sends the documents of manifests to the engine, and deletes those that no manifest has any more.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use manifest::ManifestId;
use tantivy::{Index, IndexReader, ReloadPolicy, TantivyDocument};
use tokio::time::Instant;

use super::super::schema::Fields;
use super::convert::engine_document;
use super::vocabulary;
use crate::cluster::{Cluster, Engine, EngineWriter, index_name};
use crate::error::IndexError;

/// How long the engine keeps the index of the previous generation after a rebuild. Searches use it until their program has opened the new
/// generation, which takes seconds.
const REMOVAL_DELAY: Duration = Duration::from_mins(1);

/// The writer of the engine, next to that of the vocabulary.
pub(crate) struct ClusterWriter {
    engine: Arc<dyn Engine>,
    /// Name of the engine's index.
    index: String,
    writer: Box<dyn EngineWriter>,
    /// The last commit of the vocabulary, which knows the capabilities of each manifest.
    committed: IndexReader,
    fields: Fields,
    /// `None` while a new index is filled: each manifest is added once, and there may be more than fit into memory.
    changes: Mutex<Option<Changes>>,
    /// The indexes of other generations are removed with the first commit after this.
    removal_at: Mutex<Option<Instant>>,
}

/// Changes since the last commit.
#[derive(Default)]
struct Changes {
    /// The manifests that were removed or replaced, with the capabilities that they have now.
    manifests: HashMap<ManifestId, Vec<String>>,
    /// Capabilities that a manifest had before.
    former: HashSet<String>,
}

impl ClusterWriter {
    /// Creates the engine's index of a new generation of the vocabulary.
    pub(crate) fn create(
        cluster: &Cluster,
        generation: &Path,
        vocabulary: &Index,
        fields: Fields,
    ) -> Result<Self, IndexError> {
        let index = index_name(generation);
        let writer = cluster.engine.create(&index)?;
        Self::new(cluster, index, writer, vocabulary, fields)
    }

    /// Opens the engine's index of a committed generation.
    pub(crate) fn open(
        cluster: &Cluster,
        generation: &Path,
        vocabulary: &Index,
        fields: Fields,
    ) -> Result<Self, IndexError> {
        let index = index_name(generation);
        let writer = cluster.engine.writer(&index)?;
        let opened = Self::new(cluster, index, writer, vocabulary, fields)?;
        *opened.changes() = Some(Changes::default());
        *opened.removal_at() = Some(Instant::now());
        Ok(opened)
    }

    fn new(
        cluster: &Cluster,
        index: String,
        writer: Box<dyn EngineWriter>,
        vocabulary: &Index,
        fields: Fields,
    ) -> Result<Self, IndexError> {
        let committed = vocabulary.reader_builder().reload_policy(ReloadPolicy::Manual).try_into();
        let committed = committed.map_err(IndexError::engine("open the vocabulary"))?;
        let engine = Arc::clone(&cluster.engine);
        let (changes, removal_at) = (Mutex::default(), Mutex::default());
        Ok(Self { engine, index, writer, committed, fields, changes, removal_at })
    }

    fn removal_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.removal_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self) -> MutexGuard<'_, Option<Changes>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes the capabilities of some manifests with the next commit, unless a manifest has them by then.
    pub(crate) fn remove_all(&self, manifests: &[ManifestId]) -> Result<(), IndexError> {
        let mut changes = self.changes();
        let Some(changes) = changes.as_mut() else { return Ok(()) };
        for manifest in manifests {
            let former = match changes.manifests.insert(manifest.clone(), Vec::new()) {
                Some(uncommitted) => uncommitted,
                None => vocabulary::capabilities_of(&self.committed.searcher(), &self.fields, manifest)?,
            };
            changes.former.extend(former);
        }
        // The vocabulary does not list what an earlier reader of the feed committed to the engine alone.
        let ids: Vec<String> = manifests.iter().map(|manifest| manifest.as_str().to_owned()).collect();
        Ok(self.writer.delete_manifests(&ids)?)
    }

    /// Sends the capabilities of a manifest. Returns its document in the vocabulary; `None` if it has no capabilities.
    pub(crate) fn add(
        &self,
        manifest: &ManifestId,
        capabilities: &[TantivyDocument],
    ) -> Result<Option<TantivyDocument>, IndexError> {
        if capabilities.is_empty() {
            return Ok(None);
        }
        let documents: Vec<_> =
            capabilities.iter().filter_map(|document| engine_document(&self.fields, document)).collect();
        if let Some(changes) = self.changes().as_mut() {
            let ids = documents.iter().map(|document| document.id.clone()).collect();
            changes.manifests.insert(manifest.clone(), ids);
        }
        self.writer.upsert(documents)?;
        vocabulary::document(&self.fields, manifest, capabilities).map(Some)
    }

    /// Makes the changes visible. The vocabulary is committed afterwards.
    pub(crate) fn commit(&self) -> Result<(), IndexError> {
        let deleted = self.deleted()?;
        if !deleted.is_empty() {
            self.writer.delete(&deleted)?;
        }
        Ok(self.writer.commit()?)
    }

    /// The capabilities that no manifest has any more.
    fn deleted(&self) -> Result<Vec<String>, IndexError> {
        let changes = self.changes();
        let Some(Changes { manifests, former }) = changes.as_ref() else { return Ok(Vec::new()) };
        let current: HashSet<&String> = manifests.values().flatten().collect();
        let former: BTreeSet<&String> = former.iter().filter(|former| !current.contains(former)).collect();
        let manifest_ids: HashSet<&str> = manifests.keys().map(ManifestId::as_str).collect();
        let searcher = self.committed.searcher();
        let mut deleted = Vec::with_capacity(former.len());
        for id in former {
            if !vocabulary::is_led_by_another(&searcher, &self.fields, id, &manifest_ids)? {
                deleted.push(id.clone());
            }
        }
        Ok(deleted)
    }

    /// Call this after the vocabulary was committed.
    pub(crate) fn committed(&self) -> Result<(), IndexError> {
        let was_filling = self.changes().replace(Changes::default()).is_none();
        self.committed.reload().map_err(IndexError::engine("reload the vocabulary"))?;
        let mut removal_at = self.removal_at();
        if was_filling {
            *removal_at = Some(Instant::now() + REMOVAL_DELAY);
        } else if removal_at.is_some_and(|at| at <= Instant::now()) {
            self.engine.remove_others(&self.index)?;
            *removal_at = None;
        }
        Ok(())
    }
}
