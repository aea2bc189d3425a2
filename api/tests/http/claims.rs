//! Claims to sites: the token to publish, the request to check, and the owner that a visit found.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use chrono::TimeDelta;
use manifest::SiteName;
use policy::claim::ClaimAuthority;
use policy::key::{KeyHash, KeyKind};
use serde_json::json;

use crate::answer::Answer;
use crate::world::{World, machine_now};

async fn post(world: &World, path: &str) -> Answer {
    world.send(Request::post(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_claim_gives_a_key_and_a_token_for_one_of_two_places() {
    let world = World::new().await;
    let answer = post(&world, "/sites/skyhop.example/claim").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    let claim = answer.json();
    let text = |pointer: &str| claim.pointer(pointer).and_then(|value| value.as_str()).unwrap().to_owned();
    assert_eq!(text("/dns/name"), "_agentdex.skyhop.example");
    assert_eq!(text("/dns/value"), format!("agentdex-claim={}", text("/token")));
    assert_eq!(text("/file/url"), "https://skyhop.example/.well-known/agentdex-claim.txt");
    assert_eq!(text("/file/line"), text("/dns/value"));
    let secret = world.store.claim_secret_find().await.unwrap().unwrap();
    let site = SiteName::parse("skyhop.example").unwrap();
    let proven = ClaimAuthority::new(&secret).proven(&site, [text("/dns/value").as_str()]);
    assert_eq!(proven, [KeyHash::of_key(KeyKind::Owner, &text("/key")).unwrap()]);

    let again = post(&world, "/sites/skyhop.example/claim").await.json();
    assert_ne!(again["key"], claim["key"], "each claim has its own key");
    let stored = world.store.claim_find(&site).await.unwrap();
    assert_eq!(stored, None, "a claim is not stored before it is proven");
    for (path, status) in [
        ("/sites/10.0.0.1/claim", StatusCode::BAD_REQUEST),
        ("/sites/localhost/claim", StatusCode::BAD_REQUEST),
        ("/sites/shy.example/claim", StatusCode::FORBIDDEN),
        ("/sites/skyhop.example/claim?x=1", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(post(&world, path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_check_is_requested_once_in_ten_minutes() {
    let world = World::new().await;
    let path = "/sites/skyhop.example/claim/check";
    let first = post(&world, path).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    assert!(first.header("location").ends_with("/sites/skyhop.example/claim"));
    let second = post(&world, path).await;
    assert_eq!(second.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(second.header("retry-after").parse::<u32>().unwrap() > 590);
    let state = world.get("/sites/skyhop.example/claim").await.json();
    assert!(state["asked_at"].is_string() && state["looked_for_until"].is_string(), "{state}");
    assert_eq!(state["owner"], json!(null));

    assert_eq!(world.get("/sites/unknown.example/claim").await.status, StatusCode::NOT_FOUND);
    assert_eq!(world.get("/sites/weather.example/claim").await.json()["asked_at"], json!(null));
    let added = post(&world, "/sites/unknown.example/claim/check").await.json();
    assert_eq!(added["outcome"], "added");
    assert_eq!(world.get("/sites/unknown.example/claim").await.status, StatusCode::OK);
    assert_eq!(post(&world, "/sites/shy.example/claim/check").await.status, StatusCode::FORBIDDEN);
    assert_eq!(post(&world, "/sites/10.0.0.1/claim/check").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn records_and_pages_name_the_proof_of_an_owner() {
    let world = World::new().await;
    let before = world.get("/sites/skyhop.example").await.json();
    assert_eq!(before["owner"], json!(null));
    assert!(world.page("/sites/skyhop.example").await.text().contains("Not verified: no owner"));
    let key = post(&world, "/sites/skyhop.example/claim").await.json()["key"].as_str().unwrap().to_owned();
    world.prove("skyhop.example", &key, machine_now()).await;
    let owner = &world.get("/sites/skyhop.example").await.json()["owner"];
    assert_eq!((&owner["verified"], &owner["by"]), (&json!(true), &json!("dns")));
    assert_eq!(owner["since"], owner["last_proven_at"]);
    assert_eq!(*owner, world.get("/sites/skyhop.example/claim").await.json()["owner"]);
    let page = world.page("/sites/skyhop.example").await.text();
    assert!(page.contains("control of skyhop.example was proved by a DNS record"), "{page}");
    let hash = KeyHash::of_key(KeyKind::Owner, &key).unwrap();
    assert!(!page.contains(&key) && !page.contains(hash.as_str()), "neither the key nor its hash is shown");
}

/// Registers an owner for a site and returns the owner's key.
async fn own(world: &World, site: &str) -> String {
    let key = post(world, &format!("/sites/{site}/claim")).await.json()["key"].as_str().unwrap().to_owned();
    world.prove(site, &key, machine_now()).await;
    key
}

async fn with_key(world: &World, method: &str, path: &str, key: &str) -> Answer {
    let request =
        Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
    world.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn only_the_key_of_the_owner_is_accepted() {
    let world = World::new().await;
    let unproven =
        post(&world, "/sites/skyhop.example/claim").await.json()["key"].as_str().unwrap().to_owned();
    let path = "/sites/skyhop.example/searches";
    let early = with_key(&world, "GET", path, &unproven).await;
    assert_eq!(early.status, StatusCode::UNAUTHORIZED);
    assert!(
        early.text().contains("this key is not valid for skyhop.example: a key of POST"),
        "{}",
        early.text()
    );
    let key = own(&world, "skyhop.example").await;
    let other = own(&world, "weather.example").await;
    assert_eq!(with_key(&world, "GET", path, &key).await.status, StatusCode::OK);
    assert_eq!(world.get(path).await.status, StatusCode::UNAUTHORIZED);
    let hash = KeyHash::of_key(KeyKind::Owner, &key).unwrap();
    for wrong in [unproven.as_str(), other.as_str(), hash.as_str(), "", "agentdex-key-00"] {
        for (method, path) in [
            ("GET", path),
            ("POST", "/sites/skyhop.example/opt-out"),
            ("POST", "/sites/skyhop.example/recheck"),
        ] {
            let answer = with_key(&world, method, path, wrong).await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{method} {path} {wrong}");
        }
    }
    assert_eq!(world.get("/sites/skyhop.example").await.json()["blocked"], json!(null));
}

#[tokio::test]
async fn refuses_a_key_whose_proof_has_been_missing_for_long() {
    let world = World::new().await;
    let key = post(&world, "/sites/skyhop.example/claim").await.json()["key"].as_str().unwrap().to_owned();
    world.prove("skyhop.example", &key, machine_now() - TimeDelta::days(100)).await;
    for (method, path) in [
        ("GET", "/sites/skyhop.example/searches"),
        ("POST", "/sites/skyhop.example/opt-out"),
        ("POST", "/sites/skyhop.example/recheck"),
    ] {
        assert_eq!(with_key(&world, method, path, &key).await.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(world.get("/sites/skyhop.example").await.json()["owner"], json!(null));
    assert_eq!(world.get("/sites/skyhop.example/claim").await.json()["owner"], json!(null));
}

#[tokio::test]
async fn an_owner_requests_visits_without_the_limits_of_others() {
    let world = World::new().await;
    let key = own(&world, "skyhop.example").await;
    let path = "/sites/skyhop.example/recheck";
    let first = with_key(&world, "POST", path, &key).await;
    assert_eq!(first.status, StatusCode::ACCEPTED, "{}", first.text());
    assert_eq!(first.header("ratelimit-limit"), "60");
    let site = SiteName::parse("skyhop.example").unwrap();
    let report = world.store.site_report(&site, 1).await.unwrap().unwrap();
    assert!(report.state.is_checked, "the visit requests every path");
    for _ in 1..60 {
        assert_eq!(with_key(&world, "POST", path, &key).await.status, StatusCode::ACCEPTED);
    }
    let last = with_key(&world, "POST", path, &key).await;
    assert_eq!(last.status, StatusCode::TOO_MANY_REQUESTS, "sixty an hour");
    assert_eq!(post(&world, path).await.status, StatusCode::ACCEPTED, "other clients have their own limit");
    assert_eq!(post(&world, path).await.status, StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn an_owner_opts_out_at_once() {
    let world = World::new().await;
    let key = own(&world, "skyhop.example").await;
    assert_ne!(world.get("/search?q=book+a+flight").await.json()["total"], json!(0));
    let answer = with_key(&world, "POST", "/sites/skyhop.example/opt-out", &key).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!((&answer.json()["blocked"], &answer.json()["manifests_removed"]), (&json!(true), &json!(1)));
    let record = world.get("/sites/skyhop.example").await.json();
    assert_eq!(record["blocked"]["reason"], "the owner, verified by a DNS record, opted out");
    assert_eq!(record["owner"], json!(null));
    let results = world.get("/search?q=book+a+flight").await.json();
    let is_left = |result: &serde_json::Value| result["site"] == "skyhop.example";
    assert!(!results["results"].as_array().unwrap().iter().any(is_left), "{results}");
    let again = with_key(&world, "POST", "/sites/skyhop.example/opt-out", &key).await;
    assert_eq!(again.status, StatusCode::UNAUTHORIZED, "the key ended with the site");
}

#[tokio::test]
async fn an_owner_sees_how_many_searches_showed_the_site() {
    let world = World::new().await;
    let key = own(&world, "skyhop.example").await;
    let counts = async || {
        let answer = with_key(&world, "GET", "/sites/skyhop.example/searches", &key).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), "no-store");
        answer.json()["days"].clone()
    };
    world.app.write_search_counts().await.unwrap();
    assert_eq!(counts().await, json!([]));
    world.get("/search?q=book+a+flight").await;
    world.page("/search?q=book+a+flight").await;
    world.get("/search?q=forecast&site=weather.example").await;
    let body = r#"{"query": "book a flight"}"#;
    let tool = Request::post("/tools/find_capability").header("content-type", "application/json");
    let found = world.send(tool.body(Body::from(body)).unwrap()).await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text());
    let ard = Request::post("/search").header("content-type", "application/json");
    let found = world.send(ard.body(Body::from(r#"{"query": {"text": "book a flight"}}"#)).unwrap()).await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text());
    assert_eq!(counts().await, json!([]), "a search does not write");
    world.app.write_search_counts().await.unwrap();
    assert_eq!(counts().await[0]["searches"], json!(4));
    let answer = with_key(&world, "GET", "/sites/skyhop.example/searches", &key).await.json();
    let first = &answer["capabilities"][0];
    assert_eq!(first["searches"], json!(4), "{answer}");
    assert_eq!(first["days"], answer["days"], "{answer}");
    let shown = world.get(&format!("/capabilities/{}", first["capability_id"].as_str().unwrap())).await;
    assert_eq!(shown.json()["site"], "skyhop.example");
    world.app.write_search_counts().await.unwrap();
    assert_eq!(counts().await[0]["searches"], json!(4), "a count is written once");
}

#[tokio::test]
async fn capabilities_of_a_site_name_its_owner() {
    let world = World::new().await;
    let found = world.get("/search?q=book+a+flight").await.json();
    let id = found["results"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(found["results"][0]["site"], "skyhop.example");
    let path = format!("/capabilities/{id}");
    assert_eq!(world.get(&path).await.json()["owner"], json!(null));
    let marked = ["/search?q=book+a+flight", "/sites", "/sites/skyhop.example"];
    for path in marked {
        assert!(!world.page(path).await.text().contains(" verified owner</"), "{path}");
    }
    own(&world, "skyhop.example").await;
    world.app.write_search_counts().await.unwrap();
    for path in marked {
        assert!(world.page(path).await.text().contains("</svg> verified owner</"), "{path}");
    }
    assert!(!world.page("/search?q=weather").await.text().contains(" verified owner</"));
    let owner = &world.get(&path).await.json()["owner"];
    assert_eq!((&owner["verified"], &owner["by"]), (&json!(true), &json!("dns")));
    let page = world.page(&path).await.text();
    let since = owner["since"].as_str().unwrap().get(..10).unwrap();
    assert!(page.contains(&format!("owner verified by a DNS record since {since}")), "{page}");
}
