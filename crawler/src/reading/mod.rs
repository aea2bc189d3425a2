//! Reads documents for visits: off the async runtime, under a deadline, and never again after one crashed a reader.
//!
//! Before a document is read, the attempt is written to the store; afterwards it is removed. A document whose attempt was
//! not removed, that passes its deadline or panics its reader, is read once more in a process with limits of the operating
//! system, and quarantined if that process ends without a result.

mod attempts;
mod document;
mod memory;
mod program;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Manifest, READER_VERSION, SiteName};
use policy::quarantine::{self, Attempt, ReadDecision};
use runtime::{ReadError, ReaderLimits, ReaderPool};
use store::{EarlierAttempt, ReadAttempt, ReadAttemptWrite, Store, StoreError};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use self::attempts::Attempts;
pub(crate) use self::document::OwnedDocument;
use self::memory::MEMORY_WAIT;
pub(crate) use self::memory::{HeldMemory, MemoryBudget, NoMemory};
use self::program::Unread;
pub use self::program::{ReaderProgram, read_from_stdin};
use crate::batcher::Batcher;
use crate::clock;

/// Longest time for one document. The largest one takes a second of processor time in a release build; the rest is for
/// busy machines.
const DEADLINE: Duration = Duration::from_secs(20);
/// Longest wait for a thread. A visit waits rather than lose what it fetched.
const QUEUE_WAIT: Duration = Duration::from_mins(2);
/// Documents that may wait for a thread: more than the concurrent visits on any machine that was tested.
const QUEUE_MAX: usize = 100_000;

/// Timeout of a second reader, which may have to share the machine; its processor time has a separate limit.
const VERIFY_DEADLINE: Duration = Duration::from_mins(1);

/// The result of reading a document.
#[derive(Debug)]
pub(crate) enum Reading {
    /// Any document becomes a manifest, however malformed.
    Read {
        manifest: Box<Manifest>,
        /// About how much memory it takes.
        memory_bytes: usize,
    },
    /// The document is quarantined, for this reason.
    Quarantined(String),
}

/// Why a document was not read; never because of the document.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadingError {
    /// This machine has no room for it now.
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
    /// Approximate start of reading in this process.
    began_at: DateTime<Utc>,
    pub(crate) memory: MemoryBudget,
    /// Second readers at the same time.
    verifiers: Arc<Semaphore>,
}

/// The worker of the attempt that is stored while a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
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
            began_at: clock::now(),
            memory: MemoryBudget::new(MEMORY_WAIT),
            verifiers: Arc::new(Semaphore::new(limits.threads)),
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
    /// Only where the store refuses the attempt, or this machine has no room: every thread is blocked for longer than
    /// [`QUEUE_WAIT`], or no second reader can be run.
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
            ReadDecision::ReadConcurrently => self.read_here(attempt, document, Row::OfAnother).await,
            ReadDecision::Read => self.read_here(attempt, document, Row::Own).await,
        }
    }

    /// Parses other input than a document, such as the links of a page.
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

    /// The same, but short work runs on the current thread, since another thread would take longer.
    ///
    /// # Errors
    ///
    /// As of [`Self::run`].
    pub(crate) async fn run_unless_short<T, F>(&self, is_short: bool, work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        if is_short { Ok(work()) } else { Box::pin(self.run(work)).await }
    }

    async fn read_here(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
        row: Row,
    ) -> Result<Reading, ReadingError> {
        let reading = Arc::clone(&document);
        match self.pool.read(move || reading.read_measured()).await {
            Ok((manifest, memory_bytes)) => {
                if row == Row::Own {
                    self.end(attempt.hash).await?;
                }
                Ok(Reading::Read { manifest: Box::new(manifest), memory_bytes })
            }
            // a separate process shows whether the document or a stalled machine is the cause
            Err(error) if error.is_caused_by_document() => {
                tracing::warn!(url = %attempt.url, %error, "a document is read again in a separate process");
                self.verify(attempt, document).await
            }
            Err(error) => {
                if row == Row::Own {
                    self.end(attempt.hash).await?;
                }
                Err(ReadingError::Busy(error.to_string()))
            }
        }
    }

    /// Reads a document whose reader did not finish, in a separate process.
    async fn verify(
        &self,
        attempt: ReadAttempt,
        document: Arc<OwnedDocument>,
    ) -> Result<Reading, ReadingError> {
        let Some(program) = &self.program else {
            return Ok(self.quarantine(attempt, "reading it did not end".to_owned()).await?);
        };
        let permit = self.verifiers.acquire().await;
        let verified = program.read(&document, VERIFY_DEADLINE, &self.pool).await;
        drop(permit);
        match verified {
            Ok((manifest, memory_bytes)) => {
                self.end(attempt.hash).await?;
                Ok(Reading::Read { manifest: Box::new(manifest), memory_bytes })
            }
            Err(Unread::Document(reason)) => Ok(self.quarantine(attempt, reason).await?),
            Err(Unread::Process(reason)) => {
                tracing::warn!(url = %attempt.url, reason, "a document is read later");
                Err(ReadingError::Busy(reason))
            }
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
mod tests {
    use std::path::PathBuf;

    use manifest::model::Served;
    use manifest::{Discovery, ManifestUrl};

    use super::*;

    struct Fixture {
        reader: Reader,
        _dir: tempfile::TempDir,
    }

    async fn fixture(deadline: Duration, program: Option<&str>) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let program = program.map(|path| ReaderProgram { path: PathBuf::from(path), arguments: Vec::new() });
        let reader = Reader::start(store, program, &TaskTracker::new());
        let limits = ReaderLimits { threads: 1, queue: 8, queue_wait: DEADLINE, deadline };
        Fixture { reader: Reader { pool: ReaderPool::new("test", limits), ..reader }, _dir: dir }
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

    async fn read(fixture: &Fixture, host: &str, text: &str) -> Reading {
        fixture.reader.read(&SiteName::parse(host).unwrap(), document(host, text)).await.unwrap()
    }

    fn reason(reading: Reading) -> String {
        match reading {
            Reading::Quarantined(reason) => reason,
            Reading::Read { manifest, .. } => panic!("read: {:?}", manifest.detection),
        }
    }

    #[tokio::test]
    async fn quarantines_a_document_that_passes_its_deadline_on_every_site() {
        let slow = format!(r#"{{"awp_version":"0.1","x":[{}0]}}"#, "0,".repeat(100_000));
        let stalled = fixture(Duration::from_micros(1), None).await;
        let first = reason(read(&stalled, "a.example", &slow).await);
        assert!(first.contains("did not end"), "{first}");
        let elsewhere = reason(read(&stalled, "b.example", &slow).await);
        assert_eq!(elsewhere, first, "it is not read a second time");
    }

    #[tokio::test]
    async fn reads_a_document_repeatedly_while_it_succeeds() {
        let fixture = fixture(DEADLINE, None).await;
        for host in ["a.example", "a.example", "b.example"] {
            assert!(matches!(read(&fixture, host, r#"{"awp_version":"0.1"}"#).await, Reading::Read { .. }));
        }
    }

    #[tokio::test]
    async fn quarantines_when_a_second_reader_fails_or_hangs() {
        for (program, deadline, expected) in [("/bin/false", DEADLINE, "ended without an answer")] {
            let fixture = fixture(deadline, Some(program)).await;
            let document = document("a.example", "{}");
            let attempt = ReadAttempt {
                hash: document.hash(),
                reader_version: READER_VERSION,
                site: SiteName::parse("a.example").unwrap(),
                url: document.url.clone(),
                began_at: clock::now(),
            };
            fixture.reader.attempts.write(ReadAttemptWrite::Begin(attempt)).await.unwrap();
            let reason = reason(read(&fixture, "a.example", "{}").await);
            assert!(reason.contains(expected), "{reason}");
        }
        let pool = fixture(DEADLINE, None).await.reader.pool;
        let missing = ReaderProgram { path: PathBuf::from("/nonexistent/program"), arguments: Vec::new() };
        let read = missing.read(&document("a.example", "{}"), DEADLINE, &pool).await;
        assert!(matches!(read, Err(Unread::Process(_))), "that says nothing of the document");
        let sleeper = ReaderProgram { path: PathBuf::from("/bin/sleep"), arguments: vec!["1000".to_owned()] };
        let read = sleeper.read(&document("a.example", "{}"), Duration::from_millis(50), &pool).await;
        assert!(
            matches!(read, Err(Unread::Document(reason)) if reason.contains("second reader did not end"))
        );
    }

    /// Occupies the only thread of a pool until the sender is dropped.
    fn occupy(reader: &Reader) -> std::sync::mpsc::Sender<()> {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (pool, tracker) = (reader.pool.clone(), TaskTracker::new());
        tracker.spawn(async move { pool.read(move || released.recv().ok()).await });
        release
    }

    #[tokio::test]
    async fn does_long_work_on_the_reader_threads() {
        let Fixture { reader, .. } = fixture(DEADLINE, None).await;
        let release = occupy(&reader);
        tokio::task::yield_now().await;
        assert_eq!(reader.run_unless_short(true, || 1).await.unwrap(), 1);
        let mut long = std::pin::pin!(reader.run_unless_short(false, || 2));
        let waits = tokio::time::timeout(Duration::from_millis(50), &mut long).await;
        assert!(waits.is_err(), "the thread is occupied");
        drop(release);
        assert_eq!(long.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_document_is_read_later_while_the_threads_are_busy() {
        let fixture = fixture(DEADLINE, None).await;
        let limits = ReaderLimits { threads: 1, queue: 0, queue_wait: Duration::ZERO, deadline: DEADLINE };
        let busy = Fixture { reader: fixture.reader.with_limits(limits), ..fixture };
        let release = occupy(&busy.reader);
        tokio::task::yield_now().await;
        let site = SiteName::parse("a.example").unwrap();
        let refused = busy.reader.read(&site, document("a.example", "{}")).await;
        assert!(matches!(refused, Err(ReadingError::Busy(_))), "{refused:?}");
        drop(release);
        let again = Fixture { reader: fixture.reader, ..busy };
        assert!(matches!(read(&again, "a.example", "{}").await, Reading::Read { .. }), "not quarantined");
    }

    #[tokio::test]
    async fn caps_the_answer_of_a_second_reader_and_parses_it_on_reader_threads() {
        let Fixture { reader, _dir: dir } = fixture(DEADLINE, None).await;
        let document = document("a.example", r#"{"awp_version":"0.1"}"#);
        let answer = dir.path().join("answer.json");
        std::fs::write(&answer, serde_json::to_vec(&document.read()).unwrap()).unwrap();
        let arguments = vec![answer.to_string_lossy().into_owned()];
        let second = ReaderProgram { path: PathBuf::from("/bin/cat"), arguments };
        let release = occupy(&reader);
        tokio::task::yield_now().await;
        let mut read = std::pin::pin!(second.read(&document, DEADLINE, &reader.pool));
        assert!(tokio::time::timeout(Duration::from_millis(300), &mut read).await.is_err());
        drop(release);
        let (manifest, _) = read.await.unwrap();
        assert_eq!(manifest.url, document.url);

        let endless = ReaderProgram { path: PathBuf::from("/usr/bin/yes"), arguments: Vec::new() };
        let read = endless.read(&document, DEADLINE, &reader.pool).await;
        assert!(
            matches!(&read, Err(Unread::Document(reason)) if reason.contains("answered more than 80 MiB")),
            "{read:?}"
        );
    }
}
