//! What the readings of the sources on the web in one process share.

use std::sync::PoisonError;

use store::TaskFailure;
use tokio::sync::{Mutex, MutexGuard};

/// The sources on the web of a process.
#[derive(Debug, Default)]
pub(crate) struct SourcesOnWeb {
    /// Held while they are read, so that each page is requested once.
    reading: Mutex<()>,
    /// Why some could not be read at the last reading.
    failures: std::sync::Mutex<Vec<String>>,
}

impl SourcesOnWeb {
    /// Waits until no other task reads them.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, ()> {
        self.reading.lock().await
    }

    /// Keeps why some could not be read.
    pub(crate) fn read(&self, failures: Vec<String>) {
        *self.failures.lock().unwrap_or_else(PoisonError::into_inner) = failures;
    }

    /// The result of the last reading.
    pub(crate) fn last_result(&self) -> Result<(), TaskFailure> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.is_empty() { Ok(()) } else { Err(TaskFailure::advised(failures.join("; "))) }
    }
}
