//! Reads documents for visits: off the async runtime, under a deadline, and never again after one crashed a reader.
//!
//! Documents of more than a few KiB are read in a process with limits of the operating system, so that no document takes the memory of the
//! crawler. Before a document is read, the attempt is written to the store; afterwards it is removed. A document whose attempt was not
//! removed, that misses its deadline, or that ends its reader is read once more in such a process, and quarantined if that process ends
//! without a result. The operating system ends the process at its limit of processor time. So if the process misses the deadline instead,
//! the machine is busy, and the document is read later.

mod attempts;
mod memory;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Manifest, READER_VERSION, SiteName};
use policy::quarantine::{self, Attempt, ReadDecision};
use runtime::{OwnedDocument, ReadError, ReaderLimits, ReaderPool, ReaderProgram, Unread, read_isolated};
use store::{EarlierAttempt, ReadAttempt, ReadAttemptWrite, Store, StoreError};
use tokio_util::task::TaskTracker;

use self::attempts::Attempts;
use self::memory::MEMORY_WAIT;
pub(crate) use self::memory::{HeldMemory, MemoryBudget, NoMemory};
use crate::batcher::Batcher;
use crate::clock;

/// Maximum time for one document. The largest document takes one second of processor time in a release build; the rest is a margin for busy
/// machines.
const DEADLINE: Duration = Duration::from_secs(20);
/// Maximum wait for a thread. Waiting is better than losing a document that was fetched.
const QUEUE_WAIT: Duration = Duration::from_mins(2);
/// Maximum number of documents that may wait for a thread: more than the concurrent visits on any machine that was tested. Their memory is
/// bounded by [`MemoryBudget`], from which a visit takes memory before it reads a document.
const QUEUE_MAX: usize = 100_000;
/// Maximum number of failed inputs that are remembered. If there are more, all are forgotten.
const FAILED_MAX: usize = 10_000;

/// The result of reading a document.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The document was read. Even a malformed document results in a manifest.
    Read {
        manifest: Box<Manifest>,
        /// Approximate memory of the manifest.
        memory_bytes: usize,
    },
    /// The document is quarantined, for this reason.
    Quarantined(String),
}

/// Why a document was not read. The cause is never the document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadingError {
    /// This machine has no capacity for it now.
    #[error("{0}")]
    Busy(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads documents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reader {
    pool: ReaderPool,
    attempts: Batcher<Attempts>,
    program: Option<ReaderProgram>,
    failed: FailedInputs,
    /// Approximate start of reading in this process.
    began_at: DateTime<Utc>,
    pub(crate) memory: MemoryBudget,
}

/// Hashes of pages and robots.txt files that missed the deadline or failed in this process.
#[derive(Clone, Default)]
struct FailedInputs(Arc<Mutex<HashSet<ContentHash>>>);

impl FailedInputs {
    fn contains(&self, bytes: &[u8]) -> bool {
        let hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // usually there are none, so do not compute the hash
        !hashes.is_empty() && hashes.contains(&ContentHash::of(bytes))
    }

    fn insert(&self, bytes: &[u8]) {
        let mut hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if hashes.len() == FAILED_MAX {
            hashes.clear();
        }
        hashes.insert(ContentHash::of(bytes));
    }
}

/// Where a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// On a thread if the document is short or there is no reader program, otherwise in a process.
    ThreadOrProcess,
    /// Always in a process, whose processor time is limited.
    Process,
}

/// The worker of the attempt that is stored while a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptOwner {
    Own,
    OfAnother,
}

impl Reader {
    /// Without a `program`, a document whose reader did not end is quarantined unverified.
    pub(crate) fn start(store: Store, program: Option<ReaderProgram>, tracker: &TaskTracker) -> Self {
        let limits = ReaderLimits {
            threads: ReaderLimits::threads_of_this_machine(),
            queue: QUEUE_MAX,
            queue_wait: QUEUE_WAIT,
            deadline: DEADLINE,
        };
        let pool = ReaderPool::new("crawler-reader", limits);
        Self {
            pool,
            attempts: Batcher::start(&Attempts(store), tracker),
            program,
            failed: FailedInputs::default(),
            began_at: clock::now(),
            memory: MemoryBudget::new(MEMORY_WAIT),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_limits(&self, limits: ReaderLimits) -> Self {
        Self { pool: ReaderPool::new("test", limits), ..self.clone() }
    }

    /// Reads a document that a visit of `site` fetched.
    ///
    /// # Errors
    ///
    /// Only if the store refuses the attempt, or this machine has no capacity: all threads are busy for longer than [`QUEUE_WAIT`], or a
    /// second reader cannot be started.
    pub(crate) async fn read(
        &self,
        site: &SiteName,
        document: Arc<OwnedDocument>,
    ) -> Result<Reading, ReadingError> {
        let attempt = ReadAttempt {
            hash: document.hash(),
            reader_version: READER_VERSION,
            site: site.clone(),
            url: document.url.clone(),
            began_at: clock::now(),
        };
        let earlier = self.attempts.write(ReadAttemptWrite::Begin(attempt.clone())).await?;
        let earlier = earlier.as_ref().map(|earlier| seen(earlier, &attempt));
        match quarantine::decide(earlier, self.began_at, clock::now()) {
            ReadDecision::Skip(reason) => Ok(Reading::Quarantined(reason)),
            ReadDecision::Verify => self.verify(attempt, document).await,
            ReadDecision::ReadConcurrently => {
                self.read_here(attempt, document, AttemptOwner::OfAnother).await
            }
            ReadDecision::Read => self.read_here(attempt, document, AttemptOwner::Own).await,
        }
    }

    /// Parses input other than a document, such as the links of a page.
    ///
    /// # Errors
    ///
    /// If the work was not done in time, or no thread became free.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.pool.read(work).await
    }

    /// Runs work on a thread of the pool, but short work on the current thread, because passing it to another thread would take longer.
    ///
    /// # Errors
    ///
    /// If the work was not done in time, or no thread became free.
    pub(crate) async fn run_unless_short<T, F>(&self, is_short: bool, work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        if is_short { Ok(work()) } else { Box::pin(self.run(work)).await }
    }

    /// Parses a page or a robots.txt. If the same bytes have missed the deadline or failed to parse before, this process returns an error
    /// immediately, so that they do not block a thread in each visit.
    ///
    /// # Errors
    ///
    /// If the work was not done in time, or no thread became free.
    pub(crate) async fn run_unless_failed<T, F>(&self, bytes: &[u8], work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        if self.failed.contains(bytes) {
            let message = "an earlier attempt to read the same bytes failed".to_owned();
            return Err(ReadError::Panicked { message });
        }
        let done = Box::pin(self.run(work)).await;
        if done.as_ref().is_err_and(ReadError::is_caused_by_document) {
            self.failed.insert(bytes);
        }
        done
    }

    async fn read_here(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
        owner: AttemptOwner,
    ) -> Result<Reading, ReadingError> {
        let (program, reading) = (self.program.clone(), Arc::clone(&document));
        match self
            .read_in(Isolation::ThreadOrProcess, move || read_isolated(program.as_ref(), &reading))
            .await
        {
            Ok(read) => {
                if owner == AttemptOwner::Own {
                    self.end(attempt.hash).await?;
                }
                Ok(read)
            }
            // a second attempt shows whether the document or a stalled machine is the cause
            Err(Unread::Document(error)) => {
                tracing::warn!(url = %attempt.url, error, "a document is read a second time");
                self.verify(attempt, document).await
            }
            Err(Unread::Process(error)) => {
                if owner == AttemptOwner::Own {
                    self.end(attempt.hash).await?;
                }
                Err(ReadingError::Busy(error))
            }
        }
    }

    /// Reads a document in a separate process, after its first reader did not finish.
    async fn verify(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
    ) -> Result<Reading, ReadingError> {
        let Some(program) = self.program.clone() else {
            return Ok(self.quarantine(attempt, "reading it did not end".to_owned()).await?);
        };
        match self.read_in(Isolation::Process, move || program.read(&document)).await {
            Ok(read) => {
                self.end(attempt.hash).await?;
                Ok(read)
            }
            Err(Unread::Document(reason)) => Ok(self.quarantine(attempt, reason).await?),
            Err(Unread::Process(reason)) => {
                tracing::warn!(url = %attempt.url, reason, "a document is read later");
                Err(ReadingError::Busy(reason))
            }
        }
    }

    /// Reads on a thread of the pool.
    async fn read_in(
        &self,
        isolation: Isolation,
        read: impl FnOnce() -> Result<Manifest, Unread> + Send + 'static,
    ) -> Result<Reading, Unread> {
        let measured = move || {
            read().map(|manifest| {
                let memory_bytes = manifest::budget::manifest_bytes(&manifest);
                Reading::Read { manifest: Box::new(manifest), memory_bytes }
            })
        };
        self.pool.read(measured).await.map_err(|error| {
            let reason = error.to_string();
            let is_late_process =
                isolation == Isolation::Process && matches!(error, ReadError::TimedOut { .. });
            if error.is_caused_by_document() && !is_late_process {
                Unread::Document(reason)
            } else {
                Unread::Process(reason)
            }
        })?
    }

    async fn end(&self, hash: ContentHash) -> Result<(), StoreError> {
        self.attempts.write(ReadAttemptWrite::End { hash }).await.map(drop)
    }

    async fn quarantine(&self, attempt: ReadAttempt, reason: String) -> Result<Reading, StoreError> {
        let at = clock::now();
        let url = attempt.url.clone();
        let reason = format!("quarantined on {}: {reason}", at.format("%Y-%m-%d %H:%M UTC"));
        tracing::error!(%url, reason, "a document is skipped until it changes");
        self.attempts.write(ReadAttemptWrite::Quarantine { attempt, at, reason: reason.clone() }).await?;
        Ok(Reading::Quarantined(reason))
    }
}

/// Times are stored in milliseconds.
fn seen<'a>(earlier: &'a EarlierAttempt, attempt: &ReadAttempt) -> Attempt<'a> {
    let is_same_time = earlier.began_at.timestamp_millis() == attempt.began_at.timestamp_millis();
    let is_of_same_site = earlier.site == attempt.site;
    Attempt {
        is_own: is_of_same_site && is_same_time,
        is_of_same_site,
        began_at: earlier.began_at,
        quarantined: earlier.quarantined.as_deref(),
    }
}

#[cfg(test)]
mod tests;
