//! WoA documents: sound, and broken in every way that has a finding.

use serde_json::{Value, json};

use crate::model::{CapabilityKind, Format, Protocol, SafetyClass};
use crate::{Discovery, Document, Manifest, ManifestUrl};

fn read(document: &Value) -> Manifest {
    let url = ManifestUrl::parse("https://letters.example/.well-known/woa.json").unwrap();
    let bytes = document.to_string();
    crate::read(&Document {
        bytes: bytes.as_bytes(),
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    })
}

fn schema(property: &str) -> Value {
    json!({"type": "object", "properties": {property: {"type": "string"}}, "required": [property]})
}

fn sound() -> Value {
    json!({
        "woa_version": "1",
        "agents": [
            {"id": "letter-writer", "name": "Letter writer", "description": "Writes formal letters.", "version": "2.1.0",
             "capabilities": ["https://letters.example/capability/writing"],
             "inputs": schema("topic"), "outputs": schema("letter"), "transports": ["rest"]},
            {"id": "proofreader", "name": "Proofreader", "description": "Reads proofs.",
             "inputs": schema("text"), "outputs": schema("text"), "transports": ["com.letters.bus", "mcp"],
             "operations": [{"name": "spelling", "description": "Mends spelling."},
                            {"name": "style", "description": "Mends style.", "inputs": schema("paragraph")}]}
        ],
        "transports": {
            "rest": {"base": "https://api.letters.example/v1", "invoke_path": "/agents/{agent_id}/invoke?sync=1"},
            "mcp": {"server": "https://mcp.letters.example/", "tool_namespace": "letters", "tool_field": "operation"},
            "com.letters.bus": {"url": "https://bus.letters.example/"}
        }
    })
}

fn codes(document: &Value) -> Vec<String> {
    read(document).findings.iter().map(|finding| finding.code.to_string()).collect()
}

#[track_caller]
fn breaks(change: impl FnOnce(&mut Value), code: &str) {
    let mut document = sound();
    change(&mut document);
    let found = codes(&document);
    assert!(found.iter().any(|known| known == code), "{code} is not among {found:?}");
}

#[test]
fn invokes_an_agent_at_base_plus_path() {
    let manifest = read(&sound());
    assert_eq!(manifest.format(), Format::Woa);
    assert!(manifest.findings.is_empty(), "{:?}", manifest.findings);
    let writer = &manifest.capabilities[0];
    assert_eq!(writer.native_id, "letter-writer");
    assert_eq!(
        writer.invocation.url.as_deref(),
        Some("https://api.letters.example/v1/agents/letter-writer/invoke?sync=1")
    );
    assert_eq!(writer.invocation.method.as_deref(), Some("POST"));
    assert_eq!(writer.invocation.envelope, Some(json!({"agent": "letter-writer", "input": "{parameters}"})));
    assert_eq!(writer.parameters.as_ref().unwrap()["properties"]["topic"]["x-in"], "body");
    assert_eq!(writer.safety.class, SafetyClass::Unknown, "the method of an envelope says nothing");
}

#[test]
fn operations_replace_their_agent_and_override_its_schemas() {
    let manifest = read(&sound());
    let ids: Vec<_> = manifest.capabilities.iter().map(|capability| capability.native_id.as_str()).collect();
    assert_eq!(ids, ["letter-writer", "proofreader/spelling", "proofreader/style"]);
    let (spelling, style) = (&manifest.capabilities[1], &manifest.capabilities[2]);
    assert_eq!(spelling.kind, CapabilityKind::AgentOperation);
    assert!(spelling.parameters.as_ref().unwrap()["properties"].get("text").is_some());
    assert!(style.parameters.as_ref().unwrap()["properties"].get("paragraph").is_some());
    assert_eq!(
        style.invocation.protocol,
        Some(Protocol::Mcp),
        "a registered transport comes before a private one"
    );
    assert_eq!(style.invocation.native.as_deref(), Some("style"));
    assert_eq!(manifest.interfaces.len(), 3);
}

#[test]
fn reports_every_violation() {
    breaks(|document| document["woa_version"] = json!("7"), "woa.woa_version.unknown");
    breaks(|document| document["agents"] = json!([]), "woa.agents.empty");
    breaks(|document| document["agents"][0] = json!("x"), "woa.agent.mistyped");
    breaks(|document| document["agents"][1]["id"] = json!("letter-writer"), "woa.agent.id.duplicate");
    breaks(|document| document["agents"][0]["id"] = json!("a b"), "woa.agent.id.invalid");
    breaks(|document| document["agents"][0]["name"] = json!(null), "woa.agent.name.mistyped");
    breaks(|document| document["agents"][0]["inputs"] = json!("text"), "woa.agent.inputs.mistyped");
    breaks(|document| document["agents"][0]["inputs"]["type"] = json!("objekt"), "woa.schema.invalid");
    breaks(|document| document["agents"][0]["outputs"] = json!({"type": "string"}), "woa.schema.root");
    breaks(
        |document| document["agents"][0]["transports"] = json!(["pigeon"]),
        "woa.agent.transports.unknown",
    );
    breaks(|document| document["agents"][1]["operations"][0] = json!(1), "woa.operation.mistyped");
    breaks(
        |document| document["agents"][1]["operations"][1]["name"] = json!("spelling"),
        "woa.operation.name.duplicate",
    );
    breaks(|document| document["transports"]["rest"] = json!("x"), "woa.transport.mistyped");
    breaks(|document| document["transports"]["pigeon"] = json!({}), "woa.transport.unregistered");
    breaks(|document| document["transports"]["com.letters.fax"] = json!({}), "woa.transport.unused");
    breaks(
        |document| document["transports"]["rest"]["base"] = json!("http://api.letters.example"),
        "woa.rest.base.not_https",
    );
    breaks(
        |document| document["transports"]["rest"]["invoke_path"] = json!("invoke"),
        "woa.rest.invoke_path.invalid",
    );
    breaks(
        |document| document["transports"]["rest"]["invoke_path"] = json!("/{Agent_Id}"),
        "woa.rest.invoke_path.placeholder",
    );
    breaks(
        |document| document["transports"]["mcp"]["tool_field"] = json!(null),
        "woa.mcp.tool_field.mistyped",
    );
}

#[test]
fn reads_the_authorization_extension() {
    let mut document = sound();
    document["agents"][0]["authz"] =
        json!({"scheme": "south", "policy_uri": "https://authz.letters.example/p"});
    let manifest = read(&document);
    assert_eq!(manifest.capabilities[0].auth.schemes, [crate::AuthScheme::Other]);
}
