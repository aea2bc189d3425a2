//! Converts an [`Answer`] to the response to one request. Handles conditional requests (RFC 9110 §13), content coding (§12.5.3) and HEAD.

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request, uri::PathAndQuery,
};
use hyper::body::Bytes;

use crate::{
    Answer,
    answer::{Content, HEADERS_OF_304},
    body::{ContentLength, ResponseBody},
    log::OpenHit,
};

/// A response whose body does not yet hold the record of the hit.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    segments: Vec<(Bytes, u64)>,
    content_length: ContentLength,
}

impl Reply {
    /// The reply to a request, for answers that HTTP can express.
    pub(crate) fn new(answer: &Answer, head: &request::Parts) -> Self {
        let is_served = matches!(head.method, Method::GET | Method::HEAD)
            || (answer.takes_posts && head.method == Method::POST);
        if !is_served {
            let mut headers = HeaderMap::new();
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Self::without_body(StatusCode::METHOD_NOT_ALLOWED, headers);
        }
        let (coding, segments) = negotiate(answer, &head.headers);
        let mut headers = headers_of(answer, coding);
        if let Content::Moved(origin) = &answer.content {
            let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
            headers.extend(format!("{origin}{path}").parse().ok().map(|target| (header::LOCATION, target)));
        }
        if answer.status.is_success() && is_unchanged(&headers, &head.headers) {
            return Self::without_body(StatusCode::NOT_MODIFIED, headers_of_304(&headers));
        }
        let mut reply =
            Self { status: answer.status, headers, segments, content_length: ContentLength::Exact };
        if let Some(length) = answer.content_length {
            reply.content_length = ContentLength::Other;
            reply.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        if head.method == Method::HEAD {
            reply.drop_body();
        }
        reply
    }

    /// The response, whose body closes the record of the hit.
    pub(crate) fn into_response(self, answer: &Answer, hit: OpenHit) -> Response<ResponseBody> {
        let mut response =
            Response::new(ResponseBody::new(self.segments, answer.pace, self.content_length, hit));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    /// This body with these headers.
    pub(crate) fn with_body(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        Self { segments: vec![(body, 1)], ..Self::without_body(status, headers) }
    }

    pub(crate) fn without_body(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers, segments: Vec::new(), content_length: ContentLength::Exact }
    }

    fn drop_body(&mut self) {
        let length: u64 = self.segments.iter().map(|(bytes, times)| bytes.len() as u64 * times).sum();
        self.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
        self.segments.clear();
    }
}

/// The path of a request, without and with its query.
pub(crate) fn paths_of<B>(request: &Request<B>) -> (String, String) {
    let uri = request.uri();
    let whole = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
    (uri.path().to_owned(), whole)
}

fn negotiate(answer: &Answer, request: &HeaderMap) -> (Option<&'static str>, Vec<(Bytes, u64)>) {
    match &answer.content {
        Content::Body { brotli: Some(coded), .. } if accepts(request, "br") => {
            (Some("br"), vec![(coded.clone(), 1)])
        }
        Content::Body { gzip: Some(coded), .. } if accepts(request, "gzip") => {
            (Some("gzip"), vec![(coded.clone(), 1)])
        }
        Content::Body { plain, .. } => (None, vec![(plain.clone(), 1)]),
        Content::Segments(segments) => (None, segments.clone()),
        _ => (None, Vec::new()),
    }
}

fn headers_of(answer: &Answer, coding: Option<&'static str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        headers.append(name, value.clone());
    }
    if let Content::Body { gzip, brotli, .. } = &answer.content
        && (gzip.is_some() || brotli.is_some())
    {
        headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    if let Some(coding) = coding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    if let Some(etag) = answer.etag.as_deref().and_then(|etag| coded_etag(etag, coding).parse().ok()) {
        headers.insert(header::ETAG, etag);
    }
    if let Some(unix_s) = answer.last_modified_s {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s);
        let date = httpdate::fmt_http_date(time).parse().expect("a date is a header value");
        headers.insert(header::LAST_MODIFIED, date);
    }
    headers
}

/// The ETag of a coded body. It differs for each coding, because a strong `ETag` identifies one coded form (RFC 9110 §8.8.3.3).
fn coded_etag(etag: &str, coding: Option<&str>) -> String {
    match (coding, etag.strip_suffix('"')) {
        (Some(coding), Some(opened)) => format!("{opened}-{coding}\""),
        _ => etag.to_owned(),
    }
}

/// If-None-Match takes precedence (RFC 9110 §13.2.2).
fn is_unchanged(sent: &HeaderMap, request: &HeaderMap) -> bool {
    if let Some(tags) = request.get(header::IF_NONE_MATCH) {
        return sent.get(header::ETAG).is_some_and(|etag| matches_any(etag.as_bytes(), tags.as_bytes()));
    }
    let date = |headers: &HeaderMap, name| {
        headers.get(name).and_then(|value: &HeaderValue| httpdate::parse_http_date(value.to_str().ok()?).ok())
    };
    match (date(sent, header::LAST_MODIFIED), date(request, header::IF_MODIFIED_SINCE)) {
        (Some(modified), Some(since)) => modified <= since,
        _ => false,
    }
}

/// Weak comparison (RFC 9110 §8.8.3.2) with each tag of a list, or `*`.
fn matches_any(etag: &[u8], tags: &[u8]) -> bool {
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    tags.split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii)
        .any(|tag| tag == b"*" || opaque(tag) == opaque(etag))
}

fn headers_of_304(headers: &HeaderMap) -> HeaderMap {
    let mut headers_304 = HeaderMap::new();
    for name in HEADERS_OF_304.iter().chain(&[header::ETAG, header::LAST_MODIFIED]) {
        for value in headers.get_all(name) {
            headers_304.append(name, value.clone());
        }
    }
    headers_304
}

/// Whether a coding is listed with a weight above zero (RFC 9110 §12.5.3).
fn accepts(request: &HeaderMap, coding: &str) -> bool {
    let listed = |item: &str| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding) || name == "*");
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        named && !refused
    };
    let values = request.get_all(header::ACCEPT_ENCODING).iter();
    values.filter_map(|value| value.to_str().ok()).any(|value| value.split(',').any(listed))
}
