//! API keys of clients, each with its own limits.

use std::num::NonZeroU32;

use chrono::{DateTime, Utc};
use policy::key::KeyHash;

/// Maximum number of keys: each API keeps all of them in memory, which takes a few hundred kilobytes.
pub const READER_KEYS_MAX: u32 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderKey {
    /// The operator's name for the holder of the key.
    pub name: String,
    pub hash: KeyHash,
    /// Requests a second, sustained.
    pub reads_per_second: NonZeroU32,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderKeyOutcome {
    Added,
    /// There is a key with this name; nothing is stored.
    NameTaken,
    /// There are [`READER_KEYS_MAX`] keys; nothing is stored.
    Full,
}
