//! Resources, resource templates and prompts of MCP servers.
//!
//! They are not tools: `resources/read` and `prompts/get` are in the envelope of the call, and no tool name is set. A resource with an
//! https URI can be fetched directly (MCP 2025-11-25, common URI schemes).

use serde_json::{Value, json};

use crate::address::Address;
use crate::draft::{self, Draft};
use crate::model::{Capability, CapabilityKind, Invocation, Protocol};
use crate::object::{Object, children};
use crate::schema;

const RESOURCE_KEYS: &[&str] = &["resources", "resourceTemplates", "resource_templates"];
/// Members that list the pages of an application in the server (MCP Apps).
const PAGE_KEYS: &[&str] = &["uiResources", "ui_resources"];
/// Maximum number of pages of one server that are read.
const PAGES_MAX: usize = 200;

/// Reads the lists at the root, or in the member with the description of the server.
pub(super) fn read(root: &Object<'_>, server: Option<&str>, draft: &mut Draft<'_>) {
    let inner = ["capabilities", "mcp", "server"].into_iter().filter_map(|key| root.object(key));
    for object in std::iter::once(root.clone()).chain(inner) {
        for key in RESOURCE_KEYS {
            each(&object, key, draft, |item, draft| resource(item, server, draft));
        }
        each(&object, "prompts", draft, |item, draft| prompt(item, server, draft));
    }
    read_pages(root, server, draft);
}

/// One element of a list: the name of the member in a map, the value and its pointer.
type Item<'v> = (Option<&'v str>, &'v Value, String);

fn each<'d>(
    object: &Object<'_>,
    key: &str,
    draft: &mut Draft<'d>,
    read: impl Fn(&Item<'_>, &mut Draft<'d>) -> Option<Capability>,
) {
    let Some(value) = object.value(key) else { return };
    // `{"subscribe": true}` states a feature of the protocol and lists nothing.
    let is_item = |value: &Value| value.is_object() || value.is_string();
    let is_list = value.is_array() || value.as_object().is_some_and(|map| map.values().all(is_item));
    for item in children(value, &object.at(key)).filter(|_| is_list) {
        if draft.is_full() {
            return;
        }
        if let Some(capability) = read(&item, draft) {
            draft.push(capability);
        }
    }
}

/// Reads the pages of applications, at the root or in the metadata. Pages that are also resources are already known.
fn read_pages(root: &Object<'_>, server: Option<&str>, draft: &mut Draft<'_>) {
    let described = ["metadata", "_meta", "extensions"].into_iter().filter_map(|key| root.object(key));
    let blocks: Vec<Object<'_>> = std::iter::once(root.clone()).chain(described).collect();
    let inner = blocks.iter().flat_map(Object::members).map(|(_, inner)| inner);
    let holders: Vec<Object<'_>> = blocks.iter().cloned().chain(inner).collect();
    let listed = holders.iter().flat_map(|holder| {
        PAGE_KEYS.iter().filter_map(|key| Some(children(holder.value(key)?, &holder.at(key))))
    });
    for item in listed.flatten().take(PAGES_MAX) {
        let uri = item.1.as_str().or_else(|| item.1.get("uri")?.as_str());
        let Some(uri) = uri.filter(|uri| uri.starts_with("ui://")) else { continue };
        if draft.is_full() || draft.manifest.capabilities.iter().any(|known| known.native_id == uri) {
            continue;
        }
        if let Some(capability) = resource(&item, server, draft) {
            draft.push(capability);
        }
    }
}

fn resource(item: &Item<'_>, server: Option<&str>, draft: &mut Draft<'_>) -> Option<Capability> {
    let (name, value, pointer) = item;
    let object = value.as_object().map(|map| Object::new(map, pointer.clone()));
    let text_of = |keys: &[&str]| object.as_ref().and_then(|object| object.text_of(keys));
    // In a map from name to text, the text is the URI or a description.
    let listed = listed_name(value).filter(|text| name.is_none() || text.contains("://"));
    let described = value.as_str().filter(|_| name.is_some() && listed.is_none());
    let uri = text_of(&["uri", "uriTemplate", "uri_template", "url"]).or(listed);
    let label = text_of(&["name", "title", "id"]).or(*name).or(uri)?;
    let id = uri.unwrap_or(label);
    let mut capability = draft.capability(CapabilityKind::Resource, id, label, pointer.clone());
    capability.title = draft::name(text_of(&["title"])).filter(|title| *title != capability.name);
    capability.description = draft::description(text_of(&["description", "summary"]).or(described));
    capability.tags = draft::tags(text_of(&["mimeType", "mime_type"]));
    if let Some(address) = uri.filter(|uri| uri.starts_with("https://") && !uri.contains('{')) {
        capability.invocation.protocol = Some(Protocol::Http);
        capability.invocation.method = Some("GET".to_owned());
        capability.invocation.url = draft.on_origin(address, pointer).map(Address::into_string);
    } else {
        capability.invocation = resource_call(server, id);
    }
    Some(capability)
}

fn prompt(item: &Item<'_>, server: Option<&str>, draft: &mut Draft<'_>) -> Option<Capability> {
    let (key, value, pointer) = item;
    let object = value.as_object().map(|map| Object::new(map, pointer.clone()));
    let text_of = |keys: &[&str]| object.as_ref().and_then(|object| object.text_of(keys));
    let name = text_of(&["name", "id"]).or(*key).or_else(|| listed_name(value))?;
    let mut capability = draft.capability(CapabilityKind::Content, name, "", pointer.clone());
    capability.title = draft::name(text_of(&["title"]));
    let described = value.as_str().filter(|_| key.is_some());
    capability.description = draft::description(text_of(&["description", "summary"]).or(described));
    capability.invocation = prompt_call(server, name);
    let own = Invocation::default();
    capability.parameters = object.as_ref().and_then(|object| schema::of_call(object.map, &own));
    Some(capability)
}

/// A name in a list. `dynamic` means that only the server knows the list (SEP-1649).
fn listed_name(value: &Value) -> Option<&str> {
    value.as_str().map(str::trim).filter(|name| !name.is_empty() && *name != "dynamic")
}

/// The call that reads a resource. A resource with a name only is at its server, which knows the URI.
pub(crate) fn resource_call(server: Option<&str>, uri: &str) -> Invocation {
    let call = through(server, json!({"method": "resources/read", "params": {"uri": uri}}));
    // RFC 3986 §3: a URI begins with its scheme.
    if uri.contains(':') { call } else { Invocation { envelope: None, ..call } }
}

/// The call that gets a prompt.
pub(crate) fn prompt_call(server: Option<&str>, name: &str) -> Invocation {
    through(server, json!({"method": "prompts/get", "params": {"name": name, "arguments": "{parameters}"}}))
}

fn through(server: Option<&str>, envelope: Value) -> Invocation {
    Invocation {
        protocol: Some(Protocol::Mcp),
        url: server.map(str::to_owned),
        envelope: Some(envelope),
        ..Invocation::default()
    }
}
