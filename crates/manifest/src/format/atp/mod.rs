//! ATP, the Agent Transfer Protocol: `agent.json` with JSON-LD context, capabilities, workflows and policies.
//!
//! Follows the ATP specification 0.1. Its published JSON Schema is stricter than its prose; each gets its own conformance
//! level. References are resolved within the document only.

mod auth;
mod capability;
mod parameter;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use rules::FINDINGS;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Candidate, Marker, at_path, medium, strong};
use crate::format::header;
use crate::model::{PolicyChoice, RateLimit};
use crate::object::{self, Object};
use crate::quantity;
use crate::rule::Rule;
use crate::schema_check::{self, SchemaFlaw};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        // Other manifests use this type with another context.
        let is_foreign =
            c.value("@context").and_then(context_of).is_some_and(|context| !context.contains("atp"))
                && !["capabilities", "provider", "policies"].iter().any(|key| c.has(key));
        (c.text("@type")? == "AgentManifest" && !is_foreign).then(|| "`@type` is AgentManifest".to_owned())
    }),
    strong(|c| {
        let context = c.value("@context").and_then(context_of).filter(|context| is_atp_context(context))?;
        c.list("capabilities").map(|_| format!("`@context` is {context}, `capabilities` is an array"))
    }),
    medium(|c| {
        let context = c.value("@context").and_then(context_of).filter(|context| is_atp_context(context))?;
        Some(format!("`@context` is {context}, without a list of capabilities"))
    }),
    at_path(|c| {
        // ATP's capabilities are a list with endpoint and method, whereas A2A's are an object of flags.
        let first = c.list("capabilities")?.first()?.as_object()?;
        let atp = first.contains_key("endpoint") && first.contains_key("method") && first.contains_key("id");
        let like =
            c.is_file(&["/agent.json"]) && (c.has("provider") || c.has("rateLimit") || c.has("policies"));
        (atp && like)
            .then(|| "`capabilities` lists id, endpoint and method; `@context` is missing".to_owned())
    }),
    at_path(|c| {
        let signs = shape_signs(c);
        (c.path == "/.well-known/agent.json" && signs.len() >= SIGNS_MIN)
            .then(|| format!("the path, {}; `@context` and `@type` are missing", signs.join(", ")))
    }),
];

/// Signs of ATP at its path that make up for a missing context.
const SIGNS_MIN: usize = 2;
/// Maximum number of capabilities that are searched for signs.
const SIGN_CAPABILITIES_MAX: usize = 20;

/// Members that are specific to ATP, in a document without a context.
fn shape_signs(c: &Candidate<'_>) -> Vec<&'static str> {
    let has = |list: &[Value], key: &str| {
        list.iter().take(SIGN_CAPABILITIES_MAX).any(|element| element.get(key).is_some())
    };
    let listed = c.list("capabilities").unwrap_or_default();
    let within = |key: &str, member: &str| c.object(key).is_some_and(|object| object.contains_key(member));
    [
        (has(listed, "endpoint") && has(listed, "method"), "capabilities with endpoint and method"),
        (has(listed, "semanticType"), "`semanticType`"),
        (has(listed, "sideEffects"), "`sideEffects`"),
        (has(listed, "requiredScopes"), "`requiredScopes`"),
        (within("auth", "schemes"), "`auth.schemes`"),
        (within("auth", "agentIdentity"), "`auth.agentIdentity`"),
        (within("rateLimit", "window"), "`rateLimit.window`"),
        (within("policies", "training"), "`policies.training`"),
    ]
    .into_iter()
    .filter_map(|(found, sign)| found.then_some(sign))
    .collect()
}

/// Longest manifest recommended by §6.1.
const ADVISED_BYTES: usize = 50_000;

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("ATP 0.1", |code| code.starts_with("atp."));
    draft.assess("ATP 0.1 schema.json", belongs_to_schema);
    let context = root.value("@context").and_then(context_of);
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
    schemas(root, draft);
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
    for key in ["requests", "burstLimit"] {
        if limit.whole(key) == Some(0) {
            draft.report(&rules::RATE_ZERO, limit.at(key), format!("`{key}` is 0: no request is allowed"));
        }
    }
    let window_s = limit.text("window").and_then(quantity::duration_s);
    if window_s == Some(0) {
        draft.report(&rules::RATE_ZERO, limit.at("window"), "`window` is 0: no limit applies in no time");
    }
    draft.manifest.rate_limit = Some(RateLimit {
        requests: limit.whole("requests"),
        window_s,
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
        if caching.flag("allowed") == Some(false)
            && caching.whole("maxAge").is_some_and(|seconds| seconds > 0)
        {
            draft.report_rule(&rules::CACHING_CONTRADICTED, caching.at("maxAge"));
        }
        draft.manifest.policies.caching_allowed = caching.flag("allowed");
        draft.manifest.policies.caching_max_age_s = caching.whole("maxAge");
    }
    let stated = &mut draft.manifest.policies;
    (stated.training, stated.inference) = (training, inference);
    (stated.terms_url, stated.privacy_url) = (terms_url, privacy_url);
    stated.attribution = draft::name(policies.text("attribution"));
}

/// Named schemas (§3.7).
fn schemas(root: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(schemas) = root.object("schemas") else { return };
    for (name, schema) in schemas.map {
        check_schema(root.map, schema, schemas.at(name), (&rules::SCHEMA, &rules::SCHEMA_REFERENCE), draft);
    }
    draft.manifest.schemas.clone_from(schemas.map);
}

/// Reports the flaws of a schema and its references without a target.
fn check_schema(
    root: &Map<String, Value>,
    schema: &Value,
    pointer: String,
    (invalid, unresolved): (&Rule, &Rule),
    draft: &mut Draft<'_>,
) {
    for (pointer, flaw) in schema_check::flaws(root, schema, pointer) {
        match flaw {
            SchemaFlaw::Invalid(text) => draft.report(invalid, pointer, text),
            SchemaFlaw::Reference(text) => draft.report(unresolved, pointer, text),
        }
    }
}

/// Workflows (§3.6) are advisory: steps that exist are marked on their capabilities.
fn workflows(root: &Object<'_>, draft: &mut Draft<'_>) {
    let positions = draft.capability_positions();
    let list = List::of(&rules::WORKFLOW)
        .mistyped(&rules::WORKFLOW_MISTYPED)
        .unique("id", &rules::WORKFLOW_DUPLICATE);
    draft.each(root, "workflows", &list, |workflow, draft| {
        if workflow.list("steps").is_some_and(<[_]>::is_empty) {
            draft.report_rule(&rules::STEPS_EMPTY, workflow.at("steps"));
        }
        let conditions = workflow.value("conditional").cloned();
        draft.add_workflow(workflow, &positions, &rules::STEP_UNKNOWN, conditions);
        branches(workflow, &positions, draft);
    });
}

fn branches(workflow: &Object<'_>, positions: &HashMap<String, usize>, draft: &mut Draft<'_>) {
    let Some(conditional) = workflow.object("conditional") else { return };
    let steps: HashSet<&str> = workflow.texts("steps").into_iter().collect();
    for (step, branch) in conditional.map {
        if !steps.contains(step.as_str()) {
            draft.report(
                &rules::CONDITION_UNKNOWN,
                conditional.at(step),
                format!("\"{step}\" is not a step"),
            );
        }
        let Some(branch) = draft.object(branch, conditional.at(step), &rules::BRANCH_MISTYPED) else {
            continue;
        };
        draft.check(&branch, &rules::BRANCH);
        for key in ["onTrue", "onFalse"] {
            let target = branch.text(key).filter(|id| !steps.contains(id) && !positions.contains_key(*id));
            if let Some(target) = target {
                let text = format!("`{key}` leads to \"{target}\", which is neither a step nor a capability");
                draft.report(&rules::BRANCH_UNKNOWN, branch.at(key), text);
            }
        }
    }
}

/// The context of a document: a text, or in a list of contexts (JSON-LD) that of ATP, otherwise the first text.
fn context_of(context: &Value) -> Option<&str> {
    let texts = object::texts(context);
    texts.iter().find(|text| is_atp_context(text)).or_else(|| texts.first()).copied()
}

fn is_atp_context(context: &str) -> bool {
    context.strip_prefix("https://").or_else(|| context.strip_prefix("http://")).is_some_and(|rest| {
        rest.strip_prefix("atp.dev").is_some_and(|path| path.is_empty() || path.starts_with('/'))
    })
}
