//! The searchable text of a JSON Schema: names of properties, and texts.

use serde_json::Value;

/// Maximum depth of a schema that is read; deeper properties add little about the purpose of a call.
const DEPTH_MAX: u32 = 6;
/// Maximum number of properties that are read.
const PROPERTIES_MAX: usize = 200;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SchemaText {
    /// Names of properties.
    pub(super) names: Vec<String>,
    /// Titles, descriptions and the values of enumerations.
    pub(super) texts: Vec<String>,
}

impl SchemaText {
    pub(super) fn of(schema: Option<&Value>) -> Self {
        let mut text = Self::default();
        if let Some(schema) = schema {
            text.read(schema, 0);
        }
        text
    }

    fn read(&mut self, schema: &Value, depth: u32) {
        let Value::Object(map) = schema else { return };
        if depth > DEPTH_MAX {
            return;
        }
        for key in ["title", "description"] {
            self.texts.extend(map.get(key).and_then(Value::as_str).map(str::to_owned));
        }
        if let Some(Value::Array(values)) = map.get("enum") {
            let values = values.iter().filter_map(Value::as_str).take(PROPERTIES_MAX);
            self.texts.extend(values.map(str::to_owned));
        }
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, property) in properties {
                if self.names.len() >= PROPERTIES_MAX {
                    return;
                }
                self.names.push(name.clone());
                self.read(property, depth + 1);
            }
        }
        if let Some(items) = map.get("items") {
            self.read(items, depth + 1);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(Value::Array(parts)) = map.get(key) else { continue };
            for part in parts.iter().take(PROPERTIES_MAX) {
                self.read(part, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_names_and_texts_at_any_position() {
        let schema = json!({"type": "object", "description": "a trip", "properties": {
            "from": {"type": "string", "description": "where it begins", "enum": ["ZRH", "GVA"]},
            "legs": {"type": "array", "items": {"properties": {"seat": {"anyOf": [{"title": "aisle"}]}}}},
        }});
        let text = SchemaText::of(Some(&schema));
        assert_eq!(text.names, ["from", "legs", "seat"]);
        assert_eq!(text.texts, ["a trip", "where it begins", "ZRH", "GVA", "aisle"]);
    }

    #[test]
    fn bounds_the_depth_and_ignores_other_values() {
        let mut deep = json!({"properties": {"last": {}}});
        for _ in 0..100 {
            deep = json!({"properties": {"x": deep}});
        }
        assert_eq!(SchemaText::of(Some(&deep)).names.len(), 7);
        assert_eq!(SchemaText::of(Some(&json!([1, "x"]))), SchemaText::default());
    }
}
