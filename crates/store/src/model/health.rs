//! Recent visits, the load of workers, and what is in the index.

use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::{FetchOutcome, VisitEnd};
use serde::{Deserialize, Serialize};

use super::worker::WorkerId;

/// Visits by the interval of time in which they ended, and by their end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitsOfInterval {
    /// Start of the interval.
    pub begins_at: DateTime<Utc>,
    pub end: VisitEnd,
    pub count: u64,
    /// Requests that these visits sent.
    pub requests: u64,
}

/// A visit among the latest ones of all sites.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestVisit {
    /// Number of the visit in this database.
    pub id: i64,
    pub site: SiteName,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub end: VisitEnd,
    /// Requests sent.
    pub requests: u32,
    /// How many fetches had each outcome.
    pub outcomes: Vec<(FetchOutcome, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLoad {
    pub worker: WorkerId,
    /// Leased sites.
    pub sites: u64,
    /// Owned address groups.
    pub groups: u64,
}

/// How many sites in the index publish a dialect, and how well they conform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialectUsage {
    pub format: Format,
    pub sites: u64,
    pub manifests: u64,
    /// Manifests without a finding above `may`.
    pub conforms: u64,
    /// Manifests that violate a `should`.
    pub minor: u64,
    /// Manifests that violate a `must`.
    pub major: u64,
}

/// A site that is new in the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSite {
    pub site: SiteName,
    /// When the first of its manifests in the index was read.
    pub since: DateTime<Utc>,
    /// Capabilities in the index.
    pub capabilities: u64,
}
