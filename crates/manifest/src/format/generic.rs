//! Service-like JSON that follows no known specification, read by its member names.
//!
//! Reads the first list or map of services and turns each element into a capability. Without a specification there are
//! no findings; the weak detection marks the result.

use serde_json::{Map, Value};

use crate::address;
use crate::draft::{self, Draft};
use crate::format::{endpoint, header, inline};
use crate::model::{Capability, CapabilityKind, Protocol};
use crate::object::{Object, children, texts};
use crate::schema;

/// Members that list the capabilities of a service.
pub(crate) const SERVICE_KEYS: &[&str] = &[
    "actions",
    "tools",
    "capabilities",
    "endpoints",
    "skills",
    "services",
    "flows",
    "intents",
    "interfaces",
    "data",
    "agents",
    "apis",
    "operations",
    "resources",
];

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    read_services(root, draft);
}

/// Reads the first member that lists services, at the root or one level below.
fn read_services(root: &Object<'_>, draft: &mut Draft<'_>) {
    for key in SERVICE_KEYS {
        if let Some(value) = root.value(key) {
            read_service_list(key, value, &root.at(key), draft);
            if !draft.manifest.capabilities.is_empty() {
                return;
            }
        }
    }
    for (_, inner) in root.members() {
        for key in SERVICE_KEYS {
            if let Some(value) = inner.value(key) {
                read_service_list(key, value, &inner.at(key), draft);
            }
        }
        if !draft.manifest.capabilities.is_empty() {
            return;
        }
    }
}

/// Every element of a list or map as a capability.
pub(crate) fn read_service_list(key: &str, value: &Value, pointer: &str, draft: &mut Draft<'_>) {
    for (name, item, pointer) in children(value, pointer) {
        element(key, name, item, pointer, draft);
        if draft.is_full() {
            return;
        }
    }
}

fn element(key: &str, name: Option<&str>, item: &Value, pointer: String, draft: &mut Draft<'_>) {
    match (item, name) {
        (Value::Object(map), _) => {
            let object = Object { map, pointer };
            let capability = from_object(key, name, &object, draft);
            draft.push(capability);
            if key == "agents" {
                inline::read(&object, draft);
            }
        }
        (Value::String(text), Some(name)) => {
            let mut capability = draft.capability(CapabilityKind::Unknown, name, name, pointer);
            if !address_from(text, &mut capability, draft) {
                capability.description = draft::description(Some(text));
            }
            draft.push(capability);
        }
        (Value::String(text), None) if !text.trim().is_empty() => {
            let mut capability = draft.capability(CapabilityKind::Unknown, text, text, pointer);
            address_from(text, &mut capability, draft);
            draft.push(capability);
        }
        (Value::Bool(true), Some(name)) => {
            let capability = draft.capability(CapabilityKind::Unknown, name, name, pointer);
            draft.push(capability);
        }
        (Value::Array(list), Some(name)) => {
            let mut capability = draft.capability(CapabilityKind::Unknown, name, name, pointer);
            capability.tags = draft::tags(list.iter().filter_map(Value::as_str));
            draft.push(capability);
        }
        _ => {}
    }
}

/// The kind that the name of a list implies.
fn kind_of(key: &str) -> CapabilityKind {
    match key {
        "actions" | "intents" => CapabilityKind::Action,
        "tools" => CapabilityKind::Tool,
        "endpoints" | "apis" | "operations" | "services" | "interfaces" => CapabilityKind::Operation,
        "skills" => CapabilityKind::Skill,
        "agents" => CapabilityKind::Agent,
        "flows" => CapabilityKind::Flow,
        "resources" => CapabilityKind::Resource,
        "data" => CapabilityKind::Dataset,
        _ => CapabilityKind::Unknown,
    }
}

/// A capability from an object of unknown shape.
pub(crate) fn from_object(
    key: &str,
    name: Option<&str>,
    object: &Object<'_>,
    draft: &mut Draft<'_>,
) -> Capability {
    let native_id =
        object.text_of(&["id", "name", "key", "slug", "title", "operationId"]).or(name).unwrap_or_default();
    let label = object.text_of(&["name", "title", "label", "display_name"]).or(name).unwrap_or(native_id);
    let mut capability = draft.capability(kind_of(key), native_id, label, object.pointer.clone());
    capability.title = draft::name(object.text("title")).filter(|title| *title != capability.name);
    capability.description = header::description_of(object);
    capability.tags = draft::tags(object.texts("tags"));
    capability.examples = draft::tags(object.texts("examples"));
    if let Some(published) =
        object.text_of(&["endpoint", "url", "path", "href", "uri", "api", "endpoint_url"])
    {
        address_from(published, &mut capability, draft);
    }
    if let Some(method) =
        object.text("method").map(str::to_ascii_uppercase).filter(|method| address::is_method(method))
    {
        capability.invocation.method = Some(method);
        capability.invocation.protocol = Some(Protocol::Http);
    }
    let inputs = ["inputSchema", "input_schema", "parameters", "params", "inputs", "input", "arguments"];
    capability.parameters =
        object.value_of(&inputs).and_then(|value| schema::lenient(value, &capability.invocation));
    let outputs = ["outputSchema", "output_schema", "response", "returns", "outputs", "output"];
    capability.response = object
        .object_of(&outputs)
        .and_then(|o| schema::is_schema(o.map).then(|| Value::Object(Map::clone(o.map))));
    capability.deprecated = object.flag("deprecated").unwrap_or_default();
    if let Some(scopes) = object.value("scopes") {
        capability.auth.scopes = draft::tags(texts(scopes));
    }
    capability
}

/// Sets the address, with or without a method, if the text is one.
fn address_from(published: &str, capability: &mut Capability, draft: &Draft<'_>) -> bool {
    let (method, rest) = address::split_method(published);
    let looks_like = rest.starts_with('/') || rest.contains("://");
    let rest = rest.split_whitespace().next().unwrap_or_default();
    let Some(address) = looks_like.then(|| address::on_origin(draft.base(), rest)).flatten() else {
        return false;
    };
    endpoint::set(capability, address);
    capability.invocation.method = method.map(str::to_owned);
    true
}
