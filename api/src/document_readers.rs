//! Threads that read the documents of clients, so that a slow document delays other documents but never a search. Each client
//! may occupy a share of them. Documents of more than a few KiB are read in a process with limits of the operating system.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use manifest::Manifest;
use runtime::{OwnedDocument, ReadError, ReaderLimits, ReaderPool, ReaderProgram, Unread, read_isolated};

use crate::client::Client;
use crate::overload::capacity_problem;
use crate::problem::Problem;
use runtime::Shares;

/// Documents read at the same time: one for every second core, so that searches keep the others.
const CORES_PER_DOCUMENT: usize = 2;
/// Maximum number of documents that wait for a thread.
const QUEUE_MAX: usize = 16;
/// Maximum number of documents of one client that are read or wait.
const CLIENT_DOCUMENTS_MAX: usize = 4;
/// Longest wait for a thread and longest time for one document: together below the deadline of a request.
const QUEUE_WAIT: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(5);

/// The threads that read the documents of clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct DocumentReaders {
    pool: ReaderPool,
    shares: Arc<Shares>,
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
        let limits = ReaderLimits { threads, queue: QUEUE_MAX, queue_wait: QUEUE_WAIT, deadline: DEADLINE };
        // The pool has the limit for all.
        let shares = Shares::new(usize::MAX, CLIENT_DOCUMENTS_MAX);
        Self { pool: ReaderPool::new("api-validation", limits), shares, reader: DocumentReader(program) }
    }

    /// The reader to use inside the closure that [`Self::run`] runs.
    pub(crate) fn reader(&self) -> DocumentReader {
        self.reader.clone()
    }

    /// Reads one document on a reader thread. It counts for its client until it is read, or until the request is dropped
    /// before reading begins.
    pub(crate) async fn run<T, F>(&self, client: Client, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let share =
            self.shares.take(client.address, 1).map_err(|full| capacity_problem("documents", full))?;
        let counted = move || {
            let answer = read();
            drop(share);
            answer
        };
        self.pool.read(counted).await.map_err(|error| match error {
            ReadError::Busy => {
                Problem::unavailable("too many documents wait to be read; try again in a moment")
            }
            ReadError::TimedOut { .. } => Problem::unavailable(
                "reading this document took longer than its deadline; nothing of it is kept",
            ),
            ReadError::Panicked { .. } => Problem::internal(&error),
        })
    }
}
