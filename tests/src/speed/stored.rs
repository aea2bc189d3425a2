//! Fills a store with generated sites, each with one visit that found one manifest, so that a benchmark can measure indexing from a store.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Discovery, Host};
use policy::{FetchOutcome, Status, VisitEnd};
use store::{
    FetchRecord, LeaseRequest, NextVisit, PathSlots, Phases, Seed, Store, StoredManifest, VisitRecord,
    WorkerId,
};

/// Number of sites per lease.
const LEASED_AT_ONCE: usize = 100;

/// Saves a visit for every manifest, in batches.
pub async fn fill(store: &Store, manifests: &[StoredManifest]) -> anyhow::Result<()> {
    let now = DateTime::from_timestamp(1_790_000_000, 0).unwrap_or_default();
    for batch in manifests.chunks(LEASED_AT_ONCE) {
        let seeds: Vec<Seed> =
            batch.iter().map(|of| Seed::of_host(of.manifest.url.host())).collect::<Vec<_>>();
        store.seeds_add(&seeds, now).await?;
        let request = LeaseRequest {
            duration: Duration::from_mins(10),
            only: Some(batch.iter().map(|of| of.manifest.url.site()).collect()),
            ..LeaseRequest::due_now(WorkerId::new("bench"), u32::try_from(batch.len())?, now)
        };
        let leased = store.sites_lease(&request, now).await?;
        let visits: Vec<_> = leased
            .iter()
            .filter_map(|leased| {
                let of_site = batch.iter().find(|of| of.manifest.url.site() == leased.token.site);
                Some((&leased.token, visit(of_site?, now)))
            })
            .collect();
        let together: Vec<_> = visits.iter().map(|(token, visit)| (*token, visit)).collect();
        for saved in store.visits_save(&together).await? {
            saved?;
        }
    }
    Ok(())
}

fn visit(stored: &StoredManifest, now: DateTime<Utc>) -> VisitRecord {
    let mut manifest = stored.manifest.clone();
    let host: Host = manifest.url.host();
    manifest.content_hash = ContentHash::of(host.as_str().as_bytes());
    let fetch = FetchRecord {
        url: manifest.url.clone(),
        final_url: None,
        discovery: Discovery::Root,
        linked_from: None,
        outcome: FetchOutcome::Found,
        reason: None,
        robots_rule: None,
        status: Some(200),
        headers: Vec::new(),
        etag: None,
        last_modified: None,
        cache: None,
        fresh_until: None,
        content_hash: Some(manifest.content_hash.clone()),
        body: None,
        store_body: false,
        is_stored_reading: false,
        manifest: Some(Box::new(manifest)),
        training: manifest::model::PolicyChoice::Unset,
        at: now,
        duration_ms: 1,
        address: None,
        bytes: 1,
    };
    VisitRecord {
        site: stored.manifest.url.site(),
        started_at: now,
        ended_at: now,
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: now, reason: "made".into() },
        robots: Vec::new(),
        changed_any: true,
        fetches: vec![fetch],
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
    }
}
