//! The input of an operation as one JSON Schema object.
//!
//! Decides the property of each parameter and of each member of the body. `x-in` states its location: query, path, header, cookie or body.
//! A body that is not an object with named members becomes one property called `body`. Two parameters with the same name in different
//! locations are distinguished by a prefix; `x-name` contains the published name.
//!
//! Follows OpenAPI 3.1 §4.8.12–4.8.14, 2.0 "Parameter Object".

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use crate::reference::Resolver;
use crate::schema::Location;

/// Maximum number of parameters of one operation that are kept; the most seen in a published document is 61.
const PARAMETERS_MAX: usize = 200;

/// The parameter objects of an operation: its own, and the ones of its path that it does not override.
pub(super) type Parameters<'a> = BTreeMap<(Location, String), &'a Map<String, Value>>;

/// Maximum number of examples of a parameter that are read.
const EXAMPLES_MAX: usize = 20;
/// Maximum number of media types of one body that are read.
const MEDIA_TYPES_MAX: usize = 64;

/// Reads the `parameters` arrays of a path and of one of its operations; the operation overrides its path.
pub(super) fn collect<'a>(
    lists: [Option<&'a Value>; 2],
    resolver: &mut Resolver<'a>,
    pointer: &str,
) -> Parameters<'a> {
    let mut parameters = Parameters::new();
    for value in lists.into_iter().flatten().filter_map(Value::as_array).flatten().take(PARAMETERS_MAX) {
        let Some(parameter) = resolver.object(value, pointer) else { continue };
        let location = parameter.get("in").and_then(Value::as_str).and_then(Location::parse);
        let name = parameter.get("name").and_then(Value::as_str);
        if let (Some(location), Some(name)) = (location, name) {
            parameters.insert((location, name.to_owned()), parameter);
        }
    }
    parameters
}

/// Names of the parameters that fill the path.
pub(super) fn path_names<'p>(parameters: &'p Parameters<'_>) -> BTreeSet<&'p str> {
    parameters
        .keys()
        .filter(|(location, _)| *location == Location::Path)
        .map(|(_, name)| name.as_str())
        .collect()
}

/// The input of an operation under construction.
#[derive(Default)]
pub(super) struct Input {
    properties: Map<String, Value>,
    required: Vec<Value>,
    definitions: Map<String, Value>,
}

impl Input {
    /// The schema; `None` if the operation has no input.
    pub(super) fn into_schema(self) -> Option<Value> {
        if self.properties.is_empty() {
            return None;
        }
        let mut schema = json!({"type": "object", "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = Value::Array(self.required);
        }
        if !self.definitions.is_empty() {
            schema["$defs"] = Value::Object(self.definitions);
        }
        Some(schema)
    }

    pub(super) fn add_parameters<'a>(
        &mut self,
        parameters: &Parameters<'a>,
        resolver: &mut Resolver<'a>,
        pointer: &str,
    ) {
        for ((location, name), parameter) in parameters {
            if *location == Location::Body {
                let any = Value::Object(Map::new());
                let schema = parameter.get("schema").unwrap_or(&any);
                self.add_body(schema, is_true(parameter, "required"), None, resolver, pointer);
                continue;
            }
            let mut schema = parameter_schema(parameter, resolver, pointer);
            if let Some(object) = schema.as_object_mut() {
                for annotation in ["description", "deprecated"] {
                    if let Some(value) = parameter.get(annotation).and_then(|value| resolver.copy(value)) {
                        object.insert(annotation.to_owned(), value);
                    }
                }
                if let Some(examples) = examples(parameter, resolver) {
                    object.entry("examples").or_insert(examples);
                }
            }
            let required = is_true(parameter, "required") || *location == Location::Path;
            self.add(name, *location, schema, required);
        }
    }

    /// Adds a body: the members of an object, or the whole as one property.
    pub(super) fn add_body(
        &mut self,
        schema: &Value,
        required: bool,
        media_type: Option<&str>,
        resolver: &mut Resolver<'_>,
        pointer: &str,
    ) {
        let mut schema = resolver.schema(schema, pointer);
        let definitions = schema.as_object_mut().and_then(|object| object.remove("$defs"));
        if let Some(Value::Object(definitions)) = definitions {
            self.definitions.extend(definitions);
        }
        let mut members = Members::default();
        if members.gather(&schema) && !members.properties.is_empty() {
            for (name, mut member) in members.properties {
                let needed = required && members.required.contains(&name);
                annotate_media_type(&mut member, media_type);
                self.add(&name, Location::Body, member, needed);
            }
        } else {
            annotate_media_type(&mut schema, media_type);
            self.add("body", Location::Body, schema, required);
        }
    }

    fn add(&mut self, name: &str, location: Location, schema: Value, required: bool) {
        let mut schema = if schema.is_object() { schema } else { json!({}) };
        schema["x-in"] = json!(location.as_x_in());
        if let Some(Value::Object(definitions)) =
            schema.as_object_mut().and_then(|object| object.remove("$defs"))
        {
            self.definitions.extend(definitions);
        }
        let key = if self.properties.contains_key(name) {
            schema["x-name"] = json!(name);
            format!("{}_{name}", location.as_x_in())
        } else {
            name.to_owned()
        };
        if required {
            self.required.push(json!(key));
        }
        self.properties.insert(key, schema);
    }
}

/// The named members of a body, including those in `allOf`.
#[derive(Default)]
struct Members {
    properties: Map<String, Value>,
    required: HashSet<String>,
}

impl Members {
    /// Whether the schema is an object whose members have names.
    fn gather(&mut self, schema: &Value) -> bool {
        let Some(object) = schema.as_object() else { return false };
        if ["oneOf", "anyOf", "$ref"].iter().any(|keyword| object.contains_key(*keyword)) {
            return false;
        }
        for (name, member) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.properties.insert(name.clone(), member.clone());
        }
        let required = object.get("required").and_then(Value::as_array).into_iter().flatten();
        self.required.extend(required.filter_map(Value::as_str).map(str::to_owned));
        let parts = object.get("allOf").and_then(Value::as_array);
        parts.into_iter().flatten().all(|part| self.gather(part))
    }
}

fn annotate_media_type(schema: &mut Value, media_type: Option<&str>) {
    if let (Some(object), Some(media_type)) = (schema.as_object_mut(), media_type) {
        object.insert("x-media-type".to_owned(), json!(media_type));
    }
}

/// Members of a parameter that are not schema keywords.
const NOT_SCHEMA: &[&str] = &[
    "name",
    "in",
    "required",
    "description",
    "deprecated",
    "style",
    "explode",
    "allowReserved",
    "allowEmptyValue",
    "collectionFormat",
    "examples",
    "example",
    "content",
    "schema",
    "$ref",
];

/// The schema of a parameter: under `schema`, in its only media type, or next to the name in Swagger 2.0.
fn parameter_schema(parameter: &Map<String, Value>, resolver: &mut Resolver<'_>, pointer: &str) -> Value {
    let schema = parameter.get("schema").or_else(|| {
        parameter.get("content").and_then(preferred_media).and_then(|(_, media)| media.get("schema"))
    });
    match schema {
        Some(schema) => resolver.schema(schema, pointer),
        None => resolver.schema_of_members(
            parameter,
            |name| !NOT_SCHEMA.contains(&name) && !name.starts_with("x-"),
            pointer,
        ),
    }
}

fn examples(parameter: &Map<String, Value>, resolver: &mut Resolver<'_>) -> Option<Value> {
    if let Some(example) = parameter.get("example") {
        return Some(json!([resolver.copy(example)?]));
    }
    let named = parameter.get("examples")?.as_object()?;
    let named = named.values().take(EXAMPLES_MAX);
    let values: Vec<Value> =
        named.filter_map(|example| resolver.copy(example.get("value")?)).take(5).collect();
    (!values.is_empty()).then(|| json!(values))
}

/// The preferred media type of a `content` map: JSON if there is any, or else the first.
pub(super) fn preferred_media(content: &Value) -> Option<(&str, &Map<String, Value>)> {
    let content = content.as_object()?;
    let is_json = |name: &str| {
        let essence = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        essence == "application/json" || essence.ends_with("+json")
    };
    let mut listed = content.iter().take(MEDIA_TYPES_MAX);
    let (name, media) = listed.find(|(name, _)| is_json(name)).or_else(|| content.iter().next())?;
    Some((name.as_str(), media.as_object()?))
}

pub(super) fn is_true(object: &Map<String, Value>, name: &str) -> bool {
    object.get(name) == Some(&Value::Bool(true))
}
