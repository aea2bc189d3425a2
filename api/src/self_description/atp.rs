//! `/.well-known/agent.json`: ATP 0.1.

use serde_json::{Map, Value, json};

use super::identity::{DESCRIPTION, NAME, ServerIdentity, VERSION};
use crate::tools::{ArgumentLocation, Tool};

pub(super) fn manifest(identity: &ServerIdentity) -> Value {
    let capabilities: Vec<Value> = Tool::ALL.iter().copied().map(capability).collect();
    json!({
        "@context": "https://atp.dev/schema/v1",
        "@type": "AgentManifest",
        "name": NAME,
        "description": DESCRIPTION,
        "version": VERSION,
        "provider": {"name": NAME, "url": identity.url("/")},
        "capabilities": capabilities,
        "workflows": [{"id": "find-and-call", "name": "Find a capability and learn how to call it",
            "description": "Search in plain words, then read the whole declaration of the one that fits.",
            "steps": [id(Tool::FindCapability), id(Tool::GetCapability)]}],
        "policies": {"training": "conditional", "inference": "allow", "caching": {"allowed": true, "maxAge": 300},
            "attribution": "none", "termsUrl": identity.url("/.well-known/llms.txt")},
    })
}

/// ATP's schema allows hyphens where tools have underscores.
fn id(tool: Tool) -> String {
    tool.as_str().replace('_', "-")
}

fn capability(tool: Tool) -> Value {
    let (definition, route) = (tool.definition(), tool.route());
    let parameters: Vec<Value> = route
        .inputs
        .iter()
        .map(|input| {
            let mut parameter = Map::from_iter([
                ("name".to_owned(), Value::from(input.name.as_str())),
                ("type".to_owned(), input.schema["type"].clone()),
                (
                    "required".to_owned(),
                    (input.is_required || input.location == ArgumentLocation::Path).into(),
                ),
                ("description".to_owned(), input.schema["description"].clone()),
            ]);
            for member in ["default", "enum", "minimum", "maximum", "pattern"] {
                if let Some(value) = input.schema.get(member) {
                    parameter.insert(member.to_owned(), value.clone());
                }
            }
            Value::Object(parameter)
        })
        .collect();
    let properties: Map<String, Value> =
        route.outputs.iter().map(|(name, kind)| ((*name).to_owned(), json!({"type": kind}))).collect();
    json!({
        "id": id(tool), "name": definition.title, "description": definition.description,
        "semanticType": definition.semantic_type, "endpoint": route.path, "method": route.method,
        "parameters": parameters, "response": {"type": "object", "properties": properties},
        "sideEffects": !tool.is_read_only(), "confirmation": {"required": false}, "deprecated": false,
    })
}
