//! agents.json 0.1, companion of agents.txt, in the three dialects that exist: the prose of the specification, its JSON
//! Schema, and what its SDK writes.
//!
//! The version member tells them apart: `schema_version`, `protocol_version`, and `schema_version` "1.0" or `flows`. All are
//! accepted with all their spellings; each is judged against its own text. Where the specification states a default
//! (session addresses, lifetime, audit address) the default is read.

mod capability;
mod rules;

use std::collections::{HashMap, HashSet};

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{AppliesTo, Audit, Auth, AuthScheme, RateLimit, Sessions, Workflow, WorkflowStep};
use crate::object::Object;
use crate::rule::Dialect;
use crate::text::capped;

/// The tables of agents.json, for the catalogue.
pub(crate) const DIALECT: Dialect =
    Dialect { title: "agents.json 0.1", shapes: rules::SHAPES, rules: rules::RULES };

/// Where sessions are created unless the manifest says otherwise.
const SESSION_DEFAULT: &str = "/.well-known/agents/api/session";
/// Where audit artifacts are unless the manifest says otherwise.
const AUDIT_DEFAULT: &str = "/.well-known/agents/api/audit";
/// Seconds that a session lives unless the manifest says otherwise.
const TTL_DEFAULT_S: u64 = 1_800;
/// Seconds that a session has to live.
const TTL_MIN_S: u64 = 60;

/// Which of the three texts a document follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    Prose,
    Schema,
    Sdk,
}

impl Flavour {
    fn of(root: &Object<'_>) -> Self {
        if root.has("protocol_version") && !root.has("schema_version") {
            Self::Schema
        } else if root.text("schema_version") == Some("1.0") || root.has("flows") {
            Self::Sdk
        } else {
            Self::Prose
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Schema => "schema",
            Self::Sdk => "sdk",
        }
    }
}

/// Reads an agents.json manifest.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let flavour = Flavour::of(root);
    let spec = if flavour == Flavour::Schema { "agents.json 0.1.0 schema" } else { "agents.json 0.1.0" };
    draft.judge(spec, |code| code.starts_with("agents_json."));
    draft.dialect(root.text_of(&["schema_version", "protocol_version"]), Some(flavour.words()));
    match flavour {
        Flavour::Schema => draft.check(root, &rules::SCHEMA_ROOT),
        Flavour::Sdk if root.text("schema_version") == Some("1.0") => {
            draft.report_plainly(&rules::SDK_VERSION, root.at("schema_version"));
        }
        _ => draft.check(root, &rules::ROOT),
    }
    draft.check(root, &rules::PARTS);
    let listed = ["protocol_version", "site", "capabilities", "session", "rate_limit", "audit", "docs_url"];
    unlisted(root, &listed, flavour, draft);
    site(root, flavour, draft);
    rate_limit(root, flavour, draft);
    audit(root, flavour, draft);
    if let Some(url) = draft.url(root, "docs_url") {
        draft.manifest.links.push(loose::link("docs", url, None));
    }
    capability::read(root, flavour, draft);
    sessions(root, flavour, draft);
    flows(root, draft);
}

/// The schema closes every object: what it does not list is reported where the schema is followed.
pub(super) fn unlisted(object: &Object<'_>, listed: &[&str], flavour: Flavour, draft: &mut Draft<'_>) {
    if flavour != Flavour::Schema {
        return;
    }
    for key in object.map.keys().filter(|key| !listed.contains(&key.as_str())) {
        draft.report(
            &rules::UNLISTED,
            object.at(key),
            format!("`{key}` is not a member that the schema lists"),
        );
    }
}

fn site(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let Some(site) = root.object("site") else { return };
    draft.check(&site, &rules::SITE);
    unlisted(&site, &["name", "url", "description", "contact"], flavour, draft);
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(site.text("name"));
    manifest.description = draft::description(site.text("description"));
    manifest.declared_origin = site.text("url").map(str::to_owned);
    manifest.provider.name = manifest.name.clone();
    manifest.provider.url = site.text("url").map(str::to_owned);
    manifest.contact = site.value("contact").map(generic::contact).unwrap_or_default();
}

/// Both spellings are read, whichever text is followed.
fn rate_limit(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let Some(limit) = root.object("rate_limit") else { return };
    if flavour == Flavour::Schema {
        draft.check(&limit, &rules::SCHEMA_RATE);
        unlisted(&limit, &["max_requests_per_minute", "max_sessions"], flavour, draft);
    } else {
        draft.check(&limit, &rules::RATE);
    }
    let requests = limit.whole("requests_per_minute").or_else(|| limit.whole("max_requests_per_minute"));
    draft.manifest.rate_limit = Some(RateLimit {
        requests,
        window_s: requests.map(|_| 60),
        concurrent_sessions: limit.whole("max_sessions"),
        ..RateLimit::default()
    });
}

fn audit(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let Some(audit) = root.object("audit") else { return };
    draft.check(&audit, &rules::AUDIT);
    unlisted(&audit, &["enabled", "endpoint", "public_key"], flavour, draft);
    let enabled = audit.flag("enabled");
    let url = match audit.text("endpoint") {
        Some(_) => draft.url(&audit, "endpoint"),
        None if enabled == Some(true) => absolute(AUDIT_DEFAULT, draft),
        None => None,
    };
    let public_key = audit.text("public_key").map(str::to_owned);
    draft.manifest.audit = Some(Audit { enabled, url, public_key });
}

fn absolute(path: &str, draft: &Draft<'_>) -> Option<String> {
    crate::address::on_origin(draft.base(), path).map(crate::address::Address::into_string)
}

/// The session's configuration, or its defaults where a capability needs one.
fn sessions(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let needing = draft.manifest.capabilities.iter().filter(|capability| capability.auth.session);
    let required_ids: Vec<String> = needing.map(|capability| capability.native_id.clone()).collect();
    let session = root.object("session");
    if session.is_none() && required_ids.is_empty() {
        return;
    }
    let mut sessions = Sessions { required_ids, ..Sessions::default() };
    match &session {
        None => draft.report_plainly(&rules::SESSION_MISSING, root.pointer.clone()),
        Some(session) => {
            if flavour == Flavour::Schema {
                draft.check(session, &rules::SCHEMA_SESSION);
                unlisted(session, &["endpoint", "ttl"], flavour, draft);
            } else {
                draft.check(session, &rules::SESSION);
            }
            sessions.create_url = draft.url(session, "create").or_else(|| draft.url(session, "endpoint"));
            sessions.delete_url = draft.url(session, "delete");
            sessions.ttl_s = session.whole("ttl_seconds").or_else(|| session.whole("ttl"));
            if sessions.ttl_s.is_some_and(|ttl_s| ttl_s < TTL_MIN_S) {
                draft.report_plainly(&rules::TTL_SHORT, session.pointer.clone());
            }
        }
    }
    sessions.create_url = sessions.create_url.or_else(|| absolute(SESSION_DEFAULT, draft));
    sessions.delete_url = sessions.delete_url.or_else(|| sessions.create_url.clone());
    sessions.ttl_s = sessions.ttl_s.or(Some(TTL_DEFAULT_S));
    if !sessions.required_ids.is_empty() {
        let applies_to = AppliesTo::Ids { ids: sessions.required_ids.clone() };
        draft.manifest.auth.push(Auth { applies_to, ..Auth::new(AuthScheme::Session) });
    }
    draft.manifest.sessions = Some(sessions);
}

/// What the SDK adds: named orders of capabilities.
fn flows(root: &Object<'_>, draft: &mut Draft<'_>) {
    let capabilities = draft.manifest.capabilities.iter().map(|capability| capability.native_id.clone());
    let places: HashMap<String, usize> = capabilities.zip(0..).collect();
    for flow in root.objects("flows") {
        draft.check(&flow, &rules::FLOW);
        let steps = flow.texts("steps");
        for step in steps.iter().filter(|step| !places.contains_key(**step)) {
            draft.report(&rules::STEP_UNKNOWN, flow.at("steps"), format!("\"{step}\" is no capability"));
        }
        let id = flow.text_of(&["id", "name"]).unwrap_or_default();
        let id = capped(id, draft::NAME_CHARS_MAX).to_owned();
        let distinct: HashSet<&str> = steps.iter().copied().collect();
        for place in distinct.iter().filter_map(|step| places.get(*step)) {
            if let Some(capability) = draft.manifest.capabilities.get_mut(*place) {
                capability.used_in_workflows.push(id.clone());
            }
        }
        draft.manifest.workflows.push(Workflow {
            name: draft::name(flow.text("name")),
            description: draft::description(flow.text("description")),
            steps: steps.iter().map(|step| WorkflowStep { id: (*step).to_owned(), source: None }).collect(),
            conditions: None,
            id,
        });
    }
}
