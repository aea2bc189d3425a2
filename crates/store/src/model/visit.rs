//! Visits: clocks that are written before requests, the record that is saved, and the report.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::model::PolicyChoice;
use manifest::{ContentHash, Discovery, Format, Host, Manifest, ManifestId, ManifestUrl, SiteName};
use policy::claim::Claim;
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::groups::Membership;
use super::lease::LeaseToken;
use super::paths::PathSlots;
use super::robots::RobotsRecord;
use super::seed::{Seed, kept_source};

/// Politeness clocks of a request, written before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockWrite {
    pub host: Host,
    /// When the request is sent to its address. `None` in the operator's own networks, if an earlier write has reserved the time, and for a
    /// clock after a response.
    pub address: Option<AddressSlot>,
    /// No request may be sent to the host before this time.
    pub next_ok_at: DateTime<Utc>,
    /// Retry-After.
    pub not_before: Option<DateTime<Utc>>,
    /// Number of requests that are about to be sent.
    pub requests_add: u32,
    /// The day to which these requests count, in days since 1970-01-01 (UTC).
    pub day: i32,
    pub progress: Option<VisitProgress>,
    /// The membership that owns the address; `None` without a fleet.
    pub member: Option<Membership>,
    /// The lease under which the request is sent, with its new end; `None` for a clock after a response.
    pub lease: Option<LeaseToken>,
}

/// The planned time of a request to an address that other workers may use too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressSlot {
    pub address: IpAddr,
    pub claim: SlotClaim,
    /// When the request is to be sent, unless this time is reserved.
    pub from: DateTime<Utc>,
    /// Time after which the next request may be sent: the gap of the address, and how much later than planned this request may be sent.
    pub hold: Duration,
    /// If the next free time is later than this, nothing is written.
    pub latest: DateTime<Utc>,
}

/// How a worker may use an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotClaim {
    /// The worker owns the address and keeps the gap of its own requests, so only times that others have reserved are taken.
    Owner,
    /// The worker owns the platform of the address. Its rate applies, so no time is taken.
    PlatformOwner,
    /// Another worker owns the address, so this one may send only at times that no other worker has reserved or uses.
    Guest,
}

/// The result of one clock write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockOutcome {
    /// The clocks are stored, and the request may be sent.
    Saved,
    /// The clocks are stored. The planned time at the address was taken, so the request may be sent at this reserved time.
    Reserved { at: DateTime<Utc> },
    /// Nothing was written, because the address has no free time soon enough.
    AddressTaken { until: DateTime<Utc> },
    /// Nothing was written, because another worker may hold the site. The request must not be sent.
    LeaseEnded,
    /// Nothing was written, because another worker may own the address. The request must not be sent.
    MembershipEnded,
}

/// Progress of a visit, so that another worker can resume it when this one is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitProgress {
    pub site: SiteName,
    /// Fence of the visit's lease; progress of an older lease is not stored.
    pub fence: i64,
    /// The crawler's state, as JSON.
    pub state: String,
}

/// A visit that is resumed later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedVisit {
    pub resume_at: DateTime<Utc>,
    /// Explanation, shown to people.
    pub reason: String,
    /// The crawler's serialised state.
    pub progress: Value,
    /// The claim to the site, if the visit has checked it since the last save. It is stored separately and not read with the visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextVisit {
    pub at: DateTime<Utc>,
    /// Explanation, shown to people.
    pub reason: String,
}

/// Time of a visit by phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    pub dns_ms: u32,
    pub connect_ms: u32,
    pub tls_ms: u32,
    /// Time to first byte.
    pub ttfb_ms: u32,
    pub body_ms: u32,
}

/// A finished visit, saved completely or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitRecord {
    /// The site of the lease.
    pub site: SiteName,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub end: VisitEnd,
    /// Status of the site after the visit.
    pub status: Status,
    pub next_visit: NextVisit,
    /// robots.txt files that were requested.
    pub robots: Vec<RobotsRecord>,
    /// Fetches in the order of the visit, including those that were not sent.
    pub fetches: Vec<FetchRecord>,
    /// Whether the visit found a change.
    pub changed_any: bool,
    /// Paths that were requested in any visit so far.
    pub paths_checked: PathSlots,
    /// Failed visits in a row, including this one.
    pub failures_in_row: u32,
    /// Visits in a row that found nothing, including this one.
    pub negatives_in_row: u32,
    /// Other sites that the manifests link to.
    pub new_seeds: Vec<Seed>,
    pub links: LinkChanges,
    pub phases: Phases,
    /// Requests sent.
    pub requests: u32,
    /// Bytes received.
    pub bytes_in: u64,
    pub crawler_version: String,
    /// The result for the claim to the site, if the visit checked it.
    pub claim: Option<Claim>,
}

/// The findings of a visit about links between documents of the site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkChanges {
    /// Documents whose source (`linked_from`) was read and no longer links to them.
    pub unlinked: Vec<ManifestUrl>,
    /// Documents that now have a link from another document of the site.
    pub relinked: Vec<NewSource>,
    /// Documents with links that the visit did not read or follow. The next request for them has no validators.
    pub unread: Vec<ManifestUrl>,
}

/// The new source of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    pub url: ManifestUrl,
    pub discovery: Discovery,
    pub linked_from: ManifestUrl,
}

/// One fetch of a visit.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchRecord {
    pub url: ManifestUrl,
    /// The URL after redirects.
    pub final_url: Option<ManifestUrl>,
    pub discovery: Discovery,
    /// The manifest that links to it.
    pub linked_from: Option<ManifestUrl>,
    pub outcome: FetchOutcome,
    /// Why it has this outcome, as text.
    pub reason: Option<String>,
    /// The robots.txt rule that allowed or denied the URL.
    pub robots_rule: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// The headers that the crawler used.
    pub headers: Vec<(String, String)>,
    /// Value of the response header, byte for byte.
    pub etag: Option<String>,
    /// Value of the response header, byte for byte.
    pub last_modified: Option<String>,
    /// The serialised freshness policy.
    pub cache: Option<Value>,
    /// When the response becomes stale and may be requested again.
    pub fresh_until: Option<DateTime<Utc>>,
    /// Hash of the decoded body.
    pub content_hash: Option<ContentHash>,
    /// Decoded; `None` when unchanged.
    pub body: Option<Vec<u8>>,
    /// Whether the publisher allows storing the body.
    pub store_body: bool,
    /// `None` unless the body was read in this visit.
    pub manifest: Option<Box<Manifest>>,
    /// Whether the manifest is equal to the stored one, except for how it was served. Only the version of its reader is written then.
    pub is_stored_reading: bool,
    /// The training policy in robots.txt and the response.
    pub training: PolicyChoice,
    /// When the request was sent.
    pub at: DateTime<Utc>,
    pub duration_ms: u32,
    /// The address that answered.
    pub address: Option<IpAddr>,
    /// Bytes received.
    pub bytes: u64,
}

/// The changes of a saved visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitSaved {
    /// Manifests that are new or returned.
    pub manifests_added: u32,
    /// Manifests with a new version.
    pub manifests_changed: u32,
    /// Manifests that left the index.
    pub manifests_removed: u32,
    /// Capabilities of the site in the index.
    pub capabilities: u32,
    /// Links to other sites that were not added, because a limit on links is reached.
    pub links_refused: u64,
}

/// A visit, for the site's owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VisitReport {
    /// Number of the visit in this database.
    pub id: i64,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    pub end: VisitEnd,
    /// The next visit, as decided after this one.
    pub next_visit: NextVisit,
    /// Requests sent.
    pub requests: u32,
    /// Bytes received.
    pub bytes_in: u64,
    pub phases: Phases,
    /// Fetches in the order of the visit.
    pub fetches: Vec<FetchReport>,
}

/// A fetch, for the site's owner. It has the fields of [`FetchRecord`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FetchReport {
    pub url: ManifestUrl,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<ManifestUrl>,
    pub discovery: Discovery,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_from: Option<ManifestUrl>,
    pub outcome: FetchOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots_rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_until: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<ContentHash>,
    pub at: DateTime<Utc>,
    pub duration_ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_id: Option<ManifestId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

impl From<&FetchRecord> for FetchReport {
    fn from(fetch: &FetchRecord) -> Self {
        Self {
            url: fetch.url.clone(),
            final_url: fetch.final_url.clone(),
            discovery: fetch.discovery,
            linked_from: kept_source(fetch.linked_from.as_ref()).cloned(),
            outcome: fetch.outcome,
            reason: fetch.reason.clone(),
            robots_rule: fetch.robots_rule.clone(),
            status: fetch.status,
            headers: fetch.headers.clone(),
            etag: fetch.etag.clone(),
            last_modified: fetch.last_modified.clone(),
            fresh_until: fetch.fresh_until,
            content_hash: fetch.content_hash.clone(),
            at: fetch.at,
            duration_ms: fetch.duration_ms,
            address: fetch.address,
            bytes: fetch.bytes,
            manifest_id: fetch.manifest.as_ref().map(|manifest| manifest.id.clone()),
            format: fetch.manifest.as_ref().map(|manifest| manifest.format()),
        }
    }
}
