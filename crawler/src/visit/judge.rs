//! What an answer to a manifest's path is: decided from status, headers and body alone.

use chrono::{DateTime, Utc};
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, LAST_MODIFIED, LINK,
    RETRY_AFTER,
};
use manifest::model::Served;
use manifest::{Document, Format, Manifest, ManifestUrl};
use policy::outcome::wall_of;
use policy::{BodyKind, FetchOutcome};

use crate::egress::{Extent, Head, Reply};

use super::task::{Role, Task};

/// Headers that are shown to the site owner, since they decided something.
const SHOWN_HEADERS: [HeaderName; 6] = [CONTENT_TYPE, CACHE_CONTROL, ETAG, LAST_MODIFIED, RETRY_AFTER, LINK];
/// Longest header value that is shown.
const SHOWN_CHARS_MAX: usize = 300;

/// A judged answer.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) outcome: FetchOutcome,
    pub(crate) reason: Option<String>,
    pub(crate) manifest: Option<Box<Manifest>>,
}

impl Judged {
    fn of(outcome: FetchOutcome, reason: impl Into<String>) -> Self {
        Self { outcome, reason: Some(reason.into()), manifest: None }
    }
}

/// Judges a final answer.
pub(crate) fn judge(task: &Task, reply: &Reply, served: &Served) -> Judged {
    if let Some(wall) = wall_of(&reply.head.headers) {
        let reason = format!("a bot wall answered {} ({wall})", reply.head.status);
        return Judged::of(FetchOutcome::Blocked, reason);
    }
    let outcome = FetchOutcome::of_answer(reply.head.status.as_u16(), &reply.head.headers);
    let (None, Some(body)) = (outcome, &reply.body) else {
        let outcome = outcome.unwrap_or(FetchOutcome::ProtocolError);
        return Judged::of(outcome, format!("the server answered {}", reply.head.status));
    };
    let bytes = body.bytes.as_slice();
    match task.role {
        Role::Page => Judged { outcome: FetchOutcome::Html, reason: None, manifest: None },
        Role::Part if !manifest::is_html(bytes) => {
            Judged { outcome: FetchOutcome::Found, reason: None, manifest: None }
        }
        _ if manifest::is_html(bytes) => {
            Judged::of(FetchOutcome::Html, "a page was served in place of a manifest")
        }
        _ => judge_manifest(task, bytes, served),
    }
}

fn judge_manifest(task: &Task, bytes: &[u8], served: &Served) -> Judged {
    let manifest = read(&task.url, task.final_url().as_ref(), task.discovery, served, bytes);
    let is_attempt = bytes.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    match manifest.format() {
        Format::Unrelated | Format::Opaque => {
            let evidence = manifest.detection.evidence.first().cloned().unwrap_or_default();
            Judged::of(FetchOutcome::NotAManifest, format!("{}: {evidence}", manifest.format()))
        }
        Format::Malformed if !is_attempt => {
            Judged::of(FetchOutcome::NotAManifest, "neither JSON nor a known text format")
        }
        format => {
            let reason = (format == Format::Malformed).then(|| "the document is not valid JSON".to_owned());
            Judged { outcome: FetchOutcome::Found, reason, manifest: Some(Box::new(manifest)) }
        }
    }
}

/// Reads a document on its own.
pub(crate) fn read(
    url: &ManifestUrl,
    final_url: Option<&ManifestUrl>,
    discovery: manifest::Discovery,
    served: &Served,
    bytes: &[u8],
) -> Manifest {
    manifest::read(&Document {
        bytes,
        url,
        final_url,
        discovery,
        served: Some(served),
        linked: &[],
        force: None,
    })
}

/// How a document was served, as its findings refer to it.
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
