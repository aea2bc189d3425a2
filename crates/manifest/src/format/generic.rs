//! Service-like JSON that follows no known specification, read as far as its words go.
//!
//! It takes the first list or map that looks like an offer and turns each element into a capability. It demands
//! nothing and therefore reports nothing; what it makes is marked by the weak detection.

use serde_json::{Map, Value};

use super::inline;
use crate::address;
use crate::detect::SERVICE_KEYS;
use crate::draft::{self, Draft};
use crate::json::{push_index, push_name};
use crate::model::{Capability, CapabilityKind, Contact, Protocol};
use crate::object::{Object, texts};
use crate::schema;
use crate::text;

/// Reads what such documents have in common.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    describe(root, draft);
    offers(root, draft);
}

/// Name, description, version, provider and contact under their usual names.
pub(crate) fn describe(root: &Object<'_>, draft: &mut Draft<'_>) {
    let about = ["agent", "site", "service", "app", "info"].iter().find_map(|key| root.object(key));
    let inner = about.as_ref().unwrap_or(root);
    let either = |keys: &[&str]| root.text_of(keys).or_else(|| inner.text_of(keys));
    let manifest = &mut draft.manifest;
    manifest.name =
        draft::name(either(&["name", "title", "display_name", "displayName", "site_name", "service"]));
    manifest.description = description_of(root).or_else(|| description_of(inner));
    manifest.document_version = draft::name(either(&["version"]));
    manifest.updated_at = draft::name(either(&[
        "updated_at",
        "updatedAt",
        "updated",
        "last_updated",
        "lastUpdated",
        "generated_at",
    ]));
    manifest.language = draft::name(either(&["language", "lang", "inLanguage"]));
    manifest.tags = draft::tags(root.texts("tags").into_iter().chain(root.texts("keywords")));
    manifest.declared_origin =
        either(&["url", "website", "homepage", "domain", "origin", "site_url"]).map(str::to_owned);
    match root.value("provider").or_else(|| root.value("publisher")).or_else(|| root.value("organization")) {
        Some(Value::String(name)) => manifest.provider.name = draft::name(Some(name)),
        Some(Value::Object(map)) => {
            let provider = Object { map, pointer: root.at("provider") };
            manifest.provider.name = draft::name(provider.text_of(&["name", "organization", "title"]));
            manifest.provider.url = provider.text_of(&["url", "website", "homepage"]).map(str::to_owned);
        }
        _ => {}
    }
    manifest.contact =
        root.value("contact").or_else(|| inner.value("contact")).map(contact).unwrap_or_default();
}

/// A contact of any shape: an address, or an object with addresses.
pub(crate) fn contact(value: &Value) -> Contact {
    let mut contact = Contact::default();
    match value {
        Value::String(text) => sort_contact(&mut contact, text),
        Value::Object(map) => {
            map.values().filter_map(Value::as_str).for_each(|text| sort_contact(&mut contact, text));
        }
        Value::Array(list) => {
            list.iter().filter_map(Value::as_str).for_each(|text| sort_contact(&mut contact, text));
        }
        _ => {}
    }
    contact
}

fn sort_contact(contact: &mut Contact, text: &str) {
    let text = text::capped(text.trim(), draft::NAME_CHARS_MAX);
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let slot = if crate::check::is_email(address) {
        &mut contact.email
    } else if text.starts_with("https://") || text.starts_with("http://") {
        &mut contact.url
    } else {
        &mut contact.other
    };
    if slot.is_none() && !text.is_empty() {
        *slot = Some(address.to_owned());
    }
}

fn description_of(object: &Object<'_>) -> Option<String> {
    let text = object.text_of(&["description", "summary", "purpose", "intent", "about", "tagline"]);
    draft::description(text).or_else(|| {
        let nested = object.object("description")?;
        draft::description(nested.text_of(&["long", "full", "what", "short", "text"]))
    })
}

/// The first member that offers something, inside a wrapper if need be.
fn offers(root: &Object<'_>, draft: &mut Draft<'_>) {
    for key in SERVICE_KEYS {
        if let Some(value) = root.value(key) {
            offer(key, value, &root.at(key), draft);
            if !draft.manifest.capabilities.is_empty() {
                return;
            }
        }
    }
    for (_, inner) in root.members() {
        for key in SERVICE_KEYS {
            if let Some(value) = inner.value(key) {
                offer(key, value, &inner.at(key), draft);
            }
        }
        if !draft.manifest.capabilities.is_empty() {
            return;
        }
    }
}

/// Every element of a list or map as a capability.
pub(crate) fn offer(key: &str, value: &Value, pointer: &str, draft: &mut Draft<'_>) {
    match value {
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                let mut pointer = pointer.to_owned();
                push_index(&mut pointer, index);
                element(key, None, item, pointer, draft);
                if draft.is_full() {
                    return;
                }
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                let mut pointer = pointer.to_owned();
                push_name(&mut pointer, name);
                element(key, Some(name), item, pointer, draft);
                if draft.is_full() {
                    return;
                }
            }
        }
        _ => {}
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

/// What kind of thing a list's name promises.
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
    capability.description = description_of(object);
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
    let method = capability.invocation.method.as_deref();
    capability.parameters = inputs
        .iter()
        .find_map(|key| object.value(key))
        .and_then(|value| schema::loose(value, method, capability.invocation.endpoint()));
    let outputs = ["outputSchema", "output_schema", "response", "returns", "outputs", "output"];
    capability.response = outputs
        .iter()
        .find_map(|key| object.object(key))
        .and_then(|o| schema::is_schema(o.map).then(|| Value::Object(Map::clone(o.map))));
    capability.deprecated = object.flag("deprecated").unwrap_or_default();
    if let Some(scopes) = object.value("scopes") {
        capability.auth.scopes = draft::tags(texts(scopes));
    }
    capability
}

/// Takes an address, with or without its method, if the text is one.
fn address_from(published: &str, capability: &mut Capability, draft: &Draft<'_>) -> bool {
    let (method, rest) = address::split_method(published);
    let looks_like = rest.starts_with('/') || rest.contains("://");
    let rest = rest.split_whitespace().next().unwrap_or_default();
    let Some(address) = looks_like.then(|| address::on_origin(draft.base(), rest)).flatten() else {
        return false;
    };
    set_address(capability, address);
    capability.invocation.method = method.map(str::to_owned);
    true
}

/// Takes the address of a string field, resolved against the served origin, and reports one that is unusable.
pub(crate) fn endpoint(
    published: &Object<'_>,
    key: &str,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    let Some(text) = published.text(key) else { return };
    if let Some(address) = draft.on_origin(text, &published.at(key)) {
        set_address(capability, address);
    }
}

/// Stores an address where its kind belongs.
pub(crate) fn set_address(capability: &mut Capability, address: address::Address) {
    let is_socket = address.as_str().starts_with("ws");
    capability.invocation.protocol = Some(if is_socket { Protocol::WebSocket } else { Protocol::Http });
    match address {
        address::Address::Fixed(url) => capability.invocation.url = Some(url),
        address::Address::Template(template) => capability.invocation.url_template = Some(template),
    }
}
