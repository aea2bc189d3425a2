//! Keeps the vectors up to date with the index: adds vectors of new texts and removes vectors of removed texts.
//!
//! It reads commits, so indexing never waits for it. It stops between batches; finished vectors are written even after a failure. A text
//! that the model rejects gets no vector.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use store::{TaskFailure, TaskMonitor};
use tantivy::{DocAddress, Index};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::code::Code;
use super::embedder::{Embedder, EmbedderError, VectorsError, codes};
use super::file::{Stamp, Vectors, stamp};
use super::texts::{CapabilityText, CommitTexts};
use crate::error::IndexError;
use crate::index::{Generations, Payload};

/// Texts of one batch: about a second of work.
const BATCH: usize = 32;
/// Poll interval for new commits.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Delay after a failure, usually of the disk.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// Minimum interval between two writes of the file; each `BYTES_PER_SECOND` of its size extend the interval by a second. The file is
/// written as a whole, so a large file is written rarely.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
const BYTES_PER_SECOND: u64 = 2 << 20;
/// Without new vectors, obsolete ones are removed when one in this many is obsolete, or after `OBSOLETE_TIME_MAX`.
const OBSOLETE_ONE_IN: usize = 8;
const OBSOLETE_TIME_MAX: Duration = Duration::from_mins(10);
/// Maximum number of texts that are remembered as rejected; further ones are retried in every pass.
const REJECTED_MAX: usize = 10_000;
/// A model that cannot embed this text counts as broken.
const PLAIN: &str = "a plain text";

/// What the operator can do about vectors that cannot be updated; until then, search uses those that exist.
const ADVICE: &str = "check the disk and the model with `agentdex doctor`; words are searched as before";

/// The result of one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorUpdate {
    /// Texts with a vector.
    pub vectors: usize,
    /// Texts that were embedded in this pass.
    pub embedded: usize,
    /// Texts without a vector: the pass was stopped, there are too many texts, or the model rejected them.
    pub missing: usize,
    /// Texts that the model rejected.
    pub refused: usize,
}

/// Follows the commits of an index until cancelled. Failures are reported and retried.
pub async fn keep_current(
    index_dir: PathBuf,
    embedder: Arc<dyn Embedder>,
    monitor: Arc<TaskMonitor>,
    cancel: CancellationToken,
) {
    let mut updater = Updater::new(OBSOLETE_TIME_MAX);
    while !cancel.is_cancelled() {
        let (dir, with, until) = (index_dir.clone(), Arc::clone(&embedder), cancel.clone());
        let mut own = std::mem::take(&mut updater);
        let pass = tokio::task::spawn_blocking(move || {
            let done = own.pass(&dir, &*with, &until);
            (own, done)
        });
        let (pause, result) = match pass.await {
            Ok((own, done)) => {
                updater = own;
                delay_after(done, embedder.dimension())
            }
            Err(error) => {
                updater = Updater::new(OBSOLETE_TIME_MAX);
                (RETRY_AFTER, Err(TaskFailure::new(error, "report it as a bug")))
            }
        };
        monitor.ended(result, now()).await;
        if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
    }
}

/// Embeds all texts of the index that have no vector. Blocking.
pub fn catch_up(
    index_dir: &Path,
    embedder: &dyn Embedder,
    cancel: &CancellationToken,
) -> Result<VectorUpdate, VectorsError> {
    let done = Updater::new(Duration::ZERO).pass(index_dir, embedder, cancel)?;
    let update = done.map(|done| done.update).unwrap_or_default();
    report(update);
    Ok(update)
}

/// Logs a pass, and returns the delay until the next one, with the failure of this one.
fn delay_after(
    pass: Result<Option<Done>, VectorsError>,
    dimension: usize,
) -> (Duration, Result<(), TaskFailure>) {
    match pass {
        Ok(Some(Done { update, written })) => {
            report(update);
            let is_written = written.is_some();
            let written = write_interval((update.vectors * dimension) as u64);
            (if is_written { written } else { POLL_INTERVAL }, Ok(()))
        }
        Ok(None) | Err(VectorsError::Index(IndexError::Missing { .. })) => (POLL_INTERVAL, Ok(())),
        Err(error) => (RETRY_AFTER, Err(TaskFailure::new(error, ADVICE))),
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

fn report(update: VectorUpdate) {
    if update.embedded > 0 {
        let VectorUpdate { vectors, embedded, missing, refused } = update;
        tracing::info!(vectors, embedded, missing, refused, "vectors updated");
    }
    crate::metrics::vectors(update.vectors as u64, update.missing as u64);
}

fn write_interval(bytes: u64) -> Duration {
    WRITE_INTERVAL + Duration::from_secs(bytes / BYTES_PER_SECOND)
}

/// The result of a pass, and the file that it wrote.
struct Done {
    update: VectorUpdate,
    written: Option<Stamp>,
}

/// The generation, commit and file of vectors after a pass.
type PassState = (PathBuf, u64, Option<Stamp>);

#[derive(Default)]
struct Updater {
    last: Option<PassState>,
    /// Texts that the model rejected.
    refused: HashSet<u64>,
    /// When the file first had rows of deleted texts.
    obsolete_since: Option<Instant>,
    obsolete_time_max: Duration,
}

impl Updater {
    fn new(obsolete_time_max: Duration) -> Self {
        Self { obsolete_time_max, ..Self::default() }
    }

    /// One pass, unless index and file are unchanged.
    fn pass(
        &mut self,
        index_dir: &Path,
        embedder: &dyn Embedder,
        cancel: &CancellationToken,
    ) -> Result<Option<Done>, VectorsError> {
        let failed = IndexError::engine("be read for its vectors");
        let generation = Generations::new(index_dir).current()?;
        let index = Index::open_in_dir(&generation).map_err(&failed)?;
        let opstamp = index.load_metas().map_err(&failed)?.opstamp;
        let found = (generation, opstamp, stamp(index_dir));
        if self.last.as_ref() == Some(&found) && !self.is_removal_due() {
            return Ok(None);
        }
        Payload::read(index_dir, &index)?;
        let done = self.embed_missing(index_dir, &CommitTexts::of(&index)?, embedder, cancel)?;
        let (generation, opstamp, was) = found;
        self.last = Some((generation, opstamp, done.written.or(was)));
        Ok(Some(done))
    }

    fn is_removal_due(&self) -> bool {
        self.obsolete_since.is_some_and(|since| since.elapsed() >= self.obsolete_time_max)
    }

    /// Embeds the texts without a vector. Finished vectors are written even if something fails later.
    fn embed_missing(
        &mut self,
        index_dir: &Path,
        texts: &CommitTexts,
        embedder: &dyn Embedder,
        cancel: &CancellationToken,
    ) -> Result<Done, VectorsError> {
        let vectors = read_vectors(index_dir, embedder)?;
        let wanted: Vec<u64> = texts.texts.iter().map(|(key, _)| *key).collect();
        self.refused.retain(|key| wanted.binary_search(key).is_ok());
        let without: Vec<(u64, DocAddress)> =
            texts.texts.iter().filter(|(key, _)| vectors.row(*key).is_none()).copied().collect();
        let obsolete = vectors.len() + without.len() - wanted.len();
        self.obsolete_since = (obsolete > 0).then(|| self.obsolete_since.unwrap_or_else(Instant::now));
        let is_removal_due =
            obsolete > 0 && (obsolete * OBSOLETE_ONE_IN >= vectors.len() || self.is_removal_due());
        let update = VectorUpdate {
            missing: without.len() + texts.surplus,
            refused: self.refused.len(),
            ..VectorUpdate::default()
        };
        let mut work = Work::new(index_dir, vectors, &wanted, update);
        let missing = without.into_iter().filter(|(key, _)| !self.refused.contains(key)).collect::<Vec<_>>();
        let outcome = work.embed(&missing, texts, embedder, cancel);
        let written = if work.fresh.is_empty() && !is_removal_due { Ok(()) } else { work.write() };
        if work.written.is_some() {
            self.obsolete_since = None;
        }
        let room = REJECTED_MAX.saturating_sub(self.refused.len());
        self.refused.extend(work.refused.iter().take(room));
        outcome.and(written)?;
        Ok(Done { update: work.update, written: work.written })
    }
}

struct Work<'a> {
    index_dir: &'a Path,
    vectors: Vectors,
    /// Hashes of all texts, ascending.
    wanted: &'a [u64],
    /// Not written yet.
    fresh: Vec<(u64, Code)>,
    refused: Vec<u64>,
    update: VectorUpdate,
    written: Option<Stamp>,
    written_at: Instant,
}

impl<'a> Work<'a> {
    fn new(index_dir: &'a Path, vectors: Vectors, wanted: &'a [u64], update: VectorUpdate) -> Self {
        let update = VectorUpdate { vectors: vectors.len(), ..update };
        let (fresh, refused) = (Vec::new(), Vec::new());
        let written_at = Instant::now();
        Self { index_dir, vectors, wanted, fresh, refused, update, written: None, written_at }
    }

    /// Embeds in batches, and writes at intervals.
    fn embed(
        &mut self,
        missing: &[(u64, DocAddress)],
        texts: &CommitTexts,
        embedder: &dyn Embedder,
        cancel: &CancellationToken,
    ) -> Result<(), VectorsError> {
        for batch in missing.chunks(BATCH) {
            if cancel.is_cancelled() {
                return Ok(());
            }
            let texts: Vec<CapabilityText> =
                batch.iter().map(|(_, address)| texts.text(*address)).collect::<Result<_, _>>()?;
            for ((key, _), code) in batch.iter().zip(codes_of(embedder, &texts)?) {
                self.take(*key, code);
            }
            if self.written_at.elapsed() >= write_interval(self.vectors.bytes()) {
                self.write()?;
                tracing::info!(vectors = self.update.vectors, missing = self.update.missing, "embedding");
            }
        }
        Ok(())
    }

    fn take(&mut self, key: u64, code: Option<Code>) {
        if let Some(code) = code {
            self.fresh.push((key, code));
            self.update.embedded += 1;
            self.update.missing -= 1;
        } else {
            self.refused.push(key);
            self.update.refused += 1;
        }
    }

    fn write(&mut self) -> Result<(), VectorsError> {
        self.vectors = self.vectors.with(&self.fresh, self.wanted);
        self.fresh.clear();
        self.update.vectors = self.vectors.len();
        self.written = Some(self.vectors.write(self.index_dir)?);
        self.written_at = Instant::now();
        Ok(())
    }
}

/// The vectors of a batch, `None` for a text that the model rejects; an error if the model is broken.
fn codes_of(embedder: &dyn Embedder, texts: &[CapabilityText]) -> Result<Vec<Option<Code>>, EmbedderError> {
    let is_working = || codes(embedder, &[PLAIN]).is_ok();
    let all: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    let error = match codes(embedder, &all) {
        Ok(codes) => return Ok(codes.into_iter().map(Some).collect()),
        Err(error) => error,
    };
    if !is_working() {
        return Err(error);
    }
    let alone = |text: &CapabilityText| match codes(embedder, &[&text.text]) {
        Ok(mut code) => Ok(code.pop()),
        Err(error) if is_working() => {
            tracing::warn!(
                capability.id = text.capability,
                capability.name = text.name,
                %error,
                "the model rejects the text of this capability: only word search finds it"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    };
    texts.iter().map(alone).collect()
}

/// The vectors of this model; none if they are from another model or damaged. A file that cannot be read is an error, because the problem
/// may be temporary.
fn read_vectors(index_dir: &Path, embedder: &dyn Embedder) -> Result<Vectors, VectorsError> {
    match Vectors::read(index_dir) {
        Ok(Some(vectors)) if vectors.made_by(embedder) => return Ok(vectors),
        Ok(Some(_)) => tracing::warn!("the vectors are from another model: embedding everything again"),
        Ok(None) => {}
        Err(error @ VectorsError::Damaged { .. }) => {
            tracing::warn!(%error, "embedding everything again");
        }
        Err(error) => return Err(error),
    }
    Ok(Vectors::empty(embedder))
}
