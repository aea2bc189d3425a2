//! Creates events, spans and rate samples for responses and failures.

use std::time::Duration;

use manifest::{ManifestUrl, SiteName};
use policy::delay::{Sample, Scope};
use tracing::Span;
use tracing::field::Empty;

use super::super::traffic::millis;
use crate::events::Event;
use egress::{Failure, Head, Reply};

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

pub(super) fn park_reason(scope: Scope) -> String {
    match scope {
        Scope::Authority => {
            "the gap to the next request is long (Crawl-delay, --delay, or a slow server)".to_owned()
        }
        Scope::RetryAfter => "the site asked for a delay (Retry-After)".to_owned(),
        other => format!("the {other} is busy"),
    }
}
