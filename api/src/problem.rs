//! Errors as RFC 9457 problem details that also contain `errorCode` and `message` (ARD 0.91 Appendix B).
//!
//! All responses of 400 and above have this format. Causes of internal errors are logged here, once, and never sent.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use store::{OUTAGE, StoreError};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::quota::RemainingQuota;
use crate::text::cut;

/// `Retry-After` while a dependency is unavailable.
const RETRY_AFTER_S: u32 = 2;

/// Beginning of the detail of a 404 for a path without a route.
pub(crate) const NOTHING_HERE: &str = "there is nothing at this address";

/// Maximum length of a detail in characters: it may repeat client input.
const DETAIL_CHARS_MAX: usize = 1_500;
/// Maximum length of a parameter name in characters: it may repeat client input.
const PARAMETER_CHARS_MAX: usize = 100;

/// An error response. Boxed to keep `Result`s small.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<ProblemBody>);

/// Problem details (RFC 9457) with the members of ARD's errors.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(crate) struct ProblemBody {
    /// Always `about:blank`: the title is the name of the status.
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) title: &'static str,
    #[serde(serialize_with = "status_number")]
    #[schema(value_type = u16)]
    pub(crate) status: StatusCode,
    /// What was wrong, and how to correct it.
    pub(crate) detail: String,
    /// Error code as in ARD.
    #[serde(rename = "errorCode")]
    pub(crate) error_code: &'static str,
    /// Equals `detail`.
    message: String,
    /// Repeats `detail` in responses below `/v0.1`, because clients of the official MCP registry read this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
    /// The parameter that was wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The known values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, required = false)]
    pub(crate) known: Vec<String>,
    /// The address under which the request would have been accepted.
    #[serde(skip)]
    pub(crate) own_origin: Option<String>,
    #[serde(skip)]
    retry_after_s: Option<u32>,
    #[serde(skip)]
    quota: Option<RemainingQuota>,
}

impl ProblemBody {
    /// The detail with the known values, for clients that show only one text.
    pub(crate) fn in_words(&self) -> String {
        if self.known.is_empty() {
            return self.detail.clone();
        }
        cut(&format!("{}: one of {}", self.detail, self.known.join(", ")), DETAIL_CHARS_MAX)
    }

    /// The parameter that was wrong.
    pub(crate) fn parameter(&self) -> Option<&str> {
        self.parameter.as_deref()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn status_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// The error code of ARD if it defines one (400, 401, 404, 429, 500), else one in the same style.
fn error_code(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 => "METHOD_NOT_ALLOWED",
        410 => "GONE",
        413 => "PAYLOAD_TOO_LARGE",
        415 => "UNSUPPORTED_MEDIA_TYPE",
        429 => "RATE_LIMIT_EXCEEDED",
        503 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL_ERROR",
    }
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let detail = cut(&detail.into(), DETAIL_CHARS_MAX);
        Self(Box::new(ProblemBody {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status,
            message: detail.clone(),
            detail,
            error_code: error_code(status),
            error: None,
            parameter: None,
            known: Vec::new(),
            own_origin: None,
            retry_after_s: None,
            quota: None,
        }))
    }

    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, detail)
    }

    pub(crate) fn unauthenticated(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// Too many requests, with `Retry-After`.
    pub(crate) fn too_many(detail: impl Into<String>, retry_after_s: u32) -> Self {
        let mut problem = Self::new(StatusCode::TOO_MANY_REQUESTS, detail);
        problem.0.retry_after_s = Some(retry_after_s);
        problem
    }

    /// Adds the remaining quota of the client.
    pub(crate) fn with_quota(mut self, quota: RemainingQuota) -> Self {
        self.0.quota = Some(quota);
        self
    }

    /// A dependency is temporarily unavailable.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::SERVICE_UNAVAILABLE, detail);
        problem.0.retry_after_s = Some(RETRY_AFTER_S);
        problem
    }

    /// A dependency is unavailable for about `retry_after_s` seconds (`Retry-After`).
    pub(crate) fn unavailable_for(detail: impl Into<String>, retry_after_s: u32) -> Self {
        let mut problem = Self::unavailable(detail);
        problem.0.retry_after_s = Some(retry_after_s);
        problem
    }

    /// An internal error; logs the cause.
    pub(crate) fn internal(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = cause, "request failed");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request failed because of an internal error, which was logged",
        )
    }

    pub(crate) fn with_parameter(mut self, name: &str) -> Self {
        self.0.parameter = Some(cut(name, PARAMETER_CHARS_MAX));
        self
    }

    /// Sets the address under which the request would have been accepted.
    pub(crate) fn with_own_origin(mut self, origin: String) -> Self {
        self.0.own_origin = Some(origin);
        self
    }

    /// Adds the member `error`, which clients of the official MCP registry read.
    pub(crate) fn for_mcp_registry(mut self) -> Self {
        self.0.error = Some(self.0.detail.clone());
        self
    }

    /// Renames the parameter of the problem, for a caller that uses another name.
    pub(crate) fn renamed(mut self, parameter: &str, known_as: &str) -> Self {
        if self.0.parameter.as_deref() == Some(parameter) {
            self.0.parameter = Some(known_as.to_owned());
        }
        self
    }

    pub(crate) fn with_known<T: ToString>(mut self, known: impl IntoIterator<Item = T>) -> Self {
        self.0.known = known.into_iter().map(|name| name.to_string()).collect();
        self
    }

    pub(crate) fn body(&self) -> &ProblemBody {
        &self.0
    }

    /// The problem for a status that the framework answered without a body.
    pub(crate) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::not_found(NOTHING_HERE),
            StatusCode::METHOD_NOT_ALLOWED => Self::new(
                status,
                "this path does not support this method; the Allow header lists the supported methods",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => Self::new(status, "the body is larger than this path accepts"),
            StatusCode::SERVICE_UNAVAILABLE => {
                Self::unavailable("the response took longer than the deadline; try again in a moment")
            }
            StatusCode::BAD_REQUEST => Self::new(status, "the address or the body is not well-formed UTF-8"),
            _ => Self::new(status, status.canonical_reason().unwrap_or("error").to_lowercase()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.0.status, Json(&*self.0)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.0.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.0.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(quota) = self.0.quota {
            quota.write_headers(headers);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// A cursor into entries of the feed that were deleted by age.
pub(crate) fn feed_outrun() -> Problem {
    let detail = "entries after this cursor were deleted by age: begin again with /export.jsonl, which ends with a \
                  cursor, or without a cursor at the first remaining entry";
    Problem::new(StatusCode::GONE, detail).with_parameter("cursor")
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::FeedOutrun { .. }) {
            return feed_outrun();
        }
        if let StoreError::Interrupted { operation } = error {
            return Self::unavailable(match operation {
                "sites_page" | "sites_count" => {
                    "reading the list takes too long at the moment: request fewer names with \"prefix\""
                }
                _ => "counting takes too long at the moment; try again later",
            });
        }
        if error.is_read_only() {
            return Self::unavailable(
                "the database of this server is a read-only replica at the moment: send requests that change data to the server on the primary (its operator can set primary_url)",
            );
        }
        if error.is_transient() {
            OUTAGE.failed("a request", error, Instant::now());
            return Self::unavailable("the database does not respond at the moment");
        }
        Self::internal(&error)
    }
}

/// The problem of a manifest that left the index because its site forbids it or withdrew it.
pub(crate) fn withdrawn() -> Problem {
    let detail = "its site forbids this document now (robots.txt, a preference on its use, or a denial) or withdrew it (410), \
                  so its content is not served any more";
    Problem::new(StatusCode::GONE, detail)
}

/// The problem of a document whose bytes were not stored.
pub(crate) fn not_kept() -> Problem {
    let detail = "the bytes were not kept, because they were served with Cache-Control: no-store; fetch them from the \
                  site itself";
    Problem::new(StatusCode::FORBIDDEN, detail)
}
