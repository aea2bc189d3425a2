//! API keys of clients, each with its own limits.

use async_recursion::async_recursion as boxed;

use super::Store;
use crate::StoreError;
use crate::model::{ReaderKey, ReaderKeyOutcome};

impl Store {
    /// Adds a key, unless its name is taken or there are too many keys.
    #[boxed]
    pub async fn reader_key_add(&self, key: &ReaderKey) -> Result<ReaderKeyOutcome, StoreError> {
        writing!(self, "reader_key_add", reader_key::reader_key_add(key))
    }

    /// All keys, sorted by name.
    #[boxed]
    pub async fn reader_keys(&self) -> Result<Vec<ReaderKey>, StoreError> {
        reading!(self, "reader_keys", reader_key::reader_keys())
    }

    /// Deletes the key with this name. Returns whether there was one.
    #[boxed]
    pub async fn reader_key_revoke(&self, name: &str) -> Result<bool, StoreError> {
        writing!(self, "reader_key_revoke", reader_key::reader_key_revoke(name))
    }
}
