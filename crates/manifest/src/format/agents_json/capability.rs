//! The capabilities of agents.json 0.1: calls, sessions and hand-off to a person.

use serde_json::{Map, Value};

use super::{Flavour, check_path, rules, unlisted};
use crate::address;
use crate::draft::Draft;
use crate::format::endpoint;
use crate::model::{AuthScheme, Capability, CapabilityKind, Execution, ExecutionModel, Tristate};
use crate::object::{Object, type_name};
use crate::schema::{self, Parameters};
use crate::semantic;
use crate::text;
use crate::walk::List;

/// Names that the specification uses, and their types.
const BUILT_IN: &[(&str, &str)] = &[
    ("search", "data:query"),
    ("browse", "commerce:product-search"),
    ("detail", "commerce:product-detail"),
    ("cart.add", "commerce:cart-add"),
    ("cart.view", "commerce:cart-view"),
    ("cart.update", "commerce:cart-update"),
    ("cart.remove", "commerce:cart-remove"),
    ("checkout", "commerce:checkout"),
];

/// Confidence of a built-in name: sites other than shops may use it differently.
const BUILT_IN_CONFIDENCE: f64 = 0.7;

pub(super) fn read(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    // The shape check reports values of another type.
    let is_empty = |value: &Value| match value {
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if root.value("capabilities").is_some_and(is_empty) {
        draft.report_rule(&rules::NO_CAPABILITY, root.at("capabilities"));
    }
    let list = List::UNCHECKED.mistyped(&rules::CAPABILITY_MISTYPED).unique("name", &rules::NAME_DUPLICATE);
    draft.each(root, "capabilities", &list, |published, draft| read_capability(published, flavour, draft));
}

fn read_capability(published: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    draft.check(published, &rules::CAPABILITY);
    let listed = ["name", "description", "endpoint", "method", "params", "requires_session", "human_handoff"];
    unlisted(published, &listed, flavour, draft);
    let name = published.text("name").unwrap_or_default();
    let mut capability = draft.begin(CapabilityKind::Operation, published, &["name"], &["title"]);
    if let Some((_, kind)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        capability.semantic_types.push(semantic::implied(kind, BUILT_IN_CONFIDENCE, "agents_json.built-in"));
    }
    check_path(published, "endpoint", draft);
    endpoint::read_call(published, &mut capability, draft);
    check_variables(published, &capability, draft);
    parameters(published, flavour, &mut capability, draft);
    if published.flag("requires_session") == Some(true) {
        capability.auth.session = true;
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes = vec![AuthScheme::Session];
    }
    capability.safety.handoff = published.flag("human_handoff").unwrap_or_default();
    capability.execution = Execution { model: ExecutionModel::Sync, poll_url: None };
    draft.push(capability);
}

/// Reports variables of the endpoint that no parameter declares.
fn check_variables(published: &Object<'_>, capability: &Capability, draft: &mut Draft<'_>) {
    let Some(template) = capability.invocation.url_template.as_deref() else { return };
    let params = published.object("params");
    let is_named = |name: &str| params.as_ref().is_some_and(|params| params.has(name));
    for variable in address::variables(template).filter(|variable| !is_named(variable)) {
        let text = format!("no parameter is named \"{}\"", text::capped(variable, 60));
        draft.report(&rules::ENDPOINT_VARIABLE, published.at("endpoint"), text);
    }
}

fn parameters(published: &Object<'_>, flavour: Flavour, capability: &mut Capability, draft: &mut Draft<'_>) {
    let Some(params) = published.object("params") else { return };
    let mut parameters = Parameters::default();
    for (name, value) in params.map {
        match value {
            Value::Object(map) => {
                let parameter = Object::new(map, params.at(name));
                draft.check(&parameter, &rules::PARAMETER);
                let listed = ["type", "description", "required", "default", "enum", "items"];
                unlisted(&parameter, &listed, flavour, draft);
                check_values(&parameter, draft);
            }
            other => {
                let text = format!("the parameter \"{name}\" is {}", type_name(other));
                draft.report(&rules::PARAMETER_MISTYPED, params.at(name), text);
            }
        }
        parameters.add_described(name, value, &capability.invocation);
    }
    capability.parameters = parameters.finish_stated(&capability.invocation);
}

/// Checks `enum`, `default` and `items` against the type of the parameter, and `default` against `enum`.
fn check_values(parameter: &Object<'_>, draft: &mut Draft<'_>) {
    let schema: Map<String, Value> = parameter
        .map
        .get_key_value("type")
        .map(|(key, kind)| (key.clone(), kind.clone()))
        .into_iter()
        .collect();
    let allowed = parameter.list("enum");
    if allowed.is_some_and(<[Value]>::is_empty) {
        draft.report_rule(&rules::ENUM_EMPTY, parameter.at("enum"));
    }
    let wrong = allowed.unwrap_or_default().iter().position(|value| !schema::has_type(&schema, value));
    if let Some(position) = wrong {
        draft.report_rule(&rules::ENUM_MISTYPED, format!("{}/{position}", parameter.at("enum")));
    }
    if let Some(default) = parameter.map.get("default") {
        if !schema::has_type(&schema, default) {
            let text = format!("the default is {}", type_name(default));
            draft.report(&rules::DEFAULT_MISTYPED, parameter.at("default"), text);
        } else if allowed.is_some_and(|values| !values.is_empty() && !values.contains(default)) {
            draft.report_rule(&rules::DEFAULT_UNLISTED, parameter.at("default"));
        }
        check_elements(parameter, default, draft);
    }
    if let Some(items) = draft.checked(parameter, "items", &rules::ITEMS)
        && parameter.text("type").is_some_and(|kind| kind != "array")
    {
        draft.report_rule(&rules::ITEMS_UNUSED, items.pointer);
    }
}

/// Checks the elements of a default against the type of the items.
fn check_elements(parameter: &Object<'_>, default: &Value, draft: &mut Draft<'_>) {
    let items = parameter.object("items");
    let (Some(kind), Some(elements)) =
        (items.as_ref().and_then(|items| items.text("type")), default.as_array())
    else {
        return;
    };
    if let Some(position) = elements.iter().position(|element| !schema::is_of_type(element, kind)) {
        let pointer = format!("{}/{position}", parameter.at("default"));
        draft.report(
            &rules::DEFAULT_MISTYPED,
            pointer,
            format!("an element of the default is not of the type {kind}"),
        );
    }
}
