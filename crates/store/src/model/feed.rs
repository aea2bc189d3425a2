//! The change feed: every change of the index, in one order without gaps.

use chrono::{DateTime, Utc};
use manifest::string_enum;
use manifest::{ManifestId, SiteName};
use serde::{Deserialize, Serialize};

/// Position of a feed entry. The first is 1; 0 is before the first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FeedPosition(pub i64);

impl FeedPosition {
    /// A position after every present and future entry.
    pub const END: Self = Self(i64::MAX);
}

string_enum! {
    /// The kind of a change to a manifest.
    FeedChange, "feed change" {
        /// It is new, or returned.
        Added = "added",
        /// It has a new version.
        Changed = "changed",
        /// Its content is the same, its status changed.
        StatusChanged = "status_changed",
        /// It left the index.
        Removed = "removed",
        /// One of its declarations was merged with others into one capability.
        Merged = "merged",
        /// One of its declarations, current or former, is no longer merged with others.
        Split = "split",
    }
}

/// Entries that were read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedPage {
    /// The entries in order. Damaged entries are logged and left out.
    pub entries: Vec<FeedEntry>,
    /// Position of the last row that was read, including damaged rows after the last entry.
    pub read_to: FeedPosition,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedEntry {
    pub position: FeedPosition,
    pub at: DateTime<Utc>,
    pub change: FeedChange,
    pub site: SiteName,
    pub manifest_id: ManifestId,
    /// A slug of `policy::FetchOutcome` or `policy::VisitEnd`, `opted_out`, `unlisted`, or `suspended_` with a slug of
    /// `policy::AbuseReason`, `named_by_site`, `named_by_others`, `published_by_` with a slug of `manifest::Publisher`, or `read_again` if
    /// a later version of the reader read the same bytes. For a merge or a split, the ids: `c1 into c2, c3 into c4 and 5 more`, `c1 out of
    /// c2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
