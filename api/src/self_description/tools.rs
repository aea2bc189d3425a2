//! `/tools/openapi.json`: the reading tools as OpenAPI 3.1 operations, each with the result of the MCP tool.
//!
//! ARWS §4 requires credentials for all operations that change state. Submitting a site needs no credentials, so it is not listed here.

use serde_json::{Map, Value, json};

use super::identity::{DESCRIPTION, NAME, ServerIdentity, VERSION};
use crate::tools::Tool;

pub(super) fn document(identity: &ServerIdentity) -> Value {
    let reading = Tool::ALL.iter().copied().filter(|tool| tool.is_read_only());
    let paths: Map<String, Value> =
        reading.map(|tool| (format!("/tools/{tool}"), json!({"get": operation(tool)}))).collect();
    json!({
        "openapi": "3.1.0",
        "info": {"title": NAME, "description": DESCRIPTION, "version": VERSION, "license": {"name": "MIT OR Apache-2.0"}},
        "servers": [{"url": identity.base}],
        "security": [],
        "paths": paths,
        "components": {"schemas": {"Problem": {"type": "object", "description": "What was wrong, and what would be right (RFC 9457).",
            "properties": {"title": {"type": "string", "description": "The status in words."}, "status": {"type": "integer", "description": "The HTTP status."},
                "detail": {"type": "string", "description": "What was wrong, and what would be right."}, "errorCode": {"type": "string", "description": "A word for programs."}}}}},
    })
}

/// Whether a tool can be called with this argument in a URL. A document is too long for that; crawled documents are given by their URL.
fn fits_in_url(tool: Tool, argument: &str) -> bool {
    tool != Tool::ValidateManifest || argument != "document"
}

fn operation(tool: Tool) -> Value {
    let definition = tool.definition();
    let problem = |description: &str| {
        json!({"description": description,
               "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}})
    };
    let required = definition.input["required"].as_array().cloned().unwrap_or_default();
    let properties = definition.input["properties"].as_object().cloned().unwrap_or_default();
    let parameters: Vec<Value> = properties
        .into_iter()
        .filter(|(name, _)| fits_in_url(tool, name))
        .map(|(name, schema)| {
            let is_required = required.iter().any(|of| *of == name.as_str());
            json!({"name": name, "in": "query", "required": is_required, "description": schema["description"], "schema": schema,
                   "explode": false})
        })
        .collect();
    json!({
        "operationId": tool.as_str(), "summary": definition.title, "description": definition.description, "tags": ["tools"],
        "parameters": parameters,
        "responses": {
            "200": {"description": "The answer.", "content": {"application/json": {"schema": definition.output}}},
            "400": problem("An argument is wrong; the message says what would be right."),
            "429": problem("Too many requests; Retry-After says when the next is welcome."),
        },
    })
}
