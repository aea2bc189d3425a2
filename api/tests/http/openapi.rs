//! The OpenAPI document is complete, frozen, and matches every response.

use axum::http::{Request, StatusCode};
use manifest::ManifestId;
use serde_json::{Value, json};

use crate::documents;
use crate::world::World;

/// URLs for every GET operation, with the documented path.
fn addresses() -> Vec<(String, &'static str)> {
    let skyhop = documents::skyhop();
    let (capability, manifest) = (&skyhop.capabilities[0].id, ManifestId::of(&skyhop.url));
    let described = [
        ("/", "/"),
        ("/search?q=flight&facets=format,site", "/search"),
        ("/search?q=flight&view=full", "/search"),
        ("/suggest?q=b", "/suggest"),
        ("/capabilities/{id}", "/capabilities/{id}"),
        ("/capabilities/{id}/similar", "/capabilities/{id}/similar"),
        ("/capabilities/{id}/tool?as=openai", "/capabilities/{id}/tool"),
        ("/sites?limit=1", "/sites"),
        ("/sites/skyhop.example", "/sites/{domain}"),
        ("/sites/shy.example", "/sites/{domain}"),
        ("/sites/skyhop.example/changes", "/sites/{domain}/changes"),
        ("/sites/skyhop.example/claim", "/sites/{domain}/claim"),
        ("/manifests/{manifest}", "/manifests/{id}"),
        ("/manifests/{manifest}/raw", "/manifests/{id}/raw"),
        ("/manifests/{manifest}/versions", "/manifests/{id}/versions"),
        ("/manifests/{manifest}/diff", "/manifests/{id}/diff"),
        ("/semantic-types", "/semantic-types"),
        ("/stats", "/stats"),
        ("/crawl", "/crawl"),
        ("/validate", "/validate"),
        ("/changes?limit=1", "/changes"),
        ("/v0.1/servers", "/v0.1/servers"),
        ("/v0.1/servers/example.tools%2Fflights/versions", "/v0.1/servers/{name}/versions"),
        ("/v0.1/servers/example.tools%2Fflights/versions/latest", "/v0.1/servers/{name}/versions/{version}"),
        ("/agents/urn%3Aair%3Askyhop.example%3Amanifest%3A{manifest}", "/agents/{identifier}"),
        ("/sites/skyhop.example/rank?q=book", "/sites/{domain}/rank"),
        ("/agents?pageSize=2", "/agents"),
        ("/agents?filter=metadata.entry%20=%20'manifest'", "/agents"),
        ("/sites/skyhop.example/ai-catalog.json", "/sites/{domain}/ai-catalog.json"),
        ("/sites/skyhop.example/ard.json", "/sites/{domain}/ard.json"),
        ("/tools/registry_stats", "/tools/{name}"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
        ("/openapi.json", "/openapi.json"),
    ];
    let fill =
        |address: &str| address.replace("{id}", capability.as_str()).replace("{manifest}", manifest.as_str());
    described.into_iter().map(|(address, path)| (fill(address), path)).collect()
}

/// A validator for the JSON response of one operation; references are resolved in the whole document.
fn validator(document: &Value, path: &str, status: &str, media_type: &str) -> jsonschema::Validator {
    let responses = &document["paths"][path]["get"]["responses"];
    let schema = &responses[status]["content"][media_type]["schema"];
    assert!(schema.is_object(), "{path}: {status} as {media_type} is not documented");
    let schema = json!({"allOf": [schema], "components": document["components"]});
    jsonschema::validator_for(&schema).unwrap()
}

#[tokio::test]
async fn openapi_document_is_unchanged() {
    let world = World::new().await;
    let answer = world.get("/openapi.json").await;
    assert_eq!(answer.status, StatusCode::OK);
    let mut document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap().values());
    let mut ids: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "operations share an id");
    document["info"]["version"] = json!("[version]");
    insta::assert_json_snapshot!(document);
}

/// Regression test: a doc comment on an inlined string produced `allOf` of a string and an object, which no value satisfies.
#[tokio::test]
async fn every_schema_can_be_satisfied() {
    let document = World::new().await.get("/openapi.json").await.json();
    let mut met = 0;
    check_parts(&document, &document, &mut met);
    assert!(met > 3, "only {met} schemas use allOf");
}

/// Fails if the parts of one `allOf` require different types; counts the checked ones.
fn check_parts(document: &Value, value: &Value, met: &mut usize) {
    if let Some(parts) = value.get("allOf").and_then(Value::as_array) {
        let types: std::collections::BTreeSet<_> = parts.iter().map(|part| type_of(document, part)).collect();
        assert!(types.len() == 1, "no value can match all parts: {value:#}");
        *met += 1;
    }
    match value {
        Value::Object(members) => members.values().for_each(|member| check_parts(document, member, met)),
        Value::Array(items) => items.iter().for_each(|item| check_parts(document, item, met)),
        _ => {}
    }
}

/// The type that a schema requires, directly, through its reference or in its parts.
fn type_of(document: &Value, schema: &Value) -> String {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return type_of(document, document.pointer(target.trim_start_matches('#')).unwrap());
    }
    match schema.pointer("/allOf/0") {
        Some(part) => type_of(document, part),
        None => schema["type"].to_string(),
    }
}

#[tokio::test]
async fn every_response_matches_its_schema() {
    let world = World::new().await;
    world
        .publish(documents::server("https://tools.example/.well-known/mcp.json", "example.tools/flights"))
        .await;
    let document = world.get("/openapi.json").await.json();
    for (address, path) in addresses() {
        let answer = world.get(&address).await;
        assert_eq!(answer.status, StatusCode::OK, "{address}: {}", answer.text());
        let validator = validator(&document, path, "200", "application/json");
        let json = answer.json();
        let wrong: Vec<String> =
            validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{address}: {wrong:#?}");
    }
}

#[tokio::test]
async fn post_responses_match_their_schemas() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    for (path, body) in [
        ("/search", json!({"query": {"text": "flight"}, "federation": "referrals", "pageSize": 1})),
        ("/explore", json!({"resultType": {"facets": [{"field": "publisher", "limit": 1}]}})),
        ("/woa/{agent}", json!({"agent": "find_capability", "input": {"query": "flight"}})),
        ("/tools/{name}", json!({"query": "flight"})),
        ("/mcp", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})),
    ] {
        let address = path.replace("{agent}", "find_capability").replace("{name}", "find_capability");
        let request = Request::post(&address)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("host", "localhost");
        let answer = world.send(request.body(axum::body::Body::from(body.to_string())).unwrap()).await;
        assert_eq!(answer.status, StatusCode::OK, "{address}: {}", answer.text());
        let operation = &document["paths"][path]["post"];
        let described = |schema: &Value| {
            let schema = json!({"allOf": [schema], "components": document["components"]});
            jsonschema::validator_for(&schema).unwrap()
        };
        let requested = described(&operation["requestBody"]["content"]["application/json"]["schema"]);
        assert!(requested.is_valid(&body), "{path}: the request is not described");
        let validator = described(&operation["responses"]["200"]["content"]["application/json"]["schema"]);
        let json = answer.json();
        let wrong: Vec<String> =
            validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{address}: {wrong:#?}");
    }
}

#[tokio::test]
async fn every_get_operation_is_tested() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    let tried: Vec<&str> = addresses().into_iter().map(|(_, path)| path).collect();
    for (path, item) in document["paths"].as_object().unwrap() {
        // operations for operators and for owners of sites need a token or a key
        if path.starts_with("/admin") || item["get"]["security"].is_array() {
            continue;
        }
        let says_json = item["get"]["responses"]["200"]["content"]["application/json"].is_object();
        assert!(!says_json || tried.contains(&path.as_str()), "{path} is described but not tested");
    }
}

#[tokio::test]
async fn errors_match_their_schema() {
    let world = World::new().await;
    let document = world.get("/openapi.json").await.json();
    let validator = validator(&document, "/search", "default", "application/problem+json");
    for address in ["/search", "/search?q=x&format=soap", "/nowhere", "/sites/unknown.example"] {
        let problem = world.get(address).await.json();
        assert!(validator.is_valid(&problem), "{address}: {problem}");
    }
}

#[tokio::test]
async fn documentation_describes_every_operation_and_loads_only_from_this_origin() {
    let world = World::new().await;
    for old in ["/docs/", "/docs/index.html"] {
        assert_eq!(world.get(old).await.header("location"), "/docs");
    }
    let start = world.get_with("/", &[("accept", "text/html")]).await.text();
    assert!(start.contains("href=\"/docs\"") && start.contains("href=\"/openapi.json\""), "{start}");
    let page = world.page("/docs").await;
    let policy = page.header("content-security-policy");
    assert!(!policy.contains("unsafe-inline") && policy.contains("default-src 'none'"), "{policy}");
    let text = page.text();
    let document = world.get("/openapi.json").await.json();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            let summary = format!("{}</span><code>{path}</code>", method.to_uppercase());
            assert!(text.contains(&summary), "{method} {path}");
        }
    }
    for loaded in text.split(" src=\"").skip(1) {
        assert!(loaded.starts_with("/assets/"), "{loaded:.60}");
    }
}
