//! OpenAPI documents: every operation is a capability.
//!
//! Decides which operations a description holds, wherever it is reached from: at its own address, as the tools of an ARWS
//! manifest, as the API of a plugin, as a service description of an API catalog. It refuses to fetch: references to other
//! documents are reported, not followed.
//!
//! Follows OpenAPI 3.1.1, 3.0.4 and 2.0 (Swagger), in JSON and YAML.

mod operation;
mod parameters;
mod schema;
mod security;
mod servers;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::model::{Auth, Capability, Format};
use crate::name::ManifestUrl;

pub(crate) use schema::{Problem, ProblemKind, Resolver};
pub(crate) use security::{requirement, scheme_of, schemes};
pub(crate) use yaml::parse as parse_yaml;

/// Operations that are read from one document; the largest published description seen has 1,112.
const OPERATIONS_MAX: usize = 5_000;

/// The methods that a path item may hold, as written and as sent.
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

/// Whom the operations belong to, and where their description lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// The manifest that the capabilities are part of.
    pub(crate) manifest: &'a ManifestUrl,
    pub(crate) format: Format,
    /// The address of the OpenAPI document, often the manifest's own.
    pub(crate) document: &'a ManifestUrl,
}

/// What a description declares.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) auth: Vec<Auth>,
    pub(crate) problems: BTreeSet<Problem>,
    /// Pointers of operations whose `operationId` was used before.
    pub(crate) repeated_ids: Vec<String>,
    /// More operations than the cap.
    pub(crate) is_truncated: bool,
}

/// What every operation of a document shares.
struct Reading<'a> {
    root: &'a Map<String, Value>,
    target: Target<'a>,
    schemes: BTreeMap<String, Auth>,
}

/// Whether a value looks like an OpenAPI or Swagger description.
pub(crate) fn is_description(document: &Value) -> bool {
    let versioned =
        ["openapi", "swagger"].iter().any(|name| document.get(name).is_some_and(Value::is_string));
    versioned
        && ["paths", "info", "webhooks"].iter().any(|name| document.get(name).is_some_and(Value::is_object))
}

/// Reads every operation of a description. Never fails: what cannot be read is missing and named in `problems`.
pub(crate) fn operations(document: &Value, target: Target<'_>) -> Operations {
    let Some(root) = document.as_object() else { return Operations::default() };
    let mut resolver = Resolver::new(document);
    let reading = Reading { root, target, schemes: schemes(root) };
    let mut found = Operations { auth: reading.schemes.values().cloned().collect(), ..Operations::default() };
    let mut ids = BTreeSet::new();
    for place in places(root, &mut resolver) {
        if found.capabilities.len() == OPERATIONS_MAX {
            found.is_truncated = true;
            break;
        }
        let native_id = identity(&place, &mut ids, &mut found.repeated_ids);
        found.capabilities.push(operation::read(&reading, &place, &native_id, &mut resolver));
    }
    found.problems = resolver.into_problems();
    found
}

fn places<'a>(root: &'a Map<String, Value>, resolver: &mut Resolver<'a>) -> Vec<operation::Place<'a>> {
    let mut places = Vec::new();
    for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let pointer = format!("/paths/{}", path.replace('~', "~0").replace('/', "~1"));
        let Some(item) = resolver.object(item, &pointer) else { continue };
        for (name, method) in METHODS {
            if let Some(operation) = item.get(name).and_then(Value::as_object) {
                let pointer = format!("{pointer}/{name}");
                places.push(operation::Place { path, method, item, operation, pointer });
            }
        }
    }
    places
}

/// The operation's own id, or method and path where it has none or shares it.
fn identity(place: &operation::Place<'_>, ids: &mut BTreeSet<String>, repeated: &mut Vec<String>) -> String {
    let declared = place.operation.get("operationId").and_then(Value::as_str).map(str::trim);
    if let Some(id) = declared.filter(|id| !id.is_empty()) {
        if ids.insert(id.to_owned()) {
            return id.to_owned();
        }
        repeated.push(place.pointer.clone());
    }
    let id = format!("{} {}", place.method, place.path);
    ids.insert(id.clone());
    id
}

#[cfg(test)]
mod tests;
