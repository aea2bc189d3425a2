//! The API reference, generated from the OpenAPI document: operations by tag, their parameters and responses, and a form that sends a
//! request to this server.

use askama::Template;
use serde_json::{Map, Value};

use super::frame::{Frame, Section};
use super::inline_code::inline_code;
use crate::page_context::PageContext;
use crate::text;

/// Tags in the order of the page, most used first.
const TAGS: [&str; 10] = [
    "search",
    "capabilities",
    "sites",
    "manifests",
    "feed",
    "tools",
    "ARD registry",
    "site owners",
    "service",
    "admin",
];
/// Methods in the order of the page.
const METHODS: [&str; 4] = ["get", "post", "put", "delete"];
/// Parameters that are used most, in the order of the form.
const FIRST_PARAMETERS: [&str; 4] = ["q", "limit", "site", "domain"];
/// If an operation has more parameters than this, the form shows only the most used ones and collapses the others.
const PARAMETERS_OPEN_MAX: usize = 6;
/// Maximum size of a displayed schema, in bytes; the OpenAPI document has every schema.
const SCHEMA_BYTES_MAX: usize = 8 * 1_024;
/// Maximum length of a description, in characters.
const WORDS_CHARS_MAX: usize = 600;

struct Parameter {
    id: String,
    name: String,
    place: String,
    kind: String,
    required: bool,
    description: String,
    choices: Vec<String>,
    /// The value that the form has at first, so that it can be sent as it is.
    value: &'static str,
}

struct Response {
    status: String,
    description: String,
    schema: Option<String>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    description: String,
    /// The most used parameters.
    parameters: Vec<Parameter>,
    more_parameters: Vec<Parameter>,
    /// Type and schema of the body.
    body: Option<(String, Option<String>)>,
    responses: Vec<Response>,
    /// Whether the form may send the request: true only for operations that read.
    can_be_tried: bool,
    curl: String,
}

struct Group {
    id: String,
    /// Whether only the operator of a registry can use it.
    is_of_operator: bool,
    name: String,
    description: String,
    operations: Vec<Operation>,
}

#[derive(Template)]
#[template(path = "docs.html")]
pub(crate) struct DocsPage {
    frame: Frame,
    base: String,
    version: String,
    description: String,
    groups: Vec<Group>,
}

/// The page of an OpenAPI document of this server.
pub(crate) fn page(document: &Value, context: &PageContext) -> DocsPage {
    let mut groups: Vec<Group> = Vec::new();
    let described = |name: &str| {
        let tags = document["tags"].as_array().into_iter().flatten();
        tags.filter(|tag| tag["name"] == name).map(|tag| words(&tag["description"])).next()
    };
    groups.extend(TAGS.map(|tag| group(tag, described(tag).unwrap_or_default())));
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let Some(described) = item.get(method) else { continue };
            let tag = words(&described["tags"][0]);
            let operation = operation(document, method, path, described, &context.base);
            match groups.iter_mut().find(|group| group.name == tag) {
                Some(group) => group.operations.push(operation),
                None => groups.push(Group { operations: vec![operation], ..group(&tag, String::new()) }),
            }
        }
    }
    groups.retain(|group| !group.operations.is_empty());
    for group in &mut groups {
        // Read operations come first, because most people look for them.
        group.operations.sort_by_key(|operation| operation.method != "GET");
    }
    DocsPage {
        frame: Frame::new("API reference", Section::Docs).at(context, "/docs").described(
            "Every operation of the agentdex API with its parameters, its responses, and a form to try it.",
        ),
        base: context.base.clone(),
        version: words(&document["info"]["version"]),
        description: inline_code(&words(&document["info"]["description"])),
        groups,
    }
}

fn group(name: &str, description: String) -> Group {
    Group {
        id: slug(name),
        is_of_operator: name == "admin",
        name: name.to_owned(),
        description,
        operations: Vec::new(),
    }
}

fn operation(document: &Value, method: &str, path: &str, described: &Value, base: &str) -> Operation {
    let id = slug(&format!("{method} {path}"));
    let parameters = described["parameters"].as_array().into_iter().flatten();
    let mut parameters: Vec<Parameter> = parameters.map(|one| parameter(document, &id, one)).collect();
    let place = |name: &str| FIRST_PARAMETERS.iter().position(|first| *first == name);
    parameters.sort_by_key(|one| (!one.required, place(&one.name).unwrap_or(FIRST_PARAMETERS.len())));
    let takes_words = parameters.iter().any(|one| one.name == "q");
    let most_used = parameters.iter().filter(|one| one.required || place(&one.name).is_some()).count();
    let open = if parameters.len() > PARAMETERS_OPEN_MAX { most_used.max(1) } else { parameters.len() };
    let more_parameters = parameters.split_off(open.min(parameters.len()));
    let body = described["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
    let body = body.map(|(kind, media)| (kind.clone(), shown(document, &media["schema"])));
    let responses = described["responses"].as_object().into_iter().flatten();
    Operation {
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: words(&described["summary"]),
        description: inline_code(&words(&described["description"])),
        can_be_tried: method == "get" && !path.ends_with("/stream") && !path.starts_with("/admin"),
        curl: curl(method, path, (takes_words, body.as_ref().map(|(kind, _)| kind.as_str())), base),
        body,
        responses: responses.map(|(status, one)| response(document, status, one)).collect(),
        parameters,
        more_parameters,
        id,
    }
}

fn curl(method: &str, path: &str, (takes_words, body): (bool, Option<&str>), base: &str) -> String {
    let method = if method == "get" { String::new() } else { format!("-X {} ", method.to_uppercase()) };
    let body = body.map(|kind| format!(" -H 'content-type: {kind}' -d @body")).unwrap_or_default();
    let query = if takes_words { "?q=book+flight" } else { "" };
    // curl sends several requests for what stands in braces
    let literal = if path.contains('{') { "--globoff " } else { "" };
    format!("curl {literal}{method}'{base}{path}{query}'{body}")
}

fn parameter(document: &Value, operation: &str, described: &Value) -> Parameter {
    let schema = resolved(document, &described["schema"]);
    let name = words(&described["name"]);
    let choices = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    Parameter {
        id: slug(&format!("{operation} {name}")),
        place: words(&described["in"]),
        kind: format!("{}{}", kind(document, schema), bounds(schema)),
        required: described["required"] == Value::Bool(true),
        description: inline_code(&words(&described["description"])),
        value: if name == "q" { "book flight" } else { "" },
        choices: choices.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        name,
    }
}

fn response(document: &Value, status: &str, described: &Value) -> Response {
    let content = described["content"].as_object().and_then(|content| content.values().next());
    Response {
        status: status.to_owned(),
        description: words(&described["description"]),
        schema: content.and_then(|media| shown(document, &media["schema"])),
    }
}

/// The type of a schema as text.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolved(document, schema);
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(document, &schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> =
                names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            names.join(" or ")
        }
        _ if schema.get("oneOf").is_some() => "one of several".to_owned(),
        _ => "any".to_owned(),
    }
}

/// ` from 1 to 100`, if the schema has bounds.
fn bounds(schema: &Value) -> String {
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (None, Some(most)) => format!(" up to {most}"),
        (Some(least), None) if least != 0 => format!(" of at least {least}"),
        _ => String::new(),
    }
}

/// The schema to which a reference in the document points; the schema itself if it is not a reference.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let pointer = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// A schema as indented JSON, with the first level of its references replaced; `None` for an empty one.
fn shown(document: &Value, schema: &Value) -> Option<String> {
    let schema = resolved(document, schema);
    let members: Map<String, Value> = schema.as_object()?.clone();
    let text = serde_json::to_string_pretty(&members).ok()?;
    (members.len() > 1 && text.len() <= SCHEMA_BYTES_MAX).then_some(text)
}

fn words(value: &Value) -> String {
    text::cut(value.as_str().unwrap_or_default(), WORDS_CHARS_MAX)
}

/// A text as the id of an element.
fn slug(text: &str) -> String {
    let mut slug: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    while slug.contains("--") {
        slug = slug.replace("--", "-");
    }
    slug.trim_matches('-').to_owned()
}
