//! Sites that an operator suspended.

use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::AbuseReason;
use serde::{Deserialize, Serialize};

/// The suspension of a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspensionRecord {
    pub reason: AbuseReason,
    /// The operator's explanation; may be empty.
    pub note: String,
    /// The documents and capabilities that it is about, as the operator names them: URLs and ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    pub at: DateTime<Utc>,
}

/// A text of the owner of a site or of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DatedText {
    pub text: String,
    pub at: DateTime<Utc>,
}

/// A suspended site, with the objection of its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspendedSite {
    pub site: SiteName,
    #[serde(flatten)]
    pub suspension: SuspensionRecord,
    pub objection: Option<DatedText>,
    /// The answer of the operator to this objection.
    pub answer: Option<DatedText>,
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
