//! ATP, the Agent Transfer Protocol: `agent.json` with JSON-LD context, capabilities, workflows and policies.
//!
//! Follows the ATP specification 0.1. Its published JSON Schema is stricter than its prose; each gets its own conformance
//! level. References are resolved within the document only.

mod auth;
mod capability;
mod rules;

pub(crate) use rules::FINDINGS;

use std::collections::HashSet;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, medium, strong};
use crate::format::header;
use crate::model::{PolicyChoice, RateLimit};
use crate::object::Object;
use crate::quantity;
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| (c.text("@type")? == "AgentManifest").then(|| "`@type` is AgentManifest".to_owned())),
    strong(|c| {
        let context = c.text("@context").filter(|context| is_atp_context(context))?;
        c.list("capabilities").map(|_| format!("`@context` is {context}, `capabilities` is an array"))
    }),
    medium(|c| {
        let context = c.text("@context").filter(|context| is_atp_context(context))?;
        Some(format!("`@context` is {context}, without a list of capabilities"))
    }),
    at_path(|c| {
        // ATP's capabilities are a list with endpoint and method where A2A's are an object of switches.
        let first = c.list("capabilities")?.first()?.as_object()?;
        let atp = first.contains_key("endpoint") && first.contains_key("method") && first.contains_key("id");
        let like =
            c.is_file(&["/agent.json"]) && (c.has("provider") || c.has("rateLimit") || c.has("policies"));
        (atp && like)
            .then(|| "`capabilities` lists id, endpoint and method; `@context` is missing".to_owned())
    }),
];

/// Longest manifest recommended by §6.1.
const ADVISED_BYTES: usize = 50_000;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ATP 0.1", |code| code.starts_with("atp."));
    draft.assess("ATP 0.1 schema.json", belongs_to_schema);
    let context = root.text("@context").and_then(|context| context.rsplit('/').next());
    draft.dialect(Some("0.1"), context.is_none().then_some("without context"));
    draft.check(root, &rules::ROOT);
    draft.check(root, &rules::SCHEMA_ROOT);
    if root.list("capabilities").is_some_and(<[_]>::is_empty) {
        draft.report_rule(&rules::SCHEMA_EMPTY, root.at("capabilities"));
    }
    if draft.document.bytes.len() > ADVISED_BYTES {
        draft.report_rule(&rules::SIZE, String::new());
    }
    draft.manifest.name = draft::name(root.text("name"));
    draft.manifest.description = draft::description(root.text("description"));
    draft.manifest.document_version = draft::name(root.text("version"));
    provider(root, draft);
    auth::read(root, draft);
    rate_limit(root, draft);
    policies(root, draft);
    draft.manifest.schemas = root.object("schemas").map(|schemas| schemas.map.clone()).unwrap_or_default();
    capability::read(root, draft);
    workflows(root, draft);
}

/// The schema requires presence and types like the prose, but neither a full semantic version nor described parameters.
fn belongs_to_schema(code: &str) -> bool {
    let of_prose_alone = ["atp.version.invalid", "atp.parameter.description.missing"];
    let shared = code.starts_with("atp.") && !of_prose_alone.contains(&code);
    code.starts_with("atp_schema.")
        || (shared && [".missing", ".mistyped", ".invalid"].iter().any(|ending| code.ends_with(ending)))
}

fn provider(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(provider) = draft.checked(root, "provider", &rules::PROVIDER) else { return };
    let logo = draft.url(&provider, "logo");
    let manifest = &mut draft.manifest;
    manifest.provider.name = draft::name(provider.text("name"));
    manifest.provider.url = provider.string("url");
    manifest.provider.logo = logo;
    manifest.declared_origin = provider.string("url");
    manifest.contact = provider.value("contact").map(header::contact).unwrap_or_default();
}

fn rate_limit(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(limit) = draft.checked(root, "rateLimit", &rules::RATE) else { return };
    draft.check(&limit, &rules::SCHEMA_RATE);
    draft.manifest.rate_limit = Some(RateLimit {
        requests: limit.whole("requests"),
        window_s: limit.text("window").and_then(quantity::duration_s),
        burst: limit.whole("burstLimit"),
        concurrent_sessions: None,
        tier_url: draft.url(&limit, "tierUrl"),
        text: draft::name(limit.text("window")),
    });
}

fn policies(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(policies) = draft.checked(root, "policies", &rules::POLICIES) else { return };
    let choice = |key: &str| match policies.text(key) {
        Some("allow") => PolicyChoice::Allow,
        Some("deny") => PolicyChoice::Deny,
        Some("conditional") => PolicyChoice::Conditional,
        _ => PolicyChoice::Unset,
    };
    let (training, inference) = (choice("training"), choice("inference"));
    let conditional = [training, inference].contains(&PolicyChoice::Conditional);
    if conditional && !policies.has("termsUrl") {
        draft.report_rule(&rules::TERMS_MISSING, policies.pointer.clone());
    }
    let (terms_url, privacy_url) = (draft.url(&policies, "termsUrl"), draft.url(&policies, "privacyUrl"));
    if let Some(caching) = draft.checked(&policies, "caching", &rules::CACHING) {
        draft.manifest.policies.caching_allowed = caching.flag("allowed");
        draft.manifest.policies.caching_max_age_s = caching.whole("maxAge");
    }
    let stated = &mut draft.manifest.policies;
    (stated.training, stated.inference) = (training, inference);
    (stated.terms_url, stated.privacy_url) = (terms_url, privacy_url);
    stated.attribution = draft::name(policies.text("attribution"));
}

/// Workflows (§3.6) are advisory: steps that exist are marked on their capabilities.
fn workflows(root: &Object<'_>, draft: &mut Draft<'_>) {
    let positions = draft.capability_positions();
    draft.each(root, "workflows", &List::of(&rules::WORKFLOW), |workflow, draft| {
        let conditions = workflow.value("conditional").cloned();
        draft.add_workflow(workflow, &positions, &rules::STEP_UNKNOWN, conditions);
        let Some(conditional) = workflow.object("conditional") else { return };
        let steps: HashSet<&str> = workflow.texts("steps").into_iter().collect();
        for step in conditional.map.keys().filter(|step| !steps.contains(step.as_str())) {
            let text = format!("\"{step}\" is not a step");
            draft.report(&rules::CONDITION_UNKNOWN, conditional.at(step), text);
        }
    });
}

fn is_atp_context(context: &str) -> bool {
    context.strip_prefix("https://").or_else(|| context.strip_prefix("http://")).is_some_and(|rest| {
        rest.strip_prefix("atp.dev").is_some_and(|path| path.is_empty() || path.starts_with('/'))
    })
}
