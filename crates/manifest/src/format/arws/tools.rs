//! The tool definitions of an ARWS manifest (layer 2): an OpenAPI document, or a list of tools with JSON Schemas; and
//! their safety (layer 4).

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules;
use crate::budget::{self, Limits};
use crate::document::LinkedDocument;
use crate::draft::{self, Draft};
use crate::format::mcp::annotate;
use crate::format::openapi;
use crate::json::{self, push_index, push_name};
use crate::meta_schema::{self, SchemaFlaw};
use crate::model::{
    self, AuthScheme, Capability, CapabilityKind, Confirmation, ExecutionModel, SafetyClass, Tristate,
};
use crate::object::Object;
use crate::safety;
use crate::schema::{self, Location};

/// Reads the definitions into the manifest's capabilities. Findings about the whole document point at the member of the manifest that names
/// it; other findings point into the document.
pub(super) fn read(linked: &LinkedDocument<'_>, draft: &mut Draft<'_>) {
    let first = draft.manifest.capabilities.len();
    let description = openapi::parse_linked(linked.bytes).map(Value::Object);
    if let Some(Value::Object(document)) = &description {
        draft.within_linked(linked.url, |draft| read_description(document, linked, draft));
    } else {
        let Some(document) = parse(linked.bytes) else {
            return draft.report_rule(&rules::TOOLS_UNREADABLE, "/tools".to_owned());
        };
        let Some((list, base)) = list_of(&document) else {
            return draft.report_rule(&rules::TOOLS_UNKNOWN, "/tools".to_owned());
        };
        draft.within_linked(linked.url, |draft| read_list(list, base, draft));
    }
    if draft.manifest.capabilities.len() == first {
        draft.report_rule(&rules::TOOLS_EMPTY, "/tools".to_owned());
    }
    draft.within_linked(linked.url, |draft| {
        complete(first, description.as_ref(), draft);
    });
}

/// Reads tools in the manifest itself, which should only contain their address.
pub(super) fn read_inline(root: &Object<'_>, draft: &mut Draft<'_>) {
    let first = draft.manifest.capabilities.len();
    read_list(root.list("tools").unwrap_or_default(), "/tools", draft);
    complete(first, None, draft);
}

/// Completes and checks the capabilities from `first` on.
fn complete(first: usize, description: Option<&Value>, draft: &mut Draft<'_>) {
    let mut capabilities = draft.manifest.capabilities.split_off(first);
    for capability in &mut capabilities {
        inherit_auth(capability, draft);
        if description.is_some_and(|document| announces_approval(document, capability)) {
            capability.safety.confirmation = Confirmation::Required;
            capability.execution.model = ExecutionModel::Async;
        }
        check_tool(capability, description, draft);
    }
    draft.manifest.capabilities.extend(capabilities);
}

fn parse(bytes: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}');
    let limits = Limits { nodes: budget::MANIFEST_NODES_MAX, ..budget::DOCUMENT };
    let outline = budget::check_json(text.as_bytes(), limits).ok()?.outline;
    json::parse(text, &outline).map(|(value, _)| value).ok()
}

fn read_description(document: &Map<String, Value>, linked: &LinkedDocument<'_>, draft: &mut Draft<'_>) {
    let version = document.get("openapi").and_then(Value::as_str).unwrap_or("2.0");
    if !version.starts_with("3.") || version.starts_with("3.0") {
        let key = if document.contains_key("openapi") { "/openapi" } else { "/swagger" };
        let text = format!("the tools are defined in OpenAPI {version}");
        draft.report(&rules::TOOLS_OLD, key.to_owned(), text);
    }
    openapi::merge(document, linked.url, draft);
}

/// A list of tools as MCP servers list them, and its pointer.
fn list_of(document: &Value) -> Option<(&[Value], &'static str)> {
    match document {
        Value::Array(list) => Some((list, "")),
        Value::Object(map) => Some((map.get("tools")?.as_array()?, "/tools")),
        _ => None,
    }
}

/// Reads tools with a name, a description and the JSON Schema of their input.
fn read_list(list: &[Value], base: &str, draft: &mut Draft<'_>) {
    let mut names = HashSet::new();
    for (index, value) in list.iter().enumerate() {
        if draft.is_full() {
            return;
        }
        let mut pointer = base.to_owned();
        push_index(&mut pointer, index);
        let Some(tool) = draft.object(value, pointer, &rules::TOOL_MISTYPED) else { continue };
        if tool.text("name").is_some_and(|name| !names.insert(name)) {
            draft.report_rule(&rules::TOOL_DUPLICATE, tool.at("name"));
        }
        let capability = read_tool(&tool, draft);
        draft.push(capability);
    }
}

/// Spellings of the members with the schemas of a tool.
const INPUTS: [&str; 3] = ["inputSchema", "input_schema", "parameters"];
const OUTPUTS: [&str; 2] = ["outputSchema", "output_schema"];

fn read_tool(tool: &Object<'_>, draft: &mut Draft<'_>) -> Capability {
    let name = tool.text("name").unwrap_or_default();
    draft.check(tool, &rules::TOOL);
    if !INPUTS.iter().any(|key| tool.map.contains_key(*key)) {
        draft.report_rule(&rules::TOOL_WITHOUT_SCHEMA, tool.pointer.clone());
    }
    let mut capability = draft.capability(CapabilityKind::Tool, name, name, tool.pointer.clone());
    capability.title = draft::name(tool.text("title"));
    capability.description = draft::description(tool.text("description"));
    capability.parameters =
        schema_of(tool, &INPUTS, draft).map(|found| schema::with_location(found.map, Location::Body));
    capability.response = schema_of(tool, &OUTPUTS, draft).map(|found| Value::Object(found.map.clone()));
    capability.invocation.native = Some(name.to_owned()).filter(|name| !name.is_empty());
    if let Some(annotations) = tool.object("annotations") {
        annotate(annotations.map, &mut capability);
    }
    capability
}

/// A schema of a tool; reported if it is not a JSON Schema.
fn schema_of<'v>(tool: &Object<'v>, keys: &[&str], draft: &mut Draft<'_>) -> Option<Object<'v>> {
    let (key, found) = keys.iter().find_map(|key| Some((key, tool.object(key)?)))?;
    if let Some(SchemaFlaw { pointer, text }) = meta_schema::flaw(tool.value(key)?) {
        let text = format!("`{key}` is not a JSON Schema: {text}");
        draft.report(&rules::TOOL_SCHEMA, format!("{}{pointer}", found.pointer), text);
    }
    Some(found)
}

/// Applies the credentials of the manifest to operations that declare none, because its `auth` states what agents need.
fn inherit_auth(capability: &mut Capability, draft: &Draft<'_>) {
    if capability.auth.required != Tristate::Unknown || !capability.auth.schemes.is_empty() {
        return;
    }
    capability.auth.schemes = draft
        .manifest
        .auth
        .iter()
        .take(model::SCHEMES_PER_CAPABILITY_MAX)
        .map(|entry| entry.scheme)
        .collect();
    let required = match capability.auth.schemes.as_slice() {
        [] => return,
        [AuthScheme::None] => Tristate::No,
        _ => Tristate::Yes,
    };
    capability.auth.required = required;
    capability.inferred.insert("auth".to_owned(), "arws.auth-of-the-manifest".to_owned());
}

/// Layer 4: whether an operation that changes state may respond with 202 Accepted, because it waits for an approval.
fn announces_approval(document: &Value, capability: &Capability) -> bool {
    let accepted = document.pointer(&format!("{}/responses/202", capability.pointer)).is_some();
    accepted && !matches!(capability.safety.class, SafetyClass::Read | SafetyClass::Unknown)
}

/// Checks the requirements of layers 2 and 4. `description` is the document, if it is an OpenAPI description.
fn check_tool(capability: &mut Capability, description: Option<&Value>, draft: &mut Draft<'_>) {
    let name = capability.name.clone();
    // in OpenAPI, the title is the summary of the operation
    if capability.description.is_none() && capability.title.is_none() {
        let text = format!("\"{name}\" has no description");
        draft.report(&rules::OPERATION_UNDESCRIBED, capability.pointer.clone(), text);
    }
    let pointers = ToolPointers { description, tool: &capability.pointer };
    let mut key_field = None;
    for (parameter, schema) in properties(capability.parameters.as_ref()) {
        if parameter.to_ascii_lowercase().replace(['-', '_'], "").contains("idempotency") {
            key_field = Some(parameter.clone());
        }
        if is_undescribed(schema) {
            let text = format!("the parameter `{parameter}` of \"{name}\" has no description");
            draft.report(&rules::PARAMETER_UNDESCRIBED, pointers.of_parameter(parameter, schema), text);
        }
        if parameter.chars().count() == 1 {
            let text = format!("the parameter `{parameter}` of \"{name}\" has a name of one letter");
            draft.report(&rules::PARAMETER_TERSE, pointers.of_parameter(parameter, schema), text);
        }
    }
    if let Some((member, _)) =
        properties(capability.response.as_ref()).find(|(_, schema)| is_undescribed(schema))
    {
        let text = format!("`{member}` in the response of \"{name}\" has no description");
        draft.report(&rules::RESPONSE_UNDESCRIBED, pointers.of_response(member), text);
    }
    consequences(capability, key_field, draft);
}

fn properties(schema: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object).into_iter().flatten()
}

fn is_undescribed(schema: &Value) -> bool {
    schema.get("description").and_then(Value::as_str).is_none_or(|text| text.trim().is_empty())
}

/// Maximum number of parameters of an operation that are searched for a pointer, because each finding searches them again. Findings about
/// further parameters point at the operation.
const POINTED_PARAMETERS_MAX: usize = 200;

/// Pointers to the parts of a tool.
struct ToolPointers<'p> {
    description: Option<&'p Value>,
    /// Pointer of the operation or of the tool in a list.
    tool: &'p str,
}

impl ToolPointers<'_> {
    fn of_parameter(&self, key: &str, schema: &Value) -> String {
        let Some(document) = self.description else { return self.of_member("inputSchema", key) };
        let name = schema.get("x-name").and_then(Value::as_str).unwrap_or(key);
        let item = self.tool.rsplit_once('/').map_or("", |(item, _)| item);
        for owner in [self.tool, item] {
            let list = document.pointer(&format!("{owner}/parameters")).and_then(Value::as_array);
            let is_it = |parameter: &Value| parameter.get("name").and_then(Value::as_str) == Some(name);
            if let Some(index) =
                list.and_then(|list| list.iter().take(POINTED_PARAMETERS_MAX).position(is_it))
            {
                return format!("{owner}/parameters/{index}");
            }
        }
        let mut member = format!("{}/requestBody/content/application~1json/schema/properties", self.tool);
        push_name(&mut member, name);
        let candidates = [member, format!("{}/requestBody", self.tool)];
        self.existing(document, candidates)
    }

    fn of_response(&self, name: &str) -> String {
        match self.description {
            Some(document) => self.existing(document, [format!("{}/responses", self.tool)]),
            None => self.of_member("outputSchema", name),
        }
    }

    /// The first pointer that exists in the document, or else the pointer of the tool.
    fn existing<const N: usize>(&self, document: &Value, candidates: [String; N]) -> String {
        let found = candidates.into_iter().find(|pointer| document.pointer(pointer).is_some());
        found.unwrap_or_else(|| self.tool.to_owned())
    }

    fn of_member(&self, schema: &str, name: &str) -> String {
        let mut pointer = format!("{}/{schema}/properties", self.tool);
        push_name(&mut pointer, name);
        pointer
    }
}

/// Layer 4: tools that change state are idempotent, require an agent's token, and wait for a person if they are destructive.
fn consequences(capability: &mut Capability, key_field: Option<String>, draft: &mut Draft<'_>) {
    let class = capability.safety.class;
    if matches!(class, SafetyClass::Read | SafetyClass::Unknown) {
        return;
    }
    let (name, pointer) = (capability.name.clone(), capability.pointer.clone());
    if key_field.is_some() {
        capability.idempotency.supported = Some(true);
        capability.idempotency.key_field = key_field;
    } else if capability.idempotency.supported != Some(true) {
        let text = format!("\"{name}\" takes no idempotency key");
        draft.report(&rules::WRITE_NOT_IDEMPOTENT, pointer.clone(), text);
    }
    let schemes = &capability.auth.schemes;
    let is_authenticated = schemes.iter().any(|scheme| *scheme != AuthScheme::None);
    if !is_authenticated || capability.auth.required == Tristate::No {
        let text = format!("\"{name}\" asks for no authentication");
        draft.report(&rules::WRITE_WITHOUT_AUTH, pointer.clone(), text);
    } else if !schemes
        .iter()
        .any(|scheme| matches!(scheme, AuthScheme::OAuth2 | AuthScheme::OpenId | AuthScheme::Bearer))
    {
        let text = format!("\"{name}\" asks for credentials that are not an OAuth token");
        draft.report(&rules::WRITE_WITHOUT_OAUTH, pointer.clone(), text);
    }
    // Layer 4: destructive tools need the approval of a person. A POST may be one by its name: `transfer_funds`.
    let is_destructive = class == SafetyClass::Destructive || safety::dangerous_word(&name).is_some();
    if is_destructive && capability.safety.confirmation == Confirmation::None {
        capability.safety.confirmation = Confirmation::Recommended;
        let text = format!("\"{name}\" does not announce an approval by a person");
        draft.report(&rules::DESTRUCTIVE_WITHOUT_APPROVAL, pointer, text);
    }
}
