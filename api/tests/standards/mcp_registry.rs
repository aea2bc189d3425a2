//! `GET /v0.1/servers` against the rules of the official MCP registry (`server.json` of 2025-12-11 and its API), restated
//! here.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::world::{World, encoded};

/// The rules of the registry for a list of servers.
fn list_schema() -> Value {
    let uri = json!({"type": "string", "format": "uri"});
    let remote = json!({
        "type": "object", "required": ["type", "url"], "additionalProperties": false,
        "properties": {"type": {"enum": ["streamable-http", "sse"]},
                       "url": {"type": "string", "pattern": "^(https?://[^\\s]+|\\{[a-zA-Z_][a-zA-Z0-9_]*\\}[^\\s]*)$"}},
    });
    let server = json!({
        "type": "object", "required": ["name", "description", "version"], "additionalProperties": false,
        "properties": {
            "$schema": uri,
            "name": {"type": "string", "minLength": 3, "maxLength": 200, "pattern": "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
            "description": {"type": "string", "minLength": 1, "maxLength": 100},
            "title": {"type": "string", "minLength": 1, "maxLength": 100},
            "version": {"type": "string", "minLength": 1, "maxLength": 255, "not": {"enum": ["latest"]}},
            "remotes": {"type": "array", "minItems": 1, "items": remote},
        },
    });
    let time = json!({"type": "string", "format": "date-time"});
    let official = json!({
        "type": "object", "additionalProperties": false,
        "properties": {"status": {"enum": ["active", "deprecated", "deleted"]}, "publishedAt": time, "updatedAt": time,
                       "isLatest": {"type": "boolean"}},
    });
    let entry = json!({
        "type": "object", "required": ["server"], "additionalProperties": false,
        "properties": {"server": server, "_meta": {
            "type": "object", "properties": {"io.modelcontextprotocol.registry/official": official},
            "propertyNames": {"pattern": "^[a-z0-9.-]+/[a-z0-9._-]+$"}}},
    });
    json!({
        "type": "object", "required": ["servers"], "additionalProperties": false,
        "properties": {
            "servers": {"type": "array", "items": entry},
            "metadata": {"type": "object", "additionalProperties": false,
                         "properties": {"nextCursor": {"type": "string", "minLength": 1}, "count": {"type": "integer"}}},
        },
    })
}

/// The rules of the registry for one server.
fn entry_schema() -> Value {
    list_schema()["properties"]["servers"]["items"].clone()
}

#[track_caller]
fn assert_valid(schema: &Value, value: &Value) {
    let options = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    let wrong: Vec<String> =
        options.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?} in {value:#}");
}

async fn list(world: &World, path: &str) -> Value {
    let answer = world.get(path).await.ok();
    assert_valid(&list_schema(), &answer);
    assert_eq!(answer["metadata"]["count"], answer["servers"].as_array().unwrap().len());
    answer
}

/// A server card with every optional member.
fn card(name: &str, title: &str, version: &str, urls: &[&str]) -> Value {
    let remotes: Vec<Value> = urls.iter().map(|url| json!({"type": "streamable-http", "url": url})).collect();
    json!({"$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": name, "title": title, "version": version, "description": "Tools \n of\tmany kinds. ".repeat(20), "remotes": remotes})
}

async fn world() -> World {
    let world = World::new().await;
    let long = format!("{}.{}.{}.long.example", "a".repeat(60), "b".repeat(60), "c".repeat(60));
    let at_long = format!("https://{long}/mcp");
    for (host, card) in [
        ("plain.example", card("example.plain/tools", "Plain", "1.2.3", &["https://plain.example/mcp"])),
        ("blank.example", card("no registry name", "  ", "latest", &["https://blank.example/mcp"])),
        (
            "range.example",
            card(
                "a.b/c/d",
                "\u{200b}",
                "^1.0",
                &["https://range.example/mcp", "https://range.example/m c p"],
            ),
        ),
        (&long, card("", &"t".repeat(300), &"9".repeat(300), &[&at_long])),
        ("local.example", card("example.local/x", "Local", "1.0.0", &["ftp://local.example/x"])),
    ] {
        world.publish(&format!("https://{host}/.well-known/mcp/server-card.json"), &card).await;
    }
    world
}

#[tokio::test]
async fn server_names_and_versions_follow_the_registry_rules() {
    let world = world().await;
    let all = list(&world, "/v0.1/servers").await;
    let named = |part: &str| {
        let servers = all["servers"].as_array().unwrap().iter();
        servers.filter(|one| one["server"]["name"].as_str().unwrap().contains(part)).collect::<Vec<_>>()
    };
    let plain = named("example.plain/tools")[0];
    assert_eq!(plain["server"]["version"], "1.2.3");
    assert_eq!(plain["_meta"]["agentdex/record"]["name_is"], "declared");
    for host in ["example.blank/m", "example.range/m", "example.long."] {
        let one = named(host)[0];
        assert_eq!(one["_meta"]["agentdex/record"]["name_is"], "minted", "{host}");
    }
    for host in ["example.blank/m", "example.range/m"] {
        let one = named(host)[0];
        assert_eq!(
            (&one["server"]["version"], &one["_meta"]["agentdex/record"]["version_is"]),
            (&json!("0.0.0"), &json!("minted"))
        );
        assert_eq!(one["server"]["remotes"].as_array().unwrap().len(), 1, "{host}");
    }
    assert!(named("example.local").is_empty(), "nothing that speaks MCP over HTTP is declared there");
}

#[tokio::test]
async fn supports_the_query_parameters_of_the_registry() {
    let world = world().await;
    let all = list(&world, "/v0.1/servers").await["servers"].as_array().unwrap().clone();
    let mut paged = Vec::new();
    let mut path = "/v0.1/servers?limit=2".to_owned();
    loop {
        let page = list(&world, &path).await;
        paged.extend(page["servers"].as_array().unwrap().clone());
        let Some(cursor) = page["metadata"]["nextCursor"].as_str() else { break };
        path = format!("/v0.1/servers?limit=2&cursor={}", encoded(cursor));
    }
    assert_eq!(paged, all);
    let count = async |query: &str| {
        list(&world, &format!("/v0.1/servers?{query}")).await["metadata"]["count"].clone()
    };
    assert_eq!(count("search=PLAIN").await, 1);
    assert_eq!(count("version=latest").await, all.len());
    assert_eq!(count("version=1.2.3&search=plain").await, 1);
    assert_eq!(count("updated_since=2025-08-07T13:15:04.280Z").await, all.len());
    assert_eq!(count("include_deleted=true").await, all.len());
    assert_eq!(count("updated_since=2999-01-01T00:00:00Z").await, 0);
    assert_eq!(world.get("/v0.1/servers?updated_since=yesterday").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(world.get("/v0.1/servers?include_deleted=maybe").await.status, StatusCode::BAD_REQUEST);
}

/// What VS Code and Copilot do: list, then ask for the latest version of each name.
#[tokio::test]
async fn every_listed_server_has_its_versions() {
    let world = world().await;
    // A server without tools, under the name of another domain.
    let foreign = card("io.github.someone/weather", "Foreign", "2.0.0", &["https://foreign.example/mcp"]);
    world.publish("https://foreign.example/.well-known/mcp/server-card.json", &foreign).await;
    let all = list(&world, "/v0.1/servers").await;
    let servers = all["servers"].as_array().unwrap();
    assert!(servers.len() >= 6);
    for server in servers {
        let (name, version) =
            (server["server"]["name"].as_str().unwrap(), server["server"]["version"].as_str().unwrap());
        let path = format!("/v0.1/servers/{}/versions", encoded(name));
        let versions = list(&world, &path).await;
        assert_eq!(versions["servers"], json!([server]), "{name}");
        for wanted in ["latest", version] {
            let answer = world.get(&format!("{path}/{}", encoded(wanted))).await;
            assert_eq!(answer.header("access-control-allow-origin"), "*");
            let answer = answer.ok();
            assert_valid(&entry_schema(), &answer);
            assert_eq!(answer, *server, "{name} {wanted}");
        }
        assert_eq!(
            world.get(&format!("{path}/99.99.99?include_deleted=false")).await.status,
            StatusCode::NOT_FOUND
        );
    }
    for (path, status) in [
        ("/v0.1/servers/example.nobody%2Fnothing/versions", StatusCode::NOT_FOUND),
        ("/v0.1/servers/example.nobody%2Fnothing/versions/latest", StatusCode::NOT_FOUND),
        ("/v0.1/servers/example.blank%2Fm0000000000000000/versions", StatusCode::NOT_FOUND),
        ("/v0.1/servers/nothing/versions", StatusCode::BAD_REQUEST),
        ("/v0.1/servers/a.b%2Fc%2Fd/versions/latest", StatusCode::BAD_REQUEST),
        ("/v0.1/servers/example.plain%2Ftools/versions?limit=3", StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(world.get(path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn versions_of_one_name_are_of_its_own_site_and_the_latest_is_marked() {
    let world = World::new().await;
    let at = |path: &str| format!("https://plain.example{path}");
    let server =
        |version: &str| card("example.plain/tools", "Plain", version, &["https://plain.example/mcp"]);
    world.publish(&at("/.well-known/mcp/server-card.json"), &server("1.0.0")).await;
    world.publish("https://copycat.example/.well-known/mcp/server-card.json", &server("9.0.0")).await;
    let all = list(&world, "/v0.1/servers").await;
    let names = all["servers"].as_array().unwrap().iter().map(|one| one["server"]["name"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    assert_eq!(names.iter().filter(|name| **name == "example.plain/tools").count(), 1, "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("example.copycat/m")), "{names:?}");
    let versions = list(&world, "/v0.1/servers/example.plain%2Ftools/versions").await;
    let versions: Vec<&Value> =
        versions["servers"].as_array().unwrap().iter().map(|server| &server["server"]["version"]).collect();
    assert_eq!(versions, ["1.0.0"]);
    let latest = world.get("/v0.1/servers/example.plain%2Ftools/versions/latest").await.ok();
    assert_eq!(latest["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"], true);
}

/// Users of a site may upload files, and customers may have hosts below its domain.
#[tokio::test]
async fn a_user_of_a_site_does_not_replace_its_server() {
    let world = World::new().await;
    let server =
        |version: &str| card("example.plain/tools", "Plain", version, &["https://plain.example/mcp"]);
    let latest = async || {
        let latest = world.get("/v0.1/servers/example.plain%2Ftools/versions/latest").await;
        latest.ok()["server"]["version"].clone()
    };
    world.publish("https://plain.example/u/evil/server.json", &server("99.0.0")).await;
    let path = "/v0.1/servers/example.plain%2Ftools/versions";
    assert_eq!(world.get(path).await.status, StatusCode::NOT_FOUND, "an upload declares no name");
    world.publish("https://mcp.plain.example/.well-known/mcp/server-card.json", &server("98.0.0")).await;
    assert_eq!(latest().await, "98.0.0", "no other host declares it");
    world.publish("https://plain.example/.well-known/mcp/server-card.json", &server("1.0.0")).await;
    assert_eq!(latest().await, "1.0.0", "the host of the namespace does");
    let versions = list(&world, path).await;
    assert_eq!(versions["metadata"]["count"], 1, "{versions}");
}

/// A card at the host of a customer, and an upload, which another site links to.
#[tokio::test]
async fn no_server_is_listed_of_a_document_that_only_others_name() {
    let world = World::new().await;
    let hosts = [
        "https://customer.plain.example/.well-known/mcp/server-card.json",
        "https://plain.example/u/x/server.json",
    ];
    for (url, name) in hosts.into_iter().zip(["example.plain/tools", "io.github.someone/tools"]) {
        world.publish_linked(url, &card(name, "Plain", "98.0.0", &["https://plain.example/mcp"])).await;
        let path = format!("/v0.1/servers/{}/versions", encoded(name));
        assert_eq!(world.get(&path).await.status, StatusCode::NOT_FOUND, "{name}");
        assert_eq!(world.get(&format!("{path}/latest")).await.status, StatusCode::NOT_FOUND, "{name}");
    }
    let all = list(&world, "/v0.1/servers").await.to_string();
    for name in ["plain.example", "example.plain", "io.github.someone"] {
        assert!(!all.contains(name), "{name} in {all}");
    }
    let own = card("example.plain/tools", "Plain", "1.0.0", &["https://plain.example/mcp"]);
    world.publish("https://plain.example/.well-known/mcp/server-card.json", &own).await;
    let latest = world.get("/v0.1/servers/example.plain%2Ftools/versions/latest").await.ok();
    assert_eq!(latest["server"]["version"], "1.0.0");
}
