//! Reader keys: separate limits, usage counts, and instances that require a key for reads.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use api::{LimitsConfig, Reads};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use policy::key::{IssuedKey, KeyKind};
use serde_json::json;
use store::ReaderKey;
use tower::ServiceExt as _;

use crate::answer::Answer;
use crate::owners::{TOKEN, tokens};
use crate::world::{Settings, World, machine_now};

/// A client with an API key, and what it sends as `Authorization`.
async fn reader(world: &World, name: &str, reads_per_second: u32) -> String {
    let IssuedKey { key, hash } = IssuedKey::new(KeyKind::Reader, &[9; 32]);
    let reads_per_second = NonZeroU32::new(reads_per_second).unwrap();
    let stored = ReaderKey { name: name.into(), hash, reads_per_second, created_at: machine_now() };
    world.store.reader_key_add(&stored).await.unwrap();
    format!("Bearer {key}")
}

/// A request from another machine.
async fn get(world: &World, path: &str, authorization: Option<&str>) -> Answer {
    request(world, "GET", path, authorization).await
}

async fn request(world: &World, method: &str, path: &str, authorization: Option<&str>) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8080");
    if let Some(value) = authorization {
        request = request.header("authorization", value);
    }
    let mut request = request.body(Body::empty()).unwrap();
    let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

#[tokio::test]
async fn a_reader_with_a_key_has_separate_limits() {
    let one = NonZeroU32::MIN;
    let limits = LimitsConfig { reads_per_second: one, reads_burst: one, ..LimitsConfig::default() };
    let (file, _dir) = tokens();
    let settings = Settings { limits, admin_tokens: Some(file), ..Settings::default() };
    let world = World::with(settings).await;
    let key = reader(&world, "partner", 1).await;
    assert_eq!(get(&world, "/search?q=flight", None).await.status, StatusCode::OK);
    assert_eq!(get(&world, "/search?q=flight", None).await.status, StatusCode::TOO_MANY_REQUESTS);
    for remaining in (0..4).rev() {
        let answer = get(&world, "/search?q=flight", Some(&key)).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("ratelimit-remaining"), remaining.to_string());
    }
    let beyond = get(&world, "/search?q=flight", Some(&key)).await;
    assert_eq!(beyond.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(beyond.text().contains("with this key"), "{}", beyond.text());

    let admin = world.get_with("/admin/keys", &[("authorization", &format!("Bearer {TOKEN}"))]).await;
    let expected =
        json!({"readers": [{"name": "partner", "reads_per_second": 1, "requests": 5, "refused": 1}]});
    assert_eq!(admin.json(), expected);
    let metrics = world.get("/metrics").await.text();
    assert!(
        metrics.contains(r#"agentdex_api_reader_requests_total{reader="partner",outcome="refused"}"#),
        "{metrics}"
    );
    assert_eq!(world.get("/admin/keys").await.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_wrong_key_counts_against_the_client() {
    let two = NonZeroU32::new(2).unwrap();
    let limits =
        LimitsConfig { reads_per_second: NonZeroU32::MIN, reads_burst: two, ..LimitsConfig::default() };
    let world = World::with(Settings { limits, ..Settings::default() }).await;
    let key = format!("Bearer {}", IssuedKey::new(KeyKind::Reader, &[1; 32]).key);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(get(&world, "/search?q=flight", Some(&key)).await.status);
    }
    let refused = StatusCode::UNAUTHORIZED;
    assert_eq!(statuses, [refused, refused, StatusCode::TOO_MANY_REQUESTS]);
}

/// The body of a response with this key, until it ends.
async fn rest_of(world: &World, path: &str, key: &str) -> Option<usize> {
    let mut request = Request::get(path)
        .header("host", "127.0.0.1:8080")
        .header("authorization", key)
        .body(Body::empty())
        .unwrap();
    let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    let response = world.router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{path}");
    let mut body = response.into_body();
    let revoked = world.store.reader_key_revoke("partner").await;
    revoked.unwrap();
    let mut frames = 0;
    let ended = async {
        while let Some(Ok(_)) = body.frame().await {
            frames += 1;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), ended).await.ok().map(|()| frames)
}

#[tokio::test]
async fn streams_of_a_revoked_key_end() {
    for path in ["/changes/stream", "/crawl/stream"] {
        let world = World::with(Settings { reads: Reads::Keys, ..Settings::default() }).await;
        let key = reader(&world, "partner", 100).await;
        let frames = rest_of(&world, path, &key).await;
        assert!(frames.is_some_and(|frames| frames > 0), "{path} sends data after ten seconds");
    }
}

#[tokio::test]
async fn a_private_instance_does_not_treat_proxied_clients_or_pages_as_programs() {
    let public_url = Some("https://dex.example".parse().unwrap());
    let world = World::with(Settings { reads: Reads::Keys, public_url, ..Settings::default() }).await;
    let status = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer: SocketAddr = "127.0.0.1:4711".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        world.send(request).await.status
    };
    let own = ("host", "127.0.0.1:8080");
    assert_eq!(status("/search?q=flight", &[own]).await, StatusCode::OK);
    assert_eq!(status("/metrics", &[own]).await, StatusCode::OK);
    for headers in [
        // the request of a proxy that adds no header
        &[("host", "dex.example")][..],
        &[own, ("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
        &[own, ("sec-fetch-site", "cross-site")],
        &[own, ("origin", "null")],
    ] {
        assert_eq!(status("/search?q=flight", headers).await, StatusCode::UNAUTHORIZED, "{headers:?}");
        assert_eq!(status("/export.jsonl", headers).await, StatusCode::UNAUTHORIZED, "{headers:?}");
        assert_eq!(status("/metrics", headers).await, StatusCode::FORBIDDEN, "{headers:?}");
    }
}

#[tokio::test]
async fn reads_require_a_key_if_configured() {
    let (file, _dir) = tokens();
    let settings = Settings { reads: Reads::Keys, admin_tokens: Some(file), ..Settings::default() };
    let world = World::with(settings).await;
    let key = reader(&world, "partner", 500).await;
    for path in [
        "/",
        "/search?q=flight",
        "/sites",
        "/sites/skyhop.example",
        "/export.jsonl",
        "/changes",
        "/suggest?q=f",
        "/v0.1/servers",
        "/agents",
        "/openapi.json",
        "/nothing",
        "/feeds/changes.atom",
        "/sitemap.xml",
    ] {
        let answer = get(&world, path, None).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(answer.header("www-authenticate").contains("Basic realm"), "{path}");
        let answer = get(&world, path, Some(&key)).await;
        assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{path}");
        assert!(!answer.header("cache-control").contains("public"), "{path}");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
    }
    for open in ["/healthz", "/readyz", "/robots.txt", "/.well-known/security.txt", "/favicon.ico"] {
        assert_ne!(get(&world, open, None).await.status, StatusCode::UNAUTHORIZED, "{open}");
    }
    let mut recheck = Request::post("/sites/skyhop.example/recheck")
        .header("host", "127.0.0.1:8080")
        .header("authorization", &key)
        .body(Body::empty())
        .unwrap();
    let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
    recheck.extensions_mut().insert(ConnectInfo(peer));
    let recheck = world.send(recheck).await;
    assert_eq!(recheck.status, StatusCode::ACCEPTED, "a reader key is not an owner key: {}", recheck.text());
    let owner = format!("Bearer {}", IssuedKey::new(KeyKind::Owner, &[9; 32]).key);
    for other in [owner, format!("Bearer {TOKEN}")] {
        let answer = get(&world, "/search?q=flight", Some(&other)).await;
        assert_eq!(
            answer.status,
            StatusCode::UNAUTHORIZED,
            "an owner key or an admin token does not permit reads"
        );
    }
    let admin = get(&world, "/admin/keys", Some(&format!("Bearer {TOKEN}"))).await;
    assert_eq!(admin.status, StatusCode::OK);
    assert_eq!(
        world.get("/search?q=flight").await.status,
        StatusCode::OK,
        "programs on this machine need no key"
    );
}

/// A reader key, even as the password of a browser, is not treated as a wrong owner key.
#[tokio::test]
async fn readers_and_owners_may_ask_for_a_visit() {
    for reads in [Reads::Public, Reads::Keys] {
        let world = World::with(Settings { reads, ..Settings::default() }).await;
        let key = reader(&world, "partner", 10).await;
        let password =
            data_encoding::BASE64.encode(format!("ada:{}", key.trim_start_matches("Bearer ")).as_bytes());
        let owner = IssuedKey::new(KeyKind::Owner, &[7; 32]).key;
        world.prove("skyhop.example", &owner, machine_now()).await;
        let recheck = async |site: &str, authorization: String| {
            request(&world, "POST", &format!("/sites/{site}/recheck"), Some(&authorization)).await.status
        };
        // the first request makes the site due, and the second one comes too soon
        let accepted = [StatusCode::ACCEPTED, StatusCode::TOO_MANY_REQUESTS];
        assert!(accepted.contains(&recheck("skyhop.example", key.clone()).await), "{reads:?}");
        assert!(
            accepted.contains(&recheck("skyhop.example", format!("Basic {password}")).await),
            "{reads:?}"
        );
        assert_eq!(
            recheck("skyhop.example", format!("Bearer {owner}")).await,
            StatusCode::ACCEPTED,
            "{reads:?}"
        );
        let other = IssuedKey::new(KeyKind::Owner, &[8; 32]).key;
        assert_eq!(recheck("skyhop.example", format!("Bearer {other}")).await, StatusCode::UNAUTHORIZED);
        assert_eq!(recheck("skyhop.example", "Bearer nonsense".to_owned()).await, StatusCode::UNAUTHORIZED);
    }
}

/// Reads of a private instance need a reader key, which an owner does not have.
#[tokio::test]
async fn an_owner_needs_no_reader_key_for_the_routes_of_owners() {
    let world = World::with(Settings { reads: Reads::Keys, ..Settings::default() }).await;
    let owner = IssuedKey::new(KeyKind::Owner, &[7; 32]).key;
    world.prove("skyhop.example", &owner, machine_now()).await;
    let document = world.get("/openapi.json").await.json();
    let mut checked = Vec::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            // the key is deleted with an opt-out
            if operation["security"] != json!([{"owner": []}]) || path.ends_with("/opt-out") {
                continue;
            }
            let path = path.replace("{domain}", "skyhop.example");
            let owner = format!("Bearer {owner}");
            let answer = request(&world, &method.to_uppercase(), &path, Some(&owner)).await;
            assert_ne!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path}: {}", answer.text());
            checked.push(path);
        }
    }
    assert!(checked.iter().any(|path| path.ends_with("/objection")), "{checked:?}");
}

/// Browsers send the password for embedded images, and the size of an image would reveal its content to a page of another origin.
#[tokio::test]
async fn pages_of_other_origins_cannot_embed_a_private_instance() {
    let world = World::with(Settings { reads: Reads::Keys, ..Settings::default() }).await;
    let key = reader(&world, "partner", 10).await;
    for path in ["/badge/skyhop.example.svg", "/search?q=flight", "/nothing", "/healthz", "/assets/style.css"]
    {
        for key in [None, Some(key.as_str())] {
            let answer = get(&world, path, key).await;
            assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin", "{path}");
        }
    }
    let public = World::new().await;
    assert_eq!(public.get("/badge/skyhop.example.svg").await.header("cross-origin-resource-policy"), "");
}
