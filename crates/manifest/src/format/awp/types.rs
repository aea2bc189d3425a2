//! Converts AWP types to JSON Schema: `enum[a, b]`, `array[x]`, `object[entity]`, and unknown type names.
//!
//! An unknown name becomes a string type with the name in `x-type`; an entity becomes a reference into the `$defs` of the schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::rules;
use crate::budget;
use crate::draft::Draft;
use crate::object::{Object, type_name};
use crate::rule::Rule;
use crate::schema;
use crate::text::capped;

/// Deepest nesting of `array[array[…]]`.
const NESTING_MAX: usize = 8;
/// Maximum number of entities attached to one schema.
const DEFINITIONS_MAX: usize = 32;
/// Maximum number of characters of the name of a type, with the values of an `enum[…]`.
const WORD_CHARS_MAX: usize = 4_096;
/// Memory of the schemas of all entities, of the inputs of one action, and of its outputs: a short name of a type becomes a
/// schema of a kilobyte.
const SCHEMA_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// The entities of a manifest (§8), as schemas.
pub(super) struct Types {
    entities: Map<String, Value>,
}

/// The entities that a schema refers to, its memory, and the flaw of the type that was read last.
#[derive(Default)]
pub(super) struct References {
    known: BTreeSet<String>,
    schema_bytes: usize,
    flaws: Vec<Flaw>,
}

/// A flaw in the name of a type.
enum Flaw {
    /// The entity that is not declared.
    Unknown(String),
    /// A name with brackets that is not written as `array[…]`, `object[…]` or `enum[…]`.
    Malformed(String),
    /// An `enum` without values.
    NoValues,
    /// The type is omitted because the schemas have reached [`SCHEMA_BYTES_MAX`].
    TooLarge,
}

impl References {
    /// Reports the flaw of the type that was read last, which is at `pointer`.
    pub(super) fn report(&mut self, pointer: &str, draft: &mut Draft<'_>) {
        for flaw in self.flaws.drain(..) {
            match flaw {
                Flaw::Unknown(name) => {
                    let text = format!("\"{}\" is not a declared entity", capped(&name, 60));
                    draft.report(&rules::ENTITY_UNKNOWN, pointer.to_owned(), text);
                }
                Flaw::Malformed(word) => {
                    let text = format!("\"{}\" is not a type", capped(&word, 60));
                    draft.report(&rules::TYPE_MALFORMED, pointer.to_owned(), text);
                }
                Flaw::NoValues => {
                    draft.report(&rules::TYPE_MALFORMED, pointer.to_owned(), "`enum` lists no values");
                }
                Flaw::TooLarge => draft.report_rule(&rules::TYPES_CUT, pointer.to_owned()),
            }
        }
    }
}

impl Types {
    pub(super) fn of(root: &Object<'_>, draft: &mut Draft<'_>) -> Self {
        let Some(published) = root.object("entities") else { return Self { entities: Map::new() } };
        let names = published.map.keys().map(|name| (name.clone(), Value::Null)).collect();
        let mut types = Self { entities: names };
        let mut references = References::default();
        for (name, value) in published.map {
            let Some(map) = value.as_object() else {
                draft.report(
                    &rules::ENTITY_MISTYPED,
                    published.at(name),
                    format!("the entity \"{name}\" is {}", type_name(value)),
                );
                continue;
            };
            let entity = Object::new(map, published.at(name));
            draft.check(&entity, &rules::ENTITY);
            let fields = entity.object("fields");
            let properties =
                fields.map(|fields| types.fields(&fields, &rules::FIELD_MISTYPED, &mut references, draft));
            let schema = json!({"type": "object", "properties": properties.unwrap_or_default()});
            types.entities.insert(name.clone(), schema);
        }
        types
    }

    /// The schemas of named fields, each with a type. Reports `mistyped` for those without.
    pub(super) fn fields(
        &self,
        fields: &Object<'_>,
        mistyped: &Rule,
        references: &mut References,
        draft: &mut Draft<'_>,
    ) -> Map<String, Value> {
        let mut properties = Map::new();
        for (name, value) in fields.map {
            let is_type = match value {
                Value::String(word) => !word.trim().is_empty(),
                Value::Object(described) => has_type(described),
                _ => false,
            };
            if !is_type {
                let text = format!("the type of \"{}\" is {}", capped(name, 60), found(value));
                draft.report(mistyped, fields.at(name), text);
            }
            if is_bare_enum(value) {
                references.flaws.push(Flaw::NoValues);
            }
            properties.insert(name.clone(), Value::Object(self.value(value, references)));
            references.report(&fields.at(name), draft);
        }
        properties
    }

    pub(super) fn schemas(&self) -> Map<String, Value> {
        self.entities.clone()
    }

    /// The schema of a field: the name of a type or a description.
    pub(super) fn value(&self, value: &Value, references: &mut References) -> Map<String, Value> {
        if references.schema_bytes > SCHEMA_BYTES_MAX {
            references.flaws.push(Flaw::TooLarge);
            return Map::new();
        }
        let schema = match value {
            Value::String(word) => self.word(word, references, 0),
            Value::Object(map) => self.described(map, references),
            _ => Map::new(),
        };
        references.schema_bytes += budget::bytes_of_members(&schema, SCHEMA_BYTES_MAX);
        schema
    }

    fn described(&self, map: &Map<String, Value>, references: &mut References) -> Map<String, Value> {
        let (mut described, _) = schema::object_descriptor(map);
        let word = map.get("type").and_then(Value::as_str).unwrap_or("string");
        described.remove("x-type");
        let mut schema = self.word(word, references, 0);
        described.remove("type");
        schema.extend(described);
        if let Some(options @ Value::Array(_)) = map.get("options") {
            schema.insert("enum".to_owned(), options.clone());
            schema.remove("x-type");
        }
        schema
    }

    fn word(&self, word: &str, references: &mut References, depth: usize) -> Map<String, Value> {
        let word = word.trim();
        let word = word.strip_suffix('?').unwrap_or(word);
        if word.chars().count() > WORD_CHARS_MAX {
            references.flaws.push(Flaw::Malformed(capped(word, WORD_CHARS_MAX).to_owned()));
            return Map::from_iter([("type".to_owned(), Value::from("string"))]);
        }
        if let Some((outer, inner)) = word.strip_suffix(']').and_then(|word| word.split_once('[')) {
            return self.bracketed(outer.trim(), inner.trim(), references, depth);
        }
        if word.contains(['[', ']']) {
            references.flaws.push(Flaw::Malformed(word.to_owned()));
        }
        let pairs: &[(&str, &str)] = match word {
            "string" | "text" | "enum" => &[("type", "string")],
            "integer" | "int" => &[("type", "integer")],
            "float" | "number" | "decimal" => &[("type", "number")],
            "boolean" | "bool" => &[("type", "boolean")],
            "ISO8601" | "datetime" => &[("type", "string"), ("format", "date-time")],
            "date" => &[("type", "string"), ("format", "date")],
            "email" => &[("type", "string"), ("format", "email")],
            "url" | "uri" => &[("type", "string"), ("format", "uri")],
            "object" => &[("type", "object")],
            "array" => &[("type", "array")],
            _ if self.entities.contains_key(word) => return Self::reference(word, references),
            _ => &[("type", "string"), ("x-type", word)],
        };
        pairs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect()
    }

    fn bracketed(
        &self,
        outer: &str,
        inner: &str,
        references: &mut References,
        depth: usize,
    ) -> Map<String, Value> {
        let mut schema = Map::new();
        let is_whole = match outer {
            "enum" => inner.split(',').all(|value| !value.trim().is_empty()),
            "array" | "object" => !inner.is_empty(),
            _ => false,
        };
        if !is_whole {
            references.flaws.push(Flaw::Malformed(format!("{outer}[{inner}]")));
        }
        match outer {
            "enum" => {
                let values: Vec<Value> = inner
                    .split(',')
                    .map(str::trim)
                    .filter(|value| !value.is_empty())
                    .map(Value::from)
                    .collect();
                schema.insert("type".to_owned(), Value::from("string"));
                if !values.is_empty() {
                    schema.insert("enum".to_owned(), Value::Array(values));
                }
            }
            "array" => {
                schema.insert("type".to_owned(), Value::from("array"));
                if depth < NESTING_MAX {
                    let items = self.word(inner, references, depth + 1);
                    if items.contains_key("x-type") && !inner.is_empty() && !inner.contains(['[', ']']) {
                        references.flaws.push(Flaw::Unknown(inner.to_owned()));
                    }
                    schema.insert("items".to_owned(), Value::Object(items));
                }
            }
            "object" if self.entities.contains_key(inner) => return Self::reference(inner, references),
            "object" => {
                if !inner.is_empty() {
                    references.flaws.push(Flaw::Unknown(inner.to_owned()));
                }
                schema.insert("type".to_owned(), Value::from("object"));
                schema.insert("x-type".to_owned(), Value::from(inner));
            }
            _ => schema::insert_type(&mut schema, &format!("{outer}[{inner}]")),
        }
        schema
    }

    fn reference(name: &str, references: &mut References) -> Map<String, Value> {
        references.known.insert(name.to_owned());
        let target = name.replace('~', "~0").replace('/', "~1");
        Map::from_iter([("$ref".to_owned(), Value::from(format!("#/$defs/{target}")))])
    }

    /// Attaches the entities that a schema refers to, and those they refer to.
    pub(super) fn attach(&self, schema: &mut Value, references: &References) {
        let mut open: Vec<&str> = references.known.iter().map(String::as_str).collect();
        let mut definitions = Map::new();
        while let Some(name) = open.pop() {
            let Some((name, entity)) = self.entities.get_key_value(name) else { continue };
            if definitions.len() >= DEFINITIONS_MAX || definitions.contains_key(name) {
                continue;
            }
            definitions.insert(name.clone(), entity.clone());
            collect_references(entity, &mut open);
        }
        if let (Value::Object(schema), false) = (schema, definitions.is_empty()) {
            schema.insert("$defs".to_owned(), Value::Object(definitions));
        }
    }
}

/// Names of entities that a finished entity refers to.
fn collect_references<'v>(value: &'v Value, open: &mut Vec<&'v str>) {
    match value {
        Value::Object(map) => {
            if let Some(name) =
                map.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix("#/$defs/"))
            {
                open.push(name);
            }
            map.values().for_each(|value| collect_references(value, open));
        }
        Value::Array(list) => list.iter().for_each(|value| collect_references(value, open)),
        _ => {}
    }
}

/// Whether the description of a field names its type, or states it with other keywords of JSON Schema.
fn has_type(described: &Map<String, Value>) -> bool {
    const STATING: &[&str] = &["$ref", "enum", "const", "properties", "items", "anyOf", "oneOf", "allOf"];
    match described.get("type") {
        Some(kind) => kind.is_string(),
        None => STATING.iter().any(|keyword| described.contains_key(*keyword)),
    }
}

/// Whether a field is an `enum` that lists no values.
fn is_bare_enum(value: &Value) -> bool {
    match value {
        Value::String(word) => word.trim() == "enum",
        Value::Object(map) => {
            let lists =
                |key: &&str| map.get(*key).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
            map.get("type").and_then(Value::as_str) == Some("enum")
                && !["options", "enum", "values"].iter().any(lists)
        }
        _ => false,
    }
}

/// Describes a value for the text of a finding.
fn found(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "empty",
        Value::Object(described) if !described.contains_key("type") => "missing",
        Value::Object(_) => "not a string",
        other => type_name(other),
    }
}
