//! Spans of visits and API requests reach an OpenTelemetry collector.

use std::process::Output;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use testweb::{Host, Web};

use crate::world::{Api, Backend, World, output, text_of};

/// The batches that the programs have sent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Bytes>>>);

impl Collector {
    /// Starts the collector, and returns its URL for the setting.
    #[expect(clippy::disallowed_methods, reason = "the task ends with the test that started it")]
    async fn start(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let routes = Router::new().route("/v1/traces", post(take)).with_state(self.clone());
        tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
        url
    }

    /// Whether a batch contains all of these texts; OTLP contains strings unencoded.
    fn has(&self, texts: &[&str]) -> bool {
        let batches = self.0.lock().unwrap();
        let holds = |batch: &Bytes, text: &str| batch.windows(text.len()).any(|part| part == text.as_bytes());
        batches.iter().any(|batch| texts.iter().all(|text| holds(batch, text)))
    }
}

async fn take(State(collector): State<Collector>, headers: HeaderMap, batch: Bytes) -> StatusCode {
    assert_eq!(headers["content-type"], "application/x-protobuf");
    collector.0.lock().unwrap().push(batch);
    StatusCode::OK
}

async fn crawl(world: &World, traces_url: &str) -> Output {
    let mut crawler = world.crawler(&[]);
    crawler.env("AGENTDEX_TRACES_URL", traces_url);
    tokio::task::spawn_blocking(move || output(crawler)).await.unwrap()
}

pub(crate) async fn exports_spans_of_visits_and_requests() {
    let host = "sky.test";
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new(host))).await;
    world.write_seeds([host]);
    let collector = Collector::default();
    let url = collector.start().await;

    let ended = crawl(&world, &url).await;
    assert!(ended.status.success(), "{}", text_of(&ended));
    // the last batch is sent before the program ends
    let of_fetch =
        ["agentdex-crawler", "service.version", "fetch", "https://sky.test/robots.txt", "server.address"];
    assert!(collector.has(&of_fetch));
    assert!(collector.has(&["agentdex-crawler", "visit", "site.name", host, "lease.fence", "visit.end"]));

    world.index();
    let mut api = Api::start(&world, |command| {
        command.env("AGENTDEX_TRACES_URL", &url);
    });
    api.wait_until_ready().await;
    assert!(api.try_get("/search?q=book").await.unwrap().status().is_success());
    tokio::task::spawn_blocking(move || api.stop()).await.unwrap();
    assert!(collector.has(&["agentdex-api", "request", "request.id", "url.path", "/search"]));
    world.assert_polite();
}

pub(crate) async fn loses_only_spans_while_the_collector_is_unreachable() {
    let host = "sky.test";
    let world = World::start(Backend::Sqlite, Web::builder().host(Host::new(host))).await;
    world.write_seeds([host]);
    let ended = crawl(&world, "http://127.0.0.1:9/v1/traces").await;
    assert!(ended.status.success(), "{}", text_of(&ended));
    let failed = crawl(&world, "collector:4317").await;
    let text = text_of(&failed);
    assert_eq!(failed.status.code(), Some(2));
    assert!(
        text.contains("AGENTDEX_TRACES_URL") && text.contains("http://127.0.0.1:4318/v1/traces"),
        "{text}"
    );
    world.assert_polite();
}
