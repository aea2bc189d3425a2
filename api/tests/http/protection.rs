//! Rate limits, load shedding, headers behind TLS, and access to metrics.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use futures::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::answer::Answer;
use crate::world::{Settings, World};

async fn from(world: &World, peer: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

fn strict() -> api::LimitsConfig {
    let three = 3.try_into().unwrap();
    api::LimitsConfig {
        reads_per_second: 1.try_into().unwrap(),
        reads_burst: three,
        ..api::LimitsConfig::default()
    }
}

#[tokio::test]
async fn returns_429_with_retry_after_beyond_the_rate_limit() {
    let world = World::with(Settings { limits: strict(), ..Settings::default() }).await;
    for left in ["2", "1", "0"] {
        let answer = from(&world, "192.0.2.7", "/healthz", &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "the liveness probe is always answered");
        let answer = from(&world, "192.0.2.7", "/sites", &[]).await;
        assert_eq!((answer.status, answer.header("ratelimit-remaining")), (StatusCode::OK, left));
        assert_eq!(answer.header("ratelimit-limit"), "3");
    }
    let refused = from(&world, "192.0.2.7", "/sites", &[]).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.header("content-type"), "application/problem+json");
    assert_eq!(refused.json()["errorCode"], "RATE_LIMIT_EXCEEDED");
    assert_eq!((refused.header("retry-after"), refused.header("ratelimit-remaining")), ("1", "0"));
    assert!(refused.header("vary").contains("accept"));
    assert_eq!(
        from(&world, "192.0.2.8", "/sites", &[]).await.status,
        StatusCode::OK,
        "other clients are not limited"
    );
    let page = from(&world, "192.0.2.7", "/sites", &[("accept", "text/html")]).await;
    assert_eq!((page.status, page.header("retry-after")), (StatusCode::TOO_MANY_REQUESTS, "1"));
}

#[tokio::test]
async fn limits_clients_behind_a_trusted_proxy_separately() {
    let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
    let world = World::with(Settings { limits: strict(), trusted_proxies, ..Settings::default() }).await;
    let ask =
        async |client: &str| from(&world, "10.1.1.1", "/sites", &[("x-forwarded-for", client)]).await.status;
    for _ in 0..3 {
        assert_eq!(ask("198.51.100.1").await, StatusCode::OK);
    }
    assert_eq!(ask("198.51.100.1").await, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        ask("203.0.113.9, 198.51.100.1").await,
        StatusCode::TOO_MANY_REQUESTS,
        "a client cannot forge its address"
    );
    assert_eq!(ask("198.51.100.2").await, StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_for_this_machine_and_admins() {
    let public_url = Some("https://agentdex.example".parse().unwrap());
    let world = World::with(Settings { public_url, ..Settings::default() }).await;
    world.get("/search?q=flight").await;
    let local = from(&world, "127.0.0.1", "/metrics", &[("host", "localhost:8080")]).await;
    assert_eq!(local.status, StatusCode::OK);
    assert!(local.header("content-type").starts_with("text/plain"));
    let text = local.text();
    assert!(
        text.contains("agentdex_api_requests_total{route=\"/search\",method=\"GET\",status=\"2xx\"}"),
        "{text}"
    );
    assert!(text.contains("agentdex_api_request_duration_seconds_bucket"), "{text}");
    let forwarded = ("x-forwarded-for", "192.0.2.7");
    for (peer, headers) in [
        ("192.0.2.7", vec![("host", "localhost")]),
        ("127.0.0.1", vec![("host", "localhost"), forwarded]),
        ("127.0.0.1", vec![]),
    ] {
        assert_eq!(from(&world, peer, "/metrics", &headers).await.status, StatusCode::FORBIDDEN, "{peer}");
    }
}

/// A page in a browser can point its own name at this machine (DNS rebinding): the request is local, but has the name of
/// another host.
#[tokio::test]
async fn foreign_host_names_are_not_local() {
    let public_url = Some("https://agentdex.example".parse().unwrap());
    let world = World::with(Settings { public_url, ..Settings::default() }).await;
    let status =
        async |path: &str, host: &str| from(&world, "127.0.0.1", path, &[("host", host)]).await.status;
    for host in ["localhost", "127.0.0.1:8080", "[::1]:8080"] {
        assert_eq!(status("/metrics", host).await, StatusCode::OK, "{host}");
    }
    for host in ["rebound.example", "rebound.example:8080", "127.0.0.1.rebound.example", "agentdex.example"] {
        assert_eq!(status("/metrics", host).await, StatusCode::FORBIDDEN, "{host}");
        assert_eq!(status("/sites", host).await, StatusCode::OK, "public routes accept any name: {host}");
    }
    let limit = from(&world, "127.0.0.1", "/sites", &[("host", "rebound.example")]).await;
    assert_eq!(limit.header("ratelimit-limit"), "200", "it does not get the limits of local programs");
}

#[tokio::test]
async fn sends_hsts_behind_tls() {
    let plain = World::new().await;
    assert_eq!(plain.get("/sites").await.header("strict-transport-security"), "");
    let public_url = Some("https://agentdex.example".parse().unwrap());
    let world = World::with(Settings { public_url, ..Settings::default() }).await;
    assert!(world.get("/sites").await.header("strict-transport-security").starts_with("max-age="));
}

#[tokio::test]
async fn errors_vary_by_accept() {
    let world = World::new().await;
    for path in ["/nowhere", "/search", "/sites/unknown.example"] {
        assert!(world.get(path).await.header("vary").contains("accept"), "{path}");
    }
}

/// Uses a real listener, because a slow client needs a connection.
#[tokio::test]
async fn serves_a_connection_until_it_stops() {
    let world = World::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(api::serve(listener, world.app.clone(), stop.clone()));
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut buffer = vec![0; 4_096];
    let read = client.read(&mut buffer).await.unwrap();
    let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");

    let mut greedy = tokio::net::TcpStream::connect(address).await.unwrap();
    let headers = "x-filler: 0123456789\r\n".repeat(100);
    greedy.write_all(format!("GET /healthz HTTP/1.1\r\n{headers}\r\n").as_bytes()).await.unwrap();
    let read = greedy.read(&mut buffer).await.unwrap();
    let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
    assert!(text.starts_with("HTTP/1.1 431"), "{text}");

    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), serving.join_next()).await.unwrap();
    ended.unwrap().unwrap().unwrap();
}

/// A body that stalls after one byte.
fn stalled() -> Body {
    let first = futures::stream::iter([Ok::<_, std::io::Error>(vec![b'x'])]);
    Body::from_stream(first.chain(futures::stream::pending()))
}

#[tokio::test]
async fn stalled_request_bodies_do_not_block_searches() {
    let world = World::new().await;
    let mut stalled_clients = tokio::task::JoinSet::new();
    for _ in 0..600 {
        let request = Request::post("/validate").header("content-length", "100").body(stalled()).unwrap();
        stalled_clients.spawn(world.router.clone().oneshot(request));
    }
    for _ in 0..600 {
        tokio::task::yield_now().await;
    }
    for _ in 0..20 {
        let answer = world.get("/search?q=flight").await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    stalled_clients.shutdown().await;
}

#[tokio::test]
async fn accepts_documents_up_to_4_mib() {
    const MIB_4: usize = 4 * 1024 * 1024;
    let world = World::new().await;
    let validate = async |bytes: usize| {
        let (begin, end) =
            (r#"{"awp_version": "0.1", "domain": "a.example", "intent": ""#, r#"", "actions": []}"#);
        let body = format!("{begin}{}{end}", "x".repeat(bytes - begin.len() - end.len()));
        let request = Request::post("/validate").header("content-type", "application/json");
        world.send(request.body(Body::from(body)).unwrap()).await
    };
    let fits = validate(MIB_4).await;
    assert_eq!(fits.status, StatusCode::OK, "{}", fits.text());
    assert_eq!(fits.json()["format"], "awp");
    let large = validate(MIB_4 + 1).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.json()["errorCode"], "PAYLOAD_TOO_LARGE");
    assert_eq!(world.get("/validate").await.json()["bytes_max"], MIB_4);
}

#[tokio::test]
async fn one_client_cannot_take_all_streams() {
    let world = World::new().await;
    let open = async |peer: &str| {
        let mut request = Request::get("/changes/stream").body(Body::empty()).unwrap();
        let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        world.router.clone().oneshot(request).await.unwrap()
    };
    let mut streams = Vec::new();
    for _ in 0..25 {
        streams.push(open("192.0.2.7").await);
        assert_eq!(streams.last().map(http::Response::status), Some(StatusCode::OK));
    }
    assert_eq!(open("192.0.2.7").await.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(open("192.0.2.8").await.status(), StatusCode::OK);
    drop(streams);
    assert_eq!(open("192.0.2.7").await.status(), StatusCode::OK);
}

/// Small in bytes, large as a tree: 300,000 values.
#[tokio::test]
async fn wide_bodies_are_refused_by_every_route_that_reads_json() {
    let world = World::with(Settings { feedback: true, ..Settings::default() }).await;
    let wide = format!("{{\"x\":[{}1]}}", "1,".repeat(300_000));
    for path in
        ["/search", "/explore", "/sites", "/tools/find_capability", "/woa/find_capability", "/a2a", "/mcp"]
    {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        let answer = world.send(request.body(Body::from(wide.clone())).unwrap()).await;
        assert!(!answer.status.is_server_error(), "{path}: {}", answer.text());
        let is_refused = answer.status.is_client_error() || answer.text().contains("error");
        assert!(is_refused, "{path}: {}", answer.text());
        let says = answer.text();
        assert!(says.contains("the limit is") || says.contains("larger than"), "{path}: {says}");
    }
}
