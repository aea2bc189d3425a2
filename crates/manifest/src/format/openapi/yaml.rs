//! YAML into JSON values, with a budget.
//!
//! Decides how YAML's wider data model becomes JSON: keys that are numbers or truth values turn into text (response codes
//! are often written bare), tags are ignored, numbers that JSON cannot hold become null. Anchors and aliases are expanded
//! by the parser; every value written is paid for, so a small document cannot grow into a large one.

use std::cell::Cell;
use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// Values that one document may hold, aliases expanded. A JSON document of 16 MiB has about as many.
const VALUES_MAX: usize = 400_000;
/// Bytes of text that one document may hold, aliases expanded; the cap of a fetched OpenAPI document.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Deepest nesting, the same as for JSON manifests.
const DEPTH_MAX: usize = 64;

/// Parses one YAML document. The error says what is wrong and where.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let budget = Budget { values: Cell::new(VALUES_MAX), text_bytes: Cell::new(TEXT_BYTES_MAX) };
    let node = Node { budget: &budget, depth: 0 };
    node.deserialize(yaml_serde::Deserializer::from_str(text)).map_err(|error| error.to_string())
}

struct Budget {
    values: Cell<usize>,
    text_bytes: Cell<usize>,
}

impl Budget {
    fn pay<E: Error>(&self, text_bytes: usize) -> Result<(), E> {
        let values = self.values.get().checked_sub(1);
        let text_bytes = self.text_bytes.get().checked_sub(text_bytes);
        let (Some(values), Some(text_bytes)) = (values, text_bytes) else {
            return Err(E::custom("the document grows beyond the cap when its aliases are expanded"));
        };
        self.values.set(values);
        self.text_bytes.set(text_bytes);
        Ok(())
    }
}

#[derive(Clone, Copy)]
struct Node<'b> {
    budget: &'b Budget,
    depth: usize,
}

impl Node<'_> {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom("nested too deeply"));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.budget.pay(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.budget.pay(0).map(|()| Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.budget.pay(0).map(|()| Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.budget.pay(0).map(|()| Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.budget.pay(value.len()).map(|()| Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.budget.pay(0).map(|()| Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.budget.pay(0)?;
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.budget.pay(0)?;
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(key) = members.next_key_seed(inner)? {
            let value = members.next_value_seed(inner)?;
            map.entry(key_text(&key)).or_insert(value);
        }
        Ok(Value::Object(map))
    }

    /// A tagged value (`!name value`): the value.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (_tag, variant) = tagged.variant::<String>()?;
        variant.newtype_variant_seed(self.deeper()?)
    }
}

fn key_text(key: &Value) -> String {
    match key {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bare_keys_and_tags_become_json() {
        let text = "openapi: 3.1.0\nresponses:\n  200: {a: !x y, b: .nan, c: ~}\n  on: true\n";
        assert_eq!(
            parse(text).unwrap(),
            json!({"openapi": "3.1.0", "responses": {"200": {"a": "y", "b": null, "c": null}, "on": true}})
        );
    }

    #[test]
    fn aliases_are_expanded_and_bombs_are_refused() {
        assert_eq!(parse("a: &x [1, 2]\nb: *x\n").unwrap(), json!({"a": [1, 2], "b": [1, 2]}));
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let below = format!("*a{}", level - 1);
            let aliases = vec![below; 9].join(", ");
            bomb = format!("{bomb}a{level}: &a{level} [{aliases}]\n");
        }
        assert!(parse(&bomb).is_err());
        assert!(parse(&"[".repeat(5_000)).is_err());
        assert!(parse("a: *nothing").is_err());
    }
}
