//! Visits of sites, saved in a store as a crawler does.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, Manifest, ManifestUrl, SiteName};
use policy::{FetchOutcome, Status, VisitEnd};
use store::{FetchRecord, LeaseRequest, NextVisit, PathSlots, Phases, Seed, Store, VisitRecord, WorkerId};

/// A fetch that finds a manifest, or that finds it removed. The body is stored if there is one.
pub(crate) fn fetched(
    url: &str,
    manifest: Option<Manifest>,
    body: Option<Vec<u8>>,
    at: DateTime<Utc>,
) -> FetchRecord {
    FetchRecord {
        url: ManifestUrl::parse(url).unwrap(),
        final_url: None,
        discovery: Discovery::Root,
        linked_from: None,
        outcome: if manifest.is_some() { FetchOutcome::Found } else { FetchOutcome::Gone },
        reason: None,
        robots_rule: None,
        status: Some(if manifest.is_some() { 200 } else { 410 }),
        headers: Vec::new(),
        etag: None,
        last_modified: None,
        cache: None,
        fresh_until: None,
        content_hash: manifest.as_ref().map(|manifest| manifest.content_hash.clone()),
        store_body: body.is_some(),
        is_stored_reading: false,
        body,
        manifest: manifest.map(Box::new),
        training: manifest::model::PolicyChoice::Unset,
        at,
        duration_ms: 1,
        address: None,
        bytes: 1,
    }
}

/// Saves a visit of a site with these fetches.
pub(crate) async fn save(store: &Store, site: &str, fetches: Vec<FetchRecord>, now: DateTime<Utc>) {
    let record = VisitRecord {
        site: SiteName::parse(site).unwrap(),
        started_at: now,
        ended_at: now,
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: now, reason: "for the test".into() },
        robots: Vec::new(),
        changed_any: true,
        fetches,
        paths_checked: PathSlots::new(),
        failures_in_row: 0,
        negatives_in_row: 0,
        new_seeds: Vec::new(),
        links: store::LinkChanges::default(),
        phases: Phases { dns_ms: 0, connect_ms: 0, tls_ms: 0, ttfb_ms: 0, body_ms: 0 },
        requests: 1,
        bytes_in: 1,
        crawler_version: "0".into(),
        claim: None,
    };
    store.seeds_add(&[Seed::of_host(Host::parse(site).unwrap())], now).await.unwrap();
    let only = Some(vec![SiteName::parse(site).unwrap()]);
    let request = LeaseRequest {
        duration: Duration::from_mins(3),
        only,
        ..LeaseRequest::due_now(WorkerId::new("test"), 1, now)
    };
    let leased = store.sites_lease(&request, now).await.unwrap();
    store.visit_save(&leased.first().unwrap().token, &record).await.unwrap();
}
