//! Checks a published JSON Schema (2020-12) for parts that no validator could compile, and for references without a target.
//!
//! Unknown keywords are annotations and are accepted. The depth of a document bounds the recursion.

use serde_json::{Map, Value};

use crate::json::{push_index, push_name};
use crate::object::{type_name, whole};
use crate::pattern;
use crate::schema::TYPES;
use crate::text::capped;

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "additionalProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
];
/// Keywords whose value is a list of schemas.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAPS: &[&str] = &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];
const NUMBERS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const COUNTS: &[&str] = &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
/// Pairs of limits: the first must not exceed the second.
const RANGES: &[(&str, &str)] = &[
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
];

/// One flaw of a schema.
pub(crate) enum SchemaFlaw {
    /// What is wrong with a keyword.
    Invalid(String),
    /// A `$ref` without a target in the document, or one that leaves the document.
    Reference(String),
}

/// Checks the schemas of one document.
pub(crate) struct SchemaCheck<'d> {
    document: &'d Map<String, Value>,
    /// The flaws with their pointers.
    flaws: Vec<(String, SchemaFlaw)>,
}

/// Maximum number of flaws that are kept from one schema.
const FLAWS_MAX: usize = 100;

/// The flaws of one schema, with their pointers.
pub(crate) fn flaws(
    document: &Map<String, Value>,
    schema: &Value,
    pointer: String,
) -> Vec<(String, SchemaFlaw)> {
    let mut check = SchemaCheck { document, flaws: Vec::new() };
    let mut pointer = pointer;
    check.schema(schema, &mut pointer);
    check.flaws
}

impl SchemaCheck<'_> {
    fn wrong(&mut self, pointer: &str, text: impl Into<String>) {
        self.add(pointer, SchemaFlaw::Invalid(text.into()));
    }

    fn add(&mut self, pointer: &str, flaw: SchemaFlaw) {
        if self.flaws.len() < FLAWS_MAX {
            self.flaws.push((pointer.to_owned(), flaw));
        }
    }

    fn schema(&mut self, schema: &Value, pointer: &mut String) {
        match schema {
            Value::Object(keywords) => {
                for (name, value) in keywords {
                    let length = pointer.len();
                    push_name(pointer, name);
                    self.keyword(name, value, pointer);
                    pointer.truncate(length);
                }
                self.ranges(keywords, pointer);
            }
            Value::Bool(_) => {}
            other => self.wrong(pointer, format!("a schema is {}, expected an object", type_name(other))),
        }
    }

    fn keyword(&mut self, name: &str, value: &Value, pointer: &mut String) {
        match name {
            "type" => self.type_of(value, pointer),
            "items" if value.is_array() => self.list(value, pointer),
            "items" => self.schema(value, pointer),
            "enum" if !value.is_array() => self.wrong(pointer, "`enum` is not an array"),
            "required" => self.required(value, pointer),
            "pattern" => match value.as_str().map(pattern::flaw) {
                None => self.wrong(pointer, "`pattern` is not a string"),
                Some(Some(flaw)) => {
                    self.wrong(pointer, format!("`pattern` is not a regular expression: {flaw}"));
                }
                Some(None) => {}
            },
            "$ref" => self.reference(value, pointer),
            _ if ONE.contains(&name) => self.schema(value, pointer),
            _ if LISTS.contains(&name) => self.list(value, pointer),
            _ if MAPS.contains(&name) => self.map(name, value, pointer),
            // OpenAPI 3.0 writes true or false next to the limit.
            _ if NUMBERS.contains(&name) && !value.is_number() && !value.is_boolean() => {
                self.wrong(pointer, format!("`{name}` is {}, expected a number", type_name(value)));
            }
            _ if COUNTS.contains(&name) && !(value.is_number() && whole(value).is_some()) => {
                self.wrong(pointer, format!("`{name}` is not a whole number"));
            }
            _ => {}
        }
    }

    fn type_of(&mut self, value: &Value, pointer: &str) {
        let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
        let right = match value {
            Value::Array(names) => !names.is_empty() && names.iter().all(known),
            name => known(name),
        };
        if !right {
            let text = value.to_string();
            self.wrong(
                pointer,
                format!("`type` is {}, expected one of {}", capped(&text, 60), TYPES.join(", ")),
            );
        }
    }

    fn required(&mut self, value: &Value, pointer: &str) {
        let right = value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
        if !right {
            self.wrong(pointer, "`required` is not an array of names");
        }
    }

    fn list(&mut self, value: &Value, pointer: &mut String) {
        let Some(schemas) = value.as_array() else {
            return self.wrong(pointer, format!("the keyword is {}, expected an array", type_name(value)));
        };
        for (index, schema) in schemas.iter().enumerate() {
            let length = pointer.len();
            push_index(pointer, index);
            self.schema(schema, pointer);
            pointer.truncate(length);
        }
    }

    fn map(&mut self, name: &str, value: &Value, pointer: &mut String) {
        let Some(schemas) = value.as_object() else {
            return self.wrong(pointer, format!("`{name}` is {}, expected an object", type_name(value)));
        };
        for (key, schema) in schemas {
            let length = pointer.len();
            push_name(pointer, key);
            self.schema(schema, pointer);
            pointer.truncate(length);
        }
    }

    fn ranges(&mut self, keywords: &Map<String, Value>, pointer: &str) {
        let number = |name: &str| keywords.get(name).and_then(Value::as_f64);
        for (least, most) in RANGES {
            if let (Some(low), Some(high)) = (number(least), number(most))
                && low > high
            {
                self.wrong(pointer, format!("`{least}` {low} is above `{most}` {high}"));
            }
        }
    }

    fn reference(&mut self, value: &Value, pointer: &str) {
        let Some(reference) = value.as_str() else { return self.wrong(pointer, "`$ref` is not a string") };
        let leads = match reference.strip_prefix('#') {
            None => "out of this document",
            Some(path) if self.exists(path) => return,
            Some(_) => "nowhere",
        };
        self.add(pointer, SchemaFlaw::Reference(format!("{} leads {leads}", capped(reference, 200))));
    }

    /// Whether a JSON pointer (RFC 6901) in a fragment names a value. One with escaped characters is not checked.
    fn exists(&self, path: &str) -> bool {
        let Some(steps) = path.strip_prefix('/') else { return path.is_empty() };
        if steps.contains('%') {
            return true;
        }
        let (first, rest) = steps.split_once('/').map_or((steps, None), |(first, rest)| (first, Some(rest)));
        let member = self.document.get(&first.replace("~1", "/").replace("~0", "~"));
        member.is_some_and(|member| rest.is_none_or(|rest| member.pointer(&format!("/{rest}")).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(schema: &Value) -> Vec<String> {
        let document = json!({"schemas": {"Known": {"type": "object"}}});
        let flaws = flaws(document.as_object().unwrap(), schema, "/x".to_owned());
        flaws.into_iter().map(|(pointer, _)| pointer).collect()
    }

    #[test]
    fn flaws_point_at_the_keyword() {
        for (schema, pointer) in [
            (json!(7), "/x"),
            (json!({"type": "strin"}), "/x/type"),
            (json!({"type": []}), "/x/type"),
            (json!({"properties": []}), "/x/properties"),
            (json!({"properties": {"a": {"items": {"type": 3}}}}), "/x/properties/a/items/type"),
            (json!({"required": true}), "/x/required"),
            (json!({"enum": "a"}), "/x/enum"),
            (json!({"pattern": "["}), "/x/pattern"),
            (json!({"minimum": "1"}), "/x/minimum"),
            (json!({"minLength": -1}), "/x/minLength"),
            (json!({"minimum": 3, "maximum": 1}), "/x"),
            (json!({"anyOf": [{}, 3]}), "/x/anyOf/1"),
            (json!({"$ref": "#/schemas/Ghost"}), "/x/$ref"),
            (json!({"$ref": "other.json"}), "/x/$ref"),
        ] {
            assert_eq!(pointers(&schema), [pointer], "{schema}");
        }
    }

    #[test]
    fn valid_schemas_have_no_flaws() {
        for schema in [
            json!({}),
            json!(true),
            json!({"type": ["string", "null"], "pattern": "^a+$", "x-note": 3}),
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/schemas/Known"}}}),
            json!({"type": "array", "items": {"enum": [1, 2]}, "minItems": 0, "maxItems": 3}),
        ] {
            assert_eq!(pointers(&schema), Vec::<String>::new(), "{schema}");
        }
    }
}
