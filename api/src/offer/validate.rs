//! `validate_manifest`: what a document is, and what is wrong with it. Nothing is fetched and nothing is stored: a URL
//! names a document that the crawler has read before.

use std::collections::BTreeMap;

use manifest::{Discovery, Document, Finding, Format, Manifest, ManifestId, ManifestUrl};
use serde::Deserialize;
use serde_json::{Value, json};

use super::budget::{ANSWER_BYTES_MAX, fit};
use super::{Definition, UNTRUSTED, object, words};
use crate::app::App;
use crate::client::Client;
use crate::problem::Problem;

/// The URL of a document that is sent without one; the name is reserved and cannot be visited (RFC 6761 §6.4).
const NOWHERE: &str = "https://document.invalid/";
/// Findings that are listed: what to fix first.
const FINDINGS_MAX: usize = 20;
/// Bytes that stay free for everything beside the findings.
const HEAD_BYTES: usize = 1_500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    document: Option<String>,
    url: Option<String>,
    format: Option<Format>,
}

pub(super) fn definition() -> Definition {
    let nullable = |kind: &str| json!({"type": [kind, "null"]});
    let finding = json!({"type": "object", "required": ["code", "severity", "text", "fix"], "properties": {
        "code": {"type": "string"}, "severity": {"type": "string", "enum": ["must", "should", "may", "note"]},
        "spec": {"type": "string"}, "pointer": {"type": "string"}, "line": nullable("integer"), "column": nullable("integer"),
        "text": {"type": "string"}, "fix": {"type": "string"}}});
    let formats = words("", Format::ALL.iter().map(|format| format.as_str()))["items"].clone();
    Definition {
        title: "Validate a manifest",
        description: "Reads a manifest as the crawler would: which dialect it is, which rules of its specification it breaks, where, how \
                      to mend that, and how many capabilities a search would find. Give the document itself, or the URL of one that was \
                      crawled before; nothing is fetched.",
        semantic_type: "data:query",
        examples: &["is my agent.json valid", "what is wrong with this manifest"],
        input: object(
            &[],
            &json!({
                "document": {"type": "string", "description": "The manifest's text: JSON, YAML, Markdown or plain text."},
                "url": {"type": "string", "description": "Where the document lies or will lie; alone, the stored document of this URL is judged."},
                "format": {"type": "string", "enum": formats["enum"], "description": "Read it as this dialect, whatever it looks like."},
            }),
        ),
        output: json!({"type": "object", "required": ["format", "conformance", "capabilities", "findings", "findings_total", "text_is"], "properties": {
            "format": {"type": "string"}, "conformance": {"type": "string"}, "evidence": {"type": "array", "items": {"type": "string"}},
            "capabilities": {"type": "integer"}, "invocable": {"type": "integer"}, "findings_total": {"type": "integer"},
            "findings_by_severity": {"type": "object", "additionalProperties": {"type": "integer"}},
            "findings": {"type": "array", "items": finding}, "truncated": {"type": "boolean"}, "text_is": {"type": "string"}}}),
    }
}

pub(super) async fn call(app: &App, client: Client, arguments: Arguments) -> Result<Value, Problem> {
    let url = arguments.url.as_deref().map(ManifestUrl::parse).transpose();
    let url = url.map_err(|error| Problem::bad_request(error.to_string()))?;
    let Some(document) = arguments.document else {
        let url =
            url.ok_or_else(|| Problem::bad_request("give document, the text, or url, where it was crawled"))?;
        let stored = app.manifests(client).find(&ManifestId::of(&url)).await?.ok_or_else(|| {
            Problem::not_found(format!("{url} was never read here, and is not fetched now: give document"))
        })?;
        return stored.work(|stored| answer(&stored.manifest, None)).await;
    };
    let url = match url {
        Some(url) => url,
        None => ManifestUrl::parse(NOWHERE).map_err(|error| Problem::internal(&error))?,
    };
    let force = arguments.format;
    app.validation().run(client, move || judged(document.as_bytes(), &url, force)).await
}

fn judged(bytes: &[u8], url: &ManifestUrl, force: Option<Format>) -> Value {
    let discovery = Discovery::Submitted;
    let document = Document { bytes, url, final_url: None, discovery, served: None, linked: &[], force };
    answer(&manifest::read(&document), Some(bytes))
}

/// The worst findings first; with the bytes at hand, each with its line.
fn answer(manifest: &Manifest, bytes: Option<&[u8]>) -> Value {
    let mut by_severity: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &manifest.findings {
        *by_severity.entry(finding.severity.as_str()).or_default() += 1;
    }
    let mut findings = manifest.findings.clone();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.truncate(FINDINGS_MAX);
    let mut places = bytes.map(|bytes| manifest::places(bytes, &findings)).unwrap_or_default();
    places.resize(findings.len(), None);
    let row = |(finding, place): (&Finding, Option<(usize, usize)>)| {
        json!({"code": finding.code, "severity": finding.severity, "spec": finding.spec, "pointer": finding.pointer,
               "line": place.map(|(line, _)| line), "column": place.map(|(_, column)| column),
               "text": finding.text, "fix": finding.fix})
    };
    let mut rows: Vec<Value> = findings.iter().zip(places).map(row).collect();
    let is_cut = !rows.is_empty() && fit(&mut rows, ANSWER_BYTES_MAX - HEAD_BYTES);
    let (capabilities, invocable) = if manifest.format().is_indexable() {
        let invocable = manifest.capabilities.iter().filter(|capability| capability.is_invocable()).count();
        (manifest.capabilities.len(), invocable)
    } else {
        (0, 0)
    };
    json!({
        "format": manifest.format(), "conformance": manifest.level(), "evidence": manifest.detection.evidence,
        "capabilities": capabilities, "invocable": invocable,
        "findings_total": manifest.findings.len(), "findings_by_severity": by_severity, "findings": rows,
        "truncated": is_cut || manifest.findings.len() > FINDINGS_MAX, "text_is": UNTRUSTED,
    })
}
