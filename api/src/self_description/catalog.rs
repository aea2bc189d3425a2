//! `/.well-known/ai-catalog.json` (ARD 0.9) and `/.well-known/ard.json` (0.91): the registry, and what else is here.

use manifest::Format;
use manifest::entry::{REGISTRY_MEDIA_TYPE, media_type_of};
use serde_json::{Value, json};

use super::identity::{DESCRIPTION, Identity, NAME, TAGS, VERSION};
use crate::tools::Tool;

pub(super) fn catalog(identity: &Identity) -> Value {
    let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.as_str()).collect();
    let queries = Tool::FindCapability.definition().examples;
    let entry = |name: &str, title: &str, media_type: &str, url: String, description: &str| {
        json!({"identifier": format!("urn:air:{}:{name}", identity.host), "displayName": title, "type": media_type, "url": url,
               "description": description, "tags": TAGS, "capabilities": names, "representativeQueries": queries, "version": VERSION})
    };
    let entries = [
        entry("registry:agentdex", "agentdex registry", REGISTRY_MEDIA_TYPE, identity.url("/"), DESCRIPTION),
        entry(
            "agent:agentdex",
            "agentdex agent",
            &media_type_of(Format::A2a),
            identity.url("/.well-known/agent-card.json"),
            "Answers requests in plain words with matching capabilities, over A2A.",
        ),
        entry(
            "api:agentdex",
            "agentdex tools",
            &media_type_of(Format::OpenApi),
            identity.url("/tools/openapi.json"),
            "Search, look up, explore, validate and submit over plain HTTP.",
        ),
        entry(
            "woa:agentdex",
            "agentdex agents",
            &media_type_of(Format::Woa),
            identity.url("/.well-known/woa.json"),
            "Every tool as an agent of WoA, over REST and MCP.",
        ),
    ];
    json!({
        "specVersion": "1.0",
        "host": {"displayName": NAME, "identifier": format!("did:web:{}", identity.host), "documentationUrl": identity.url("/llms.txt")},
        "entries": entries,
    })
}
