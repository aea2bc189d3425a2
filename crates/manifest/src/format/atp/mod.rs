//! ATP, the Agent Transfer Protocol: `agent.json` with JSON-LD context, capabilities, workflows and policies.
//!
//! Follows the ATP specification 0.1. Its published JSON Schema demands more than its prose; both are judged, each as a
//! level of its own. References are resolved within the document and nowhere else.

mod auth;
mod capability;
mod rules;

use std::collections::{HashMap, HashSet};

use crate::draft::{self, Draft};
use crate::model::{PolicyChoice, RateLimit, Workflow, WorkflowStep};
use crate::object::Object;
use crate::quantity;
use crate::rule::Dialect;
use crate::text::capped;

/// The tables of ATP, for the catalogue.
pub(crate) const DIALECT: Dialect = Dialect { title: "ATP", shapes: rules::SHAPES, rules: rules::RULES };

/// Longest manifest that §6.1 advises.
const ADVISED_BYTES: usize = 50_000;

/// Reads an ATP manifest.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.judge("ATP 0.1", |code| code.starts_with("atp."));
    draft.judge("ATP 0.1 schema.json", belongs_to_schema);
    let context = root.text("@context").and_then(|context| context.rsplit('/').next());
    draft.dialect(Some("0.1"), context.is_none().then_some("without context"));
    draft.check(root, &rules::ROOT);
    draft.check(root, &rules::SCHEMA_ROOT);
    if root.list("capabilities").is_some_and(<[_]>::is_empty) {
        draft.report_plainly(&rules::SCHEMA_EMPTY, root.at("capabilities"));
    }
    if draft.document.bytes.len() > ADVISED_BYTES {
        draft.report_plainly(&rules::SIZE, String::new());
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

/// The schema demands presence and types like the prose, but neither a full semantic version nor described parameters.
fn belongs_to_schema(code: &str) -> bool {
    let of_prose_alone = ["atp.version.invalid", "atp.parameter.description.missing"];
    let shared = code.starts_with("atp.") && !of_prose_alone.contains(&code);
    code.starts_with("atp_schema.")
        || (shared && [".missing", ".mistyped", ".invalid"].iter().any(|ending| code.ends_with(ending)))
}

fn provider(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(provider) = root.object("provider") else { return };
    draft.check(&provider, &rules::PROVIDER);
    let logo = draft.url(&provider, "logo");
    let manifest = &mut draft.manifest;
    manifest.provider.name = draft::name(provider.text("name"));
    manifest.provider.url = provider.text("url").map(str::to_owned);
    manifest.provider.logo = logo;
    manifest.declared_origin = provider.text("url").map(str::to_owned);
    manifest.contact = provider.value("contact").map(super::generic::contact).unwrap_or_default();
}

fn rate_limit(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(limit) = root.object("rateLimit") else { return };
    draft.check(&limit, &rules::RATE);
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
    let Some(policies) = root.object("policies") else { return };
    draft.check(&policies, &rules::POLICIES);
    let choice = |key: &str| match policies.text(key) {
        Some("allow") => PolicyChoice::Allow,
        Some("deny") => PolicyChoice::Deny,
        Some("conditional") => PolicyChoice::Conditional,
        _ => PolicyChoice::Unset,
    };
    let (training, inference) = (choice("training"), choice("inference"));
    let conditional = [training, inference].contains(&PolicyChoice::Conditional);
    if conditional && !policies.has("termsUrl") {
        draft.report_plainly(&rules::TERMS_MISSING, policies.pointer.clone());
    }
    let (terms_url, privacy_url) = (draft.url(&policies, "termsUrl"), draft.url(&policies, "privacyUrl"));
    if let Some(caching) = policies.object("caching") {
        draft.check(&caching, &rules::CACHING);
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
    let capabilities = draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone());
    let places: HashMap<String, usize> = capabilities.zip(0..).collect();
    for workflow in root.objects("workflows") {
        draft.check(&workflow, &rules::WORKFLOW);
        let steps = workflow.texts("steps");
        for step in steps.iter().filter(|step| !places.contains_key(**step)) {
            draft.report(&rules::STEP_UNKNOWN, workflow.at("steps"), format!("\"{step}\" is no capability"));
        }
        let distinct: HashSet<&str> = steps.iter().copied().collect();
        if let Some(conditional) = workflow.object("conditional") {
            for step in conditional.map.keys().filter(|step| !distinct.contains(step.as_str())) {
                draft.report(
                    &rules::CONDITION_UNKNOWN,
                    conditional.at(step),
                    format!("\"{step}\" is no step"),
                );
            }
        }
        let id = workflow.text_of(&["id", "name"]).unwrap_or_default();
        let id = capped(id, draft::NAME_CHARS_MAX).to_owned();
        for place in distinct.iter().filter_map(|step| places.get(*step)) {
            if let Some(capability) = draft.manifest.capabilities.get_mut(*place) {
                capability.used_in_workflows.push(id.clone());
            }
        }
        draft.manifest.workflows.push(Workflow {
            id,
            name: draft::name(workflow.text("name")),
            description: draft::description(workflow.text("description")),
            steps: steps.iter().map(|step| WorkflowStep { id: (*step).to_owned(), source: None }).collect(),
            conditions: workflow.value("conditional").cloned(),
        });
    }
}
