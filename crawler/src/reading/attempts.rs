//! Writes read attempts in batches, so that a document does not need its own transaction.

use store::{EarlierAttempt, ReadAttemptWrite, Store, StoreError};

use crate::batcher::BatchWriter;

/// Maximum number of attempts written by one transaction.
const BATCH_MAX: usize = 500;

/// Writes attempts.
#[derive(Clone)]
pub(super) struct Attempts(pub(super) Store);

impl BatchWriter for Attempts {
    type Row = ReadAttemptWrite;
    type Answer = Option<EarlierAttempt>;

    const ROW: &'static str = "read attempt";
    const OPERATION: &'static str = "write read attempts";
    const BUSY_ROWS_MIN: usize = 8;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, writes: &[ReadAttemptWrite]) -> Result<Vec<Option<EarlierAttempt>>, StoreError> {
        self.0.read_attempts_write(writes).await
    }
}
