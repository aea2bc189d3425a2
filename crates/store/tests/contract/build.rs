//! Builders of sites, manifests and visits for tests.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use manifest::model::{SemanticType, TypeSource};
use manifest::{
    Capability, CapabilityKind, ContentHash, Discovery, Format, Host, Manifest, ManifestId, ManifestUrl,
    SiteName,
};
use policy::{FetchOutcome, Status, VisitEnd};
use serde_json::json;
use store::{
    AddressSlot, FetchRecord, LeaseRequest, LeasedSite, NextVisit, PathSlots, Phases, Seed, SlotClaim, Store,
    VisitRecord, VisitSaved, WorkerId,
};

/// Start time of every test.
pub(crate) fn start() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

pub(crate) fn later(minutes: i64) -> DateTime<Utc> {
    start() + TimeDelta::minutes(minutes)
}

/// The slot of the owner of an address, whose next request may be sent at `until`.
pub(crate) fn slot_until(address: IpAddr, until: DateTime<Utc>) -> AddressSlot {
    let (hold, from) = (Duration::from_millis(500), until - TimeDelta::milliseconds(500));
    AddressSlot { address, claim: SlotClaim::Owner, from, hold, latest: from + TimeDelta::seconds(15) }
}

pub(crate) fn host(name: &str) -> Host {
    Host::parse(name).expect("a host")
}

pub(crate) fn site(name: &str) -> SiteName {
    SiteName::parse(name).expect("a site")
}

pub(crate) fn url(text: &str) -> ManifestUrl {
    ManifestUrl::parse(text).expect("a URL")
}

pub(crate) fn seed(name: &str) -> Seed {
    Seed::of_host(host(name))
}

pub(crate) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

pub(crate) fn request(name: &str, sites_max: u32, now: DateTime<Utc>) -> LeaseRequest {
    LeaseRequest { duration: Duration::from_mins(3), ..LeaseRequest::due_now(worker(name), sites_max, now) }
}

/// Seeds one site and leases it.
pub(crate) async fn leased(store: &Store, name: &str, now: DateTime<Utc>) -> Result<LeasedSite> {
    store.seeds_add(&[seed(name)], now).await?;
    lease(store, name, now).await
}

/// Leases one site regardless of its due time.
pub(crate) async fn lease(store: &Store, name: &str, now: DateTime<Utc>) -> Result<LeasedSite> {
    let due_before = now + TimeDelta::days(10_000);
    let request = LeaseRequest { due_before, only: Some(vec![site(name)]), ..request("w", 1, now) };
    store.sites_lease(&request, now).await?.pop().context("the site is leased")
}

/// The body of a document with this text.
pub(crate) fn body(text: &str) -> Vec<u8> {
    json!({ "awp_version": "0.1", "intent": text }).to_string().into_bytes()
}

/// A text that does not compress.
pub(crate) fn random(seed: u64, bytes: usize) -> String {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 33) % 90).unwrap_or_default())
    };
    (0..bytes).map(|_| next()).collect()
}

/// A manifest read from a body, with capabilities of these native ids.
pub(crate) fn manifest(at: &str, body: &[u8], capabilities: &[&str]) -> Manifest {
    let at = url(at);
    let mut manifest: Manifest = serde_json::from_value(json!({
        "id": ManifestId::of(&at),
        "content_hash": ContentHash::of(body),
        "url": at,
        "origin": at.origin(),
        "discovery": "well_known",
        "detection": { "format": "awp", "strength": "strong", "evidence": ["awp_version is \"0.1\""] },
        "description": "Überraschend 航空 🛫",
    }))
    .expect("a manifest");
    for native_id in capabilities {
        let mut capability = Capability::new(
            &at,
            Format::Awp,
            native_id,
            native_id,
            CapabilityKind::Action,
            format!("/actions/{native_id}"),
        );
        capability.semantic_types.push(SemanticType {
            name: if native_id.contains("://") {
                (*native_id).to_owned()
            } else {
                format!("travel:{native_id}")
            },
            source: TypeSource::Declared,
            confidence: 1.0,
            rule: None,
        });
        manifest.capabilities.push(capability);
    }
    manifest
}

/// A fetch with default values.
pub(crate) fn fetch(at: &str, outcome: FetchOutcome, now: DateTime<Utc>) -> FetchRecord {
    FetchRecord {
        url: url(at),
        final_url: None,
        discovery: Discovery::WellKnown,
        linked_from: None,
        outcome,
        reason: Some(format!("it was {outcome}")),
        robots_rule: None,
        status: outcome.is_response().then_some(200),
        headers: vec![("content-type".into(), "application/json".into())],
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
        at: now,
        duration_ms: 42,
        address: Some([192, 0, 2, 7].into()),
        bytes: 512,
    }
}

/// A fetch that read a manifest.
pub(crate) fn found(at: &str, text: &str, capabilities: &[&str], now: DateTime<Utc>) -> FetchRecord {
    let body = body(text);
    let manifest = manifest(at, &body, capabilities);
    FetchRecord {
        status: Some(200),
        etag: Some(format!("\"{text}\"")),
        last_modified: Some("Sat, 21 Nov 2026 08:00:00 GMT".into()),
        cache: Some(json!({ "max_age": 60 })),
        fresh_until: Some(now + TimeDelta::minutes(1)),
        content_hash: Some(manifest.content_hash.clone()),
        body: Some(body),
        manifest: Some(Box::new(manifest)),
        training: manifest::model::PolicyChoice::Unset,
        ..fetch(at, FetchOutcome::Found, now)
    }
}

/// A visit of these fetches, which plans the next in a day.
pub(crate) fn visit(name: &str, now: DateTime<Utc>, fetches: Vec<FetchRecord>) -> VisitRecord {
    VisitRecord {
        site: site(name),
        started_at: now,
        ended_at: now + TimeDelta::seconds(30),
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: now + TimeDelta::days(1), reason: "unchanged for a day".into() },
        robots: Vec::new(),
        changed_any: fetches.iter().any(|fetch| fetch.manifest.is_some()),
        fetches,
        paths_checked: PathSlots::new(),
        failures_in_row: 0,
        negatives_in_row: 0,
        new_seeds: Vec::new(),
        links: store::LinkChanges::default(),
        phases: Phases { dns_ms: 1, connect_ms: 2, tls_ms: 3, ttfb_ms: 4, body_ms: 5 },
        requests: 3,
        bytes_in: 4_096,
        crawler_version: "0.1.0".into(),
        claim: None,
    }
}

/// Seeds a site if it is unknown, leases it, and saves a visit of these fetches.
pub(crate) async fn visited(
    store: &Store,
    name: &str,
    now: DateTime<Utc>,
    fetches: Vec<FetchRecord>,
) -> Result<VisitSaved> {
    let leased = leased(store, name, now).await?;
    Ok(store.visit_save(&leased.token, &visit(name, now, fetches)).await?)
}

/// The change and the reason of each feed entry after a position.
pub(crate) async fn feed_after(store: &Store, position: i64) -> Result<Vec<(String, String)>> {
    let entries = store.feed_read(store::FeedPosition(position), 1_000).await?;
    Ok(entries
        .into_iter()
        .map(|entry| (entry.change.to_string(), entry.reason.unwrap_or_default()))
        .collect())
}

pub(crate) fn says(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(change, reason)| ((*change).to_owned(), (*reason).to_owned())).collect()
}
