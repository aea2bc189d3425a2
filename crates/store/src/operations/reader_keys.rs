//! Keys of readers of the API.

use async_recursion::async_recursion as boxed;

use super::Store;
use crate::StoreError;
use crate::model::{ReaderKey, ReaderKeyOutcome};

impl Store {
    /// Adds a key, unless a reader with this name has a key or there are too many keys.
    #[boxed]
    pub async fn reader_key_add(&self, key: &ReaderKey) -> Result<ReaderKeyOutcome, StoreError> {
        writing!(self, "reader_key_add", reader_key::reader_key_add(key))
    }

    /// All keys, sorted by name.
    #[boxed]
    pub async fn reader_keys(&self) -> Result<Vec<ReaderKey>, StoreError> {
        reading!(self, "reader_keys", reader_key::reader_keys())
    }

    /// Deletes the key of a reader; false if there is none.
    #[boxed]
    pub async fn reader_key_revoke(&self, name: &str) -> Result<bool, StoreError> {
        writing!(self, "reader_key_revoke", reader_key::reader_key_revoke(name))
    }
}
