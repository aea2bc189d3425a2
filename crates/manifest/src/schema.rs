//! JSON Schema 2020-12 for parameters and responses, built from what dialects offer.

use serde_json::{Map, Value, json};

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
}

impl Parameters {
    /// Adds a property with its place.
    pub(crate) fn add(&mut self, name: &str, mut schema: Map<String, Value>, place: Place, need: Demand) {
        schema.insert("x-in".to_owned(), Value::from(place.as_str()));
        self.properties.insert(name.to_owned(), Value::Object(schema));
        if need == Demand::Required && !self.required.iter().any(|known| known == name) {
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

/// Nodes that `$ref` expansion may add to one document: far above need, far below harm.
const EXPANSION_NODES_MAX: usize = 200_000;
/// References followed inside references.
const EXPANSION_DEPTH_MAX: usize = 12;

/// Replaces local references (`#/…`) by what they point to, within a budget for the whole document.
///
/// A reference that leads nowhere, outside, or in a circle stays as it is.
pub(crate) struct Resolver<'v> {
    root: &'v Map<String, Value>,
    nodes_left: usize,
    /// References that lead nowhere, in order of appearance.
    pub(crate) dangling: Vec<String>,
}

impl<'v> Resolver<'v> {
    pub(crate) const fn new(root: &'v Map<String, Value>) -> Self {
        Self { root, nodes_left: EXPANSION_NODES_MAX, dangling: Vec::new() }
    }

    /// What a local reference points to.
    pub(crate) fn target(&self, reference: &str) -> Option<&'v Value> {
        let path = reference.strip_prefix("#/")?;
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let member = self.root.get(&first.replace("~1", "/").replace("~0", "~"))?;
        rest.map_or(Some(member), |rest| member.pointer(&format!("/{rest}")))
    }

    /// The value with its references expanded.
    pub(crate) fn expand(&mut self, value: &Value) -> Value {
        self.walk(value, &mut Vec::new())
    }

    fn walk(&mut self, value: &Value, open: &mut Vec<String>) -> Value {
        if self.nodes_left == 0 {
            return json!({});
        }
        self.nodes_left -= 1;
        match value {
            Value::Array(list) => Value::Array(list.iter().map(|item| self.walk(item, open)).collect()),
            Value::Object(map) => match map.get("$ref").and_then(Value::as_str) {
                Some(reference) => self.follow(reference, map, open),
                None => Value::Object(map.iter().map(|(k, v)| (k.clone(), self.walk(v, open))).collect()),
            },
            other => other.clone(),
        }
    }

    fn follow(&mut self, reference: &str, map: &Map<String, Value>, open: &mut Vec<String>) -> Value {
        let circular = open.iter().any(|known| known == reference) || open.len() >= EXPANSION_DEPTH_MAX;
        let Some(target) = self.target(reference).filter(|_| !circular) else {
            if !circular
                && reference.starts_with('#')
                && !self.dangling.iter().any(|known| known == reference)
            {
                self.dangling.push(reference.to_owned());
            }
            return Value::Object(map.clone());
        };
        open.push(reference.to_owned());
        let mut expanded = self.walk(target, open);
        open.pop();
        // JSON Schema 2020-12 lets keywords stand beside a reference: a description there is the closer one.
        if let Value::Object(expanded) = &mut expanded {
            for (key, value) in map.iter().filter(|(key, _)| *key != "$ref") {
                expanded.insert(key.clone(), value.clone());
            }
        }
        expanded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_expand_within_their_document() {
        let root = json!({
            "schemas": {"A": {"properties": {"b": {"$ref": "#/schemas/B"}, "self": {"$ref": "#/schemas/A"}}},
                        "B": {"type": "string"}}
        });
        let mut resolver = Resolver::new(root.as_object().unwrap());
        let expanded = resolver.expand(&json!({"$ref": "#/schemas/A", "description": "near"}));
        assert_eq!(expanded["properties"]["b"]["type"], "string");
        assert_eq!(expanded["properties"]["self"]["$ref"], "#/schemas/A");
        assert_eq!(expanded["description"], "near");
        assert_eq!(resolver.expand(&json!({"$ref": "#/none"})), json!({"$ref": "#/none"}));
        assert_eq!(resolver.dangling, ["#/none"]);
    }

    #[test]
    fn expansion_ends_however_references_multiply() {
        let mut schemas = Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/s/{}", level + 1)});
            schemas.insert(level.to_string(), json!({"properties": {"a": next, "b": next, "c": next}}));
        }
        let root = json!({"s": schemas});
        let mut resolver = Resolver::new(root.as_object().unwrap());
        for _ in 0..5_000 {
            resolver.expand(&json!({"$ref": "#/s/0"}));
        }
        assert_eq!(resolver.nodes_left, 0);
    }

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
