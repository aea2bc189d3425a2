//! AWP, the Agent Web Protocol: `agent.json` with actions (versions 0.1 and 0.2).
//!
//! Follows the AWP specification 0.1 and its version 0.2, which adds `protocols` and actions that are called `via` one
//! of them. Conformance is assessed against the text and against the checks of the protocol's validator, which are
//! weaker. Unknown members are ignored (§4, §15); an unknown major version is read as version 0.

mod action;
mod rules;
mod types;

pub(crate) use rules::FINDINGS;

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::check::is_major_minor;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::model::{AppliesTo, Auth, AuthScheme, ErrorRecovery, Follow, Interface, Link, Source, SourceKind};
use crate::object::{Object, children, type_name};
use crate::text::capped;
use crate::{auth, quantity};
use types::Types;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let version = c.text("awp_version")?;
        let workstate = c.has("workstate_id") || c.has("modules");
        (!workstate).then(|| format!("`awp_version` is \"{version}\""))
    }),
    strong(|c| {
        // No other dialect has this member, even with a value of another type.
        let version = c.value("awp_version").filter(|value| !value.is_string())?;
        c.list("actions").map(|_| format!("`awp_version` is {}, beside `actions`", type_name(version)))
    }),
    at_path(|c| {
        let parts = ["awp_version", "domain", "intent", "actions"].iter().filter(|key| c.has(key)).count();
        let listed = c.list("actions").is_some_and(|actions| actions.iter().all(is_action));
        let whole = listed && c.text("domain").is_some() && c.text("intent").is_some();
        let placed =
            c.is_file(&["/agent.json"]) && (parts >= 3 || c.has("awp_version") || listed && parts == 2);
        let named = c.is_file(&["/agent.json"]) && c.has_only(&["domain", "intent"]) && parts == 2;
        (placed || named || whole)
            .then(|| format!("`domain`, `intent` and `actions` as in AWP at {}, without its version", c.path))
    }),
];

/// Members of a protocol that have a meaning in the specification.
const PROTOCOL_KEYS: &[&str] = &["version", "endpoint", "transport", "agent_card", "server_card", "openapi"];
/// Maximum number of further members of a protocol that are kept.
const SETTINGS_MAX: usize = 10;
const SETTING_BYTES_MAX: usize = 200;

/// Whether an element of `actions` can be an AWP action.
fn is_action(element: &Value) -> bool {
    element.get("id").is_some() && (element.get("endpoint").is_some() || element.get("inputs").is_some())
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("AWP 0.1", |code| code.starts_with("awp."));
    draft.assess("AWP validator", |code| rules::VALIDATED.contains(&code));
    draft.check(root, &rules::ROOT);
    version(root, draft);
    draft.manifest.name = draft::name(root.text("domain"));
    draft.manifest.declared_origin = root.string("domain");
    draft.manifest.description = draft::description(root.text("intent"));
    features(root, draft);
    auth(root, draft);
    check_contract(root, draft);
    errors(root, draft);
    status(root, draft);
    source(root, draft);
    protocols(root, draft);
    let types = Types::of(root, draft);
    draft.manifest.schemas = types.schemas();
    action::read(root, &types, draft);
    references(root, draft);
    if let Some(hints) = root.object("agent_hints") {
        draft.manifest.hints.clone_from(hints.map);
    }
}

fn version(root: &Object<'_>, draft: &mut Draft<'_>) {
    let number = root.value("awp_version").filter(|value| value.is_number()).map(ToString::to_string);
    let version = root.string("awp_version").or(number);
    draft.dialect(version.as_deref(), None);
    if version.is_some_and(|version| is_major_minor(&version) && !version.starts_with("0.")) {
        draft.report_rule(&rules::MAJOR, root.at("awp_version"));
    }
}

/// Feature flags (§6); unknown flags are kept as published.
fn features(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(flags) = draft.checked(root, "capabilities", &rules::FEATURES) else { return };
    let known = ["streaming", "batch_actions", "webhooks", "pagination", "idempotency"];
    let features = &mut draft.manifest.features;
    features.streaming = flags.flag("streaming");
    features.batch_actions = flags.flag("batch_actions");
    features.webhooks = flags.flag("webhooks");
    features.pagination = draft::name(flags.text("pagination"));
    features.idempotency = flags.flag("idempotency");
    features.other = flags
        .map
        .iter()
        .filter(|(key, _)| !known.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect::<BTreeMap<String, Value>>();
}

/// Reports actions that need authentication in a manifest that does not say how to authenticate.
fn check_contract(root: &Object<'_>, draft: &mut Draft<'_>) {
    let contract = root.object("auth");
    let has_type = contract.as_ref().is_some_and(|contract| contract.has("type"));
    let names_actions = |contract: &Object<'_>| !contract.texts("required_for").is_empty();
    let is_needed = contract.as_ref().is_some_and(names_actions)
        || root.objects("actions").any(|action| action.flag("auth_required") == Some(true));
    if has_type || !is_needed || (root.has("auth") && contract.is_none()) {
        return;
    }
    let text = "actions need authentication, and no `type` in `auth` says which";
    draft.report(
        &rules::AUTH_TYPE_MISSING,
        contract.map(|contract| contract.pointer).unwrap_or_default(),
        text,
    );
}

/// Whether the text of a lifetime means that the token does not expire: §7 requires a string and gives only examples.
fn is_without_end(lifetime: &str) -> bool {
    ["never", "none", "unlimited", "session"].iter().any(|word| lifetime.trim().eq_ignore_ascii_case(word))
}

/// The authentication contract (§7): one entry for the actions that need it, one for those that may use it.
fn auth(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(contract) = draft.checked(root, "auth", &rules::AUTH) else { return };
    if contract.map.is_empty() {
        return;
    }
    let mut entry = contract.text("type").map_or_else(|| Auth::new(AuthScheme::Unknown), auth::of_word);
    let expiry = contract.text("token_expiry");
    entry.token_expiry_s = expiry.and_then(quantity::duration_s);
    let is_empty = expiry.is_none() && contract.value("token_expiry").is_some_and(Value::is_string);
    if entry.token_expiry_s.is_none() && (is_empty || !expiry.is_none_or(is_without_end)) {
        draft.report_rule(&rules::EXPIRY_UNREADABLE, contract.at("token_expiry"));
    }
    entry.refresh_url = draft.url(&contract, "refresh_endpoint");
    let ids = |key: &str| contract.texts(key).into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (required, optional) = (ids("required_for"), ids("optional_for"));
    if entry.scheme == AuthScheme::None && !required.is_empty() {
        draft.report_rule(&rules::AUTH_NONE, contract.at("type"));
    }
    if !required.is_empty() {
        entry.applies_to = AppliesTo::Ids { ids: required };
    } else if !optional.is_empty() {
        entry.applies_to = AppliesTo::OptionalIds { ids: optional.clone() };
    }
    let also_optional = matches!(entry.applies_to, AppliesTo::Ids { .. }) && !optional.is_empty();
    draft.keep(entry.clone());
    if also_optional {
        draft.keep(Auth { applies_to: AppliesTo::OptionalIds { ids: optional }, ..entry });
    }
}

/// Error recovery contracts (§10): instructions for clients, kept raw.
fn errors(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(errors) = root.object("errors") else { return };
    if errors.map.is_empty() {
        draft.report_rule(&rules::NO_ERRORS, errors.pointer.clone());
    }
    let actions: HashSet<&str> = root.objects("actions").filter_map(|action| action.text("id")).collect();
    for (code, value) in errors.map {
        let (recovery, pointer) = match value {
            Value::Object(map) => {
                let contract = Object::new(map, errors.at(code));
                draft.check(&contract, &rules::ERROR);
                (contract.text("recovery"), contract.at("recovery"))
            }
            other => {
                let text = format!("the contract of \"{code}\" is {}", type_name(other));
                draft.report(&rules::ERROR_MISTYPED, errors.at(code), text);
                (other.as_str(), errors.at(code))
            }
        };
        match recovery.filter(|_| value.is_object()).map(|text| Actionable::of(text, &actions)) {
            Some(Actionable::No) => draft.report_rule(&rules::ERROR_NOT_ACTIONABLE, pointer),
            Some(Actionable::Vaguely) => draft.report_rule(&rules::ERROR_VAGUE, pointer),
            Some(Actionable::Yes) | None => {}
        }
        let recovery = draft::description(recovery);
        draft.manifest.errors.push(ErrorRecovery { code: code.clone(), recovery });
    }
}

/// Whether a client can act on a recovery hint.
enum Actionable {
    /// It refers to an endpoint, to an action of the manifest, or to a number of seconds or attempts.
    Yes,
    /// It only contains a verb, such as "retry".
    Vaguely,
    No,
}

/// Verbs for actions that a client can take without further information.
const CLIENT_ACTIONS: &[&str] = &[
    "retry",
    "retries",
    "wait",
    "call",
    "refresh",
    "authenticate",
    "reauthenticate",
    "authorize",
    "login",
    "request",
    "query",
    "fetch",
    "poll",
    "search",
    "set",
    "omit",
    "remove",
    "provide",
    "include",
    "send",
    "resend",
    "use",
    "check",
    "reduce",
    "increase",
    "validate",
    "correct",
    "choose",
    "select",
    "skip",
    "abort",
    "stop",
    "back",
    "add",
    "change",
    "replace",
    "repeat",
    "create",
    "get",
    "list",
    "read",
    "update",
    "confirm",
    "re-authenticate",
    "obtain",
    "pass",
    "renew",
    "restart",
    "resubmit",
    "submit",
    "prompt",
    "ask",
];

/// Actions that only a person can take.
const PERSON_ACTIONS: &[&str] = &[
    "ask a human",
    "ask a person",
    "ask someone",
    "ask your administrator",
    "human operator",
    "your judgement",
    "your judgment",
    "common sense",
    "use discretion",
];

impl Actionable {
    fn of(text: &str, actions: &HashSet<&str>) -> Self {
        let text = capped(text, draft::DESCRIPTION_CHARS_MAX);
        let mut words = text.split(|letter: char| {
            letter.is_whitespace() || matches!(letter, ',' | ';' | '(' | ')' | '"' | '\'' | '`')
        });
        let refers = words.any(|word| {
            let bare = word.trim_end_matches(['.', ':', '!', '?']);
            bare.len() > 1 && bare.starts_with('/')
                || bare.contains("://")
                || bare.contains(|letter: char| letter.is_ascii_digit())
                || actions.contains(bare)
        });
        if refers {
            return Self::Yes;
        }
        let folded = text.to_ascii_lowercase();
        if PERSON_ACTIONS.iter().any(|words| folded.contains(words)) {
            return Self::No;
        }
        let mut acts = false;
        for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '-') {
            match word.to_ascii_lowercase().as_str() {
                "support" | "contact" | "sorry" | "helpdesk" => return Self::No,
                word => acts |= CLIENT_ACTIONS.contains(&word),
            }
        }
        if acts { Self::Vaguely } else { Self::No }
    }
}

/// The liveness signal (§13).
fn status(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(status) = draft.checked(root, "agent_status", &rules::STATUS) else { return };
    draft.manifest.status.operational = status.flag("operational");
    draft.manifest.status.degraded_ids =
        status.texts("degraded_actions").into_iter().map(str::to_owned).collect();
    draft.manifest.status.status_url = draft.url(&status, "status_endpoint");
}

/// Synthetic declarations (§14).
fn source(root: &Object<'_>, draft: &mut Draft<'_>) {
    if root.text("source") != Some("synthetic") {
        if root.has("generated_by") && (root.has("confidence") || root.has("last_verified")) {
            let pointer = if root.has("source") { root.at("source") } else { root.pointer.clone() };
            draft.report_rule(&rules::SYNTHETIC_UNMARKED, pointer);
        }
        return;
    }
    draft.check(root, &rules::SYNTHETIC);
    let confidence = root.value("confidence").and_then(Value::as_f64);
    if confidence.is_some_and(|confidence| !(0.0..=1.0).contains(&confidence)) {
        draft.report_rule(&rules::CONFIDENCE, root.at("confidence"));
    }
    draft.manifest.source = Source {
        kind: SourceKind::Synthetic,
        generator: draft::name(root.text("generated_by")),
        confidence: confidence.filter(|confidence| (0.0..=1.0).contains(confidence)),
        last_verified: draft::name(root.text("last_verified")),
    };
}

/// The protocols of version 0.2 are interfaces; their cards are separate manifests.
fn protocols(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(protocols) = root.object("protocols") else { return };
    for (name, protocol) in protocols.members() {
        draft.check(&protocol, &rules::PROTOCOL);
        let url = draft.url(&protocol, "endpoint");
        draft.keep(Interface {
            protocol: auth::protocol(name),
            declared: Some(name.to_owned()),
            url,
            version: draft::name(protocol.text("version")),
            transport: draft::name(protocol.text("transport")),
            settings: settings(&protocol),
        });
        for rel in ["agent_card", "server_card", "openapi"] {
            if let Some(url) = draft.url(&protocol, rel) {
                draft.keep(Link::new(&rel.replace('_', "-"), url, Some(Follow::Manifest)));
            }
        }
    }
}

/// The texts of a protocol that the specification does not define.
fn settings(protocol: &Object<'_>) -> BTreeMap<String, Value> {
    let own = |(name, value): &(&String, &Value)| {
        let is_text = value.as_str().is_some_and(|text| text.len() <= SETTING_BYTES_MAX);
        is_text && !PROTOCOL_KEYS.contains(&name.as_str())
    };
    let settings = protocol.map.iter().filter(own).take(SETTINGS_MAX);
    settings.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Checks that ids in `auth`, `dependencies` and `agent_status` are ids of actions (§7, §11, §13).
fn references(root: &Object<'_>, draft: &mut Draft<'_>) {
    let known: HashSet<&str> = root.objects("actions").filter_map(|action| action.text("id")).collect();
    let lists = [
        ("auth", "required_for", &rules::AUTH_UNKNOWN_ID),
        ("auth", "optional_for", &rules::AUTH_UNKNOWN_ID),
        ("agent_status", "degraded_actions", &rules::STATUS_UNKNOWN_ID),
    ];
    for (part, key, rule) in lists {
        let Some(part) = root.object(part) else { continue };
        for (id, pointer) in unknown(&part, key, &known) {
            draft.report(
                rule,
                pointer,
                format!("`{key}` names \"{}\", which is not an action", capped(id, 60)),
            );
        }
    }
    if let Some(graph) = root.object("dependencies") {
        dependencies(&graph, &known, draft);
    }
    if let Some(auth) = root.object("auth") {
        let required: HashSet<&str> = auth.texts("required_for").into_iter().collect();
        let optional = children_of(&auth, "optional_for");
        for (_, pointer) in optional.into_iter().filter(|(id, _)| required.contains(id.trim())) {
            draft.report_rule(&rules::AUTH_OPTIONAL, pointer);
        }
    }
}

/// The ids of a list that name no action, with their pointers.
fn unknown<'v>(part: &Object<'v>, key: &str, known: &HashSet<&str>) -> Vec<(&'v str, String)> {
    let mut ids = children_of(part, key);
    ids.retain(|(id, _)| !known.contains(id.trim()));
    ids
}

/// The strings of a list, or a lone string, with their pointers.
fn children_of<'v>(part: &Object<'v>, key: &str) -> Vec<(&'v str, String)> {
    let Some(value) = part.value(key) else { return Vec::new() };
    let single = value.as_str().map(|id| (id, part.at(key)));
    let listed = children(value, &part.at(key));
    listed.filter_map(|(_, element, pointer)| Some((element.as_str()?, pointer))).chain(single).collect()
}

fn dependencies(graph: &Object<'_>, known: &HashSet<&str>, draft: &mut Draft<'_>) {
    for (id, value) in graph.map {
        if !known.contains(id.as_str()) {
            draft.report(
                &rules::DEPENDENCY_UNKNOWN,
                graph.at(id),
                format!("\"{}\" is not an action", capped(id, 60)),
            );
        }
        if !value.is_array() {
            let text = format!("the prerequisites of \"{id}\" are {}", type_name(value));
            draft.report(&rules::DEPENDENCY_MISTYPED, graph.at(id), text);
        }
        for (_, element, pointer) in
            children(value, &graph.at(id)).filter(|(_, element, _)| !element.is_string())
        {
            let text = format!("a prerequisite of \"{id}\" is {}", type_name(element));
            draft.report(&rules::DEPENDENCY_MISTYPED, pointer, text);
        }
        for (name, pointer) in unknown(graph, id, known) {
            draft.report(
                &rules::DEPENDENCY_UNKNOWN,
                pointer,
                format!("\"{}\" is not an action", capped(name, 60)),
            );
        }
    }
    if let Some(id) = find_cycle(graph.map) {
        // An action that lists itself is reported at that entry.
        let itself = children_of(graph, id).into_iter().find(|(needed, _)| *needed == id);
        let pointer = itself.map_or_else(|| graph.at(id), |(_, pointer)| pointer);
        draft.report(&rules::DEPENDENCY_CIRCLE, pointer, format!("\"{id}\" depends on itself"));
    }
}

/// Maximum number of steps of the search for a cycle: graphs of manifests have a few dozen edges.
const CYCLE_STEPS_MAX: usize = 20_000;

/// The id of an action that is, directly or indirectly, its own prerequisite.
fn find_cycle(graph: &Map<String, Value>) -> Option<&str> {
    let needs = |id: &str| graph.get(id).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut steps = 0;
    graph.keys().map(String::as_str).find(|start| {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut open: Vec<&str> = needs(start).iter().filter_map(Value::as_str).collect();
        while let Some(id) = open.pop() {
            steps += 1;
            if id == *start {
                return true;
            }
            if steps < CYCLE_STEPS_MAX && seen.insert(id) {
                open.extend(needs(id).iter().filter_map(Value::as_str));
            }
        }
        false
    })
}
