//! agents.json 0.1, companion of agents.txt, in its three dialects: the text of the specification, its JSON Schema, and the output of its
//! SDK.
//!
//! The version member distinguishes them: `schema_version`, `protocol_version`, and `schema_version` "1.0" or `flows`. All
//! spellings are accepted; conformance is assessed against the text of the dialect. Missing values get the defaults of the
//! specification (session addresses, lifetime, audit address).

mod capability;
mod rules;

pub(crate) use rules::FINDINGS;

use crate::check::{is_semver, is_url};
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::header;
use crate::model::{AppliesTo, Audit, Auth, AuthScheme, RateLimit, Sessions};
use crate::object::Object;
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| c.with_site("protocol_version")),
    strong(|c| c.with_site("schema_version")),
    at_path(|c| {
        let is_version = c.has("schema_version") || c.has("protocol_version");
        let with_site = c.has("site") && (is_version || c.has("capabilities"));
        // Other files at this path may have a version and capabilities too, but they have a `name`.
        let without_site = is_version
            && !c.has("name")
            && c.list("capabilities")
                .is_some_and(|listed| listed.iter().any(|item| item.get("endpoint").is_some()));
        let alone = c.has_only(&["schema_version", "protocol_version", "site"]);
        let placed = c.is_file(&["/.well-known/agents.json", "/agents.json"]);
        (placed && (with_site || without_site || alone))
            .then(|| format!("members of `schema_version`, `site` and `capabilities` at {}", c.path))
    }),
];

/// Default path where sessions are created.
const SESSION_DEFAULT: &str = "/.well-known/agents/api/session";
/// Default path of audit artifacts.
const AUDIT_DEFAULT: &str = "/.well-known/agents/api/audit";
/// Default lifetime of a session.
const TTL_DEFAULT_S: u64 = 1_800;
/// Shortest lifetime of a session.
const TTL_MIN_S: u64 = 60;

/// The text that a document follows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    Prose,
    Schema,
    Sdk,
}

impl Flavour {
    fn of(root: &Object<'_>) -> Self {
        let part_has = |part: &str, key: &str| root.object(part).is_some_and(|part| part.has(key));
        let is_schema = root.has("protocol_version")
            || part_has("session", "ttl")
            || part_has("rate_limit", "max_requests_per_minute");
        if is_schema && !root.has("schema_version") {
            Self::Schema
        } else if root.text("schema_version") == Some("1.0") || root.has("flows") {
            Self::Sdk
        } else {
            Self::Prose
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Prose => "prose",
            Self::Schema => "schema",
            Self::Sdk => "sdk",
        }
    }
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let flavour = Flavour::of(root);
    let spec = if flavour == Flavour::Schema { "agents.json 0.1.0 schema" } else { "agents.json 0.1.0" };
    draft.assess(spec, |code| code.starts_with("agents_json."));
    draft.dialect(root.text_of(&["schema_version", "protocol_version"]), Some(flavour.as_str()));
    match flavour {
        Flavour::Schema => draft.check(root, &rules::SCHEMA_ROOT),
        Flavour::Sdk if root.text("schema_version") == Some("1.0") => {
            draft.report_rule(&rules::SDK_VERSION, root.at("schema_version"));
        }
        _ => draft.check(root, &rules::ROOT),
    }
    let version = ["schema_version", "protocol_version"].into_iter().find(|key| root.text(key).is_some());
    let is_other =
        |key: &&str| root.text(key).is_some_and(|text| is_semver(text) && !text.starts_with("0.1."));
    if let Some(key) = version.filter(is_other) {
        draft.report_rule(&rules::VERSION_UNKNOWN, root.at(key));
    }
    draft.check(root, &rules::PARTS);
    let listed = ["protocol_version", "site", "capabilities", "session", "rate_limit", "audit", "docs_url"];
    unlisted(root, &listed, flavour, draft);
    site(root, flavour, draft);
    rate_limit(root, flavour, draft);
    audit(root, flavour, draft);
    draft.link(root, "docs_url", "docs", None);
    capability::read(root, flavour, draft);
    sessions(root, flavour, draft);
    flows(root, draft);
}

/// Reports members that the schema does not list, in documents that follow the schema.
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
    let Some(site) = draft.checked(root, "site", &rules::SITE) else { return };
    unlisted(&site, &["name", "url", "description", "contact"], flavour, draft);
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(site.text("name"));
    manifest.description = draft::description(site.text("description"));
    manifest.declared_origin = site.string("url");
    manifest.provider.name = manifest.name.clone();
    manifest.provider.url = site.string("url");
    manifest.contact = site.value("contact").map(header::contact).unwrap_or_default();
}

/// Both spellings are read for every text.
fn rate_limit(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let Some(limit) = root.object("rate_limit") else { return };
    if flavour == Flavour::Schema {
        draft.check(&limit, &rules::SCHEMA_RATE);
        unlisted(&limit, &["max_requests_per_minute", "max_sessions"], flavour, draft);
    } else {
        draft.check(&limit, &rules::RATE);
    }
    for key in ["requests_per_minute", "max_requests_per_minute", "max_sessions"] {
        if limit.whole(key) == Some(0) {
            draft.report(&rules::RATE_ZERO, limit.at(key), format!("`{key}` is 0: nothing is allowed"));
        }
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
    let Some(audit) = draft.checked(root, "audit", &rules::AUDIT) else { return };
    unlisted(&audit, &["enabled", "endpoint", "public_key"], flavour, draft);
    let enabled = audit.flag("enabled");
    let url = match audit.text("endpoint") {
        Some(_) => draft.url(&audit, "endpoint"),
        None if enabled == Some(true) => draft.origin_url(AUDIT_DEFAULT),
        None => None,
    };
    let public_key = audit.string("public_key");
    draft.manifest.audit = Some(Audit { enabled, url, public_key });
}

/// Reports an absolute address where the specification defines a path.
pub(super) fn check_path(object: &Object<'_>, key: &str, draft: &mut Draft<'_>) {
    if object.text(key).is_some_and(|address| is_url(address) || address.starts_with("//")) {
        draft.report(
            &rules::ADDRESS_ABSOLUTE,
            object.at(key),
            format!("`{key}` is an absolute URL, expected a path"),
        );
    }
}

/// The session's configuration, or its defaults if a capability needs one.
fn sessions(root: &Object<'_>, flavour: Flavour, draft: &mut Draft<'_>) {
    let needing = draft.manifest.capabilities.iter().filter(|capability| capability.auth.session);
    let required_ids: Vec<String> = needing.map(|capability| capability.native_id.clone()).collect();
    let session = root.object("session");
    if session.is_none() && required_ids.is_empty() {
        return;
    }
    let mut sessions = Sessions { required_ids, ..Sessions::default() };
    match &session {
        // The shape check reports values of another type.
        None if root.has("session") => {}
        None => draft.report_rule(&rules::SESSION_MISSING, root.pointer.clone()),
        Some(session) => {
            if flavour == Flavour::Schema {
                draft.check(session, &rules::SCHEMA_SESSION);
                unlisted(session, &["endpoint", "ttl"], flavour, draft);
            } else {
                draft.check(session, &rules::SESSION);
            }
            for key in ["create", "delete", "endpoint"] {
                check_path(session, key, draft);
            }
            sessions.create_url = draft.url(session, "create").or_else(|| draft.url(session, "endpoint"));
            sessions.delete_url = draft.url(session, "delete");
            sessions.ttl_s = session.whole("ttl_seconds").or_else(|| session.whole("ttl"));
            if sessions.ttl_s.is_some_and(|ttl_s| ttl_s < TTL_MIN_S) {
                let key = if session.has("ttl_seconds") { "ttl_seconds" } else { "ttl" };
                draft.report_rule(&rules::TTL_SHORT, session.at(key));
            }
        }
    }
    sessions.create_url = sessions.create_url.or_else(|| draft.origin_url(SESSION_DEFAULT));
    sessions.delete_url = sessions.delete_url.or_else(|| sessions.create_url.clone());
    sessions.ttl_s = sessions.ttl_s.or(Some(TTL_DEFAULT_S));
    // Each capability repeats the address, which `draft.push` could not count.
    let bytes_each = sessions.create_url.as_deref().map_or(0, str::len);
    if draft.charge(sessions.required_ids.len() * bytes_each) {
        for capability in draft.manifest.capabilities.iter_mut().filter(|capability| capability.auth.session)
        {
            capability.auth.session_url.clone_from(&sessions.create_url);
        }
    }
    if !sessions.required_ids.is_empty() {
        let applies_to = AppliesTo::Ids { ids: sessions.required_ids.clone() };
        draft.keep(Auth { applies_to, ..Auth::new(AuthScheme::Session) });
    }
    draft.manifest.sessions = Some(sessions);
}

/// Flows, an addition of the SDK.
fn flows(root: &Object<'_>, draft: &mut Draft<'_>) {
    let positions = draft.capability_positions();
    draft.each(root, "flows", &List::of(&rules::FLOW), |flow, draft| {
        draft.add_workflow(flow, &positions, &rules::STEP_UNKNOWN, None);
    });
}
