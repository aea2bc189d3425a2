//! JSON Schema 2020-12 for parameters and responses, built from what dialects offer.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::address;

/// Where a parameter travels; published as `x-in`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Query,
    Path,
    Header,
    Body,
}

impl Place {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Path => "path",
            Self::Header => "header",
            Self::Body => "body",
        }
    }

    /// Where a parameter travels when only the method and the address are known.
    pub(crate) fn of(method: Option<&str>, address: Option<&str>, name: &str) -> Self {
        if address.is_some_and(|address| address::variables(address).any(|variable| variable == name)) {
            return Self::Path;
        }
        match method {
            Some("GET" | "HEAD" | "DELETE" | "OPTIONS") => Self::Query,
            _ => Self::Body,
        }
    }
}

/// The schema of an object of parameters, while its properties are added.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// The names in `required`.
    needed: HashSet<String>,
}

impl Parameters {
    /// Adds a property with its place.
    pub(crate) fn add(&mut self, name: &str, mut schema: Map<String, Value>, place: Place, need: Demand) {
        schema.insert("x-in".to_owned(), Value::from(place.as_str()));
        self.properties.insert(name.to_owned(), Value::Object(schema));
        if need == Demand::Required && self.needed.insert(name.to_owned()) {
            self.required.push(Value::from(name));
        }
    }

    /// The object schema, or `None` when there are no parameters.
    pub(crate) fn finish(self) -> Option<Value> {
        if self.properties.is_empty() {
            return None;
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        Some(Value::Object(schema))
    }
}

/// Whether a parameter has to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand {
    Required,
    Optional,
}

impl Demand {
    pub(crate) const fn of(required: Option<bool>) -> Self {
        match required {
            Some(true) => Self::Required,
            _ => Self::Optional,
        }
    }
}

/// Whether a value is a JSON Schema of an object rather than a map of parameters.
pub(crate) fn is_schema(map: &Map<String, Value>) -> bool {
    let typed = map.get("type").and_then(Value::as_str) == Some("object");
    typed || map.get("properties").is_some_and(Value::is_object) || map.contains_key("$ref")
}

/// An object schema, each property marked with its place where the publisher gave none.
pub(crate) fn placed(schema: &Map<String, Value>, place: Place) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                property.entry("x-in").or_insert_with(|| Value::from(place.as_str()));
            }
        }
    }
    Value::Object(schema)
}

/// Parameters of any published shape: a schema, a map of descriptors, a map of texts, or a list of named objects.
pub(crate) fn loose(value: &Value, method: Option<&str>, address: Option<&str>) -> Option<Value> {
    match value {
        Value::Object(map) if is_schema(map) => Some(placed(map, Place::of(method, None, ""))),
        Value::Object(map) => {
            let mut parameters = Parameters::default();
            for (name, value) in map {
                let (schema, need) = descriptor(value);
                parameters.add(name, schema, Place::of(method, address, name), need);
            }
            parameters.finish()
        }
        Value::Array(list) => {
            let mut parameters = Parameters::default();
            for item in list {
                let name = item.as_str().or_else(|| item.get("name")?.as_str());
                let Some(name) = name else { continue };
                let (schema, need) =
                    if item.is_object() { descriptor(item) } else { (Map::new(), Demand::Optional) };
                parameters.add(name, schema, Place::of(method, address, name), need);
            }
            parameters.finish()
        }
        _ => None,
    }
}

/// The types of JSON Schema.
pub(crate) const TYPES: &[&str] = &["string", "number", "integer", "boolean", "array", "object", "null"];

/// Keywords of a descriptor that are JSON Schema already.
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
pub(crate) fn descriptor(value: &Value) -> (Map<String, Value>, Demand) {
    let mut schema = Map::new();
    let Value::Object(map) = value else {
        if let Some(text) = value.as_str() {
            let optional = text.ends_with('?');
            let key = if TYPES.contains(&text.trim_end_matches('?')) { "type" } else { "description" };
            schema.insert(key.to_owned(), Value::from(text.trim_end_matches('?')));
            return (schema, if optional { Demand::Optional } else { Demand::of(None) });
        }
        return (schema, Demand::Optional);
    };
    if let Some(name) = map.get("type").and_then(Value::as_str) {
        insert_type(&mut schema, name);
    }
    for key in KEYWORDS {
        if let Some(value) = map.get(*key) {
            schema.insert((*key).to_owned(), value.clone());
        }
    }
    (schema, Demand::of(map.get("required").and_then(Value::as_bool)))
}

/// Sets a schema's type; a type that JSON Schema does not know becomes a string that keeps the published word.
pub(crate) fn insert_type(schema: &mut Map<String, Value>, name: &str) {
    if TYPES.contains(&name) {
        schema.insert("type".to_owned(), Value::from(name));
    } else {
        schema.insert("type".to_owned(), Value::from("string"));
        schema.insert("x-type".to_owned(), Value::from(name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn loose_parameters_take_any_published_shape() {
        let get = Some("GET");
        assert_eq!(
            loose(&json!(["q", {"name": "n", "type": "integer", "required": true}]), get, None).unwrap(),
            json!({
                "type": "object", "properties": {"q": {"x-in": "query"}, "n": {"type": "integer", "x-in": "query"}}, "required": ["n"]
            })
        );
        let schema =
            loose(&json!({"id": "string", "note": "free text"}), get, Some("https://a.example/{id}"))
                .unwrap();
        assert_eq!(schema["properties"]["id"], json!({"type": "string", "x-in": "path"}));
        assert_eq!(schema["properties"]["note"]["description"], "free text");
    }
}
