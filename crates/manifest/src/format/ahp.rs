//! Agent Handshake Protocol manifests.
//!
//! Decides which of three modes serves a capability: content to read (MODE1), questions (MODE2), actions by an agent of the
//! site (MODE3). The last two are messages to the `converse` endpoint.
//!
//! Follows AHP 0.1 (February 2026).

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, ExecutionModel, PolicyChoice, SafetyClass, Severity};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};
use crate::safety;

pub(crate) const DIALECT: Dialect = Dialect {
    title: "Agent Handshake Protocol",
    shapes: &[&ROOT, &CAPABILITY],
    rules: &[&NO_CONVERSE, &UNDECLARED_MODE],
};

const MODES: &[&str] = &["MODE1", "MODE2", "MODE3"];

const ROOT: Shape = Shape {
    code: "ahp",
    spec: "AHP 0.1 §5",
    fields: &[
        must("ahp", Kind::Text, "State the version, 0.1."),
        must("modes", Kind::Texts, "List the modes that the site supports."),
        must("endpoints", Kind::Object, "Name the endpoints `content` and, for MODE2 and MODE3, `converse`."),
        must("capabilities", Kind::List, "List the capabilities as objects."),
        may("authentication", Kind::Any, "State how to authenticate."),
        may("content_signals", Kind::Object, "Publish content signals as an object of truth values."),
        may("rate_limits", Kind::Object, "Publish rate limits as an object."),
    ],
};
const CAPABILITY: Shape = Shape {
    code: "ahp.capability",
    spec: "AHP 0.1 §5.3",
    fields: &[
        must("name", Kind::Text, "Name the capability."),
        must("description", Kind::Text, "Say what it is for."),
        must("mode", Kind::OneOf(MODES), "State the mode that serves it."),
        may("response_types", Kind::Texts, "List response types as strings."),
        may("action_type", Kind::OneOf(&["query", "action", "async"]), "State query, action or async."),
    ],
};
const NO_CONVERSE: Rule = Rule {
    code: "ahp.endpoints.converse.missing",
    severity: Severity::Must,
    spec: "AHP 0.1 §5.2",
    wrong: "MODE2 or MODE3 is declared without a `converse` endpoint",
    fix: "Name `endpoints.converse`.",
};
const UNDECLARED_MODE: Rule = Rule {
    code: "ahp.capability.mode.undeclared",
    severity: Severity::Must,
    spec: "AHP 0.1 §5.3",
    wrong: "a capability uses a mode that `modes` does not list",
    fix: "List the mode or correct the capability.",
};

/// Reads a manifest.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("ahp"), None);
    draft.judge("AHP 0.1", |code| code.starts_with("ahp."));
    draft.check(root, &ROOT);
    generic::describe(root, draft);
    draft.manifest.auth = root.value("authentication").map(loose::auth).unwrap_or_default();
    draft.manifest.rate_limit = root.object("rate_limits").and_then(|limits| {
        ["unauthenticated", "default", "authenticated"]
            .iter()
            .find_map(|key| loose::rate_limit(limits.value(key)?))
    });
    if let Some(signals) = root.object("content_signals") {
        read_signals(&signals, draft);
    }
    let endpoints = root.object("endpoints");
    let mut address = |key: &str| endpoints.as_ref().and_then(|endpoints| draft.url(endpoints, key));
    let (content, converse) = (address("content"), address("converse"));
    let modes: HashSet<&str> = root.texts("modes").into_iter().collect();
    if converse.is_none() && modes.iter().any(|mode| matches!(*mode, "MODE2" | "MODE3")) {
        draft.report_plainly(&NO_CONVERSE, root.at("endpoints"));
    }
    for capability in root.objects("capabilities") {
        draft.check(&capability, &CAPABILITY);
        let mode = capability.text("mode").unwrap_or_default();
        if !mode.is_empty() && !modes.contains(mode) {
            draft.report_plainly(&UNDECLARED_MODE, capability.at("mode"));
        }
        let url = if mode == "MODE1" { content.as_deref() } else { converse.as_deref() };
        read_capability(&capability, mode, url, draft);
    }
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
    policies.attribution = signals
        .flag("attribution_required")
        .map(|required| if required { "required".to_owned() } else { "none".to_owned() });
}

fn read_capability(object: &Object<'_>, mode: &str, url: Option<&str>, draft: &mut Draft<'_>) {
    let name = object.text("name").unwrap_or_default();
    let kind = if mode == "MODE1" { CapabilityKind::Content } else { CapabilityKind::AgentOperation };
    let mut capability = draft.capability(kind, name, "", object.pointer.clone());
    capability.description = draft::description(object.text("description"));
    capability.tags = draft::tags(object.texts("response_types"));
    let method = if mode == "MODE1" { "GET" } else { "POST" };
    if let Some(address) = url.and_then(|url| draft.on_origin(url, &object.pointer)) {
        loose::call(&mut capability, method, address);
    }
    if mode != "MODE1" {
        capability.invocation.native = Some(name.to_owned());
        capability.invocation.envelope = Some(envelope(name));
        // A question may be answered or acted upon: what it does is not said, whatever the method.
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

/// The message that a caller posts.
fn envelope(name: &str) -> Value {
    json!({"ahp": "0.1", "capability": name, "query": "{query}"})
}
