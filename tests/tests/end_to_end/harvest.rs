//! A registry that is followed: its entries are listed beside what sites declare, and never change it.

use serde_json::{Value, json};
use testweb::{Answer, Host, Web, WebBuilder};

use crate::world::{Api, Backend, World, output, text_of};

const SITE: &str = "table.example";
const REGISTRY: &str = "registry.example";
const EVIL: &str = "evil.example";
const GONE: &str = "gone.example";
const ENDPOINT: &str = "https://mcp.table.example/mcp";

fn entry(name: &str, url: &str, version: &str, status: &str) -> Value {
    json!({
        "server": { "name": name, "title": "Tables", "version": version, "description": "Not kept.",
                    "remotes": [{ "type": "streamable-http", "url": url }] },
        "_meta": { "io.modelcontextprotocol.registry/official":
                   { "status": status, "isLatest": true, "updatedAt": "2025-11-01T12:00:00Z" } },
    })
}

fn page(servers: &[Value], next: &str) -> Answer {
    Answer::json(json!({ "servers": servers, "metadata": { "nextCursor": next } }).to_string())
}

fn web() -> WebBuilder {
    let card = json!({
        "name": "example.table/mcp", "title": "Tables", "version": "1.0.0", "description": "Books a table.",
        "remotes": [{ "type": "streamable-http", "url": ENDPOINT }],
    });
    let site =
        Host::new(SITE).file("/.well-known/mcp/server-card.json", "application/json", card.to_string());
    let own = |version: &str| entry("example.table/mcp", ENDPOINT, version, "active");
    let lie = entry("example.table/best", "https://evil.example/mcp", "9.0.0", "active");
    let gone = |status: &str| entry("example.gone/mcp", "https://gone.example/mcp", "1.0.0", status);
    // the first reading fails at its second page, the next one continues there, and the third one gets changes
    let changes = page(&[own("2.0.0"), gone("deleted")], "");
    let second = Answer::status(404).times(1, page(&[gone("active")], "").times(1, changes));
    let registry =
        Host::new(REGISTRY).route("/v0.1/servers", page(&[own("1.0.0"), lie], "p2").times(1, second));
    Web::builder().hosts([site, registry, Host::new(EVIL), Host::new(GONE), Host::new("mcp.table.example")])
}

/// The identifiers of the listings of a site with their contradictions.
async fn listed(api: &Api, site: &str) -> Vec<(String, Vec<String>)> {
    let answer = api.get(&format!("/sites/{site}")).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let facts = |listing: &Value| {
        let found = listing["contradictions"].as_array().unwrap().iter();
        found
            .map(|one| format!("{} {} {}", text(&one["fact"]), text(&one["listed"]), text(&one["declared"])))
            .collect()
    };
    let listings = answer["listed_by"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
    listings.map(|listing| (text(&listing["identifier"]), facts(listing))).collect()
}

pub(crate) async fn entries_of_a_registry_are_listed_and_change_nothing(backend: Backend) {
    let world = World::start(backend, web()).await;
    world.write_seeds([SITE]);
    let source = format!("mcp:https://{REGISTRY}/");
    let flags = ["--seeds", source.as_str()];
    let stopped = output(world.crawler(&flags));
    let text = text_of(&stopped);
    assert!(stopped.status.success() && text.contains("404") && text.contains("read later"), "{text}");
    world.crawl(&flags);
    world.index();
    let api = world.api().await;
    let own = "example.table/mcp".to_owned();
    let best = "example.table/best".to_owned();
    assert_eq!(listed(&api, SITE).await, [(best.clone(), vec![]), (own.clone(), vec![])]);
    assert_eq!(listed(&api, EVIL).await, [(best.clone(), vec![format!("publisher {SITE} {EVIL}")])]);
    assert_eq!(listed(&api, GONE).await.len(), 1);
    assert_eq!(api.get("/stats").await["capabilities"], 1, "an entry is not a capability");
    let found = api.get(&format!("/search?site={SITE}")).await;
    let id = found["results"][0]["id"].as_str().unwrap_or_else(|| panic!("{found}"));
    let capability = api.get(&format!("/capabilities/{id}")).await;
    assert_eq!(capability["listed_by"][0]["identifier"], own, "{capability}");
    assert_eq!(capability["listed_by"].as_array().map(Vec::len), Some(1), "{capability}");
    drop(api);

    // changes: another version, and a tombstone
    world.crawl(&flags);
    let api = world.api().await;
    let version = vec!["version 2.0.0 1.0.0".to_owned()];
    assert_eq!(listed(&api, SITE).await, [(best, vec![]), (own, version)]);
    assert_eq!(listed(&api, GONE).await, []);
    let paths: Vec<String> = world.web.log().hits_on(REGISTRY).iter().map(|hit| hit.path.clone()).collect();
    let queries: Vec<&str> = paths.iter().filter_map(|path| path.strip_prefix("/v0.1/servers?")).collect();
    let [_, second, resumed, changes] = queries.as_slice() else { panic!("{paths:?}") };
    assert!(second.ends_with("cursor=p2") && resumed == second, "{paths:?}");
    assert!(changes.contains("updated_since=2025-11-01T11%3A00%3A00.000Z"), "{paths:?}");
    world.assert_polite();
}
