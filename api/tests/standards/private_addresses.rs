//! Agents never receive an address inside a private network, whatever dialect and member it is published in.

use serde_json::{Value, json};

use crate::world::{World, encoded};

/// Addresses inside private networks, as publishers may write them, each with a part for which responses are searched.
const INSIDE: [(&str, &str); 8] = [
    ("http://169.254.169.254/latest/search", "169.254"),
    ("http://localhost:3000/mcp", "localhost"),
    ("https://good.example@10.0.0.1/x", "10.0.0.1"),
    ("https://intranet/x", "intranet"),
    ("https://metadata.google.internal/x", "google.internal"),
    ("http://[::ffff:a9fe:a9fe]/", "a9fe"),
    ("https://127.0.0.{n}/x", "127.0.0"),
    ("https://[fe80::1%25eth0]/zone", "fe80"),
];

/// One site for each address, with the address in every member that agents follow.
fn documents() -> Vec<(String, Value)> {
    let mut documents = Vec::new();
    for (number, (url, _)) in INSIDE.iter().enumerate() {
        let site = format!("https://s{number}.example");
        let entry = |id: &str, media_type: &str| {
            json!({"identifier": format!("urn:air:s{number}.example:{id}"), "displayName": format!("Booking {id}"),
                   "type": media_type, "url": url, "description": "Books a table."})
        };
        documents.push((format!("{site}/.well-known/ai-catalog.json"), json!({
            "specVersion": "1.0", "host": {"displayName": "Hub"}, "entries": [
                entry("server", "application/mcp-server+json"), entry("card", "application/a2a-agent-card+json"),
                entry("registry", "application/ai-registry+json")]})));
        documents.push((
            format!("{site}/agent.json"),
            json!({
            "awp_version": "0.1", "domain": format!("s{number}.example"), "intent": "Books tables.",
            "protocols": {"mcp": {"endpoint": url, "version": "1"}},
            "actions": [{"id": "inside", "description": "Books a table", "auth_required": false, "inputs": {},
                         "outputs": {}, "endpoint": url, "method": "POST"},
                        {"id": "polled", "description": "Books a table", "auth_required": false, "inputs": {},
                         "outputs": {}, "endpoint": "/book", "method": "POST", "execution_model": "async",
                         "poll_endpoint": url}]}),
        ));
        documents.push((format!("{site}/.well-known/mcp/server-card.json"), json!({
            "serverInfo": {"name": "tables", "version": "1.0"}, "protocolVersion": "2025-06-18",
            "transport": {"type": "streamable-http", "endpoint": url},
            "tools": [{"name": "book_table", "description": "Books a table", "inputSchema": {"type": "object"}}]})));
        documents.push((format!("{site}/.well-known/agents.json"), json!({
            "schema_version": "1", "site": {"name": "Tables", "url": site, "description": "Books tables"},
            "session": {"create": url},
            "capabilities": [{"name": "book", "description": "Books a table", "endpoint": "/book", "method": "POST",
                              "params": {}, "requires_session": true}]})));
        documents.push((
            format!("{site}/openapi.json"),
            json!({
            "openapi": "3.1.0", "info": {"title": "Tables", "version": "1"}, "servers": [{"url": site}],
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": {"authorizationCode": {
                "authorizationUrl": url, "tokenUrl": url, "scopes": {}}}}}},
            "security": [{"login": []}],
            "paths": {"/tables": {"post": {"operationId": "bookTable", "summary": "Books a table",
                                           "responses": {"200": {"description": "ok"}}}}}}),
        ));
    }
    documents
}

fn assert_outside(what: &str, text: &str) {
    for (_, part) in INSIDE {
        assert!(!text.contains(part), "{what} sends agents to {part}: {text}");
    }
}

#[tokio::test]
async fn no_list_or_tool_names_a_private_address() {
    let documents = documents();
    let documents: Vec<(&str, Value)> =
        documents.iter().map(|(url, body)| (url.as_str(), body.clone())).collect();
    let world = World::with(&documents).await;
    let servers = world.get("/v0.1/servers?limit=100").await.ok();
    let servers = servers["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 1, "only the server with a public address is listed: {servers:?}");
    for path in ["/search", "/agents?pageSize=100&"] {
        let mut token = None::<String>;
        loop {
            let page = if path == "/search" {
                let mut body =
                    json!({"query": {"text": "books a table"}, "pageSize": 50, "federation": "referrals"});
                body.as_object_mut()
                    .unwrap()
                    .extend(token.map(|token| ("pageToken".to_owned(), token.into())));
                world.post(path, &body).await.ok()
            } else {
                let token = token.map_or(String::new(), |token| format!("pageToken={}", encoded(&token)));
                world.get(&format!("{path}{token}")).await.ok()
            };
            let entries = page.get("results").or_else(|| page.get("items")).unwrap().as_array().unwrap();
            for entry in entries.iter().chain(page["referrals"].as_array().into_iter().flatten()) {
                assert_outside(path, &entry["url"].to_string());
            }
            token = page["pageToken"].as_str().map(ToOwned::to_owned);
            if token.is_none() {
                break;
            }
        }
    }
    assert_tools_lead_outside(&world).await;
}

/// Checks every capability: what is invocable and its tools.
async fn assert_tools_lead_outside(world: &World) {
    let mut invocable = 0;
    for number in 0..INSIDE.len() {
        let rows = world.get(&format!("/search?site=s{number}.example&limit=100")).await.ok();
        for row in rows["results"].as_array().unwrap() {
            let id = row["id"].as_str().unwrap();
            let record = world.get(&format!("/capabilities/{id}")).await.ok();
            if record["invocable"] == true {
                invocable += 1;
                let followed =
                    [&record["endpoint"], &record["session_url"], &record["execution"]["poll_url"]];
                assert_outside(id, &format!("{followed:?}"));
            }
            for shape in ["mcp", "openai", "anthropic", "openapi"] {
                let tool = world.get(&format!("/capabilities/{id}/tool?as={shape}")).await;
                if tool.status.is_success() {
                    assert_eq!(record["invocable"], true, "{id}");
                    assert_outside(shape, &tool.text());
                }
            }
        }
    }
    assert!(invocable >= 3 * INSIDE.len(), "the public capabilities of each site are invocable: {invocable}");
}
