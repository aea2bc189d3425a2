//! Sites that an operator suspended.

use chrono::{DateTime, Utc};
use policy::AbuseReason;
use serde::{Deserialize, Serialize};

/// The suspension of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionRecord {
    pub reason: AbuseReason,
    /// The operator's explanation; may be empty.
    pub note: String,
    pub at: DateTime<Utc>,
}

/// Result of suspending a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuspensionOutcome {
    /// Nothing was changed.
    AlreadySuspended,
    /// The site is suspended and its content is purged.
    Suspended {
        /// Manifests that left the index.
        manifests_removed: u32,
        /// Documents that no other site publishes.
        documents_removed: u32,
    },
}
