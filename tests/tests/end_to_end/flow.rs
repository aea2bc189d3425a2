//! From seeds to search results, and later passes: no change, a change, a removal, a killed crawler.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;
use testweb::{Answer, Hit, Host, Web, WebBuilder};

use crate::world::{Backend, World, interrupt, kill, output};

/// An airline's AWP manifest, whose second action has this id.
pub(crate) fn airline(action: &str) -> String {
    json!({
        "awp_version": "0.1", "domain": "wingway.test", "intent": "Search and book flights with Wingway.",
        "actions": [
            {"id": "search_flights", "description": "Search flights between two airports on a date", "auth_required": false,
             "inputs": {"origin": {"type": "airport_code", "required": true}, "destination": {"type": "airport_code", "required": true}},
             "outputs": {"flights": "array[object]"}, "endpoint": "/api/flights", "method": "GET"},
            {"id": action, "description": "Book a flight for one passenger", "auth_required": true,
             "inputs": {"flight_number": {"type": "string", "required": true}}, "outputs": {"booking_id": "string"},
             "endpoint": "/api/bookings", "method": "POST", "sensitivity": "irreversible"}
        ]
    })
    .to_string()
}

fn small_web() -> WebBuilder {
    let card = json!({"name": "Summariser", "description": "Summarises documents.", "url": "https://digest.test/a2a", "version": "1.0.0",
        "protocolVersion": "0.3.0", "capabilities": {}, "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "summarise", "name": "Summarise a document", "description": "Shortens a long document to its gist.", "tags": ["text"]}]});
    Web::builder()
        .host(Host::new("wingway.test").robots("User-agent: *\nAllow: /\n").file(
            "/agent.json",
            "application/json",
            airline("book_flight"),
        ))
        .host(Host::new("digest.test").file(
            "/.well-known/agent-card.json",
            "application/json",
            card.to_string(),
        ))
        .host(Host::new("closed.test").robots("User-agent: *\nDisallow: /\n").file(
            "/agent.json",
            "application/json",
            airline("hidden"),
        ))
        .host(Host::new("broken.test").route("/robots.txt", Answer::status(503)).file(
            "/agent.json",
            "application/json",
            airline("hidden"),
        ))
        .host(Host::new("empty.test"))
}

const SEEDS: [&str; 5] = ["wingway.test", "digest.test", "closed.test", "broken.test", "empty.test"];

async fn crawled(backend: Backend) -> World {
    let world = World::start(backend, small_web()).await;
    world.write_seeds(SEEDS);
    let summary = world.crawl(&[]);
    assert_eq!(summary["sites_visited"], 5, "{summary}");
    world.index();
    world
}

pub(crate) async fn crawled_capabilities_are_searchable(backend: Backend) {
    let world = crawled(backend).await;
    let api = world.api().await;
    assert_eq!(api.search("q=book+flight").await.first().map(String::as_str), Some("book_flight"));
    assert_eq!(api.search("q=summarise+document&format=a2a").await, ["summarise"]);
    assert!(api.search("site=closed.test").await.is_empty(), "a site that forbids crawling was indexed");
    let closed = api.get("/sites/closed.test").await;
    assert_eq!(closed["status"], "denied", "{closed}");
    assert_eq!(world.web.log().hits_on("broken.test").len(), 1, "further requests after a 503 of robots.txt");
    world.assert_polite();
}

pub(crate) async fn a_second_pass_revalidates_and_changes_nothing(backend: Backend) {
    let world = crawled(backend).await;
    let before = world.api().await.get("/changes").await;
    let began_us = world.web.log().now_us();
    world.crawl(&["--revisit", "0s"]);
    let is_requested_again = |hit: &Hit| hit.path == "/agent.json" && hit.started_us >= began_us;
    let requests: Vec<Hit> =
        world.web.log().hits_on("wingway.test").into_iter().filter(is_requested_again).collect();
    assert!(!requests.is_empty(), "the second pass did not request the manifest");
    assert!(
        requests.iter().all(|hit| hit.request.if_none_match.is_some() && hit.status == Some(304)),
        "{requests:?}"
    );
    world.index();
    assert_eq!(world.api().await.get("/changes").await, before);
    world.assert_polite();
}

pub(crate) async fn search_returns_a_changed_manifest(backend: Backend) {
    let world = crawled(backend).await;
    world.web.set_file("wingway.test", "/agent.json", "application/json", airline("reserve_seat"));
    world.crawl(&["--revisit", "0s"]);
    world.index();
    let found = world.api().await.search("site=wingway.test").await;
    assert!(
        found.contains(&"reserve_seat".to_owned()) && !found.contains(&"book_flight".to_owned()),
        "{found:?}"
    );
    world.assert_polite();
}

pub(crate) async fn search_omits_a_removed_manifest(backend: Backend) {
    let world = crawled(backend).await;
    world.web.set("wingway.test", "/agent.json", Answer::status(410));
    world.crawl(&["--revisit", "0s"]);
    world.index();
    let api = world.api().await;
    assert!(api.search("site=wingway.test").await.is_empty());
    let last = api.get("/changes").await["changes"].as_array().unwrap().last().cloned().unwrap();
    assert_eq!(last["change"], "removed", "{last}");
    world.assert_polite();
}

/// A world of forty shops, so that a pass takes some time.
async fn forty_shops(backend: Backend) -> World {
    let names: Vec<String> = (0..40).map(|index| format!("shop{index}.test")).collect();
    let hosts = names
        .iter()
        .map(|name| Host::new(name).file("/agent.json", "application/json", airline("book_flight")));
    let mut world = World::start(backend, Web::builder().hosts(hosts)).await;
    world.delay = Duration::from_millis(100);
    world.write_seeds(&names);
    world
}

async fn assert_forty_shops_are_found(world: &World) {
    world.index();
    let api = world.api().await;
    assert_eq!(api.get("/sites?limit=100").await["total"], 40);
    assert_eq!(api.get("/stats").await["manifests"], 40);
    world.assert_polite();
}

/// A crawler is killed in the middle of its pass; the next one finishes the pass and obeys the delay of each host.
pub(crate) async fn the_next_crawler_completes_the_pass_of_a_killed_one(backend: Backend) {
    let mut world = forty_shops(backend).await;
    // a fleet waits until the leases of the killed worker expire; with an embedded database, its end is detected immediately
    let lease = match backend {
        Backend::Sqlite => "30m",
        Backend::Postgres => "3s",
    };
    let mut first =
        world.crawler(&["--lease", lease]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 100).await;
    kill(&mut first);
    world.kills += 1;
    let before = world.requests();
    world.crawl(&["--lease", lease]);
    assert!(world.requests() > before, "the next crawler sent no request");
    assert_forty_shops_are_found(&world).await;
}

/// After Ctrl-C, a crawler completes the requests in flight and releases every site immediately; the next run repeats no request.
pub(crate) async fn an_interrupted_crawler_drains_and_the_next_continues(backend: Backend) {
    let world = forty_shops(backend).await;
    let first =
        world.crawler(&["--lease", "30m"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 100).await;
    let summary = interrupt(first);
    assert_eq!(summary["interrupted"], true, "{summary}");
    assert!(world.web.log().hits().iter().all(|hit| hit.complete), "a request was aborted");
    let requests_before = world.requests();
    let again = world.crawl(&["--lease", "30m"]);
    assert_eq!(again["interrupted"], false, "{again}");
    assert!(world.requests() > requests_before, "the next crawler sent no request");
    assert_forty_shops_are_found(&world).await;
}

/// Four crawlers share the queue of one PostgreSQL database; exactly one of them visits each site, once.
pub(crate) async fn four_crawlers_share_one_queue(backend: Backend) {
    let world = forty_shops(backend).await;
    // each command writes files that the others read, so all commands are created before the first one starts
    let commands: Vec<_> = (0..4).map(|_| world.crawler(&["--concurrency", "4"])).collect();
    let start = |mut command: Command| command.stdout(Stdio::piped()).spawn().unwrap();
    let crawlers: Vec<_> = commands.into_iter().map(start).collect();
    let mut visited = 0;
    for crawler in crawlers {
        let ended = crawler.wait_with_output().unwrap();
        assert!(ended.status.success(), "a crawler failed: {}", ended.status);
        let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        visited += summary["sites_visited"].as_u64().unwrap();
    }
    assert_eq!(visited, 40);
    assert_forty_shops_are_found(&world).await;
}

/// A second crawler on an embedded database is refused: it would only wait for the first.
#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_second_crawler_on_sqlite() {
    let world = forty_shops(Backend::Sqlite).await;
    let mut first = world.crawler(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 10).await;
    let second = output(world.crawler(&[]));
    kill(&mut first);
    let log = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{log}");
    assert!(log.contains("is already crawling on") && log.contains("--database-url"), "{log}");
}
