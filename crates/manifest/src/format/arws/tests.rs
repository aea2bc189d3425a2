//! ARWS manifests with and without the document to which their `tools` link.

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

/// A manifest with different `tools` at the first path of ARWS.
fn with_tools(tools: Option<Value>, linked: Option<&str>) -> Manifest {
    let mut document = manifest();
    match tools {
        Some(tools) => document["tools"] = tools,
        None => drop(document.as_object_mut().unwrap().remove("tools")),
    }
    read(&document, linked)
}

fn at_tools(manifest: &Manifest) -> Vec<&str> {
    let findings = manifest.findings.iter().filter(|finding| finding.pointer == "/tools");
    findings.map(|finding| finding.code.as_ref()).collect()
}

#[test]
fn reports_tools_that_cannot_be_fetched() {
    for (tools, code) in [
        ("/.well-known/agent-manifest.json", "arws.tools.self"),
        ("https://tools.example/openapi.json", "arws.tools.elsewhere"),
        ("https://127.0.0.1/openapi.json", "arws.tools.unusable"),
        ("http://museum.example/openapi.json", "arws.tools.unusable"),
    ] {
        let manifest = with_tools(Some(json!(tools)), None);
        assert_eq!(manifest.format(), Format::Arws, "{tools}");
        assert_eq!(at_tools(&manifest), [code], "{tools}");
    }
    let on_address = with_tools(Some(json!("https://127.0.0.1/openapi.json")), None);
    assert!(on_address.findings[0].text.contains("is an IP address"), "{:?}", on_address.findings);
    assert_eq!(at_tools(&read(&manifest(), Some(""))), ["arws.tools.absent"]);
    assert_eq!(
        at_tools(&read(&manifest(), Some("<!doctype html><title>No</title>"))),
        ["arws.tools.unreadable"]
    );
    assert!(at_tools(&read(&manifest(), None)).is_empty(), "not asked for yet");
}

#[test]
fn recognises_a_manifest_without_usable_tools_by_its_path() {
    for (tools, code) in [
        (None, "arws.tools.missing"),
        (Some(json!(5)), "arws.tools.mistyped"),
        (Some(json!("")), "arws.tools.mistyped"),
        (Some(json!(null)), "arws.tools.mistyped"),
        (Some(json!("http://museum.example/openapi.json")), "arws.tools.unusable"),
        (Some(json!(["find_room"])), "arws.tools.mistyped"),
    ] {
        let manifest = with_tools(tools.clone(), None);
        assert_eq!(manifest.format(), Format::Arws, "{tools:?}");
        breaks(&manifest, code);
        assert_eq!(manifest.auth.len(), 1, "the rest is read");
    }
    let bare = json!({"name": "City museum", "description": "Exhibitions and tickets."});
    breaks(&read(&bare, None), "arws.tools.missing");
    let elsewhere = read_at("/museum.json", &bare, None);
    assert_ne!(elsewhere.format(), Format::Arws);
}

#[test]
fn tools_in_the_manifest_itself_are_reported_and_read() {
    let list =
        json!([{"name": "find_room", "description": "Finds a room.", "inputSchema": {"type": "object"}}]);
    let manifest = with_tools(Some(list), None);
    assert_eq!(at_tools(&manifest), ["arws.tools.mistyped"]);
    assert_eq!(manifest.capabilities[0].native_id, "find_room");
    assert_eq!(manifest.capabilities[0].pointer_document, None);
}

#[test]
fn oauth_needs_a_token_url_and_scopes() {
    let auth = |auth: Value| {
        let mut document = manifest();
        document["auth"] = auth;
        let place = |finding: crate::Finding| (finding.code.into_owned(), finding.pointer);
        read(&document, None).findings.into_iter().map(place).collect::<Vec<_>>()
    };
    let place = |code: &str, pointer: &str| (code.to_owned(), pointer.to_owned());
    assert_eq!(
        auth(json!({"type": "oauth2"})),
        [place("arws.auth.token_url.missing", "/auth"), place("arws.auth.scopes.missing", "/auth")]
    );
    assert_eq!(
        auth(json!({"type": "oauth2", "token_url": "", "scopes": []})),
        [
            place("arws.auth.token_url.invalid", "/auth/token_url"),
            place("arws.auth.scopes.missing", "/auth/scopes")
        ]
    );
    assert_eq!(
        auth(json!({"type": "none", "token_url": "/t"})),
        [place("arws.auth.contradicted", "/auth/type")]
    );
    assert_eq!(auth(json!({"type": "api_key"})), []);
}

#[test]
fn findings_about_tools_point_into_their_document() {
    let manifest = read(&manifest(), Some(&definitions().to_string()));
    let place = |code: &str| {
        let finding = manifest.findings.iter().find(|finding| finding.code == code).unwrap();
        assert_eq!(finding.pointer_document.as_deref(), Some(TOOLS), "{code}");
        finding.pointer.as_str()
    };
    assert_eq!(place("arws.tool.parameter.undescribed"), "/paths/~1tickets~1{id}/delete/parameters/0");
    assert_eq!(
        place("arws.tool.parameter.terse"),
        "/paths/~1tickets/post/requestBody/content/application~1json/schema/properties/n"
    );
    assert_eq!(place("arws.tool.idempotency"), "/paths/~1tickets/post");
    assert_eq!(place("arws.tool.approval.missing"), "/paths/~1tickets~1{id}/delete");
    let positions = crate::finding_positions(b"{\"paths\": {}}", &manifest.findings);
    assert!(positions.iter().all(Option::is_none), "{positions:?}");
}

#[test]
fn writes_require_agent_tokens_and_idempotency_keys() {
    let mut tools = definitions();
    tools["components"] =
        json!({"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}});
    let ticket = &mut tools["paths"]["/tickets"]["post"];
    ticket["security"] = json!([{"key": []}]);
    ticket["parameters"] = json!([{"name": "Idempotency-Key", "in": "header", "description": "Names the attempt",
                                   "schema": {"type": "string"}}]);
    ticket["responses"] = json!({"202": {"description": "Waits for approval"}});
    let manifest = read(&manifest(), Some(&tools.to_string()));
    breaks(&manifest, "arws.tool.auth.not_scoped");
    let buy = manifest.capabilities.iter().find(|capability| capability.native_id == "buy_ticket").unwrap();
    assert_eq!(buy.idempotency.supported, Some(true));
    assert_eq!(buy.idempotency.key_field.as_deref(), Some("Idempotency-Key"));
    assert_eq!(buy.safety.confirmation, crate::model::Confirmation::Required);
    assert_eq!(buy.execution.model, crate::model::ExecutionModel::Async);
}

#[test]
fn reports_what_is_wrong_in_a_list_of_tools() {
    let list = json!({"tools": [
        "find_room", {"name": "a", "description": "A", "inputSchema": {"type": "objekt"}},
        {"name": "a", "description": "A"}, {"description": "A", "inputSchema": {}},
        {"name": "drop_room", "description": "Drops a room.", "inputSchema": {}, "annotations": {"destructiveHint": true},
         "outputSchema": {"type": "object", "properties": {"done": {"type": "boolean"}}}},
    ]});
    let manifest = read(&manifest(), Some(&list.to_string()));
    for (code, pointer) in [
        ("arws.tool.mistyped", "/tools/0"),
        ("arws.tool.schema.invalid", "/tools/1/inputSchema/type"),
        ("arws.tool.name.duplicate", "/tools/2/name"),
        ("arws.tool.input_schema.missing", "/tools/2"),
        ("arws.tool.name.missing", "/tools/3"),
        ("arws.tool.response.undescribed", "/tools/4/outputSchema/properties/done"),
        ("arws.tool.approval.missing", "/tools/4"),
    ] {
        let is_it = |finding: &crate::Finding| finding.code == code && finding.pointer == pointer;
        assert!(manifest.findings.iter().any(is_it), "{code} {pointer}: {:?}", manifest.findings);
    }
}
