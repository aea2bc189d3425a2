//! Where documents of clients are read: threads of their own, so that a document that takes long delays other documents
//! and never a search.

use std::time::Duration;

use runtime::{ReadError, ReaderLimits, ReaderPool};

use crate::problem::Problem;

/// Documents read at the same time: one for every second core, so that searches keep the others.
const CORES_PER_DOCUMENT: usize = 2;
/// Documents that wait for a thread.
const QUEUE_MAX: usize = 16;
/// Longest wait for a thread and longest time for one document: together below the deadline of a request.
const QUEUE_WAIT: Duration = Duration::from_secs(3);
const DEADLINE: Duration = Duration::from_secs(5);

/// The threads that read the documents of clients. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Validation(ReaderPool);

impl Validation {
    pub(crate) fn for_this_machine() -> Self {
        let threads = (ReaderLimits::threads_of_this_machine() / CORES_PER_DOCUMENT).max(1);
        let limits = ReaderLimits { threads, queue: QUEUE_MAX, queue_wait: QUEUE_WAIT, deadline: DEADLINE };
        Self(ReaderPool::new("api-validation", limits))
    }

    /// Reads one document, off the threads that answer requests.
    pub(crate) async fn run<T, F>(&self, read: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.0.read(read).await.map_err(|error| match error {
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
