//! The stable part of the API: everything that `stable.txt` lists must not change.
//!
//! Each line of the file is one promise: an operation, a parameter, a value that a parameter accepts, or a member of a response with its
//! type. A change that removes or alters a line breaks clients. A new operation, parameter, value or member only adds lines.
//! `STABLE_UPDATE=1 cargo nextest run -E 'test(stable_operations)'` writes the file; docs/API.md states when a line may be removed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::world::World;

/// Operations that may change with any version.
const UNSTABLE: [&str; 2] = ["/admin", "/feedback"];
/// Depth of the members that are listed.
const DEPTH_MAX: usize = 4;

/// The promises of an OpenAPI document, one per line.
fn promises(document: &Value) -> BTreeSet<String> {
    let mut lines = Lines { document, lines: BTreeSet::new() };
    for (path, item) in document["paths"].as_object().unwrap() {
        if UNSTABLE.iter().any(|prefix| path.starts_with(prefix)) {
            continue;
        }
        for (method, operation) in item.as_object().unwrap() {
            lines.operation(&format!("{} {path}", method.to_uppercase()), operation);
        }
    }
    lines.lines
}

struct Lines<'a> {
    document: &'a Value,
    lines: BTreeSet<String>,
}

impl<'a> Lines<'a> {
    fn operation(&mut self, operation: &str, value: &'a Value) {
        self.lines.insert(operation.to_owned());
        for parameter in value["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            let is_required = parameter["required"] == true;
            let place = format!("{operation} parameter {name}");
            self.lines.insert(format!("{place}{}", if is_required { " (required)" } else { "" }));
            self.accepted_values(&place, &parameter["schema"]);
        }
        for (media_type, content) in value["requestBody"]["content"].as_object().into_iter().flatten() {
            let body = self.resolved(&content["schema"]);
            self.lines.insert(format!("{operation} body {media_type}"));
            for name in body["required"].as_array().into_iter().flatten() {
                self.lines
                    .insert(format!("{operation} body {media_type} {} (required)", name.as_str().unwrap()));
            }
            for name in body["properties"].as_object().into_iter().flat_map(|members| members.keys()) {
                self.lines.insert(format!("{operation} body {media_type} {name}"));
            }
        }
        for (status, response) in value["responses"].as_object().into_iter().flatten() {
            if !status.starts_with('2') {
                continue;
            }
            for (media_type, content) in response["content"].as_object().into_iter().flatten() {
                let place = format!("{operation} {status} {media_type}");
                self.lines.insert(place.clone());
                self.members(&place, &content["schema"], DEPTH_MAX);
            }
        }
    }

    fn accepted_values(&mut self, place: &str, schema: &'a Value) {
        let schema = self.resolved(schema);
        let values = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
        for value in values.into_iter().flatten() {
            self.lines.insert(format!("{place} accepts {value}"));
        }
    }

    fn members(&mut self, place: &str, schema: &'a Value, depth: usize) {
        let schema = self.resolved(schema);
        if depth == 0 {
            return;
        }
        for part in ["allOf", "oneOf", "anyOf"] {
            for schema in schema[part].as_array().into_iter().flatten() {
                self.members(place, schema, depth - 1);
            }
        }
        if schema["items"].is_object() {
            self.members(&format!("{place}/*"), &schema["items"], depth - 1);
        }
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            let place = format!("{place}/{name}");
            let kind = &self.resolved(member)["type"];
            self.lines.insert(if kind.is_null() { place.clone() } else { format!("{place}: {kind}") });
            self.members(&place, member, depth - 1);
        }
    }

    /// The schema that a reference to a component points to.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let Some(reference) = schema["$ref"].as_str() else { return schema };
        self.document.pointer(reference.trim_start_matches('#')).unwrap()
    }
}

/// The effects of a change that break clients: removed promises, and new requirements of existing operations.
fn broken(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let is_requirement = |line: &&String| line.ends_with(" (required)");
    let is_of_known_operation = |line: &&String| {
        let mut words = line.split(' ');
        let operation = [words.next().unwrap_or_default(), words.next().unwrap_or_default()].join(" ");
        before.contains(&operation)
    };
    let gone = before.difference(after).filter(|line| {
        // A parameter that becomes optional still works as it did.
        !line.strip_suffix(" (required)").is_some_and(|optional| after.contains(optional))
    });
    let required = after.difference(before).filter(is_requirement).filter(is_of_known_operation);
    gone.cloned().chain(required.map(|line| format!("{line} is new"))).collect()
}

#[tokio::test]
async fn stable_operations_keep_their_parameters_and_members() {
    let now = promises(&World::new().await.get("/openapi.json").await.json());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/stable.txt");
    if std::env::var_os("STABLE_UPDATE").is_some() {
        let text = now.iter().map(String::as_str).chain([""]).collect::<Vec<_>>().join("\n");
        std::fs::write(&file, text).unwrap();
    }
    let promised: BTreeSet<String> =
        std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    assert!(promised.len() > 500, "{} lines", promised.len());
    assert_eq!(broken(&promised, &now), Vec::<String>::new(), "these changes break clients");
    let added: Vec<&String> = now.difference(&promised).collect();
    assert!(added.is_empty(), "not promised yet, so run this test with STABLE_UPDATE=1: {added:#?}");
}

#[test]
fn finds_what_breaks_clients() {
    let document = |parameter: Value, properties: Value| {
        json!({"paths": {"/a": {"get": {
            "parameters": [parameter],
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A"}}}}},
        }}}, "components": {"schemas": {"A": {"type": "object", "properties": properties}}}})
    };
    let of = |parameter: Value, properties: Value| promises(&document(parameter, properties));
    let parameter = json!({"name": "p", "schema": {"enum": ["x", "y"]}});
    let required = json!({"name": "p", "required": true, "schema": {"enum": ["x", "y"]}});
    let properties = json!({"n": {"type": "integer"}, "a": {"$ref": "#/components/schemas/A"}});
    let before = of(parameter.clone(), properties.clone());
    for (after, breaks) in [
        (of(parameter.clone(), properties.clone()), None),
        (of(json!({"name": "p", "schema": {"enum": ["x", "y", "z"]}}), properties.clone()), None),
        (of(json!({"name": "p", "schema": {"enum": ["x"]}}), properties.clone()), Some("accepts \"y\"")),
        (of(json!({"name": "q"}), properties.clone()), Some("parameter p")),
        (of(required.clone(), properties.clone()), Some("(required) is new")),
        (of(parameter.clone(), json!({"n": {"type": "string"}})), Some("/n: \"integer\"")),
        (of(parameter, json!({"a": {}})), Some("/n: \"integer\"")),
    ] {
        let found = broken(&before, &after);
        assert_eq!(found.is_empty(), breaks.is_none(), "{found:?}");
        assert!(
            breaks.is_none_or(|text| found.iter().any(|line| line.contains(text))),
            "{breaks:?}: {found:?}"
        );
    }
    assert!(
        broken(&of(required, properties), &before).is_empty(),
        "a parameter that becomes optional breaks no client"
    );
}
