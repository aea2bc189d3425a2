//! Agent Handshake Protocol manifests.
//!
//! A capability has one of three modes: content to read (MODE1), questions (MODE2), actions by an agent of the site (MODE3).
//! The last two are messages to the `converse` endpoint.
//!
//! Follows AHP 0.1 (February 2026).

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{endpoint, header, lenient};
use crate::model::{CapabilityAuth, CapabilityKind, ExecutionModel, PolicyChoice, SafetyClass};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::safety;
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] =
    &[strong(|c| c.value("ahp").map(|version| format!("`ahp` is {version}")))];

findings! {
    shape ROOT("ahp", "AHP 0.1 §5") {
        must("ahp", Kind::Text, "State the version, 0.1."),
        must("modes", Kind::Texts, "List the modes that the site supports."),
        must("endpoints", Kind::Object, "Name the endpoints `content` and, for MODE2 and MODE3, `converse`."),
        must("capabilities", Kind::List, "List the capabilities as objects."),
        may("authentication", Kind::Any, "State how to authenticate."),
        may("content_signals", Kind::Object, "Publish content signals as an object of truth values."),
        may("rate_limits", Kind::Object, "Publish rate limits as an object."),
    }
    shape CAPABILITY("ahp.capability", "AHP 0.1 §5.3") {
        must("name", Kind::Text, "Name the capability."),
        must("description", Kind::Text, "Describe its purpose."),
        must("mode", Kind::OneOf(MODES), "State the mode that serves it."),
        may("response_types", Kind::Texts, "List response types as strings."),
        may("action_type", Kind::OneOf(&["query", "action", "async"]), "State query, action or async."),
    }
    rule NO_CONVERSE: Must("ahp.endpoints.converse.missing", "AHP 0.1 §5.2")
        "MODE2 or MODE3 is declared without a `converse` endpoint" => "Name `endpoints.converse`.";
    rule UNDECLARED_MODE: Must("ahp.capability.mode.undeclared", "AHP 0.1 §5.3")
        "a capability uses a mode that `modes` does not list" => "List the mode or correct the capability.";
}

const MODES: &[&str] = &["MODE1", "MODE2", "MODE3"];

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("ahp"), None);
    draft.assess("AHP 0.1", |code| code.starts_with("ahp."));
    draft.check(root, &ROOT);
    header::describe(root, draft);
    let stated = root.value("authentication").map(lenient::auth).unwrap_or_default();
    let needed = lenient::required_by(&stated);
    draft.keep_all(stated);
    draft.manifest.rate_limit = root.object("rate_limits").and_then(|limits| {
        ["unauthenticated", "default", "authenticated"]
            .iter()
            .find_map(|key| lenient::rate_limit(limits.value(key)?))
    });
    if let Some(eta) = root.object("async").and_then(|async_| async_.whole("max_eta_seconds")) {
        draft.manifest.features.other.insert("max_eta_seconds".to_owned(), Value::from(eta));
    }
    if let Some(signals) = root.object("content_signals") {
        read_signals(&signals, draft);
    }
    let endpoints = root.object("endpoints");
    let mut address = |key: &str| endpoints.as_ref().and_then(|endpoints| draft.url(endpoints, key));
    let (content, converse) = (address("content"), address("converse"));
    let modes: HashSet<&str> = root.texts("modes").into_iter().collect();
    if converse.is_none() && modes.iter().any(|mode| matches!(*mode, "MODE2" | "MODE3")) {
        draft.report_rule(&NO_CONVERSE, root.at("endpoints"));
    }
    draft.each(root, "capabilities", &List::of(&CAPABILITY), |capability, draft| {
        let mode = capability.text("mode").unwrap_or_default();
        if !mode.is_empty() && !modes.contains(mode) {
            draft.report_rule(&UNDECLARED_MODE, capability.at("mode"));
        }
        let url = if mode == "MODE1" { content.as_deref() } else { converse.as_deref() };
        read_capability(capability, mode, url, &needed, draft);
    });
}

fn read_signals(signals: &Object<'_>, draft: &mut Draft<'_>) {
    let choice = |key: &str| match signals.flag(key) {
        Some(true) => PolicyChoice::Allow,
        Some(false) => PolicyChoice::Deny,
        None => PolicyChoice::Unset,
    };
    let policies = &mut draft.manifest.policies;
    policies.training = choice("ai_train");
    policies.inference = choice("ai_input");
    policies.search = choice("search");
    policies.attribution = signals
        .flag("attribution_required")
        .map(|required| if required { "required".to_owned() } else { "none".to_owned() });
}

fn read_capability(
    object: &Object<'_>,
    mode: &str,
    url: Option<&str>,
    needed: &CapabilityAuth,
    draft: &mut Draft<'_>,
) {
    let name = object.text("name").unwrap_or_default();
    let kind = if mode == "MODE1" { CapabilityKind::Content } else { CapabilityKind::AgentOperation };
    let mut capability = draft.begin(kind, object, &["name"], &[]);
    capability.tags = draft::tags(object.texts("response_types"));
    capability.auth = needed.clone();
    let published = ["mode", "action_type", "accept_fallback"].iter();
    let published = published.filter_map(|key| Some(((*key).to_owned(), object.value(key)?.clone())));
    capability.published.extend(published.filter(|(_, value)| value.is_boolean() || is_short(value)));
    let eta = object.object("async").and_then(|async_| async_.whole("max_eta_seconds"));
    let counts = [("token_budget", object.whole("token_budget")), ("max_eta_seconds", eta)];
    let counts = counts.into_iter().filter_map(|(key, count)| Some((key.to_owned(), Value::from(count?))));
    capability.published.extend(counts);
    let method = if mode == "MODE1" { "GET" } else { "POST" };
    if let Some(address) = url.and_then(|url| draft.on_origin(url, &object.pointer)) {
        endpoint::set_call(&mut capability, method, address);
    }
    if mode != "MODE1" {
        capability.invocation.native = Some(name.to_owned());
        capability.invocation.envelope = Some(envelope(name));
        // The effect of a question is not declared, regardless of the method.
        capability.safety = match object.text("action_type") {
            Some("query") => safety::declared(SafetyClass::Read),
            Some("action" | "async") => safety::declared(SafetyClass::Write),
            _ => safety::declared(SafetyClass::Unknown),
        };
        if object.text("action_type") == Some("async") {
            capability.execution.model = ExecutionModel::Async;
        }
    }
    draft.push(capability);
}

/// Whether a value is a text of a few words.
fn is_short(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() <= draft::NAME_BYTES_MAX)
}

/// The message of a call.
fn envelope(name: &str) -> Value {
    json!({"ahp": "0.1", "capability": name, "query": "{query}"})
}
