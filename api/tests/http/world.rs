//! A store with four sites and one that opted out, an index over them, and the interface in front.

use api::{ApiConfig, App, LimitsConfig};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use chrono::{DateTime, TimeDelta, Utc};
use indexer::{IndexBuilder, IndexConfig};
use manifest::{Discovery, Host, Manifest, ManifestUrl, SiteName};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use store::{
    DatabaseUrl, FetchRecord, LeaseRequest, NextVisit, PathSlots, Phases, RobotsRecord, Seed, Store,
    StoreConfig, VisitRecord, WorkerId,
};

use crate::answer::Answer;
use crate::documents;

/// When everything was fetched.
pub(crate) fn fetched_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_244_400, 0).unwrap()
}

/// The whole set-up; the directory lives as long as it does.
pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) app: App,
    pub(crate) store: Store,
    _dir: tempfile::TempDir,
}

/// What a test may want otherwise.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) public_url: Option<url::Url>,
    pub(crate) limits: LimitsConfig,
    pub(crate) trusted_proxies: Vec<ipnet::IpNet>,
    pub(crate) admin_tokens: Option<std::path::PathBuf>,
    pub(crate) feedback: bool,
    pub(crate) counts_kept_for: std::time::Duration,
}

impl World {
    /// With an index.
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    /// With an index, and told something else than the defaults.
    pub(crate) async fn with(settings: Settings) -> Self {
        Box::pin(Self::build(Index::Built, settings)).await
    }

    /// Before the indexer ever ran.
    pub(crate) async fn without_index() -> Self {
        Box::pin(Self::build(Index::Missing, Settings::default())).await
    }

    async fn build(index: Index, settings: Settings) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
        let store = Store::open(&database).await.unwrap();
        for (manifest, keep) in [
            (documents::skyhop(), true),
            (documents::weather(), true),
            (documents::evil(), false),
            (documents::secretive(), true),
        ] {
            visit(&store, manifest, keep, fetched_at()).await;
        }
        opt_out(&store, "shy.example").await;
        store.feed_sequence().await.unwrap();
        let index_dir = IndexConfig::in_data_dir(dir.path()).dir;
        if matches!(index, Index::Built) {
            build_index(&store, &index_dir).await;
        }
        let listen = "127.0.0.1:8080".parse().unwrap();
        let Settings { public_url, limits, trusted_proxies, admin_tokens, feedback, counts_kept_for } =
            settings;
        let config = ApiConfig {
            listen,
            public_url,
            index_dir,
            index_from: None,
            database,
            limits,
            trusted_proxies,
            admin_tokens,
            feedback,
            counts_kept_for,
        };
        let app = App::with_store(config, store.clone());
        app.refresh_index();
        Self { router: api::router(&app), app, store, _dir: dir }
    }

    /// Lets a site publish another version, an hour after the first.
    pub(crate) async fn publish(&self, manifest: Manifest) {
        visit(&self.store, manifest, true, fetched_at() + TimeDelta::hours(1)).await;
        self.store.feed_sequence().await.unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(&self.router, request).await
    }

    /// As curl asks.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[("accept", "*/*")]).await
    }

    /// As a browser asks.
    pub(crate) async fn page(&self, path: &str) -> Answer {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        self.get_with(path, &[("accept", accept)]).await
    }

    pub(crate) async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }
}

enum Index {
    Built,
    Missing,
}

async fn build_index(store: &Store, dir: &std::path::Path) {
    let builder = IndexBuilder::begin(dir, &store.feed_id().await.unwrap()).unwrap();
    for stored in store.manifests_page(None, 100).await.unwrap() {
        builder.add(&stored).unwrap();
    }
    builder.finish(store.feed_head().await.unwrap()).unwrap();
}

/// Visits a site and saves what it publishes.
async fn visit(store: &Store, manifest: Manifest, keep_body: bool, now: DateTime<Utc>) {
    let host = manifest.url.host();
    let seed = Seed { revisit_now: true, ..Seed::of_host(host.clone()) };
    store.seeds_add(&[seed], now).await.unwrap();
    let mut request = LeaseRequest::due_now(WorkerId::new("tests"), 1, now);
    request.only = Some(vec![host.site()]);
    let leased = store.sites_lease(&request, now).await.unwrap();
    let record = record(&host, manifest, keep_body, now);
    store.visit_save(&leased[0].token, &record).await.unwrap();
}

fn record(host: &Host, manifest: Manifest, keep_body: bool, now: DateTime<Utc>) -> VisitRecord {
    let missing = ManifestUrl::on_host(host, "/.well-known/agents.json").unwrap();
    VisitRecord {
        site: host.site(),
        started_at: now - TimeDelta::seconds(3),
        ended_at: now,
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: now + TimeDelta::days(7), reason: "nothing changed for a week".into() },
        robots: vec![robots(host, now)],
        fetches: vec![found(manifest, keep_body, now), not_found(missing, now)],
        changed_any: true,
        paths_checked: PathSlots::new(),
        failures_in_row: 0,
        negatives_in_row: 0,
        new_seeds: Vec::new(),
        phases: Phases { dns_ms: 1, connect_ms: 2, tls_ms: 3, ttfb_ms: 4, body_ms: 5 },
        requests: 3,
        bytes_in: 1_234,
        crawler_version: "0.1.0".into(),
    }
}

fn robots(host: &Host, now: DateTime<Utc>) -> RobotsRecord {
    RobotsRecord {
        host: host.clone(),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(b"User-agent: *\nAllow: /\n# <script>alert(5)</script>\r\n\x07".to_vec()),
        fetched_at: now,
        expires_at: now + TimeDelta::days(1),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    }
}

fn found(manifest: Manifest, keep_body: bool, now: DateTime<Utc>) -> FetchRecord {
    let body = documents::body_of(manifest.url.as_str()).into_bytes();
    let mut fetch = FetchRecord {
        outcome: FetchOutcome::Found,
        robots_rule: Some("Allow: /".into()),
        status: Some(200),
        headers: vec![("content-type".into(), "application/json".into()), ("etag".into(), "\"v1\"".into())],
        etag: Some("\"v1\"".into()),
        fresh_until: Some(now + TimeDelta::hours(1)),
        content_hash: Some(manifest.content_hash.clone()),
        bytes: u64::try_from(body.len()).unwrap(),
        body: Some(body),
        store_body: keep_body,
        duration_ms: 42,
        ..not_found(manifest.url.clone(), now)
    };
    fetch.manifest = Some(Box::new(manifest));
    fetch
}

fn not_found(url: ManifestUrl, now: DateTime<Utc>) -> FetchRecord {
    FetchRecord {
        url,
        final_url: None,
        discovery: Discovery::WellKnown,
        linked_from: None,
        outcome: FetchOutcome::NotFound,
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
        manifest: None,
        at: now,
        duration_ms: 7,
        address: None,
        bytes: 0,
    }
}

async fn opt_out(store: &Store, name: &str) {
    let host = Host::parse(name).unwrap();
    store.seeds_add(&[Seed::of_host(host)], fetched_at()).await.unwrap();
    store.site_block(&SiteName::parse(name).unwrap(), "asked by mail", fetched_at()).await.unwrap();
}
