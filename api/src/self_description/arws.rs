//! `/.well-known/agent-manifest.json`: ARWS, whose tools are an OpenAPI document.

use serde_json::{Value, json};

use super::own::{DESCRIPTION, NAME, Own};

pub(super) fn manifest(own: &Own) -> Value {
    json!({
        "name": NAME,
        "description": DESCRIPTION,
        "auth": {"type": "none"},
        "tools": own.url("/tools/openapi.json"),
        "mcp": own.url("/mcp"),
    })
}
