//! A store with four sites and one that opted out, an index of them, and the router of the API.

use api::{App, LimitsConfig, Reads};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use chrono::{DateTime, TimeDelta, Utc};
use manifest::model::PolicyChoice;
use manifest::{Discovery, Host, Manifest, ManifestUrl, SiteName};
use policy::claim::{CheckResult, Claim, Proof};
use policy::key::{KeyHash, KeyKind};
use policy::{FetchOutcome, RobotsKind};
use store::{FetchRecord, RobotsRecord, Seed, Store};

use crate::answer::Answer;
use crate::documents;
pub(crate) use crate::fixture::fetched_at;
use crate::fixture::{Fixture, found, not_found};

/// The machine's clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the validity of an owner's key depends on the machine's clock"
)]
pub(crate) fn machine_now() -> DateTime<Utc> {
    Utc::now()
}

/// Owns the temporary directory of the store and the index.
pub(crate) struct World {
    pub(crate) router: Router,
    pub(crate) app: App,
    pub(crate) store: Store,
    fixture: Fixture,
}

/// Settings that a test may change.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) public_url: Option<url::Url>,
    pub(crate) limits: LimitsConfig,
    pub(crate) reads: Reads,
    pub(crate) trusted_proxies: Vec<ipnet::IpNet>,
    pub(crate) admin_tokens: Option<std::path::PathBuf>,
    pub(crate) card_signer: Option<std::sync::Arc<manifest::CardSigner>>,
    pub(crate) feedback: bool,
    pub(crate) contact: Option<String>,
    pub(crate) without_styleguide: bool,
    pub(crate) counts_kept_for: std::time::Duration,
    pub(crate) runtime_health: runtime::RuntimeHealth,
    pub(crate) reader: Option<runtime::ReaderProgram>,
}

impl World {
    /// A server with an index.
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    /// A server with an index and these settings.
    pub(crate) async fn with(settings: Settings) -> Self {
        Box::pin(Self::build(Index::Built, settings)).await
    }

    /// A server without an index, as before the first run of the indexer.
    pub(crate) async fn without_index() -> Self {
        Box::pin(Self::build(Index::Missing, Settings::default())).await
    }

    async fn build(index: Index, settings: Settings) -> Self {
        let fixture = Fixture::new().await;
        for (manifest, keep) in [
            (documents::skyhop(), true),
            (documents::weather(), true),
            (documents::evil(), false),
            (documents::secretive(), true),
        ] {
            visit(&fixture, manifest, keep, fetched_at()).await;
        }
        let store = fixture.store.clone();
        opt_out(&store, "shy.example").await;
        store.feed_head().await.unwrap();
        if matches!(index, Index::Built) {
            fixture.build_index().await;
        }
        let mut config = fixture.config();
        config.public_url = settings.public_url;
        config.limits = settings.limits;
        config.reads = settings.reads;
        config.trusted_proxies = settings.trusted_proxies;
        config.admin_tokens = settings.admin_tokens;
        config.card_signer = settings.card_signer;
        config.feedback = settings.feedback;
        config.contact = settings.contact;
        config.styleguide = !settings.without_styleguide;
        config.counts_kept_for = settings.counts_kept_for;
        config.runtime_health = settings.runtime_health;
        config.reader = settings.reader;
        let (router, app) = fixture.serve(config).await;
        Self { router, app, store, fixture }
    }

    /// Saves another version of a site's manifest, an hour after the first.
    pub(crate) async fn publish(&self, manifest: Manifest) {
        self.publish_after(1, manifest).await;
    }

    /// Saves another version of a site's manifest, this many hours after the first.
    pub(crate) async fn publish_after(&self, hours: i64, manifest: Manifest) {
        visit(&self.fixture, manifest, true, fetched_at() + TimeDelta::hours(hours)).await;
        self.store.feed_head().await.unwrap();
    }

    /// Publishes a manifest whose response states this training policy.
    pub(crate) async fn publish_with_training(&self, manifest: Manifest, training: PolicyChoice) {
        let now = fetched_at() + TimeDelta::hours(1);
        let fetch = FetchRecord { training, ..published(manifest, true, now) };
        self.fixture.visit(vec![fetch], Vec::new(), now).await;
    }

    /// Saves a visit that did not read the document at this URL, for this reason.
    pub(crate) async fn quarantine(&self, url: &str, reason: &str) {
        let now = fetched_at() + TimeDelta::hours(1);
        let fetch = FetchRecord {
            outcome: FetchOutcome::Quarantined,
            status: Some(200),
            reason: Some(reason.to_owned()),
            ..not_found(ManifestUrl::parse(url).unwrap(), now)
        };
        self.fixture.visit(vec![fetch], Vec::new(), now).await;
    }

    /// Saves a visit after which the document at this URL was not received, with this outcome.
    pub(crate) async fn not_received(&self, hours: i64, url: &str, outcome: FetchOutcome) {
        let now = fetched_at() + TimeDelta::hours(hours);
        let fetch = FetchRecord { outcome, ..not_found(ManifestUrl::parse(url).unwrap(), now) };
        self.fixture.visit(vec![fetch], Vec::new(), now).await;
        self.store.feed_head().await.unwrap();
    }

    /// Publishes a manifest that a document at this URL links to, this many hours after the first visits.
    pub(crate) async fn publish_linked(&self, hours: i64, manifest: Manifest, from: &str) {
        let now = fetched_at() + TimeDelta::hours(hours);
        let linked_from = Some(ManifestUrl::parse(from).unwrap());
        let discovery = Discovery::CatalogEntry;
        let fetch = FetchRecord { discovery, linked_from, ..published(manifest, true, now) };
        self.fixture.visit(vec![fetch], Vec::new(), now).await;
    }

    /// Saves a visit that did not find a URL which a client submitted.
    pub(crate) async fn visit_submitted(&self, url: &str) {
        let now = fetched_at() + TimeDelta::hours(2);
        let missing = not_found(ManifestUrl::parse(url).unwrap(), now);
        let missing = FetchRecord { discovery: Discovery::Submitted, ..missing };
        self.fixture.visit(vec![missing], Vec::new(), now).await;
    }

    /// Saves a later visit with these fetches.
    pub(crate) async fn visit_found(&self, fetches: Vec<FetchRecord>) {
        let now = fetched_at() + TimeDelta::hours(2);
        self.fixture.visit(fetches, Vec::new(), now).await;
    }

    /// Saves a visit to a site that found the proof of this key in its DNS. The validity of keys depends on the machine's clock.
    pub(crate) async fn prove(&self, site: &str, key: &str, proven_at: DateTime<Utc>) {
        let keys = vec![KeyHash::of_key(KeyKind::Owner, key).expect("a key")];
        let claim = Claim::default().after(CheckResult::Proven { keys, proof: Proof::Dns }, proven_at);
        let now = fetched_at() + TimeDelta::hours(2);
        let missing = ManifestUrl::parse(&format!("https://{site}/.well-known/mcp.json")).unwrap();
        let fetches = vec![not_found(missing, now)];
        self.fixture.visit_with_claim(fetches, (Vec::new(), Some(claim)), now).await;
    }

    /// Saves a visit that found nothing new, which ends now.
    pub(crate) async fn visit_now(&self, site: &str) {
        let now = machine_now();
        let missing = ManifestUrl::parse(&format!("https://{site}/.well-known/mcp.json")).unwrap();
        self.fixture.visit(vec![not_found(missing, now)], Vec::new(), now).await;
    }

    /// Rebuilds the index and serves it.
    pub(crate) async fn reindex(&self) {
        let config = indexer::IndexConfig::at(self.fixture.config().index.dir);
        indexer::follow::rebuild(self.store.clone(), config).await.unwrap();
        self.app.refresh_index().await;
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(&self.router, request).await
    }

    /// Sends the Accept header of curl.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[("accept", "*/*")]).await
    }

    /// Sends the Accept header of a browser.
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

/// Visits a site and saves what it publishes.
async fn visit(fixture: &Fixture, manifest: Manifest, keep_body: bool, now: DateTime<Utc>) {
    let host = manifest.url.host();
    let missing = ManifestUrl::on_host(&host, "/.well-known/agents.json").unwrap();
    let fetches = vec![published(manifest, keep_body, now), not_found(missing, now)];
    fixture.visit(fetches, vec![robots(&host, now)], now).await;
}

fn robots(host: &Host, now: DateTime<Utc>) -> RobotsRecord {
    RobotsRecord {
        host: host.clone(),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(b"User-agent: *\nAllow: /\n# <script>alert(5)</script>\r\n\x07".as_slice().into()),
        fetched_at: now,
        expires_at: now + TimeDelta::days(1),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    }
}

fn published(manifest: Manifest, keep_body: bool, now: DateTime<Utc>) -> FetchRecord {
    let body = documents::body_of(manifest.url.as_str()).into_bytes();
    FetchRecord {
        robots_rule: Some("Allow: /".into()),
        headers: vec![("content-type".into(), "application/json".into()), ("etag".into(), "\"v1\"".into())],
        etag: Some("\"v1\"".into()),
        fresh_until: Some(now + TimeDelta::hours(1)),
        store_body: keep_body,
        duration_ms: 42,
        ..found(manifest, body, now)
    }
}

async fn opt_out(store: &Store, name: &str) {
    let host = Host::parse(name).unwrap();
    store.seeds_add(&[Seed::of_host(host)], fetched_at()).await.unwrap();
    store.site_block(&SiteName::parse(name).unwrap(), "asked by mail", fetched_at()).await.unwrap();
}
