//! `/.well-known/agents.json`: agents.json 0.1.0.

use serde_json::{Map, Value, json};

use super::identity::{DESCRIPTION, NAME, ServerIdentity};
use crate::tools::Tool;

pub(super) fn manifest(identity: &ServerIdentity) -> Value {
    let capabilities: Vec<Value> = Tool::ALL.iter().copied().map(capability).collect();
    json!({
        "schema_version": "0.1.0",
        "site": {"name": NAME, "url": identity.url("/"), "description": DESCRIPTION},
        "capabilities": capabilities,
        "audit": {"enabled": false},
        "docs_url": identity.url("/llms.txt"),
    })
}

fn capability(tool: Tool) -> Value {
    let route = tool.route();
    let params: Map<String, Value> = route
        .inputs
        .iter()
        .map(|input| {
            let mut parameter = Map::from_iter([
                ("type".to_owned(), input.schema["type"].clone()),
                ("required".to_owned(), input.is_required.into()),
                ("description".to_owned(), input.schema["description"].clone()),
            ]);
            for member in ["default", "enum", "items"] {
                if let Some(value) = input.schema.get(member) {
                    parameter.insert(member.to_owned(), value.clone());
                }
            }
            (input.name.clone(), Value::Object(parameter))
        })
        .collect();
    json!({
        "name": tool.as_str(), "description": tool.definition().description, "endpoint": route.path, "method": route.method,
        "params": params, "requires_session": false, "human_handoff": false,
    })
}
