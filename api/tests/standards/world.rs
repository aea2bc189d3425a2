//! Published documents, parsed by the real parsers, in a store with an index, and the router of the API.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::{DateTime, Utc};
use manifest::{Discovery, Document, ManifestUrl};
use policy::FetchOutcome;
use serde_json::{Value, json};
use store::{FetchRecord, Store};

use crate::answer::Answer;
use crate::fixture::{Fixture, fetched_at, found, not_found};

/// Public URL of the API under test.
pub(crate) const PUBLIC_URL: &str = "https://dex.example";

/// How a document was found, and the URL that links to it.
pub(crate) type Source<'a> = (Discovery, &'a str);

/// The source of documents that only another site links to.
const OF_OTHERS: Source<'_> = (Discovery::CatalogEntry, "https://evil.example/.well-known/ard.json");

pub(crate) struct World {
    pub(crate) store: Store,
    router: Router,
    fixture: Fixture,
}

impl Answer {
    /// The response of a successful request.
    pub(crate) fn ok(self) -> Value {
        assert_eq!(self.status, StatusCode::OK, "{}", self.text());
        self.json()
    }
}

impl World {
    /// Five sites in four dialects; one is a catalog of artefacts of other sites.
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The five sites of [`Self::new`], and these documents of other sites.
    pub(crate) async fn with(others: &[(&str, Value)]) -> Self {
        Self::with_found(others, &[]).await
    }

    /// The five sites of [`Self::new`], and these documents that only another site links to.
    pub(crate) async fn with_linked(linked: &[(&str, Value)]) -> Self {
        let linked = linked.iter().map(|(url, body)| (*url, OF_OTHERS, body.clone()));
        Self::with_found(&[], &linked.collect::<Vec<_>>()).await
    }

    /// The five sites of [`Self::new`], the documents of others, and these documents with their sources, in this order.
    pub(crate) async fn with_found(others: &[(&str, Value)], linked: &[(&str, Source<'_>, Value)]) -> Self {
        let fixture = Fixture::new().await;
        for (url, body) in documents().iter().chain(others) {
            visit(&fixture, url, body).await;
        }
        for (url, source, body) in linked {
            visit_linked(&fixture, (url, *source), body).await;
        }
        let store = fixture.store.clone();
        store.feed_head().await.unwrap();
        fixture.build_index().await;
        let mut config = fixture.config();
        config.public_url = Some(PUBLIC_URL.parse().unwrap());
        let (router, _) = fixture.serve(config).await;
        Self { store, router, fixture }
    }

    #[expect(clippy::disallowed_methods, reason = "clients compare dates with the current time")]
    pub(crate) fn now() -> DateTime<Utc> {
        Utc::now()
    }

    /// Saves a new document of a site.
    pub(crate) async fn publish(&self, url: &str, body: &Value) {
        visit(&self.fixture, url, body).await;
        self.store.feed_head().await.unwrap();
    }

    /// Saves a visit that found that a document is gone.
    pub(crate) async fn remove(&self, url: &str) {
        let gone = not_found(ManifestUrl::parse(url).unwrap(), fetched_at());
        let gone = FetchRecord { outcome: FetchOutcome::Gone, status: Some(410), ..gone };
        self.fixture.visit(vec![gone], Vec::new(), fetched_at()).await;
        self.store.feed_head().await.unwrap();
    }

    /// Saves a document that only another site links to, at any host of its site.
    pub(crate) async fn publish_linked(&self, url: &str, body: &Value) {
        visit_linked(&self.fixture, (url, OF_OTHERS), body).await;
        self.store.feed_head().await.unwrap();
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

/// A text, encoded for a query string.
pub(crate) fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// URLs and bodies as published.
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

/// Visits a site at a fixed time and saves its document, as the real parsers read it.
async fn visit(fixture: &Fixture, url: &str, body: &Value) {
    fixture.visit(vec![read(url, body)], Vec::new(), fetched_at()).await;
}

/// Visits a site whose document has this source, and saves it. A visit records the host of its first request.
async fn visit_linked(fixture: &Fixture, (url, (discovery, from)): (&str, Source<'_>), body: &Value) {
    let linked_from = Some(ManifestUrl::parse(from).unwrap());
    let linked = FetchRecord { discovery, linked_from, ..read(url, body) };
    let missing = format!("https://{}/.well-known/agents.json", linked.url.site());
    let missing = not_found(ManifestUrl::parse(&missing).unwrap(), fetched_at());
    fixture.visit(vec![missing, linked], Vec::new(), fetched_at()).await;
}

fn read(url: &str, body: &Value) -> FetchRecord {
    let (url, body) = (ManifestUrl::parse(url).unwrap(), body.to_string().into_bytes());
    let manifest = manifest::read(&Document {
        bytes: &body,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    });
    found(manifest, body, fetched_at())
}
