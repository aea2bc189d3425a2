//! A JSON Schema as a table with one row per property, and one per member of the objects inside.

use std::borrow::Cow;
use std::collections::HashSet;

use manifest::required_properties;
use serde_json::Value;

use crate::text;

/// Maximum number of rows; the JSON response has all.
const ROWS_MAX: usize = 100;
/// Maximum number of displayed values of an enumeration.
const CHOICES_MAX: usize = 12;
/// Maximum length of a displayed description, and of a displayed type, place, default or value, in characters.
const TEXT_CHARS_MAX: usize = 500;
const VALUE_CHARS_MAX: usize = 100;
/// Maximum number of displayed types of a property that has several.
const TYPES_MAX: usize = 7;
/// Maximum length of the name of a member with the names of the objects around it, in characters.
const NAME_CHARS_MAX: usize = 200;
/// Maximum depth of members that have rows. Deeper ones are in the JSON response.
const MEMBERS_DEPTH_MAX: u8 = 3;
/// Maximum depth of a displayed type: a list of lists of objects is still readable.
const DEPTH_MAX: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// `string (date)`, `list of string`.
    pub(crate) kind: String,
    /// Part of the request that contains it: query, path, header or body.
    pub(crate) place: Option<String>,
    pub(crate) required: bool,
    pub(crate) description: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) choices: Vec<String>,
}

/// Whether any property has more than a type. Otherwise the column of descriptions is omitted.
pub(crate) fn is_any_described(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.description.is_some() || row.default.is_some() || !row.choices.is_empty())
}

/// The properties of an object schema and the members of the objects inside.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// Number of properties and members that have no row, up to the depth of the rows.
    pub(crate) left_out: usize,
}

impl Table {
    /// A row of each property, required ones first, with the rows of its members below it: `passenger.name`, `legs[].date`.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut table = Self::default();
        let properties = schema.get("properties").and_then(Value::as_object);
        table.left_out = properties.map_or(0, |properties| properties.len().saturating_sub(ROWS_MAX));
        for row in rows(schema) {
            let property = properties.and_then(|properties| properties.get(&row.name));
            let (name, place) = (row.name.clone(), row.place.clone());
            table.push(row);
            if let Some(property) = property {
                table.push_members(&name, place.as_deref(), property, MEMBERS_DEPTH_MAX);
            }
        }
        table
    }

    fn push(&mut self, row: Row) {
        if self.rows.len() < ROWS_MAX {
            self.rows.push(row);
        } else {
            self.left_out += 1;
        }
    }

    /// The members of an object, or of the objects of a list, sent where the whole is sent.
    fn push_members(&mut self, name: &str, place: Option<&str>, schema: &Value, depth_left: u8) {
        let (inner, name) = match schema.get("items") {
            Some(items) => (items, format!("{name}[]")),
            None => (schema, name.to_owned()),
        };
        let members = inner.get("properties").and_then(Value::as_object).filter(|_| depth_left > 0);
        for mut member in members.map(|_| rows(inner)).unwrap_or_default() {
            let property = members.and_then(|members| members.get(&member.name));
            member.name = text::cut(&format!("{name}.{}", member.name), NAME_CHARS_MAX);
            member.place = place.map(ToOwned::to_owned);
            let name = member.name.clone();
            self.push(member);
            if let Some(property) = property {
                self.push_members(&name, place, property, depth_left - 1);
            }
        }
    }
}

/// The first properties of an object schema, required ones first.
pub(crate) fn rows(schema: &Value) -> Vec<Row> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
    let required: HashSet<&str> = required_properties(schema).collect();
    let mut rows: Vec<Row> =
        properties.iter().take(ROWS_MAX).map(|(name, property)| row(name, property, &required)).collect();
    rows.sort_by_key(|row| !row.required);
    rows
}

fn row(name: &str, property: &Value, required: &HashSet<&str>) -> Row {
    let text = |key: &str| property.get(key).and_then(Value::as_str);
    let choices = property.get("enum").and_then(Value::as_array);
    Row {
        name: name.to_owned(),
        kind: text::cut(&kind(property, DEPTH_MAX), VALUE_CHARS_MAX),
        place: text("x-in").map(|place| text::cut(place, VALUE_CHARS_MAX)),
        required: required.contains(name),
        description: text("description").map(|text| text::cut(text, TEXT_CHARS_MAX)),
        default: property.get("default").map(plain),
        choices: choices.into_iter().flatten().take(CHOICES_MAX).map(plain).collect(),
    }
}

/// The type as text.
pub(crate) fn kind(schema: &Value, depth_left: u8) -> String {
    if depth_left == 0 {
        return "…".to_owned();
    }
    let name = match schema.get("type") {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .filter(|name| *name != "null")
            .take(TYPES_MAX)
            .collect::<Vec<_>>()
            .join(" or "),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => return schema.get("$ref").and_then(Value::as_str).map_or("any", last_segment).to_owned(),
    };
    if name == "array" {
        let items =
            schema.get("items").map_or_else(|| "anything".to_owned(), |items| kind(items, depth_left - 1));
        return format!("list of {items}");
    }
    match schema.get("format").and_then(Value::as_str) {
        Some(format) => format!("{name} ({format})"),
        None => name,
    }
}

fn last_segment(reference: &str) -> &str {
    reference.rsplit('/').next().unwrap_or(reference)
}

fn plain(value: &Value) -> String {
    let written = || Cow::Owned(value.to_string());
    text::cut(&value.as_str().map_or_else(written, Cow::Borrowed), VALUE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn properties_become_rows_with_the_required_ones_first() {
        let rows = rows(&json!({
            "type": "object",
            "required": ["date"],
            "properties": {
                "class": {"type": "string", "enum": ["economy", "first"], "default": "economy"},
                "date": {"type": "string", "format": "date", "x-in": "query", "description": "Day of departure"},
                "legs": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/schemas/leg"}}},
            }
        }));
        insta::assert_debug_snapshot!(rows);
        assert!(super::rows(&json!({"properties": "broken"})).is_empty());
    }

    #[test]
    fn members_of_objects_have_rows_below_the_object() {
        let person = json!({"type": "object", "required": ["last"], "properties": {
            "first": {"type": "string"}, "last": {"type": "string", "description": "Family name"}}});
        let schema = json!({"type": "object", "properties": {
            "legs": {"type": "array", "x-in": "body", "items": {"properties": {"day": {"type": "string"}}}},
            "note": {"type": "string"},
            "passenger": person,
        }, "required": ["passenger"]});
        let table = Table::of(&schema);
        let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["passenger", "passenger.last", "passenger.first", "legs", "legs[].day", "note"]);
        assert!(table.rows[1].required && table.rows[1].description.is_some());
        assert_eq!(table.rows[4].place.as_deref(), Some("body"));
        let (mut deep, mut wide) = (json!({"type": "string"}), serde_json::Map::new());
        for _ in 0..50 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        assert_eq!(Table::of(&deep).rows.len(), 1 + usize::from(MEMBERS_DEPTH_MAX));
        for number in 0..60 {
            wide.insert(format!("p{number}"), json!({"properties": {"a": {}, "b": {}}}));
        }
        let table = Table::of(&json!({"properties": wide}));
        assert_eq!((table.rows.len(), table.left_out), (ROWS_MAX, 60 * 3 - ROWS_MAX));
    }
}
