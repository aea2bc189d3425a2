//! Defines the answer of a virtual host on one path: correct, or misbehaving like real servers.
//!
//! An [`Answer`] is plain data, built before the web starts or while it runs. Ordinary bodies have validators by default, because most
//! tests visit a site again.

use std::{hash::Hasher, net::SocketAddr, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode, header};
use hyper::body::Bytes;

use crate::coding;

/// The answer on one path of one host.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Content,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified_s: Option<u64>,
    pub(crate) delay: Duration,
    pub(crate) pace: Option<Pace>,
    pub(crate) content_length: Option<u64>,
    pub(crate) takes_posts: bool,
    /// Whether TLS ends without `close_notify` after a raw answer.
    pub(crate) is_cut: bool,
}

/// Sends the body in chunks with a delay after each, like a slow server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) chunk_bytes: usize,
    pub(crate) delay: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A body, optionally with compressed forms.
    Body { plain: Bytes, gzip: Option<Bytes>, brotli: Option<Bytes> },
    /// Segments of bytes, each with its number of repetitions.
    Segments(Vec<(Bytes, u64)>),
    /// A redirect to the same path and query of this origin.
    Moved(String),
    /// The response of a program at this address, over plain HTTP.
    Forwarded(SocketAddr),
    /// These bytes in place of the whole HTTP response; then the connection is closed.
    Raw(Bytes),
    /// The connection is reset in place of a response.
    Reset,
    /// The connection is closed in place of a response.
    Close,
    /// No response, while the connection stays open.
    Silence,
    /// Each of the first answers for a number of requests, then the last one for all others.
    Sequence { first: Vec<(u32, Answer)>, last: Box<Answer> },
}

impl Answer {
    /// An empty answer of this status.
    ///
    /// # Panics
    /// If the status is not between 100 and 999.
    pub fn status(status: u16) -> Self {
        let body = Content::Body { plain: Bytes::new(), gzip: None, brotli: None };
        Self { status: status_code(status), ..Self::of(body) }
    }

    /// A 200 with this body, and a strong ETag made from it.
    pub fn ok(content_type: &str, body: impl Into<Bytes>) -> Self {
        let plain = body.into();
        let etag = Some(etag_of(&plain));
        let content = Content::Body { plain, gzip: None, brotli: None };
        Self { etag, ..Self::of(content) }.header("content-type", content_type)
    }

    /// A 200 with a JSON body.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::ok("application/json", body)
    }

    /// A 200 with a plain text body.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self::ok("text/plain; charset=utf-8", body)
    }

    /// A 200 with an HTML body.
    pub fn html(body: impl Into<Bytes>) -> Self {
        Self::ok("text/html; charset=utf-8", body)
    }

    /// The response of a program at this address to the same request, as a proxy in front of it passes it on. Other hosts of the web
    /// stay as they are.
    pub fn forwarded(to: SocketAddr) -> Self {
        Self::of(Content::Forwarded(to))
    }

    /// A redirect; the location may be any text, which the client has to check.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::status(status).header("location", location)
    }

    /// A redirect of every path to the same path of another origin, such as `https://www.site.example`.
    pub fn moved_to(status: u16, origin: &str) -> Self {
        Self { status: status_code(status), ..Self::of(Content::Moved(origin.to_owned())) }
    }

    /// Usually 429 or 503, with this Retry-After, sent unchanged.
    pub fn retry_after(status: u16, value: &str) -> Self {
        Self::status(status).header("retry-after", value)
    }

    /// A body that never ends.
    pub fn endless(content_type: &str) -> Self {
        let block = Bytes::from(vec![b' '; 16 * 1024]);
        Self::of(Content::Segments(vec![(block, u64::MAX)])).header("content-type", content_type)
    }

    /// A small gzip body that decodes to `decoded_bytes` spaces.
    pub fn gzip_bomb(content_type: &str, decoded_bytes: u64) -> Self {
        Self::of(Content::Segments(coding::gzip_bomb(decoded_bytes)))
            .header("content-type", content_type)
            .header("content-encoding", "gzip")
    }

    /// A small brotli body that decodes to `decoded_bytes` spaces. They are encoded here: keep it below 1 GiB.
    #[cfg(feature = "brotli")]
    pub fn brotli_bomb(content_type: &str, decoded_bytes: u64) -> Self {
        Self::of(Content::Segments(vec![(coding::brotli_bomb(decoded_bytes), 1)]))
            .header("content-type", content_type)
            .header("content-encoding", "br")
    }

    /// Sends these bytes instead of an HTTP response: a broken status line, headers without colon, NUL, an invalid length… The connection
    /// is closed after them. The host supports HTTP/1.1 only.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::of(Content::Raw(bytes.into()))
    }

    /// The connection is reset (TCP RST) in place of a response.
    pub fn reset() -> Self {
        Self::of(Content::Reset)
    }

    /// The connection is closed in place of a response.
    pub fn close() -> Self {
        Self::of(Content::Close)
    }

    /// The request is read and never answered.
    pub fn silence() -> Self {
        Self::of(Content::Silence)
    }

    /// Sends this answer for the first `count` requests of all clients, then `then`. Can be chained.
    #[must_use]
    pub fn times(self, count: u32, then: Self) -> Self {
        let (first, last) = match then.content {
            Content::Sequence { first, last } => (first, last),
            _ => (Vec::new(), Box::new(then)),
        };
        let first = std::iter::once((count, self)).chain(first).collect();
        Self::of(Content::Sequence { first, last })
    }

    /// Adds a header. For bytes that HTTP forbids in a value, use [`Answer::raw`].
    ///
    /// # Panics
    /// If the name or the value is invalid in HTTP.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        self.headers.push((name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value")));
        self
    }

    /// Adds `header_count` headers of `value_bytes` bytes each.
    #[must_use]
    pub fn padded(self, header_count: usize, value_bytes: usize) -> Self {
        let value = "p".repeat(value_bytes);
        (0..header_count).fold(self, |answer, index| answer.header(&format!("x-padding-{index}"), &value))
    }

    /// `Cache-Control: max-age=…`.
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.header("cache-control", &format!("max-age={seconds}"))
    }

    /// This body and its validators with another status.
    ///
    /// # Panics
    /// If the status is not between 100 and 999.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status_code(status);
        self
    }

    /// This ETag, unchanged and with its quotes, in place of the one made from the body.
    #[must_use]
    pub fn etag(mut self, etag: &str) -> Self {
        self.etag = Some(etag.to_owned());
        self
    }

    /// A Last-Modified, in seconds since 1970.
    #[must_use]
    pub fn last_modified(mut self, unix_s: u64) -> Self {
        self.last_modified_s = Some(unix_s);
        self
    }

    /// Removes ETag and Last-Modified, so that the body is sent in full each time.
    #[must_use]
    pub fn without_validators(mut self) -> Self {
        self.etag = None;
        self.last_modified_s = None;
        self
    }

    /// Also offers the body in gzip, to clients that accept it.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        if let Content::Body { plain, gzip, .. } = &mut self.content {
            *gzip = Some(coding::gzip(plain));
        }
        self
    }

    /// Also offers the body in brotli, to clients that accept it.
    #[cfg(feature = "brotli")]
    #[must_use]
    pub fn brotli(mut self) -> Self {
        if let Content::Body { plain, brotli, .. } = &mut self.content {
            *brotli = Some(coding::brotli(plain));
        }
        self
    }

    /// Waits before the head is sent.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sends the body (for [`Answer::raw`] the whole response) in chunks of `chunk_bytes` with a delay after each.
    #[must_use]
    pub fn dripping(mut self, chunk_bytes: usize, delay: Duration) -> Self {
        self.pace = Some(Pace { chunk_bytes: chunk_bytes.max(1), delay });
        self
    }

    /// Sends this Content-Length for any body. If it is too long, the connection ends early.
    #[must_use]
    pub fn with_content_length(mut self, bytes: u64) -> Self {
        self.content_length = Some(bytes);
        self
    }

    /// Closes the connection after an [`Answer::raw`] without the `close_notify` of TLS, as if the connection was interrupted.
    #[must_use]
    pub fn without_close_notify(mut self) -> Self {
        self.is_cut = true;
        self
    }

    /// Answers a POST with any body like a GET.
    #[must_use]
    pub fn taking_posts(mut self) -> Self {
        self.takes_posts = true;
        self
    }

    /// Whether the answer bypasses the HTTP layer, which works only with HTTP/1.1.
    pub(crate) fn needs_http1(&self) -> bool {
        match &self.content {
            Content::Raw(_) => true,
            Content::Sequence { first, last } => {
                last.needs_http1() || first.iter().any(|(_, answer)| answer.needs_http1())
            }
            _ => false,
        }
    }

    fn of(content: Content) -> Self {
        Self {
            status: StatusCode::OK,
            headers: Vec::new(),
            content,
            etag: None,
            last_modified_s: None,
            delay: Duration::ZERO,
            pace: None,
            content_length: None,
            takes_posts: false,
            is_cut: false,
        }
    }
}

impl From<&str> for Answer {
    /// Text that begins like JSON or HTML gets that media type. Other text is plain text.
    fn from(body: &str) -> Self {
        let body = body.to_owned();
        match body.trim_start().as_bytes().first() {
            Some(b'{' | b'[') => Self::json(body),
            Some(b'<') => Self::html(body),
            _ => Self::text(body),
        }
    }
}

fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a status code between 100 and 999")
}

/// A strong ETag that depends only on the bytes. `DefaultHasher::new` has fixed keys.
fn etag_of(body: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}\"", hasher.finish())
}

/// The headers that a 304 repeats (RFC 9110 §15.4.5).
pub(crate) const HEADERS_OF_304: [HeaderName; 5] =
    [header::CACHE_CONTROL, header::CONTENT_LOCATION, header::EXPIRES, header::VARY, header::AGE];
