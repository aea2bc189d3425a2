//! The keywords of JSON Schema, and the conversion of those of OpenAPI 2.0 and 3.0 to 2020-12.

use serde_json::{Map, Value, json};

/// The content of a keyword's value.
pub(super) enum Shape {
    /// One schema, or an array of schemas in older drafts.
    One,
    List,
    Map,
    Plain,
    /// A keyword that is removed, because it is irrelevant to callers or would change the meaning of references in a self-contained schema.
    Dropped,
}

pub(super) fn shape_of(keyword: &str) -> Shape {
    match keyword {
        "items"
        | "additionalProperties"
        | "not"
        | "if"
        | "then"
        | "else"
        | "contains"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedProperties"
        | "unevaluatedItems"
        | "contentSchema" => Shape::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::List,
        "properties" | "patternProperties" | "dependentSchemas" => Shape::Map,
        "$id" | "id" | "$schema" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$defs" | "definitions"
        | "$comment" | "xml" | "externalDocs" | "discriminator" => Shape::Dropped,
        _ => Shape::Plain,
    }
}

/// Converts the keywords of OpenAPI 2.0 and 3.0 to 2020-12, for every declared version: the older keywords are common in
/// 3.1 documents.
pub(super) fn modernise(schema: &mut Map<String, Value>) {
    if schema.get("type").and_then(Value::as_str) == Some("file") {
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("contentMediaType".to_owned(), json!("application/octet-stream"));
    }
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match schema.get(exclusive) {
            Some(Value::Bool(true)) => {
                if let Some(limit) = schema.remove(inclusive) {
                    schema.insert(exclusive.to_owned(), limit);
                } else {
                    schema.remove(exclusive);
                }
            }
            Some(Value::Bool(false)) => {
                schema.remove(exclusive);
            }
            _ => {}
        }
    }
    if let Some(example) = schema.remove("example") {
        schema.entry("examples").or_insert_with(|| json!([example]));
    }
    let nullable =
        ["nullable", "x-nullable"].iter().filter_map(|name| schema.remove(*name)).any(|v| v == true);
    if nullable {
        allow_null(schema);
    }
}

fn allow_null(schema: &mut Map<String, Value>) {
    match schema.get_mut("type") {
        Some(Value::String(name)) => {
            let both = json!([name, "null"]);
            schema.insert("type".to_owned(), both);
        }
        Some(Value::Array(names)) if !names.contains(&json!("null")) => names.push(json!("null")),
        Some(_) => {}
        // In 3.0 `nullable` needs `type`; publishers also write it next to a composition.
        None => {
            let composed = schema.keys().any(|name| matches!(name.as_str(), "allOf" | "anyOf" | "oneOf"));
            if composed {
                let inner = std::mem::take(schema);
                schema.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
            }
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}
