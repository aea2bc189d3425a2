//! Deletion by age, and the feed readers that delay it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::feed::FeedPosition;

/// How long data is kept; `None` means forever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Entries of the change feed.
    pub feed: Option<Duration>,
    /// Versions other than the current one, with their documents, counted from when they were last seen.
    pub versions: Option<Duration>,
}

/// Numbers of deleted rows, and the reader of the feed that prevented further deletions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Retained {
    /// Entries of the change feed.
    pub feed_entries: u64,
    /// The reader of the feed that still needs older entries.
    pub feed_held_back_by: Option<String>,
    /// Versions of manifests.
    pub versions: u64,
}

/// A registered reader of the feed, for which entries are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedReader {
    pub name: String,
    /// The last entry that it has processed.
    pub position: FeedPosition,
    /// When it last reported its position.
    pub seen_at: DateTime<Utc>,
}

/// The feed entries that one batch deleted.
#[derive(Debug)]
pub(crate) struct FeedTrimmed {
    pub(crate) entries: u64,
    pub(crate) held_back_by: Option<String>,
}
