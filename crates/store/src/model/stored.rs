//! Manifests as they are kept, their versions, and the store in numbers.

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Format, Manifest, ManifestId};
use policy::{FetchOutcome, Status, VisitEnd};
use serde::{Deserialize, Serialize};

use super::feed::FeedPosition;

/// The current version of a manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredManifest {
    /// As normalised, capabilities inside.
    pub manifest: Manifest,
    /// How it stands.
    pub status: Status,
    /// When any version was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// When this version was last confirmed.
    pub last_seen_at: DateTime<Utc>,
    /// When this version was first seen.
    pub changed_at: DateTime<Utc>,
    /// Versions seen so far.
    pub versions: u32,
    /// The document's bytes are kept.
    pub body_kept: bool,
}

/// What a manifest comes to in memory, known before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSize {
    /// The manifest.
    pub id: ManifestId,
    /// Bytes of the normalised manifest as JSON, before compression.
    pub bytes: u64,
}

/// Manifests that are read together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestBatch {
    /// The manifests, in the order in which they were given.
    pub ids: Vec<ManifestId>,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl ManifestBatch {
    /// Divides manifests into batches of at most so many bytes. One that is larger is a batch of its own.
    pub fn split(sizes: impl IntoIterator<Item = ManifestSize>, bytes_max: u64) -> Vec<Self> {
        let mut batches: Vec<Self> = Vec::new();
        for size in sizes {
            match batches.last_mut().filter(|last| last.bytes.saturating_add(size.bytes) <= bytes_max) {
                Some(last) => {
                    last.bytes = last.bytes.saturating_add(size.bytes);
                    last.ids.push(size.id);
                }
                None => batches.push(Self { ids: vec![size.id], bytes: size.bytes }),
            }
        }
        batches
    }
}

/// One version of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionRecord {
    /// Of the document.
    pub hash: ContentHash,
    /// When it was first seen.
    pub first_seen_at: DateTime<Utc>,
    /// When it was last confirmed.
    pub last_seen_at: DateTime<Utc>,
    /// Capabilities in it.
    pub capabilities: u32,
    /// Findings about it.
    pub findings: u32,
}

/// A semantic type in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemanticTypeCount {
    /// `namespace:type`.
    pub name: String,
    /// What is before the colon.
    pub namespace: String,
    /// Capabilities of this type.
    pub capabilities: u64,
    /// Of those, declared by the publisher.
    pub declared: u64,
    /// Sites that have one.
    pub sites: u64,
}

/// A namespace of semantic types in numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamespaceCount {
    /// What is before the colon.
    pub namespace: String,
    /// Capabilities of any of its types, each counted once.
    pub capabilities: u64,
    /// Sites that have one.
    pub sites: u64,
}

/// The store in numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Sites known, blocked ones included.
    pub sites: u64,
    /// Sites that may be leased now.
    pub sites_due: u64,
    /// Sites under a live lease.
    pub sites_leased: u64,
    /// Sites with a visit to go on with.
    pub sites_parked: u64,
    /// Sites whose owner opted out.
    pub sites_blocked: u64,
    /// Visits saved since the beginning.
    pub visits: u64,
    /// Manifests in the index.
    pub manifests: u64,
    /// Capabilities in the index.
    pub capabilities: u64,
    /// Documents kept.
    pub documents: u64,
    /// Their bytes before compression.
    pub document_bytes: u64,
    /// The last place of the feed.
    pub feed_head: FeedPosition,
    /// Manifests in the index by format, most first.
    pub manifests_by_format: Vec<(Format, u64)>,
    /// Sites by how they stand, most first.
    pub sites_by_status: Vec<(Status, u64)>,
    /// Ends of the visits of the last 24 hours, most first.
    pub ends_last_day: Vec<(VisitEnd, u64)>,
    /// Outcomes of the fetches of the last 24 hours, most first.
    pub outcomes_last_day: Vec<(FetchOutcome, u64)>,
    /// When the longest-waiting due site became due.
    pub oldest_due_at: Option<DateTime<Utc>>,
    /// When the last visit ended.
    pub last_visit_at: Option<DateTime<Utc>>,
}
