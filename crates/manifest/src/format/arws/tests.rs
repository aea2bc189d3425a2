//! ARWS manifests with and without the document that their `tools` name.

use serde_json::{Value, json};

use crate::model::{CapabilityKind, Follow, Format, Protocol, SafetyClass};
use crate::{AuthScheme, Discovery, Document, LinkedDocument, Manifest, ManifestUrl};

const TOOLS: &str = "https://museum.example/openapi.json";

fn manifest() -> Value {
    json!({"name": "City museum", "description": "Exhibitions and tickets.", "tools": "/openapi.json",
           "auth": {"type": "oauth2", "token_url": "/oauth/token", "scopes": ["agent:read", "agent:buy"]}})
}

fn definitions() -> Value {
    json!({
        "openapi": "3.1.0", "info": {"title": "Museum", "version": "1"}, "servers": [{"url": "https://museum.example/api"}],
        "paths": {
            "/exhibitions": {"get": {"operationId": "list_exhibitions", "summary": "List exhibitions",
                "description": "Lists what is on show.",
                "parameters": [{"name": "on_date", "in": "query", "description": "Day of the visit", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "The exhibitions"}}}},
            "/tickets/{id}": {"delete": {"operationId": "return_ticket", "description": "Gives a ticket back.",
                "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}],
                "responses": {"204": {"description": "Done"}}}},
            "/tickets": {"post": {"operationId": "buy_ticket", "description": "Buys a ticket.",
                "requestBody": {"content": {"application/json": {"schema": {"type": "object",
                    "properties": {"n": {"type": "integer"}}}}}},
                "responses": {"201": {"description": "The ticket"}}}}
        }
    })
}

fn read_at(path: &str, document: &Value, linked: Option<&str>) -> Manifest {
    let url = ManifestUrl::parse(&format!("https://museum.example{path}")).unwrap();
    let tools = ManifestUrl::parse(TOOLS).unwrap();
    let bytes = document.to_string();
    let linked: Vec<_> =
        linked.iter().map(|text| LinkedDocument { url: &tools, bytes: text.as_bytes() }).collect();
    crate::read(&Document {
        bytes: bytes.as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &linked,
        force: None,
    })
}

fn read(document: &Value, linked: Option<&str>) -> Manifest {
    read_at("/.well-known/agent-manifest.json", document, linked)
}

#[track_caller]
fn breaks(manifest: &Manifest, code: &str) {
    let found: Vec<_> = manifest.findings.iter().map(|finding| finding.code.as_ref()).collect();
    assert!(found.contains(&code), "{code} is not among {found:?}");
}

#[test]
fn reads_both_paths_and_links_the_tool_document() {
    for path in ["/.well-known/agent-manifest.json", "/.well-known/llms.txt"] {
        let manifest = read_at(path, &manifest(), None);
        assert_eq!(manifest.format(), Format::Arws, "{path}: {:?}", manifest.detection);
        assert_eq!(manifest.links[0].url, TOOLS);
        assert_eq!(manifest.links[0].follow, Some(Follow::Merge));
        assert_eq!(manifest.auth[0].scheme, AuthScheme::OAuth2);
        assert_eq!(manifest.auth[0].token_url.as_deref(), Some("https://museum.example/oauth/token"));
        assert!(manifest.auth[0].scopes.contains_key("agent:buy"));
        assert!(manifest.capabilities.is_empty());
    }
}

#[test]
fn every_operation_of_the_tools_becomes_a_capability() {
    let manifest = read(&manifest(), Some(&definitions().to_string()));
    let mut ids: Vec<_> =
        manifest.capabilities.iter().map(|capability| capability.native_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["buy_ticket", "list_exhibitions", "return_ticket"]);
    let of = |id: &str| manifest.capabilities.iter().find(|capability| capability.native_id == id).unwrap();
    let list = of("list_exhibitions");
    assert_eq!(list.key, "https://museum.example/.well-known/agent-manifest.json#arws:list_exhibitions");
    assert_eq!(list.invocation.url.as_deref(), Some("https://museum.example/api/exhibitions"));
    assert_eq!(list.pointer_document.as_deref(), Some(TOOLS));
    assert_eq!(list.safety.class, SafetyClass::Read);
    assert_eq!(of("return_ticket").safety.class, SafetyClass::Destructive);
    assert_eq!(of("buy_ticket").auth.schemes, [AuthScheme::OAuth2]);
    breaks(&manifest, "arws.tool.parameter.undescribed");
    breaks(&manifest, "arws.tool.parameter.terse");
    breaks(&manifest, "arws.tool.idempotency");
    breaks(&manifest, "arws.tool.approval.missing");
}

#[test]
fn reads_tools_from_yaml_and_from_a_list() {
    let yaml = "openapi: 3.0.3\ninfo: {title: Museum, version: '1'}\npaths:\n  /rooms:\n    get:\n      operationId: list_rooms\n      responses: {'200': {description: The rooms}}\n";
    let manifest_in_yaml = read(&manifest(), Some(yaml));
    assert_eq!(manifest_in_yaml.capabilities[0].native_id, "list_rooms");
    breaks(&manifest_in_yaml, "arws.tools.version");
    breaks(&manifest_in_yaml, "arws.tool.description.missing");

    let list = json!({"tools": [{"name": "find_room", "description": "Finds a room.",
        "inputSchema": {"type": "object", "properties": {"painter": {"type": "string", "description": "Who painted"}}}}]});
    let manifest_of_list = read(&manifest(), Some(&list.to_string()));
    assert_eq!(manifest_of_list.capabilities[0].kind, CapabilityKind::Tool);
    assert_eq!(
        manifest_of_list.capabilities[0].parameters.as_ref().unwrap()["properties"]["painter"]["x-in"],
        "body"
    );
}

#[test]
fn lists_an_mcp_server_as_an_interface_without_following_it() {
    let mut document = manifest();
    document["tools"] = json!("https://museum.example/mcp");
    let manifest = read(&document, None);
    assert_eq!(manifest.interfaces[0].protocol, Protocol::Mcp);
    assert!(manifest.links.iter().all(|link| link.follow.is_none()));
}

#[test]
fn reports_every_violation() {
    let mut nameless = manifest();
    nameless["name"] = json!(7);
    breaks(&read(&nameless, None), "arws.name.mistyped");
    let mut open = manifest();
    open.as_object_mut().unwrap().remove("auth");
    breaks(&read(&open, None), "arws.auth.missing");
    breaks(&read(&open, Some(&definitions().to_string())), "arws.tool.auth.missing");
    breaks(&read(&manifest(), Some("\u{0}{")), "arws.tools.unreadable");
    breaks(&read(&manifest(), Some("{\"people\": []}")), "arws.tools.unknown");
    breaks(&read(&manifest(), Some("{\"tools\": []}")), "arws.tools.empty");
}
