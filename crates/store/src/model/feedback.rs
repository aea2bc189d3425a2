//! What people chose for a request, where the operator asked for it to be kept.

use chrono::{DateTime, Utc};
use manifest::{CapabilityId, SiteName};
use serde::Serialize;

/// Somebody chose a capability for a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feedback {
    /// When it was said.
    pub at: DateTime<Utc>,
    /// The request, on one line.
    pub query: String,
    /// The capability that was chosen.
    pub capability: CapabilityId,
    /// The site that declares it.
    pub site: SiteName,
    /// Its place among the results of the request at that time; the first is 1.
    pub place: u32,
    /// Who said it: a hash that changes every day, never an address.
    pub client: String,
}

/// A kept line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedbackLine {
    /// In the order of arrival.
    pub id: i64,
    /// What was said.
    #[serde(flatten)]
    pub feedback: Feedback,
}

/// Most lines that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedbackCaps {
    /// Of one client of one day.
    pub of_client: u32,
    /// Of one client of one day about one site.
    pub of_client_for_site: u32,
    /// About one site.
    pub of_site: u32,
    /// Of everybody.
    pub of_all: u32,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackOutcome {
    /// It is kept.
    Kept,
    /// The same client has said the same before.
    SaidBefore,
    /// A cap was reached; nothing is kept.
    Full(FeedbackCap),
}

/// The cap that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackCap {
    /// The client's.
    Client,
    /// The client's for this site.
    ClientForSite,
    /// The site's.
    Site,
    /// Everybody's.
    All,
}

/// Which lines are meant: those that fit everything that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedbackFilter {
    /// One line.
    pub id: Option<i64>,
    /// Lines about a site.
    pub site: Option<SiteName>,
    /// Lines of a client of one day.
    pub client: Option<String>,
    /// Lines about a capability.
    pub capability: Option<CapabilityId>,
}

/// A request with a capability that was chosen for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedbackPair {
    /// The request.
    pub query: String,
    /// What was chosen.
    pub capability: CapabilityId,
    /// The site that declares it.
    pub site: SiteName,
    /// How many clients chose it, each counted once a day.
    pub clients: u64,
}
