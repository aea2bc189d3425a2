//! Converts parameters and responses of any published shape to JSON Schema 2020-12.

mod descriptor;
mod names;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::address;
use crate::auth;
use crate::model::{AuthScheme, Invocation};
use crate::object::Members;
use crate::text;
use names::{names_in, presence_of_names};

pub(crate) use self::descriptor::{descriptor, insert_type, is_of_types, object_descriptor};

/// The part of a request that contains a parameter. The order decides which of two parameters with the same name keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
    Cookie,
    /// A form field, sent in the body (Swagger 2.0).
    Form,
    Body,
}

impl Location {
    /// Reads the `in` of an OpenAPI parameter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "path" => Self::Path,
            "query" => Self::Query,
            "header" => Self::Header,
            "cookie" => Self::Cookie,
            "formData" => Self::Form,
            "body" => Self::Body,
            _ => return None,
        })
    }

    /// The value of `x-in`.
    pub(crate) const fn as_x_in(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
            Self::Form | Self::Body => "body",
        }
    }

    /// The location of a parameter that declares none: that of the address variable with its name, or else the usual location for the
    /// method.
    pub(crate) fn of(invocation: &Invocation, name: &str) -> Self {
        let (path, query) = parts_of_template(invocation);
        if address::variables(path).any(|variable| variable == name) {
            return Self::Path;
        }
        if address::variables(query).any(|variable| variable == name) {
            return Self::Query;
        }
        match invocation.method.as_deref() {
            Some("GET" | "HEAD" | "DELETE" | "OPTIONS") => Self::Query,
            _ => Self::Body,
        }
    }
}

/// The address of a call up to its query, and the query.
fn parts_of_template(invocation: &Invocation) -> (&str, &str) {
    let template = invocation.endpoint().unwrap_or_default();
    template.split_once('?').unwrap_or((template, ""))
}

/// Adds address variables without a parameter. Variables of the path are required, because the call needs them.
pub(crate) fn add_variables(parameters: &mut Option<Value>, invocation: &Invocation) {
    if invocation.url_template.is_none() {
        return;
    }
    let (path, query) = parts_of_template(invocation);
    let mut found = Parameters::default();
    let is_named = parameters.as_mut().is_some_and(|schema| names_id(schema, path));
    let of_path = address::variables(path).map(|name| (name, Location::Path, Presence::Required));
    let of_path = of_path.filter(|_| !is_named);
    let of_query = address::variables(query).map(|name| (name, Location::Query, Presence::Optional));
    let known = parameters.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    for (name, location, presence) in of_path.chain(of_query) {
        if !name.is_empty() && known.is_none_or(|known| !known.contains_key(name)) {
            let schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
            found.add(name, schema, location, presence);
        }
    }
    merge(parameters, found.finish());
}

/// Whether the only required parameter with the name of the segment before `{id}`, the only variable of a path, is this variable: `room_id`
/// of `/rooms/{id}/release`. It is then marked as such.
fn names_id(schema: &mut Value, path: &str) -> bool {
    let mut variables = address::variables(path);
    if variables.next() != Some("id") || variables.next().is_some() {
        return false;
    }
    let Some(segment) = path.split("/{id}").next().and_then(|before| before.rsplit('/').next()) else {
        return false;
    };
    let one = segment.strip_suffix("ies").map(|stem| [stem, "y"].concat());
    let one =
        one.or_else(|| segment.strip_suffix('s').map(str::to_owned)).unwrap_or_else(|| segment.to_owned());
    let names = [segment, &one].map(|noun| [[noun, "_id"].concat(), [noun, "Id"].concat()]).concat();
    let is_named = |name: &&str| names.iter().any(|known| known == name);
    let name = required_properties(schema).find(is_named).map(str::to_owned);
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let Some((name, properties)) = name.zip(properties).filter(|(_, known)| !known.contains_key("id")) else {
        return false;
    };
    let Some(property) = properties.get_mut(&name).and_then(Value::as_object_mut) else { return false };
    property.insert("x-in".to_owned(), Value::from(Location::Path.as_x_in()));
    property.insert("x-name".to_owned(), Value::from("id"));
    true
}

/// Removes the locations of parameters of a capability without an address, because no request has them.
pub(crate) fn drop_locations(parameters: &mut Option<Value>) {
    let properties = parameters.as_mut().and_then(|schema| schema.get_mut("properties")?.as_object_mut());
    for property in properties.into_iter().flat_map(|properties| properties.values_mut()) {
        if let Some(property) = property.as_object_mut() {
            property.remove("x-in");
        }
    }
}

/// The schema of the parameters object under construction.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    properties: Map<String, Value>,
    required: Vec<Value>,
    /// The names in `required`.
    required_names: HashSet<String>,
}

impl Parameters {
    /// Adds a parameter that a descriptor describes and that declares no location.
    pub(crate) fn add_described(&mut self, name: &str, value: &Value, invocation: &Invocation) {
        let (schema, presence) = descriptor(value);
        self.add(name, schema, Location::of(invocation, name), presence);
    }

    pub(crate) fn add(
        &mut self,
        name: &str,
        mut schema: Map<String, Value>,
        location: Location,
        presence: Presence,
    ) {
        schema.insert("x-in".to_owned(), Value::from(location.as_x_in()));
        self.properties.insert(name.to_owned(), Value::Object(schema));
        if presence == Presence::Required && self.required_names.insert(name.to_owned()) {
            self.required.push(Value::from(name));
        }
    }

    /// The object schema, or `None` when there are no parameters.
    pub(crate) fn finish(self) -> Option<Value> {
        if self.properties.is_empty() {
            return None;
        }
        let mut schema = Map::new();
        schema.insert("type".to_owned(), Value::from("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(self.required));
        }
        Some(Value::Object(schema))
    }

    /// The schema of a call that states its parameters. An empty statement means that the call takes none, unless its address has
    /// variables.
    pub(crate) fn finish_stated(self, invocation: &Invocation) -> Option<Value> {
        self.finish().or_else(|| without_parameters(invocation))
    }
}

/// The schema of a call that takes no parameters; none if its address has variables.
pub(crate) fn without_parameters(invocation: &Invocation) -> Option<Value> {
    let is_plain = invocation.url_template.is_none();
    is_plain.then(|| serde_json::json!({"type": "object", "properties": {}}))
}

/// Whether parameters are stated as empty: `{}` or `[]`.
pub(crate) fn is_empty_statement(value: &Value) -> bool {
    matches!(value, Value::Object(map) if map.is_empty())
        || matches!(value, Value::Array(list) if list.is_empty())
}

/// Whether a parameter is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Required,
    Optional,
}

impl Presence {
    pub(crate) const fn of(required: Option<bool>) -> Self {
        match required {
            Some(true) => Self::Required,
            _ => Self::Optional,
        }
    }
}

/// Whether a value is a JSON Schema of an object rather than a map of parameters.
pub(crate) fn is_schema(map: &Map<String, Value>) -> bool {
    let typed = map.get("type").and_then(Value::as_str) == Some("object");
    typed || map.get("properties").is_some_and(Value::is_object) || map.contains_key("$ref")
}

/// An object schema whose properties have an `x-in`: the published one or `location`.
pub(crate) fn with_location(schema: &Map<String, Value>, location: Location) -> Value {
    let mut schema = schema.clone();
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                property.entry("x-in").or_insert_with(|| Value::from(location.as_x_in()));
            }
        }
    }
    Value::Object(schema)
}

/// An object schema whose properties have an `x-in`: `path` for variables of the path, and one location for all others.
fn located(schema: &Map<String, Value>, invocation: &Invocation) -> Value {
    let mut schema = schema.clone();
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
    {
        if let Value::Object(property) = property {
            let location = Location::of(invocation, name);
            property.entry("x-in").or_insert_with(|| Value::from(location.as_x_in()));
        }
    }
    Value::Object(schema)
}

/// Parameters of any published shape: a schema, a map of descriptors, a map of texts, or a list of named objects.
pub(crate) fn lenient(value: &Value, invocation: &Invocation) -> Option<Value> {
    match value {
        Value::Object(map) if is_schema(map) => Some(located(map, invocation)),
        Value::Object(map) => {
            let mut parameters = Parameters::default();
            for (name, value) in map {
                parameters.add_described(name, value, invocation);
            }
            parameters.finish()
        }
        Value::Array(list) => {
            let mut parameters = Parameters::default();
            let own = presence_of_names(list.iter().filter_map(Value::as_str));
            for item in list {
                let published = item.as_str().or_else(|| item.get("name")?.as_str());
                let Some(name) = published.map(|name| name.trim_end_matches('?')) else { continue };
                if item.is_object() {
                    parameters.add_described(name, item, invocation);
                } else {
                    let presence = if published == Some(name) { own } else { Presence::Optional };
                    parameters.add(name, Map::new(), Location::of(invocation, name), presence);
                }
            }
            parameters.finish()
        }
        _ => None,
    }
}

/// The parameters in a member of a call. A text may list parameter names, if the member is named after parameters.
fn of_member(key: &str, value: &Value, invocation: &Invocation) -> Option<Value> {
    let mut last = String::new();
    text::each_word(key, |word| word.clone_into(&mut last));
    let is_list = matches!(last.as_str(), "params" | "parameters" | "args" | "arguments" | "fields");
    let Some(names) = value.as_str().filter(|_| is_list).map(names_in) else {
        return lenient(value, invocation);
    };
    let mut parameters = Parameters::default();
    let own = presence_of_names(names.iter().map(|(name, _)| *name));
    for (published, type_name) in names {
        let name = published.trim_end_matches('?');
        let mut schema = Map::new();
        if let Some(type_name) = type_name {
            insert_type(&mut schema, type_name);
        }
        let presence = if published == name { own } else { Presence::Optional };
        parameters.add(name, schema, Location::of(invocation, name), presence);
    }
    parameters.finish()
}

/// Members with the parameters of a call.
const PARAMETER_KEYS: &[&str] = &[
    "inputSchema",
    "input_schema",
    "parameters",
    "params",
    "input",
    "inputs",
    "arguments",
    "args",
    "schema",
    "requestSchema",
    "request_schema",
];
/// Members with parameters whose empty value means that the call takes none. An empty schema, in contrast, accepts any.
const STATEMENT_KEYS: &[&str] = &["parameters", "params", "input", "inputs", "arguments", "args"];
/// Members with the parameters of one part of a request.
const PARAMETER_KEYS_BY_LOCATION: &[(&[&str], Location)] = &[
    (&["path_params", "pathParams", "path_parameters", "pathParameters"], Location::Path),
    (&["query_params", "queryParams", "query_parameters", "queryParameters", "query"], Location::Query),
    (&["header_params", "headerParams", "headers"], Location::Header),
    (
        &[
            "body_params",
            "bodyParams",
            "body_parameters",
            "request_body",
            "requestBody",
            "json_body",
            "body",
            "body_schema",
            "bodySchema",
            "payload",
            "fields",
        ],
        Location::Body,
    ),
];
/// Members with the names of required or optional parameters.
const NAMES_KEYS: &[(&str, Presence)] = &[
    ("required", Presence::Required),
    ("required_fields", Presence::Required),
    ("requiredFields", Presence::Required),
    ("requires", Presence::Required),
    ("required_params", Presence::Required),
    ("requiredParams", Presence::Required),
    ("optional_fields", Presence::Optional),
    ("optionalFields", Presence::Optional),
    ("optional_params", Presence::Optional),
    ("optional", Presence::Optional),
];

/// The parameters of a call, from every member that describes them.
pub(crate) fn of_call(call: &Map<String, Value>, invocation: &Invocation) -> Option<Value> {
    let call = Members::of(call);
    let mut schema = PARAMETER_KEYS.iter().find_map(|key| of_member(key, call.get(key)?, invocation));
    // `inputs` beside `inputSchema` repeat the parameters with further details.
    if call.get("inputSchema").is_some() {
        merge(&mut schema, call.get("inputs").and_then(|inputs| lenient(inputs, invocation)));
    }
    for (keys, location) in PARAMETER_KEYS_BY_LOCATION {
        for (key, value) in keys.iter().filter_map(|key| Some((*key, call.get(key)?))) {
            // Without a body, the fields of a call are query parameters.
            let own = if *location == Location::Body { Location::of(invocation, "") } else { *location };
            let found =
                if own == Location::Header { headers(value) } else { of_member(key, value, invocation) };
            merge(&mut schema, found.map(|found| relocated(found, own)));
        }
    }
    for (key, presence) in NAMES_KEYS {
        let Some(listed) = call.get(key).and_then(Value::as_array) else { continue };
        let mut named = Parameters::default();
        // `requires` may also name credentials.
        let is_parameter = |name: &&str| *key != "requires" || auth::scheme(name) == AuthScheme::Other;
        for name in listed.iter().filter_map(Value::as_str).filter(is_parameter) {
            named.add(name, Map::new(), Location::of(invocation, name), *presence);
        }
        merge(&mut schema, named.finish());
    }
    let states_none = || STATEMENT_KEYS.iter().filter_map(|key| call.get(key)).any(is_empty_statement);
    schema.or_else(|| without_parameters(invocation).filter(|_| states_none()))
}

/// Headers of a call that are parameters. Headers that HTTP or credentials define are not.
fn headers(value: &Value) -> Option<Value> {
    let is_defined = |name: &str| {
        ["authorization", "content-type", "accept", "user-agent", "cookie"]
            .iter()
            .any(|defined| defined.eq_ignore_ascii_case(name))
            || auth::scheme(name) != AuthScheme::Other
    };
    let mut schema = lenient(value, &Invocation::default())?;
    let properties = schema.get_mut("properties")?.as_object_mut()?;
    properties.retain(|name, _| !is_defined(name));
    let is_empty = properties.is_empty();
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name.as_str().is_some_and(|name| !is_defined(name)));
    }
    (!is_empty).then_some(schema)
}

/// Moves parameters to one part of a request. Variables of the path stay in the path.
fn relocated(mut schema: Value, location: Location) -> Value {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        if property.get("x-in").and_then(Value::as_str) != Some(Location::Path.as_x_in()) {
            property.insert("x-in".to_owned(), Value::from(location.as_x_in()));
        }
    }
    schema
}

/// Adds the properties and required names of a schema to another schema, whose existing keywords take precedence.
fn merge(schema: &mut Option<Value>, found: Option<Value>) {
    let (Some(Value::Object(schema)), Some(Value::Object(found))) = (schema.as_mut(), &found) else {
        if schema.is_none() {
            *schema = found;
        }
        return;
    };
    let members = found.get("properties").and_then(Value::as_object);
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    for (name, property) in members.into_iter().flatten() {
        let Some(properties) = properties.as_object_mut() else { break };
        match (properties.get_mut(name), property) {
            // Parameters in two parts of a request are different ones.
            (Some(Value::Object(known)), Value::Object(property))
                if known.get("x-in") == property.get("x-in") =>
            {
                for (keyword, value) in property {
                    known.entry(keyword.as_str()).or_insert_with(|| value.clone());
                }
            }
            (Some(_), _) => {}
            (None, property) => {
                properties.insert(name.clone(), property.clone());
            }
        }
    }
    let Some(added) = found.get("required").and_then(Value::as_array) else { return };
    let required = schema.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Some(required) = required.as_array_mut() {
        let known: HashSet<String> =
            required.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
        required.extend(
            added.iter().filter(|name| name.as_str().is_some_and(|name| !known.contains(name))).cloned(),
        );
    }
}

/// The names in `required` of an object schema, in order.
pub fn required_properties(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

/// The types of JSON Schema.
pub(crate) const TYPES: &[&str] = &["string", "number", "integer", "boolean", "array", "object", "null"];

/// Whether a value has the type of a schema; a schema without a single known type allows any value.
pub(crate) fn has_type(schema: &Map<String, Value>, value: &Value) -> bool {
    if schema.contains_key("x-type") {
        return true;
    }
    schema.get("type").and_then(Value::as_str).is_none_or(|name| is_of_type(value, name))
}

/// Whether a value has a type of JSON Schema. True for unknown types.
pub(crate) fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_parameters_of_every_published_shape() {
        let get = |address: &str| {
            let (method, url_template) = (Some("GET".to_owned()), Some(address.to_owned()));
            Invocation { method, url_template, ..Invocation::default() }
        };
        assert_eq!(
            lenient(&json!(["q", {"name": "n", "type": "integer", "required": true}]), &get("")).unwrap(),
            json!({
                "type": "object", "properties": {"q": {"x-in": "query"}, "n": {"type": "integer", "x-in": "query"}}, "required": ["n"]
            })
        );
        let schema =
            lenient(&json!({"id": "string", "note": "free text"}), &get("https://a.example/{id}")).unwrap();
        assert_eq!(schema["properties"]["id"], json!({"type": "string", "x-in": "path"}));
        assert_eq!(schema["properties"]["note"]["description"], "free text");
    }

    #[test]
    fn reads_parameters_from_every_member_of_a_call() {
        let invocation = Invocation { method: Some("POST".to_owned()), ..Invocation::default() };
        let call = json!({
            "query_params": {"lang": "string"},
            "fields": ["name", {"name": "size", "type": "integer"}, "note?"],
            "required_fields": ["name", "plan"],
            "parameters": {"type": "object", "properties": {"trace": {"type": "string"}}},
            "headers": {"X-Trip": "string", "Authorization": "Bearer <token>"},
            "payload": {"seats": "integer"},
            "required": ["name"],
            "optional": ["colour"],
        });
        let schema = of_call(call.as_object().unwrap(), &invocation).unwrap();
        let located = |name: &str| schema["properties"][name]["x-in"].as_str().unwrap().to_owned();
        assert_eq!(
            ["lang", "name", "size", "note", "plan", "trace", "X-Trip", "seats", "colour"].map(located),
            ["query", "body", "body", "body", "body", "body", "header", "body", "body"]
        );
        assert_eq!(schema["properties"].get("Authorization"), None);
        assert_eq!(schema["required"], json!(["name", "plan"]));
        assert_eq!(schema["properties"]["size"]["type"], "integer");
        let listed = json!({"params": "q, limit?", "input": "text, image"});
        let listed = of_call(listed.as_object().unwrap(), &invocation).unwrap();
        assert_eq!(listed["properties"], json!({"q": {"x-in": "body"}, "limit": {"x-in": "body"}}));
        let none = json!({"name": "x", "description": "d", "params": "see the docs"});
        assert_eq!(of_call(none.as_object().unwrap(), &invocation), None);
    }

    #[test]
    fn variables_of_an_address_are_parameters() {
        let url_template = Some("https://a.example/{kind}/{id}?lat={lat}&unit={unit}".to_owned());
        let invocation = Invocation { url_template, ..Invocation::default() };
        let mut parameters = lenient(&json!({"kind": "string", "lat": "number"}), &invocation);
        add_variables(&mut parameters, &invocation);
        assert_eq!(
            parameters,
            Some(json!({"type": "object", "required": ["id"], "properties": {
                "kind": {"type": "string", "x-in": "path"}, "lat": {"type": "number", "x-in": "query"},
                "id": {"type": "string", "x-in": "path"}, "unit": {"type": "string", "x-in": "query"}}}))
        );
        let url_template = Some("https://a.example/v1/rooms/{id}/release".to_owned());
        let invocation = Invocation { url_template, ..Invocation::default() };
        let mut named = lenient(&json!([{"name": "room_id", "required": true}]), &invocation);
        add_variables(&mut named, &invocation);
        assert_eq!(
            named,
            Some(json!({"type": "object", "required": ["room_id"], "properties": {
                "room_id": {"x-in": "path", "x-name": "id"}}}))
        );
        let mut other = lenient(&json!([{"name": "guest_id", "required": true}]), &invocation);
        add_variables(&mut other, &invocation);
        assert_eq!(other.map(|schema| schema["required"].clone()), Some(json!(["guest_id", "id"])));
        let mut none = None;
        add_variables(
            &mut none,
            &Invocation { url: Some("https://a.example/x".to_owned()), ..Invocation::default() },
        );
        assert_eq!(none, None);
    }
}
