//! The one writer of an index.
//!
//! A manifest is replaced as a whole: its documents are deleted and all its capabilities are added again, so that
//! applying the same change twice leaves the same index. A commit contains the feed position that it reaches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use manifest::ManifestId;
use store::{FeedPosition, StoredManifest};
use tantivy::indexer::LogMergePolicy;
use tantivy::schema::Value as _;
use tantivy::{Index, IndexSettings, IndexWriter, TantivyDocument, Term};

#[cfg(feature = "cluster")]
use super::cluster::ClusterWriter;
use super::directory::Generations;
use super::document::ManifestText;
use super::payload::Payload;
use super::schema::{Fields, register_tokenizers, schema};
use super::shared::Shared;
use crate::config::{Contents, IndexConfig};
use crate::error::IndexError;
use crate::examples::Examples;
use crate::spam::{PublisherFacts, judge};

/// Memory for documents that are not on disk yet, for all writer threads together.
const WRITER_MEMORY_BYTES: usize = 128 << 20;
/// Size of a block of stored rows. Blocks are decompressed as a whole, and the rows of a result page are in different blocks.
const ROW_BLOCK_BYTES: usize = 4_096;
/// Number of indexing threads. Two keep up with one database; more would take cores away from searches.
const WRITER_THREADS: usize = 2;
/// Share of deleted documents at which a segment is merged. A crawl constantly replaces documents, and deleted ones distort the statistics
/// of the ranking.
const DELETED_RATIO_MAX: f32 = 0.25;

/// A writer of an existing index, and the feed position of the index.
pub(crate) struct Opened {
    pub(crate) writer: Writer,
    pub(crate) position: FeedPosition,
}

/// Opens the current index for writing if it is undamaged, has this schema version and was built from this feed. A position after
/// the end of the feed means that the database was restored from a backup.
pub(crate) fn open_for_writing(
    generations: &Generations,
    feed_id: &str,
    head: FeedPosition,
    config: &IndexConfig,
) -> Result<Opened, IndexError> {
    let dir = generations.dir().to_owned();
    let corrupt = |reason: String| IndexError::Corrupt { dir: dir.clone(), reason };
    let path = generations.current()?;
    let index = Index::open_in_dir(&path).map_err(|error| IndexError::opening(&dir, &error))?;
    let payload = Payload::read(&dir, &index)?;
    payload.check_contents(&dir, config.contents())?;
    if payload.feed_id != feed_id || payload.position > head {
        return Err(IndexError::FeedOther { dir });
    }
    if payload.examples != config.examples.version() {
        return Err(IndexError::ExamplesOther { dir });
    }
    // tantivy panics if a file is shorter than its footer
    let damaged = catch_unwind(AssertUnwindSafe(|| index.validate_checksum()))
        .map_err(|_| corrupt("a file is cut short".to_owned()))?
        .map_err(|error| IndexError::opening(&dir, &error))?;
    if let Some(file) = damaged.iter().next() {
        return Err(corrupt(format!("{} is damaged", file.display())));
    }
    let fields = Fields::of(&index.schema()).map_err(|error| corrupt(error.to_string()))?;
    let writer = Writer::new(&index, fields, feed_id, config)?;
    #[cfg(feature = "cluster")]
    let writer = Writer {
        cluster: config
            .cluster
            .as_ref()
            .map(|cluster| ClusterWriter::open(cluster, &path, &index, fields))
            .transpose()?,
        ..writer
    };
    Ok(Opened { writer, position: payload.position })
}

/// Writes documents and commits.
pub(crate) struct Writer {
    inner: IndexWriter,
    fields: Fields,
    feed_id: String,
    examples: Arc<Examples>,
    contents: Contents,
    /// The engine that gets the capabilities; the index then has the vocabulary.
    #[cfg(feature = "cluster")]
    cluster: Option<ClusterWriter>,
}

impl Writer {
    /// Creates an empty index in an empty directory, committed at the beginning of the feed.
    pub(crate) fn create(dir: &Path, feed_id: &str, config: &IndexConfig) -> Result<Self, IndexError> {
        let schema = schema();
        let fields = Fields::of(&schema).map_err(IndexError::engine("create itself"))?;
        let settings = IndexSettings { docstore_blocksize: ROW_BLOCK_BYTES, ..IndexSettings::default() };
        let builder = Index::builder().schema(schema).settings(settings);
        let index = builder.create_in_dir(dir).map_err(IndexError::engine("create itself"))?;
        let mut writer = Self::new(&index, fields, feed_id, config)?;
        writer.commit(FeedPosition::default())?;
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &config.cluster {
            writer.cluster = Some(ClusterWriter::create(cluster, dir, &index, fields)?);
        }
        Ok(writer)
    }

    fn new(index: &Index, fields: Fields, feed_id: &str, config: &IndexConfig) -> Result<Self, IndexError> {
        register_tokenizers(index);
        let inner = index
            .writer_with_num_threads(WRITER_THREADS, WRITER_MEMORY_BYTES)
            .map_err(IndexError::engine("open for writing"))?;
        let mut policy = LogMergePolicy::default();
        policy.set_del_docs_ratio_before_merge(DELETED_RATIO_MAX);
        inner.set_merge_policy(Box::new(policy));
        Ok(Self {
            inner,
            fields,
            feed_id: feed_id.to_owned(),
            examples: Arc::clone(&config.examples),
            contents: config.contents(),
            #[cfg(feature = "cluster")]
            cluster: None,
        })
    }

    /// Replaces the capabilities whose leading declarations are in the manifest; returns their number.
    pub(crate) fn replace(&self, stored: &StoredManifest, shared: &Shared) -> Result<usize, IndexError> {
        self.remove_all(std::slice::from_ref(&stored.manifest.id))?;
        self.add_manifest(stored, shared)
    }

    /// Adds the capabilities of a manifest that the index does not have.
    fn add_manifest(&self, stored: &StoredManifest, shared: &Shared) -> Result<usize, IndexError> {
        let documents = self.documents_of(stored, shared)?;
        let count = documents.len();
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.cluster {
            self.add(cluster.add(&stored.manifest.id, &documents)?.into_iter().collect())?;
            return Ok(count);
        }
        self.add(documents)?;
        Ok(count)
    }

    /// Builds the documents of a manifest for [`Self::replace`]. Documents whose leading declaration was in another manifest are deleted.
    pub(crate) fn documents_of(
        &self,
        stored: &StoredManifest,
        shared: &Shared,
    ) -> Result<Vec<TantivyDocument>, IndexError> {
        let Some(text) = ManifestText::of(stored) else { return Ok(Vec::new()) };
        let text = text.with_examples(&self.examples);
        let mut documents = Vec::with_capacity(stored.manifest.capabilities.len());
        let spam = judge(&stored.manifest.capabilities);
        for (capability, spam) in stored.manifest.capabilities.iter().zip(spam) {
            let document = text.document(&self.fields, capability, spam, shared)?;
            let Some((document, id)) = document else { continue };
            // the documents of a vocabulary are those of manifests
            #[cfg(feature = "cluster")]
            let id = id.filter(|_| self.cluster.is_none());
            if let Some(id) = id {
                self.inner.delete_term(Term::from_field_text(self.fields.id, id.as_str()));
            }
            documents.push(document);
        }
        self.add_publisher(stored, &mut documents)?;
        Ok(documents)
    }

    /// Adds the facts of a manifest about its publisher to its first document.
    fn add_publisher(
        &self,
        stored: &StoredManifest,
        documents: &mut [TantivyDocument],
    ) -> Result<(), IndexError> {
        let sketch = |document: &TantivyDocument| document.get_first(self.fields.sketch)?.as_u64();
        let Some(facts) = PublisherFacts::of(stored, documents.iter().filter_map(sketch)) else {
            return Ok(());
        };
        if let Some(first) = documents.first_mut() {
            first.add_bytes(self.fields.site_facts, &serde_json::to_vec(&facts).map_err(IndexError::Row)?);
        }
        Ok(())
    }

    pub(crate) fn add(&self, documents: Vec<TantivyDocument>) -> Result<(), IndexError> {
        for document in documents {
            self.inner.add_document(document).map_err(IndexError::engine("add a document"))?;
        }
        Ok(())
    }

    /// Replaces several manifests with different ids, on as many threads as tantivy uses: analysing texts takes longer than
    /// indexing documents.
    pub(crate) fn replace_all(
        &self,
        stored: &[StoredManifest],
        shared: &Shared,
    ) -> Result<usize, IndexError> {
        let ids: Vec<ManifestId> = stored.iter().map(|stored| stored.manifest.id.clone()).collect();
        // before any of them is added, because a capability may move from one to another
        self.remove_all(&ids)?;
        let add_share = |some: &[StoredManifest]| -> Result<usize, IndexError> {
            some.iter().map(|stored| self.add_manifest(stored, shared)).sum()
        };
        let share = stored.len().div_ceil(WRITER_THREADS).max(1);
        std::thread::scope(|scope| {
            let add_share = &add_share;
            let threads: Vec<_> =
                stored.chunks(share).map(|some| scope.spawn(move || add_share(some))).collect();
            let panicked = || Err(IndexError::engine("make documents")(tantivy::TantivyError::Poisoned));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).sum()
        })
    }

    #[cfg_attr(
        not(feature = "cluster"),
        expect(clippy::unnecessary_wraps, reason = "only a call to a cluster fails")
    )]
    pub(crate) fn remove_all(&self, manifests: &[ManifestId]) -> Result<(), IndexError> {
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.cluster {
            cluster.remove_all(manifests)?;
        }
        for manifest in manifests {
            self.inner.delete_term(Term::from_field_text(self.fields.manifest, manifest.as_str()));
        }
        Ok(())
    }

    /// Makes all changes since the last commit visible and durable, together with the position.
    pub(crate) fn commit(&mut self, position: FeedPosition) -> Result<(), IndexError> {
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.cluster {
            cluster.commit()?;
        }
        let payload = Payload::new(self.feed_id.clone(), position, self.examples.version(), self.contents);
        let text = serde_json::to_string(&payload).map_err(IndexError::Row)?;
        let mut prepared = self.inner.prepare_commit().map_err(IndexError::engine("prepare a commit"))?;
        prepared.set_payload(&text);
        prepared.commit().map_err(IndexError::engine("commit"))?;
        #[cfg(feature = "cluster")]
        if let Some(cluster) = &self.cluster {
            cluster.committed()?;
        }
        Ok(())
    }

    /// Number of documents in the last commit.
    pub(crate) fn documents(&self) -> Result<u64, IndexError> {
        let segments = self.inner.index().searchable_segment_metas();
        let segments = segments.map_err(IndexError::engine("count its documents"))?;
        Ok(segments.iter().map(|segment| u64::from(segment.num_docs())).sum())
    }

    /// Waits for running merges, then closes.
    pub(crate) fn finish(self) -> Result<(), IndexError> {
        self.inner.wait_merging_threads().map_err(IndexError::engine("finish its merges"))
    }
}
