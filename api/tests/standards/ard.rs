//! The registry of ARD 0.9: closed objects, exact names, filters, paging, federation, errors.

use std::collections::HashSet;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::{PUBLIC_URL, World, encoded};

/// The requirements of the standard for an entry, restated here.
fn entry_schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "type": "object",
        "required": ["identifier", "displayName", "type"],
        "oneOf": [{"required": ["url"]}, {"required": ["data"]}],
        "properties": {
            "identifier": {"type": "string", "pattern": "^urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+)+$"},
            "displayName": text, "type": text, "url": {"type": "string", "pattern": "^https?://"},
            "data": {"type": "object"}, "description": {"type": "string"}, "tags": texts, "capabilities": texts,
            "representativeQueries": {"type": "array", "minItems": 2, "maxItems": 5, "items": {"type": "string"}},
            "version": {"type": "string"}, "updatedAt": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT"},
            "metadata": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean", "null"]}},
            "score": {"type": "integer", "minimum": 0, "maximum": 100}, "source": {"type": "string", "pattern": "^https?://"},
        },
        "additionalProperties": false,
    })
}

#[track_caller]
fn assert_valid(schema: &Value, value: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?} in {value:#}");
}

fn closed(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

fn search_schema() -> Value {
    let mut result = entry_schema();
    result["required"] = json!(["identifier", "displayName", "type", "score", "source"]);
    let referral = closed(
        &["identifier", "displayName", "type", "url"],
        &json!({
        "identifier": {"type": "string"}, "displayName": {"type": "string"}, "url": {"type": "string", "pattern": "/search$"},
        "type": {"enum": ["application/ai-registry", "application/ai-registry+json"]}}),
    );
    closed(
        &["results"],
        &json!({"results": {"type": "array", "items": result},
        "referrals": {"type": "array", "items": referral}, "pageToken": {"type": "string"}}),
    )
}

fn identifiers(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|entry| entry["identifier"].as_str().unwrap()).collect()
}

async fn search(world: &World, body: &Value) -> Value {
    let answer = world.post("/search", body).await;
    assert_eq!(answer.header("cache-control"), "no-store");
    let answer = answer.ok();
    assert_valid(&search_schema(), &answer);
    answer
}

#[tokio::test]
async fn search_returns_entries_with_score_and_source() {
    let world = World::new().await;
    let answer = search(&world, &json!({"query": {"text": "book a flight"}})).await;
    let first = &answer["results"][0];
    assert!(first["identifier"].as_str().unwrap().starts_with("urn:air:skyhop.example:awp:book-flight-"));
    assert_eq!(first["metadata"]["identifierMinted"], true);
    assert_eq!(first["metadata"]["nativeId"], "book flight!");
    assert_eq!(first["url"].as_str().unwrap().split('/').next_back(), Some("agent.json"));
    assert_eq!(first["source"], format!("{PUBLIC_URL}/"));
    assert!(answer.get("referrals").is_none() && answer.get("pageToken").is_none());
    let scores: Vec<u64> =
        answer["results"].as_array().unwrap().iter().map(|entry| entry["score"].as_u64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[tokio::test]
async fn publisher_identifiers_are_kept() {
    let world = World::new().await;
    let answer = search(&world, &json!({"query": {"text": "translate letter"}})).await;
    let first = &answer["results"][0];
    assert_eq!(first["identifier"], "urn:air:hub.example:agent:translator");
    assert_eq!(first["metadata"]["identifierMinted"], false);
    assert_eq!(
        (&first["type"], &first["url"]),
        (&json!("application/a2a-agent-card+json"), &json!("https://words.example/card.json"))
    );
    assert_eq!(first["representativeQueries"], json!(["translate this letter", "what does this mean"]));
}

#[tokio::test]
async fn filters_combine_with_or_within_and_and_across_fields() {
    let world = World::new().await;
    let of = |filter: Value| json!({"query": {"text": "weather forecast tools", "filter": filter}, "pageSize": 50});
    let types = |answer: &Value| -> HashSet<String> {
        let results = answer["results"].as_array().unwrap();
        results.iter().map(|entry| entry["type"].as_str().unwrap().to_owned()).collect()
    };
    let card = search(&world, &of(json!({"type": ["application/mcp-server-card+json"]}))).await;
    assert_eq!(types(&card), HashSet::from(["application/mcp-server-card+json".to_owned()]));
    let either = json!({"type": ["application/mcp-server-card+json", "application/a2a-agent-card+json"]});
    assert_eq!(types(&search(&world, &of(either)).await).len(), 2);
    let both = json!({"type": "application/mcp-server-card+json", "publisher": "nimbus.example"});
    assert!(search(&world, &of(both)).await["results"].as_array().unwrap().is_empty());
    let nobody = json!({"publisher": ["nobody.example"]});
    assert!(search(&world, &of(nobody)).await["results"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn pages_have_no_repeats() {
    let world = World::new().await;
    let mut seen = Vec::new();
    let mut body = json!({"query": {"text": "flights weather translation registry"}, "pageSize": 2});
    for _ in 0..20 {
        let answer = search(&world, &body).await;
        assert!(answer["results"].as_array().unwrap().len() <= 2);
        seen.extend(identifiers(&answer["results"]).into_iter().map(str::to_owned));
        let Some(token) = answer.get("pageToken") else { break };
        body["pageToken"] = token.clone();
    }
    let distinct: HashSet<&String> = seen.iter().collect();
    assert!(seen.len() > 4 && distinct.len() == seen.len(), "{seen:?}");
    body["query"]["text"] = json!("something else");
    let mixed = world.post("/search", &body).await;
    assert!(body.get("pageToken").is_none() || mixed.status == StatusCode::BAD_REQUEST, "{}", mixed.text());
}

#[tokio::test]
async fn referrals_name_other_registries() {
    let world = World::new().await;
    let query = |federation: &str| json!({"query": {"text": "translate"}, "federation": federation});
    let answer = search(&world, &query("referrals")).await;
    assert_eq!(identifiers(&answer["referrals"]), ["urn:air:hub.example:registry"]);
    assert_eq!(answer["referrals"][0]["url"], "https://hub.example/api/search");
    for mode in ["auto", "none"] {
        assert!(search(&world, &query(mode)).await.get("referrals").is_none());
    }
}

#[tokio::test]
async fn explore_counts_the_results_of_the_search() {
    let world = World::new().await;
    let bucket =
        closed(&["value", "count"], &json!({"value": {"type": "string"}, "count": {"type": "integer"}}));
    let facet = closed(
        &["buckets"],
        &json!({"buckets": {"type": "array", "items": bucket}, "otherCount": {"type": "integer"}}),
    );
    let schema = closed(
        &["resultType", "facets"],
        &json!({"resultType": {"const": "facets"},
        "facets": {"type": "object", "additionalProperties": facet}}),
    );
    let ask = json!({"query": {"text": "weather"}, "resultType": {"facets": [{"field": "type"}, {"field": "publisher", "limit": 1}]}});
    let answer = world.post("/explore", &ask).await.ok();
    assert_valid(&schema, &answer);
    let found = search(&world, &json!({"query": {"text": "weather"}, "pageSize": 100})).await;
    let found = found["results"].as_array().unwrap().len() as u64;
    let sum = |facet: &Value| -> u64 {
        let buckets =
            facet["buckets"].as_array().unwrap().iter().map(|bucket| bucket["count"].as_u64().unwrap());
        buckets.sum::<u64>() + facet["otherCount"].as_u64().unwrap_or(0)
    };
    assert_eq!((sum(&answer["facets"]["type"]), sum(&answer["facets"]["publisher"])), (found, found));
    assert_eq!(answer["facets"]["publisher"]["buckets"].as_array().unwrap().len(), 1);

    let everything =
        world.post("/explore", &json!({"resultType": {"facets": [{"field": "metadata.format"}]}})).await.ok();
    assert_eq!(sum(&everything["facets"]["metadata.format"]), 9, "{everything}");
}

#[tokio::test]
async fn agents_are_listed_in_a_fixed_order() {
    let world = World::new().await;
    let schema = closed(
        &["items"],
        &json!({"items": {"type": "array", "items": entry_schema()},
        "total": {"type": "integer"}, "pageToken": {"type": "string"}}),
    );
    let mut names = Vec::new();
    let mut seen = HashSet::new();
    let mut path = "/agents?pageSize=4".to_owned();
    loop {
        let answer = world.get(&path).await;
        assert!(answer.header("etag").starts_with('"'));
        let page = answer.ok();
        assert_valid(&schema, &page);
        assert_eq!(page["total"], 9);
        for item in page["items"].as_array().unwrap() {
            names.push(item["displayName"].as_str().unwrap().to_lowercase());
            assert!(seen.insert(item["identifier"].as_str().unwrap().to_owned()), "{item}");
        }
        let Some(token) = page["pageToken"].as_str() else { break };
        path = format!("/agents?pageSize=4&pageToken={token}");
    }
    assert_eq!(names.len(), 9);
    assert!(names.is_sorted(), "{names:?}");

    let filter = |text: &str| format!("/agents?filter={}", encoded(text));
    let cards = world
        .get(&filter("type = 'application/a2a-agent-card+json' AND publisherId = 'nimbus.example'"))
        .await
        .ok();
    assert_eq!(cards["total"], 1, "{cards}");
    assert_eq!(world.get(&filter("updatedAfter > '2090-01-01'")).await.ok()["total"], 0);
    assert_eq!(world.get(&filter("displayName = 'WEATHER forecast'")).await.ok()["total"], 1);
    let by_identifier = world.get(&filter("identifier = 'urn:air:hub.example:agent:translator'")).await.ok();
    assert_eq!(by_identifier["total"], 1);
}

#[tokio::test]
async fn manifests_are_listed_as_entries() {
    let world = World::new().await;
    let mut seen = HashSet::new();
    let filter = "filter=metadata.entry%20%3D%20'manifest'&pageSize=2";
    let mut path = format!("/agents?{filter}");
    loop {
        let page = world.get(&path).await.ok();
        for item in page["items"].as_array().unwrap() {
            assert_valid(&entry_schema(), item);
            assert_eq!(item["metadata"]["identifierMinted"], true);
            assert!(seen.insert(item["identifier"].as_str().unwrap().to_owned()), "{item}");
        }
        let Some(token) = page["pageToken"].as_str() else { break };
        path = format!("/agents?{filter}&pageToken={token}");
    }
    assert_eq!(seen.len(), 5);
}

#[tokio::test]
async fn site_catalog_is_served_in_both_versions() {
    let world = World::new().await;
    let catalog = closed(
        &["specVersion", "entries"],
        &json!({"specVersion": {"const": "1.0"},
        "host": closed(&["displayName"], &json!({"displayName": {"type": "string"}, "identifier": {"type": "string"}, "documentationUrl": {"type": "string"}})),
        "entries": {"type": "array", "items": entry_schema()}}),
    );
    let old = world.get("/sites/skyhop.example/ai-catalog.json").await.ok();
    assert_valid(&catalog, &old);
    // One entry for each of two equal documents, and one for each of the two actions that both declare.
    assert_eq!(identifiers(&old["entries"]).into_iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!(old["entries"].as_array().map(Vec::len), Some(4));
    assert_eq!(world.get("/sites/skyhop.example/ard.json").await.ok(), old);
    assert_eq!(world.get("/sites/nobody.example/ard.json").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn wrong_requests_return_the_error_codes_of_the_standard() {
    let world = World::new().await;
    for (path, body, word) in [
        ("/search", "{}", "query"),
        ("/search", "{\"query\": {}}", "query.text"),
        ("/search", "{\"query\": {\"text\": \"  \"}}", "query.text"),
        ("/search", "{\"query\": {\"text\": \"x\", \"extra\": 1}}", "extra"),
        ("/search", "{\"query\": {\"text\": \"x\"}, \"limit\": 3}", "limit"),
        ("/search", "{\"query\": {\"text\": \"x\"}, \"pageSize\": 0}", "pageSize"),
        ("/search", "{\"query\": {\"text\": \"x\"}, \"pageSize\": 101}", "pageSize"),
        ("/search", "{\"query\": {\"text\": \"x\"}, \"pageToken\": \"nonsense!\"}", "cursor"),
        ("/search", "{\"query\": {\"text\": \"x\"}, \"federation\": \"all\"}", "referrals"),
        (
            "/search",
            "{\"query\": {\"text\": \"x\", \"filter\": {\"trustManifest.identity\": \"y\"}}}",
            "metadata.format",
        ),
        ("/search", "not json", "JSON"),
        ("/explore", "{}", "resultType"),
        ("/explore", "{\"resultType\": {\"facets\": []}}", "1 to 16"),
        ("/explore", "{\"resultType\": {\"facets\": [{\"field\": \"displayName\"}]}}", "publisher"),
        ("/explore", "{\"resultType\": {\"facets\": [{\"field\": \"type\", \"limit\": 5000}]}}", "1 to 1000"),
    ] {
        let answer = world.post_text(path, body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path} {body}: {}", answer.text());
        assert_eq!(answer.header("content-type"), "application/problem+json");
        let problem = answer.json();
        assert_eq!(problem["errorCode"], "INVALID_ARGUMENT");
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains(word), "{path} {body}: {message}");
    }
    for path in [
        "/agents?pageSize=101",
        "/agents?orderBy=colour",
        "/agents?filter=type",
        "/agents?limit=3",
        "/agents?pageToken=x",
    ] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status, &answer.json()["errorCode"]),
            (StatusCode::BAD_REQUEST, &json!("INVALID_ARGUMENT")),
            "{path}"
        );
    }
    let long = json!({"query": {"text": "x".repeat(70_000)}});
    assert_eq!(world.post("/search", &long).await.status, StatusCode::PAYLOAD_TOO_LARGE);
}
