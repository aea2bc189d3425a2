//! The meta-schema of JSON Schema 2020-12: the requirements for the value of each keyword.
//!
//! Unknown keywords are annotations and are accepted. Where the meta-schema names a `format`, every text is accepted, because 2020-12 does
//! not assert formats. The depth of a document bounds the recursion. A test compares each decision with the decision of the crate
//! `jsonschema`.

use std::collections::HashSet;

use serde_json::Value;

use crate::json::{push_index, push_name};
use crate::object::type_name;
use crate::schema::TYPES;
use crate::text::capped;

/// Longest quotation of a value, in bytes.
const QUOTED_BYTES_MAX: usize = 60;

/// Why a value is not a JSON Schema of 2020-12.
#[derive(Debug)]
pub(crate) struct SchemaFlaw {
    /// JSON pointer inside the schema.
    pub(crate) pointer: String,
    pub(crate) text: String,
}

/// The requirement for the value of a keyword.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Schema,
    /// An array of at least one schema.
    Schemas,
    /// An object whose members are schemas.
    SchemaMap,
    /// An object whose members are schemas or lists of names.
    Dependencies,
    /// One type name, or an array of distinct type names.
    Types,
    /// An array of distinct texts.
    Names,
    /// An object whose members are lists of names.
    NameMap,
    /// An object whose members are true or false.
    FlagMap,
    Array,
    Number,
    /// A number above zero.
    Positive,
    /// A whole number that is not negative.
    Count,
    Text,
    /// A text without `#`, except at its end.
    Id,
    /// A name of an anchor.
    Anchor,
    Flag,
}

/// The rule for a keyword; `None` for unknown keywords and for keywords that accept any value.
fn rule(keyword: &str) -> Option<Rule> {
    Some(match keyword {
        "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "if"
        | "then"
        | "else"
        | "not"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Rule::Schema,
        "prefixItems" | "allOf" | "anyOf" | "oneOf" => Rule::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => Rule::SchemaMap,
        "dependencies" => Rule::Dependencies,
        "type" => Rule::Types,
        "required" => Rule::Names,
        "dependentRequired" => Rule::NameMap,
        "$vocabulary" => Rule::FlagMap,
        "enum" | "examples" => Rule::Array,
        "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => Rule::Number,
        "multipleOf" => Rule::Positive,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxContains" | "minContains"
        | "maxProperties" | "minProperties" => Rule::Count,
        "$schema" | "$ref" | "$dynamicRef" | "$recursiveRef" | "$comment" | "title" | "description"
        | "format" | "pattern" | "contentEncoding" | "contentMediaType" => Rule::Text,
        "$id" => Rule::Id,
        "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" => Rule::Anchor,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Rule::Flag,
        _ => return None,
    })
}

/// The first flaw of a schema.
pub(crate) fn flaw(schema: &Value) -> Option<SchemaFlaw> {
    let mut pointer = String::new();
    check_schema(schema, &mut pointer).err().map(|text| SchemaFlaw { pointer, text })
}

/// Checks a schema. If it is flawed, `pointer` is left at the flaw.
fn check_schema(schema: &Value, pointer: &mut String) -> Result<(), String> {
    match schema {
        Value::Object(keywords) => keywords.iter().try_for_each(|(keyword, value)| match rule(keyword) {
            Some(rule) => at_name(pointer, keyword, |pointer| check(rule, keyword, value, pointer)),
            None => Ok(()),
        }),
        Value::Bool(_) => Ok(()),
        other => Err(format!("a schema is {}, expected an object", type_name(other))),
    }
}

fn check(rule: Rule, keyword: &str, value: &Value, pointer: &mut String) -> Result<(), String> {
    match (rule, value) {
        (Rule::Schema, _) => check_schema(value, pointer),
        (Rule::Schemas, Value::Array(schemas)) if !schemas.is_empty() => {
            schemas.iter().enumerate().try_for_each(|(index, schema)| {
                let length = pointer.len();
                push_index(pointer, index);
                check_schema(schema, pointer)?;
                pointer.truncate(length);
                Ok(())
            })
        }
        (Rule::SchemaMap, Value::Object(members)) => members
            .iter()
            .try_for_each(|(name, schema)| at_name(pointer, name, |pointer| check_schema(schema, pointer))),
        (Rule::Dependencies, Value::Object(members)) => members.iter().try_for_each(|(name, member)| {
            let rule = if member.is_array() { Rule::Names } else { Rule::Schema };
            at_name(pointer, name, |pointer| check(rule, keyword, member, pointer))
        }),
        (Rule::NameMap, Value::Object(members)) => members.iter().try_for_each(|(name, member)| {
            at_name(pointer, name, |pointer| check(Rule::Names, keyword, member, pointer))
        }),
        (Rule::FlagMap, Value::Object(members)) => members.iter().try_for_each(|(name, member)| {
            at_name(pointer, name, |pointer| check(Rule::Flag, keyword, member, pointer))
        }),
        (Rule::Types, Value::String(name)) if TYPES.contains(&name.as_str()) => Ok(()),
        (Rule::Types, Value::Array(names)) if !names.is_empty() && are_types(names) => Ok(()),
        (Rule::Names, Value::Array(names)) if are_different_texts(names) => Ok(()),
        (Rule::Array, Value::Array(_))
        | (Rule::Number, Value::Number(_))
        | (Rule::Text, Value::String(_))
        | (Rule::Flag, Value::Bool(_)) => Ok(()),
        (Rule::Positive, Value::Number(number)) if number.as_f64().is_some_and(|number| number > 0.0) => {
            Ok(())
        }
        (Rule::Count, Value::Number(number)) if is_count(number) => Ok(()),
        (Rule::Id, Value::String(id)) if !id.strip_suffix('#').unwrap_or(id).contains('#') => Ok(()),
        (Rule::Anchor, Value::String(name)) if is_anchor(name) => Ok(()),
        (rule, Value::Array(_) | Value::Object(_)) => {
            Err(format!("`{keyword}` is not {}", rule.expectation()))
        }
        (rule, Value::String(text)) => {
            let text = capped(text, QUOTED_BYTES_MAX);
            Err(format!("`{keyword}` is \"{text}\", expected {}", rule.expectation()))
        }
        (rule, other) => Err(format!("`{keyword}` is {other}, expected {}", rule.expectation())),
    }
}

impl Rule {
    const fn expectation(self) -> &'static str {
        match self {
            Self::Schema => "a schema",
            Self::Schemas => "an array with at least one schema",
            Self::SchemaMap | Self::Dependencies | Self::NameMap | Self::FlagMap => "an object",
            Self::Types => {
                "one or several different of string, number, integer, boolean, array, object and null"
            }
            Self::Names => "an array of different strings",
            Self::Array => "an array",
            Self::Number => "a number",
            Self::Positive => "a number above 0",
            Self::Count => "a whole number that is not negative",
            Self::Text => "a string",
            Self::Id => "a URL without a fragment",
            Self::Anchor => "a name of letters, digits and ._-",
            Self::Flag => "true or false",
        }
    }
}

/// Runs a check at a member. After a flaw, `pointer` stays at it.
fn at_name(
    pointer: &mut String,
    name: &str,
    check: impl FnOnce(&mut String) -> Result<(), String>,
) -> Result<(), String> {
    let length = pointer.len();
    push_name(pointer, name);
    check(pointer)?;
    pointer.truncate(length);
    Ok(())
}

fn are_types(names: &[Value]) -> bool {
    names.iter().all(|name| name.as_str().is_some_and(|name| TYPES.contains(&name)))
        && are_different_texts(names)
}

fn are_different_texts(names: &[Value]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
}

fn is_count(number: &serde_json::Number) -> bool {
    number.is_u64() || number.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

/// `^[A-Za-z_][-A-Za-z0-9._]*$`
fn is_anchor(name: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_later = |byte: u8| is_first(byte) || byte.is_ascii_digit() || b".-".contains(&byte);
    name.bytes().next().is_some_and(is_first) && name.bytes().all(is_later)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const KEYWORDS: &[&str] = &[
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$recursiveAnchor",
        "$recursiveRef",
        "$ref",
        "$schema",
        "$vocabulary",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "contains",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "deprecated",
        "description",
        "else",
        "enum",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "if",
        "items",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "not",
        "oneOf",
        "pattern",
        "patternProperties",
        "prefixItems",
        "properties",
        "propertyNames",
        "readOnly",
        "required",
        "then",
        "title",
        "type",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
        "writeOnly",
        "x-in",
    ];

    fn agrees(schema: &Value) -> bool {
        flaw(schema).is_none() == jsonschema::draft202012::meta::is_valid(schema)
    }

    #[test]
    fn agrees_with_the_meta_schema_on_each_keyword() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(1),
            json!(-1),
            json!(1.0),
            json!(1.5),
            json!(-0.0),
            json!(1e300),
            json!(""),
            json!("a"),
            json!("1a"),
            json!("a#"),
            json!("a#b"),
            json!("#"),
            json!("("),
            json!("string"),
            json!("objekt"),
            json!([]),
            json!(["a"]),
            json!(["a", "a"]),
            json!([1]),
            json!(["string", "null"]),
            json!(["string", "string"]),
            json!([{}]),
            json!([true, false]),
            json!([[]]),
            json!({}),
            json!({"a": {}}),
            json!({"a": true}),
            json!({"a": 1}),
            json!({"a": ["b"]}),
            json!({"a": ["b", "b"]}),
            json!({"a": {"type": "objekt"}}),
            json!({"(": {}}),
            json!({"type": "objekt"}),
            json!({"type": "string"}),
        ];
        for keyword in KEYWORDS {
            for value in &values {
                let schema = json!({ *keyword: value });
                assert!(agrees(&schema), "{schema}: {:?}", flaw(&schema));
            }
        }
        for value in &values {
            assert!(agrees(value), "{value}");
        }
    }

    #[test]
    fn errors_state_the_location_and_the_reason() {
        for (schema, pointer, text) in [
            (
                json!({"properties": {"a/b": {"type": "objekt"}}}),
                "/properties/a~1b/type",
                "`type` is \"objekt\", expected one",
            ),
            (
                json!({"allOf": [{}, {"minLength": -1}]}),
                "/allOf/1/minLength",
                "`minLength` is -1, expected a whole number",
            ),
            (json!({"required": ["a", "a"]}), "/required", "`required` is not an array of different strings"),
            (json!({"items": []}), "/items", "a schema is an array, expected an object"),
            (
                json!({"dependencies": {"a": [1]}}),
                "/dependencies/a",
                "`dependencies` is not an array of different strings",
            ),
        ] {
            let flaw = flaw(&schema).unwrap();
            assert_eq!(flaw.pointer, pointer);
            assert!(flaw.text.contains(text), "{}", flaw.text);
        }
        let long = flaw(&json!({"type": "x".repeat(100_000)})).unwrap();
        assert!(long.text.len() < 200, "{}", long.text.len());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(Value::from),
            (-2_i64..3).prop_map(Value::from),
            Just(json!(0.5)),
            prop::sample::select(TYPES).prop_map(Value::from),
            "[a#_.(1]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![prop::sample::select(KEYWORDS).prop_map(str::to_owned), "[ab]"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((name, inner), 0..4).prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_meta_schema_on_any_value(schema in values()) {
            prop_assert!(agrees(&schema), "{schema}: {:?}", flaw(&schema));
        }
    }
}
