//! A visit brought into its stored form before the transaction begins: compressing while a lock is held would make
//! every other writer wait.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use manifest::model::TypeSource;
use manifest::{ContentHash, Manifest, ManifestId};

use crate::StoreError;
use crate::model::{FetchRecord, FetchStory, LeaseToken, RobotsRecord, VisitRecord};
use crate::pack::{compress, compressed_json, json, text};

/// A visit that is to be saved, with its parts.
pub(crate) struct Saving<'a> {
    pub(crate) token: &'a LeaseToken,
    pub(crate) visit: &'a VisitRecord,
    pub(crate) packed: PackedVisit,
}

impl<'a> Saving<'a> {
    pub(crate) fn of(token: &'a LeaseToken, visit: &'a VisitRecord) -> Result<Self, StoreError> {
        if token.site != visit.site {
            let reason = format!("the lease is for {}, the visit was to {}", token.site, visit.site);
            return Err(StoreError::Unstorable { what: "visit", reason });
        }
        Ok(Self { token, visit, packed: PackedVisit::of_visit(visit)? })
    }
}

/// The parts of a fetch that read a manifest.
pub(crate) struct PackedFetch {
    /// The normalised manifest.
    pub(crate) model: Vec<u8>,
    pub(crate) hash: ContentHash,
    pub(crate) may_keep: bool,
    pub(crate) capabilities: CapabilityBatch,
}

/// The rows of a manifest's capabilities, as the JSON that the statements take.
pub(crate) struct CapabilityBatch {
    pub(crate) capabilities: Option<String>,
    pub(crate) types: Option<String>,
}

/// A document, compressed.
pub(crate) struct PackedBody {
    pub(crate) body: Vec<u8>,
    /// Size before compression.
    pub(crate) bytes: u64,
    /// Of the bytes before compression.
    pub(crate) hash: ContentHash,
}

/// A visit's parts.
pub(crate) struct PackedVisit {
    manifests: HashMap<ManifestId, PackedFetch>,
    /// Documents that were read and may be kept.
    bodies: HashMap<ManifestId, PackedBody>,
    /// Bodies of robots.txt, in the order of the visit's records.
    pub(crate) robots: Vec<Option<Vec<u8>>>,
    /// The story of the fetches.
    pub(crate) fetches: Vec<u8>,
    /// Outcomes counted, sorted: `found=1,not_found=18`.
    pub(crate) outcomes: String,
}

impl PackedVisit {
    fn of_visit(visit: &VisitRecord) -> Result<Self, StoreError> {
        let (mut manifests, mut bodies) = (HashMap::new(), HashMap::new());
        for fetch in &visit.fetches {
            let id = ManifestId::of(&fetch.url);
            if let Some(body) = fetch.body.as_ref().filter(|_| fetch.store_body) {
                let packed = PackedBody {
                    body: compress(body, "document")?,
                    bytes: body.len() as u64,
                    hash: ContentHash::of(body),
                };
                bodies.insert(id.clone(), packed);
            }
            if let Some(packed) = PackedFetch::of_fetch(fetch)? {
                manifests.insert(id, packed);
            }
        }
        let stories: Vec<FetchStory> = visit.fetches.iter().map(FetchStory::from).collect();
        Ok(Self {
            manifests,
            bodies,
            robots: robots_bodies(&visit.robots)?,
            fetches: compressed_json(&stories, "story of a visit")?,
            outcomes: outcomes(&visit.fetches),
        })
    }

    pub(crate) fn manifest(&self, id: &ManifestId) -> Option<&PackedFetch> {
        self.manifests.get(id)
    }

    pub(crate) fn body(&self, id: &ManifestId) -> Option<&PackedBody> {
        self.bodies.get(id)
    }

    /// What a manifest and its document take together.
    pub(crate) fn stored_bytes(&self, id: &ManifestId) -> usize {
        self.manifest(id).map_or(0, |rows| rows.model.len()) + self.body(id).map_or(0, |body| body.body.len())
    }
}

/// Bodies of robots.txt, in the order of the records.
pub(crate) fn robots_bodies(records: &[RobotsRecord]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
    let bodies = records.iter().map(|record| record.body.as_ref());
    bodies.map(|body| body.map(|body| compress(body, "robots.txt")).transpose()).collect()
}

fn outcomes(fetches: &[FetchRecord]) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for fetch in fetches {
        *counts.entry(fetch.outcome.as_str()).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{outcome}={count}")).collect();
    parts.join(",")
}

impl PackedFetch {
    fn of_fetch(fetch: &FetchRecord) -> Result<Option<Self>, StoreError> {
        let Some(manifest) = &fetch.manifest else { return Ok(None) };
        Ok(Some(Self {
            model: compressed_json(manifest, "manifest")?,
            hash: manifest.content_hash.clone(),
            may_keep: fetch.store_body,
            capabilities: CapabilityBatch::of(manifest)?,
        }))
    }
}

impl CapabilityBatch {
    /// A capability that a document declares twice counts once.
    fn of(manifest: &Manifest) -> Result<Self, StoreError> {
        let mut rows = BTreeMap::new();
        let mut types = BTreeSet::new();
        for capability in &manifest.capabilities {
            let id = capability.id.as_str();
            let row = (id, text(&capability.native_id), text(&capability.name), capability.kind.as_str());
            rows.entry(id).or_insert(row);
            for semantic_type in &capability.semantic_types {
                types.insert((text(&semantic_type.name), id, semantic_type.source == TypeSource::Declared));
            }
        }
        // Where a type is both declared and inferred, the declared row comes first and wins.
        let types: Vec<_> =
            types.iter().rev().map(|(name, id, declared)| (name, id, i32::from(*declared))).collect();
        Ok(Self {
            capabilities: some_json(&rows.into_values().collect::<Vec<_>>(), "batch of capabilities")?,
            types: some_json(&types, "batch of semantic types")?,
        })
    }
}

fn some_json(rows: &[impl serde::Serialize], what: &'static str) -> Result<Option<String>, StoreError> {
    if rows.is_empty() { Ok(None) } else { json(&rows, what).map(Some) }
}
