//! A visit, as it is saved and as it is told.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Discovery, Format, Host, Manifest, ManifestId, ManifestUrl, SiteName};
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::groups::Membership;
use super::seed::{Seed, kept_source};
use super::site::RobotsRecord;
use super::slots::PathSlots;

/// When a request may next be sent; written before the request is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockWrite {
    /// The authority.
    pub host: Host,
    /// The address that is spoken to.
    pub address: Option<IpAddr>,
    /// No request to the authority before this.
    pub next_ok_at: DateTime<Utc>,
    /// No request to the address before this.
    pub address_next_ok_at: Option<DateTime<Utc>>,
    /// Retry-After.
    pub not_before: Option<DateTime<Utc>>,
    /// Requests that are about to be sent.
    pub requests_add: u32,
    /// Day that they count for, from 1970-01-01.
    pub day: i32,
    /// What the visit has done so far, where it is worth keeping.
    pub progress: Option<VisitProgress>,
    /// Under which membership of the fleet the address is spoken to; none where nobody else could.
    pub member: Option<Membership>,
}

/// What housekeeping removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Housekeeping {
    /// Clocks of addresses.
    pub address_clocks: u64,
    /// Visits that were broken off.
    pub broken_off: u64,
    /// Sites with nothing that were put to rest: what is known of them fits one row.
    pub sites_rested: u64,
}

/// What a visit under way has done, so that another worker goes on with it when this one is killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisitProgress {
    /// The site.
    pub site: SiteName,
    /// Of the lease that the visit is made under; the progress of an older lease is not kept.
    pub fence: i64,
    /// The crawler's own state, as JSON.
    pub state: String,
}

/// A visit that goes on later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedVisit {
    /// When.
    pub resume_at: DateTime<Utc>,
    /// Why it waits, in words.
    pub reason: String,
    /// The crawler's own serialised state.
    pub progress: Value,
}

/// When to come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextVisit {
    /// When.
    pub at: DateTime<Utc>,
    /// Why then, in words.
    pub reason: String,
}

/// Where the time of a visit went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Phases {
    /// Resolving names.
    pub dns_ms: u32,
    /// Connecting.
    pub connect_ms: u32,
    /// TLS handshakes.
    pub tls_ms: u32,
    /// Waiting for first bytes.
    pub ttfb_ms: u32,
    /// Reading bodies.
    pub body_ms: u32,
}

/// A finished visit, saved whole or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct VisitRecord {
    /// The site; the lease must be for it.
    pub site: SiteName,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Why it ended.
    pub end: VisitEnd,
    /// How the site stands now.
    pub status: Status,
    /// When to come back.
    pub next_visit: NextVisit,
    /// robots.txt files that were read or tried.
    pub robots: Vec<RobotsRecord>,
    /// Fetches, in order, those that were not sent included.
    pub fetches: Vec<FetchRecord>,
    /// Something was found to differ.
    pub changed_any: bool,
    /// The path table's checks, all of them.
    pub paths_checked: PathSlots,
    /// Visits in a row that failed, this one included.
    pub failures_in_row: u32,
    /// Visits in a row that found nothing, this one included.
    pub negatives_in_row: u32,
    /// Other sites that the manifests link to.
    pub new_seeds: Vec<Seed>,
    /// Where the time went.
    pub phases: Phases,
    /// Requests sent.
    pub requests: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Version of the crawler.
    pub crawler_version: String,
}

/// One fetch of a visit.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchRecord {
    /// What was asked for.
    pub url: ManifestUrl,
    /// Where redirects led.
    pub final_url: Option<ManifestUrl>,
    /// How the URL came to be known.
    pub discovery: Discovery,
    /// The manifest that links to it.
    pub linked_from: Option<ManifestUrl>,
    /// What it came to.
    pub outcome: FetchOutcome,
    /// Why, in words.
    pub reason: Option<String>,
    /// The robots.txt line that decided.
    pub robots_rule: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// The headers that mattered.
    pub headers: Vec<(String, String)>,
    /// Byte for byte.
    pub etag: Option<String>,
    /// Byte for byte.
    pub last_modified: Option<String>,
    /// The serialised freshness policy.
    pub cache: Option<Value>,
    /// Until when it need not be requested again.
    pub fresh_until: Option<DateTime<Utc>>,
    /// Of the body as decoded.
    pub content_hash: Option<ContentHash>,
    /// The body as decoded; `None` when unchanged.
    pub body: Option<Vec<u8>>,
    /// The publisher allows the body to be kept.
    pub store_body: bool,
    /// What was read from the body; `None` unless it was read anew.
    pub manifest: Option<Box<Manifest>>,
    /// When the request was sent.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub duration_ms: u32,
    /// The address that answered.
    pub address: Option<IpAddr>,
    /// Bytes received.
    pub bytes: u64,
}

/// What saving a visit changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitSaved {
    /// Manifests that are new, or are back.
    pub manifests_added: u32,
    /// Manifests with a new version.
    pub manifests_changed: u32,
    /// Manifests that left the index.
    pub manifests_removed: u32,
    /// Capabilities of the site that are in the index now.
    pub capabilities: u32,
    /// Links to other sites that were not added, since a limit of what links may cost is reached.
    pub links_refused: u64,
}

/// A visit, told to the site's owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VisitStory {
    /// Number of the visit in this database.
    pub id: i64,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Why it ended.
    pub end: VisitEnd,
    /// When to come back, as decided then.
    pub next_visit: NextVisit,
    /// Requests sent.
    pub requests: u32,
    /// Bytes received.
    pub bytes_in: u64,
    /// Where the time went.
    pub phases: Phases,
    /// Every fetch, in order.
    pub fetches: Vec<FetchStory>,
}

/// A fetch, told to the site's owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FetchStory {
    /// What was asked for.
    pub url: ManifestUrl,
    /// Where redirects led.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<ManifestUrl>,
    /// How the URL came to be known.
    pub discovery: Discovery,
    /// The manifest that links to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked_from: Option<ManifestUrl>,
    /// What it came to.
    pub outcome: FetchOutcome,
    /// Why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The robots.txt line that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots_rule: Option<String>,
    /// HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The headers that mattered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
    /// Until when it need not be requested again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_until: Option<DateTime<Utc>>,
    /// Of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_hash: Option<ContentHash>,
    /// When the request was sent.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub duration_ms: u32,
    /// The address that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Bytes received.
    pub bytes: u64,
    /// The manifest, where one was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_id: Option<ManifestId>,
    /// Its format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
}

impl From<&FetchRecord> for FetchStory {
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
