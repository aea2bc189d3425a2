//! Keeps the vectors up to the index: what an index says and has no vector gets one, what it no longer says goes.
//!
//! It reads what was committed, beside whoever writes: indexing never waits for it, and it stops between two batches. What
//! is done by then is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tantivy::schema::Value as _;
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, TantivyDocument};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Code, Embedder, VECTORS_MAX, Vectors, VectorsError, codes};
use crate::analysis::words;
use crate::error::IndexError;
use crate::index::{Fields, Generations, Payload};

/// Texts that are embedded between two looks at whether to stop: about a second's work.
const BATCH: usize = 32;
/// How often is looked for a new commit.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Pause after a failure, which mostly is one of the disk.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// Least time between two writings of the file, and the octets of it that make the time a second longer: a large file is
/// written whole, so seldom.
const WRITE_EVERY: Duration = Duration::from_secs(5);
const BYTES_A_SECOND: u64 = 2 << 20;

/// Which commit of which generation a pass was over.
type State = (PathBuf, u64);

/// What one pass came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Texts that have a vector now.
    pub vectors: usize,
    /// Texts that were given one.
    pub embedded: usize,
    /// Texts that still have none, since the pass was stopped or there are too many.
    pub missing: usize,
}

/// Follows the commits of an index until told to stop. What fails is said, and tried again.
pub async fn keep_current(index_dir: PathBuf, embedder: Arc<dyn Embedder>, cancel: CancellationToken) {
    let mut done: Option<State> = None;
    while !cancel.is_cancelled() {
        let (dir, with, until, last) =
            (index_dir.clone(), Arc::clone(&embedder), cancel.clone(), done.clone());
        let pass = tokio::task::spawn_blocking(move || pass(&dir, &*with, last.as_ref(), &until)).await;
        let pause = match pass {
            Ok(Ok(Some((kept, state)))) => {
                tell(kept);
                done = Some(state);
                pause_after(kept, embedder.dimension())
            }
            Ok(Ok(None) | Err(VectorsError::Index(IndexError::Missing { .. }))) => LOOK_EVERY,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the vectors are behind the index");
                RETRY_AFTER
            }
            Err(error) => {
                tracing::error!(%error, "embedding broke off");
                RETRY_AFTER
            }
        };
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Gives a vector to all that the index says now. Blocking.
pub fn catch_up(
    index_dir: &Path,
    embedder: &dyn Embedder,
    cancel: &CancellationToken,
) -> Result<Kept, VectorsError> {
    let kept = pass(index_dir, embedder, None, cancel)?.map(|(kept, _)| kept).unwrap_or_default();
    tell(kept);
    Ok(kept)
}

/// One pass, unless the index is as it was after the last.
fn pass(
    index_dir: &Path,
    embedder: &dyn Embedder,
    last: Option<&State>,
    cancel: &CancellationToken,
) -> Result<Option<(Kept, State)>, VectorsError> {
    let generation = Generations::new(index_dir).current()?;
    let index = Index::open_in_dir(&generation).map_err(IndexError::engine("be read for its vectors"))?;
    let metas = index.load_metas().map_err(IndexError::engine("be read for its vectors"))?;
    let state = (generation, metas.opstamp);
    if last == Some(&state) {
        return Ok(None);
    }
    Payload::read(index_dir, &index)?;
    let said = Said::of(&index)?;
    let kept = embed_missing(index_dir, &said, embedder, cancel)?;
    Ok(Some((kept, state)))
}

fn tell(kept: Kept) {
    if kept.embedded > 0 {
        tracing::info!(
            vectors = kept.vectors,
            embedded = kept.embedded,
            missing = kept.missing,
            "vectors kept"
        );
    }
    #[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts are far below 2^52")]
    {
        metrics::gauge!("agentdex_indexer_vectors").set(kept.vectors as f64);
        metrics::gauge!("agentdex_indexer_vectors_missing").set(kept.missing as f64);
    }
}

fn pause_after(kept: Kept, dimension: usize) -> Duration {
    if kept.embedded == 0 { LOOK_EVERY } else { write_pause((kept.vectors * dimension) as u64) }
}

fn write_pause(bytes: u64) -> Duration {
    WRITE_EVERY + Duration::from_secs(bytes / BYTES_A_SECOND)
}

/// Embeds what has no vector, and writes now and then.
fn embed_missing(
    index_dir: &Path,
    said: &Said,
    embedder: &dyn Embedder,
    cancel: &CancellationToken,
) -> Result<Kept, VectorsError> {
    let mut vectors = known(index_dir, embedder)?;
    let wanted: Vec<u64> = said.texts.iter().map(|(key, _)| *key).collect();
    let missing: Vec<(u64, DocAddress)> =
        said.texts.iter().filter(|(key, _)| vectors.row(*key).is_none()).copied().collect();
    let is_fuller = vectors.len() + missing.len() > wanted.len();
    let mut fresh: Vec<(u64, Code)> = Vec::new();
    let mut kept = Kept { missing: missing.len() + said.beyond, ..Kept::default() };
    let mut written_at = Instant::now();
    for batch in missing.chunks(BATCH) {
        if cancel.is_cancelled() {
            break;
        }
        let texts: Vec<String> =
            batch.iter().map(|(_, address)| said.text(*address)).collect::<Result<_, _>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let found = codes(embedder, &texts)?;
        fresh.extend(batch.iter().map(|(key, _)| *key).zip(found));
        kept.embedded += batch.len();
        kept.missing -= batch.len();
        if written_at.elapsed() >= write_pause(vectors.bytes()) {
            vectors = vectors.with(&fresh, &wanted);
            vectors.write(index_dir)?;
            tracing::info!(vectors = vectors.len(), missing = kept.missing, "embedding");
            fresh.clear();
            written_at = Instant::now();
        }
    }
    if !fresh.is_empty() || is_fuller {
        vectors = vectors.with(&fresh, &wanted);
        vectors.write(index_dir)?;
    }
    kept.vectors = vectors.len();
    Ok(kept)
}

/// What is there of this model; anything else is begun anew.
fn known(index_dir: &Path, embedder: &dyn Embedder) -> Result<Vectors, VectorsError> {
    match Vectors::read(index_dir) {
        Ok(Some(vectors)) if vectors.is_of(embedder) => return Ok(vectors),
        Ok(Some(_)) => tracing::warn!("the vectors are of another model: embedding everything anew"),
        Ok(None) => {}
        Err(error @ VectorsError::Damaged { .. }) => {
            tracing::warn!(%error, "embedding everything anew");
        }
        Err(error) => return Err(error),
    }
    Ok(Vectors::none_of(embedder))
}

/// What one commit says.
struct Said {
    searcher: Searcher,
    fields: Fields,
    /// The numbers of its texts, rising, each with a document that says it.
    texts: Vec<(u64, DocAddress)>,
    /// Texts beyond the most that get vectors.
    beyond: usize,
}

/// What of a row is embedded.
#[derive(Deserialize)]
struct Row {
    name: String,
    description: Option<String>,
}

impl Said {
    fn of(index: &Index) -> Result<Self, IndexError> {
        let failed = IndexError::engine("be read for its vectors");
        let fields = Fields::of(&index.schema())
            .ok_or_else(|| failed(tantivy::TantivyError::SchemaError("a field is missing".to_owned())))?;
        let reader =
            index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(&failed)?;
        let searcher = tantivy::IndexReader::searcher(&reader);
        let mut texts = Vec::new();
        for (segment, ordinal) in searcher.segment_readers().iter().zip(0..) {
            let numbers = segment.fast_fields().u64("text_number").map_err(&failed)?;
            let said = segment
                .doc_ids_alive()
                .filter_map(|document| Some((numbers.first(document)?, DocAddress::new(ordinal, document))));
            texts.extend(said);
        }
        texts.sort_unstable();
        texts.dedup_by_key(|(key, _)| *key);
        let beyond = texts.len().saturating_sub(VECTORS_MAX);
        texts.truncate(VECTORS_MAX);
        if beyond > 0 {
            tracing::warn!(beyond, max = VECTORS_MAX, "texts beyond the most are found by their words alone");
        }
        Ok(Self { searcher, fields, texts, beyond })
    }

    /// What a document says: its name, written as words, and its description.
    fn text(&self, address: DocAddress) -> Result<String, IndexError> {
        let document: TantivyDocument =
            self.searcher.doc(address).map_err(IndexError::engine("read a document"))?;
        let json = document.get_first(self.fields.row).and_then(|value| value.as_bytes()).unwrap_or_default();
        let row: Row = serde_json::from_slice(json).map_err(IndexError::Row)?;
        let mut text = String::new();
        for word in words(&row.name) {
            text.push_str(&word.text);
            text.push(' ');
        }
        text.truncate(text.trim_end().len());
        if let Some(description) = row.description.filter(|description| !description.is_empty()) {
            text.push_str(": ");
            text.push_str(&description);
        }
        Ok(text)
    }
}
