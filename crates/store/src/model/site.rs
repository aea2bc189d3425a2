//! What is known of a site: its hosts, its resources, its history in numbers, and how it is shown.

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Discovery, Format, Host, ManifestId, ManifestUrl, SiteName};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::slots::PathSlots;
use super::visit::{ParkedVisit, VisitStory};

/// Everything a visit needs to know beforehand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteState {
    /// The site.
    pub name: SiteName,
    /// How it stands.
    pub status: Status,
    /// Hosts that were seeded or linked.
    pub hosts: Vec<HostState>,
    /// URLs that exist, once did, or were linked, each fetched at least once.
    pub resources: Vec<ResourceState>,
    /// Visits that were saved.
    pub visits: u32,
    /// Visits that found a change.
    pub changes: u32,
    /// When the first visit ended.
    pub first_visit_at: Option<DateTime<Utc>>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
    /// Why the last visit ended.
    pub last_end: Option<VisitEnd>,
    /// Visits in a row that failed.
    pub failures_in_row: u32,
    /// Visits in a row that reached the site and found nothing.
    pub negatives_in_row: u32,
    /// The path table's checks.
    pub paths_checked: PathSlots,
    /// A visit to go on with.
    pub parked: Option<ParkedVisit>,
    /// What a visit had done whose worker was killed, as the crawler wrote it.
    #[serde(default, skip_serializing)]
    pub broken_off: Option<Value>,
    /// URLs that were seeded or linked and never fetched.
    pub hints: Vec<Hint>,
    /// Retry-After of any host of the site, the latest.
    pub not_before: Option<DateTime<Utc>>,
}

/// A URL that was named and never fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// The URL.
    pub url: ManifestUrl,
    /// The document that links to it; absent where it was seeded or submitted.
    pub linked_from: Option<ManifestUrl>,
    /// How it was named.
    pub discovery: Discovery,
}

/// How a host became known, the least trusted way first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostOrigin {
    /// During a visit: a redirect led to it.
    #[default]
    Met,
    /// A link of another site or a submission names it. Rows of earlier versions have it too, which did not store more.
    Named,
    /// A list of the operator names it.
    Listed,
}

impl HostOrigin {
    /// The value of the column `seeded`.
    pub(crate) const fn code(self) -> i32 {
        match self {
            Self::Met => 0,
            Self::Named => 1,
            Self::Listed => 2,
        }
    }

    pub(crate) const fn of_code(code: i32) -> Self {
        match code {
            ..=0 => Self::Met,
            1 => Self::Named,
            2.. => Self::Listed,
        }
    }
}

/// Whether a host is the site itself or its `www.` host. Links and submissions can name any other host below the site.
pub fn is_main_host(site: &str, host: &str) -> bool {
    host.strip_prefix("www.").unwrap_or(host) == site
}

/// One host of a site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    /// The host.
    pub host: Host,
    /// How it became known.
    pub origin: HostOrigin,
    /// What its robots.txt came to the last time.
    pub robots: Option<RobotsRecord>,
    /// No request before this.
    pub next_ok_at: Option<DateTime<Utc>>,
    /// Requests sent on `requests_day`.
    pub requests_today: u32,
    /// Day that `requests_today` counts, from 1970-01-01.
    pub requests_day: i32,
}

impl HostState {
    /// Whether it was seeded, linked or submitted, and not only met during a visit.
    pub fn is_seeded(&self) -> bool {
        self.origin >= HostOrigin::Named
    }
}

/// Octets as text, a third longer than they are; as a list of numbers they would be four times as long.
mod base64 {
    use data_encoding::BASE64;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
        match bytes {
            Some(bytes) => to.serialize_str(&BASE64.encode(bytes)),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        text.map(|text| BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom)).transpose()
    }
}

/// What a host's robots.txt came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// The host that it speaks for.
    pub host: Host,
    /// What it came to.
    pub kind: RobotsKind,
    /// Why, in words, where it is not a plain file.
    pub cause: Option<String>,
    /// HTTP status of the answer.
    pub status: Option<u16>,
    /// The file, decoded.
    #[serde(skip_serializing_if = "Option::is_none", default, with = "base64")]
    pub body: Option<Vec<u8>>,
    /// When it was fetched.
    pub fetched_at: DateTime<Utc>,
    /// Until when it may be used without asking again (RFC 9309 §2.4).
    pub expires_at: DateTime<Utc>,
    /// Attempts in a row that could not read it.
    pub failures_in_row: u32,
    /// Byte for byte.
    pub etag: Option<String>,
    /// Byte for byte.
    pub last_modified: Option<String>,
}

/// One URL that was fetched and is worth remembering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResourceState {
    /// The URL.
    pub url: ManifestUrl,
    /// The manifest read from it, while it is in the index.
    pub manifest_id: Option<ManifestId>,
    /// How it came to be known.
    pub discovery: Discovery,
    /// The manifest that links to it.
    pub linked_from: Option<ManifestUrl>,
    /// What the last fetch came to.
    pub outcome: FetchOutcome,
    /// HTTP status of the last answer.
    pub status: Option<u16>,
    /// Byte for byte.
    pub etag: Option<String>,
    /// Byte for byte.
    pub last_modified: Option<String>,
    /// The serialised freshness policy.
    pub cache: Option<Value>,
    /// Until when it need not be requested (RFC 9111 §4.2).
    pub fresh_until: Option<DateTime<Utc>>,
    /// Of the last body that was read.
    pub content_hash: Option<ContentHash>,
    /// When it was last fetched.
    pub fetched_at: DateTime<Utc>,
    /// When its content was last seen to differ.
    pub changed_at: Option<DateTime<Utc>>,
    /// Visits in a row that did not find it.
    pub misses_in_row: u32,
}

/// Which sites to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SitesRequest {
    /// After this one, in the order of names.
    pub after: Option<SiteName>,
    /// At most so many.
    pub max: u32,
    /// Only those that stand so.
    pub status: Option<Status>,
    /// Only those with, or those without, manifests.
    pub with_manifests: Option<bool>,
    /// Only names that begin so.
    pub prefix: Option<String>,
}

/// A site in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteSummary {
    /// The site.
    pub name: SiteName,
    /// How it stands.
    pub status: Status,
    /// Manifests in the index.
    pub manifests: u32,
    /// Capabilities in the index.
    pub capabilities: u32,
    /// Formats of its manifests, each once.
    pub formats: Vec<Format>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
    /// When the next is planned; `None` while the site is blocked, and of one that nobody asked to be visited.
    pub next_visit_at: Option<DateTime<Utc>>,
    /// Why then, in words.
    pub next_visit_reason: Option<String>,
    /// Why the last visit ended.
    pub last_end: Option<VisitEnd>,
    /// When it became known.
    pub first_seen_at: DateTime<Utc>,
}

/// The whole story of a site, for its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteStory {
    /// In one line.
    pub summary: SiteSummary,
    /// What is known.
    pub state: SiteState,
    /// How many hosts it has, those included that are left out.
    pub hosts_total: u64,
    /// Set when the owner opted out.
    pub blocked: Option<BlockRecord>,
    /// The last visits, latest first.
    pub visits: Vec<VisitStory>,
}

/// The tombstone of a site whose owner opted out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Why, in words.
    pub reason: String,
    /// Since when.
    pub at: DateTime<Utc>,
}

/// What blocking a site did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum BlockOutcome {
    /// It was blocked before; nothing was changed.
    AlreadyBlocked,
    /// It is blocked, and its content is purged.
    Blocked {
        /// Manifests that left the index.
        manifests_removed: u32,
        /// Documents that no other site publishes too.
        documents_removed: u32,
    },
}

/// A site whose last visits failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingSite {
    /// The site.
    pub site: SiteName,
    /// How many in a row.
    pub failures_in_row: u32,
    /// How the last one ended.
    pub last_end: Option<VisitEnd>,
}

/// A site that takes its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowSite {
    /// The site.
    pub site: SiteName,
    /// From a request to the first byte of its answer, on average.
    pub first_byte_ms: u32,
}
