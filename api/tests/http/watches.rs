//! Watches: made without an account, read and changed with their token, and listed for operators.

use std::net::SocketAddr;

use api::Reads;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use chrono::TimeDelta;
use manifest::{ManifestUrl, SiteName};
use policy::key::{IssuedKey, KeyKind};
use policy::webhook::{AfterFailure, Message, SECRET_BYTES, WatchClient, WebhookSecret};
use serde_json::{Value, json};
use store::{
    DeliveryEnd, DueContent, DueDelivery, NewChallenge, NewWatch, WatchCaps, WatchOutcome, WatchTarget,
};

use crate::answer::Answer;
use crate::owners::{TOKEN, admin, tokens};
use crate::world::{Settings, World, machine_now};

const RECEIVER: &str = "https://hooks.reader.example/secret-path";

async fn post(world: &World, body: &Value) -> Answer {
    world.send(Request::post("/watches").body(Body::from(body.to_string())).unwrap()).await
}

/// A new watch of a known site.
async fn watch(world: &World) -> Value {
    let answer = post(world, &json!({"site": "skyhop.example", "url": RECEIVER})).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    assert_eq!(
        (answer.header("cache-control"), answer.header("location")),
        ("no-store", answer.json()["watch_url"].as_str().unwrap())
    );
    answer.json()
}

async fn ask(world: &World, method: &str, path: &str, token: &str) -> Answer {
    let request =
        Request::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    world.send(request.body(Body::empty()).unwrap()).await
}

fn path(watch: &Value) -> String {
    format!("/watches/{}", watch["id"].as_str().unwrap())
}

fn token(watch: &Value) -> &str {
    watch["token"].as_str().unwrap()
}

async fn due(world: &World) -> DueDelivery {
    let now = machine_now();
    world
        .store
        .deliveries_claim(Message::Challenge, now, now + TimeDelta::minutes(10), 9)
        .await
        .unwrap()
        .pop()
        .expect("a message")
}

#[tokio::test]
async fn a_watch_is_made_with_a_token_and_a_secret_that_are_shown_once() {
    let world = World::new().await;
    let made = watch(&world).await;
    assert_eq!((&made["site"], &made["status"]), (&json!("skyhop.example"), &json!("pending")));
    assert!(made["secret"].as_str().unwrap().parse::<WebhookSecret>().is_ok());
    let challenge = due(&world).await;
    assert_eq!((challenge.receiver.as_str(), challenge.attempts), (RECEIVER, 1));
    let DueContent::Challenge(expected) = &challenge.content else { panic!("{challenge:?}") };
    assert!(expected.len() > 32, "the challenge cannot be guessed");

    let shown = ask(&world, "GET", &path(&made), token(&made)).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    let state = shown.json();
    assert_eq!((&state["url"], &state["status"]), (&json!(RECEIVER), &json!("pending")));
    assert_eq!(
        (&state["waiting"][0]["kind"], &state["waiting"][0]["attempts"]),
        (&json!("challenge"), &json!(1))
    );
    for secret in [token(&made), made["secret"].as_str().unwrap(), expected] {
        assert!(!shown.text().contains(secret), "{}", shown.text());
    }
    let stored = world.store.watch_find(made["id"].as_str().unwrap()).await.unwrap().unwrap();
    assert!(!token(&made).contains(stored.token_hash.as_str()));

    let end = DeliveryEnd::Failed { reason: "it answered 500".into(), then: AfterFailure::GiveUp };
    world.store.delivery_end(&challenge, &end, machine_now()).await.unwrap();
    let dead = ask(&world, "GET", &path(&made), token(&made)).await.json();
    assert_eq!(
        (&dead["waiting"], &dead["dead_letters"][0]["failure"]),
        (&json!([]), &json!("it answered 500"))
    );
}

#[tokio::test]
async fn only_the_token_of_a_watch_reads_and_changes_it() {
    let world = World::new().await;
    let (made, other) = (watch(&world).await, watch(&world).await);
    let at = path(&made);
    let operations = [
        ("GET", at.clone()),
        ("POST", format!("{at}/rotate")),
        ("POST", format!("{at}/challenge")),
        ("DELETE", at.clone()),
    ];
    for (method, path) in &operations {
        for wrong in [token(&other), TOKEN, "agentdex-watch-00", &token(&made).replace("watch", "key")] {
            let refused = ask(&world, method, path, wrong).await;
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{method} {path} {wrong}");
        }
    }
    let rotated = ask(&world, "POST", &operations[1].1, token(&made)).await;
    assert_eq!((rotated.status, rotated.header("cache-control")), (StatusCode::OK, "no-store"));
    let secret = rotated.json()["secret"].as_str().unwrap().to_owned();
    assert_ne!(made["secret"], secret);
    let challenge = ask(&world, "POST", &operations[2].1, token(&made)).await;
    assert_eq!(challenge.status, StatusCode::ACCEPTED, "{}", challenge.text());
    let sent = due(&world).await;
    if sent.watch_id == made["id"].as_str().unwrap() {
        assert_eq!(sent.secrets.current.as_str(), secret);
        assert_eq!(sent.secrets.old.unwrap().0.as_str(), made["secret"].as_str().unwrap());
    }
    let gone = ask(&world, "DELETE", &at, token(&made)).await;
    assert_eq!((gone.status, &gone.json()["deleted"]), (StatusCode::OK, &json!(true)));
    assert_eq!(ask(&world, "GET", &at, token(&made)).await.status, StatusCode::UNAUTHORIZED);
    let unknown = ask(&world, "GET", "/watches/w_none", token(&other)).await;
    let wrong = ask(&world, "GET", &path(&other), token(&made)).await;
    assert_eq!(
        unknown.json()["detail"],
        wrong.json()["detail"],
        "the error does not reveal whether an id exists"
    );
}

#[tokio::test]
async fn an_active_watch_needs_no_challenge() {
    let world = World::new().await;
    let made = watch(&world).await;
    let challenge = due(&world).await;
    world.store.delivery_end(&challenge, &DeliveryEnd::Accepted, machine_now()).await.unwrap();
    let state = ask(&world, "GET", &path(&made), token(&made)).await.json();
    assert_eq!(state["status"], "active");
    assert!(state["confirmed_at"].is_string());
    let refused = ask(&world, "POST", &format!("{}/challenge", path(&made)), token(&made)).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn receivers_are_public_https_urls() {
    let world = World::new().await;
    for (url, word) in [
        ("http://hooks.example/", "https"),
        ("https://hooks.example:8443/", "8443"),
        ("https://10.0.0.1/", "10.0.0.1"),
        ("https://[::1]/", "::1"),
        ("https://localhost/", "localhost"),
        ("https://printer.local/", "local"),
        ("https://hooks.internal/", "internal"),
        ("https://user:password@hooks.example/", ""),
        ("https://co.uk/", "co.uk"),
        ("ftp://hooks.example/", ""),
        ("", ""),
    ] {
        let refused = post(&world, &json!({"site": "skyhop.example", "url": url})).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{url}: {}", refused.text());
        assert!(refused.text().contains(word), "{url}: {}", refused.text());
    }
    let long = format!("https://hooks.example/{}", "a".repeat(2_048));
    assert_eq!(
        post(&world, &json!({"site": "skyhop.example", "url": long})).await.status,
        StatusCode::BAD_REQUEST
    );
    let unknown = post(&world, &json!({"site": "nobody.example", "url": RECEIVER})).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    for (site, url) in [("shy.example", RECEIVER), ("skyhop.example", "https://hooks.shy.example/")] {
        let refused = post(&world, &json!({"site": site, "url": url})).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "its owner opted out: {}", refused.text());
    }
    for body in [json!({}), json!({"site": "skyhop.example", "url": RECEIVER, "secret": "mine"})] {
        assert_eq!(post(&world, &body).await.status, StatusCode::BAD_REQUEST, "{body}");
    }
    assert!(world.store.watches_page(None, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn three_unanswered_watches_fill_a_receiver() {
    let world = World::new().await;
    for _ in 0..3 {
        watch(&world).await;
    }
    let refused = post(&world, &json!({"site": "skyhop.example", "url": "https://reader.example/"})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    assert!(refused.text().contains("reader.example"), "{}", refused.text());
    let other = post(&world, &json!({"site": "skyhop.example", "url": "https://else.example/"})).await;
    assert_eq!(other.status, StatusCode::CREATED);
}

/// Somebody with many names below different domains.
#[tokio::test]
async fn a_network_has_a_share_of_the_watches() {
    let world = World::new().await;
    let post_from = async |peer: &str, receiver: &str| {
        let body = json!({"site": "skyhop.example", "url": receiver}).to_string();
        let mut request = Request::post("/watches").body(Body::from(body)).unwrap();
        let peer: SocketAddr = peer.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        world.send(request).await
    };
    let first = post_from("[2001:db8:1:1::1]:4711", "https://first.example/").await;
    assert_eq!(first.status, StatusCode::CREATED, "{}", first.text());
    let secret = world.store.claim_secret_find().await.unwrap().unwrap();
    let caps = WatchCaps {
        of_receiver: 1,
        unconfirmed_of_receiver: 1,
        of_client: 25,
        unconfirmed_of_client: 25,
        of_all: 99,
        unconfirmed_of_all: 99,
    };
    for number in 1..25_u8 {
        let watch = NewWatch {
            id: format!("w_{number}"),
            target: WatchTarget::Site(SiteName::parse("skyhop.example").unwrap()),
            receiver: ManifestUrl::parse(&format!("https://reader{number}.example/")).unwrap(),
            client: WatchClient::new(&secret, "2001:db8:1::".parse().unwrap()),
            token_hash: IssuedKey::new(KeyKind::Watch, &[number; 32]).hash,
            secret: WebhookSecret::new(&[number; SECRET_BYTES]),
            at: machine_now(),
            challenge: NewChallenge { id: format!("msg_{number}"), challenge: "answer".to_owned() },
        };
        assert_eq!(world.store.watch_add(&watch, caps).await.unwrap(), WatchOutcome::Added);
    }
    let refused = post_from("[2001:db8:1:ffff::2]:4711", "https://other.example/").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.text());
    let words = "your network has the maximum of 25 watches that are not confirmed";
    assert!(refused.text().contains(words), "{}", refused.text());
    let other = post_from("[2001:db8:2::1]:4711", "https://other.example/").await;
    assert_eq!(other.status, StatusCode::CREATED, "{}", other.text());
}

#[tokio::test]
async fn operators_see_watches_without_secrets_and_end_them() {
    let (file, _dir) = tokens();
    let world = World::with(Settings { admin_tokens: Some(file), ..Settings::default() }).await;
    let made = watch(&world).await;
    let listed = admin(&world, "GET", "/admin/watches", TOKEN, "").await;
    assert_eq!(listed.status, StatusCode::OK, "{}", listed.text());
    let line = &listed.json()["watches"][0];
    assert_eq!(
        (&line["site"], &line["receiver_host"]),
        (&json!("skyhop.example"), &json!("hooks.reader.example"))
    );
    for secret in [token(&made), made["secret"].as_str().unwrap(), "secret-path"] {
        assert!(!listed.text().contains(secret), "{}", listed.text());
    }
    assert_eq!(ask(&world, "GET", "/admin/watches", token(&made)).await.status, StatusCode::UNAUTHORIZED);
    let id = made["id"].as_str().unwrap();
    let ended = admin(&world, "DELETE", &format!("/admin/watches/{id}"), TOKEN, "").await;
    assert_eq!((ended.status, &ended.json()["deleted"]), (StatusCode::OK, &json!(true)));
    assert_eq!(world.store.watch_find(id).await.unwrap(), None);
}

/// PostgreSQL rejects texts with NUL, and each request must log a single line.
#[tokio::test]
async fn unknown_watch_ids_are_refused_and_delete_nothing() {
    let (file, _dir) = tokens();
    let world = World::with(Settings { admin_tokens: Some(file), ..Settings::default() }).await;
    let made = watch(&world).await;
    for id in ["%00", "w_none", "w_%0aINFO", "W_00000000000000000000000000000000"] {
        let unknown = ask(&world, "GET", &format!("/watches/{id}"), token(&made)).await;
        assert_eq!(unknown.status, StatusCode::UNAUTHORIZED, "{id}: {}", unknown.text());
        let ended = admin(&world, "DELETE", &format!("/admin/watches/{id}"), TOKEN, "").await;
        assert_eq!((ended.status, &ended.json()["deleted"]), (StatusCode::OK, &json!(false)), "{id}");
        let page = admin(&world, "GET", &format!("/admin/watches?after={id}"), TOKEN, "").await;
        assert_eq!(page.status, StatusCode::BAD_REQUEST, "{id}: {}", page.text());
    }
}

#[tokio::test]
async fn the_token_of_a_watch_needs_no_key_of_a_private_instance() {
    let world = World::with(Settings { reads: Reads::Keys, ..Settings::default() }).await;
    let made = watch(&world).await;
    let from_elsewhere = async |method: &str, path: &str, authorization: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1:8080");
        let body = json!({"site": "skyhop.example", "url": RECEIVER}).to_string();
        let mut request = request.header("authorization", authorization).body(Body::from(body)).unwrap();
        let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(peer));
        world.send(request).await.status
    };
    let bearer = format!("Bearer {}", token(&made));
    assert_eq!(from_elsewhere("GET", &path(&made), &bearer).await, StatusCode::OK);
    assert_eq!(from_elsewhere("GET", &path(&made), "").await, StatusCode::UNAUTHORIZED);
    assert_eq!(
        from_elsewhere("POST", "/watches", &bearer).await,
        StatusCode::UNAUTHORIZED,
        "the token of a watch is not a reader key"
    );
}
