//! `get_site`: the state of a site, and the quality of its declarations.

use std::collections::BTreeMap;

use manifest::{Severity, SiteName};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::StoredManifest;

use super::size_limit::{ANSWER_BYTES_MAX, keep_fitting, size};
use super::{Definition, UNTRUSTED, address, mark_addressing, object, publisher_schema, short};
use crate::answers::listed_by::{Comparable, brief, listings, of_site};
use crate::client::Client;
use crate::clock;
use crate::manifests::SiteManifests;
use crate::problem::Problem;
use crate::state::App;

/// Number of visits that are read, latest first.
const VISITS: u32 = 1;
/// Maximum number of names of capabilities that are listed for each manifest.
const NAMES_MAX: usize = 10;
const NAME_CHARS: usize = 80;
/// Bytes reserved for everything except the manifests and the listings.
const HEAD_BYTES: usize = 2_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    domain: String,
}

pub(super) fn definition() -> Definition {
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    let capability = json!({"type": "object", "required": ["id", "name"], "properties": {"id": {"type": "string"}, "name": {"type": "string"}}});
    let manifest = json!({"type": "object", "required": ["id", "url", "format", "conformance", "capabilities"], "properties": {
        "id": {"type": "string"}, "url": {"type": "string"}, "publisher": publisher_schema(), "format": {"type": "string"}, "status": {"type": "string"},
        "conformance": {"type": "string"}, "identity": {"type": "array", "items": {"type": "string"}, "description": "Whether the publisher is the site (bound, foreign), and the result of the signature."}, "findings": {"type": "object", "additionalProperties": {"type": "integer"}},
        "capabilities": {"type": "integer"}, "first_capabilities": {"type": "array", "items": capability}}});
    Definition {
        title: "Get a site",
        description: "What is known of one domain: its status, its manifests with dialect and conformance, their first capabilities, \
                      the last visit and when the next one is planned.",
        semantic_type: "data:query",
        examples: &["what does this domain offer to agents", "when is my site crawled next"],
        input: object(
            &["domain"],
            &json!({"domain": {"type": "string", "maxLength": 253, "description": "A domain, like skyhop.example."}}),
        ),
        output: json!({"type": "object", "required": ["site", "status", "manifests", "url", "text_is"], "properties": {
            "site": {"type": "string"}, "status": {"type": "string"}, "opted_out": {"type": "boolean"},
            "suspended": {"type": ["string", "null"], "description": "Why the operator suspended it."},
            "last_visit_at": nullable("string"), "last_visit_ended": nullable("string"),
            "next_visit_at": nullable("string"), "next_visit_reason": nullable("string"),
            "listed_by": super::listed_by_schema(), "manifests": {"type": "array", "items": manifest}, "truncated": {"type": "boolean"},
            "url": {"type": "string", "description": "URL of the complete record."}, "text_is": {"type": "string"}}}),
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let site = SiteName::parse(&arguments.domain).map_err(|error| Problem::bad_request(error.to_string()))?;
    let listings = listings(&app.store, &site).await?;
    let add = |rows: &mut Vec<(Value, Option<Comparable>)>, stored: StoredManifest| {
        rows.push((row(&stored), Comparable::of(&stored)));
    };
    let found = app.manifests(client).site(&site, VISITS, 0, add).await?;
    let found = found.ok_or_else(|| {
        Problem::not_found(format!(
            "{site} is not known here: no seed list contains it and no manifest links to it; submit_site requests a visit"
        ))
    })?;
    let url = address(app, &format!("/sites/{site}"));
    let answer = found.work(move |SiteManifests { report, visited, left_out }| {
        let (mut rows, comparable): (Vec<Value>, Vec<Option<Comparable>>) = visited.into_iter().unzip();
        let comparable: Vec<&Comparable> = comparable.iter().flatten().collect();
        let listed_by = json!(brief(&of_site(&site, listings, &comparable)));
        let bytes_max = ANSWER_BYTES_MAX.saturating_sub(HEAD_BYTES + size(&listed_by));
        let is_long = !rows.is_empty() && keep_fitting(&mut rows, bytes_max);
        let is_cut = is_long || !left_out.is_empty();
        let summary = &report.summary;
        json!({
            "site": site, "status": summary.status, "opted_out": report.blocked.is_some(),
            "suspended": report.suspended.as_ref().map(|suspended| suspended.reason),
            "last_visit_at": summary.last_visit_at, "last_visit_ended": summary.last_end,
            "next_visit_at": summary.next_visit_at, "next_visit_reason": summary.next_visit_reason,
            "listed_by": listed_by, "manifests": rows, "truncated": is_cut, "url": url, "text_is": UNTRUSTED,
        })
    });
    answer.await
}

fn row(stored: &StoredManifest) -> Value {
    let manifest = &stored.manifest;
    let mut findings: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &manifest.findings {
        *findings.entry(Severity::as_str(finding.severity)).or_default() += 1;
    }
    let first = manifest.capabilities.iter().take(NAMES_MAX);
    let first: Vec<Value> = first
        .map(|capability| {
            let mut row = Map::from_iter([("id".to_owned(), json!(capability.id))]);
            mark_addressing(&mut row, capability.addresses_reader);
            row.insert("name".to_owned(), short(&capability.name, NAME_CHARS).into());
            Value::Object(row)
        })
        .collect();
    json!({
        "id": manifest.id, "url": manifest.url, "publisher": stored.publisher, "format": manifest.format(), "status": stored.status,
        "conformance": manifest.level(), "identity": stored.identity().at(clock::now()).marks(), "findings": findings,
        "capabilities": manifest.capabilities.len(), "first_capabilities": first,
    })
}
