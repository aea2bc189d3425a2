//! agents.json as jmilinovich defines it (January 2025): intents with endpoints, next to `site_info`.
//!
//! It has no schema, so only the presence of its parts is checked.

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::endpoint;
use crate::model::{AgentIdentity, Auth, AuthScheme, CapabilityKind, Tristate};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::text::capped;

/// Maximum number of calls of one intent that are kept.
const CALLS_MAX: usize = 100;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let site = c.object("site_info").is_some() && c.has("intents");
    site.then(|| "`site_info` beside `intents`".to_owned())
})];

findings! {
    shape ROOT("agents_json_jm", "agents.json 1.0 (jmilinovich)") {
        must("version", Kind::Text, "State the version."),
        must("site_info", Kind::Object, "Describe the site with `name` and `description`."),
        must("intents", Kind::Object, "List intents under `supported`."),
        may("authentication", Kind::Object, "Publish `authentication` with `required`."),
    }
    shape INTENT("agents_json_jm.intent", "agents.json 1.0 (jmilinovich)") {
        must("type", Kind::Text, "Name the intent."),
        must("description", Kind::Text, "Describe the purpose of the intent."),
        must("endpoints", Kind::List, "List endpoints as objects with `path` and `methods`."),
    }
}

/// Reads intents: every method of every endpoint is one capability.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), None);
    draft.assess("agents.json 1.0 (jmilinovich)", |code| code.starts_with("agents_json_jm."));
    draft.check(root, &ROOT);
    if let Some(site) = root.object("site_info") {
        draft.manifest.name = draft::name(site.text("name"));
        draft.manifest.description = draft::description(site.text("description"));
        draft.manifest.declared_origin = site.string_of(&["home_url", "url"]);
    }
    let needed = root.object("authentication").and_then(|auth| auth.flag("required"));
    let identification = root.object("policies").and_then(|policies| policies.object("agent_identification"));
    if let Some(identification) = identification {
        let required = identification.flag("required").unwrap_or_default();
        let identity = AgentIdentity { required, format: identification.string("method") };
        draft.keep(Auth { agent_identity: Some(identity), ..Auth::new(AuthScheme::AgentIdentity) });
    }
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

/// Maximum number of examples of one intent that are read.
const EXAMPLES_MAX: usize = 64;

fn read_call(
    intent: &Object<'_>,
    endpoint: &Object<'_>,
    method: &str,
    needed: Option<bool>,
    draft: &mut Draft<'_>,
) {
    let path = endpoint.text("path").unwrap_or_default();
    let kind = capped(intent.text("type").unwrap_or_default(), draft::NAME_CHARS_MAX);
    let id = format!("{kind}:{method} {}", capped(path, draft::NAME_CHARS_MAX));
    let name = endpoint.text("description").unwrap_or(kind);
    let mut capability = draft.capability(CapabilityKind::Action, &id, name, endpoint.pointer.clone());
    capability.description = draft::description(intent.text("description"));
    capability.tags = draft::tags([kind]);
    let of_call = |example: &Object<'_>| {
        let request = example.object("request");
        request.is_none_or(|request| request.text("method").is_none_or(|stated| stated == method))
    };
    let examples = intent.objects("examples").take(EXAMPLES_MAX).filter(of_call);
    let examples: Vec<&str> = examples.filter_map(|example| example.text("description")).collect();
    capability.examples = draft::tags(examples);
    capability.auth.required = Tristate::from_option(needed);
    endpoint::read(path, Some(method), &endpoint.at("path"), &mut capability, draft);
    draft.push(capability);
}
