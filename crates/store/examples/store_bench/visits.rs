//! Visits to save: one that found nothing, and one that found a manifest for the first time.

use chrono::{DateTime, TimeDelta, Utc};
use manifest::model::{SemanticType, TypeSource};
use manifest::{
    Capability, CapabilityKind, ContentHash, Discovery, Format, Host, Manifest, ManifestId, ManifestUrl,
    SiteName,
};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use serde_json::json;
use store::{FetchRecord, NextVisit, PathCheck, PathSlots, Phases, RobotsRecord, VisitRecord};

/// Paths requested by a visit.
pub(crate) const PATHS: usize = 20;
/// Capabilities of a manifest, each with one semantic type.
pub(crate) const CAPABILITIES: usize = 5;

pub(crate) fn start() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

/// Time of the next visit of a site.
pub(crate) fn next_visit_at() -> DateTime<Utc> {
    start() + TimeDelta::days(100)
}

pub(crate) fn url(site: &SiteName, path: usize) -> ManifestUrl {
    ManifestUrl::parse(&format!("https://{site}/.well-known/path-{path}.json")).unwrap()
}

/// Result of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    Nothing,
    Manifest,
}

fn fetch(site: &SiteName, path: usize) -> FetchRecord {
    FetchRecord {
        url: url(site, path),
        final_url: None,
        discovery: Discovery::WellKnown,
        linked_from: None,
        outcome: FetchOutcome::NotFound,
        reason: None,
        robots_rule: None,
        status: Some(404),
        headers: vec![("content-type".into(), "text/html".into())],
        etag: None,
        last_modified: None,
        cache: None,
        fresh_until: None,
        content_hash: None,
        body: None,
        store_body: true,
        is_stored_reading: false,
        manifest: None,
        training: manifest::model::PolicyChoice::Unset,
        at: start(),
        duration_ms: 42,
        address: Some([192, 0, 2, 7].into()),
        bytes: 512,
    }
}

pub(crate) fn document(site: &SiteName) -> Vec<u8> {
    json!({ "awp_version": "0.1", "site": site, "intent": "sell tickets ".repeat(40) })
        .to_string()
        .into_bytes()
}

pub(crate) fn capabilities(site: &SiteName) -> Vec<Capability> {
    let capability = |number: usize| {
        let (name, kind) = (format!("book_{number}"), CapabilityKind::Action);
        let at = format!("/actions/{number}");
        let mut capability = Capability::new(&url(site, 0), Format::Awp, &name, &name, kind, at);
        let name = format!("travel:{name}");
        let source = TypeSource::Declared;
        capability.semantic_types.push(SemanticType { name, source, confidence: 1.0, rule: None });
        capability
    };
    (0..CAPABILITIES).map(capability).collect()
}

fn manifest(site: &SiteName) -> Manifest {
    let at = url(site, 0);
    let mut manifest: Manifest = serde_json::from_value(json!({
        "id": ManifestId::of(&at),
        "content_hash": ContentHash::of(&document(site)),
        "url": at,
        "origin": at.origin(),
        "discovery": "well_known",
        "detection": { "format": "awp", "strength": "strong", "evidence": ["awp_version is \"0.1\""] },
    }))
    .unwrap();
    manifest.capabilities = capabilities(site);
    manifest
}

fn found(site: &SiteName) -> FetchRecord {
    FetchRecord {
        outcome: FetchOutcome::Found,
        status: Some(200),
        etag: Some("\"1\"".into()),
        content_hash: Some(ContentHash::of(&document(site))),
        body: Some(document(site)),
        manifest: Some(Box::new(manifest(site))),
        training: manifest::model::PolicyChoice::Unset,
        ..fetch(site, 0)
    }
}

/// A visit that requested robots.txt, which does not exist, and the paths.
pub(crate) fn visit(site: &SiteName, finding: Finding) -> VisitRecord {
    let mut paths_checked = PathSlots::new();
    (0..20).for_each(|slot| paths_checked.set(slot, PathCheck { class: 4, day: 20_000 }));
    let first = if finding == Finding::Manifest { found(site) } else { fetch(site, 0) };
    let robots = RobotsRecord {
        host: Host::parse(site.as_str()).unwrap(),
        kind: RobotsKind::NoFile,
        cause: None,
        status: Some(404),
        body: None,
        fetched_at: start(),
        expires_at: start() + TimeDelta::days(1),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    };
    VisitRecord {
        site: site.clone(),
        started_at: start(),
        ended_at: start() + TimeDelta::seconds(30),
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: next_visit_at(), reason: "nothing was found".into() },
        robots: vec![robots],
        fetches: std::iter::once(first).chain((1..PATHS).map(|path| fetch(site, path))).collect(),
        changed_any: finding == Finding::Manifest,
        paths_checked,
        failures_in_row: 0,
        negatives_in_row: u32::from(finding == Finding::Nothing),
        new_seeds: Vec::new(),
        links: store::LinkChanges::default(),
        phases: Phases::default(),
        requests: 21,
        bytes_in: 10_240,
        crawler_version: "0.1.0".into(),
        claim: None,
    }
}
