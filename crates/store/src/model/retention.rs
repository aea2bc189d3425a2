//! What is removed by age, and for whom it is kept.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::FeedPosition;

/// How long things are kept; what has no time is kept for good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Entries of the change feed.
    pub feed: Option<Duration>,
    /// Versions that are not the current one, with their documents, since they were last seen.
    pub versions: Option<Duration>,
}

/// What retention removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Retained {
    /// Entries of the change feed.
    pub feed_entries: u64,
    /// The reader that has not read older entries yet, so that they were kept.
    pub feed_held_back_by: Option<String>,
    /// Versions of manifests.
    pub versions: u64,
}

/// A reader that the change feed is kept for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedReader {
    /// Its name.
    pub name: String,
    /// The last entry that it has taken for good.
    pub position: FeedPosition,
    /// When it last said so.
    pub seen_at: DateTime<Utc>,
}

/// What one cut of the feed did.
#[derive(Debug)]
pub(crate) struct FeedTrimmed {
    pub(crate) entries: u64,
    pub(crate) held_back_by: Option<String>,
}
