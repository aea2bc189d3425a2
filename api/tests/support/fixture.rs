//! Shared test setup: a store of visits, an index of it, and the router of the API.

use std::path::PathBuf;

use api::{ApiConfig, App, LimitsConfig};
use axum::Router;
use chrono::{DateTime, TimeDelta, Utc};
use indexer::{IndexBuilder, IndexConfig};
use manifest::{Discovery, Manifest, ManifestUrl};
use policy::claim::Claim;
use policy::{FetchOutcome, Status, VisitEnd};
use store::{
    DatabaseUrl, FetchRecord, LeaseRequest, NextVisit, PathSlots, Phases, RobotsRecord, Seed, Store,
    StoreConfig, VisitRecord, WorkerId,
};

/// Time of all fetches.
pub(crate) fn fetched_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_244_400, 0).unwrap()
}

/// A store in its own temporary directory, which is removed with this value.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    database: StoreConfig,
    dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
        let store = Store::open(&database).await.unwrap();
        Self { store, database, dir }
    }

    fn index_dir(&self) -> PathBuf {
        IndexConfig::in_data_dir(self.dir.path()).dir
    }

    /// Builds an index of the store.
    pub(crate) async fn build_index(&self) {
        let store = &self.store;
        let builder = IndexBuilder::begin(&self.index_dir(), &store.feed_id().await.unwrap()).unwrap();
        for stored in store.manifests_page(None, 100).await.unwrap() {
            builder.add(&stored).unwrap();
        }
        builder.finish(store.feed_head().await.unwrap()).unwrap();
    }

    /// The default configuration of the API.
    pub(crate) fn config(&self) -> ApiConfig {
        ApiConfig {
            listen: "127.0.0.1:8080".parse().unwrap(),
            public_url: None,
            index: IndexConfig::at(self.index_dir()),
            index_from: None,
            embedder: None,
            database: self.database.clone(),
            primary: None,
            limits: LimitsConfig::default(),
            reads: api::Reads::default(),
            trusted_proxies: Vec::new(),
            admin_tokens: None,
            card_signer: None,
            contact: None,
            styleguide: true,
            feedback: false,
            counts_kept_for: std::time::Duration::ZERO,
            runtime_health: runtime::RuntimeHealth::default(),
            timeouts: api::ClientTimeouts::default(),
            reader: None,
            federation: api::FederationConfig::default(),
        }
    }

    pub(crate) async fn serve(&self, config: ApiConfig) -> (Router, App) {
        let app = App::with_store(config, self.store.clone());
        app.refresh_index().await;
        (api::router(&app), app)
    }

    /// Visits the site of the first fetch, and saves the result.
    pub(crate) async fn visit(
        &self,
        fetches: Vec<FetchRecord>,
        robots: Vec<RobotsRecord>,
        now: DateTime<Utc>,
    ) {
        self.visit_with_claim(fetches, (robots, None), now).await;
    }

    /// Saves a visit that checked the claim to the site.
    pub(crate) async fn visit_with_claim(
        &self,
        fetches: Vec<FetchRecord>,
        (robots, claim): (Vec<RobotsRecord>, Option<Claim>),
        now: DateTime<Utc>,
    ) {
        let host = fetches[0].url.host();
        let seed = Seed { revisit_now: true, ..Seed::of_host(host.clone()) };
        self.store.seeds_add(&[seed], now).await.unwrap();
        let mut request = LeaseRequest::due_now(WorkerId::new("tests"), 1, now);
        request.only = Some(vec![host.site()]);
        let leased = self.store.sites_lease(&request, now).await.unwrap();
        let record = VisitRecord {
            site: host.site(),
            started_at: now - TimeDelta::seconds(3),
            ended_at: now,
            end: VisitEnd::Completed,
            status: Status::Fresh,
            next_visit: NextVisit {
                // the server has the real clock, for which no site may become due
                at: now + TimeDelta::days(36_500),
                reason: "nothing changed for a week".into(),
            },
            requests: u32::try_from(fetches.len() + robots.len()).unwrap(),
            robots,
            fetches,
            changed_any: true,
            paths_checked: PathSlots::new(),
            failures_in_row: 0,
            negatives_in_row: 0,
            new_seeds: Vec::new(),
            links: store::LinkChanges::default(),
            phases: Phases { dns_ms: 1, connect_ms: 2, tls_ms: 3, ttfb_ms: 4, body_ms: 5 },
            bytes_in: 1_234,
            crawler_version: "0.1.0".into(),
            claim,
        };
        self.store.visit_save(&leased[0].token, &record).await.unwrap();
    }
}

/// A manifest that was found, with the body it was read from.
pub(crate) fn found(manifest: Manifest, body: Vec<u8>, now: DateTime<Utc>) -> FetchRecord {
    FetchRecord {
        outcome: FetchOutcome::Found,
        status: Some(200),
        content_hash: Some(manifest.content_hash.clone()),
        bytes: u64::try_from(body.len()).unwrap(),
        body: Some(body),
        store_body: true,
        manifest: Some(Box::new(manifest.clone())),
        ..not_found(manifest.url, now)
    }
}

pub(crate) fn not_found(url: ManifestUrl, now: DateTime<Utc>) -> FetchRecord {
    FetchRecord {
        url,
        final_url: None,
        discovery: Discovery::WellKnown,
        linked_from: None,
        outcome: FetchOutcome::NotFound,
        training: manifest::model::PolicyChoice::Unset,
        reason: None,
        robots_rule: None,
        status: Some(404),
        headers: Vec::new(),
        etag: None,
        last_modified: None,
        cache: None,
        fresh_until: None,
        content_hash: None,
        body: None,
        store_body: false,
        is_stored_reading: false,
        manifest: None,
        at: now,
        duration_ms: 7,
        address: None,
        bytes: 0,
    }
}
