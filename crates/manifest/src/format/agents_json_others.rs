//! Two further formats that are published as agents.json.
//!
//! jmilinovich's (January 2025) lists intents with endpoints beside `site_info`; `LeonTing`'s (April 2026) lists data and
//! actions under version 1.0. Neither has a schema, so nothing but the presence of their parts is demanded.

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Tristate};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Shape, may, must};

/// Calls of one intent that are kept.
const CALLS_MAX: usize = 100;

pub(crate) const INTENTS_DIALECT: Dialect = Dialect {
    title: "agents.json with intents (jmilinovich)",
    shapes: &[&INTENTS_ROOT, &INTENT],
    rules: &[],
};
pub(crate) const DATA_DIALECT: Dialect =
    Dialect { title: "agents.json with data and actions (LeonTing)", shapes: &[&DATA_ROOT], rules: &[] };

const INTENTS_ROOT: Shape = Shape {
    code: "agents_json_jm",
    spec: "agents.json 1.0 (jmilinovich)",
    fields: &[
        must("version", Kind::Text, "State the version."),
        must("site_info", Kind::Object, "Describe the site with `name` and `description`."),
        must("intents", Kind::Object, "List intents under `supported`."),
        may("authentication", Kind::Object, "Publish `authentication` with `required`."),
    ],
};
const INTENT: Shape = Shape {
    code: "agents_json_jm.intent",
    spec: "agents.json 1.0 (jmilinovich)",
    fields: &[
        must("type", Kind::Text, "Name the intent."),
        must("description", Kind::Text, "Say what the intent is for."),
        must("endpoints", Kind::List, "List endpoints as objects with `path` and `methods`."),
    ],
};
const DATA_ROOT: Shape = Shape {
    code: "agents_json_lt",
    spec: "agents.json 1.0 (LeonTing)",
    fields: &[
        must("version", Kind::Text, "State the version."),
        may("data", Kind::List, "List data as objects."),
        may("actions", Kind::List, "List actions as objects."),
    ],
};

/// Reads intents: every method of every endpoint is a call of its own.
pub(crate) fn read_intents(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.judge("agents.json 1.0 (jmilinovich)", |code| code.starts_with("agents_json_jm."));
    draft.check(root, &INTENTS_ROOT);
    if let Some(site) = root.object("site_info") {
        draft.manifest.name = draft::name(site.text("name"));
        draft.manifest.description = draft::description(site.text("description"));
        draft.manifest.declared_origin = site.text_of(&["home_url", "url"]).map(str::to_owned);
    }
    let needed = root.object("authentication").and_then(|auth| auth.flag("required"));
    for intent in root.object("intents").iter().flat_map(|intents| intents.objects("supported")) {
        draft.check(&intent, &INTENT);
        let needed = intent.flag("authentication_required").or(needed);
        for endpoint in intent.objects("endpoints").take(CALLS_MAX) {
            for method in endpoint.texts("methods") {
                read_call(&intent, &endpoint, method, needed, draft);
            }
        }
    }
}

fn read_call(
    intent: &Object<'_>,
    endpoint: &Object<'_>,
    method: &str,
    needed: Option<bool>,
    draft: &mut Draft<'_>,
) {
    let path = endpoint.text("path").unwrap_or_default();
    let kind = intent.text("type").unwrap_or_default();
    let id = format!("{kind}:{method} {path}");
    let name = endpoint.text("description").unwrap_or(kind);
    let mut capability = draft.capability(CapabilityKind::Action, &id, name, endpoint.pointer.clone());
    capability.description = draft::description(intent.text("description"));
    capability.tags = draft::tags([kind]);
    capability.auth.required = Tristate::from_option(needed);
    loose::endpoint(path, Some(method), &endpoint.at("path"), &mut capability, draft);
    draft.push(capability);
}

/// Reads data and actions.
pub(crate) fn read_data(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.judge("agents.json 1.0 (LeonTing)", |code| code.starts_with("agents_json_lt."));
    draft.check(root, &DATA_ROOT);
    generic::describe(root, draft);
    for key in ["data", "actions"] {
        if let Some(value) = root.value(key) {
            generic::offer(key, value, &root.at(key), draft);
        }
    }
}
