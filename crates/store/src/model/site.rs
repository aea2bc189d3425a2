//! The state of a site: its hosts, its resources, its counters, its blocks, and its summary in lists.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Discovery, Format, Host, ManifestId, ManifestUrl, SiteName};
use policy::claim::Claim;
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::paths::PathSlots;
use super::robots::RobotsRecord;
use super::suspension::SuspensionRecord;
use super::visit::{ParkedVisit, VisitReport};
use super::worker::WorkerId;

/// The state that a visit needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteState {
    pub name: SiteName,
    pub status: Status,
    pub hosts: Vec<HostState>,
    /// Fetched URLs that exist, existed before, or were linked.
    pub resources: Vec<ResourceState>,
    /// The manifests in the index that an earlier version of the reader read.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub outdated: BTreeSet<ManifestId>,
    pub visits: u32,
    /// Visits that found a change.
    pub changes: u32,
    /// When the first visit ended.
    pub first_visit_at: Option<DateTime<Utc>>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
    pub last_end: Option<VisitEnd>,
    /// Failed visits in a row.
    pub failures_in_row: u32,
    /// Visits in a row that reached the site and found nothing.
    pub negatives_in_row: u32,
    pub paths_checked: PathSlots,
    /// A visit to resume.
    pub parked: Option<ParkedVisit>,
    /// The crawler's progress of a visit whose worker was killed.
    #[serde(default, skip_serializing)]
    pub interrupted: Option<Value>,
    /// URLs that were seeded or linked and never fetched.
    pub hints: Vec<Hint>,
    /// The latest Retry-After of any host of the site.
    pub not_before: Option<DateTime<Utc>>,
    /// A client has submitted the site.
    #[serde(default)]
    pub is_submitted: bool,
    /// The visit is one of the operator's `check`, or the owner requested it.
    #[serde(skip)]
    pub is_checked: bool,
    /// The pending claim of the site, and its verified owner.
    #[serde(default)]
    pub claim: Option<Claim>,
}

/// A URL that was seeded or linked and never fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    pub url: ManifestUrl,
    /// The document that links to it; absent if it was seeded or submitted.
    pub linked_from: Option<ManifestUrl>,
    /// Whether a list, a submission or a link named it.
    pub discovery: Discovery,
}

/// How a host became known, from the least to the most trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOrigin {
    /// A visit reached it by a redirect or a link, of the site or of others.
    #[default]
    Met,
    /// A link of another site or a submission names it. Rows of earlier versions also have this value for listed hosts.
    Named,
    /// A collected list names it ([`SeedOrigin::Collected`](super::SeedOrigin::Collected)). Rows of earlier versions also have this value
    /// for hosts of other lists, until the list is read again.
    Collected,
    /// A list that the operator wrote names it.
    Listed,
}

impl HostOrigin {
    /// The value of the column `seeded`.
    pub(crate) const fn code(self) -> i32 {
        match self {
            Self::Met => 0,
            Self::Named => 1,
            Self::Collected => 2,
            Self::Listed => 3,
        }
    }

    pub(crate) const fn of_code(code: i32) -> Self {
        match code {
            ..=0 => Self::Met,
            1 => Self::Named,
            2 => Self::Collected,
            3.. => Self::Listed,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    pub host: Host,
    /// How it became known.
    pub origin: HostOrigin,
    pub robots: Option<RobotsRecord>,
    /// No request may be sent before this time.
    pub next_ok_at: Option<DateTime<Utc>>,
    /// Requests sent on `requests_day`.
    pub requests_today: u32,
    /// The day that `requests_today` counts, in days since 1970-01-01 (UTC).
    pub requests_day: i32,
}

impl HostState {
    /// Whether it was seeded, linked or submitted, not only reached by a visit.
    pub fn is_seeded(&self) -> bool {
        self.origin >= HostOrigin::Named
    }
}

/// A fetched URL that exists, existed before, or was linked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceState {
    pub url: ManifestUrl,
    /// The manifest read from it, while it is in the index.
    pub manifest_id: Option<ManifestId>,
    pub discovery: Discovery,
    /// The manifest that links to it.
    pub linked_from: Option<ManifestUrl>,
    /// Outcome of the last fetch.
    pub outcome: FetchOutcome,
    /// HTTP status of the last answer.
    pub status: Option<u16>,
    /// Value of the response header, byte for byte.
    pub etag: Option<String>,
    /// Value of the response header, byte for byte.
    pub last_modified: Option<String>,
    /// The serialised freshness policy.
    pub cache: Option<Value>,
    /// When it becomes stale and may be requested again (RFC 9111 §4.2).
    pub fresh_until: Option<DateTime<Utc>>,
    /// Hash of the last body that was read.
    pub content_hash: Option<ContentHash>,
    pub fetched_at: DateTime<Utc>,
    /// When its content last differed.
    pub changed_at: Option<DateTime<Utc>>,
    /// Visits in a row that did not find it.
    pub misses_in_row: u32,
}

impl ResourceState {
    /// Whether a client or another site named this known part as a manifest, and no visit has requested it since.
    pub fn is_named_as_manifest(&self) -> bool {
        self.discovery == Discovery::Submitted && self.status.is_none() && self.content_hash.is_some()
    }
}

/// Filter and page of a list of sites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitesRequest {
    /// The last name of the previous page.
    pub after: Option<SiteName>,
    pub max: u32,
    pub status: Option<Status>,
    /// Only sites with, or only sites without, manifests.
    pub with_manifests: Option<bool>,
    /// Prefix of the names.
    pub prefix: Option<String>,
    /// Part of the names. Reads all names in order until the page is full.
    pub contains: Option<String>,
    /// Without, or only, sites whose documents were fetched and of which none can be read.
    pub readable: Option<bool>,
    /// Timeout of the statement.
    pub time_max: Option<Duration>,
}

/// A site in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteSummary {
    pub name: SiteName,
    pub status: Status,
    /// Manifests in the index.
    pub manifests: u32,
    /// Capabilities in the index.
    pub capabilities: u32,
    /// Formats of its manifests in the index, each once.
    pub formats: Vec<Format>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
    /// `None` while the site is blocked or suspended, and if no seed requires a visit.
    pub next_visit_at: Option<DateTime<Utc>>,
    /// Why the next visit is at this time, as text.
    pub next_visit_reason: Option<String>,
    pub last_end: Option<VisitEnd>,
    pub first_seen_at: DateTime<Utc>,
}

/// The complete state of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteReport {
    pub summary: SiteSummary,
    pub state: SiteState,
    /// All hosts of the site, including those that `state` leaves out.
    pub hosts_total: u64,
    /// Set while the site is blocked, by the operator or because its owner opted out.
    pub blocked: Option<BlockRecord>,
    /// Set while the operator suspends the site.
    pub suspended: Option<SuspensionRecord>,
    /// The last visits, newest first.
    pub visits: Vec<VisitReport>,
    /// The lease on the site, which may have expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<SiteLease>,
}

/// The worker that visits a site, and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteLease {
    pub worker: WorkerId,
    /// When another worker may take the site.
    pub until: DateTime<Utc>,
}

/// The block of a site, by the operator or because its owner opted out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Explanation, shown to people.
    pub reason: String,
    pub at: DateTime<Utc>,
}

/// Result of blocking a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum BlockOutcome {
    /// Nothing was changed.
    AlreadyBlocked,
    /// The site is blocked and its content is purged.
    Blocked {
        /// Manifests that left the index.
        manifests_removed: u32,
        /// Documents that no other site publishes.
        documents_removed: u32,
    },
}

/// A site whose last visits failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingSite {
    pub site: SiteName,
    pub failures_in_row: u32,
    pub last_end: Option<VisitEnd>,
}

/// A site that answers slowly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowSite {
    pub site: SiteName,
    /// Average time to first byte.
    pub first_byte_ms: u32,
}
