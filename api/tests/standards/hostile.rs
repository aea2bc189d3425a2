//! No parameter makes the API connect to another machine. A listener on loopback represents every forbidden target, and its address is sent
//! in every parameter that accepts a URL, a host or a document with links.

use std::net::TcpListener;

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::world::{World, encoded};

/// A document of each kind with links.
fn baits(target: &str) -> Vec<Value> {
    vec![
        json!({"name": "a", "description": "b", "tools": target}),
        json!({"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/x": {"$ref": target}},
               "components": {"schemas": {"S": {"$ref": target}}}}),
        json!({"specVersion": "1.0", "entries": [{"identifier": "urn:air:a.example:x", "displayName": "x",
               "type": "application/ai-catalog+json", "url": target}]}),
        json!({"schema_version": "v1", "name_for_model": "x", "name_for_human": "x", "description_for_model": "x",
               "api": {"type": "openapi", "url": target}}),
        json!({"awp_version": "0.1", "domain": "a.example", "intent": "x", "actions": [{"id": "x", "description": "x",
               "endpoint": target, "method": "GET", "inputs": {"x": {"$ref": target}}}]}),
        json!({"$schema": target, "@context": target, "@type": "AgentManifest", "name": "x", "description": "x", "version": "1.0.0",
               "capabilities": [{"id": "x", "name": "x", "description": "x", "endpoint": target, "method": "GET",
                                 "response": {"$ref": target}}]}),
    ]
}

#[tokio::test]
async fn client_input_causes_no_outgoing_request() {
    let world = World::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for authority in
        [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::ffff:127.0.0.1]:{port}")]
    {
        for scheme in ["http", "https"] {
            ask_everywhere(&world, &format!("{scheme}://{authority}/agent.json")).await;
        }
    }
    let reached = listener.accept();
    assert!(reached.is_err(), "a connection arrived: {reached:?}");
}

async fn ask_everywhere(world: &World, target: &str) {
    let encoded = encoded(target);
    for path in [
        format!("/search?q={encoded}"),
        format!("/search?site={encoded}"),
        format!("/agents?filter=publisher%20%3D%20'{encoded}'"),
        format!("/sites/{encoded}"),
        format!("/sites/{encoded}/ai-catalog.json"),
        format!("/manifests/{encoded}"),
        format!("/manifests/{encoded}/raw"),
        format!("/capabilities/{encoded}"),
        format!("/badge/{encoded}.svg"),
        format!("/tools/get_site?domain={encoded}"),
        format!("/tools/find_capability?query={encoded}"),
        target.to_owned(),
    ] {
        let request = Request::get(path.as_str()).header("host", target.split('/').nth(2).unwrap());
        let answer = world.send(request.body(Body::empty()).unwrap()).await;
        assert!(!answer.status.is_server_error(), "{path}: {}", answer.text());
    }
    let mut posts = vec![
        ("/search".to_owned(), json!({"query": {"text": target}, "federation": "auto"})),
        (
            "/search".to_owned(),
            json!({"query": {"text": target, "filter": {"identifier": target}}, "federation": "referrals"}),
        ),
        ("/tools/validate_manifest".to_owned(), json!({"url": target})),
        ("/tools/submit_site".to_owned(), json!({"domain": target})),
        ("/sites".to_owned(), json!({"domain": target})),
        ("/woa/validate_manifest".to_owned(), json!({"input": {"url": target, "document": "{}"}})),
        (
            "/a2a".to_owned(),
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
            "message": {"parts": [{"kind": "text", "text": target}, {"kind": "file", "file": {"uri": target}}]},
            "configuration": {"pushNotificationConfig": {"url": target}}}}),
        ),
    ];
    for bait in baits(target) {
        posts.push((format!("/validate?url={}", "https%3A%2F%2Fa.example%2Fagent.json"), bait.clone()));
        posts.push(("/tools/validate_manifest".to_owned(), json!({"document": bait.to_string()})));
    }
    for (path, body) in posts {
        let answer = world.post(&path, &body).await;
        assert!(!answer.status.is_server_error(), "{path} {body}: {}", answer.text());
    }
}
