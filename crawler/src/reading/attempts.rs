//! Writes attempts in batches, so that reading a document costs a database no transaction of its own.

use store::{EarlierAttempt, ReadAttemptWrite, Store, StoreError};

use crate::gather::Batches;

/// Attempts written by one transaction.
const BATCH_MAX: usize = 500;

/// Writes attempts.
#[derive(Clone)]
pub(super) struct Attempts(pub(super) Store);

impl Batches for Attempts {
    type Row = ReadAttemptWrite;
    type Answer = Option<EarlierAttempt>;

    const ROW: &'static str = "read attempt";
    const WAITS: &'static str = "documents to be read";
    const BUSY: usize = 8;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, writes: &[ReadAttemptWrite]) -> Result<Vec<Option<EarlierAttempt>>, StoreError> {
        self.0.read_attempts_write(writes).await
    }
}
