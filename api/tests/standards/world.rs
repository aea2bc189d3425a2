//! Documents as sites publish them, read by the real readers, in a store with an index and the interface in front.

use api::{ApiConfig, App, LimitsConfig};
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use indexer::{IndexBuilder, IndexConfig};
use manifest::{Discovery, Document, ManifestUrl};
use policy::{FetchOutcome, Status, VisitEnd};
use serde_json::{Value, json};
use store::{
    DatabaseUrl, FetchRecord, LeaseRequest, NextVisit, PathSlots, Phases, Seed, Store, StoreConfig,
    VisitRecord, WorkerId,
};

use crate::answer::Answer;

/// How the world reaches the interface under test.
pub(crate) const PUBLIC_URL: &str = "https://dex.example";

/// When everything was fetched.
fn fetched_at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_244_400, 0).unwrap()
}

pub(crate) struct World {
    pub(crate) store: Store,
    router: Router,
    _dir: tempfile::TempDir,
}

impl Answer {
    /// The answer of a request that was well.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self.json()
    }
}

impl World {
    /// A web of five sites in four dialects, one of them a catalog of others' artefacts.
    pub(crate) async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
        let store = Store::open(&database).await.unwrap();
        for (url, body) in documents() {
            visit(&store, url, body).await;
        }
        store.feed_sequence().await.unwrap();
        let index_dir = IndexConfig::in_data_dir(dir.path()).dir;
        let builder = IndexBuilder::begin(&index_dir, &store.feed_id().await.unwrap()).unwrap();
        for stored in store.manifests_page(None, 100).await.unwrap() {
            builder.add(&stored).unwrap();
        }
        builder.finish(store.feed_head().await.unwrap()).unwrap();
        let listen = "127.0.0.1:8080".parse().unwrap();
        let config = ApiConfig {
            listen,
            public_url: Some(PUBLIC_URL.parse().unwrap()),
            index_dir,
            index_from: None,
            database,
            limits: LimitsConfig::default(),
            trusted_proxies: Vec::new(),
            admin_tokens: None,
            feedback: false,
            counts_kept_for: std::time::Duration::ZERO,
        };
        let app = App::with_store(config, store.clone());
        app.refresh_index();
        Self { router: api::router(&app), store, _dir: dir }
    }

    #[expect(clippy::disallowed_methods, reason = "what a client compares dates with")]
    pub(crate) fn now() -> DateTime<Utc> {
        Utc::now()
    }

    /// Lets a site publish a document that nobody has seen yet.
    pub(crate) async fn publish(&self, url: &str, body: Value) {
        visit(&self.store, url, body).await;
        self.store.feed_sequence().await.unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(&self.router, request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_text(path, body.to_string()).await
    }

    pub(crate) async fn post_text(&self, path: &str, body: impl Into<Body>) -> Answer {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request.body(body.into()).unwrap()).await
    }
}

/// A text as it stands in a query string.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Addresses and bodies, as published.
fn documents() -> Vec<(&'static str, Value)> {
    let action = |id: &str, text: &str, method: &str| {
        json!({"id": id, "description": text, "auth_required": method != "GET", "inputs": {"query": {"type": "string", "required": true}},
               "outputs": {"result": "string"}, "endpoint": format!("/api/{id}"), "method": method})
    };
    let airline = json!({"awp_version": "0.1", "domain": "skyhop.example", "intent": "Search and book flights.",
        "actions": [action("search_flights", "Search flights between two airports", "GET"),
                    action("book flight!", "Book a flight for one passenger", "POST")]});
    let weather = json!({"name": "Nimbus", "description": "Weather for agents.", "url": "https://nimbus.example/a2a", "version": "1.0.0",
        "protocolVersion": "0.3.0", "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "forecast", "name": "Weather forecast", "description": "Forecasts the weather of a city.",
                    "tags": ["weather", "forecast"], "examples": ["will it rain in Lisbon", "weather in Oslo tomorrow", "how warm is Rome"]}]});
    let server = json!({"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": "example.stormy/weather", "version": "1.2.0", "description": "Weather tools.",
        "remotes": [{"type": "streamable-http", "url": "https://stormy.example/mcp"}],
        "tools": [{"name": "storm_warning", "description": "Warns of storms: weather forecast tools for sailors",
                   "inputSchema": {"type": "object", "properties": {"place": {"type": "string"}}}}]});
    let catalog = json!({"specVersion": "1.0", "host": {"displayName": "Hub"}, "entries": [
        {"identifier": "urn:air:hub.example:agent:translator", "displayName": "Translator", "type": "application/a2a-agent-card+json",
         "url": "https://words.example/card.json", "description": "Translates letters between languages.", "tags": ["translation"],
         "representativeQueries": ["translate this letter", "what does this mean"]},
        {"identifier": "urn:air:hub.example:registry", "displayName": "Hub Registry", "type": "application/ai-registry+json",
         "url": "https://hub.example/api/", "description": "Finds agents for translation and travel."},
        {"identifier": "urn:air:dex.example:registry", "displayName": "This very registry", "type": "application/ai-registry+json",
         "url": "https://dex.example/", "description": "Finds agents."}]});
    vec![
        ("https://skyhop.example/agent.json", airline.clone()),
        ("https://skyhop.example/.well-known/agent.json", airline),
        ("https://nimbus.example/.well-known/agent-card.json", weather),
        ("https://stormy.example/.well-known/mcp/server-card.json", server),
        ("https://hub.example/.well-known/ai-catalog.json", catalog),
    ]
}

/// Visits a site at a fixed time and saves what it publishes.
async fn visit(store: &Store, url: &str, body: Value) {
    let now = fetched_at();
    let url = ManifestUrl::parse(url).unwrap();
    let host = url.host();
    store.seeds_add(&[Seed { revisit_now: true, ..Seed::of_host(host.clone()) }], now).await.unwrap();
    let mut request = LeaseRequest::due_now(WorkerId::new("tests"), 1, now);
    request.only = Some(vec![host.site()]);
    let leased = store.sites_lease(&request, now).await.unwrap();
    let record = VisitRecord {
        site: host.site(),
        started_at: now - TimeDelta::seconds(3),
        ended_at: now,
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: now, reason: "a test looks again".into() },
        robots: Vec::new(),
        fetches: vec![found(url, body.to_string().into_bytes(), now)],
        changed_any: true,
        paths_checked: PathSlots::new(),
        failures_in_row: 0,
        negatives_in_row: 0,
        new_seeds: Vec::new(),
        phases: Phases { dns_ms: 1, connect_ms: 2, tls_ms: 3, ttfb_ms: 4, body_ms: 5 },
        requests: 1,
        bytes_in: 1_234,
        crawler_version: "0.1.0".into(),
    };
    store.visit_save(&leased[0].token, &record).await.unwrap();
}

fn found(url: ManifestUrl, body: Vec<u8>, now: DateTime<Utc>) -> FetchRecord {
    let manifest = manifest::read(&Document {
        bytes: &body,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    });
    FetchRecord {
        url,
        final_url: None,
        discovery: Discovery::WellKnown,
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
        bytes: u64::try_from(body.len()).unwrap(),
        body: Some(body),
        store_body: true,
        manifest: Some(Box::new(manifest)),
        at: now,
        duration_ms: 7,
        address: None,
    }
}
