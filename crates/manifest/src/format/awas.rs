//! AWAS files: actions of web pages with their HTTP calls.
//!
//! Follows AWAS 1.1 (December 2025). Companion files with the address of the actions become links.

use serde_json::Value;

use crate::budget;
use crate::draft::Draft;
use crate::format::detect::candidate::{Marker, at_path, medium, strong};
use crate::format::{addresses, endpoint, header, idempotency, lenient, mcp};
use crate::model::{CapabilityKind, Follow, Link, SafetyClass, Tristate};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;
use crate::{safety, schema};

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let schema = c.text("$schema").filter(|schema| schema.contains("awas.dev"))?;
        Some(format!("`$schema` is {schema}"))
    }),
    medium(|c| {
        let named = c
            .object("endpoints")?
            .values()
            .find_map(|value| value.as_str().filter(|v| v.ends_with("/awas.json")))?;
        Some(format!("`endpoints` leads to {named}"))
    }),
    at_path(|c| c.agrees(&["/ai-actions.json"], &["actions"])),
];

/// Maximum number of sign-in addresses that are kept.
const ENDPOINTS_MAX: usize = 20;
/// Maximum number of flags of a file without actions that are kept; published ones have up to four.
const FLAGS_MAX: usize = 50;

findings! {
    shape ROOT("awas", "AWAS 1.1") {
        must("specVersion", Kind::Text, "State the version of AWAS."),
        must("name", Kind::Text, "Name the site."),
        must("actions", Kind::List, "List the actions as objects."),
    }
    shape ACTION("awas.action", "AWAS 1.1") {
        must("id", Kind::Text, "Give the action an id."),
        must("name", Kind::Text, "Name the action."),
        must("method", Kind::Text, "State the HTTP method."),
        must("endpoint", Kind::Reference, "State a path or an absolute URL."),
        may("intent", Kind::OneOf(&["read", "write", "delete"]), "State read, write or delete."),
        may("sideEffect", Kind::Text, "State the side effect in a word."),
        may("inputs", Kind::List, "List inputs as objects with `name`."),
    }
}

/// Reads a file of actions, or one with its address.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    header::describe(root, draft);
    if let Some(endpoints) = root.object("endpoints").filter(|_| root.list("actions").is_none()) {
        // AWAS does not define a file that only links to the file with the actions, so there is no verdict.
        draft.dialect(root.text("specVersion"), Some("companion"));
        if let Some(names) = root.value("capabilities") {
            mcp::read_names(names, &root.at("capabilities"), draft);
        }
        for (name, flag) in root.object("capabilities").iter().flat_map(|flags| flags.map).take(FLAGS_MAX) {
            if flag.is_boolean() {
                draft.manifest.features.other.insert(name.clone(), flag.clone());
            }
        }
        for key in endpoints.map.keys() {
            let leads = endpoints.text(key).is_some_and(addresses::leads_to_manifest);
            if leads && let Some(url) = draft.url(&endpoints, key) {
                let follow = url.ends_with("/awas.json").then_some(Follow::Manifest);
                draft.keep(Link::new(key, url, follow));
            }
        }
        return;
    }
    draft.dialect(root.text("specVersion"), None);
    draft.assess("AWAS 1.1", |code| code.starts_with("awas."));
    draft.check(root, &ROOT);
    keep_security(root, draft);
    draft.each(root, "actions", &List::of(&ACTION), read_action);
    if let Some(auth) = root.value("authentication") {
        read_auth(auth, root, draft);
    }
}

/// Maximum number of bytes of the rules about requests that are kept as published.
const SECURITY_BYTES_MAX: usize = 4_096;

/// Keeps the site's requirements for all requests: CSRF tokens, headers, origins.
fn keep_security(root: &Object<'_>, draft: &mut Draft<'_>) {
    let stated = root.value("security").filter(|stated| {
        stated.is_object() && budget::bytes_of(stated, SECURITY_BYTES_MAX) <= SECURITY_BYTES_MAX
    });
    draft.manifest.features.other.extend(stated.map(|stated| ("security".to_owned(), stated.clone())));
}

/// Applies the credentials of the site to the actions that require authentication.
fn read_auth(auth: &Value, root: &Object<'_>, draft: &mut Draft<'_>) {
    let stated = lenient::auth(auth);
    let schemes = lenient::required_by(&stated).schemes;
    draft.keep_all(stated);
    for capability in &mut draft.manifest.capabilities {
        if capability.auth.required == Tristate::Yes {
            capability.auth.schemes.clone_from(&schemes);
        }
    }
    if let Some(endpoints) = root.object("authentication").and_then(|auth| auth.object("endpoints")) {
        for key in endpoints.map.keys().take(ENDPOINTS_MAX) {
            if let Some(url) = draft.url(&endpoints, key) {
                draft.keep(Link::new(key, url, None));
            }
        }
    }
}

fn read_action(action: &Object<'_>, draft: &mut Draft<'_>) {
    let mut capability = draft.begin(CapabilityKind::Action, action, &["id"], &["name"]);
    if let Some(published) = action.text("endpoint") {
        endpoint::read(published, action.text("method"), &action.at("endpoint"), &mut capability, draft);
    }
    capability.parameters = schema::of_call(action.map, &capability.invocation);
    idempotency::read(action, &mut capability);
    capability.response = action.value_of(&["outputSchema", "output", "outputs"]).and_then(lenient::response);
    capability.auth.required = Tristate::from_option(action.flag("authentication_required"));
    capability.auth.scopes = action.texts("authScopes").into_iter().map(str::to_owned).collect();
    draft.link(action, "previewUrl", "preview", None);
    let limit = action.value("rateLimitHint");
    capability.rate_limit = limit.and_then(lenient::rate_limit);
    let rates = limit.and_then(lenient::rates_of);
    capability.published.extend(rates.map(|rates| ("rate_limits".to_owned(), rates)));
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
