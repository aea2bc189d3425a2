//! Stored manifests and their versions, and statistics of the store.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use manifest::declaration::{Excerpt, Member};
use manifest::entry::{self, Entry};
use manifest::model::PolicyChoice;
use manifest::{
    Capability, CapabilityId, ContentHash, Format, Identity, Manifest, ManifestId, ManifestUrl, NamedBy,
    Publisher,
};
use policy::naming::customer_of;
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};

use super::feed::FeedPosition;

/// Maximum bytes of a batch of manifests, as JSON. In memory, they take a few times as much.
const BATCH_BYTES: u64 = 1024 * 1024;

/// The current version of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredManifest {
    pub manifest: Manifest,
    /// The training policy in robots.txt and the last response. See [`Self::training_policy`].
    #[serde(default)]
    pub training: PolicyChoice,
    /// Who names the document. For a manifest that a program of an earlier schema wrote, only the URL determines it until the next visit.
    pub named_by: NamedBy,
    /// Who publishes the document. For a manifest that a program of an earlier schema wrote, only the URL determines it until the next
    /// visit.
    pub publisher: Publisher,
    pub status: Status,
    /// When any version was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// When this version was last confirmed.
    pub last_seen_at: DateTime<Utc>,
    /// When this version was first seen.
    pub changed_at: DateTime<Utc>,
    /// Versions seen so far.
    pub versions: u32,
    /// Whether the document itself is stored.
    pub body_kept: bool,
}

impl StoredManifest {
    /// Whether models may be trained with the manifest: the most restrictive policy of the manifest itself, robots.txt and the last
    /// response.
    pub const fn training_policy(&self) -> PolicyChoice {
        policy::usage::most_restrictive(self.manifest.policies.training, self.training)
    }

    /// Whether the site itself names the document.
    pub fn is_of_site(&self) -> bool {
        self.named_by == NamedBy::Site
    }

    /// One of its capabilities as an entry of a catalog.
    pub fn entry_of<'m>(&'m self, capability: &'m Capability) -> Entry<'m> {
        entry::of_capability(&self.manifest, capability, self.publisher)
    }

    /// The identity of the manifest's publisher.
    pub fn identity(&self) -> Identity<'_> {
        self.manifest.identity(self.named_by)
    }
}

/// A capability with several declarations in the documents of its site, or with an id that differs from its only declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedCapability {
    /// The id under which all declarations are served.
    pub id: CapabilityId,
    /// The declarations in the index, the leading one first.
    pub members: Vec<Member>,
}

/// An indexed declaration without its manifest: only the parts that are needed for merging and searching.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDeclaration {
    pub excerpt: Excerpt,
    /// The statement of robots.txt and the last response; see [`StoredManifest::training`].
    pub training: PolicyChoice,
    /// See [`StoredManifest::named_by`].
    pub named_by: NamedBy,
    pub publisher: Publisher,
    pub status: Status,
    pub first_seen_at: DateTime<Utc>,
    pub last_seen_at: DateTime<Utc>,
    pub changed_at: DateTime<Utc>,
}

impl StoredDeclaration {
    pub fn of(stored: &StoredManifest, capability: &Capability) -> Self {
        Self {
            excerpt: Excerpt::of(&stored.manifest, capability),
            training: stored.training,
            named_by: stored.named_by,
            publisher: stored.publisher,
            status: stored.status,
            first_seen_at: stored.first_seen_at,
            last_seen_at: stored.last_seen_at,
            changed_at: stored.changed_at,
        }
    }

    /// Whether models may be trained with the declaration; the same as [`StoredManifest::training_policy`].
    pub const fn training_policy(&self) -> PolicyChoice {
        policy::usage::most_restrictive(self.excerpt.training, self.training)
    }
}

/// The size of a manifest, known before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSize {
    pub id: ManifestId,
    /// Bytes of the normalised manifest as JSON, before compression.
    pub bytes: u64,
}

/// The size of a manifest of a site, with what decides the order in which the site's manifests are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteManifestSize {
    pub id: ManifestId,
    /// Bytes of the normalised manifest as JSON, before compression.
    pub bytes: u64,
    pub url: ManifestUrl,
    /// See [`StoredManifest::named_by`].
    pub named_by: NamedBy,
    /// See [`StoredManifest::publisher`].
    pub publisher: Publisher,
}

impl SiteManifestSize {
    /// Sorts the manifests of a site so that a limit on their bytes or number leaves out the least trusted ones: first those that the site
    /// publishes, then those of its other hosts, then other documents that the site names, and last those that only others name. Of the
    /// manifests at other hosts, those of the customers with the fewest bytes so far come first, so that no customer takes the room of
    /// another.
    pub(crate) fn sort_by_trust(sizes: &mut [Self]) {
        sizes.sort_by(|one, other| one.url.cmp(&other.url));
        let mut bytes_of: HashMap<(u8, String), u64> = HashMap::new();
        let mut sorted: HashMap<ManifestId, (u8, u64)> = HashMap::with_capacity(sizes.len());
        for size in sizes.iter() {
            let (rank, host) = (size.trust_rank(), size.url.host());
            let customer = customer_of(&host, &size.url.site()).to_owned();
            let bytes = bytes_of.entry((rank, customer)).or_default();
            *bytes = bytes.saturating_add(size.bytes);
            sorted.insert(size.id.clone(), (rank, *bytes));
        }
        sizes.sort_by_key(|size| sorted.get(&size.id).copied());
    }

    const fn trust_rank(&self) -> u8 {
        match (self.named_by, self.publisher) {
            (NamedBy::Site, Publisher::Site) => 0,
            (NamedBy::Site, Publisher::Host) => 1,
            (NamedBy::Site, Publisher::Unknown) => 2,
            (NamedBy::Others, _) => 3,
        }
    }
}

impl From<SiteManifestSize> for ManifestSize {
    fn from(size: SiteManifestSize) -> Self {
        Self { id: size.id, bytes: size.bytes }
    }
}

/// Manifests that are read with one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestBatch {
    /// Ids in the given order.
    pub ids: Vec<ManifestId>,
    /// Total size of the manifests in bytes.
    pub bytes: u64,
    /// Size of the largest of them in bytes.
    pub largest: u64,
}

impl ManifestBatch {
    /// Batches of at most 1 MiB of JSON or one larger manifest.
    pub fn of(sizes: impl IntoIterator<Item = ManifestSize>) -> Vec<Self> {
        Self::split(sizes, BATCH_BYTES)
    }

    /// Splits manifests into batches of at most `bytes_max`. A larger manifest is its own batch.
    pub fn split(sizes: impl IntoIterator<Item = ManifestSize>, bytes_max: u64) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        for size in sizes {
            match batches.last_mut().filter(|last| last.bytes.saturating_add(size.bytes) <= bytes_max) {
                Some(last) => {
                    last.bytes = last.bytes.saturating_add(size.bytes);
                    last.largest = last.largest.max(size.bytes);
                    last.ids.push(size.id);
                }
                None => batches.push(Self { ids: vec![size.id], bytes: size.bytes, largest: size.bytes }),
            }
        }
        batches
    }
}

/// One version of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Hash of the document.
    pub hash: ContentHash,
    /// When it was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// When it was last confirmed.
    pub last_seen_at: DateTime<Utc>,
    pub capabilities: u32,
    pub findings: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemanticTypeCount {
    /// `namespace:type`.
    pub name: String,
    /// The part before the colon; for an IRI, everything before its last part.
    pub namespace: String,
    pub capabilities: u64,
    /// Number of these capabilities whose publisher declared the type.
    pub declared: u64,
    /// Sites with one of these capabilities.
    pub sites: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceCount {
    /// The part before the colon; for an IRI, everything before its last part.
    pub namespace: String,
    /// Capabilities of any of its types, each counted once.
    pub capabilities: u64,
    /// Sites with one of these capabilities.
    pub sites: u64,
}

/// Statistics of the store.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Sites known, blocked and suspended ones included.
    pub sites: u64,
    /// Sites that may be leased now.
    pub sites_due: u64,
    /// Sites with a lease that has not expired.
    pub sites_leased: u64,
    /// Sites with a parked visit that no worker resumes.
    pub sites_parked: u64,
    /// Sites whose owner opted out.
    pub sites_blocked: u64,
    /// Visits ever saved.
    pub visits: u64,
    /// Manifests in the index.
    pub manifests: u64,
    /// Capabilities in the index.
    pub capabilities: u64,
    /// Stored documents.
    pub documents: u64,
    /// Bytes of the stored documents before compression.
    pub document_bytes: u64,
    /// The last position of the feed.
    pub feed_head: FeedPosition,
    /// Manifests in the index by format, the most frequent first.
    pub manifests_by_format: Vec<(Format, u64)>,
    /// Sites by status, the most frequent first.
    pub sites_by_status: Vec<(Status, u64)>,
    /// Ends of the visits of the last 24 hours, the most frequent first.
    pub ends_last_day: Vec<(VisitEnd, u64)>,
    /// Outcomes of the fetches of the last 24 hours, the most frequent first.
    pub outcomes_last_day: Vec<(FetchOutcome, u64)>,
    /// When the oldest due site became due.
    pub oldest_due_at: Option<DateTime<Utc>>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_site_publishes_is_read_first_and_customers_share_the_rest() {
        let size = |at: &str, bytes, named_by, publisher| {
            let url = ManifestUrl::parse(&format!("https://{at}.json")).unwrap();
            SiteManifestSize { id: ManifestId::of(&url), bytes, url, named_by, publisher }
        };
        let mut sizes = vec![
            size("a0.shop.example/!", 9, NamedBy::Others, Publisher::Unknown),
            size("shop.example/!u", 9, NamedBy::Site, Publisher::Unknown),
            size("a1.shop.example/a", 5, NamedBy::Site, Publisher::Host),
            size("b.a1.shop.example/b", 5, NamedBy::Site, Publisher::Host),
            size("t2.shop.example/c", 7, NamedBy::Site, Publisher::Host),
            size("shop.example/b", 900, NamedBy::Site, Publisher::Site),
            size("shop.example/c", 1, NamedBy::Site, Publisher::Site),
            size("www.shop.example/a", 9, NamedBy::Others, Publisher::Site),
        ];
        SiteManifestSize::sort_by_trust(&mut sizes);
        let sorted: Vec<String> =
            sizes.iter().map(|size| size.url.as_str().replace("https://", "")).collect();
        let expected = [
            "shop.example/b.json",
            "shop.example/c.json",
            "a1.shop.example/a.json",
            "t2.shop.example/c.json",
            "b.a1.shop.example/b.json",
            "shop.example/!u.json",
            "a0.shop.example/!.json",
            "www.shop.example/a.json",
        ];
        assert_eq!(sorted, expected);
    }
}
