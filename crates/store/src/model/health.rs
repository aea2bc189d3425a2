//! Recent visits, the load of workers, and statistics of the index.

use chrono::{DateTime, Utc};
use manifest::{Format, SiteName};
use policy::address::ADDRESS_GROUPS;
use policy::{FetchOutcome, VisitEnd};
use serde::{Deserialize, Serialize};

use super::worker::WorkerId;

/// Visits that ended within one time interval, by their result.
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

impl WorkerLoad {
    /// The share of the addresses that a worker of a fleet owns, to the percent: `25 % of the addresses`.
    pub fn addresses_owned(&self) -> Option<String> {
        let all = u64::from(ADDRESS_GROUPS);
        match (self.groups, self.groups.saturating_mul(100).saturating_add(all / 2) / all) {
            (0, _) => None,
            (_, 0) => Some("less than 1 % of the addresses".to_owned()),
            (_, percent) => Some(format!("{percent} % of the addresses")),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_addresses_are_a_share_of_all() {
        let owned =
            |groups| WorkerLoad { worker: WorkerId::new("here/1"), sites: 1, groups }.addresses_owned();
        assert_eq!(owned(0), None);
        for (groups, percent) in [(1, "less than 1 %"), (2_036, "50 %"), (2_060, "50 %"), (4_096, "100 %")] {
            assert_eq!(owned(groups), Some(format!("{percent} of the addresses")));
        }
    }
}
