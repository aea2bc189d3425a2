//! OpenAPI documents: every operation is a capability.
//!
//! A description may be a manifest itself, list the tools of an ARWS manifest, or describe the API of a plugin. References to other
//! documents are reported, never fetched.
//!
//! Follows OpenAPI 3.1.1, 3.0.4 and 2.0 (Swagger), in JSON and YAML.

mod header;
mod mcp;
mod operation;
mod parameters;
mod payment;
mod payment_terms;
mod rules;
mod security;
mod servers;
mod yaml;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::address::{self, Address};
use crate::budget::{self, Measure};
use crate::document::Body;
use crate::document::{NO_OBJECT, OVER_BUDGET};
use crate::draft::{self, CAPABILITIES_MAX, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{lenient, named_keys, needed_credentials};
use crate::json;
use crate::model::{Auth, AuthScheme, CapabilityAuth, Tristate};
use crate::name::ManifestUrl;
use crate::object::Object;
use crate::reference::Resolver;

pub(crate) use rules::FINDINGS;
use security::{SchemeUsers, schemes};
pub(crate) use security::{requirement, scheme_of};
use yaml::YamlError;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let (key, version) = ["openapi", "swagger"].iter().find_map(|key| Some((key, c.text(key)?)))?;
    (c.has("paths") || c.has("info")).then(|| format!("`{key}` is \"{version}\" beside paths or info"))
})];

/// The methods that a path item may contain, as written and as sent.
const METHODS: [(&str, &str); 9] = [
    ("get", "GET"),
    ("put", "PUT"),
    ("post", "POST"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
    ("head", "HEAD"),
    ("patch", "PATCH"),
    ("trace", "TRACE"),
    ("query", "QUERY"),
];

/// Context shared by the operations of a document.
struct Reading<'a> {
    root: &'a Map<String, Value>,
    /// Address of the description. It may differ from the address of the manifest.
    document: &'a ManifestUrl,
    schemes: BTreeMap<String, Auth>,
    /// The default base address and credentials of operations.
    base: Option<String>,
    auth: CapabilityAuth,
}

/// Whether a value looks like an OpenAPI or Swagger description.
fn is_description(document: &Map<String, Value>) -> bool {
    let versioned =
        ["openapi", "swagger"].iter().any(|name| document.get(*name).is_some_and(Value::is_string));
    versioned
        && ["paths", "info", "webhooks"].iter().any(|name| document.get(*name).is_some_and(Value::is_object))
}

/// Reads a description that is the manifest.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    let parsed = match body {
        Body::Json(value) => Ok(Cow::Borrowed(*value)),
        Body::Text(text) => yaml::parse(text).map(Cow::Owned),
    };
    match parsed {
        Ok(document) => {
            if let Value::Object(map) = document.as_ref() {
                header::read(&Object::root(map), draft);
                merge(map, draft.base(), draft);
            } else {
                draft.report_rule(&NO_OBJECT, String::new());
            }
        }
        Err(YamlError::Syntax(reason)) => draft.report(&rules::YAML, String::new(), reason),
        Err(YamlError::OverBudget(over)) => {
            let rule = match over.measure {
                Measure::YamlBytes => &rules::YAML_TOO_LONG,
                _ => &OVER_BUDGET,
            };
            draft.refuse(rule, over.to_string());
        }
    }
}

/// Adds every operation of a description to a manifest. The description is either the manifest itself or completes it. Reports unreadable
/// parts.
pub(crate) fn merge(root: &Map<String, Value>, at: &ManifestUrl, draft: &mut Draft<'_>) {
    let mut resolver = Resolver::new(root, draft.document.bytes.len());
    let schemes = schemes(root);
    let base = servers::base_url(&[root.get("servers")], root, at);
    let mut auth = requirement(root.get("security"), &schemes);
    let described = || root.get("info")?.get("description")?.as_str();
    if auth == CapabilityAuth::default() && schemes.is_empty() && described().is_some_and(lenient::says_open)
    {
        auth.required = Tristate::No;
        draft.keep(Auth::new(AuthScheme::None));
    }
    let reading = Reading { root, document: at, schemes, base, auth };
    let mut users = SchemeUsers::default();
    let mut ids = BTreeSet::new();
    let first = draft.manifest.capabilities.len();
    for operation in path_operations(root, &mut resolver) {
        if draft.is_full() {
            break;
        }
        rules::check_operation(&operation, root, &mut ids, draft);
        let capability = operation::read(&reading, &operation, draft, &mut resolver);
        users
            .add(operation.operation.get("security").or_else(|| root.get("security")), &capability.native_id);
        draft.push(capability);
    }
    payment::read(root, first, draft);
    let known = draft.manifest.auth.len();
    draft.keep_all(users.restricted(reading.schemes));
    // Addresses that the document states outside its description are relative to the document.
    let known: Vec<Auth> = draft.manifest.auth.drain(..known).collect();
    lenient::resolve(draft, |path| address::on_origin(at, path).map(Address::into_string));
    draft.manifest.auth.splice(0..0, known);
    if !draft.format().is_core() {
        needed_credentials::read_beside(first, &reading.auth, draft);
        named_keys::read(first, draft);
    }
    // Without requirements for the whole document, only operations that state a scheme use it.
    if reading.auth == CapabilityAuth::default() {
        draft::restrict_to_needing(&mut draft.manifest);
    }
    mcp::read(first, draft);
    rules::report_problems(resolver.take_problems(), draft);
}

/// Parses a linked description, JSON or YAML. `None` if it is neither, or is not a description.
pub(crate) fn parse_linked(bytes: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.trim_start_matches('\u{feff}');
    let value = if text.trim_start().starts_with('{') {
        let outline = budget::check_json(text.as_bytes(), budget::DOCUMENT).ok()?.outline;
        json::parse(text, &outline).ok()?.0
    } else {
        yaml::parse(text).ok()?
    };
    match value {
        Value::Object(map) if is_description(&map) => Some(map),
        _ => None,
    }
}

fn path_operations<'a>(
    root: &'a Map<String, Value>,
    resolver: &mut Resolver<'a>,
) -> Vec<operation::PathOperation<'a>> {
    let mut path_operations = Vec::new();
    for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let pointer = format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"));
        let Some(item) = resolver.object(item, &pointer) else { continue };
        for (name, method) in METHODS {
            if let Some(operation) = item.get(name).and_then(Value::as_object) {
                let pointer = format!("{pointer}/{name}");
                path_operations.push(operation::PathOperation { path, method, item, operation, pointer });
            }
        }
        // One more than the limit, so that the truncation is reported.
        if path_operations.len() > CAPABILITIES_MAX {
            break;
        }
    }
    path_operations
}

#[cfg(test)]
mod tests;
