//! Threads that read the documents of clients, so that a slow document can delay other documents but never a search. Documents of more than
//! a few KiB are read in a separate process under resource limits of the operating system.
//!
//! Clients get the threads in turn (see `fair_permits`), so a new client waits only for the documents that are being read, however many
//! documents other clients have queued. The number of waiting documents is bounded by the limit on requests, and their bytes by the limit
//! on buffered bytes.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use manifest::Manifest;
use runtime::{
    OwnedDocument, ReadError, ReaderLimits, ReaderPool, ReaderProgram, Share, Shares, Unread, read_isolated,
};
use tokio_util::task::TaskTracker;

use crate::client::Client;
use crate::fair_permits::{FairPermits, Permit};
use crate::overload::capacity_problem;
use crate::problem::Problem;

/// Cores per concurrently read document, so that half of the cores are left for searches.
const CORES_PER_DOCUMENT: usize = 2;
/// Maximum number of documents of one client that are read or wait.
const CLIENT_DOCUMENTS_MAX: usize = 4;
/// Maximum wait for a thread: longer than one document takes. Together with `DEADLINE`, the time limit of one document, it is below the
/// deadline of a request.
const QUEUE_WAIT: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(4);

/// The threads that read the documents of clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct DocumentReaders {
    pool: ReaderPool,
    /// One for each thread of the pool.
    permits: FairPermits,
    shares: Arc<Shares>,
    reading: TaskTracker,
    reader: DocumentReader,
}

/// Reads a document on the current thread or in a process. Blocking.
#[derive(Debug, Clone)]
pub(crate) struct DocumentReader(Option<ReaderProgram>);

impl DocumentReader {
    pub(crate) fn read(&self, document: &OwnedDocument) -> Result<Manifest, Problem> {
        read_isolated(self.0.as_ref(), document).map_err(|error| match error {
            Unread::Document(_) => Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string()),
            Unread::Process(_) => Problem::internal(&error),
        })
    }
}

impl DocumentReaders {
    pub(crate) fn for_this_machine(program: Option<ReaderProgram>) -> Self {
        let threads = (ReaderLimits::threads_of_this_machine() / CORES_PER_DOCUMENT).max(1);
        Self::new(threads, program)
    }

    fn new(threads: usize, program: Option<ReaderProgram>) -> Self {
        // Documents wait for a permit, and not in the pool.
        let limits = ReaderLimits { threads, queue: 0, queue_wait: Duration::ZERO, deadline: DEADLINE };
        Self {
            pool: ReaderPool::of_clients("api-validation", limits),
            permits: FairPermits::new(threads),
            shares: Shares::new(usize::MAX, CLIENT_DOCUMENTS_MAX),
            reading: TaskTracker::new(),
            reader: DocumentReader(program),
        }
    }

    /// The reader to use inside the closure that [`Self::run`] runs.
    pub(crate) fn reader(&self) -> DocumentReader {
        self.reader.clone()
    }

    /// Reads one document on a reader thread. It counts towards the limit of its client until it is read, or until the request is dropped
    /// before reading begins.
    pub(crate) async fn run<T, F>(&self, client: Client, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.turn(client).await?.read(read).await
    }

    /// Waits until it is the client's turn and a thread is free.
    async fn turn(&self, client: Client) -> Result<ReaderTurn<'_>, Problem> {
        let share =
            self.shares.take(client.address, 1).map_err(|full| capacity_problem("documents", full))?;
        let permit = tokio::time::timeout(QUEUE_WAIT, self.permits.acquire(client.address, 1));
        let permit = permit.await.map_err(|_| too_many_waiting())?;
        let permit = permit.map_err(|error| Problem::internal(&error))?;
        Ok(ReaderTurn { readers: self, share, permit })
    }
}

fn too_many_waiting() -> Problem {
    Problem::unavailable("too many documents are waiting to be read; try again in a moment")
}

/// A thread for one document of a client.
struct ReaderTurn<'r> {
    readers: &'r DocumentReaders,
    share: Share,
    permit: Permit,
}

impl ReaderTurn<'_> {
    /// Reads the document on the thread.
    async fn read<T, F>(self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let Self { readers, share, permit } = self;
        let counted = move || {
            let answer = read();
            drop(share);
            answer
        };
        let pool = readers.pool.clone();
        // A separate task, so that the permit is returned when the thread is free, not when the client disconnects.
        let reading = readers.reading.spawn(async move {
            let outcome = pool.read(counted).await;
            drop(permit);
            outcome
        });
        let outcome = reading.await.map_err(|error| Problem::internal(&error))?;
        outcome.map_err(|error| match error {
            ReadError::Busy => too_many_waiting(),
            ReadError::TimedOut { .. } => Problem::unavailable(
                "reading this document took longer than its deadline; nothing was stored",
            ),
            ReadError::Panicked { .. } => Problem::internal(&error),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use tokio::task::JoinSet;

    use super::*;

    fn client(number: u8) -> Client {
        Client { address: [192, 0, 2, number].into(), is_local: false }
    }

    /// Lets other tasks run until they wait.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn greedy_clients_leave_the_next_thread_to_a_new_one() {
        let readers = DocumentReaders::new(1, None);
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |number: u8| {
            let order = Arc::clone(&order);
            move || order.lock().unwrap().push(number)
        };
        let greedy = 1..=20;
        for number in greedy.clone() {
            readers.run(client(number), note(number)).await.unwrap();
        }
        order.lock().unwrap().clear();
        let (end, ended) = mpsc::channel::<()>();
        let mut documents = JoinSet::new();
        let first = readers.clone();
        documents.spawn(async move { first.run(client(21), move || assert!(ended.recv().is_err())).await });
        settle().await;
        for number in greedy.clone().flat_map(|number| [number; CLIENT_DOCUMENTS_MAX]).chain([100]) {
            let (readers, work) = (readers.clone(), note(number));
            documents.spawn(async move { readers.run(client(number), work).await });
        }
        settle().await;
        drop(end);
        while let Some(read) = documents.join_next().await {
            read.unwrap().unwrap();
        }
        let order = order.lock().unwrap();
        assert_eq!(order.len(), 20 * CLIENT_DOCUMENTS_MAX + 1, "the others are read, too");
        assert_eq!(order.first(), Some(&100), "{order:?}");
    }

    #[tokio::test]
    async fn a_client_that_disconnects_keeps_its_turn_until_its_document_is_read() {
        let readers = DocumentReaders::new(1, None);
        let (end, ended) = mpsc::channel::<()>();
        let mut gone = JoinSet::new();
        let first = readers.clone();
        gone.spawn(async move { first.run(client(1), move || assert!(ended.recv().is_err())).await });
        settle().await;
        gone.shutdown().await;
        assert_eq!(readers.permits.free(), 0, "its thread is occupied");
        let other = readers.run(client(2), || 7);
        let (answered, ()) = tokio::join!(other, async { drop(end) });
        assert_eq!(answered.unwrap(), 7);
    }
}
