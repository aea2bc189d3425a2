//! Feedback: which capability a client chose for a request, where the operator enabled it.

use chrono::{DateTime, Utc};
use manifest::{CapabilityId, SiteName};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feedback {
    pub at: DateTime<Utc>,
    /// The request, on one line.
    pub query: String,
    /// The chosen capability.
    pub capability: CapabilityId,
    /// The site that declares it.
    pub site: SiteName,
    /// Its rank in the search results at that time; the first is 1.
    pub place: u32,
    /// A hash of the client's address that changes every day.
    pub client: String,
}

/// Stored feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedbackLine {
    /// Ids increase in the order of arrival.
    pub id: i64,
    #[serde(flatten)]
    pub feedback: Feedback,
}

/// Limits on the stored lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackCaps {
    /// Per client and day.
    pub of_client: u32,
    /// Per client, day and site.
    pub of_client_for_site: u32,
    /// Per site.
    pub of_site: u32,
    pub of_all: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackOutcome {
    Saved,
    /// The client already sent the same.
    Duplicate,
    /// A cap was reached; nothing is stored.
    Full(FeedbackCap),
}

/// The cap that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackCap {
    Client,
    ClientForSite,
    Site,
    All,
}

/// Selects the lines that match every given field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackFilter {
    pub id: Option<i64>,
    pub site: Option<SiteName>,
    pub client: Option<String>,
    pub capability: Option<CapabilityId>,
}

/// A query with a capability that clients chose for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedbackPair {
    pub query: String,
    pub capability: CapabilityId,
    /// The site that declares it.
    pub site: SiteName,
    /// How many clients chose it, each counted once a day.
    pub clients: u64,
}
