//! The guard before a route that responds on a signal.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ConnectInfo;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use futures::StreamExt as _;
use http::Request;
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::*;
use crate::capacity::REQUESTS_MAX;
use crate::limits::LimitsConfig;
use crate::test_app;
use crate::timeouts::{ClientTimeouts, MinRate};

struct World {
    app: App,
    router: Router,
    /// One permit lets one waiting request finish.
    may_end: Arc<Semaphore>,
    _dir: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let few = |number: u32| number.try_into().unwrap();
        let limits = LimitsConfig {
            reads_burst: few(10_000),
            requests_per_client: few(2),
            buffered_mib_per_client: few(1),
            ..LimitsConfig::default()
        };
        let sends = MinRate { allowance: Duration::from_millis(500), bytes_per_second: 1_000_000 };
        let (app, dir) = test_app::app(limits, ClientTimeouts { sends, ..ClientTimeouts::default() }).await;
        let may_end = Arc::new(Semaphore::new(0));
        let waits = Arc::clone(&may_end);
        let wait = async move || {
            waits.acquire().await.unwrap().forget();
            "done"
        };
        let router = Router::new()
            .route("/wait", get(wait.clone()).post(wait))
            .route("/echo", post(async |body: Bytes| body))
            .route("/validate", post(async |_: Bytes| "done"))
            .route("/large", get(async || vec![b'x'; 700_000]))
            .route("/metrics", get(async || vec![b'x'; 700_000]))
            .route("/readyz", get(async || "ready"))
            .route("/healthz", get(async || "alive").post(async || "alive"))
            .layer(from_fn_with_state(app.clone(), guard));
        Self { app, router, may_end, _dir: dir }
    }

    async fn send(&self, client: IpAddr, request: http::request::Builder, body: Body) -> Response {
        let mut request = request.body(body).unwrap();
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client, 4711)));
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, client: IpAddr, path: &str) -> Response {
        self.send(client, Request::get(path), Body::empty()).await
    }
}

fn client(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

/// Yields to other tasks until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it happens");
}

#[tokio::test]
async fn one_client_cannot_take_all_request_slots() {
    let world = Arc::new(World::new().await);
    let mut in_progress = JoinSet::new();
    for _ in 0..2 {
        let world = Arc::clone(&world);
        in_progress.spawn(async move { world.get(client(1), "/wait").await.status() });
    }
    until(|| world.app.capacity.requests.taken() == 2).await;
    let refused = world.get(client(1), "/wait").await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "1");
    let other = world.send(client(2), Request::post("/echo"), Body::from("hello")).await;
    assert_eq!(other.status(), StatusCode::OK);
    world.may_end.add_permits(2);
    while let Some(status) = in_progress.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
    assert_eq!(world.app.capacity.requests.taken(), 0);
}

#[tokio::test]
async fn returns_503_while_all_request_capacity_is_taken() {
    let world = World::new().await;
    let places: Vec<_> = (0..REQUESTS_MAX)
        .map(|number| {
            let address = IpAddr::from(u32::try_from(number).unwrap().to_be_bytes());
            world.app.capacity.requests.take(address, 1).unwrap()
        })
        .collect();
    let refused = world.get(client(1), "/wait").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let mut when = std::collections::BTreeSet::new();
    for _ in 0..4 {
        let refused = world.get(client(1), "/wait").await;
        let seconds = refused.headers()["retry-after"].to_str().unwrap().parse::<u32>().unwrap();
        assert!((1..=5).contains(&seconds));
        when.insert(seconds);
    }
    assert!(when.len() > 1, "the retry times do not differ: {when:?}");
    let numbers = Request::get("/metrics").header("host", "localhost");
    let numbers = world.send(IpAddr::from([127, 0, 0, 1]), numbers, Body::empty()).await;
    assert_eq!(
        (numbers.status(), world.app.capacity.buffered_bytes.taken()),
        (StatusCode::OK, 0),
        "rejected requests are not counted"
    );
    let strange =
        world.send(client(1), Request::get("/metrics").header("host", "localhost"), Body::empty()).await;
    assert_eq!(strange.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        world.get(client(1), "/readyz").await.status(),
        StatusCode::OK,
        "the readiness probe is always answered"
    );
    drop(places);
    world.may_end.add_permits(1);
    assert_eq!(world.get(client(1), "/wait").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn unsent_request_body_takes_no_request_capacity() {
    let world = Arc::new(World::new().await);
    let mut slow = JoinSet::new();
    let begun = Arc::new(Semaphore::new(0));
    for number in 0..20 {
        let (world, begun) = (Arc::clone(&world), Arc::clone(&begun));
        slow.spawn(async move {
            let first = futures::stream::once(async move {
                begun.add_permits(1);
                Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
            });
            let body = Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()));
            let request = Request::post("/echo").header("content-length", "100");
            world.send(client(number), request, body).await
        });
    }
    until(|| begun.available_permits() == 20).await;
    assert_eq!(world.app.capacity.requests.taken(), 0);
    let others = world.send(client(99), Request::post("/echo"), Body::from("hello")).await;
    assert_eq!(others.status(), StatusCode::OK);
    while let Some(cut) = slow.join_next().await {
        let cut = cut.unwrap();
        assert_eq!(
            (cut.status(), &cut.headers()["connection"]),
            (StatusCode::REQUEST_TIMEOUT, &HeaderValue::from_static("close"))
        );
    }
    assert_eq!(world.app.capacity.buffered_bytes.taken(), 0);
}

/// A body that is not read would keep its connection open after the response.
#[tokio::test]
async fn routes_respond_only_after_the_request_body_has_arrived() {
    let world = World::new().await;
    for path in ["/healthz", "/readyz", "/echo"] {
        let first = futures::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"x"))]);
        let body = Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending()));
        let request = Request::post(path).header("content-length", "100");
        assert_eq!(
            world.send(client(1), request, body).await.status(),
            StatusCode::REQUEST_TIMEOUT,
            "{path}"
        );
    }
    assert_eq!(world.get(client(1), "/healthz").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn unread_large_responses_are_bounded_per_client() {
    let world = World::new().await;
    let first = world.get(client(1), "/large").await;
    assert_eq!((first.status(), world.app.capacity.buffered_bytes.taken()), (StatusCode::OK, 700_000));
    let second = world.get(client(1), "/large").await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    let other = world.get(client(2), "/large").await;
    assert_eq!(other.into_body().collect().await.unwrap().to_bytes().len(), 700_000);
    assert_eq!(
        world.app.capacity.buffered_bytes.taken(),
        700_000,
        "the memory of read responses is released"
    );
    drop(first);
    assert_eq!(world.get(client(1), "/large").await.status(), StatusCode::OK);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test waits for the task")]
async fn tree_of_a_body_counts_for_its_client_until_the_response() {
    let world = Arc::new(World::new().await);
    let wide = || Body::from(format!("[{}1]", "{\"a\":1},".repeat(8_000)));
    let waiting = {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.send(client(1), Request::post("/wait"), wide()).await.status() })
    };
    until(|| world.app.capacity.requests.taken() == 1).await;
    assert!(world.app.capacity.buffered_bytes.taken() > 2_000_000, "64 KB of JSON take megabytes as a tree");
    let second = world.send(client(1), Request::post("/wait"), wide()).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    let small = world.send(client(1), Request::post("/echo"), Body::from("{\"a\":[1,2]}")).await;
    assert_eq!(small.status(), StatusCode::OK, "small bodies are not counted");
    world.may_end.add_permits(1);
    assert_eq!(waiting.await.unwrap(), StatusCode::OK);
    assert_eq!(world.app.capacity.buffered_bytes.taken(), 0);
}

#[tokio::test]
async fn slow_reader_of_a_large_response_may_send_small_requests() {
    let world = World::new().await;
    let _unread = world.app.capacity.buffered_bytes.take(client(1), 2_000_000).unwrap();
    let small = world.send(client(1), Request::post("/echo"), Body::from("hello")).await;
    assert_eq!(small.status(), StatusCode::OK);
}

/// Only routes whose bodies may contain a document take large ones.
#[tokio::test]
async fn a_large_body_is_refused_unread_where_no_document_is_expected() {
    let world = World::new().await;
    for path in ["/echo", "/nothing"] {
        for announced in [true, false] {
            let request = Request::post(path);
            let request = if announced { request.header("content-length", 1_000_000) } else { request };
            let taken = Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let pieces = {
                let taken = Arc::clone(&taken);
                futures::stream::iter(std::iter::repeat_n((), 100)).map(move |()| {
                    taken.fetch_add(10_000, std::sync::atomic::Ordering::Relaxed);
                    Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 10_000]))
                })
            };
            let answer = world.send(client(1), request, Body::from_stream(pieces)).await;
            assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE, "{path}");
            let taken = taken.load(std::sync::atomic::Ordering::Relaxed);
            assert!(taken <= if announced { 0 } else { 80_000 }, "{path}: {taken} bytes were read");
        }
    }
    let document = world.send(client(1), Request::post("/validate"), Body::from(vec![b' '; 1_000_000])).await;
    assert_eq!(document.status(), StatusCode::OK);
}

#[tokio::test]
async fn refuses_too_large_bodies_with_and_without_content_length() {
    let world = World::new().await;
    for announced in [true, false] {
        let mut request = Request::post("/echo");
        if announced {
            request = request.header("content-length", BODY_BYTES_MAX + 1);
        }
        let pieces = futures::stream::iter([Ok::<_, std::io::Error>(vec![b'x'; BODY_BYTES_MAX + 1])]);
        let answer = world.send(client(1), request, Body::from_stream(pieces)).await;
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(answer.headers()["connection"], "close");
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.contains("the body is larger than ") && text.contains(" bytes, the most that this route"),
            "{text}"
        );
    }
}
