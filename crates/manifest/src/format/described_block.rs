//! A member of any name that describes the service.

use serde_json::{Map, Value};

use crate::format::{lenient, mcp, outbound};
use crate::text;

/// The member of any name that describes the service by a name, a description and the names of its capabilities.
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

/// Members one level down that contain names of capabilities.
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

/// Lists of names for the whole service that a block of any name may contain.
const NAME_LISTS: &[&str] = &["capabilities", "skills"];
/// Words in the names of blocks that describe the callers, or how to call the service.
const OTHER_BLOCKS: &[&str] = &[
    "client",
    "clients",
    "browser",
    "required",
    "requirements",
    "requires",
    "compatibility",
    "model",
    "models",
    "llm",
    "policy",
    "policies",
    "limits",
    "transport",
    "example",
    "examples",
    "security",
    "account",
    "accounts",
    "hardware",
    "device",
    "permission",
    "permissions",
    "scopes",
    "compliance",
    "ui",
    "display",
    "theme",
    "interface",
    "frontend",
    "accessibility",
    "privacy",
    "legal",
    "trust",
    "verification",
    "certification",
    "billing",
    "database",
    "storage",
    "network",
    "infrastructure",
    "stack",
    "runtime",
    "environment",
    "config",
    "configuration",
    "settings",
    "preferences",
    "future",
    "planned",
    "roadmap",
];
/// Maximum number of blocks of one document that are read, and of names of one list that are compared.
const BLOCKS_MAX: usize = 8;
const NAMES_MAX: usize = 200;

/// The blocks of any name one level down that list identifiers as `capabilities` or `skills`, if the root has no member of that name:
/// `"shop": {"capabilities": ["find_room", "book_room"]}`.
pub(crate) fn with_names(root: &Map<String, Value>) -> impl Iterator<Item = (&str, &'static str)> {
    let described = name_of(root);
    let is_known = move |block: &str, key: &str| is_usual(described, block, key);
    root.iter()
        .filter(|(block, value)| value.is_object() && is_of_service(block))
        .flat_map(|(block, value)| NAME_LISTS.iter().map(move |key| (block.as_str(), *key, value)))
        .filter(move |(block, key, value)| {
            !root.contains_key(*key) && !is_known(block, key) && value.get(*key).is_some_and(are_identifiers)
        })
        .map(|(block, key, _)| (block, key))
        .take(BLOCKS_MAX)
}

/// Whether a block has a usual name or describes the service, so that its names belong to the whole service.
pub(crate) fn is_known(root: &Map<String, Value>, block: &str, key: &str) -> bool {
    is_usual(name_of(root), block, key)
}

fn is_usual(described: Option<&str>, block: &str, key: &str) -> bool {
    BLOCKS_OF_NAMES.contains(&(block, key)) || (described == Some(block) && key == "capabilities")
}

fn is_of_service(block: &str) -> bool {
    let mut is_other = false;
    text::each_word(block, |word| {
        is_other |= OTHER_BLOCKS.contains(&word) || outbound::RELATED_WORDS.contains(&word);
    });
    !is_other
        && !lenient::AUTH_KEYS.contains(&block)
        && !outbound::is_about_calls(block)
        && !outbound::is_contact(block)
}

/// Whether a list contains only names without spaces, at least one of which consists of several words (`find_room`). Single words may be
/// the values of a field.
fn are_identifiers(names: &Value) -> bool {
    let words = |name: &str| {
        let mut count = 0;
        text::each_word(name, |_| count += 1);
        count
    };
    let Some(list) = names.as_array().filter(|list| !list.is_empty() && list.len() <= NAMES_MAX) else {
        return false;
    };
    let is_plain =
        |name: &str| !name.is_empty() && !name.contains(char::is_whitespace) && !name.contains('/');
    let is_name =
        |name: &Value| name.as_str().is_some_and(|name| is_plain(name) && !mcp::FEATURES.contains(&name));
    list.iter().all(is_name) && list.iter().filter_map(Value::as_str).any(|name| words(name) > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_identifiers_of_a_block() {
        let found = |document: Value| {
            let root = document.as_object().unwrap();
            with_names(root).map(|(block, key)| [block, ".", key].concat()).collect::<Vec<_>>()
        };
        let names = json!(["find_room", "book_room"]);
        assert_eq!(found(json!({"shop": {"capabilities": names}})), ["shop.capabilities"]);
        assert_eq!(found(json!({"shop": {"skills": names}})), ["shop.skills"]);
        for other in [
            json!({"shop": {"capabilities": names}, "capabilities": ["a"]}),
            json!({"client": {"capabilities": names}}),
            json!({"related_services": {"capabilities": names}}),
            json!({"auth": {"capabilities": names}}),
            json!({"permissions": {"capabilities": names}}),
            json!({"agent": {"name": "a", "description": "b", "capabilities": names}}),
            json!({"server": {"capabilities": ["tools", "prompts"]}}),
            json!({"shop": {"capabilities": ["read", "write"]}}),
            json!({"shop": {"capabilities": ["Finds rooms"]}}),
            json!({"shop": {"capabilities": []}}),
        ] {
            assert!(found(other.clone()).is_empty(), "{other}");
        }
    }
}
