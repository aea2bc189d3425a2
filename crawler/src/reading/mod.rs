//! Reads documents for visits: off the async runtime, under a deadline, and never twice where one ended a reader.
//!
//! Before a document is read, the attempt is written to the store; afterwards it is removed. A document whose attempt was
//! not removed is read once more in a process with limits of the operating system, and quarantined when that process ends
//! without an answer. A document that passes its deadline, or panics its reader, is quarantined at once.

mod attempts;
mod document;
mod program;

use std::sync::Arc;
use std::time::Duration;

use manifest::{ContentHash, Manifest, READER_VERSION, SiteName};
use policy::quarantine::{self, Attempt, ReadDecision};
use runtime::{ReadError, ReaderLimits, ReaderPool};
use store::{EarlierAttempt, ReadAttempt, ReadAttemptWrite, Store, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use self::attempts::Attempts;
pub(crate) use self::document::OwnedDocument;
pub use self::program::{ReaderProgram, read_from_stdin};
use crate::clock;
use crate::gather::Gatherer;

/// Longest time for one document. The largest one takes a second of processor time in a release build; the rest is for
/// busy machines.
const DEADLINE: Duration = Duration::from_secs(20);
/// Longest wait for a thread. A visit waits rather than to lose what it fetched.
const QUEUE_WAIT: Duration = Duration::from_mins(2);
/// Documents that may wait for a thread: more than there are visits at once on any machine that this was tried on.
const QUEUE_MAX: usize = 100_000;

/// Documents up to this length need no permit: 256 visits hold a few hundred of them.
const SMALL_DOCUMENT_BYTES: usize = 64 * 1_024;
/// What a document and its manifest occupy until the visit is saved, for each byte of the document. Measured over the hostile
/// documents of `manifest`, which reach five.
const MEMORY_FACTOR: usize = 6;
/// One permit stands for so many bytes.
const PERMIT_BYTES: usize = 64 * 1_024;
/// Memory for the documents that all visits of this process hold: 512 MiB, five of the largest documents.
const PERMITS: usize = 512 * 1_024 * 1_024 / PERMIT_BYTES;
/// Longest wait for memory. Visits that hold some may wait for more, so that none may wait for ever.
const MEMORY_WAIT: Duration = Duration::from_secs(30);

/// What reading a document came to.
#[derive(Debug)]
pub(crate) enum Reading {
    /// The manifest; any document becomes one, however malformed.
    Read(Box<Manifest>),
    /// The document is quarantined, for this reason.
    Quarantined(String),
}

/// Reads documents. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reader {
    pool: ReaderPool,
    attempts: Gatherer<Attempts>,
    program: Option<ReaderProgram>,
    memory: Arc<Semaphore>,
    memory_wait: Duration,
}

/// Memory for the large documents that a visit holds; given back when it is dropped.
pub(crate) type Held = Vec<OwnedSemaphorePermit>;

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
            attempts: Gatherer::start(&Attempts(store), tracker),
            program,
            memory: Arc::new(Semaphore::new(PERMITS)),
            memory_wait: MEMORY_WAIT,
        }
    }

    /// Reads a document that a visit of `site` fetched.
    ///
    /// # Errors
    ///
    /// Only where the store refuses the attempt, or every thread is blocked for longer than [`QUEUE_WAIT`].
    pub(crate) async fn read(
        &self,
        site: &SiteName,
        document: Arc<OwnedDocument>,
    ) -> Result<Reading, StoreError> {
        let attempt = ReadAttempt {
            hash: document.hash(),
            reader_version: READER_VERSION,
            site: site.clone(),
            url: document.url.clone(),
            began_at: clock::now(),
        };
        let earlier = self.attempts.write(ReadAttemptWrite::Begin(attempt.clone())).await?;
        match quarantine::decide(earlier.as_ref().map(|earlier| seen(earlier, site)), clock::now()) {
            ReadDecision::Skip(reason) => Ok(Reading::Quarantined(reason)),
            ReadDecision::Verify => self.verify(attempt, document).await,
            ReadDecision::ReadBeside => self.read_here(attempt, document, false).await,
            ReadDecision::Read => self.read_here(attempt, document, true).await,
        }
    }

    /// Memory for a document of this length, to be held until its visit is saved. `None` when other visits hold too much for
    /// too long.
    pub(crate) async fn hold(&self, bytes: usize) -> Option<Held> {
        if bytes <= SMALL_DOCUMENT_BYTES {
            return Some(Held::new());
        }
        let permits = (bytes * MEMORY_FACTOR).div_ceil(PERMIT_BYTES).min(PERMITS);
        let permits = Arc::clone(&self.memory).acquire_many_owned(u32::try_from(permits).unwrap_or(u32::MAX));
        let acquired = tokio::time::timeout(self.memory_wait, permits).await;
        acquired.ok()?.ok().map(|permits| vec![permits])
    }

    /// Runs one piece of reading that is no document, such as the links of a page.
    ///
    /// # Errors
    ///
    /// When it was not done in time, or no thread became free.
    pub(crate) async fn run<T, F>(&self, work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.pool.read(work).await
    }

    async fn read_here(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
        is_written: bool,
    ) -> Result<Reading, StoreError> {
        match self.pool.read(move || document.read()).await {
            Ok(manifest) => {
                if is_written {
                    self.end(attempt.hash).await?;
                }
                Ok(Reading::Read(Box::new(manifest)))
            }
            Err(error) if error.blames_document() => self.quarantine(attempt, error.to_string()).await,
            Err(error @ (ReadError::Busy | ReadError::TimedOut { .. } | ReadError::Panicked { .. })) => {
                if is_written {
                    self.end(attempt.hash).await?;
                }
                Err(StoreError::Unstorable { what: "document", reason: error.to_string() })
            }
        }
    }

    /// Reads a document whose earlier reader did not end, in a process of its own.
    async fn verify(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
    ) -> Result<Reading, StoreError> {
        let Some(program) = &self.program else {
            return self.quarantine(attempt, "reading it did not end".to_owned()).await;
        };
        match program.read(&document, DEADLINE).await {
            Ok(manifest) => {
                self.end(attempt.hash).await?;
                Ok(Reading::Read(Box::new(manifest)))
            }
            Err(reason) => self.quarantine(attempt, reason).await,
        }
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

fn seen<'a>(earlier: &'a EarlierAttempt, site: &SiteName) -> Attempt<'a> {
    Attempt {
        is_of_same_site: earlier.site == *site,
        began_at: earlier.began_at,
        quarantined: earlier.quarantined.as_deref(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use manifest::model::Served;
    use manifest::{Discovery, ManifestUrl};

    use super::*;

    struct Desk {
        reader: Reader,
        _dir: tempfile::TempDir,
    }

    async fn desk(deadline: Duration, program: Option<&str>) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let program = program.map(|path| ReaderProgram { path: PathBuf::from(path), arguments: Vec::new() });
        let reader = Reader::start(store, program, &TaskTracker::new());
        let limits = ReaderLimits { threads: 1, queue: 8, queue_wait: DEADLINE, deadline };
        Desk { reader: Reader { pool: ReaderPool::new("test", limits), ..reader }, _dir: dir }
    }

    fn document(host: &str, text: &str) -> Arc<OwnedDocument> {
        Arc::new(OwnedDocument {
            bytes: text.as_bytes().to_vec(),
            url: ManifestUrl::parse(&format!("https://{host}/agent.json")).unwrap(),
            final_url: None,
            discovery: Discovery::Root,
            served: Served::default(),
            linked: Vec::new(),
        })
    }

    async fn read(desk: &Desk, host: &str, text: &str) -> Reading {
        desk.reader.read(&SiteName::parse(host).unwrap(), document(host, text)).await.unwrap()
    }

    fn reason(reading: Reading) -> String {
        match reading {
            Reading::Quarantined(reason) => reason,
            Reading::Read(manifest) => panic!("read: {:?}", manifest.detection),
        }
    }

    #[tokio::test]
    async fn quarantines_a_document_that_passes_its_deadline_on_every_site() {
        let slow = format!(r#"{{"awp_version":"0.1","x":[{}0]}}"#, "0,".repeat(100_000));
        let stalled = desk(Duration::from_micros(1), None).await;
        let first = reason(read(&stalled, "a.example", &slow).await);
        assert!(first.contains("not read within"), "{first}");
        let elsewhere = reason(read(&stalled, "b.example", &slow).await);
        assert_eq!(elsewhere, first, "it is not read a second time");
    }

    #[tokio::test]
    async fn visits_hold_large_documents_up_to_a_sum_and_small_ones_without_one() {
        let mut desk = desk(DEADLINE, None).await;
        desk.reader.memory_wait = Duration::from_millis(20);
        let mut held = Vec::new();
        while let Some(memory) = desk.reader.hold(manifest::DOCUMENT_BYTES_MAX).await {
            held.push(memory);
        }
        assert_eq!(held.len(), 5);
        assert!(desk.reader.hold(SMALL_DOCUMENT_BYTES).await.is_some());
        held.pop();
        assert!(desk.reader.hold(manifest::DOCUMENT_BYTES_MAX).await.is_some());
    }

    #[tokio::test]
    async fn reads_the_same_document_again_and_again_while_it_ends() {
        let desk = desk(DEADLINE, None).await;
        for host in ["a.example", "a.example", "b.example"] {
            assert!(matches!(read(&desk, host, r#"{"awp_version":"0.1"}"#).await, Reading::Read(_)));
        }
    }

    #[tokio::test]
    async fn a_second_reader_that_cannot_run_or_never_ends_quarantines() {
        for (program, deadline, said) in [
            ("/nonexistent/program", DEADLINE, "no second reader ran"),
            ("/bin/false", DEADLINE, "ended without an answer"),
        ] {
            let desk = desk(deadline, Some(program)).await;
            let document = document("a.example", "{}");
            let attempt = ReadAttempt {
                hash: document.hash(),
                reader_version: READER_VERSION,
                site: SiteName::parse("a.example").unwrap(),
                url: document.url.clone(),
                began_at: clock::now(),
            };
            desk.reader.attempts.write(ReadAttemptWrite::Begin(attempt)).await.unwrap();
            let reason = reason(read(&desk, "a.example", "{}").await);
            assert!(reason.contains(said), "{reason}");
        }
        let sleeper = ReaderProgram { path: PathBuf::from("/bin/sleep"), arguments: vec!["1000".to_owned()] };
        let read = sleeper.read(&document("a.example", "{}"), Duration::from_millis(50)).await;
        assert!(read.unwrap_err().contains("second reader did not end"));
    }
}
