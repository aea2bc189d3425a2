//! Reasons for messages that the library of the protocol refuses: it answers them in plain text, and with 415 for every body that it cannot
//! read. Clients of MCP read errors of JSON-RPC.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use manifest::budget;
use rmcp::model::{ErrorCode, ErrorData};
use serde::de::IgnoredAny;
use serde_json::json;

use crate::body::fresh;
use crate::buffers::BODY_BYTES_MAX;
use crate::problem::Problem;
use crate::text::one_line;

/// Maximum size of a reason of the library in bytes. It repeats a header.
const REASON_BYTES_MAX: usize = 64 * 1024;
/// Characters of it that are repeated.
const REASON_CHARS_MAX: usize = 300;

/// The library only compares the header Host, because the origins are checked before.
const UNKNOWN_HOST: &str = "the header Host names no host of this server, which protects against pages that let their own name lead to it: \
                            use its public address, or add the name to those of the server";

/// Passes a message on and explains its refusal.
pub(super) async fn explain(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // The guard has read it.
    let Ok(message) = to_bytes(body, BODY_BYTES_MAX).await else {
        return Problem::bad_request("the body of the request is incomplete").into_response();
    };
    let is_json_type = parts.headers.get(header::CONTENT_TYPE).is_some_and(is_json);
    let response = next.run(Request::from_parts(parts, Body::from(message.clone()))).await;
    match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json_type => {
            let (code, reason) = unreadable(&message);
            refused(StatusCode::BAD_REQUEST, code, reason.to_owned())
        }
        StatusCode::FORBIDDEN if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) => {
            refused(StatusCode::FORBIDDEN, ErrorCode::INVALID_REQUEST, UNKNOWN_HOST.to_owned())
        }
        status @ (StatusCode::BAD_REQUEST
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE)
            if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) =>
        {
            refused(status, ErrorCode::INVALID_REQUEST, reason_of(response, status).await)
        }
        _ => response,
    }
}

fn is_json(content_type: &HeaderValue) -> bool {
    let essence = content_type.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// Why the library cannot read a message (JSON-RPC 2.0 §5.1).
fn unreadable(message: &Bytes) -> (ErrorCode, &'static str) {
    if budget::parse_within_budget::<IgnoredAny>(message, &budget::REQUEST).is_err() {
        return (ErrorCode::PARSE_ERROR, "the body is not JSON");
    }
    let is_batch = message.trim_ascii_start().starts_with(b"[");
    let reason = if is_batch {
        "batches are not supported: send one message in each request"
    } else {
        "the body is not a message of JSON-RPC 2.0 with the members that its method requires"
    };
    (ErrorCode::INVALID_REQUEST, reason)
}

/// The reason of the library, without the name of the status.
async fn reason_of(response: Response, status: StatusCode) -> String {
    let text = to_bytes(response.into_body(), REASON_BYTES_MAX).await.unwrap_or_default();
    let text = one_line(&String::from_utf8_lossy(&text), REASON_CHARS_MAX);
    let name = status.canonical_reason().and_then(|name| text.strip_prefix(name));
    name.and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&text).to_owned()
}

fn refused(status: StatusCode, code: ErrorCode, reason: String) -> Response {
    // JSON-RPC 2.0 §5: the id is null if it is not known
    let error = ErrorData::new(code, reason, None);
    let mut response = fresh(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
    *response.status_mut() = status;
    response
}
