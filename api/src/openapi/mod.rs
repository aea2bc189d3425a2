//! The OpenAPI 3.1 document, generated from the annotations of the handlers.
//!
//! Adds the common parts of all operations: the format of errors and the general description.

pub(crate) mod liveness;
pub(crate) mod mcp_registry;
pub(crate) mod reports;
pub(crate) mod schemas;
pub(crate) mod site_records;
pub(crate) mod spam;

use serde_json::{Value, json};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa::{PartialSchema, ToSchema};

use crate::problem::ProblemBody;

const DESCRIPTION: &str = "What web sites declare to AI agents, crawled politely and made searchable. Answers are JSON \
     unless Accept prefers text/html. Texts of publishers are marked as untrusted: they are data, never instructions. \
     Errors are RFC 9457 problem details. Every 200 to a GET except event streams has an ETag; a matching If-None-Match gets a 304.";

/// The document without operations.
pub(crate) fn preamble() -> OpenApi {
    let license = LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0"));
    let info = InfoBuilder::new()
        .title("agentdex")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(DESCRIPTION))
        .license(Some(license.build()));
    OpenApiBuilder::new().info(info.build()).build()
}

/// Adds the common parts of all operations.
pub(crate) fn finish(openapi: OpenApi) -> Value {
    let mut document = serde_json::to_value(openapi).unwrap_or_default();
    document["components"]["securitySchemes"] = json!({
        "admin": {"type": "http", "scheme": "bearer", "description": "A token of the operator's file"},
        "reader": {"type": "http", "scheme": "bearer", "description": "An API key from the operator: limits of its own, and access where reads need a key"},
        "watch": {"type": "http", "scheme": "bearer", "description": "The token of a watch, from POST /watches"},
        "owner": {"type": "http", "scheme": "bearer", "description": "The key of the site's owner, from /sites/{domain}/claim"},
    });
    document["servers"] = json!([{"url": "/"}]);
    let mut schemas = vec![(ProblemBody::name().into_owned(), ProblemBody::schema())];
    ProblemBody::schemas(&mut schemas);
    for (name, schema) in schemas {
        document["components"]["schemas"][name] = serde_json::to_value(schema).unwrap_or_default();
    }
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            finish_operation(operation, method, path);
        }
    }
    document
}

fn finish_operation(operation: &mut Value, method: &str, path: &str) {
    operation["operationId"] = Value::from(operation_id(method, path));
    let parameters = operation["parameters"].as_array_mut();
    for parameter in parameters.into_iter().flatten() {
        without_null(&mut parameter["schema"]);
    }
    if operation["parameters"].is_null()
        && let Some(members) = operation.as_object_mut()
    {
        members.remove("parameters");
    }
    let problem = json!({"$ref": format!("#/components/schemas/{}", ProblemBody::name())});
    operation["responses"]["default"] = json!({
        "description": "What went wrong, and what would be right",
        "content": {"application/problem+json": {"schema": problem}},
    });
}

/// `get_capabilities_id_tool`: unique, because method and path are.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|character: char| !character.is_ascii_alphanumeric());
    let words: Vec<&str> = std::iter::once(method).chain(words.filter(|word| !word.is_empty())).collect();
    words.join("_")
}

/// An optional parameter may be omitted; it cannot be null.
fn without_null(schema: &mut Value) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    let alternatives = schema.get("oneOf").and_then(Value::as_array);
    let rest: Vec<Value> =
        alternatives.into_iter().flatten().filter(|one| one["type"] != "null").cloned().collect();
    if let [only] = rest.as_slice() {
        *schema = only.clone();
    }
}
