//! Example values of parameters: from the publisher if given, otherwise values of the stated type.

use std::collections::HashSet;

use manifest::required_properties;
use serde_json::{Map, Value, json};

/// Maximum nesting of an example; deeper objects are left empty.
const DEPTH_MAX: u8 = 4;
/// Maximum number of members of one example object.
const MEMBERS_MAX: usize = 20;
/// Maximum length of an example that is found in a description, in characters.
const FOUND_CHARS_MAX: usize = 60;
/// Words before an example in a description, in lower case.
const INTRODUCTIONS: [&str; 4] = ["for example ", "e.g. ", "such as ", "example: "];

/// An example of the parameter `name`.
pub(super) fn of(name: &str, property: Option<&Value>) -> Value {
    value(name, property.unwrap_or(&Value::Null), DEPTH_MAX)
}

fn value(name: &str, schema: &Value, depth_left: u8) -> Value {
    let published = [
        schema.get("example"),
        first(schema, "examples"),
        schema.get("const"),
        schema.get("default"),
        first(schema, "enum"),
    ];
    if let Some(published) = published.into_iter().flatten().find(|value| !value.is_null()) {
        return published.clone();
    }
    if let Some(found) = in_description(schema) {
        return match kind(schema) {
            "integer" | "number" => {
                found.parse::<serde_json::Number>().map_or_else(|_| json!(1), Value::Number)
            }
            "array" => json!([found]),
            "object" | "boolean" => of_kind(name, schema, depth_left),
            _ => Value::from(found),
        };
    }
    of_kind(name, schema, depth_left)
}

fn of_kind(name: &str, schema: &Value, depth_left: u8) -> Value {
    match kind(schema) {
        "integer" | "number" => {
            schema.get("minimum").filter(|value| value.is_number()).cloned().unwrap_or_else(|| json!(1))
        }
        "boolean" => json!(true),
        "array" if depth_left > 0 => {
            json!([value(name, schema.get("items").unwrap_or(&Value::Null), depth_left - 1)])
        }
        "object" if depth_left > 0 => object(schema, depth_left),
        "array" => json!([]),
        "object" => json!({}),
        _ => text(name, schema),
    }
}

/// The required members, or the first ones if none is required.
fn object(schema: &Value, depth_left: u8) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required: HashSet<&str> = required_properties(schema).collect();
    let members = properties.into_iter().flatten();
    let wanted = members.filter(|(name, _)| required.is_empty() || required.contains(name.as_str()));
    let member = |(name, schema): (&String, &Value)| (name.clone(), value(name, schema, depth_left - 1));
    Value::Object(wanted.take(MEMBERS_MAX).map(member).collect::<Map<_, _>>())
}

fn text(name: &str, schema: &Value) -> Value {
    let is_past = name.to_ascii_lowercase().contains("birth");
    let example = match schema.get("format").and_then(Value::as_str) {
        Some("date") if is_past => "1990-03-14",
        Some("date-time") if is_past => "1990-03-14T00:00:00Z",
        Some("date") => "2030-03-14",
        Some("date-time") => "2030-03-14T09:30:00Z",
        Some("time") => "09:30:00",
        Some("email") => "ada@example.com",
        Some("uri" | "url") => "https://example.com/",
        _ if is_airport(schema) => {
            if is_end(name) {
                "LIS"
            } else {
                "BER"
            }
        }
        Some("uuid") => "3f2b8c1e-6a4d-4e0f-9b57-2d1c0a9e8f76",
        _ => return Value::from(placeholder(name)),
    };
    Value::from(example)
}

/// Whether a value is the code of an airport (IATA), by its description.
fn is_airport(schema: &Value) -> bool {
    schema.get("description").and_then(Value::as_str).is_some_and(|description| description.contains("IATA"))
}

/// Whether a name is that of the end of a journey.
fn is_end(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["dest", "arriv"].iter().any(|part| name.contains(part)) || name.split('_').any(|word| word == "to")
}

/// `departure_date` becomes `DEPARTURE_DATE`: visibly a placeholder.
fn placeholder(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

/// The type of a schema: the first that is not null if there are several; empty if none is stated.
fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(kind)) => kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        _ if schema.get("properties").is_some() => "object",
        _ => "",
    }
}

fn first<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema.get(key)?.as_array()?.first()
}

/// Returns `SK412` for "For example SK412": one word, or the text in quotes.
fn in_description(schema: &Value) -> Option<String> {
    let description = schema.get("description")?.as_str()?;
    let lower = description.to_ascii_lowercase();
    let start = INTRODUCTIONS.iter().find_map(|words| lower.find(words).map(|at| at + words.len()))?;
    let rest = description.get(start..)?;
    let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"')).map(|(inside, _)| inside);
    let word = quoted.unwrap_or_else(|| {
        rest.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')' | '('))
            .next()
            .unwrap_or_default()
    });
    let word = word.trim_end_matches(['.', ':', '!', '?']);
    let is_specific = quoted.is_some() || word.chars().any(|c| c.is_ascii_digit() || c.is_ascii_uppercase());
    (!word.is_empty() && is_specific && word.chars().count() <= FOUND_CHARS_MAX).then(|| word.to_owned())
}

/// Parses the entered text as the type that the schema states. Keeps it as text if that fails.
pub(super) fn typed(property: Option<&Value>, text: &str) -> Value {
    let kind = property.map_or("", kind);
    let parsed = || serde_json::from_str::<Value>(text).ok();
    let read = match kind {
        "integer" | "number" => parsed().filter(Value::is_number),
        "boolean" => parsed().filter(Value::is_boolean),
        "object" => parsed().filter(Value::is_object),
        "array" => parsed().filter(Value::is_array).or_else(|| Some(listed(text))),
        _ => None,
    };
    read.unwrap_or_else(|| Value::from(text.trim()))
}

fn listed(text: &str) -> Value {
    Value::Array(text.split(',').map(|item| Value::from(item.trim())).collect())
}

/// A value in the format of a query, a path or a form.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Comparing all pairs of names would take minutes.
    #[test]
    fn finds_required_members_in_linear_time() {
        let names = |start: char| (0..200_000).map(move |number| format!("{start}{number}"));
        let properties: Map<String, Value> =
            names('a').map(|name| (name, json!({"type": "integer"}))).collect();
        let required: Vec<String> = names('b').chain(["a7".to_owned()]).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let started = tokio::time::Instant::now();
        assert_eq!(of("x", Some(&schema)), json!({"a7": 1}));
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }

    #[test]
    fn example_birth_dates_are_in_the_past() {
        let date = json!({"type": "string", "format": "date-time"});
        assert_eq!(text("birth_date", &date), "1990-03-14T00:00:00Z");
        assert_eq!(text("departure", &date), "2030-03-14T09:30:00Z");
    }
}
