//! `/.well-known/ard.json` (ARD 0.91): the registry and its agent; `/.well-known/ai-catalog.json` (AI Catalog 1.0, ARD 0.9): the same
//! entries, and those with media types that ARD does not define.

use manifest::Format;
use manifest::entry::{REGISTRY_MEDIA_TYPE, media_type_of};
use serde_json::{Value, json};

use super::identity::{DESCRIPTION, NAME, ServerIdentity, TAGS, VERSION};
use crate::tools::Tool;

/// The entries of ARD 0.91, which has no other member at the root.
pub(super) fn manifest(identity: &ServerIdentity) -> Value {
    json!({"entries": ard_entries(identity)})
}

pub(super) fn catalog(identity: &ServerIdentity) -> Value {
    let mut entries = ard_entries(identity);
    entries.push(entry(
        identity,
        "api:agentdex",
        "agentdex tools",
        &media_type_of(Format::OpenApi),
        "/tools/openapi.json",
        "Search, look up, explore, validate and submit over plain HTTP.",
    ));
    entries.push(entry(
        identity,
        "woa:agentdex",
        "agentdex agents",
        &media_type_of(Format::Woa),
        "/.well-known/woa.json",
        "Every tool as an agent of WoA, over REST and MCP.",
    ));
    json!({
        "specVersion": "1.0",
        "host": {"displayName": NAME, "identifier": format!("did:web:{}", identity.host), "documentationUrl": identity.url("/llms.txt")},
        "entries": entries,
    })
}

fn ard_entries(identity: &ServerIdentity) -> Vec<Value> {
    let card = media_type_of(Format::A2a);
    let agent = "Answers requests in plain words with matching capabilities, over A2A.";
    vec![
        entry(identity, "registry:agentdex", "agentdex registry", REGISTRY_MEDIA_TYPE, "/", DESCRIPTION),
        entry(identity, "agent:agentdex", "agentdex agent", &card, "/.well-known/agent-card.json", agent),
    ]
}

fn entry(
    identity: &ServerIdentity,
    name: &str,
    title: &str,
    media_type: &str,
    path: &str,
    description: &str,
) -> Value {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
    let queries = Tool::FindCapability.definition().examples;
    json!({"identifier": format!("urn:air:{}:{name}", identity.host), "displayName": title, "type": media_type,
           "url": identity.url(path), "description": description, "tags": TAGS, "capabilities": names,
           "representativeQueries": queries, "version": VERSION})
}
