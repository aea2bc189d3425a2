//! Reports of clients about sites, without data about the client.

use chrono::{DateTime, Utc};
use manifest::{CapabilityId, SiteName};
use policy::AbuseReason;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    pub at: DateTime<Utc>,
    pub site: SiteName,
    /// The reported capability; `None` if the report is about the whole site.
    pub capability: Option<CapabilityId>,
    pub reason: AbuseReason,
    /// The words of the client; may be empty.
    pub note: String,
}

/// A stored report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportLine {
    /// Ids increase in the order of arrival.
    pub id: i64,
    #[serde(flatten)]
    pub report: Report,
}

/// Limits on the stored reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportCaps {
    /// Per site.
    pub of_site: u32,
    pub of_all: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportOutcome {
    Saved,
    /// The same report about the same site is already stored.
    Duplicate,
    /// A cap was reached; nothing is stored.
    Full(ReportCap),
}

/// The cap that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportCap {
    Site,
    All,
}

/// Selects the reports that match every given field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportFilter {
    pub id: Option<i64>,
    pub site: Option<SiteName>,
}

/// The number of reports about a site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedSite {
    pub site: SiteName,
    pub reports: u64,
    /// When the last report arrived.
    pub latest_at: DateTime<Utc>,
    /// Whether the operator suspended it.
    pub is_suspended: bool,
}
