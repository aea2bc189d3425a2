//! A member of any name that describes the service.

use serde_json::{Map, Value};

/// The member that describes the service by a name, a description and the names of its capabilities, whatever it is called.
pub(crate) fn name_of(root: &Map<String, Value>) -> Option<&str> {
    let is_block = |value: &Value| {
        let text = |key: &str| value.get(key).is_some_and(Value::is_string);
        let names = value.get("capabilities").and_then(Value::as_array);
        text("name")
            && text("description")
            && names.is_some_and(|names| !names.is_empty() && names.iter().all(Value::is_string))
    };
    let known = |name: &str| BLOCKS_OF_NAMES.iter().any(|(block, _)| *block == name);
    root.iter()
        .find(|(name, value)| value.is_object() && !known(name) && is_block(value))
        .map(|(name, _)| name.as_str())
}

/// Members one level down whose names are those of capabilities.
pub(crate) const BLOCKS_OF_NAMES: &[(&str, &str)] = &[
    ("agent", "capabilities"),
    ("agent", "skills"),
    ("service", "capabilities"),
    ("description", "capabilities"),
    ("mcp", "tools"),
    ("mcp", "prompts"),
    ("mcp", "resources"),
    ("a2a", "skills"),
];
