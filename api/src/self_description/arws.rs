//! `/.well-known/agent-manifest.json`: ARWS, whose tools are an OpenAPI document.

use serde_json::{Value, json};

use super::identity::{DESCRIPTION, NAME, ServerIdentity};

pub(super) fn manifest(identity: &ServerIdentity) -> Value {
    json!({
        "name": NAME,
        "description": DESCRIPTION,
        "auth": {"type": "none"},
        "tools": identity.url("/tools/openapi.json"),
        "mcp": identity.url("/mcp"),
    })
}
