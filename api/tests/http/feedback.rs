//! Feedback: disabled by default, accepted only for search results, limited, managed by operators, not used in ranking.

use std::net::SocketAddr;

use api::LimitsConfig;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::owners::{TOKEN, admin, tokens};
use crate::world::{Settings, World};

async fn on() -> (World, tempfile::TempDir) {
    let (path, dir) = tokens();
    let settings = Settings { feedback: true, admin_tokens: Some(path), ..Settings::default() };
    (World::with(settings).await, dir)
}

async fn tell(world: &World, from: &str, body: &Value) -> Answer {
    let mut request = Request::post("/feedback").body(Body::from(body.to_string())).unwrap();
    let peer: SocketAddr = format!("{from}:4711").parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    world.send(request).await
}

async fn found(world: &World, query: &str) -> Value {
    world.get(&format!("/search?q={query}&fields=id,score")).await.json()["results"].clone()
}

#[tokio::test]
async fn feedback_is_refused_unless_enabled() {
    let world = World::new().await;
    let id = found(&world, "book").await[0]["id"].clone();
    let refused = tell(&world, "192.0.2.1", &json!({"query": "book", "capability": id})).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("--feedback") && detail.contains("feedback = true"), "{detail}");
    let kept = world.store.feedback_page(&store::FeedbackFilter::default(), None, 9).await.unwrap();
    assert!(kept.is_empty());
}

#[tokio::test]
async fn feedback_is_stored_once_and_does_not_change_ranking() {
    let (world, _dir) = on().await;
    let before = found(&world, "flight").await;
    let last = before.as_array().unwrap().last().unwrap()["id"].clone();
    let place = before.as_array().unwrap().len();
    let choice = json!({"query": " flight ", "capability": last});
    let answer = tell(&world, "192.0.2.1", &choice).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
    assert_eq!(answer.json(), json!({"kept": true, "place": place}));
    assert_eq!(answer.header("ratelimit-limit"), "30");
    assert_eq!(tell(&world, "192.0.2.1", &choice).await.json()["kept"], false);
    assert_eq!(tell(&world, "192.0.2.2", &choice).await.json()["kept"], true);
    assert_eq!(found(&world, "flight").await, before);
}

#[tokio::test]
async fn feedback_must_name_a_result_of_the_query() {
    let (world, _dir) = on().await;
    let id = found(&world, "flight").await[0]["id"].clone();
    for (body, status) in [
        (json!({"query": "zzzz qqqq", "capability": id}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"query": "flight", "capability": "caaaaaaaaaaaaaaaa"}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"query": "flight", "capability": "flight"}), StatusCode::BAD_REQUEST),
        (json!({"query": "flight"}), StatusCode::BAD_REQUEST),
        (json!({"query": "x".repeat(301), "capability": id}), StatusCode::BAD_REQUEST),
        (json!({"query": "x".repeat(5_000), "capability": id}), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let answer = tell(&world, "192.0.2.1", &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    let kept = world.store.feedback_page(&store::FeedbackFilter::default(), None, 9).await.unwrap();
    assert!(kept.is_empty());
}

#[tokio::test]
async fn feedback_is_limited_per_client() {
    let limits = LimitsConfig { feedback_per_hour: 2.try_into().unwrap(), ..LimitsConfig::default() };
    let world = World::with(Settings { feedback: true, limits, ..Settings::default() }).await;
    let id = found(&world, "flight").await[0]["id"].clone();
    let choice = json!({"query": "flight", "capability": id});
    for _ in 0..2 {
        assert_eq!(tell(&world, "192.0.2.1", &choice).await.status, StatusCode::ACCEPTED);
    }
    let refused = tell(&world, "192.0.2.1", &choice).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(tell(&world, "192.0.2.2", &choice).await.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn feedback_for_one_site_is_limited_per_client() {
    let (world, _dir) = on().await;
    let hits = found(&world, "flight").await;
    let id = hits[0]["id"].clone();
    let tell_number = async |number: usize| {
        let query = format!("flight {}", "flight ".repeat(number));
        tell(&world, "192.0.2.1", &json!({"query": query, "capability": id})).await
    };
    for number in 0..10 {
        assert_eq!(tell_number(number).await.json()["kept"], true, "{number}");
    }
    let refused = tell_number(10).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.json()["detail"].as_str().unwrap().contains("skyhop.example"), "{}", refused.text());
}

#[tokio::test]
async fn admins_list_and_remove_feedback() {
    let (world, _dir) = on().await;
    let id = found(&world, "flight").await[0]["id"].clone();
    for from in ["192.0.2.1", "192.0.2.2"] {
        tell(&world, from, &json!({"query": "flight", "capability": id})).await;
    }
    let page = admin(&world, "GET", "/admin/feedback?limit=1", TOKEN, "").await;
    assert_eq!((page.status, page.header("cache-control")), (StatusCode::OK, "no-store"));
    assert!(!page.text().contains("192.0.2"), "{}", page.text());
    let (first, next) = (page.json()["feedback"][0].clone(), page.json()["next_before"].clone());
    assert_eq!((&first["query"], &first["site"]), (&json!("flight"), &json!("skyhop.example")));
    let second = admin(&world, "GET", &format!("/admin/feedback?before={next}"), TOKEN, "").await.json();
    assert_eq!(second["feedback"].as_array().unwrap().len(), 1);
    assert_eq!(second["next_before"], Value::Null);
    assert_ne!(second["feedback"][0]["client"], first["client"]);

    for wrong in ["", "?all=false", "?all=true&id=1", "?everything=true"] {
        let answer = admin(&world, "DELETE", &format!("/admin/feedback{wrong}"), TOKEN, "").await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
    for wrong in ["%00", "x", "a%00b", &"a".repeat(64)] {
        for method in ["GET", "DELETE"] {
            let answer = admin(&world, method, &format!("/admin/feedback?client={wrong}"), TOKEN, "").await;
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{method} {wrong}");
        }
    }
    let client = first["client"].as_str().unwrap();
    let removed = admin(&world, "DELETE", &format!("/admin/feedback?client={client}"), TOKEN, "").await;
    assert_eq!(removed.json(), json!({"removed": 1}));
    let removed = admin(&world, "DELETE", "/admin/feedback?all=true", TOKEN, "").await;
    assert_eq!(removed.json(), json!({"removed": 1}));
}
