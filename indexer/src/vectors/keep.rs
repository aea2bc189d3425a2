//! Keeps the vectors up to the index: what an index says and has no vector gets one, what it no longer says goes.
//!
//! It reads what was committed, beside whoever writes: indexing never waits for it, and it stops between two batches. What
//! is done by then is kept, also where it stops because something fails. A text that the model refuses goes without.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tantivy::{DocAddress, Index};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::said::{Said, Wording};
use super::{Code, Embedder, EmbedderError, Stamp, Vectors, VectorsError, codes, stamp};
use crate::error::IndexError;
use crate::index::{Generations, Payload};

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
/// Where nothing came and rows only went, the file is written when they are this share of it, or when they have waited so long.
const GONE_SHARE: usize = 8;
const GONE_WAIT_MAX: Duration = Duration::from_mins(10);
/// Texts that a model refused and is not asked for again, at most; beyond, they are tried and told anew in every pass.
const REFUSED_MAX: usize = 10_000;
/// What every model embeds: one that does not is out of order, whatever the texts.
const PLAIN: &str = "a plain text";

/// What one pass came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Texts that have a vector now.
    pub vectors: usize,
    /// Texts that were given one.
    pub embedded: usize,
    /// Texts that still have none, since the pass was stopped, there are too many, or the model refused them.
    pub missing: usize,
    /// Those of them that the model refused.
    pub refused: usize,
}

/// Follows the commits of an index until told to stop. What fails is said, and tried again.
pub async fn keep_current(index_dir: PathBuf, embedder: Arc<dyn Embedder>, cancel: CancellationToken) {
    let mut keeper = Keeper::waiting(GONE_WAIT_MAX);
    while !cancel.is_cancelled() {
        let (dir, with, until) = (index_dir.clone(), Arc::clone(&embedder), cancel.clone());
        let mut own = std::mem::take(&mut keeper);
        let pass = tokio::task::spawn_blocking(move || {
            let done = own.pass(&dir, &*with, &until);
            (own, done)
        });
        let pause = match pass.await {
            Ok((own, done)) => {
                keeper = own;
                pause_after(&done, embedder.dimension())
            }
            Err(error) => {
                keeper = Keeper::waiting(GONE_WAIT_MAX);
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
    let done = Keeper::waiting(Duration::ZERO).pass(index_dir, embedder, cancel)?;
    let kept = done.map(|done| done.kept).unwrap_or_default();
    tell(kept);
    Ok(kept)
}

/// Tells what a pass came to, and says how long to wait for the next.
fn pause_after(pass: &Result<Option<Done>, VectorsError>, dimension: usize) -> Duration {
    match pass {
        Ok(Some(Done { kept, written })) => {
            tell(*kept);
            if written.is_some() { write_pause((kept.vectors * dimension) as u64) } else { LOOK_EVERY }
        }
        Ok(None) | Err(VectorsError::Index(IndexError::Missing { .. })) => LOOK_EVERY,
        Err(error) => {
            tracing::warn!(%error, "the vectors are behind the index");
            RETRY_AFTER
        }
    }
}

fn tell(kept: Kept) {
    if kept.embedded > 0 {
        let Kept { vectors, embedded, missing, refused } = kept;
        tracing::info!(vectors, embedded, missing, refused, "vectors kept");
    }
    #[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts are far below 2^52")]
    {
        metrics::gauge!("agentdex_indexer_vectors").set(kept.vectors as f64);
        metrics::gauge!("agentdex_indexer_vectors_missing").set(kept.missing as f64);
    }
}

fn write_pause(bytes: u64) -> Duration {
    WRITE_EVERY + Duration::from_secs(bytes / BYTES_A_SECOND)
}

/// What one pass came to, and the file that it wrote.
struct Done {
    kept: Kept,
    written: Option<Stamp>,
}

/// Which commit of which generation a pass was over, and the file that it left.
type Left = (PathBuf, u64, Option<Stamp>);

/// What is remembered from pass to pass.
#[derive(Default)]
struct Keeper {
    left: Option<Left>,
    /// Texts that the model refused.
    refused: HashSet<u64>,
    /// Since when there are rows in the file that the index no longer says.
    gone_since: Option<Instant>,
    gone_wait_max: Duration,
}

impl Keeper {
    fn waiting(gone_wait_max: Duration) -> Self {
        Self { gone_wait_max, ..Self::default() }
    }

    /// One pass, unless index and file are as they were after the last.
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
        if self.left.as_ref() == Some(&found) && !self.have_waited() {
            return Ok(None);
        }
        Payload::read(index_dir, &index)?;
        let done = self.embed_missing(index_dir, &Said::of(&index)?, embedder, cancel)?;
        let (generation, opstamp, was) = found;
        self.left = Some((generation, opstamp, done.written.or(was)));
        Ok(Some(done))
    }

    fn have_waited(&self) -> bool {
        self.gone_since.is_some_and(|since| since.elapsed() >= self.gone_wait_max)
    }

    /// Embeds what has no vector. What was done is written whatever fails then.
    fn embed_missing(
        &mut self,
        index_dir: &Path,
        said: &Said,
        embedder: &dyn Embedder,
        cancel: &CancellationToken,
    ) -> Result<Done, VectorsError> {
        let vectors = known(index_dir, embedder)?;
        let wanted: Vec<u64> = said.texts.iter().map(|(key, _)| *key).collect();
        self.refused.retain(|key| wanted.binary_search(key).is_ok());
        let without: Vec<(u64, DocAddress)> =
            said.texts.iter().filter(|(key, _)| vectors.row(*key).is_none()).copied().collect();
        let gone = vectors.len() + without.len() - wanted.len();
        self.gone_since = (gone > 0).then(|| self.gone_since.unwrap_or_else(Instant::now));
        let is_gone_due = gone > 0 && (gone * GONE_SHARE >= vectors.len() || self.have_waited());
        let kept =
            Kept { missing: without.len() + said.beyond, refused: self.refused.len(), ..Kept::default() };
        let mut work = Work::new(index_dir, vectors, &wanted, kept);
        let missing = without.into_iter().filter(|(key, _)| !self.refused.contains(key)).collect::<Vec<_>>();
        let outcome = work.embed(&missing, said, embedder, cancel);
        let written = if work.fresh.is_empty() && !is_gone_due { Ok(()) } else { work.write() };
        if work.written.is_some() {
            self.gone_since = None;
        }
        let room = REFUSED_MAX.saturating_sub(self.refused.len());
        self.refused.extend(work.refused.iter().take(room));
        outcome.and(written)?;
        Ok(Done { kept: work.kept, written: work.written })
    }
}

/// A pass that is under way.
struct Work<'a> {
    index_dir: &'a Path,
    vectors: Vectors,
    /// Numbers of all texts, rising.
    wanted: &'a [u64],
    /// Not written yet.
    fresh: Vec<(u64, Code)>,
    refused: Vec<u64>,
    kept: Kept,
    written: Option<Stamp>,
    written_at: Instant,
}

impl<'a> Work<'a> {
    fn new(index_dir: &'a Path, vectors: Vectors, wanted: &'a [u64], kept: Kept) -> Self {
        let kept = Kept { vectors: vectors.len(), ..kept };
        let (fresh, refused) = (Vec::new(), Vec::new());
        let written_at = Instant::now();
        Self { index_dir, vectors, wanted, fresh, refused, kept, written: None, written_at }
    }

    /// Embeds batch after batch, and writes now and then.
    fn embed(
        &mut self,
        missing: &[(u64, DocAddress)],
        said: &Said,
        embedder: &dyn Embedder,
        cancel: &CancellationToken,
    ) -> Result<(), VectorsError> {
        for batch in missing.chunks(BATCH) {
            if cancel.is_cancelled() {
                return Ok(());
            }
            let texts: Vec<Wording> =
                batch.iter().map(|(_, address)| said.text(*address)).collect::<Result<_, _>>()?;
            for ((key, _), code) in batch.iter().zip(codes_of(embedder, &texts)?) {
                self.take(*key, code);
            }
            if self.written_at.elapsed() >= write_pause(self.vectors.bytes()) {
                self.write()?;
                tracing::info!(vectors = self.kept.vectors, missing = self.kept.missing, "embedding");
            }
        }
        Ok(())
    }

    fn take(&mut self, key: u64, code: Option<Code>) {
        if let Some(code) = code {
            self.fresh.push((key, code));
            self.kept.embedded += 1;
            self.kept.missing -= 1;
        } else {
            self.refused.push(key);
            self.kept.refused += 1;
        }
    }

    fn write(&mut self) -> Result<(), VectorsError> {
        self.vectors = self.vectors.with(&self.fresh, self.wanted);
        self.fresh.clear();
        self.kept.vectors = self.vectors.len();
        self.written = Some(self.vectors.write(self.index_dir)?);
        self.written_at = Instant::now();
        Ok(())
    }
}

/// The vectors of a batch, none for what the model refuses; an error where the model itself is out of order.
fn codes_of(embedder: &dyn Embedder, texts: &[Wording]) -> Result<Vec<Option<Code>>, EmbedderError> {
    let is_in_order = || codes(embedder, &[PLAIN]).is_ok();
    let said: Vec<&str> = texts.iter().map(|text| text.text.as_str()).collect();
    let error = match codes(embedder, &said) {
        Ok(codes) => return Ok(codes.into_iter().map(Some).collect()),
        Err(error) => error,
    };
    if !is_in_order() {
        return Err(error);
    }
    let alone = |text: &Wording| match codes(embedder, &[&text.text]) {
        Ok(mut code) => Ok(code.pop()),
        Err(error) if is_in_order() => {
            tracing::warn!(
                capability.id = text.capability,
                capability.name = text.name,
                %error,
                "the model refuses what this capability says: it is found by its words alone"
            );
            Ok(None)
        }
        Err(error) => Err(error),
    };
    texts.iter().map(alone).collect()
}

/// What is there of this model; anything else is begun anew. A file that cannot be read now is not taken for none.
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
