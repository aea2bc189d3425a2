//! Successful responses: JSON or a page, with validators and freshness (RFC 9110 §8.8, §13; RFC 9111).
//!
//! Adds the strong ETag, `Cache-Control` and `Vary`, and answers conditional requests with 304.

use std::convert::Infallible;
use std::fmt;

use askama::Template;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use data_encoding::BASE64URL_NOPAD;
use serde::Serialize;
use settings::escape::is_unsafe;
use sha2::{Digest, Sha256};

use crate::negotiate::Representation;
use crate::problem::Problem;

/// Maximum size of a page. Pages limit their rows and texts, so only documents full of characters that HTML escapes exceed it.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the hash in an ETag: 96 bits, so that two bodies practically never share one.
const ETAG_HASH_BYTES: usize = 12;

pub(crate) type HttpResult = Result<Response, Problem>;

/// Freshness lifetime of a response.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Caching {
    /// Depends on the index: short, and a stale response may be used a little longer while a new one is fetched.
    Search,
    /// One record of the store.
    Record,
    /// The self-description: changes with a new version or another public address.
    Description,
    /// The URL contains the hash of the content.
    Immutable,
    /// Current state, never cached.
    Never,
}

impl Caching {
    const fn header(self) -> &'static str {
        match self {
            Self::Search => "public, max-age=5, stale-while-revalidate=30",
            Self::Record => "public, max-age=30, stale-while-revalidate=300",
            Self::Description => "public, max-age=3600, stale-while-revalidate=86400",
            Self::Immutable => "public, max-age=31536000, immutable",
            Self::Never => "no-store",
        }
    }
}

/// A strong validator, including the quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EntityTag(String);

impl EntityTag {
    pub(crate) fn of(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part);
        }
        let digest = hasher.finalize();
        Self(format!("\"{}\"", BASE64URL_NOPAD.encode(digest.get(..ETAG_HASH_BYTES).unwrap_or_default())))
    }

    /// A tag that also depends on `more`.
    pub(crate) fn and(&self, more: &[&[u8]]) -> Self {
        let parts: Vec<&[u8]> = std::iter::once(self.0.as_bytes()).chain(more.iter().copied()).collect();
        Self::of(&parts)
    }

    /// Whether `If-None-Match` contains this tag. The tag of a compressed body contains the name of the
    /// coding (see `middleware`), and identifies the same content.
    fn is_named_by(&self, if_none_match: &str) -> bool {
        let plain = self.0.trim_matches('"');
        if_none_match.split(',').map(str::trim).any(|candidate| {
            let opaque = candidate.trim_start_matches("W/").trim_matches('"');
            candidate == "*"
                || opaque == plain
                || opaque.strip_prefix(plain).is_some_and(|rest| rest == "-gzip" || rest == "-zstd")
        })
    }
}

/// The parts of a request that determine the format of its response.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(crate) representation: Representation,
    pub(crate) uri: Uri,
    if_none_match: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self {
            representation: Representation::preferred(&parts.headers),
            uri: parts.uri.clone(),
            if_none_match: text_of(&parts.headers, header::IF_NONE_MATCH),
        })
    }
}

fn text_of(headers: &HeaderMap, name: header::HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(ToOwned::to_owned)
}

impl RequestContext {
    pub(crate) fn wants_page(&self) -> bool {
        self.representation == Representation::Html
    }

    /// A 304 if the client already has the content of `tag`.
    pub(crate) fn unchanged(&self, tag: &EntityTag, caching: Caching) -> Option<Response> {
        let named = self.if_none_match.as_deref().is_some_and(|names| tag.is_named_by(names));
        named.then(|| decorated(StatusCode::NOT_MODIFIED.into_response(), tag, caching))
    }

    /// JSON, with the tag of its body.
    pub(crate) fn json<T: Serialize>(&self, value: &T, caching: Caching) -> HttpResult {
        let body = serde_json::to_vec(value).map_err(|error| Problem::internal(&error))?;
        Ok(self.bytes(body, "application/json", caching))
    }

    /// A page, with the tag of its body. Blocking: see `App::rendered`.
    pub(crate) fn page<T: Template>(&self, page: &T, caching: Caching) -> HttpResult {
        self.template(page, "text/html; charset=utf-8", caching)
    }

    /// A page with another media type, such as a feed.
    pub(crate) fn template<T: Template>(
        &self,
        template: &T,
        content_type: &'static str,
        caching: Caching,
    ) -> HttpResult {
        let body = page_text(template).map_err(|error| match error {
            askama::Error::Fmt => Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                "this page would be too large for a browser; request application/json",
            ),
            error => Problem::internal(&error),
        })?;
        let response = self.bytes(body.into_bytes(), content_type, caching);
        #[cfg(test)]
        let response = rendered_here(response);
        Ok(response)
    }

    /// Any body, with the tag of its bytes.
    pub(crate) fn bytes(&self, body: Vec<u8>, content_type: &'static str, caching: Caching) -> Response {
        let tag = EntityTag::of(&[content_type.as_bytes(), &body]);
        self.unchanged(&tag, caching).unwrap_or_else(|| tagged(body, content_type, &tag, caching))
    }
}

/// The text of a page. Fails with [`askama::Error::Fmt`] beyond [`PAGE_BYTES_MAX`].
pub(crate) fn page_text<T: Template>(page: &T) -> Result<String, askama::Error> {
    let mut text = PageText(String::new());
    page.render_into(&mut text)?;
    Ok(text.0)
}

/// The text of a page, at most [`PAGE_BYTES_MAX`] bytes long. Control characters and characters that reorder text become character
/// references, so that text of clients cannot affect a terminal that shows the page.
struct PageText(String);

impl fmt::Write for PageText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_unsafe = |letter| !matches!(letter, '\n' | '\t') && is_unsafe(letter);
        let mut rest = text;
        while let Some(at) = rest.find(is_unsafe) {
            let (before, from) = rest.split_at(at);
            self.push(before)?;
            let mut letters = from.chars();
            if let Some(letter) = letters.next() {
                self.push(&format!("&#x{:x};", u32::from(letter)))?;
            }
            rest = letters.as_str();
        }
        self.push(rest)
    }
}

impl PageText {
    fn push(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > PAGE_BYTES_MAX {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The thread on which a template was rendered.
#[cfg(test)]
#[derive(Debug, Clone)]
pub(crate) struct RenderedOn(pub(crate) std::thread::ThreadId);

#[cfg(test)]
fn rendered_here(mut response: Response) -> Response {
    response.extensions_mut().insert(RenderedOn(std::thread::current().id()));
    response
}

/// A body with a tag that was computed before the body.
pub(crate) fn tagged(
    body: impl Into<Body>,
    content_type: &'static str,
    tag: &EntityTag,
    caching: Caching,
) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    decorated(response, tag, caching)
}

pub(crate) fn decorated(mut response: Response, tag: &EntityTag, caching: Caching) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching.header()));
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    if let Ok(value) = HeaderValue::from_str(&tag.0) {
        headers.insert(header::ETAG, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_none_match_recognises_every_spelling_of_a_tag() {
        let tag = EntityTag::of(&[b"body"]);
        let sent = tag.0.trim_matches('"').to_owned();
        for names in
            [format!("\"{sent}\""), format!("W/\"{sent}\""), format!("\"x\", \"{sent}-gzip\""), "*".into()]
        {
            assert!(tag.is_named_by(&names), "{names}");
        }
        for names in [format!("\"{sent}x\""), "\"\"".into(), String::new()] {
            assert!(!tag.is_named_by(&names), "{names}");
        }
    }

    #[test]
    fn pages_have_no_characters_that_a_terminal_interprets() {
        let mut page = PageText(String::new());
        let typed = "a\u{1b}[31m\r\n\t\u{9b}b\u{202e}\u{feff}é";
        fmt::Write::write_str(&mut page, typed).unwrap();
        assert_eq!(page.0, "a&#x1b;[31m&#xd;\n\t&#x9b;b&#x202e;&#xfeff;é");
        let mut full = PageText("x".repeat(PAGE_BYTES_MAX - 3));
        assert!(fmt::Write::write_str(&mut full, "\u{1b}").is_err(), "references count");
    }

    #[test]
    fn tags_depend_on_the_bounds_of_their_parts() {
        assert_ne!(EntityTag::of(&[b"ab", b"c"]), EntityTag::of(&[b"a", b"bc"]));
    }
}
