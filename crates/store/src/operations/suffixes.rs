//! Rate limits for public suffixes such as `github.io`, shared by all workers.

use super::Store;
use crate::StoreError;
use crate::model::{SuffixPermitOutcome, SuffixPermitRequest};
use async_recursion::async_recursion as boxed;

impl Store {
    /// Takes the next permit of a suffix. It is stored before this returns: permits of all workers are at least the gap
    /// apart, and a killed worker's permit stays open until it expires.
    #[boxed]
    pub async fn suffix_permit_take(
        &self,
        request: &SuffixPermitRequest,
    ) -> Result<SuffixPermitOutcome, StoreError> {
        writing!(self, "suffix_permit_take", suffix::permit_take(request))
    }

    /// Releases permits whose requests have ended; unknown numbers are ignored.
    #[boxed]
    pub async fn suffix_permits_release(&self, numbers: &[i64]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        writing!(self, "suffix_permits_release", suffix::permits_release(numbers))
    }
}
