//! AWAS files: actions of web pages with their HTTP calls.
//!
//! Follows AWAS 1.1 (December 2025). Companion files of the same project that only say where the actions are become links.

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Follow, SafetyClass, Tristate};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Shape, may, must};
use crate::{safety, schema};

pub(crate) const DIALECT: Dialect = Dialect { title: "AWAS actions", shapes: &[&ROOT, &ACTION], rules: &[] };

const ROOT: Shape = Shape {
    code: "awas",
    spec: "AWAS 1.1",
    fields: &[
        must("specVersion", Kind::Text, "State the version of AWAS."),
        must("name", Kind::Text, "Name the site."),
        must("actions", Kind::List, "List the actions as objects."),
    ],
};
const ACTION: Shape = Shape {
    code: "awas.action",
    spec: "AWAS 1.1",
    fields: &[
        must("id", Kind::Text, "Give the action an id."),
        must("name", Kind::Text, "Name the action."),
        must("method", Kind::Text, "State the HTTP method."),
        must("endpoint", Kind::Reference, "Name a path or an absolute URL."),
        may("intent", Kind::OneOf(&["read", "write", "delete"]), "State read, write or delete."),
        may("sideEffect", Kind::Text, "State the side effect in a word."),
        may("inputs", Kind::List, "List inputs as objects with `name`."),
    ],
};

/// Reads a file of actions, or one that leads to it.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("specVersion"), None);
    draft.judge("AWAS 1.1", |code| code.starts_with("awas."));
    generic::describe(root, draft);
    if let Some(endpoints) = root.object("endpoints").filter(|_| root.list("actions").is_none()) {
        for key in endpoints.map.keys() {
            let leads = endpoints.text(key).is_some_and(crate::detect::leads_to_manifest);
            if leads && let Some(url) = draft.url(&endpoints, key) {
                let follow = url.ends_with("/awas.json").then_some(Follow::Manifest);
                draft.manifest.links.push(loose::link(key, url, follow));
            }
        }
        return;
    }
    draft.check(root, &ROOT);
    for action in root.objects("actions") {
        if draft.is_full() {
            return;
        }
        draft.check(&action, &ACTION);
        read_action(&action, draft);
    }
}

fn read_action(action: &Object<'_>, draft: &mut Draft<'_>) {
    let id = action.text("id").unwrap_or_default();
    let name = action.text("name").unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Action, id, name, action.pointer.clone());
    capability.description = draft::description(action.text("description"));
    if let Some(published) = action.text("endpoint") {
        loose::endpoint(published, action.text("method"), &action.at("endpoint"), &mut capability, draft);
    }
    let method = capability.invocation.method.as_deref();
    let inputs = action.value("inputs");
    capability.parameters =
        inputs.and_then(|value| schema::loose(value, method, capability.invocation.endpoint()));
    capability.response =
        action.value("output").or_else(|| action.value("outputs")).and_then(loose::response);
    capability.auth.required = Tristate::from_option(action.flag("authentication_required"));
    capability.rate_limit = action.value("rateLimitHint").and_then(loose::rate_limit);
    let class = match (action.text("intent"), action.text("sideEffect")) {
        (Some("delete"), _) | (_, Some("destructive" | "irreversible")) => Some(SafetyClass::Destructive),
        (Some("write"), _) | (_, Some("mutating" | "write" | "idempotent")) => Some(SafetyClass::Write),
        (Some("read"), _) | (_, Some("safe" | "none")) => Some(SafetyClass::Read),
        _ => None,
    };
    if let Some(class) = class {
        capability.safety = safety::declared(class);
    }
    draft.push(capability);
}
