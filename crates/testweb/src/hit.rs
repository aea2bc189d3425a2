//! The records of requests and connections. The politeness audit uses them, because the server records them independently of the crawler.

use std::{net::SocketAddr, sync::Arc};

use http::{HeaderMap, HeaderName, Method, header, request};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};

use crate::Answer;

/// Headers by which a bot wall is recognised.
const BOT_WALL_HEADERS: [&str; 2] = ["cf-mitigated", "x-amzn-waf-action"];

/// Maximum bytes of the body of a POST that is recorded.
const POSTED_BYTES_MAX: usize = 64 * 1024;

/// One request and its response.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hit {
    /// Number of the request, in the order in which requests began.
    pub id: u64,
    /// Number of the connection over which the request was received.
    pub connection: u64,
    /// When the head of the request had been read, in microseconds since the web began (monotonic).
    pub started_us: u64,
    /// When the last byte of the response was written, or the client disconnected (monotonic).
    pub ended_us: u64,
    /// The start in microseconds since 1970.
    pub wall_us: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub server: SocketAddr,
    /// The name in the handshake (SNI).
    pub host: String,
    /// `Host` or `:authority` of the request.
    pub authority: String,
    /// `HTTP/1.1` or `HTTP/2.0`.
    pub http_version: String,
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers that concern politeness.
    pub request: RequestHeaders,
    /// The status that was sent. Absent if the connection was reset, closed or stalled instead.
    pub status: Option<u16>,
    /// The headers that concern politeness.
    pub response: ResponseHeaders,
    /// Bytes of the body that were sent on the wire.
    pub body_bytes: u64,
    /// Whether the whole response was sent.
    pub complete: bool,
    /// The body of a POST, if it is text of at most 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<Arc<str>>,
    /// The body sent with a 2xx on a path with `robots` in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots_body: Option<Arc<str>>,
}

/// The headers of a request that concern politeness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestHeaders {
    /// `User-Agent`.
    pub user_agent: Option<String>,
    /// `From`.
    pub from: Option<String>,
    /// `Accept`.
    pub accept: Option<String>,
    /// `Accept-Encoding`.
    pub accept_encoding: Option<String>,
    /// `If-None-Match`.
    pub if_none_match: Option<String>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<String>,
    /// `Referer`, which a crawler has no reason to send.
    pub referer: Option<String>,
    /// `Cookie`, which a crawler has no reason to send.
    pub cookie: Option<String>,
    /// `Signature-Agent` of Web Bot Auth.
    pub signature_agent: Option<String>,
    /// `Signature-Input` (RFC 9421).
    pub signature_input: Option<String>,
    /// `Signature` (RFC 9421).
    pub signature: Option<String>,
    /// `webhook-id` of Standard Webhooks.
    pub webhook_id: Option<String>,
    /// `webhook-timestamp`.
    pub webhook_timestamp: Option<String>,
    /// `webhook-signature`.
    pub webhook_signature: Option<String>,
}

/// The headers of a response that concern politeness.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResponseHeaders {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
    /// `Expires`.
    pub expires: Option<String>,
    /// `Age`.
    pub age: Option<String>,
    /// `Vary`.
    pub vary: Option<String>,
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// The header of a bot wall, with its value.
    pub wall: Option<String>,
}

/// One connection, recorded when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// Number of the connection.
    pub id: u64,
    /// When it was accepted, in microseconds since the web began.
    pub opened_us: u64,
    /// When it ended.
    pub closed_us: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub server: SocketAddr,
    /// The name in the handshake, if the client sent one.
    pub host: Option<String>,
    /// The result of the handshake.
    pub handshake: HandshakeOutcome,
    /// Number of requests.
    pub requests: u64,
}

/// The result of a handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakeOutcome {
    /// It completed.
    Completed,
    /// The client sent an invalid handshake, disconnected, or refused the certificate.
    Failed(String),
    /// No host of the web has that name.
    UnknownName,
    /// The host is configured to reset, close or stall.
    Misbehaved,
}

impl RequestHeaders {
    pub(crate) fn of(head: &request::Parts) -> Self {
        let get = |name: HeaderName| text(&head.headers, &name);
        Self {
            user_agent: get(header::USER_AGENT),
            from: get(header::FROM),
            accept: get(header::ACCEPT),
            accept_encoding: get(header::ACCEPT_ENCODING),
            if_none_match: get(header::IF_NONE_MATCH),
            if_modified_since: get(header::IF_MODIFIED_SINCE),
            referer: get(header::REFERER),
            cookie: get(header::COOKIE),
            signature_agent: get(HeaderName::from_static("signature-agent")),
            signature_input: get(HeaderName::from_static("signature-input")),
            signature: get(HeaderName::from_static("signature")),
            webhook_id: get(HeaderName::from_static("webhook-id")),
            webhook_timestamp: get(HeaderName::from_static("webhook-timestamp")),
            webhook_signature: get(HeaderName::from_static("webhook-signature")),
        }
    }
}

impl ResponseHeaders {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let get = |name: HeaderName| text(headers, &name);
        Self {
            content_type: get(header::CONTENT_TYPE),
            content_encoding: get(header::CONTENT_ENCODING),
            etag: get(header::ETAG),
            last_modified: get(header::LAST_MODIFIED),
            cache_control: get(header::CACHE_CONTROL),
            expires: get(header::EXPIRES),
            age: get(header::AGE),
            vary: get(header::VARY),
            retry_after: get(header::RETRY_AFTER),
            location: get(header::LOCATION),
            wall: BOT_WALL_HEADERS
                .iter()
                .find_map(|name| Some(format!("{name}: {}", get(HeaderName::from_static(name))?))),
        }
    }
}

/// The body of a POST.
pub(crate) async fn posted_body(head: &request::Parts, body: Incoming) -> Option<Arc<str>> {
    if head.method != Method::POST {
        return None;
    }
    let body = Limited::new(body, POSTED_BYTES_MAX).collect().await.ok()?;
    Some(std::str::from_utf8(&body.to_bytes()).ok()?.into())
}

/// The decoded robots.txt of an answer. The path may differ from `/robots.txt` after redirects.
pub(crate) fn robots_body(path: &str, answer: &Answer) -> Option<Arc<str>> {
    let crate::answer::Content::Body { plain, .. } = &answer.content else {
        return None;
    };
    (path.contains("robots") && answer.status.is_success()).then(|| String::from_utf8_lossy(plain).into())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}
