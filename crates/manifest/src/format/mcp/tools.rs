//! Tools of MCP servers in files of any shape: objects as in `tools/list`, names, a map from name to description, groups.
//!
//! Each tool is one capability, called through the server, which is never contacted. Annotations are declarations (MCP
//! 2025-11-25 `ToolAnnotations`) and take precedence over inference.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::docstring;
use crate::address;
use crate::draft::{self, Draft};
use crate::format::{endpoint, lenient, link_class};
use crate::json::push_name;
use crate::model::{Capability, CapabilityKind, Invocation, Protocol, SafetyClass, TypeSource};
use crate::object::{Object, children};
use crate::{safety, schema, text};

/// Deepest nesting of groups of tools.
const NESTING_MAX: usize = 3;
/// Members next to groups of tools that describe the list.
const REMARKS: &[&str] = &["note", "notes", "comment", "description", "summary"];

/// Reads the value of a `tools` member. `server` is the address of the server, if it is declared.
pub(crate) fn read(tools: &Value, pointer: &str, server: Option<&str>, draft: &mut Draft<'_>) {
    read_nested(tools, pointer, server, 0, draft);
}

/// Whether a map contains a described tool for each name, and not the features of a server: `{"find": {"description": …}}`.
pub(super) fn is_map_of_tools(tools: &Value) -> bool {
    let is_tool = |tool: &Value| {
        ["description", "inputSchema", "input_schema"]
            .iter()
            .any(|key| tool.get(key).is_some_and(|v| !v.is_boolean()))
    };
    tools.as_object().is_some_and(|map| !map.is_empty() && map.values().all(is_tool))
}

fn read_nested(tools: &Value, pointer: &str, server: Option<&str>, depth: usize, draft: &mut Draft<'_>) {
    if depth > NESTING_MAX {
        return;
    }
    let has_groups = tools.as_object().is_some_and(|map| map.values().any(Value::is_array));
    for (name, item, pointer) in children(tools, pointer) {
        if name.is_none() && draft.is_full() {
            return;
        }
        if has_groups && item.is_string() && name.is_some_and(|name| REMARKS.contains(&name)) {
            continue;
        }
        let first = draft.manifest.capabilities.len();
        read_item(item, name, &pointer, server, depth, draft);
        if let Some(class) = name.filter(|_| item.is_array()).and_then(effect_of_group) {
            let tools = draft.manifest.capabilities.iter_mut().skip(first);
            for tool in tools.filter(|tool| tool.safety.source != TypeSource::Declared) {
                tool.safety = safety::declared(class);
            }
        }
    }
}

/// The effect of the tools in a group, by its name: `{"read": […], "write": […]}`.
fn effect_of_group(name: &str) -> Option<SafetyClass> {
    match name {
        "read" | "read_only" | "readOnly" | "readonly" | "read-only" => Some(SafetyClass::Read),
        "write" | "read_write" | "readWrite" => Some(SafetyClass::Write),
        _ => None,
    }
}

fn read_item(
    item: &Value,
    key: Option<&str>,
    pointer: &str,
    server: Option<&str>,
    depth: usize,
    draft: &mut Draft<'_>,
) {
    match item {
        Value::Object(map) => {
            let grouped = ["tools", "items"].iter().find_map(|name| Some((*name, map.get(*name)?)));
            if let Some((name, inner @ Value::Array(_))) = grouped {
                let mut pointer = pointer.to_owned();
                push_name(&mut pointer, name);
                return read_nested(inner, &pointer, server, depth + 1, draft);
            }
            read_tool(&Object::new(map, pointer.to_owned()), key, server, draft);
        }
        Value::Array(_) => read_nested(item, pointer, server, depth + 1, draft),
        // `dynamic` means that only the server knows the list (SEP-1649).
        Value::String(text) if key.is_none() && text.trim() == "dynamic" => {}
        Value::String(text) => {
            let (name, described) = match key {
                Some(key) => (key, Some(text.as_str())),
                None => (text.as_str(), None),
            };
            let mut capability = begin(name, pointer, server, draft);
            capability.description = draft::description(described);
            draft.push(capability);
        }
        _ => {}
    }
}

/// A tool that is published only by name.
pub(super) fn read_name(name: &str, pointer: &str, server: Option<&str>, draft: &mut Draft<'_>) {
    let capability = begin(name, pointer, server, draft);
    draft.push(capability);
}

fn begin(name: &str, pointer: &str, server: Option<&str>, draft: &mut Draft<'_>) -> Capability {
    let mut capability = draft.capability(CapabilityKind::Tool, name, "", pointer.to_owned());
    capability.invocation.protocol = Some(Protocol::Mcp);
    capability.invocation.native = Some(name.trim().to_owned());
    capability.invocation.url = server.map(str::to_owned);
    capability
}

fn read_tool(tool: &Object<'_>, key: Option<&str>, server: Option<&str>, draft: &mut Draft<'_>) {
    let Some(name) = tool.text_of(&["name", "id", "tool"]).or(key) else { return };
    let mut capability = begin(name, &tool.pointer, server, draft);
    let annotations = tool.object("annotations");
    let annotated = annotations.as_ref().and_then(|annotations| annotations.text("title"));
    capability.title = draft::name(tool.text_of(&["title", "displayName", "display_name"]).or(annotated));
    capability.description = draft::description(tool.text_of(&["description", "summary", "purpose"]));
    capability.tags = draft::tags(tool.texts("tags").into_iter().chain(tool.text("category")));
    lenient::read_prices(tool, &mut capability);
    capability.published.extend(payable_id(tool));
    capability.deprecated = tool.flag("deprecated") == Some(true);
    if server.is_none() {
        own_endpoint(tool, draft, &mut capability);
    }
    // The URL of the server has no variables of the tool.
    let own = Invocation { url: None, ..capability.invocation.clone() };
    let described = tool.text_of(&["description", "summary"]);
    capability.parameters = schema::of_call(tool.map, &own)
        .or_else(|| docstring::parameters(described?, &own))
        .or_else(|| docstring::named(described?, &own));
    let outputs = ["outputSchema", "output_schema", "returns", "output", "response"];
    capability.response = outputs.iter().find_map(|key| lenient::response(tool.value(key)?));
    if let Some(annotations) = &annotations {
        annotate(annotations.map, &mut capability);
    }
    lenient::read_own_auth(tool, &mut capability.auth);
    let over_http = server.and_then(|server| over_http(tool, &capability, server, draft));
    draft.push(capability);
    if let Some(call) = over_http.filter(|_| !draft.is_full()) {
        draft.push(call);
    }
}

/// The id with which a caller pays for a tool, and the name of its member.
pub(crate) fn payable_id(tool: &Object<'_>) -> Option<(String, Value)> {
    let keys = ["endpoint_id", "endpointId", "x-402-endpoint-id", "x402_endpoint_id"];
    let (key, id) = keys.into_iter().find_map(|key| Some((key, tool.text(key)?)))?;
    Some((key.to_owned(), Value::from(text::capped(id, draft::NAME_CHARS_MAX))))
}

/// The call of a tool over HTTP, if the tool has its own address in addition to the address of the server.
fn over_http(
    tool: &Object<'_>,
    stated: &Capability,
    server: &str,
    draft: &mut Draft<'_>,
) -> Option<Capability> {
    let call = own_call(tool)?;
    // The page of a tool is not a call, and neither is the server's own address.
    let is_call = call.method.is_some() || call.key != "url";
    if !is_call || draft.origin_url(&call.address).is_none_or(|address| address == server) {
        return None;
    }
    let name = stated.invocation.native.as_deref()?;
    // Tools are called by name, so an id next to the name belongs to the endpoint.
    let id = tool.text("id").filter(|id| *id != name);
    let label = id.map_or("", |_| stated.name.as_str());
    let mut capability =
        draft.capability(CapabilityKind::Operation, id.unwrap_or(name), label, tool.pointer.clone());
    own_endpoint(tool, draft, &mut capability);
    capability.invocation.endpoint()?;
    capability.description.clone_from(&stated.description);
    capability.price.clone_from(&stated.price);
    capability.other_prices.clone_from(&stated.other_prices);
    capability.published.clone_from(&stated.published);
    capability.auth.clone_from(&stated.auth);
    capability.deprecated = stated.deprecated;
    capability.parameters = schema::of_call(tool.map, &capability.invocation);
    Some(capability)
}

/// Reads the HTTP address of a tool that is not called through a server.
fn own_endpoint(tool: &Object<'_>, draft: &mut Draft<'_>, capability: &mut Capability) {
    let Some(call) = own_call(tool) else { return };
    let Some(address) = draft.on_origin(&call.address, &tool.at(call.key)) else { return };
    match call.method {
        Some(method) => endpoint::set_call(capability, &method, address),
        None => endpoint::set(capability, address),
    }
}

/// The call of a tool that has its own address.
struct OwnCall<'v> {
    /// The member with the address.
    key: &'static str,
    method: Option<String>,
    address: Cow<'v, str>,
}

fn own_call<'v>(tool: &Object<'v>) -> Option<OwnCall<'v>> {
    let key = ["endpoint", "url", "path", "rest"].into_iter().find(|key| tool.text(key).is_some())?;
    let (prefixed, published) = address::split_method(tool.text(key)?);
    let method = tool.text_of(&["method", "http_method"]).map(str::to_ascii_uppercase);
    let method = method.or_else(|| prefixed.map(str::to_owned)).filter(|method| address::is_method(method));
    let is_address = published.starts_with('/') || published.contains("://");
    let completed = (!is_address).then(|| address::completed(published)).flatten();
    let address = completed.map_or(Cow::Borrowed(published), Cow::Owned);
    let is_document = link_class::classify(&address).follow.is_some() && method.is_none();
    (matches!(address, Cow::Owned(_)) || is_address)
        .then_some(OwnCall { key, method, address })
        .filter(|_| !is_document)
}

/// Whether the elements of a list of tools have their own addresses. The home page next to them is then not a server.
pub(super) fn have_addresses(tools: &Value) -> bool {
    let has_address = |(_, tool, _): (Option<&str>, &Value, String)| {
        tool.as_object().is_some_and(|map| own_call(&Object::root(map)).is_some())
    };
    children(tools, "").take(TOOLS_CHECKED_MAX).any(has_address)
}

/// Maximum number of tools of one list that are searched for an address.
const TOOLS_CHECKED_MAX: usize = 500;

/// Sets the declared effect of a tool.
pub(crate) fn annotate(annotations: &Map<String, Value>, capability: &mut Capability) {
    let hint = |name: &str| annotations.get(name).and_then(Value::as_bool);
    let class = match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => Some(SafetyClass::Read),
        (_, Some(true)) => Some(SafetyClass::Destructive),
        (Some(false), _) | (None, Some(false)) => Some(SafetyClass::Write),
        (None, None) => None,
    };
    if let Some(class) = class {
        capability.safety = safety::declared(class);
    }
    capability.idempotency.supported = hint("idempotentHint").or(capability.idempotency.supported);
}
