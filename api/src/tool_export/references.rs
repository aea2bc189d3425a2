//! Schemas without references: each `$ref` within the same schema is replaced by its target.
//!
//! Runtimes differ in which references they follow, so a definition contains none. A recursive schema, and one whose copies would exceed
//! the limits, is replaced by an open schema with a description. [`super::schema`] does the same for references to other documents. Follows
//! JSON Schema 2020-12 §8.2.3 and RFC 6901.

use manifest::addresses_reader;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use crate::text::one_line;
use crate::value_size::bytes_left_after;

/// Maximum nesting of references; published schemas have up to 6.
const REFERENCES_DEPTH_MAX: usize = 10;
/// Maximum total size of the copies that replace the references of one schema, in bytes, because a model reads all of it.
const COPIED_BYTES_MAX: usize = 128 * 1_024;
/// Maximum length of a schema name in a description.
const NAME_CHARS_MAX: usize = 80;

/// Keywords whose value is data, in which `$ref` is an ordinary name.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Keywords whose value maps names of the publisher to schemas.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
/// Keywords that only contain descriptions.
const TEXTS: [&str; 7] = ["title", "description", "$comment", "example", "examples", "pattern", "format"];
/// Keywords whose content is only reachable by references.
const DEFINITIONS: [&str; 3] = ["$defs", "definitions", "components"];
/// Keywords that describe the location of a reference, not its target.
const PRECEDES_TARGET: [&str; 6] = ["title", "description", "default", "deprecated", "readOnly", "x-in"];

/// The schema with each local reference replaced by its definition.
pub(crate) fn inlined(published: &Value) -> Value {
    let mut inliner = Inliner { root: published, open: vec!["#"], copies: Copies::new() };
    inliner.schema(published)
}

/// A schema without descriptions, for a capability with a text that addresses the reader. Names and values that address the reader are also
/// left out. A call does not depend on the other removed texts.
pub(super) fn without_texts(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let kept =
                map.iter().filter(|(key, value)| !TEXTS.contains(&key.as_str()) && !is_addressing(value));
            let cleaned = kept.map(|(key, value)| {
                let value = match value {
                    Value::Object(members) if NAMED.contains(&key.as_str()) => {
                        let named = members.iter().filter(|(name, _)| !addresses_reader(name));
                        named.map(|(name, member)| (name.clone(), without_texts(member))).collect()
                    }
                    value => without_texts(value),
                };
                (key.clone(), value)
            });
            Value::Object(cleaned.filter(|(key, _)| !addresses_reader(key)).collect())
        }
        Value::Array(list) => {
            list.iter().filter(|member| !is_addressing(member)).map(without_texts).collect()
        }
        other => other.clone(),
    }
}

fn is_addressing(value: &Value) -> bool {
    value.as_str().is_some_and(addresses_reader)
}

/// The byte budget for the copies in one definition.
pub(super) struct Copies {
    bytes_left: usize,
}

impl Copies {
    pub(super) const fn new() -> Self {
        Self { bytes_left: COPIED_BYTES_MAX }
    }

    /// Takes the size of a copy from the budget. After a copy that was too large, nothing more is copied, so that measuring stays cheap.
    pub(super) fn charge(&mut self, target: &Value) -> bool {
        let left = bytes_left_after(target, self.bytes_left);
        self.bytes_left = left.unwrap_or_default();
        left.is_some()
    }
}

struct Inliner<'a> {
    root: &'a Value,
    /// References that are being replaced, outermost first.
    open: Vec<&'a str>,
    copies: Copies,
}

impl<'a> Inliner<'a> {
    fn schema(&mut self, published: &'a Value) -> Value {
        match published {
            Value::Object(map) => Value::Object(self.object(map)),
            Value::Array(list) => list.iter().map(|member| self.schema(member)).collect(),
            other => other.clone(),
        }
    }

    fn object(&mut self, map: &'a Map<String, Value>) -> Map<String, Value> {
        let reference = map.get("$ref").and_then(Value::as_str);
        let named = reference.and_then(|reference| self.named(reference));
        let mut out = Map::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("$ref", _) if named.is_some() => continue,
                (key, _) if DEFINITIONS.contains(&key) => continue,
                (key, _) if DATA.contains(&key) => value.clone(),
                (key, Value::Object(members)) if NAMED.contains(&key) => {
                    members.iter().map(|(name, member)| (name.clone(), self.schema(member))).collect()
                }
                _ => self.schema(value),
            };
            out.insert(key.clone(), value);
        }
        let (Some(target), Some(reference)) = (named, reference) else { return out };
        with_siblings(self.target(reference, target), out)
    }

    /// The target of a reference into this schema.
    fn named(&self, reference: &str) -> Option<&'a Value> {
        let fragment = percent_decode_str(reference.strip_prefix('#')?).decode_utf8().ok()?;
        self.root.pointer(&fragment).filter(|target| target.is_object() || target.is_boolean())
    }

    fn target(&mut self, reference: &'a str, target: &'a Value) -> Map<String, Value> {
        if self.open.contains(&reference) {
            return unexpanded(reference, "contains itself and is not repeated here");
        }
        if self.open.len() > REFERENCES_DEPTH_MAX || !self.copies.charge(target) {
            return unexpanded(reference, "is too large to be written out here");
        }
        self.open.push(reference);
        let schema = self.schema(target);
        self.open.pop();
        match schema {
            Value::Object(map) => map,
            Value::Bool(false) => Map::from_iter([("not".to_owned(), json!({}))]),
            _ => Map::new(),
        }
    }
}

/// A schema that accepts everything, with a description of the missing part.
fn unexpanded(reference: &str, why: &str) -> Map<String, Value> {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    let name = percent_decode_str(name).decode_utf8_lossy().replace("~1", "/").replace("~0", "~");
    let name = if name == "#" { "The whole schema".to_owned() } else { one_line(&name, NAME_CHARS_MAX) };
    Map::from_iter([("description".to_owned(), Value::from(format!("{name}, which {why}.")))])
}

/// A named schema with the keywords next to the reference to it, which take precedence over keywords of the target. An open schema keeps
/// its description.
fn with_siblings(mut named: Map<String, Value>, siblings: Map<String, Value>) -> Map<String, Value> {
    let is_open = named.len() == 1 && named.contains_key("description");
    for (key, value) in siblings {
        match (key.as_str(), named.get("description").and_then(Value::as_str), value.as_str()) {
            ("description", Some(open), Some(description)) if is_open => {
                let combined = format!("{description} ({open})");
                named.insert(key, Value::from(combined));
            }
            (keyword, ..) if PRECEDES_TARGET.contains(&keyword) => {
                named.insert(key, value);
            }
            _ => {
                named.entry(key).or_insert(value);
            }
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_inlined() {
        let schema = inlined(&json!({
            "type": "object",
            "properties": {
                "price": {"$ref": "#/$defs/Money", "description": "What it costs.", "x-in": "query"},
                "old": {"$ref": "#/definitions/a~1b%20c"},
                "api": {"type": "array", "items": {"$ref": "#/components/schemas/Money"}},
                "$defs": {"type": "string", "default": {"$ref": "#/$defs/Money"}},
                "never": {"$ref": "#/$defs/Never"},
                "elsewhere": {"$ref": "https://b.example/x"}, "gone": {"$ref": "#/$defs/Gone"},
            },
            "$defs": {"Money": {"type": "object", "description": "An amount.", "properties": {"unit": {"$ref": "#/$defs/Unit"}}},
                      "Unit": {"enum": ["EUR"]}, "Never": false},
            "definitions": {"a/b c": {"type": "integer"}},
            "components": {"schemas": {"Money": {"type": "number"}}},
        }));
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "price": {"type": "object", "description": "What it costs.", "x-in": "query",
                              "properties": {"unit": {"enum": ["EUR"]}}},
                    "old": {"type": "integer"},
                    "api": {"type": "array", "items": {"type": "number"}},
                    "$defs": {"type": "string", "default": {"$ref": "#/$defs/Money"}},
                    "never": {"not": {}},
                    "elsewhere": {"$ref": "https://b.example/x"}, "gone": {"$ref": "#/$defs/Gone"},
                },
            })
        );
    }

    #[test]
    fn recursive_schemas_are_replaced_by_their_names() {
        let node = json!({"type": "object", "properties": {
            "next": {"$ref": "#/$defs/Node", "description": "The one after."}, "whole": {"$ref": "#"}}});
        let schema = inlined(&json!({"$ref": "#/$defs/Node", "$defs": {"Node": node}}));
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {
                "next": {"description": "The one after. (Node, which contains itself and is not repeated here.)"},
                "whole": {"description": "The whole schema, which contains itself and is not repeated here."}}})
        );
    }

    #[test]
    fn exponential_references_stop_at_the_caps() {
        let mut definitions = Map::new();
        for level in 0..40 {
            let next = format!("#/$defs/L{}", level + 1);
            let inner =
                json!({"properties": {"a": {"$ref": next}, "b": {"$ref": next}, "c": {"$ref": next}}});
            definitions.insert(format!("L{level}"), inner);
        }
        let wide: Map<String, Value> =
            (0..5_000).map(|number| (format!("p{number}"), json!({"$ref": "#/$defs/Book"}))).collect();
        let chain = json!({"$ref": "#/$defs/L0", "$defs": definitions});
        let text = inlined(&chain).to_string();
        assert!(
            text.len() < 2 * COPIED_BYTES_MAX && text.contains("L10, which is too large"),
            "{}",
            text.len()
        );
        let books = inlined(
            &json!({"properties": wide, "$defs": {"Book": {"default": "x".repeat(COPIED_BYTES_MAX)}}}),
        );
        assert_eq!(
            books["properties"]["p0"]["description"],
            "Book, which is too large to be written out here."
        );
    }
}
