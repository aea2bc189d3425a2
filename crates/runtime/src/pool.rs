//! A pool of threads that read documents, with a limit on concurrent documents, a bounded queue, and a deadline for each document.
//!
//! A thread cannot be stopped from outside. A document that is still being read at its deadline is abandoned: its caller gets an error, and
//! a new thread replaces the blocked one, up to [`STALLED_MAX`] times. If a blocked thread ends later, its slot is released.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use metrics::{counter, gauge};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::Instant;

const STALLED: &str = "agentdex_reader_stalled_threads";
const FAILED: &str = "agentdex_reader_failures_total";
/// Maximum number of blocked threads in addition to the working ones. There is a limit because each may use the memory of one document.
const STALLED_MAX: usize = 4;
/// Interval at which a caller that waits for a thread checks for overdue documents.
const OVERDUE_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Stack size of a reading thread. Documents are at most 64 levels deep, which needs an eighth of the stack in a debug build.
const STACK_BYTES: usize = 8 * 1_024 * 1_024;

/// Limits on concurrent reading and on its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderLimits {
    /// Maximum number of documents that are read at the same time.
    pub threads: usize,
    /// Maximum number of documents that wait for a thread.
    pub queue: usize,
    /// Maximum wait for a thread.
    pub queue_wait: Duration,
    /// Maximum time for one document, from the time at which its thread begins to read it.
    pub deadline: Duration,
}

impl ReaderLimits {
    /// One thread for each core, at most four: each document may need 128 MiB.
    pub fn threads_of_this_machine() -> usize {
        thread::available_parallelism().map_or(1, usize::from).min(4)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// No thread became free in time.
    #[error("too many documents are being read; try again in a moment")]
    Busy,
    /// The deadline passed; the document may never end.
    #[error("the document was not read within {} s", after.as_secs_f64())]
    TimedOut { after: Duration },
    /// The reader panicked.
    #[error("reading the document failed: {message}")]
    Panicked { message: String },
}

impl ReadError {
    /// Whether the document caused the failure and would fail again.
    pub const fn is_caused_by_document(&self) -> bool {
        matches!(self, Self::TimedOut { .. } | Self::Panicked { .. })
    }
}

type Job = Box<dyn FnOnce() -> AfterJob + Send>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterJob {
    /// Receive the next job.
    Continue,
    /// The job was abandoned, and another thread replaced this one.
    End,
}

/// The state of a job, shared by its thread and its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Reading,
    Ended,
    /// Abandoned. Another thread has replaced the blocked one.
    Replaced,
    /// Abandoned. The blocked thread occupies its slot until the job ends.
    NotReplaced,
}

/// Threads that read documents. Cheap to clone.
#[derive(Clone)]
pub struct ReaderPool(Arc<Shared>);

struct Shared {
    name: &'static str,
    limits: ReaderLimits,
    /// Whether the documents come from clients.
    is_of_clients: bool,
    sender: mpsc::Sender<Job>,
    receiver: Arc<Mutex<mpsc::Receiver<Job>>>,
    /// Number of threads that were started and not replaced.
    threads: AtomicUsize,
    /// One permit for each thread that is free or may still be started.
    free: Semaphore,
    /// One permit for each document that may be read or may wait.
    admitted: Semaphore,
    stalled: AtomicUsize,
    /// Documents whose callers were dropped, with their deadlines.
    orphaned: Mutex<Vec<(Arc<Mutex<State>>, Instant)>>,
}

impl std::fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReaderPool").field("name", &self.0.name).field("limits", &self.0.limits).finish()
    }
}

impl ReaderPool {
    /// Creates a pool. Threads are started when documents arrive. `name` is a label of metrics and the name of the threads. A document that
    /// was not read is logged as an error.
    pub fn new(name: &'static str, limits: ReaderLimits) -> Self {
        Self::with_owner(name, limits, false)
    }

    /// Creates a pool for documents of clients. Slow documents are logged at the level DEBUG, because operators cannot correct them. Panics
    /// are still logged as errors.
    pub fn of_clients(name: &'static str, limits: ReaderLimits) -> Self {
        Self::with_owner(name, limits, true)
    }

    fn with_owner(name: &'static str, limits: ReaderLimits, is_of_clients: bool) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self(Arc::new(Shared {
            name,
            limits,
            is_of_clients,
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
            threads: AtomicUsize::new(0),
            free: Semaphore::new(limits.threads),
            admitted: Semaphore::new(limits.threads + limits.queue),
            stalled: AtomicUsize::new(0),
            orphaned: Mutex::default(),
        }))
    }

    /// Runs `work` on a thread of the pool. Dropping the future discards the result, but the work continues.
    ///
    /// # Errors
    ///
    /// [`ReadError::Busy`] if no thread became free in time; other errors if the document caused the failure.
    pub async fn read<T, F>(&self, work: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let shared = &self.0;
        let admitted = shared.admitted.try_acquire().map_err(|_| ReadError::Busy)?;
        let free = shared.free_thread().await?;
        shared.start_missing_thread()?;
        // the thread releases the slot, because this future may be dropped
        free.forget();
        let (done, result) = oneshot::channel();
        let state = Arc::new(Mutex::new(State::Reading));
        shared.send(Self::job(Arc::clone(shared), Arc::clone(&state), work, done));
        let deadline = shared.limits.deadline;
        let mut waiting = Waiting { shared, job: Some((Arc::clone(&state), Instant::now() + deadline)) };
        let received = tokio::time::timeout(deadline, result).await;
        waiting.job = None;
        let outcome = match received {
            Ok(Ok(Ok(read))) => Ok(read),
            Ok(Ok(Err(panic))) => Err(ReadError::Panicked { message: message_of(panic.as_ref()) }),
            Ok(Err(_)) => Err(ReadError::Panicked { message: "its thread ended".to_owned() }),
            Err(_) => {
                shared.abandon(&state);
                Err(ReadError::TimedOut { after: deadline })
            }
        };
        drop((admitted, waiting));
        if let Err(error) = &outcome {
            counter!(FAILED, "pool" => shared.name).increment(1);
            if shared.is_of_clients && matches!(error, ReadError::TimedOut { .. }) {
                tracing::debug!(pool = shared.name, %error, "a document was not read");
            } else {
                tracing::error!(pool = shared.name, %error, "a document was not read");
            }
        }
        outcome
    }

    fn job<T, F>(
        shared: Arc<Shared>,
        state: Arc<Mutex<State>>,
        work: F,
        done: oneshot::Sender<thread::Result<T>>,
    ) -> Job
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            let after = shared.end(&state);
            // a dropped caller needs no result
            drop(done.send(result));
            after
        })
    }
}

/// A caller that waits for its document. If it is dropped, other callers of the pool enforce the deadline of the document.
struct Waiting<'a> {
    shared: &'a Shared,
    job: Option<(Arc<Mutex<State>>, Instant)>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            self.shared.orphaned.lock().unwrap_or_else(PoisonError::into_inner).push(job);
        }
    }
}

impl Shared {
    /// Waits for a free thread.
    async fn free_thread(&self) -> Result<SemaphorePermit<'_>, ReadError> {
        let until = Instant::now() + self.limits.queue_wait;
        loop {
            self.abandon_overdue();
            let wait = until.saturating_duration_since(Instant::now());
            match tokio::time::timeout(wait.min(OVERDUE_CHECK_INTERVAL), self.free.acquire()).await {
                Ok(permit) => return permit.map_err(|_| ReadError::Busy),
                Err(_) if wait.is_zero() => return Err(ReadError::Busy),
                Err(_) => {}
            }
        }
    }

    /// Abandons documents that are past their deadlines and whose callers were dropped.
    fn abandon_overdue(&self) {
        let mut orphaned = self.orphaned.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        orphaned.retain(|(state, deadline)| {
            let is_overdue = *deadline <= now;
            if is_overdue {
                self.abandon(state);
            }
            !is_overdue && *state.lock().unwrap_or_else(PoisonError::into_inner) == State::Reading
        });
    }

    fn send(&self, job: Job) {
        // the receiver lives as long as `self`
        drop(self.sender.send(job));
    }

    /// Starts one more thread if there are fewer than the limit.
    fn start_missing_thread(&self) -> Result<(), ReadError> {
        let one_more = |started| (started < self.limits.threads).then_some(started + 1);
        let Ok(started) = self.threads.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) else {
            return Ok(());
        };
        match self.add_thread() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.threads.fetch_sub(1, Ordering::Relaxed);
                tracing::error!(pool = self.name, %error, "a thread cannot be started");
                if started > 0 { Ok(()) } else { Err(ReadError::Busy) }
            }
        }
    }

    fn add_thread(&self) -> io::Result<()> {
        let receiver = Arc::clone(&self.receiver);
        let thread = thread::Builder::new().name(self.name.to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || work_until_closed(&receiver)).map(drop)
    }

    /// Abandons a job whose deadline has passed.
    fn abandon(&self, state: &Mutex<State>) {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state != State::Reading {
            return;
        }
        let stalled = self.stalled.fetch_add(1, Ordering::Relaxed) + 1;
        record_stalled(self.name, stalled);
        let is_replaced = stalled <= STALLED_MAX && self.add_thread().is_ok();
        *state = if is_replaced { State::Replaced } else { State::NotReplaced };
        if is_replaced {
            self.free.add_permits(1);
        }
    }

    /// A job has ended.
    fn end(&self, state: &Mutex<State>) -> AfterJob {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *state, State::Ended);
        if matches!(before, State::Replaced | State::NotReplaced) {
            let stalled = self.stalled.fetch_sub(1, Ordering::Relaxed) - 1;
            record_stalled(self.name, stalled);
        }
        if before == State::Replaced {
            return AfterJob::End;
        }
        self.free.add_permits(1);
        AfterJob::Continue
    }
}

fn work_until_closed(receiver: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if job() == AfterJob::End {
            return;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; there are few threads")]
fn record_stalled(pool: &'static str, stalled: usize) {
    gauge!(STALLED, "pool" => pool).set(stalled as f64);
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
