//! Documents of clients that a separate process reads.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use runtime::ReaderProgram;
use serde_json::json;

use crate::answer::Answer;
use crate::world::{Settings, World};

/// A world whose readers end at once: by themselves, or because they are stopped.
async fn world(script: &str) -> World {
    let arguments = vec!["-c".to_owned(), script.to_owned()];
    let reader = Some(ReaderProgram { path: "/bin/sh".into(), arguments });
    World::with(Settings { reader, ..Settings::default() }).await
}

async fn post(world: &World, path: &str, accept: &str, kind: &str, body: String) -> Answer {
    let request = Request::post(path).header("accept", accept).header("content-type", kind);
    world.send(request.body(Body::from(body)).unwrap()).await
}

#[tokio::test]
async fn a_document_that_ends_its_reader_is_refused_and_ends_nothing_else() {
    let world = world("kill -ABRT $$").await;
    let long = json!({"awp_version": "0.1", "x": "x".repeat(5_000)}).to_string();
    let refused = post(&world, "/validate", "*/*", "application/json", long.clone()).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", refused.text());
    assert!(refused.json()["detail"].as_str().unwrap().contains("256 MiB"), "{}", refused.text());

    let form = url::form_urlencoded::Serializer::new(String::new()).append_pair("document", &long).finish();
    let page = post(&world, "/validate", "text/html", "application/x-www-form-urlencoded", form).await;
    assert_eq!(page.status, StatusCode::OK, "{}", page.text());
    assert!(page.text().contains("256 MiB") && page.text().contains("xxxx"), "the form keeps the document");

    let call = json!({"document": long}).to_string();
    let tool = post(&world, "/tools/validate_manifest", "*/*", "application/json", call).await;
    assert_eq!(tool.status, StatusCode::PAYLOAD_TOO_LARGE, "{}", tool.text());

    let short = post(&world, "/validate", "*/*", "application/json", "{}".to_owned()).await;
    assert_eq!(short.status, StatusCode::OK, "read without a process");
    assert_eq!(world.get("/search?q=flight").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_reader_that_was_stopped_is_an_error_of_the_server() {
    let long = json!({"awp_version": "0.1", "x": "x".repeat(5_000)}).to_string();
    let world = world("kill -TERM $$").await;
    let failed = post(&world, "/validate", "*/*", "application/json", long).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", failed.text());
}
