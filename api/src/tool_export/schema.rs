//! Converts published schemas to schemas that every runtime accepts.
//!
//! Publishers write schemas that resemble JSON Schema. This module keeps each keyword with a valid value by JSON Schema 2020-12, converts
//! an invalid value if its meaning is unambiguous, and otherwise drops the keyword. The top level is always an object without alternatives,
//! because OpenAI and Anthropic refuse other schemas.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::name::slug;
use crate::text::one_line;

/// Maximum nesting of schemas; deeper ones are replaced by a schema that accepts any value.
const DEPTH_MAX: usize = 10;
/// Maximum number of schemas in one definition; a model reads all of them.
const SCHEMAS_MAX: usize = 2_000;
/// Maximum number of values of one `enum`, or members of one list of alternatives.
const VALUES_MAX: usize = 200;
/// Maximum length of a property's text.
const TEXT_CHARS_MAX: usize = 500;
/// Maximum length of a property name that Anthropic accepts.
const PROPERTY_CHARS_MAX: usize = 64;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
const NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
const COUNTS: [&str; 6] =
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
const FLAGS: [&str; 4] = ["uniqueItems", "readOnly", "writeOnly", "deprecated"];
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// The schema of the arguments: always an object.
pub(super) fn input(published: Option<&Value>) -> Value {
    let mut budget = SCHEMAS_MAX;
    let mut schema = match published {
        Some(Value::Object(map)) => cleaned(map, 0, &mut budget),
        _ => Map::new(),
    };
    for keyword in ALTERNATIVES.into_iter().chain(["enum", "const", "not", "type", "default"]) {
        schema.remove(keyword);
    }
    let mut object = Map::from_iter([("type".to_owned(), Value::from("object"))]);
    object.append(&mut schema);
    object.entry("properties").or_insert_with(|| json!({}));
    Value::Object(object)
}

/// The schema of the result, if it is an object; MCP supports no other.
pub(super) fn output(published: Option<&Value>) -> Option<Value> {
    let Some(Value::Object(map)) = published else { return None };
    let is_object = map.get("type").and_then(Value::as_str) == Some("object");
    let mut budget = SCHEMAS_MAX;
    is_object.then(|| Value::Object(cleaned(map, 0, &mut budget)))
}

/// A nested schema.
pub(super) fn inner(published: &Value) -> Value {
    let mut budget = SCHEMAS_MAX;
    schema(published, 1, &mut budget)
}

fn schema(published: &Value, depth: usize, budget: &mut usize) -> Value {
    match published {
        Value::Bool(any) => Value::Bool(*any),
        Value::Object(map) if depth <= DEPTH_MAX && *budget > 0 => {
            *budget -= 1;
            Value::Object(cleaned(map, depth, budget))
        }
        _ => json!({}),
    }
}

fn cleaned(map: &Map<String, Value>, depth: usize, budget: &mut usize) -> Map<String, Value> {
    let mut out = Map::new();
    if let Some(kind) = types(map) {
        out.insert("type".to_owned(), kind);
    }
    texts(map, &mut out);
    values(map, &mut out);
    bounds(map, &mut out);
    inside(map, &mut out, depth, budget);
    out
}

/// `type`, including the `nullable` of OpenAPI 3.0.
fn types(map: &Map<String, Value>) -> Option<Value> {
    let named: Vec<&str> = match map.get("type")? {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => return None,
    };
    let mut known: Vec<&str> = Vec::new();
    let nullable = map.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    for name in named.into_iter().chain(nullable.then_some("null")) {
        if TYPES.contains(&name) && !known.contains(&name) {
            known.push(name);
        }
    }
    match known.as_slice() {
        [] => None,
        [one] => Some(Value::from(*one)),
        several => Some(json!(several)),
    }
}

/// Copies the texts with limited length. A pattern is moved into the description, because runtimes differ in their regular expressions.
fn texts(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    let text = |key: &str| {
        let text = map.get(key).and_then(Value::as_str).map(|text| one_line(text, TEXT_CHARS_MAX));
        text.filter(|text| !text.is_empty())
    };
    if let Some(title) = text("title") {
        out.insert("title".to_owned(), Value::from(title));
    }
    let pattern = text("pattern").map(|pattern| format!("Matches {pattern}"));
    let parts: Vec<String> = text("description").into_iter().chain(pattern).collect();
    if !parts.is_empty() {
        out.insert("description".to_owned(), Value::from(parts.join(" ")));
    }
    if let Some(format) = text("format") {
        out.insert("format".to_owned(), Value::from(format));
    }
}

fn values(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    if let Some(Value::Array(values)) = map.get("enum")
        && !values.is_empty()
    {
        let mut distinct: Vec<Value> = Vec::new();
        for value in values.iter().take(VALUES_MAX) {
            if !distinct.contains(value) {
                distinct.push(value.clone());
            }
        }
        out.insert("enum".to_owned(), Value::Array(distinct));
    }
    for key in ["const", "default"] {
        if let Some(value) = map.get(key) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    match (map.get("examples"), map.get("example")) {
        (Some(Value::Array(examples)), _) => {
            out.insert("examples".to_owned(), examples.iter().take(VALUES_MAX).cloned().collect());
        }
        (_, Some(example)) => {
            out.insert("examples".to_owned(), json!([example]));
        }
        _ => {}
    }
}

fn bounds(map: &Map<String, Value>, out: &mut Map<String, Value>) {
    for key in NUMBERS {
        match map.get(key) {
            Some(value) if value.is_number() => {
                out.insert(key.to_owned(), value.clone());
            }
            // Draft 4 and OpenAPI 3.0 have a boolean flag next to the number.
            Some(Value::Bool(true)) => {
                let plain = if key == "exclusiveMinimum" { "minimum" } else { "maximum" };
                if let Some(value) = map.get(plain).filter(|value| value.is_number()) {
                    out.insert(key.to_owned(), value.clone());
                }
            }
            _ => {}
        }
    }
    for key in COUNTS {
        if let Some(value) = map.get(key).filter(|value| value.is_u64()) {
            out.insert(key.to_owned(), value.clone());
        }
    }
    for key in FLAGS {
        if let Some(Value::Bool(flag)) = map.get(key) {
            out.insert(key.to_owned(), Value::Bool(*flag));
        }
    }
    if let Some(value) = map.get("multipleOf").filter(|value| value.as_f64().is_some_and(|step| step > 0.0)) {
        out.insert("multipleOf".to_owned(), value.clone());
    }
}

/// Schemas inside this one.
fn inside(map: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize, budget: &mut usize) {
    if let Some(Value::Object(properties)) = map.get("properties") {
        let required = map.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let (properties, required) = object(properties, required, depth, budget);
        out.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            out.insert("required".to_owned(), json!(required));
        }
    }
    for key in ALTERNATIVES {
        if let Some(Value::Array(members)) = map.get(key)
            && !members.is_empty()
        {
            let members = members.iter().take(VALUES_MAX).map(|member| schema(member, depth + 1, budget));
            out.insert(key.to_owned(), members.collect());
        }
    }
    match map.get("items") {
        Some(Value::Array(positions)) if !positions.is_empty() => {
            let positions = positions.iter().take(VALUES_MAX).map(|item| schema(item, depth + 1, budget));
            out.insert("prefixItems".to_owned(), positions.collect());
        }
        Some(item @ (Value::Object(_) | Value::Bool(_))) => {
            out.insert("items".to_owned(), schema(item, depth + 1, budget));
        }
        // Gemini and OpenAI refuse arrays without `items`.
        _ if out.get("type").and_then(Value::as_str) == Some("array") => {
            out.insert("items".to_owned(), json!({}));
        }
        _ => {}
    }
    for key in ["additionalProperties", "not"] {
        if let Some(value @ (Value::Object(_) | Value::Bool(_))) = map.get(key) {
            out.insert(key.to_owned(), schema(value, depth + 1, budget));
        }
    }
}

/// Properties with names that every runtime accepts. The description of a renamed property states the name that is sent.
fn object(
    published: &Map<String, Value>,
    required: &[Value],
    depth: usize,
    budget: &mut usize,
) -> (Map<String, Value>, Vec<String>) {
    let mut properties = Map::new();
    let mut needed = Vec::new();
    let required: BTreeSet<&str> = required.iter().filter_map(Value::as_str).collect();
    let mut taken: BTreeSet<String> =
        published.keys().filter(|name| is_plain(name)).map(ToOwned::to_owned).collect();
    let mut numbers = BTreeMap::new();
    for (name, value) in published {
        let mut property = schema(value, depth + 1, budget);
        let shown = if is_plain(name) { name.clone() } else { renamed(name, &mut taken, &mut numbers) };
        if shown != *name
            && let Value::Object(map) = &mut property
        {
            let description = map.get("description").and_then(Value::as_str).unwrap_or_default();
            let extended = format!("{description} Sent as \"{}\".", one_line(name, TEXT_CHARS_MAX));
            map.insert("description".to_owned(), Value::from(extended.trim_start()));
        }
        if required.contains(name.as_str()) {
            needed.push(shown.clone());
        }
        properties.insert(shown, property);
    }
    (properties, needed)
}

fn is_plain(name: &str) -> bool {
    let fits = (1..=PROPERTY_CHARS_MAX).contains(&name.len());
    fits && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// `numbers` has the last suffix of each name, so that the search for a free suffix does not restart for each duplicate.
fn renamed(name: &str, taken: &mut BTreeSet<String>, numbers: &mut BTreeMap<String, usize>) -> String {
    let plain = slug(name, PROPERTY_CHARS_MAX - 4);
    let plain = if plain.is_empty() { "parameter".to_owned() } else { plain };
    let mut candidate = plain.clone();
    let number = numbers.entry(plain.clone()).or_insert(1);
    while !taken.insert(candidate.clone()) {
        *number += 1;
        candidate = format!("{plain}_{number}");
    }
    candidate
}
