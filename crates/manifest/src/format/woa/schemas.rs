//! Checks the JSON Schemas of agents and operations (§4.2) against the meta-schema of 2020-12, and against rules that it cannot express.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules;
use crate::draft::Draft;
use crate::json::{push_index, push_name};
use crate::meta_schema::{self, SchemaFlaw};
use crate::object::{Object, type_name};
use crate::pattern;
use crate::reference::percent_decoded;
use crate::schema::is_of_type;
use crate::text::capped;

/// The dialect of WoA's schemas, and how it is declared.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Maximum number of values of `enum` that a default is compared with.
const ENUM_COMPARED_MAX: usize = 1_000;
/// Keywords for the lower and the upper limit of the same property.
const LIMITS: [(&str, &str); 5] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
];
/// Keywords whose value is a schema, a list of schemas, or a map of schemas.
const ONE: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAP: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
/// Keywords that may define properties, so that `properties` need not contain every required name.
const OTHER_SOURCES: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
    "$dynamicRef",
    "if",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
];

/// Reports the flaws of a schema.
pub(super) fn check(schema: &Object<'_>, value: &Value, draft: &mut Draft<'_>) {
    if let Some(SchemaFlaw { pointer, text }) = meta_schema::flaw(value) {
        let text = format!("the schema is not JSON Schema 2020-12: {text}");
        draft.report(&rules::SCHEMA_INVALID, format!("{}{pointer}", schema.pointer), text);
    } else {
        check_root(schema, draft);
    }
    let declared = schema.text("$schema").map(|declared| declared.trim_end_matches('#'));
    if let Some(declared) = declared.filter(|declared| *declared != DIALECT) {
        let text = format!("the schema declares the dialect \"{}\"", capped(declared, 100));
        draft.report(&rules::SCHEMA_DIALECT, schema.at("$schema"), text);
    }
    let mut anchors = HashSet::new();
    collect_anchors(value, &mut anchors);
    let root = Root { value, anchors };
    let mut pointer = schema.pointer.clone();
    root.check(schema.map, &mut pointer, draft);
}

/// Checks that the root is an object with named properties: clients need not support anything else.
fn check_root(schema: &Object<'_>, draft: &mut Draft<'_>) {
    let kind = schema.value("type");
    if kind.is_none() {
        let text = "the root of the schema has no `type`, where every client understands \"object\"";
        draft.report(&rules::SCHEMA_ROOT, schema.pointer.clone(), text);
    } else if kind.and_then(Value::as_str) != Some("object") {
        let text = "the `type` of the root is not \"object\", which is all that every client understands";
        draft.report(&rules::SCHEMA_ROOT, schema.at("type"), text);
    } else if schema.object("properties").is_none() {
        draft.report(
            &rules::SCHEMA_ROOT,
            schema.pointer.clone(),
            "the root of the schema has no `properties`",
        );
    }
}

/// The names that `#name` can refer to.
fn collect_anchors<'v>(value: &'v Value, anchors: &mut HashSet<&'v str>) {
    match value {
        Value::Object(map) => {
            let named = ["$anchor", "$dynamicAnchor"].iter().filter_map(|key| map.get(*key)?.as_str());
            anchors.extend(named);
            map.values().for_each(|member| collect_anchors(member, anchors));
        }
        Value::Array(list) => list.iter().for_each(|element| collect_anchors(element, anchors)),
        _ => {}
    }
}

/// A schema document.
struct Root<'v> {
    value: &'v Value,
    anchors: HashSet<&'v str>,
}

impl Root<'_> {
    /// Checks a schema and its subschemas. The nesting of the document bounds the recursion.
    fn check(&self, schema: &Map<String, Value>, pointer: &mut String, draft: &mut Draft<'_>) {
        self.check_reference(schema, pointer, draft);
        check_patterns(schema, pointer, draft);
        check_limits(schema, pointer, draft);
        check_values(schema, pointer, draft);
        check_default(schema, pointer, draft);
        check_required(schema, pointer, draft);
        // A schema with its own base: references below it do not refer to this root.
        let is_own = |value: &Value| value.get("$id").is_none();
        let length = pointer.len();
        for (keyword, value) in schema {
            let keyword = keyword.as_str();
            push_name(pointer, keyword);
            let at = pointer.len();
            match value {
                Value::Object(below) if ONE.contains(&keyword) && is_own(value) => {
                    self.check(below, pointer, draft);
                }
                Value::Object(named) if MAP.contains(&keyword) => {
                    for (name, value) in named.iter().filter(|(_, value)| is_own(value)) {
                        if let Value::Object(below) = value {
                            push_name(pointer, name);
                            self.check(below, pointer, draft);
                            pointer.truncate(at);
                        }
                    }
                }
                Value::Array(list) if LIST.contains(&keyword) => {
                    for (index, value) in list.iter().enumerate().filter(|(_, value)| is_own(value)) {
                        if let Value::Object(below) = value {
                            push_index(pointer, index);
                            self.check(below, pointer, draft);
                            pointer.truncate(at);
                        }
                    }
                }
                _ => {}
            }
            pointer.truncate(length);
        }
    }

    fn check_reference(&self, schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
        for keyword in ["$ref", "$dynamicRef"] {
            let Some(reference) = schema.get(keyword).and_then(Value::as_str) else { continue };
            let rule = match reference.strip_prefix('#') {
                Some(fragment) if self.is_target(fragment) => continue,
                Some(_) => &rules::SCHEMA_REFERENCE,
                None if reference.trim_end_matches('#') == DIALECT => continue,
                None => &rules::SCHEMA_REMOTE,
            };
            let text = format!("{}: \"{}\"", rule.wrong, capped(reference, 200));
            draft.report(rule, below(pointer, keyword), text);
        }
    }

    fn is_target(&self, fragment: &str) -> bool {
        if fragment.is_empty() {
            return true;
        }
        let decoded = percent_decoded(fragment);
        if decoded.starts_with('/') {
            self.value.pointer(&decoded).is_some_and(|target| target.is_object() || target.is_boolean())
        } else {
            self.anchors.contains(decoded.as_str())
        }
    }
}

fn below(pointer: &str, key: &str) -> String {
    let mut pointer = pointer.to_owned();
    push_name(&mut pointer, key);
    pointer
}

fn check_patterns(schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
    let own = schema.get("pattern").and_then(Value::as_str);
    if let Some(flaw) = own.and_then(pattern::flaw) {
        let text = format!("`pattern` is not a regular expression: {flaw}");
        draft.report(&rules::SCHEMA_PATTERN, below(pointer, "pattern"), text);
    }
    for name in schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(flaw) = pattern::flaw(name.0) {
            let text = format!("a name in `patternProperties` is not a regular expression: {flaw}");
            draft.report(&rules::SCHEMA_PATTERN, below(&below(pointer, "patternProperties"), name.0), text);
        }
    }
}

fn check_limits(schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
    for (low, high) in LIMITS {
        let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
        if let (Some(least), Some(most)) = (limit(low), limit(high))
            && least > most
        {
            let text = format!("`{low}` is {least}, above `{high}`, which is {most}");
            draft.report(&rules::SCHEMA_CONTRADICTED, below(pointer, low), text);
        }
    }
}

fn check_values(schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
    if schema.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        let text = "`enum` is empty: no value is allowed";
        draft.report(&rules::SCHEMA_CONTRADICTED, below(pointer, "enum"), text);
    }
}

fn check_default(schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
    let Some(default) = schema.get("default") else { return };
    let values = schema.get("enum").and_then(Value::as_array).filter(|list| list.len() <= ENUM_COMPARED_MAX);
    let types = schema.get("type");
    let text = if values.is_some_and(|values| !values.contains(default)) {
        "`default` is not among the values of `enum`".to_owned()
    } else if types.is_some_and(|types| !is_of_any(default, types)) {
        format!("`default` is {}, which `type` does not allow", type_name(default))
    } else {
        return;
    };
    draft.report(&rules::SCHEMA_CONTRADICTED, below(pointer, "default"), text);
}

/// Whether a value has a type of the keyword `type`; unknown types are allowed.
fn is_of_any(value: &Value, types: &Value) -> bool {
    let is = |name: &Value| name.as_str().is_none_or(|name| is_of_type(value, name));
    types.as_array().map_or_else(|| is(types), |names| names.iter().any(is))
}

fn check_required(schema: &Map<String, Value>, pointer: &str, draft: &mut Draft<'_>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    if OTHER_SOURCES.iter().any(|keyword| schema.contains_key(*keyword)) {
        return;
    }
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for (index, name) in required.enumerate() {
        let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) else { continue };
        let mut pointer = below(pointer, "required");
        push_index(&mut pointer, index);
        let text =
            format!("`required` names \"{}\", which `properties` does not describe", capped(name, 100));
        draft.report(&rules::SCHEMA_CONTRADICTED, pointer, text);
    }
}
