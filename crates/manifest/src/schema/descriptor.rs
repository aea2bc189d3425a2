//! Schemas of single parameters, from descriptors of several dialects.

use serde_json::{Map, Value};

use super::{Presence, TYPES};
use crate::object::Members;

/// Keywords of a descriptor that are already JSON Schema.
const KEYWORDS: &[&str] = &[
    "description",
    "default",
    "enum",
    "items",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "properties",
    "examples",
    "example",
    "minItems",
    "maxItems",
    "oneOf",
    "anyOf",
    "allOf",
    "const",
    "title",
    "additionalProperties",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "uniqueItems",
];

/// A schema from a parameter descriptor, or from a text that names its type or describes it.
pub(crate) fn descriptor(value: &Value) -> (Map<String, Value>, Presence) {
    let mut schema = Map::new();
    match value {
        Value::Object(map) => return object_descriptor(map),
        Value::String(text) => {
            let text = text.trim_end_matches('?');
            if TYPES.contains(&text.strip_suffix("[]").unwrap_or(text)) {
                insert_type(&mut schema, text);
            } else {
                schema.insert("description".to_owned(), Value::from(text));
            }
        }
        _ => {}
    }
    (schema, Presence::Optional)
}

/// A schema from a descriptor that is an object.
pub(crate) fn object_descriptor(map: &Map<String, Value>) -> (Map<String, Value>, Presence) {
    let mut schema = Map::new();
    let members = Members::of(map);
    let name = members.get("type");
    // OpenAPI parameters have their type in `schema`.
    if let Some(inner) = members.get("schema").and_then(Value::as_object).filter(|_| name.is_none()) {
        schema = object_descriptor(inner).0;
    }
    if let Some(name) = name.and_then(Value::as_str) {
        insert_type(&mut schema, name);
    }
    for key in KEYWORDS {
        if let Some(value) = members.get(key) {
            schema.insert((*key).to_owned(), value.clone());
        }
    }
    if schema.is_empty()
        && let Some(nested) = nested(map)
    {
        schema = nested;
    }
    let required = members.get("required").and_then(Value::as_bool);
    let in_words = || {
        let described = members.get("description").and_then(Value::as_str)?.trim_end_matches(['.', ' ']);
        let end = described.len().checked_sub(REQUIRED.len())?;
        described.get(end..)?.eq_ignore_ascii_case(REQUIRED).then_some(true)
    };
    (schema, Presence::of(required.or_else(in_words)))
}

/// The schema of an object whose members are named by their types: `{"key": "string (stable)", "age": "number"}`.
fn nested(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    if map.is_empty() || !map.values().all(is_of_types) {
        return None;
    }
    let properties = map
        .iter()
        .map(|(name, value)| (name.trim_end_matches('?').to_owned(), Value::Object(descriptor(value).0)));
    let properties = Value::Object(properties.collect());
    Some(Map::from_iter([("type".to_owned(), Value::from("object")), ("properties".to_owned(), properties)]))
}

/// Whether a value is a text that begins with a type of JSON Schema, or an object of such values. The nesting of a document is limited.
pub(crate) fn is_of_types(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let word = text.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
            TYPES.contains(&word)
        }
        Value::Object(map) => !map.is_empty() && map.values().all(is_of_types),
        _ => false,
    }
}

/// The end of the description of a parameter that must be sent.
const REQUIRED: &str = "(required)";

/// Sets the type of a schema. A type unknown to JSON Schema becomes `string`, with the published word in `x-type`.
pub(crate) fn insert_type(schema: &mut Map<String, Value>, name: &str) {
    // `string[]` is a list of texts. A list of lists keeps its published word.
    if let Some(inner) = name.strip_suffix("[]").filter(|inner| !inner.ends_with(']')) {
        let mut items = Map::new();
        insert_type(&mut items, inner);
        schema.insert("type".to_owned(), Value::from("array"));
        schema.insert("items".to_owned(), Value::Object(items));
    } else if TYPES.contains(&name) {
        schema.insert("type".to_owned(), Value::from(name));
    } else {
        schema.insert("type".to_owned(), Value::from("string"));
        schema.insert("x-type".to_owned(), Value::from(name));
    }
}
