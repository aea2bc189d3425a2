//! Tests of conventions of all endpoints: errors, validators, content negotiation, headers.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::json;

use crate::world::World;

const ADDRESSES: [&str; 7] = [
    "/",
    "/search?q=flight",
    "/search?q=flight&view=full",
    "/sites",
    "/sites/skyhop.example",
    "/semantic-types",
    "/stats",
];

#[tokio::test]
async fn returns_304_for_a_matching_etag() {
    let world = World::new().await;
    for path in ADDRESSES {
        let first = world.get(path).await;
        let tag = first.header("etag").to_owned();
        assert!(tag.starts_with('"') && tag.len() > 10, "{path}: {tag}");
        assert!(first.header("cache-control").contains("stale-while-revalidate"), "{path}");
        let second = world.get_with(path, &[("if-none-match", &tag)]).await;
        assert_eq!(second.status, StatusCode::NOT_MODIFIED, "{path}");
        assert!(second.body.is_empty(), "{path}");
        assert_eq!(second.header("etag"), tag, "{path}");
        let other = world.get_with(path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn compressed_response_has_its_own_etag() {
    let world = World::new().await;
    let path = "/sites/skyhop.example";
    let plain = world.get(path).await;
    for coding in ["gzip", "zstd"] {
        let compressed = world.get_with(path, &[("accept-encoding", coding)]).await;
        assert_eq!(compressed.header("content-encoding"), coding);
        assert!(compressed.body.len() < plain.body.len());
        let tag = compressed.header("etag").to_owned();
        assert_ne!(tag, plain.header("etag"));
        assert!(tag.ends_with(&format!("-{coding}\"")), "{tag}");
        let again = world.get_with(path, &[("accept-encoding", coding), ("if-none-match", &tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);
    }
}

#[tokio::test]
async fn serves_pages_to_browsers_and_json_to_other_clients() {
    let world = World::new().await;
    for path in ADDRESSES {
        let json = world.get(path).await;
        assert_eq!(json.header("content-type"), "application/json", "{path}");
        let page = world.page(path).await;
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{path}");
        for answer in [&json, &page] {
            assert_eq!(answer.status, StatusCode::OK, "{path}");
            let varies: Vec<&str> =
                answer.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
            assert!(varies.join(",").contains("accept"), "{path}: {varies:?}");
        }
        assert_ne!(json.header("etag"), page.header("etag"), "{path}");
    }
}

#[tokio::test]
async fn every_response_has_the_security_headers() {
    let world = World::new().await;
    for path in ADDRESSES.into_iter().chain(["/nowhere", "/search", "/healthz"]) {
        let answer = world.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(answer.header("access-control-allow-origin"), "*", "{path}");
        assert!(!answer.header("x-request-id").is_empty(), "{path}");
    }
}

#[tokio::test]
async fn framework_errors_are_problem_details() {
    let world = World::new().await;
    let post = world.send(Request::post("/stats").body(Body::empty()).unwrap()).await;
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
    assert!(post.header("allow").contains("GET"));
    assert_eq!(post.json()["errorCode"], "METHOD_NOT_ALLOWED");

    let length = (5 * 1024 * 1024).to_string();
    let large = Request::post("/validate").header("content-length", length).body(Body::empty()).unwrap();
    let large = world.send(large).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(large.json()["errorCode"], "PAYLOAD_TOO_LARGE");
    assert_eq!(large.header("connection"), "close");
    let page = Request::post("/validate")
        .header("content-length", "5000000")
        .header("accept", "text/html")
        .body(Body::empty())
        .unwrap();
    let page = world.send(page).await;
    assert_eq!((page.status, page.header("connection")), (StatusCode::PAYLOAD_TOO_LARGE, "close"));

    let page = world.page("/nowhere").await;
    assert_eq!(page.status, StatusCode::NOT_FOUND);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text().contains("<h1>Not found</h1>"));
}

#[tokio::test]
async fn preflight_of_a_read_is_allowed() {
    let world = World::new().await;
    let preflight = Request::options("/search?q=x")
        .header("origin", "https://client.example")
        .header("access-control-request-method", "GET")
        .body(Body::empty())
        .unwrap();
    let answer = world.send(preflight).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    assert!(answer.header("access-control-allow-methods").contains("GET"));
}

#[tokio::test]
async fn head_returns_the_headers_of_get() {
    let world = World::new().await;
    let head = world.send(Request::head("/sites").body(Body::empty()).unwrap()).await;
    assert_eq!(head.status, StatusCode::OK);
    assert_eq!(head.header("etag"), world.get("/sites").await.header("etag"));
    assert!(head.body.is_empty());
}

#[tokio::test]
async fn tools_refuse_arguments_that_are_longer_than_their_schema_allows() {
    let world = World::new().await;
    for (tool, arguments, problem) in [
        ("find_capability", json!({"query": "é".repeat(1_001)}), "`query` has more than 1000 characters"),
        ("explore", json!({"site": vec!["a.example"; 21]}), "`site` has more than 20 values"),
        ("get_site", json!({"domain": "a".repeat(254)}), "`domain` has more than 253 characters"),
    ] {
        let request = Request::post(format!("/tools/{tool}")).header("content-type", "application/json");
        let answer = world.send(request.body(Body::from(arguments.to_string())).unwrap()).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{tool}: {}", answer.text());
        assert!(answer.text().contains(problem), "{tool}: {}", answer.text());
    }
    let allowed = json!({"query": "é".repeat(1_000)});
    let request = Request::post("/tools/find_capability").header("content-type", "application/json");
    let answer = world.send(request.body(Body::from(allowed.to_string())).unwrap()).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
}
