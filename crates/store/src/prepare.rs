//! Prepares a visit for storage before its transaction begins: compression under a lock would block every other writer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use manifest::model::TypeSource;
use manifest::{Capability, ContentHash, Manifest, ManifestId, declaration};
use policy::FetchOutcome;
use serde::Serialize;

use crate::StoreError;
use crate::convert::{compress, compressed_json, json, text, to_i32};
use crate::model::{FetchRecord, FetchReport, LeaseToken, RobotsRecord, VisitRecord};
use crate::rows::RobotsRow;

/// A visit to be saved.
pub(crate) struct VisitWrite<'a> {
    pub(crate) token: &'a LeaseToken,
    pub(crate) visit: &'a VisitRecord,
    pub(crate) prepared: PreparedVisit,
}

impl<'a> VisitWrite<'a> {
    pub(crate) fn new(token: &'a LeaseToken, visit: &'a VisitRecord) -> Result<Self, StoreError> {
        if token.site != visit.site {
            let reason = format!("the lease is for {}, the visit was to {}", token.site, visit.site);
            return Err(StoreError::Unstorable { what: "visit", reason });
        }
        Ok(Self { token, visit, prepared: PreparedVisit::new(visit)? })
    }
}

/// A fetch that read a manifest.
pub(crate) struct PreparedManifest {
    /// The normalised manifest, compressed.
    pub(crate) model: Vec<u8>,
    pub(crate) hash: ContentHash,
    pub(crate) may_keep: bool,
    pub(crate) capabilities: CapabilityBatch,
}

/// The capabilities of a manifest, as JSON batches; `None` if there are none.
pub(crate) struct CapabilityBatch {
    pub(crate) capabilities: Option<String>,
    pub(crate) types: Option<String>,
}

/// A compressed document.
pub(crate) struct PreparedDocument {
    pub(crate) body: Vec<u8>,
    /// Size before compression.
    pub(crate) bytes: u64,
    /// Hash of the bytes before compression.
    pub(crate) hash: ContentHash,
}

pub(crate) struct PreparedVisit {
    manifests: HashMap<ManifestId, PreparedManifest>,
    /// Documents that were read and may be kept.
    documents: HashMap<ManifestId, PreparedDocument>,
    /// A row for each host, in the order of the visit's records.
    pub(crate) robots: Vec<(String, RobotsRow)>,
    /// The reports of the fetches, compressed.
    pub(crate) fetches: Vec<u8>,
    /// Counts by outcome, sorted: `found=1,not_found=18`.
    pub(crate) outcomes: String,
}

impl PreparedVisit {
    fn new(visit: &VisitRecord) -> Result<Self, StoreError> {
        let (mut manifests, mut documents) = (HashMap::new(), HashMap::new());
        for fetch in &visit.fetches {
            let id = ManifestId::of(&fetch.url);
            if let Some(body) = fetch.body.as_ref().filter(|_| fetch.store_body) {
                let document = PreparedDocument {
                    body: compress(body, "document")?,
                    bytes: body.len() as u64,
                    hash: ContentHash::of(body),
                };
                documents.insert(id.clone(), document);
            }
            if let Some(manifest) = &fetch.manifest {
                let prepared = PreparedManifest {
                    model: compressed_json(manifest, "manifest")?,
                    hash: manifest.content_hash.clone(),
                    may_keep: fetch.store_body,
                    capabilities: CapabilityBatch::new(manifest)?,
                };
                manifests.insert(id, prepared);
            }
        }
        let (fetches, outcomes) = reports(visit, &HashMap::new())?;
        Ok(Self { manifests, documents, robots: robots_rows(&visit.robots)?, fetches, outcomes })
    }

    pub(crate) fn manifest(&self, id: &ManifestId) -> Option<&PreparedManifest> {
        self.manifests.get(id)
    }

    pub(crate) fn document(&self, id: &ManifestId) -> Option<&PreparedDocument> {
        self.documents.get(id)
    }

    /// Stored bytes of a manifest and its document together.
    pub(crate) fn stored_bytes(&self, id: &ManifestId) -> usize {
        self.manifest(id).map_or(0, |manifest| manifest.model.len())
            + self.document(id).map_or(0, |document| document.body.len())
    }
}

/// The rows of robots.txt, by host.
pub(crate) fn robots_rows(records: &[RobotsRecord]) -> Result<Vec<(String, RobotsRow)>, StoreError> {
    let row = |record: &RobotsRecord| Ok((record.host.as_str().to_owned(), RobotsRow::of_record(record)?));
    records.iter().map(row).collect()
}

/// The compressed reports of the fetches, and their counts by outcome. Refused documents are reported as too large.
pub(crate) fn reports(
    visit: &VisitRecord,
    refused: &HashMap<ManifestId, &'static str>,
) -> Result<(Vec<u8>, String), StoreError> {
    let report = |fetch: &FetchRecord| {
        let report = FetchReport::from(fetch);
        let reason = if refused.is_empty() { None } else { refused.get(&ManifestId::of(&fetch.url)) };
        match reason {
            Some(reason) => FetchReport {
                outcome: FetchOutcome::TooLarge,
                reason: Some((*reason).to_owned()),
                content_hash: None,
                fresh_until: None,
                manifest_id: None,
                format: None,
                ..report
            },
            None => report,
        }
    };
    let reports: Vec<FetchReport> = visit.fetches.iter().map(report).collect();
    Ok((compressed_json(&reports, "report of a visit")?, outcomes(&reports)))
}

fn outcomes(reports: &[FetchReport]) -> String {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for report in reports {
        *counts.entry(report.outcome.as_str()).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(outcome, count)| format!("{outcome}={count}")).collect();
    parts.join(",")
}

#[derive(Serialize)]
struct CapabilityRow<'a> {
    #[serde(flatten)]
    keys: CapabilityKeys<'a>,
    native_id: String,
    name: String,
    kind: &'a str,
}

/// The keys by which a capability is grouped with other declarations of its site.
#[derive(Serialize)]
pub(crate) struct CapabilityKeys<'a> {
    id: &'a str,
    operation: Option<String>,
    fullness: i32,
}

impl<'a> CapabilityKeys<'a> {
    pub(crate) fn of(manifest: &Manifest, capability: &'a Capability) -> Self {
        Self {
            id: capability.id.as_str(),
            operation: declaration::operation(capability),
            fullness: to_i32(declaration::fullness(manifest, capability)),
        }
    }
}

#[derive(Serialize)]
struct TypeRow<'a> {
    name: String,
    capability_id: &'a str,
    declared: i32,
}

impl CapabilityBatch {
    /// Batches without duplicates: of a capability that a document declares twice, one row is kept; of a type that is both declared and
    /// inferred, the declared row.
    fn new(manifest: &Manifest) -> Result<Self, StoreError> {
        let mut rows = BTreeMap::new();
        let mut types = BTreeSet::new();
        for capability in &manifest.capabilities {
            let id = capability.id.as_str();
            rows.entry(id).or_insert_with(|| CapabilityRow {
                keys: CapabilityKeys::of(manifest, capability),
                native_id: text(&capability.native_id).into_owned(),
                name: text(&capability.name).into_owned(),
                kind: capability.kind.as_str(),
            });
            for semantic_type in &capability.semantic_types {
                types.insert((text(&semantic_type.name), id, semantic_type.source == TypeSource::Declared));
            }
        }
        // In reverse order, the declared row of a type comes before the inferred one, and the first row is used.
        let types = types.into_iter().rev().map(|(name, capability_id, declared)| TypeRow {
            name: name.into_owned(),
            capability_id,
            declared: i32::from(declared),
        });
        Ok(Self {
            capabilities: batch(&rows.into_values().collect::<Vec<_>>(), "batch of capabilities")?,
            types: batch(&types.collect::<Vec<_>>(), "batch of semantic types")?,
        })
    }
}

fn batch(rows: &[impl Serialize], what: &'static str) -> Result<Option<String>, StoreError> {
    if rows.is_empty() { Ok(None) } else { json(&rows, what).map(Some) }
}
