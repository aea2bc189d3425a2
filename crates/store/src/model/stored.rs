//! Stored manifests and their versions, and statistics of the store.

use chrono::{DateTime, Utc};
use manifest::declaration::{Excerpt, Member};
use manifest::entry::{self, Entry};
use manifest::model::PolicyChoice;
use manifest::{
    Capability, CapabilityId, ContentHash, Format, Identity, Manifest, ManifestId, NamedBy, Publisher,
};
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};

use super::feed::FeedPosition;

/// The current version of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredManifest {
    pub manifest: Manifest,
    /// The training policy in robots.txt and the last response. See [`Self::training_policy`].
    #[serde(default)]
    pub training: PolicyChoice,
    /// Who names the document. For a manifest that a program of an earlier schema wrote, only the URL determines it until the next visit.
    pub named_by: NamedBy,
    /// Who publishes the document. For a manifest that a program of an earlier schema wrote, only the URL determines it until the next visit.
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
    /// Sites with such a capability.
    pub sites: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceCount {
    /// The part before the colon; for an IRI, everything before its last part.
    pub namespace: String,
    /// Capabilities of any of its types, each counted once.
    pub capabilities: u64,
    /// Sites with such a capability.
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
    /// Sites with a parked visit.
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
