//! The change feed: every change of the index, in one order without holes.

use chrono::{DateTime, Utc};
use manifest::closed;
use manifest::{ManifestId, SiteName};
use serde::{Deserialize, Serialize};

/// A place in the feed; 0 is before the first entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FeedPosition(pub i64);

impl FeedPosition {
    /// Behind every entry there will be.
    pub const END: Self = Self(i64::MAX);
}

closed! {
    /// What happened to a manifest.
    FeedChange, "feed change" {
        /// It is new, or is back.
        Added = "added",
        /// It has a new version.
        Changed = "changed",
        /// It is the same, but how it stands has changed.
        StatusChanged = "status_changed",
        /// It left the index.
        Removed = "removed",
    }
}

/// Changes that were read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    /// The changes, in order. A damaged one is left out and named in the log.
    pub entries: Vec<FeedEntry>,
    /// How far the feed was read: behind the last entry where damaged ones follow it.
    pub read_to: FeedPosition,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEntry {
    /// Its place; the first is 1, and none is left out.
    pub position: FeedPosition,
    /// When it happened.
    pub at: DateTime<Utc>,
    /// What happened.
    pub change: FeedChange,
    /// To which site.
    pub site: SiteName,
    /// To which manifest.
    pub manifest_id: ManifestId,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
