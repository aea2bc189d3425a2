//! Tools of MCP servers as files list them, at whatever shape: objects as `tools/list` returns them, names alone, a map
//! from name to description, groups.
//!
//! Decides one capability for each tool, called through the server. The file is a declaration; the server is never asked.
//! Annotations are the publisher's word (MCP 2025-11-25 `ToolAnnotations`) and win over inference.

use serde_json::{Map, Value};

use crate::address;
use crate::draft::{self, Draft};
use crate::format::{endpoint, loose};
use crate::json::push_name;
use crate::model::{Capability, CapabilityKind, Invocation, Protocol, SafetyClass, Tristate};
use crate::object::{Object, children};
use crate::{safety, schema};

/// Groups within groups of tools that are read.
const NESTING_MAX: usize = 3;

/// Reads the value of a `tools` member. `server` is where the tools are called, when the file says so.
pub(crate) fn read(tools: &Value, pointer: &str, server: Option<&str>, draft: &mut Draft<'_>) {
    read_nested(tools, pointer, server, 0, draft);
}

fn read_nested(tools: &Value, pointer: &str, server: Option<&str>, depth: usize, draft: &mut Draft<'_>) {
    if depth > NESTING_MAX {
        return;
    }
    for (name, item, pointer) in children(tools, pointer) {
        if name.is_none() && draft.is_full() {
            return;
        }
        read_item(item, name, &pointer, server, depth, draft);
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
            read_tool(&Object { map, pointer: pointer.to_owned() }, key, server, draft);
        }
        Value::Array(_) => read_nested(item, pointer, server, depth + 1, draft),
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
    capability.price =
        ["price", "cost", "pricing", "payment"].iter().find_map(|key| loose::price(tool.value(key)?));
    capability.deprecated = tool.flag("deprecated") == Some(true);
    own_endpoint(tool, draft, &mut capability);
    // The URL of the server has no variables of the tool.
    let own = Invocation { url: None, ..capability.invocation.clone() };
    let inputs = [
        "inputSchema",
        "input_schema",
        "parameters",
        "params",
        "input",
        "inputs",
        "arguments",
        "args",
        "schema",
    ];
    capability.parameters = inputs.iter().find_map(|key| schema::lenient(tool.value(key)?, &own));
    let outputs = ["outputSchema", "output_schema", "returns", "output", "response"];
    capability.response = outputs.iter().find_map(|key| loose::response(tool.value(key)?));
    for (key, value) in
        [("auth_required", true), ("requires_auth", true), ("authRequired", true), ("public", false)]
    {
        if let Some(flag) = tool.flag(key) {
            capability.auth.required = Tristate::from_option(Some(flag == value));
        }
    }
    if let Some(annotations) = &annotations {
        annotate(annotations.map, &mut capability);
    }
    draft.push(capability);
}

/// A tool that is also offered over plain HTTP keeps the address that a caller without MCP can use, when the file names
/// no server.
fn own_endpoint(tool: &Object<'_>, draft: &mut Draft<'_>, capability: &mut Capability) {
    let key = ["endpoint", "url", "path", "rest"].into_iter().find(|key| tool.text(key).is_some());
    let Some((key, published)) = key.and_then(|key| Some((key, tool.text(key)?))) else { return };
    let (prefixed, published) = address::split_method(published);
    let method = tool.text_of(&["method", "http_method"]).map(str::to_ascii_uppercase);
    let Some(method) = method.or_else(|| prefixed.map(str::to_owned)) else { return };
    let is_address = published.starts_with('/') || published.contains("://");
    if capability.invocation.url.is_none()
        && is_address
        && address::is_method(&method)
        && let Some(address) = draft.on_origin(published, &tool.at(key))
    {
        endpoint::set_call(capability, &method, address);
    }
}

/// What the publisher says a tool does to the world.
fn annotate(annotations: &Map<String, Value>, capability: &mut Capability) {
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
    capability.idempotency.supported = hint("idempotentHint");
}
