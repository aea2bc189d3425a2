//! Determines the outcome of a request for a manifest from the status, the headers and the body of its response.

use chrono::{DateTime, Utc};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL,
    CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LINK, RETRY_AFTER,
};
use manifest::model::{PolicyChoice, Served};
use manifest::{Format, Manifest};
use policy::outcome::bot_wall_header;
use policy::{BodyKind, FetchOutcome};

use egress::{Extent, Head, Reply};

use super::task::{Role, Task};

/// Headers that are shown to the site owner because they influenced a decision.
const SHOWN_HEADERS: [HeaderName; 6] = [CONTENT_TYPE, CACHE_CONTROL, ETAG, LAST_MODIFIED, RETRY_AFTER, LINK];
/// Maximum number of characters of a header value that are shown.
const SHOWN_CHARS_MAX: usize = 300;
/// Reason for dropping a document whose own content signals deny search.
const SEARCH_DENIED_BY_DOCUMENT: &str = "the document denies its use for search (content signals)";

/// The outcome of a final response, with its reason.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) outcome: FetchOutcome,
    pub(crate) reason: Option<String>,
    pub(crate) manifest: Option<Box<Manifest>>,
}

/// The reason why a document is not kept although it may be requested, whether this visit received it or read its stored copy again.
pub(crate) fn denial_of_document(manifest: &Manifest) -> Option<&'static str> {
    (manifest.policies.search == PolicyChoice::Deny).then_some(SEARCH_DENIED_BY_DOCUMENT)
}

impl Judged {
    pub(crate) fn of(outcome: FetchOutcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: Some(reason.into()), manifest: None }
    }
}

/// A judgement by the status, the headers and the first bytes of a final response.
#[derive(Debug)]
pub(crate) enum FirstJudgement {
    /// The outcome is known without reading the document.
    Judged(Judged),
    /// The document has to be read.
    Document,
}

/// Judges a final response as far as possible without reading its document.
pub(crate) fn first_judgement(task: &Task, reply: &Reply) -> FirstJudgement {
    let outcome = FetchOutcome::of_response(reply.head.status.as_u16(), &reply.head.headers);
    let (None, Some(body)) = (outcome, &reply.body) else {
        let outcome = outcome.unwrap_or(FetchOutcome::ProtocolError);
        let status = reply.head.status;
        let reason = match bot_wall_header(&reply.head.headers) {
            Some(wall) => format!("a bot wall answered {status} ({wall})"),
            None => format!("the server answered {status}"),
        };
        return FirstJudgement::Judged(Judged::of(outcome, reason));
    };
    let bytes = body.bytes.as_slice();
    let plain = |outcome| FirstJudgement::Judged(Judged { outcome, reason: None, manifest: None });
    match task.role {
        Role::Page => plain(FetchOutcome::Html),
        Role::Part | Role::Claim if !manifest::is_html(bytes) => plain(FetchOutcome::Found),
        _ if manifest::is_html(bytes) => {
            FirstJudgement::Judged(Judged::of(FetchOutcome::Html, "a page was served in place of a manifest"))
        }
        _ => FirstJudgement::Document,
    }
}

/// Whether a document that was read is a manifest, or an attempt at one.
pub(crate) fn is_manifest(bytes: &[u8], manifest: &Manifest) -> bool {
    match manifest.format() {
        Format::Unrelated | Format::Opaque => false,
        Format::Malformed => bytes.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'[')),
        _ => true,
    }
}

/// Judges a document that was read.
pub(crate) fn judge_manifest(bytes: &[u8], manifest: Box<Manifest>) -> Judged {
    match manifest.format() {
        Format::Malformed if !is_manifest(bytes, &manifest) => {
            Judged::of(FetchOutcome::NotAManifest, "neither JSON nor a known text format")
        }
        format if !is_manifest(bytes, &manifest) => {
            let evidence = manifest.detection.evidence.first().cloned().unwrap_or_default();
            Judged::of(FetchOutcome::NotAManifest, format!("{format}: {evidence}"))
        }
        format => {
            let reason = (format == Format::Malformed).then(|| "the document is not valid JSON".to_owned());
            Judged { outcome: FetchOutcome::Found, reason, manifest: Some(manifest) }
        }
    }
}

/// The properties of the response to which the findings of a document refer.
pub(crate) fn served(task: &Task, reply: &Reply, at: DateTime<Utc>) -> Served {
    let text = |name: &HeaderName| reply.head.text(name).map(str::to_owned);
    Served {
        at: Some(at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
        status: reply.head.status.as_u16(),
        etag: text(&ETAG),
        last_modified: text(&LAST_MODIFIED),
        content_type: text(&CONTENT_TYPE),
        cache_control: text(&CACHE_CONTROL),
        cors_allow_origin: text(&ACCESS_CONTROL_ALLOW_ORIGIN),
        cors_allow_methods: text(&ACCESS_CONTROL_ALLOW_METHODS),
        cors_allow_headers: text(&ACCESS_CONTROL_ALLOW_HEADERS),
        bytes: reply.body.as_ref().map_or(0, |body| body.bytes.len() as u64),
        truncated: reply.body.as_ref().is_some_and(|body| body.extent == Extent::Cut)
            && task.body != BodyKind::Homepage,
        redirects: u8::try_from(task.hops.len()).unwrap_or(u8::MAX),
    }
}

/// The headers that are shown.
pub(crate) fn shown_headers(head: &Head) -> Vec<(String, String)> {
    let shown = |name: &HeaderName| {
        let value = head.text(name)?;
        Some((name.as_str().to_owned(), value.chars().take(SHOWN_CHARS_MAX).collect()))
    };
    let mut headers: Vec<_> = SHOWN_HEADERS.iter().filter_map(shown).collect();
    headers.shrink_to_fit();
    headers
}
