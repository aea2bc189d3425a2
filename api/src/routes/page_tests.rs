//! Tests of all pages: on which threads they are rendered, and which characters they contain.

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::answers::search::{counted, search};
use crate::client::Client;
use crate::manifests::tests::{World, capability_of};
use crate::response::RenderedOn;

const TYPED: &str = "%1b%5B31m%0d%c2%9b31m%e2%80%ae%ef%bb%bfx";

async fn send(world: &World, method: &str, path: &str, body: &str) -> Response {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header(header::ACCEPT, "text/html")
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Body::from(body.to_owned()))
        .unwrap();
    request.extensions_mut().insert(ConnectInfo(std::net::SocketAddr::from(([192, 0, 2, 1], 4711))));
    world.router.clone().oneshot(request).await.unwrap()
}

async fn text_of(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

/// Rendering time grows with requests of clients and texts of publishers, so it must not block the async runtime.
#[tokio::test]
async fn every_page_and_feed_is_made_outside_the_async_runtime() {
    let world = World::new(&[("small", 10)]).await;
    let capability = format!("/capabilities/{}", capability_of("small"));
    let mut asked: Vec<(&str, String, &str)> = [
        "/",
        "/search?q=book",
        "/search?q=book&limit=100&group_by=none",
        "/search?q=none&format=atp",
        "/sites",
        "/sites/small.example",
        "/changes",
        "/crawl",
        "/stats",
        "/semantic-types",
        "/docs",
        "/validate",
        "/validate?url=x",
        "/validate?url=https%3A%2F%2Fsmall.example%2Fagent.json",
        "/changes.atom",
        "/search.atom?q=book",
        "/sites/small.example/changes.atom",
        "/badge/small.example.svg",
    ]
    .map(|path| ("GET", path.to_owned(), ""))
    .into();
    asked.push(("GET", capability.clone(), ""));
    asked.push(("GET", format!("{capability}/try?v.x=1"), ""));
    asked.push(("POST", "/validate".to_owned(), "document=%7B%7D&url="));
    asked.push(("POST", "/validate".to_owned(), "document=%7B%7D&url=x"));
    asked.push(("POST", "/reports".to_owned(), "site=small.example&reason=spam"));
    let runtime = std::thread::current().id();
    for (method, path, body) in asked {
        let response = send(&world, method, &path, body).await;
        assert!(response.status().is_success(), "{path}: {}", response.status());
        let rendered = response.extensions().get::<RenderedOn>().map(|RenderedOn(thread)| *thread);
        assert!(rendered.is_some_and(|thread| thread != runtime), "{method} {path}: {rendered:?}");
    }
}

/// Text of a request that a page repeats cannot control a terminal that shows the page.
#[tokio::test]
async fn no_page_has_a_character_that_a_terminal_interprets() {
    let world = World::new(&[("small", 10)]).await;
    let capability = capability_of("small");
    for path in [
        format!("/search?q={TYPED}"),
        format!("/search?q=book&site={TYPED}"),
        format!("/sites?prefix={TYPED}"),
        format!("/sites/{TYPED}"),
        format!("/validate?url={TYPED}"),
        format!("/capabilities/{capability}/try?v.day={TYPED}"),
        format!("/search?q=book&unknown{TYPED}=1"),
    ] {
        let text = text_of(send(&world, "GET", &path, "").await).await;
        assert!(text.contains("<html"), "{path}: {text:.300}");
        let found = text.chars().find(|c| !matches!(c, '\n' | '\t') && settings::escape::is_unsafe(*c));
        assert_eq!(found, None, "{path}");
    }
}

/// Each link of the page repeats the request, so that the page would grow with the square of its length.
#[tokio::test]
async fn a_page_repeats_a_bounded_request() {
    let world = World::new(&[("small", 10)]).await;
    let sites =
        |count: usize| (0..count).map(|number| format!("s{number}.example")).collect::<Vec<_>>().join(",");
    let words = |bytes: usize| "%61".repeat(bytes);
    for (path, status) in [
        (format!("/search?q={}&site={}", words(1_000), sites(24)), StatusCode::OK),
        (format!("/search?q={0}&q={0}&site=none.example", words(1_000)), StatusCode::OK),
        (format!("/search?q=book&site={}", sites(25)), StatusCode::BAD_REQUEST),
        (format!("/search?q={0}&q={0}&q={0}&q={0}", words(1_000)), StatusCode::BAD_REQUEST),
    ] {
        let response = send(&world, "GET", &path, "").await;
        assert_eq!(response.status(), status, "{path:.100}");
        let bytes = text_of(response).await.len();
        assert!(bytes < 1024 * 1024, "{path:.100}: {bytes} bytes");
    }
}

/// The texts of the results are counted while the page waits for its turn.
#[tokio::test]
async fn results_that_wait_for_their_page_count() {
    let world = World::new(&[("small", 10)]).await;
    let client = Client { address: [192, 0, 2, 1].into(), is_local: false };
    let request =
        indexer::SearchRequest { phrasings: vec!["book".to_owned()], ..indexer::SearchRequest::default() };
    let mut hits = search(&world.app.index, client, request).await.unwrap().answer.hits;
    hits[0].description = Some("x".repeat(1_000_000));
    let counted = counted(world.app.manifests(client), &hits).unwrap();
    let taken = world.app.capacity.buffered_bytes.taken();
    assert!((900_000..1_100_000).contains(&taken), "{taken}");
    drop(counted);
    assert_eq!(world.app.capacity.buffered_bytes.taken(), 0);
}
