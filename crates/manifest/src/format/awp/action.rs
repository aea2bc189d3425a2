//! AWP actions (§9): the capabilities of the manifest.

use std::collections::HashSet;

use serde_json::Value;

use super::rules;
use super::types::{References, Types, report_unknown};
use crate::draft::{self, Draft};
use crate::format::endpoint;
use crate::model::{
    Capability, CapabilityKind, Confirmation, Execution, ExecutionModel, Idempotency, SafetyClass, Tristate,
};
use crate::object::{Object, type_name};
use crate::schema::{Location, Parameters, Presence};
use crate::walk::List;
use crate::{auth, quantity, safety};

/// Context shared by the actions.
struct Shared<'r> {
    root: &'r Object<'r>,
    types: &'r Types,
    auth: Option<Object<'r>>,
    required_for: HashSet<&'r str>,
    optional_for: HashSet<&'r str>,
    degraded: HashSet<&'r str>,
}

pub(super) fn read(root: &Object<'_>, types: &Types, draft: &mut Draft<'_>) {
    let auth = root.object("auth");
    let ids = |part: Option<&Object<'_>>, key: &str| -> HashSet<String> {
        part.map(|part| part.texts(key).into_iter().map(str::to_owned).collect()).unwrap_or_default()
    };
    let status = root.object("agent_status");
    let (required, optional) = (ids(auth.as_ref(), "required_for"), ids(auth.as_ref(), "optional_for"));
    let degraded = ids(status.as_ref(), "degraded_actions");
    let shared = Shared {
        root,
        types,
        auth,
        required_for: required.iter().map(String::as_str).collect(),
        optional_for: optional.iter().map(String::as_str).collect(),
        degraded: degraded.iter().map(String::as_str).collect(),
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
    capability.degraded = shared.degraded.contains(id);
    call(action, shared, &mut capability, draft);
    inputs(action, shared, &mut capability, draft);
    outputs(action, shared, &mut capability, draft);
    authentication(action, id, shared, &mut capability, draft);
    consequences(action, &mut capability, draft);
    execution(action, &mut capability, draft);
    idempotency(action, &mut capability, draft);
    capability.rate_limit = action.text("rate_limit").map(quantity::rate);
    if let Some(graph) = shared.root.object("dependencies") {
        capability.depends_on = graph.texts(id).into_iter().map(str::to_owned).collect();
    }
    draft.push(capability);
}

/// Over HTTP, or through one of the protocols of version 0.2.
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
        let required = match value {
            Value::Object(map) => {
                let input = Object { map, pointer: inputs.at(name) };
                draft.check(&input, &rules::INPUT);
                if input.text("type") == Some("enum") && input.list("options").is_none_or(<[Value]>::is_empty)
                {
                    draft.report_rule(&rules::OPTIONS_MISSING, input.pointer.clone());
                }
                input.flag("required")
            }
            other => {
                let text = format!("the input \"{name}\" is {}", type_name(other));
                draft.report(&rules::INPUT_MISTYPED, inputs.at(name), text);
                None
            }
        };
        let schema = shared.types.value(value, &mut references);
        let location = Location::of(&capability.invocation, name);
        parameters.add(name, schema, location, Presence::of(required));
    }
    capability.parameters = parameters.finish();
    if let Some(schema) = &mut capability.parameters {
        shared.types.attach(schema, &references);
    }
    report_unknown(&references, &inputs.pointer, draft);
}

fn outputs(action: &Object<'_>, shared: &Shared<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(outputs) = action.object("outputs").filter(|outputs| !outputs.map.is_empty()) else { return };
    let mut references = References::default();
    let properties: serde_json::Map<String, Value> = outputs
        .map
        .iter()
        .map(|(name, value)| (name.clone(), Value::Object(shared.types.value(value, &mut references))))
        .collect();
    let mut schema = serde_json::json!({"type": "object", "properties": properties});
    shared.types.attach(&mut schema, &references);
    capability.response = Some(schema);
    report_unknown(&references, &outputs.pointer, draft);
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
    let required = match own {
        Some(false) | None if listed => Some(true),
        Some(own) => Some(own),
        None if optional => Some(false),
        None => None,
    };
    capability.auth.required = Tristate::from_option(required);
    let word = shared.auth.as_ref().and_then(|contract| contract.text("type"));
    if let Some(word) = word.filter(|_| required == Some(true) || optional) {
        capability.auth.schemes = vec![auth::scheme(word)];
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
    let class = match (sensitivity, reversible) {
        (Some("irreversible"), _) | (_, Some(false)) => Some(SafetyClass::Irreversible),
        (Some("destructive"), _) => Some(SafetyClass::Destructive),
        _ => None,
    };
    if let Some(class) = class {
        capability.safety = safety::declared(class);
    }
    capability.safety.reversible = reversible;
    let confirmed = action.flag("requires_human_confirmation") == Some(true);
    capability.safety.confirmation = match class {
        _ if confirmed || class == Some(SafetyClass::Irreversible) => Confirmation::Required,
        Some(_) => Confirmation::Recommended,
        None => Confirmation::None,
    };
    if sensitivity.is_none() && capability.invocation.method.as_deref() == Some("DELETE") {
        draft.report_rule(&rules::SENSITIVITY_UNDECLARED, action.pointer.clone());
    }
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
    capability.execution = Execution { model, poll_url };
}

/// The action's own contract, else the manifest's flag (§6).
fn idempotency(action: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(contract) = action.object("idempotency") else {
        let supported = draft.manifest.features.idempotency;
        if supported.is_some() && !matches!(capability.invocation.method.as_deref(), Some("GET" | "HEAD")) {
            capability.idempotency.supported = supported;
            capability.inferred.insert("idempotency".to_owned(), "awp.capabilities.idempotency".to_owned());
        }
        return;
    };
    draft.check(&contract, &rules::IDEMPOTENCY);
    if contract.flag("supported") == Some(true) && !contract.has("key_field") {
        draft.report_rule(&rules::KEY_FIELD_MISSING, contract.pointer.clone());
    }
    capability.idempotency = Idempotency {
        supported: contract.flag("supported"),
        key_field: draft::name(contract.text("key_field")),
        window_s: contract.text("window").and_then(quantity::duration_s),
    };
}
