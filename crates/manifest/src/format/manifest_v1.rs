//! Agent Manifest v1: actions with a risk, scopes and rules of approval.
//!
//! Decides what an action may do from its declared risk. Actions have no endpoint in this format, so none can be called
//! from the manifest alone.
//!
//! Follows mhaidi95/agent-manifest-specs 1.0 (May 2026).

use std::collections::HashSet;

use super::loose;
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Confirmation, RateLimit, SafetyClass, Severity, Tristate, TypeSource};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};
use crate::{safety, schema};

pub(crate) const DIALECT: Dialect =
    Dialect { title: "Agent Manifest v1", shapes: &[&ROOT, &APP, &ACTION], rules: &[&UNKNOWN_ACTION] };

const ROOT: Shape = Shape {
    code: "manifest_v1",
    spec: "Agent Manifest 1.0",
    fields: &[
        must("manifest_version", Kind::OneOf(&["1.0"]), "State 1.0."),
        must("app", Kind::Object, "Describe the app with `name` and `url`."),
        must("actions", Kind::List, "List the actions as objects."),
        may("approval_rules", Kind::List, "Publish rules of approval as an array."),
    ],
};
const APP: Shape = Shape {
    code: "manifest_v1.app",
    spec: "Agent Manifest 1.0",
    fields: &[
        must("name", Kind::Text, "Name the app."),
        must("url", Kind::Url, "Name the app's absolute URL."),
        may("description", Kind::Text, "Describe the app in a string."),
    ],
};
const ACTION: Shape = Shape {
    code: "manifest_v1.action",
    spec: "Agent Manifest 1.0",
    fields: &[
        must("id", Kind::Text, "Give the action an id."),
        must("description", Kind::Text, "Say what the action does."),
        must("risk", Kind::OneOf(&["low", "medium", "high"]), "State low, medium or high."),
        may("scopes", Kind::Texts, "List scopes as strings."),
        may("parameters", Kind::Object, "Publish parameters as a map from name to descriptor."),
        may("requires_approval", Kind::Bool, "Publish true or false."),
        may("rate_limit_per_minute", Kind::Integer, "Publish a whole number."),
    ],
};
const UNKNOWN_ACTION: Rule = Rule {
    code: "manifest_v1.approval_rule.action.unknown",
    severity: Severity::Should,
    spec: "Agent Manifest 1.0",
    wrong: "a rule of approval names an action that does not exist",
    fix: "Correct the id or drop the rule.",
};

/// Reads a manifest.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("manifest_version"), None);
    draft.judge("Agent Manifest 1.0", |code| code.starts_with("manifest_v1."));
    draft.check(root, &ROOT);
    if let Some(app) = root.object("app") {
        draft.check(&app, &APP);
        let manifest = &mut draft.manifest;
        manifest.name = draft::name(app.text("name"));
        manifest.description = draft::description(app.text("description"));
        manifest.declared_origin = app.text("url").map(str::to_owned);
        manifest.provider.logo = app.text("logo_url").map(str::to_owned);
    }
    if let Some(auth) = root.value("auth") {
        draft.manifest.auth = loose::auth(auth);
    }
    let ids: HashSet<&str> = root.objects("actions").filter_map(|action| action.text("id")).collect();
    let mut approved: HashSet<&str> = HashSet::new();
    for rule in root.objects("approval_rules") {
        let named = rule.text_of(&["action", "action_id"]).into_iter().chain(rule.texts("actions"));
        for id in named {
            if ids.contains(id) {
                approved.insert(id);
            } else if !id.contains('*') {
                draft.report(&UNKNOWN_ACTION, rule.pointer.clone(), format!("there is no action \"{id}\""));
            }
        }
    }
    for action in root.objects("actions") {
        draft.check(&action, &ACTION);
        read_action(&action, &approved, draft);
    }
}

fn read_action(action: &Object<'_>, approved: &HashSet<&str>, draft: &mut Draft<'_>) {
    let id = action.text("id").unwrap_or_default();
    let name = action.text_of(&["name", "title"]).unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Action, id, name, action.pointer.clone());
    capability.description = draft::description(action.text("description"));
    capability.parameters = action.value("parameters").and_then(|value| schema::loose(value, None, None));
    capability.auth.scopes = draft::tags(action.texts("scopes"));
    capability.auth.required = Tristate::from_option((!capability.auth.scopes.is_empty()).then_some(true));
    let reads = capability.auth.scopes.iter().all(|scope| scope.ends_with(":read"))
        && !capability.auth.scopes.is_empty();
    capability.safety = match action.text("risk") {
        Some("high") => safety::declared(SafetyClass::Destructive),
        Some("medium") => safety::declared(SafetyClass::Write),
        _ => safety::declared(SafetyClass::Unknown),
    };
    if capability.safety.class == SafetyClass::Unknown {
        capability.safety.source = TypeSource::Inferred;
        if reads {
            capability.safety.class = SafetyClass::Read;
            capability.inferred.insert("safety".to_owned(), "safety.read-scopes".to_owned());
        }
    }
    if action.flag("requires_approval") == Some(true) || approved.contains(id) {
        capability.safety.confirmation = Confirmation::Required;
    }
    capability.rate_limit = action.whole("rate_limit_per_minute").map(|requests| RateLimit {
        requests: Some(requests),
        window_s: Some(60),
        ..RateLimit::default()
    });
    draft.push(capability);
}
