//! The tool definitions of an ARWS manifest (layer 2): an OpenAPI document, or a list of tools with JSON Schemas; and
//! their safety (layer 4).

use serde_json::{Map, Value};

use super::rules;
use crate::document::LinkedDocument;
use crate::draft::{self, Draft};
use crate::format::openapi;
use crate::json;
use crate::model::{
    AuthScheme, Capability, CapabilityKind, Confirmation, ExecutionModel, SafetyClass, Tristate,
};
use crate::object::Object;
use crate::rule::Rule;
use crate::schema::{self, Location};

/// Reports a finding about the tools. It points at the member that names them, since they are in another document.
fn report(rule: &Rule, text: String, draft: &mut Draft<'_>) {
    draft.report(rule, "/tools".to_owned(), text);
}

/// Reads the definitions into the manifest's capabilities.
pub(super) fn read(linked: &LinkedDocument<'_>, draft: &mut Draft<'_>) {
    let first = draft.manifest.capabilities.len();
    let description = openapi::parse_linked(linked.bytes).map(Value::Object);
    if let Some(Value::Object(document)) = &description {
        read_description(document, linked, draft);
    } else {
        let Some(document) = parse(linked.bytes) else {
            return report(&rules::TOOLS_UNREADABLE, rules::TOOLS_UNREADABLE.wrong.to_owned(), draft);
        };
        let Some(tools) = read_list(&document, draft) else {
            return report(&rules::TOOLS_UNKNOWN, rules::TOOLS_UNKNOWN.wrong.to_owned(), draft);
        };
        for tool in tools {
            draft.push(tool);
        }
    }
    let mut capabilities = draft.manifest.capabilities.split_off(first);
    if capabilities.is_empty() {
        report(&rules::TOOLS_EMPTY, rules::TOOLS_EMPTY.wrong.to_owned(), draft);
    }
    for capability in &mut capabilities {
        capability.pointer_document = Some(linked.url.to_string());
        inherit_auth(capability, draft);
        if description.as_ref().is_some_and(|document| announces_approval(document, capability)) {
            capability.safety.confirmation = Confirmation::Required;
            capability.execution.model = ExecutionModel::Async;
        }
        check_tool(capability, draft);
    }
    draft.manifest.capabilities.extend(capabilities);
}

fn parse(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
    json::parse(text).map(|(value, _)| value).ok()
}

fn read_description(document: &Map<String, Value>, linked: &LinkedDocument<'_>, draft: &mut Draft<'_>) {
    let version = document.get("openapi").and_then(Value::as_str).unwrap_or("2.0");
    if !version.starts_with("3.") || version.starts_with("3.0") {
        let text = format!("the tools are defined in OpenAPI {version}");
        report(&rules::TOOLS_OLD, text, draft);
    }
    openapi::merge(document, linked.url, draft);
}

/// A list of tools as MCP servers list them: name, description and the JSON Schema of the input.
fn read_list(document: &Value, draft: &mut Draft<'_>) -> Option<Vec<Capability>> {
    let (list, base) = match document {
        Value::Array(list) => (list, ""),
        Value::Object(map) => (map.get("tools")?.as_array()?, "/tools"),
        _ => return None,
    };
    let mut capabilities = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let Some(map) = value.as_object() else { continue };
        let tool = Object { map, pointer: format!("{base}/{index}") };
        capabilities.push(read_tool(&tool, draft));
    }
    Some(capabilities)
}

fn read_tool(tool: &Object<'_>, draft: &mut Draft<'_>) -> Capability {
    let name = tool.text("name").unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Tool, name, name, tool.pointer.clone());
    capability.title = draft::name(tool.text("title"));
    capability.description = draft::description(tool.text("description"));
    let schema_of = |keys: &[&str]| keys.iter().find_map(|key| tool.object(key));
    capability.parameters = schema_of(&["inputSchema", "input_schema", "parameters"])
        .map(|found| schema::with_location(found.map, Location::Body));
    capability.response =
        schema_of(&["outputSchema", "output_schema"]).map(|found| Value::Object(found.map.clone()));
    capability.invocation.native = Some(name.to_owned()).filter(|name| !name.is_empty());
    capability
}

/// An operation without declared credentials gets the schemes of the manifest. Whether it requires them stays unknown.
fn inherit_auth(capability: &mut Capability, draft: &Draft<'_>) {
    if capability.auth.required != Tristate::Unknown || !capability.auth.schemes.is_empty() {
        return;
    }
    capability.auth.schemes = draft
        .manifest
        .auth
        .iter()
        .take(draft::SCHEMES_PER_CAPABILITY_MAX)
        .map(|entry| entry.scheme)
        .collect();
}

/// Layer 4: a change of state that may answer 202 Accepted waits for an approval.
fn announces_approval(document: &Value, capability: &Capability) -> bool {
    let accepted = document.pointer(&format!("{}/responses/202", capability.pointer)).is_some();
    accepted && !matches!(capability.safety.class, SafetyClass::Read | SafetyClass::Unknown)
}

/// Checks the requirements of layers 2 and 4.
fn check_tool(capability: &mut Capability, draft: &mut Draft<'_>) {
    let name = capability.name.clone();
    if capability.description.is_none() {
        report(&rules::OPERATION_UNDESCRIBED, format!("\"{name}\" has no description"), draft);
    }
    let properties =
        capability.parameters.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let mut takes_key = false;
    for (parameter, schema) in properties.into_iter().flatten() {
        takes_key |= parameter.to_ascii_lowercase().replace(['-', '_'], "").contains("idempotency");
        if schema.get("description").is_none() {
            let text = format!("the parameter `{parameter}` of \"{name}\" has no description");
            report(&rules::PARAMETER_UNDESCRIBED, text, draft);
        }
        if parameter.chars().count() == 1 {
            let text = format!("the parameter `{parameter}` of \"{name}\" has a name of one letter");
            report(&rules::PARAMETER_TERSE, text, draft);
        }
    }
    consequences(capability, takes_key, draft);
}

fn consequences(capability: &mut Capability, takes_key: bool, draft: &mut Draft<'_>) {
    let class = capability.safety.class;
    if matches!(class, SafetyClass::Read | SafetyClass::Unknown) {
        return;
    }
    let name = capability.name.clone();
    if takes_key {
        capability.idempotency.supported = Some(true);
    } else if capability.idempotency.supported != Some(true) {
        report(&rules::WRITE_NOT_IDEMPOTENT, format!("\"{name}\" takes no idempotency key"), draft);
    }
    let authenticated = capability.auth.schemes.iter().any(|scheme| *scheme != AuthScheme::None);
    if !authenticated || capability.auth.required == Tristate::No {
        report(&rules::WRITE_WITHOUT_AUTH, format!("\"{name}\" asks for no authentication"), draft);
    }
    // Layer 4: a person approves destructive tools.
    if class == SafetyClass::Destructive && capability.safety.confirmation == Confirmation::None {
        capability.safety.confirmation = Confirmation::Recommended;
        let text = format!("\"{name}\" does not announce an approval by a person");
        report(&rules::DESTRUCTIVE_WITHOUT_APPROVAL, text, draft);
    }
}
