//! AWP actions (§9): the capabilities of the manifest.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::rules;
use super::types::{References, Types};
use crate::draft::{self, Draft};
use crate::format::endpoint;
use crate::json::at_index;
use crate::model::{
    AuthScheme, Capability, CapabilityKind, Confirmation, Execution, ExecutionModel, Idempotency, RateLimit,
    SafetyClass, Tristate,
};
use crate::object::{Object, type_name};
use crate::schema::{self, Location, Parameters, Presence};
use crate::text::capped;
use crate::walk::List;
use crate::{address, auth, quantity, safety, text};

/// Maximum number of elements of one default that are compared with their type.
const DEFAULTS_MAX: usize = 100;

/// Context shared by the actions.
struct Shared<'r> {
    root: &'r Object<'r>,
    types: &'r Types,
    scheme: Option<AuthScheme>,
    required_for: HashSet<&'r str>,
    optional_for: HashSet<&'r str>,
    degraded: HashSet<&'r str>,
    /// Whether the whole service is unavailable.
    is_down: bool,
}

pub(super) fn read(root: &Object<'_>, types: &Types, draft: &mut Draft<'_>) {
    let contract = root.object("auth");
    let ids = |part: Option<&Object<'_>>, key: &str| -> HashSet<String> {
        part.map(|part| part.texts(key).into_iter().map(str::to_owned).collect()).unwrap_or_default()
    };
    let status = root.object("agent_status");
    let (required, optional) =
        (ids(contract.as_ref(), "required_for"), ids(contract.as_ref(), "optional_for"));
    let degraded = ids(status.as_ref(), "degraded_actions");
    let shared = Shared {
        root,
        types,
        scheme: contract.as_ref().and_then(|contract| contract.text("type")).map(auth::scheme),
        required_for: required.iter().map(String::as_str).collect(),
        optional_for: optional.iter().map(String::as_str).collect(),
        degraded: degraded.iter().map(String::as_str).collect(),
        is_down: draft.manifest.status.operational == Some(false),
    };
    let actions = root.list("actions").unwrap_or_default();
    if actions.is_empty() && root.has("actions") {
        draft.report_rule(&rules::NO_ACTIONS, root.at("actions"));
    }
    let list = List::UNCHECKED.mistyped(&rules::ACTION_MISTYPED).unique("id", &rules::ID_DUPLICATE);
    draft.each(root, "actions", &list, |action, draft| read_action(action, &shared, draft));
}

fn read_action(action: &Object<'_>, shared: &Shared<'_>, draft: &mut Draft<'_>) {
    draft.check(action, &rules::ACTION);
    let id = action.text("id").unwrap_or_default();
    let mut capability = draft.begin(CapabilityKind::Action, action, &["id"], &["name"]);
    capability.title = draft::name(action.text("title"));
    capability.tags = draft::tags(action.texts("tags"));
    capability.degraded = shared.is_down || shared.degraded.contains(id);
    call(action, shared, &mut capability, draft);
    check_variables(action, &capability, draft);
    inputs(action, shared, &mut capability, draft);
    outputs(action, shared, &mut capability, draft);
    authentication(action, id, shared, &mut capability, draft);
    consequences(action, &mut capability, draft);
    execution(action, &mut capability, draft);
    idempotency(action, &mut capability, draft);
    capability.rate_limit = rate_limit(action, draft);
    if let Some(graph) = shared.root.object("dependencies") {
        let ids = graph.texts(id).into_iter();
        capability.depends_on = ids.map(|id| capped(id, draft::NAME_CHARS_MAX).to_owned()).collect();
    }
    draft.push(capability);
}

/// Sets how an action is called: over HTTP, or through one of the protocols of version 0.2.
fn call(action: &Object<'_>, shared: &Shared<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    if action.has("via") {
        return via(action, shared, capability, draft);
    }
    draft.check(action, &rules::CALL);
    let method = action.text("method").unwrap_or_default();
    if ["HEAD", "OPTIONS"].iter().any(|unlisted| method.eq_ignore_ascii_case(unlisted)) {
        draft.report_rule(&rules::METHOD_UNLISTED, action.at("method"));
    }
    endpoint::read_call(action, capability, draft);
}

fn via(action: &Object<'_>, shared: &Shared<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    draft.check(action, &rules::VIA);
    let Some(name) = action.text("via") else { return };
    capability.invocation.protocol = Some(auth::protocol(name));
    capability.invocation.native = action.text("operation").or_else(|| action.text("id")).map(str::to_owned);
    let protocol = shared.root.object("protocols").and_then(|protocols| protocols.object(name));
    match protocol {
        None => draft.report(&rules::VIA_UNKNOWN, action.at("via"), format!("`protocols` has no \"{name}\"")),
        Some(protocol) => {
            let endpoint = protocol.text("endpoint").or_else(|| action.text("endpoint"));
            capability.invocation.url = endpoint.and_then(|text| draft.origin_url(text));
        }
    }
}

fn inputs(action: &Object<'_>, shared: &Shared<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(inputs) = action.object("inputs") else { return };
    let mut parameters = Parameters::default();
    let mut references = References::default();
    for (name, value) in inputs.map {
        let schema = shared.types.value(value, &mut references);
        let required = match value {
            Value::Object(map) => {
                let input = Object::new(map, inputs.at(name));
                check_input(&input, &schema, draft);
                references.report(&input.at("type"), draft);
                input.flag("required")
            }
            other => {
                let text = format!("the input \"{}\" is {}", capped(name, 60), type_name(other));
                draft.report(&rules::INPUT_MISTYPED, inputs.at(name), text);
                references.report(&inputs.at(name), draft);
                None
            }
        };
        let location = Location::of(&capability.invocation, name);
        parameters.add(name, schema, location, Presence::of(required));
    }
    add_key(action, &inputs, capability, &mut parameters);
    capability.parameters = parameters.finish_stated(&capability.invocation);
    if let Some(schema) = &mut capability.parameters {
        shared.types.attach(schema, &references);
    }
}

/// Adds the idempotency key, which the specification's own example does not repeat among the inputs.
fn add_key(
    action: &Object<'_>,
    inputs: &Object<'_>,
    capability: &mut Capability,
    parameters: &mut Parameters,
) {
    let contract = action.object("idempotency").filter(|contract| contract.flag("supported") == Some(true));
    let Some(name) = contract.and_then(|contract| draft::name(contract.text("key_field"))) else { return };
    if !inputs.has(&name) {
        let described = serde_json::json!({
            "type": "string", "description": "Idempotency key: repeat it when the same call is repeated.",
        });
        parameters.add_described(&name, &described, &capability.invocation);
        capability.inferred.insert("parameters".to_owned(), "awp.idempotency.key_field".to_owned());
    }
}

fn check_input(input: &Object<'_>, schema: &Map<String, Value>, draft: &mut Draft<'_>) {
    draft.check(input, &rules::INPUT);
    let options = input.list("options");
    if input.text("type") == Some("enum") && options.is_none_or(<[Value]>::is_empty) {
        let pointer = if input.has("options") { input.at("options") } else { input.pointer.clone() };
        draft.report_rule(&rules::OPTIONS_MISSING, pointer);
    }
    // The values of an enum are of any simple type.
    let is_simple = |value: &Value| !(value.is_null() || value.is_array() || value.is_object());
    let is_option = |value: &Value| match input.text("type") {
        Some("enum") | None => is_simple(value),
        Some(_) => schema::has_type(schema, value),
    };
    let wrong = options.unwrap_or_default().iter().enumerate().filter(|(_, option)| !is_option(option));
    for (index, option) in wrong.take(DEFAULTS_MAX) {
        let text = format!("an option is {}", type_name(option));
        draft.report(&rules::OPTION_MISTYPED, at_index(&input.at("options"), index), text);
    }
    let Some(default) = input.map.get("default") else { return };
    check_default(schema, default, input.at("default"), draft);
}

/// Compares a default with the type of its input, and each element of a list with the type of the elements.
fn check_default(schema: &Map<String, Value>, default: &Value, pointer: String, draft: &mut Draft<'_>) {
    let listed = schema.get("enum").and_then(Value::as_array).filter(|values| !values.is_empty());
    if listed.is_some_and(|values| !values.contains(default)) {
        draft.report_rule(&rules::DEFAULT_UNLISTED, pointer);
    } else if listed.is_none() && !schema::has_type(schema, default) {
        let text = format!("the default is {}", type_name(default));
        draft.report(&rules::DEFAULT_MISTYPED, pointer, text);
    } else if let (Some(Value::Object(items)), Value::Array(elements)) = (schema.get("items"), default) {
        for (index, element) in elements.iter().enumerate().take(DEFAULTS_MAX) {
            check_default(items, element, at_index(&pointer, index), draft);
        }
    }
}

/// Reports variables of an endpoint (RFC 6570) without an input of the same name.
fn check_variables(action: &Object<'_>, capability: &Capability, draft: &mut Draft<'_>) {
    let Some(template) = capability.invocation.url_template.as_deref() else { return };
    let inputs = action.object("inputs");
    let is_named = |name: &str| inputs.as_ref().is_some_and(|inputs| inputs.has(name));
    for variable in address::variables(template).filter(|variable| !is_named(variable)) {
        let text = format!("no input is named \"{}\"", capped(variable, 60));
        draft.report(&rules::ENDPOINT_VARIABLE, action.at("endpoint"), text);
    }
}

fn outputs(action: &Object<'_>, shared: &Shared<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(outputs) = action.object("outputs").filter(|outputs| !outputs.map.is_empty()) else { return };
    let mut references = References::default();
    let properties = shared.types.fields(&outputs, &rules::OUTPUT_MISTYPED, &mut references, draft);
    let mut schema = serde_json::json!({"type": "object", "properties": properties});
    shared.types.attach(&mut schema, &references);
    capability.response = Some(schema);
}

/// The action's own declaration takes precedence over the lists of the contract (§7).
fn authentication(
    action: &Object<'_>,
    id: &str,
    shared: &Shared<'_>,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    let own = action.flag("auth_required");
    let listed = shared.required_for.contains(id);
    let optional = shared.optional_for.contains(id);
    if own == Some(false) && listed {
        draft.report_rule(&rules::AUTH_CONTRADICTED, action.at("auth_required"));
    }
    if optional && own == Some(true) {
        draft.report_rule(&rules::AUTH_OPTIONAL, action.at("auth_required"));
    }
    let required = match own {
        Some(false) | None if listed => Some(true),
        Some(own) => Some(own),
        None if optional => Some(false),
        None => None,
    };
    capability.auth.required = Tristate::from_option(required);
    if let Some(scheme) = shared.scheme.filter(|_| required == Some(true) || optional) {
        capability.auth.schemes = vec![scheme];
    }
    capability.auth.scopes = draft::tags(action.texts("scopes"));
}

/// Reads `sensitivity`, `reversible` and `requires_human_confirmation`. `standard` does not imply a class.
fn consequences(action: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let sensitivity = action.text("sensitivity");
    let reversible = action.flag("reversible");
    if sensitivity == Some("irreversible") && reversible == Some(true) {
        draft.report_rule(&rules::REVERSIBLE_CONTRADICTED, action.at("reversible"));
    }
    if sensitivity == Some("standard") && reversible == Some(false) {
        draft.report_rule(&rules::STANDARD_CONTRADICTED, action.at("sensitivity"));
    }
    let class = match (sensitivity, reversible) {
        (Some("irreversible"), _) | (_, Some(false)) => Some(SafetyClass::Irreversible),
        (Some("destructive"), _) => Some(SafetyClass::Destructive),
        _ => None,
    };
    if let Some(class) = class {
        capability.safety = safety::declared(class);
    }
    capability.safety.reversible = reversible;
    let confirmed = action.flag("requires_human_confirmation");
    capability.safety.confirmation = match class {
        _ if confirmed == Some(true) || class == Some(SafetyClass::Irreversible) => Confirmation::Required,
        Some(_) => Confirmation::Recommended,
        None => Confirmation::None,
    };
    if sensitivity == Some("irreversible") && confirmed == Some(false) {
        let pointer = action.at("requires_human_confirmation");
        draft.report_rule(&rules::CONFIRMATION_CONTRADICTED, pointer);
    }
    if sensitivity.is_none() {
        check_undeclared(action, capability, draft);
    }
}

/// Actions that delete, or whose name says that they pay, cancel or remove, have consequences (§15).
fn check_undeclared(action: &Object<'_>, capability: &Capability, draft: &mut Draft<'_>) {
    let method = capability.invocation.method.as_deref();
    let named = safety::dangerous_word(&capability.native_id)
        .or_else(|| binding_word(&capability.native_id))
        .filter(|_| matches!(method, Some("POST" | "PUT" | "PATCH")));
    match named {
        Some(word) => {
            let text = format!("the id contains \"{word}\", and the action declares no `sensitivity`");
            draft.report(&rules::SENSITIVITY_UNDECLARED, action.pointer.clone(), text);
        }
        None if method == Some("DELETE") => {
            draft.report_rule(&rules::SENSITIVITY_UNDECLARED, action.pointer.clone());
        }
        None => {}
    }
}

/// The word in a name that marks a binding transaction: `checkout`, `submit_order`, `book_flight`.
fn binding_word(id: &str) -> Option<&'static str> {
    let words = text::words(id);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let verb = |verbs: &[&str]| words.first().is_some_and(|word| verbs.contains(&word.as_str()));
    if words.iter().any(|word| safety::READS.contains(&word.as_str())) {
        return None;
    }
    let named = ["checkout", "withdraw", "withdrawal", "buy"].into_iter().find(|word| has(word));
    named
        .or_else(|| (has("order") && verb(&["submit", "place", "create"])).then_some("order"))
        .or_else(|| verb(&["book"]).then_some("book"))
}

fn execution(action: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let model = match action.text("execution_model") {
        Some("async") => ExecutionModel::Async,
        Some("sync") => ExecutionModel::Sync,
        Some(_) => ExecutionModel::Unknown,
        None => {
            capability.inferred.insert("execution".to_owned(), "awp.default-sync".to_owned());
            ExecutionModel::Sync
        }
    };
    let poll_url = draft.url(action, "poll_endpoint");
    if model == ExecutionModel::Async && !action.has("poll_endpoint") {
        draft.report_rule(&rules::POLL_MISSING, action.pointer.clone());
    }
    if model == ExecutionModel::Sync && action.has("poll_endpoint") {
        draft.report_rule(&rules::POLL_UNUSED, action.at("poll_endpoint"));
    }
    capability.execution = Execution { model, poll_url };
}

/// The published rate, even if it cannot be parsed into a number of calls.
fn rate_limit(action: &Object<'_>, draft: &mut Draft<'_>) -> Option<RateLimit> {
    let text = action.value("rate_limit")?.as_str()?.trim();
    let rate = quantity::rate(text);
    if rate.requests.is_none_or(|requests| requests == 0) {
        draft.report_rule(&rules::RATE_UNREADABLE, action.at("rate_limit"));
    }
    (!text.is_empty()).then_some(rate)
}

/// The action's own contract. The manifest's flag (§6) says that keys are supported somewhere, not that this action takes one.
fn idempotency(action: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(contract) = draft.checked(action, "idempotency", &rules::IDEMPOTENCY) else { return };
    let supported = contract.flag("supported");
    if supported == Some(true) && contract.text("key_field").is_none() {
        let is_stated = contract.has("key_field");
        let pointer = if is_stated { contract.at("key_field") } else { contract.pointer.clone() };
        draft.report_rule(&rules::KEY_FIELD_MISSING, pointer);
    }
    if supported == Some(true) && draft.manifest.features.idempotency == Some(false) {
        draft.report_rule(&rules::IDEMPOTENCY_CONTRADICTED, contract.at("supported"));
    }
    let window = contract.value("window").and_then(Value::as_str);
    let window_s = window.and_then(quantity::duration_s);
    if window.is_some() && window_s.is_none() {
        draft.report_rule(&rules::WINDOW_UNREADABLE, contract.at("window"));
    }
    let key_field = draft::name(contract.text("key_field"));
    capability.idempotency = Idempotency { supported, key_field, window_s };
}
