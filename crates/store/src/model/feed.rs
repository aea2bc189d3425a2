//! The change feed: every change of the index, in one order without holes.

use chrono::{DateTime, Utc};
use manifest::string_enum;
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

string_enum! {
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
