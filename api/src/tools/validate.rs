//! `validate_manifest`: the dialect of a document and its findings. Nothing is fetched or stored: a URL
//! names a document that the crawler has read before.

use std::collections::BTreeMap;

use manifest::{Format, ManifestId, ManifestUrl};
use serde::Deserialize;
use serde_json::{Value, json};

use super::size_limit::{ANSWER_BYTES_MAX, keep_fitting};
use super::{Definition, UNTRUSTED, object, words};
use crate::answers::validate::{self, ValidateAnswer, placeholder_url};
use crate::client::Client;
use crate::problem::Problem;
use crate::state::App;

/// Maximum number of findings that are listed: what to fix first.
const FINDINGS_MAX: usize = 20;
/// Bytes reserved for everything except the findings.
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
        description: "Reads a manifest as the crawler would: which dialect it is, which rules of its specification it breaks and where, how \
                      to fix them, and how many capabilities a search would find. Give the document itself, or the URL of one that was \
                      crawled before; nothing is fetched.",
        semantic_type: "data:query",
        examples: &["is my agent.json valid", "what is wrong with this manifest"],
        input: object(
            &[],
            &json!({
                "document": {"type": "string", "description": "The manifest's text: JSON, YAML, Markdown or plain text."},
                "url": {"type": "string", "description": "Where the document is or will be published; without a document, the stored document of this URL is checked."},
                "format": {"type": "string", "enum": formats["enum"], "description": "Read it as this dialect instead of detecting the dialect."},
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
        let url = url.ok_or_else(|| {
            Problem::bad_request("give `document` (the text) or `url` (where the document was crawled)")
        })?;
        let stored = app.manifests(client).find(&ManifestId::of(&url)).await?.ok_or_else(|| {
            Problem::not_found(format!(
                "{url} was never crawled, and this tool does not fetch it: give the text as `document`"
            ))
        })?;
        return stored.work(|stored| compact(&validate::answer(stored.manifest, None))).await;
    };
    let url = url.map_or_else(placeholder_url, Ok).map_err(|error| Problem::internal(&error))?;
    let force = arguments.format;
    let reader = app.document_readers.reader();
    let read =
        move || validate::read(&reader, document.into_bytes(), &url, force).map(|answer| compact(&answer));
    app.document_readers.run(client, read).await?
}

/// The most severe findings first, as many as fit.
fn compact(answer: &ValidateAnswer) -> Value {
    let total = answer.findings.len();
    let mut by_severity: BTreeMap<&str, usize> = BTreeMap::new();
    for placed in &answer.findings {
        *by_severity.entry(placed.finding.severity.as_str()).or_default() += 1;
    }
    let mut rows: Vec<Value> =
        answer.findings.iter().take(FINDINGS_MAX).map(|placed| json!(placed)).collect();
    let is_cut = !rows.is_empty() && keep_fitting(&mut rows, ANSWER_BYTES_MAX - HEAD_BYTES);
    json!({
        "format": answer.format, "conformance": answer.level, "evidence": answer.detection.evidence,
        "capabilities": answer.indexed.capabilities, "invocable": answer.indexed.invocable,
        "findings_total": total, "findings_by_severity": by_severity, "findings": rows,
        "truncated": is_cut || total > FINDINGS_MAX, "text_is": UNTRUSTED,
    })
}
