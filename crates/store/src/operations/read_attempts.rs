//! Documents that are being read, and documents that crashed or stalled a reader.

use super::Store;
use crate::StoreError;
use crate::model::{EarlierAttempt, ReadAttemptWrite};
use async_recursion::async_recursion as boxed;

impl Store {
    /// Writes a batch of attempts in one transaction: ends first, then quarantines, then begins. Returns, for each row of the
    /// batch, the attempt of the same document and of this or a newer reader version that was stored before a begin; for such a begin
    /// nothing is written. `None` for every other row.
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
