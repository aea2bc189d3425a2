//! Creates events, spans and rate samples for responses and failures.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{ManifestUrl, SiteName};
use policy::delay::{Sample, Scope};
use tracing::Span;
use tracing::field::Empty;

use super::super::traffic::millis;
use crate::clock;
use crate::events::Event;
use egress::{Failure, Head, Reply};

/// Maximum gap after a slow response. A longer delay was requested by the server, or follows from Crawl-delay or --delay.
const SLOW_GAP_MAX: Duration = Duration::from_mins(15);

/// The span of one request, with the names of OpenTelemetry.
pub(super) fn fetch_span(url: &ManifestUrl) -> Span {
    tracing::debug_span!(
        "fetch",
        url.full = %url,
        server.address = url.host().as_str(),
        http.response.status_code = Empty,
        otel.kind = "client",
    )
}

pub(super) fn answer_event<'a>(
    site: &'a SiteName,
    url: &'a ManifestUrl,
    answer: &'a Result<Reply, Failure>,
    took: Duration,
) -> Event<'a> {
    let (failure, wire_bytes) = match answer {
        Ok(reply) => (None, reply.wire_bytes),
        Err(failure) => (Some(failure.reason.as_str()), 0),
    };
    let status = head_of(answer).map(|head| head.status.as_u16());
    Event::Answer { site, url, status, failure, wire_bytes, took_ms: millis(took) }
}

/// Status and headers, if they were received, even if the body failed.
pub(super) fn head_of(answer: &Result<Reply, Failure>) -> Option<&Head> {
    match answer {
        Ok(reply) => Some(&reply.head),
        Err(failure) => failure.head.as_deref(),
    }
}

/// The sample of a response from which the rate of its platform adapts.
pub(super) fn sample_of(answer: &Result<Reply, Failure>, took: Duration) -> Option<Sample> {
    let status = head_of(answer)?.status;
    let is_trouble = status.as_u16() == 429 || status.is_server_error();
    Some(if is_trouble { Sample::Failure } else { Sample::Success(took) })
}

/// Why a visit waits until this time. `gap` is the longer one of --delay and Crawl-delay.
pub(super) fn park_reason(scope: Scope, until: DateTime<Utc>, gap: Duration) -> String {
    let wait = (until - clock::now()).to_std();
    let is_gap = wait.is_ok_and(|wait| wait <= SLOW_GAP_MAX.max(gap * 2));
    match scope {
        Scope::Authority if is_gap => {
            "the gap to the next request is long (Crawl-delay, --delay, a slow server, Retry-After, or a restart of the crawler)"
                .to_owned()
        }
        Scope::Authority | Scope::RetryAfter => {
            "its server asked for a delay (Retry-After, or an answer of 429 or 503)".to_owned()
        }
        other => format!("the {other} is busy"),
    }
}

/// Why a visit waits until later for this scope.
pub(super) fn crowded_reason(scope: Scope) -> String {
    format!("many sites wait for the same {scope}")
}
