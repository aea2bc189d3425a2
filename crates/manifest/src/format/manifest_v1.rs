//! Agent Manifest v1: actions with a risk, scopes and rules of approval.
//!
//! The safety class of an action is inferred from its declared risk. Actions have no endpoint in this format.
//!
//! Follows mhaidi95/agent-manifest-specs 1.0 (May 2026).

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::auth;
use crate::budget;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::lenient;
use crate::model::{
    AgentIdentity, Audit, Auth, AuthScheme, CapabilityKind, Confirmation, Invocation, RateLimit, SafetyClass,
    Tristate,
};
use crate::name::parse_url;
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::schema;
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let app = c.has("manifest_version") && c.object("app").is_some();
    app.then(|| "`manifest_version` beside `app`".to_owned())
})];

findings! {
    shape ROOT("manifest_v1", "Agent Manifest 1.0") {
        must("manifest_version", Kind::OneOf(&["1.0"]), "State 1.0."),
        must("app", Kind::Object, "Describe the app with `name` and `url`."),
        must("actions", Kind::List, "List the actions as objects."),
        may("approval_rules", Kind::List, "Publish rules of approval as an array."),
    }
    shape APP("manifest_v1.app", "Agent Manifest 1.0") {
        must("name", Kind::Text, "Name the app."),
        must("url", Kind::Url, "State the app's absolute URL."),
        may("description", Kind::Text, "Describe the app in a string."),
    }
    shape ACTION("manifest_v1.action", "Agent Manifest 1.0") {
        must("id", Kind::Text, "Give the action an id."),
        must("description", Kind::Text, "Describe what the action does."),
        must("risk", Kind::OneOf(&["low", "medium", "high"]), "State low, medium or high."),
        may("scopes", Kind::Texts, "List scopes as strings."),
        may("parameters", Kind::Object, "Publish parameters as a map from name to descriptor."),
        may("requires_approval", Kind::Bool, "Publish true or false."),
        may("rate_limit_per_minute", Kind::Integer, "Publish a whole number."),
    }
    rule UNKNOWN_ACTION: Should("manifest_v1.approval_rule.action.unknown", "Agent Manifest 1.0")
        "a rule of approval names an action that does not exist" => "Correct the id or drop the rule.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("manifest_version"), None);
    draft.assess("Agent Manifest 1.0", |code| code.starts_with("manifest_v1."));
    draft.check(root, &ROOT);
    if let Some(app) = draft.checked(root, "app", &APP) {
        let manifest = &mut draft.manifest;
        manifest.name = draft::name(app.text("name"));
        manifest.description = draft::description(app.text("description"));
        manifest.declared_origin =
            app.string("url").filter(|url| parse_url(url).is_ok_and(|url| url.has_host()));
        manifest.provider.logo = app.string("logo_url");
    }
    if let Some(auth) = root.value("auth") {
        draft.keep_all(lenient::auth(auth));
    }
    if let Some(identity) = root.object("agent_identity") {
        read_identity(&identity, draft);
    }
    if let Some(audit) = root.object("audit") {
        if let Some(enabled) = audit.flag("log_all") {
            draft.manifest.audit = Some(Audit { enabled: Some(enabled), ..Audit::default() });
        }
        keep_record(&audit, draft);
    }
    let ids: HashSet<&str> = root.objects("actions").filter_map(|action| action.text("id")).collect();
    let mut approved: HashSet<&str> = HashSet::new();
    let mut approvers: Map<String, Value> = Map::new();
    let mut conditional: Vec<Value> = Vec::new();
    for rule in root.objects("approval_rules").take(RULES_MAX) {
        let when = rule.object("when");
        let stated = |key: &[&str]| rule.text_of(key).or_else(|| when.as_ref()?.text_of(key));
        let named = stated(&["action", "action_id"]).into_iter().chain(rule.texts("actions"));
        for id in named {
            if let Some(approver) = draft::name(rule.text("require")) {
                // Several rules for one action differ in their conditions.
                let is_conditional = when.as_ref().is_some_and(|when| when.map.len() > 1);
                if is_conditional && budget::bytes_of_members(rule.map, RULE_BYTES_MAX) <= RULE_BYTES_MAX {
                    conditional.push(Value::Object(rule.map.clone()));
                } else {
                    approvers.insert(id.to_owned(), Value::String(approver));
                }
            }
            if ids.contains(id) {
                approved.insert(id);
            } else if !id.contains('*') {
                draft.report(&UNKNOWN_ACTION, rule.pointer.clone(), format!("there is no action \"{id}\""));
            }
        }
    }
    if !approvers.is_empty() {
        draft.manifest.features.other.insert("approvers".to_owned(), Value::Object(approvers));
    }
    if !conditional.is_empty() {
        draft.manifest.features.other.insert("approval_rules".to_owned(), Value::Array(conditional));
    }
    let identified = draft.manifest.auth.iter().filter_map(|auth| auth.agent_identity.as_ref());
    let needed = Needed {
        is_identified: identified.into_iter().any(|identity| identity.required),
        schemes: lenient::required_by(&draft.manifest.auth).schemes,
        approved,
    };
    draft.each(root, "actions", &List::of(&ACTION), |action, draft| read_action(action, &needed, draft));
}

/// Maximum number of bytes of one rule with a condition that is kept as published.
const RULE_BYTES_MAX: usize = 2_048;
/// Maximum number of rules of approval of one document that are read.
const RULES_MAX: usize = 1_000;

/// Keeps how long and in which form the audit log is kept.
fn keep_record(audit: &Object<'_>, draft: &mut Draft<'_>) {
    let other = &mut draft.manifest.features.other;
    if let Some(days) = audit.whole("retention_days") {
        other.insert("audit_retention_days".to_owned(), Value::from(days));
    }
    if let Some(format) = draft::name(audit.text("export_format")) {
        other.insert("audit_export_format".to_owned(), Value::String(format));
    }
}

/// How an agent identifies itself: the credentials of every action.
fn read_identity(identity: &Object<'_>, draft: &mut Draft<'_>) {
    let required = identity.flag("required") == Some(true);
    let Some(verification) = identity.text("verification").filter(|word| *word != "none") else { return };
    let format = draft::name(Some(verification));
    let agent_identity = Some(AgentIdentity { required, format });
    draft.keep(Auth { agent_identity, ..auth::of_word(verification) });
}

/// Reads the requirements of the document next to its actions.
struct Needed<'v> {
    is_identified: bool,
    schemes: Vec<AuthScheme>,
    /// Ids of actions that need an approval.
    approved: HashSet<&'v str>,
}

fn read_action(action: &Object<'_>, needed: &Needed<'_>, draft: &mut Draft<'_>) {
    let id = action.text("id").unwrap_or_default();
    let mut capability = draft.begin(CapabilityKind::Action, action, &["id"], &["name", "title"]);
    capability.parameters =
        action.value("parameters").and_then(|value| schema::lenient(value, &Invocation::default()));
    schema::drop_locations(&mut capability.parameters);
    capability.auth.scopes = draft::tags(action.texts("scopes"));
    let is_needed = !capability.auth.scopes.is_empty() || needed.is_identified;
    capability.auth.required = Tristate::from_option(is_needed.then_some(true));
    if is_needed {
        capability.auth.schemes.clone_from(&needed.schemes);
    }
    let reads = capability.auth.scopes.iter().all(|scope| scope.ends_with(":read"))
        && !capability.auth.scopes.is_empty();
    // A risk is no statement about the effect, so the class is inferred.
    capability.safety.class = match action.text("risk") {
        Some("high") => SafetyClass::Destructive,
        Some("medium") => SafetyClass::Write,
        _ => SafetyClass::Unknown,
    };
    if capability.safety.class != SafetyClass::Unknown {
        capability.inferred.insert("safety".to_owned(), "safety.risk".to_owned());
    } else if reads {
        capability.safety.class = SafetyClass::Read;
        capability.inferred.insert("safety".to_owned(), "safety.read-scopes".to_owned());
    }
    if action.flag("requires_approval") == Some(true) || needed.approved.contains(id) {
        capability.safety.confirmation = Confirmation::Required;
    }
    capability.rate_limit = action.whole("rate_limit_per_minute").map(RateLimit::per_minute);
    draft.push(capability);
}
