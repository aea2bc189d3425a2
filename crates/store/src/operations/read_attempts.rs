//! Documents that are being read, and documents that crashed or stalled a reader.

use super::Store;
use crate::StoreError;
use crate::model::{EarlierAttempt, ReadAttemptWrite};
use async_recursion::async_recursion as boxed;

impl Store {
    /// Writes a batch of attempts in one transaction: ends first, then quarantines, then begins. Returns one value per row of the batch.
    /// For a begin, it is the stored attempt at the same document by the same or a newer reader version, if there is one; then the begin is
    /// not written. Otherwise it is `None`.
    #[boxed]
    pub async fn read_attempts_write(
        &self,
        writes: &[ReadAttemptWrite],
    ) -> Result<Vec<Option<EarlierAttempt>>, StoreError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        writing!(self, "read_attempts_write", read_attempt::attempts_write(writes))
    }
}
