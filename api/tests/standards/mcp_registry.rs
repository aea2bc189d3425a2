//! Checks `GET /v0.1/servers` against the rules of the official MCP registry (`server.json` of 2025-12-11 and its API), which are restated
//! here as schemas.

use axum::http::StatusCode;
use manifest::Discovery;
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
    assert!(named("example.local").is_empty(), "it declares no MCP server over HTTP");
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

/// Lists the servers, then requests the latest version of each name, as VS Code and Copilot do.
#[tokio::test]
async fn every_listed_server_has_its_versions() {
    let world = world().await;
    // A server under the name of another domain.
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
        // Copilot requests each configured name and treats every status except 200 and 404 as a failure.
        ("/v0.1/servers/nothing/versions", StatusCode::NOT_FOUND),
        ("/v0.1/servers/github/versions/latest", StatusCode::NOT_FOUND),
        ("/v0.1/servers/a.b%2Fc%2Fd/versions/latest", StatusCode::NOT_FOUND),
        ("/v0.1/servers/example.plain%2Ftools/versions?limit=3", StatusCode::BAD_REQUEST),
    ] {
        let answer = world.get(path).await;
        assert_eq!(answer.status, status, "{path}");
        let problem: Value = serde_json::from_str(&answer.text()).unwrap();
        assert!(problem["error"].is_string() && problem["error"] == problem["detail"], "{path}: {problem}");
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
    assert_eq!(
        world.get(path).await.status,
        StatusCode::NOT_FOUND,
        "a customer declares no name of the domain"
    );
    world.publish("https://plain.example/.well-known/mcp/server-card.json", &server("1.0.0")).await;
    assert_eq!(latest().await, "1.0.0", "the host of the namespace does");
    let versions = list(&world, path).await;
    assert_eq!(versions["metadata"]["count"], 1, "{versions}");
}

/// Clients keep one server per name, and the one that changed last is the latest.
#[tokio::test]
async fn a_customer_of_a_site_declares_no_name_of_a_host_above_its_own() {
    let world = World::new().await;
    let publish = async |host: &str, name: &str| {
        let server = card(name, "Orders", "1.0.0", &[&format!("https://{host}/mcp")]);
        world.publish(&format!("https://{host}{CARD}"), &server).await;
    };
    publish("plain.example", "example.plain.api/orders").await;
    publish("t1.api.plain.example", "example.plain.api/orders").await;
    publish("t2.plain.example", "example.plain/orders").await;
    let all = list(&world, "/v0.1/servers").await;
    for one in all["servers"].as_array().unwrap() {
        let record = &one["_meta"]["agentdex/record"];
        let url = record["manifest_url"].as_str().unwrap();
        if url.contains("plain.example") {
            let name_is = if url.starts_with("https://plain.example/") { "declared" } else { "minted" };
            assert_eq!(record["name_is"], name_is, "{one}");
        }
    }
    let own = "https://plain.example/mcp".to_owned();
    let versions = list(&world, "/v0.1/servers/example.plain.api%2Forders/versions").await;
    assert_eq!(rows(&versions), [("example.plain.api/orders".to_owned(), "1.0.0".to_owned(), own, true)]);
    let answer = world.get("/v0.1/servers/example.plain%2Forders/versions").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
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

/// A manifest of another dialect names the servers that its actions use, and the configuration of a client those of anybody.
#[tokio::test]
async fn only_descriptions_of_servers_are_listed() {
    let world = World::new().await;
    let at = |host: &str, path: &str| format!("https://{host}.example{path}");
    let url = |host: &str| format!("https://{host}.example/mcp");
    let registry = json!({"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "example.entry/tools", "version": "1.0.0", "description": "Tools.",
        "remotes": [{"type": "streamable-http", "url": url("entry")}]});
    let freeform = json!({"name": "Free", "description": "Tools.", "endpoint": url("free"), "transport": "streamable-http",
        "tools": [{"name": "weigh", "description": "Weighs a parcel."}]});
    for (host, path, document) in [
        ("card", CARD, card("example.card/tools", "Card", "1.0.0", &[&url("card")])),
        ("entry", "/.well-known/mcp.json", registry),
        ("free", "/.well-known/mcp.json", freeform),
        ("config", "/.well-known/mcp.json", json!({"mcpServers": {"tools": {"url": url("config")}}})),
        (
            "awp",
            "/agent.json",
            json!({"awp_version": "0.1", "domain": "awp.example", "intent": "Sell",
            "protocols": {"mcp": {"endpoint": url("awp"), "version": "1"}}, "actions": []}),
        ),
        (
            "catalog",
            "/.well-known/ai-catalog.json",
            json!({"specVersion": "1.0", "entries": [{
            "identifier": "urn:air:catalog.example:mcp:tools", "displayName": "Tools",
            "type": "application/mcp-server-card+json", "url": url("catalog")}]}),
        ),
    ] {
        world.publish(&at(host, path), &document).await;
    }
    let all = rows(&list(&world, "/v0.1/servers?limit=100").await);
    let is_listed = |host: &str| all.iter().any(|(_, _, listed, _)| *listed == url(host));
    for host in ["card", "entry", "free"] {
        assert!(is_listed(host), "{host}: {all:?}");
    }
    for host in ["config", "awp", "catalog"] {
        assert!(!is_listed(host), "{host}: {all:?}");
    }
}

const CARD: &str = "/.well-known/mcp/server-card.json";

/// The names, versions and first addresses of a list, and whether each is the latest.
fn rows(list: &Value) -> Vec<(String, String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let row = |one: &Value| {
        let server = &one["server"];
        let is_latest =
            one["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"].as_bool().unwrap();
        (text(&server["name"]), text(&server["version"]), text(&server["remotes"][0]["url"]), is_latest)
    };
    list["servers"].as_array().unwrap().iter().map(row).collect()
}

/// Clients resolve a name to the address that they connect to and send credentials to.
#[tokio::test]
async fn no_site_replaces_or_hides_the_server_of_an_account() {
    let world = World::new().await;
    let name = "io.github.octo/octo-mcp";
    let versions = format!("/v0.1/servers/{}/versions", encoded(name));
    let publish = async |host: &str, version: &str| {
        let server = card(name, "Octo", version, &[&format!("https://{host}/mcp")]);
        world.publish(&format!("https://{host}{CARD}"), &server).await;
    };
    publish("honest.example", "1.2.0").await;
    publish("evil.example", "1.2.0").await;
    publish("worse.example", "9.9.9").await;
    for path in [versions.clone(), format!("{versions}/latest"), format!("{versions}/1.2.0")] {
        assert_eq!(
            world.get(&path).await.status,
            StatusCode::NOT_FOUND,
            "{path}: no site of this name declares it"
        );
    }
    let all = list(&world, "/v0.1/servers").await;
    for one in all["servers"].as_array().unwrap() {
        let record = &one["_meta"]["agentdex/record"];
        if record["manifest_url"].as_str().unwrap().contains("stormy.example") {
            continue;
        }
        assert_eq!((&record["name_is"], &record["declared_name"]), (&json!("minted"), &json!(name)), "{one}");
    }
    let hosts: Vec<String> = rows(&all).into_iter().map(|(_, _, url, _)| url).collect();
    for host in ["honest", "evil", "worse"] {
        assert!(hosts.contains(&format!("https://{host}.example/mcp")), "{host} in {hosts:?}");
    }
    publish("octo.github.io", "1.0.0").await;
    publish("evil.example", "2.0.0").await;
    let own = (name.to_owned(), "1.0.0".to_owned(), "https://octo.github.io/mcp".to_owned(), true);
    assert_eq!(rows(&list(&world, &versions).await), std::slice::from_ref(&own));
    let all = rows(&list(&world, "/v0.1/servers").await);
    assert_eq!(all.iter().filter(|row| row.0 == name).collect::<Vec<_>>(), [&own]);
}

/// A mirror keeps one entry for each name and version.
#[tokio::test]
async fn list_has_each_version_of_a_name_once_and_one_latest() {
    let world = World::new().await;
    let publish = async |url: &str, name: &str, version: &str| {
        world.publish(url, &card(name, "Plain", version, &[&format!("{url}/mcp")])).await;
    };
    let name = "example.plain/tools";
    publish("https://plain.example/.well-known/server.json", name, "1.0.0").await;
    publish(&format!("https://plain.example{CARD}"), name, "2.0.0").await;
    publish("https://plain.example/.well-known/mcp.json", name, "2.0.0").await;
    publish("https://mcp.plain.example/.well-known/mcp.json", name, "98.0.0").await;
    publish("https://mcp.plain.example/mcp.json", "example.plain.mcp/more", "1.0.0").await;
    publish("https://other.example/mcp.json", name, "99.0.0").await;
    let all = rows(&list(&world, "/v0.1/servers").await);
    let distinct: std::collections::HashSet<_> =
        all.iter().map(|(name, version, ..)| (name, version)).collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
    assert!(all.iter().filter(|row| row.0 == name).count() == 2, "{all:?}");
    let latest = rows(&list(&world, "/v0.1/servers?version=latest&limit=50").await);
    let names: std::collections::HashSet<_> = all.iter().map(|row| &row.0).collect();
    assert_eq!(latest.len(), names.len(), "each name once: {latest:?}");
    assert!(latest.iter().all(|row| row.3), "{latest:?}");
    for name in names {
        let versions = rows(&list(&world, &format!("/v0.1/servers/{}/versions", encoded(name))).await);
        let mut in_list: Vec<_> = all.iter().filter(|row| row.0 == *name).cloned().collect();
        in_list.sort_by_key(|row| !row.3);
        assert_eq!(in_list, versions, "{name}");
        assert_eq!(versions.iter().filter(|row| row.3).count(), 1, "{name}");
        assert!(latest.contains(&versions[0]), "{name}");
    }
}

/// A mirror that asks for changes learns which servers to delete.
#[tokio::test]
async fn removed_servers_are_listed_as_deleted_to_followers() {
    let world = World::new().await;
    let at = |host: &str| format!("https://{host}.example{CARD}");
    let publish = async |host: &str, version: &str| {
        let name = format!("example.{host}/tools");
        let url = format!("https://{host}.example/mcp");
        world.publish(&at(host), &card(&name, "Plain", version, &[&url])).await;
    };
    for host in ["plain", "stays", "returns"] {
        publish(host, "1.0.0").await;
    }
    for host in ["plain", "returns"] {
        world.remove(&at(host)).await;
    }
    publish("returns", "2.0.0").await;
    let deleted = async |query: &str| {
        let mut found = Vec::new();
        let mut path = format!("/v0.1/servers?limit=2&{query}");
        loop {
            let page = list(&world, &path).await;
            for one in page["servers"].as_array().unwrap() {
                if one["_meta"]["io.modelcontextprotocol.registry/official"]["status"] == "deleted" {
                    found.push(one.clone());
                }
            }
            let Some(cursor) = page["metadata"]["nextCursor"].as_str() else { return found };
            path = format!("/v0.1/servers?limit=2&cursor={}", encoded(cursor));
        }
    };
    for query in
        ["include_deleted=true", "updated_since=2025-08-07", "updated_since=2025-08-07&version=latest"]
    {
        let found = deleted(query).await;
        let [one] = found.as_slice() else { panic!("{query}: {found:?}") };
        assert_eq!(
            (&one["server"]["name"], &one["server"]["version"]),
            (&json!("example.plain/tools"), &json!("1.0.0"))
        );
        assert_eq!(one["server"]["remotes"], Value::Null, "nobody should connect: {one}");
        assert_eq!(one["_meta"]["io.modelcontextprotocol.registry/official"]["isLatest"], true);
    }
    for query in [
        "include_deleted=false",
        "updated_since=2999-01-01T00:00:00Z",
        "updated_since=2025-08-07&search=stays",
        "include_deleted=true&version=9.9.9",
    ] {
        assert_eq!(deleted(query).await, Vec::<Value>::new(), "{query}");
    }
    publish("plain", "1.0.0").await;
    assert_eq!(deleted("include_deleted=true").await, Vec::<Value>::new(), "it is declared again");
    world.remove(&at("plain")).await;
    for query in ["include_deleted=true", "updated_since=2025-08-07"] {
        assert_eq!(deleted(query).await.len(), 1, "{query}: the last removal alone");
    }
}

/// Mirrors delete a server whose document only other sites name from now on: the site does not publish it any more.
#[tokio::test]
async fn a_server_that_only_others_name_now_is_listed_as_deleted() {
    const URL: &str = "https://moves.example/cards/server-card.json";
    let server = card("example.moves/tools", "Moves", "1.0.0", &["https://moves.example/mcp"]);
    let source = (Discovery::HtmlLink, "https://moves.example/");
    let world = World::with_found(&[], &[(URL, source, server.clone())]).await;
    let listed = async || {
        let all = list(&world, "/v0.1/servers?updated_since=2025-08-07&search=moves").await;
        let all = all["servers"].as_array().unwrap().clone();
        let status = |one: &Value| {
            let official = &one["_meta"]["io.modelcontextprotocol.registry/official"];
            (one["server"]["name"].clone(), official["status"].clone())
        };
        (all.iter().map(status).collect::<Vec<_>>(), all)
    };
    let (before, _) = listed().await;
    assert_eq!(before.iter().map(|(_, status)| status).collect::<Vec<_>>(), ["active"]);
    world.publish_linked(URL, &server).await;
    let (after, all) = listed().await;
    assert_eq!(after, [(before[0].0.clone(), json!("deleted"))]);
    let record = &all[0]["_meta"]["agentdex/record"];
    assert_eq!((&record["reason"], &record["declared_name"]), (&json!("named_by_others"), &Value::Null));
}

/// VS Code sends the text of a search with the first page only.
#[tokio::test]
async fn cursor_contains_the_filters_of_its_list() {
    let world = world().await;
    let found = rows(&list(&world, "/v0.1/servers?search=EXAMPLE&version=latest").await);
    let mut paged = Vec::new();
    let mut path = "/v0.1/servers?limit=1&version=latest&search=EXAMPLE.".to_owned();
    loop {
        let page = list(&world, &path).await;
        paged.extend(rows(&page));
        let Some(cursor) = page["metadata"]["nextCursor"].as_str() else { break };
        path = format!("/v0.1/servers?limit=1&version=latest&cursor={}", encoded(cursor));
    }
    assert_eq!(paged, found);
    let first = list(&world, "/v0.1/servers?limit=1&search=example.plain&updated_since=2025-08-07").await;
    let cursor = encoded(first["metadata"]["nextCursor"].as_str().unwrap());
    let rest = list(&world, &format!("/v0.1/servers?limit=100&cursor={cursor}")).await;
    assert_eq!(rest["metadata"]["count"], 0, "the filter of the cursor still applies: {rest}");
    for other in ["search=other", "version=1.2.3", "updated_since=2025-08-08"] {
        let answer = world.get(&format!("/v0.1/servers?cursor={cursor}&{other}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{other}");
    }
    let longest = format!("search={}&version={}", "%C3%A4".repeat(200), "%22".repeat(255));
    let answer = list(&world, &format!("/v0.1/servers?{longest}")).await;
    assert_eq!(answer["metadata"]["count"], 0);
    for too_long in [format!("search={}", "a".repeat(201)), format!("version={}", "1".repeat(256))] {
        let answer = world.get(&format!("/v0.1/servers?{too_long}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    }
}

/// The schemas of both file types have no list of tools.
#[tokio::test]
async fn mcp_servers_without_tools_are_found() {
    let entry = json!({"$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "example.boats/moorings", "title": "Moorings", "version": "1.0.0", "description": "Finds free moorings for boats.",
        "packages": [{"registryType": "npm", "identifier": "@boats/moorings", "version": "1.0.0", "transport": {"type": "stdio"}}]});
    let mut tides = card("example.tides/tides", "Tides", "1.4.0", &["https://tides.example/mcp"]);
    tides["description"] = json!("Times of high and low water.");
    let world = World::with(&[
        ("https://tides.example/.well-known/mcp/server-card.json", tides),
        ("https://boats.example/.well-known/mcp.json", entry),
    ])
    .await;
    let body =
        json!({"query": {"text": "low water", "filter": {"type": ["application/mcp-server-card+json"]}}});
    let found = world.post("/search", &body).await.ok();
    assert_eq!(found["results"][0]["displayName"], "Tides", "{found}");
    assert_eq!(found["results"][0]["url"], "https://tides.example/.well-known/mcp/server-card.json");
    assert_eq!(found["results"][0]["metadata"]["endpoint"], "https://tides.example/mcp");
    for (words, site) in [("low+water", "tides.example"), ("free+moorings", "boats.example")] {
        let found = world.get(&format!("/search?q={words}")).await.ok();
        let row = &found["results"][0];
        assert_eq!(
            (&row["site"], &row["kind"], &row["protocol"]),
            (&json!(site), &json!("resource"), &json!("mcp")),
            "{found}"
        );
        assert_eq!(row["invocable"], false, "the server is connected to, not called");
    }
}
