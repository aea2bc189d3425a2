//! What the crawl has been doing lately.

use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::VisitEnd;
use serde::{Deserialize, Serialize};

use super::WorkerId;

/// Visits that ended in the same way within the same hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitsOfHour {
    /// When the hour began.
    pub hour: DateTime<Utc>,
    /// How they ended.
    pub end: VisitEnd,
    /// How many.
    pub count: u64,
}

/// A worker and what it is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerLoad {
    /// The worker.
    pub worker: WorkerId,
    /// Sites that it holds.
    pub sites: u64,
    /// Address groups that it owns.
    pub groups: u64,
}

/// How a dialect is used by those in the index: how widely, and how well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    /// The dialect.
    pub format: Format,
    /// Sites that publish it.
    pub sites: u64,
    /// Manifests in it.
    pub manifests: u64,
    /// Of these, those without a finding above `may`.
    pub conforms: u64,
    /// Those that break a `should`.
    pub minor: u64,
    /// Those that break a `must`.
    pub major: u64,
}

/// A site that has come into the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSite {
    /// The site.
    pub site: SiteName,
    /// When the first manifest of it was read that is in the index.
    pub since: DateTime<Utc>,
    /// Capabilities that it has in the index.
    pub capabilities: u64,
}
