//! Documents of clients that a separate process reads.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use runtime::ReaderProgram;
use serde_json::json;
use tokio::time::Instant;

use crate::answer::Answer;
use crate::world::{Settings, World};

/// A world whose reader processes run this script, which exits or is killed immediately.
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
async fn rejects_a_document_that_crashes_its_reader_and_serves_the_next() {
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
    assert_eq!(short.status, StatusCode::OK, "small documents are read without a process");
    assert_eq!(world.get("/search?q=flight").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_reader_that_was_stopped_is_an_error_of_the_server() {
    let long = json!({"awp_version": "0.1", "x": "x".repeat(5_000)}).to_string();
    let world = world("kill -TERM $$").await;
    let failed = post(&world, "/validate", "*/*", "application/json", long).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", failed.text());
}

#[tokio::test]
async fn hostile_documents_do_not_delay_searches() {
    let world = World::new().await;
    let deep = "[".repeat(200_000);
    let wide = format!("[{}1]", "1,".repeat(700_000));
    let yaml = ("application/yaml", format!("openapi: 3.1.0\nx: {deep}"));
    let form = url::form_urlencoded::Serializer::new(String::new()).append_pair("document", &deep).finish();
    let tool = json!({"document": deep}).to_string();
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": "validate_manifest", "arguments": {"document": deep}}});
    let url = "/validate?url=https%3A%2F%2Fx.example%2Fopenapi.yaml";
    let begun = Instant::now();
    let posts = async {
        tokio::join!(
            post(&world, url, "*/*", yaml.0, yaml.1),
            post(&world, "/validate", "*/*", "application/json", wide),
            post(&world, "/validate", "text/html", "application/x-www-form-urlencoded", form),
            post(&world, "/tools/validate_manifest", "*/*", "application/json", tool),
            post(&world, "/mcp", "application/json, text/event-stream", "application/json", call.to_string()),
        )
    };
    let searches = async {
        for _ in 0..20 {
            for path in ["/search?q=flight", "/readyz"] {
                assert_eq!(world.get(path).await.status, StatusCode::OK, "{path}");
            }
        }
    };
    let ((yaml, wide, form, tool, call), ()) = tokio::join!(posts, searches);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    for answer in [yaml, wide, form, tool] {
        assert!(!answer.status.is_server_error(), "{}", answer.text());
        assert!(answer.text().contains("the limit is"), "{}", answer.text());
    }
    assert!(!call.status.is_server_error(), "{}", call.text());
}

#[tokio::test]
async fn a_document_that_is_not_recognised_leads_to_the_known_formats() {
    let world = World::new().await;
    let form = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("document", "{\"name\": \"shop\"}")
        .finish();
    let request = Request::post("/validate")
        .header("accept", "text/html")
        .header("content-type", "application/x-www-form-urlencoded");
    let page = world.send(request.body(Body::from(form)).unwrap()).await.text();
    assert!(
        page.contains("These formats are read: ") && page.contains("A small manifest to begin with"),
        "{page}"
    );
    assert!(!page.contains("no findings") && !page.contains("publish it and"), "{page}");
}
