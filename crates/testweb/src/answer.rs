//! What a virtual host serves on one path: an honest answer, or one of the ways in which real servers misbehave.
//!
//! An [`Answer`] is a value built before the web starts, or while it runs; it holds bytes, not behaviour of its own.
//! Validators are made for honest bodies unless told otherwise, because most of the tests are about revisiting.

use std::{hash::Hasher, time::Duration};

use http::{HeaderName, HeaderValue, StatusCode, header};
use hyper::body::Bytes;

use crate::coding;

/// What is served on one path of one host.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) content: Content,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified_s: Option<u64>,
    pub(crate) delay: Duration,
    pub(crate) pace: Option<Pace>,
    pub(crate) claimed_bytes: Option<u64>,
    pub(crate) takes_posts: bool,
}

/// So many bytes at a time, with a pause after each: a slow server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) chunk_bytes: usize,
    pub(crate) pause: Duration,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A body, and the same body precompressed where that was asked for.
    Body { plain: Bytes, gzip: Option<Bytes>, brotli: Option<Bytes> },
    /// Stretches of bytes, each repeated so many times.
    Stretches(Vec<(Bytes, u64)>),
    /// A redirect to the same path and query of this origin.
    Moved(String),
    /// These bytes in place of all that HTTP would have written; then the connection is closed.
    Raw(Bytes),
    /// The connection is reset in place of an answer.
    Reset,
    /// The connection is closed in place of an answer.
    Close,
    /// No answer, ever, while the connection stays open.
    Silence,
    /// Each of the first answers so many times; the last one from then on.
    Sequence { first: Vec<(u32, Answer)>, last: Box<Answer> },
}

impl Answer {
    /// An empty answer of this status.
    ///
    /// # Panics
    /// If the status is no number between 100 and 999.
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

    /// A redirect; the location may be anything, since refusing is the client's duty.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self::status(status).header("location", location)
    }

    /// A redirect of every path to the same path of another origin, such as `https://www.site.example`.
    pub fn moved_to(status: u16, origin: &str) -> Self {
        Self { status: status_code(status), ..Self::of(Content::Moved(origin.to_owned())) }
    }

    /// "Come back later": usually 429 or 503, with a Retry-After that is sent as it stands.
    pub fn retry_after(status: u16, value: &str) -> Self {
        Self::status(status).header("retry-after", value)
    }

    /// A body that never ends.
    pub fn endless(content_type: &str) -> Self {
        let block = Bytes::from(vec![b' '; 16 * 1024]);
        Self::of(Content::Stretches(vec![(block, u64::MAX)])).header("content-type", content_type)
    }

    /// A small gzip body that decodes to so many spaces.
    pub fn gzip_bomb(content_type: &str, decoded_bytes: u64) -> Self {
        Self::of(Content::Stretches(coding::gzip_bomb(decoded_bytes)))
            .header("content-type", content_type)
            .header("content-encoding", "gzip")
    }

    /// A small brotli body that decodes to so many spaces. All of them are encoded once, here: keep it below 1 GiB.
    pub fn brotli_bomb(content_type: &str, decoded_bytes: u64) -> Self {
        Self::of(Content::Stretches(vec![(coding::brotli_bomb(decoded_bytes), 1)]))
            .header("content-type", content_type)
            .header("content-encoding", "br")
    }

    /// These bytes below HTTP: a broken status line, headers without colon, NUL, a length that is no number…
    /// The connection is closed after them. The host speaks HTTP/1.1 only.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::of(Content::Raw(bytes.into()))
    }

    /// The connection is reset (TCP RST) in place of an answer.
    pub fn reset() -> Self {
        Self::of(Content::Reset)
    }

    /// The connection is closed in place of an answer.
    pub fn close() -> Self {
        Self::of(Content::Close)
    }

    /// The request is taken and never answered.
    pub fn silence() -> Self {
        Self::of(Content::Silence)
    }

    /// This answer so many times, whoever asks; then the next one. Chains: the counts add up in order.
    #[must_use]
    pub fn times(self, count: u32, then: Self) -> Self {
        let (first, last) = match then.content {
            Content::Sequence { first, last } => (first, last),
            _ => (Vec::new(), Box::new(then)),
        };
        let first = std::iter::once((count, self)).chain(first).collect();
        Self::of(Content::Sequence { first, last })
    }

    /// Adds a header; bytes that HTTP forbids in a value need [`Answer::raw`].
    ///
    /// # Panics
    /// If the name or the value is none that HTTP knows.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a header name");
        self.headers.push((name, HeaderValue::from_bytes(value.as_bytes()).expect("a header value")));
        self
    }

    /// So many extra headers of so many bytes each.
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

    /// The same body under another status; validators stay.
    ///
    /// # Panics
    /// If the status is no number between 100 and 999.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status_code(status);
        self
    }

    /// This ETag, quotes included and byte for byte, in place of the one made from the body.
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

    /// No ETag and no Last-Modified: the body is sent in full each time.
    #[must_use]
    pub fn without_validators(mut self) -> Self {
        self.etag = None;
        self.last_modified_s = None;
        self
    }

    /// Also offers the body in gzip, to those who accept it.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        if let Content::Body { plain, gzip, .. } = &mut self.content {
            *gzip = Some(coding::gzip(plain));
        }
        self
    }

    /// Also offers the body in brotli, to those who accept it.
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

    /// Sends the body (of [`Answer::raw`]: all of it) by so many bytes at a time with a pause after each.
    #[must_use]
    pub fn dripping(mut self, chunk_bytes: usize, pause: Duration) -> Self {
        self.pace = Some(Pace { chunk_bytes: chunk_bytes.max(1), pause });
        self
    }

    /// Claims this Content-Length, whatever the body has. With too long a claim the connection ends early.
    #[must_use]
    pub fn claiming_length(mut self, bytes: u64) -> Self {
        self.claimed_bytes = Some(bytes);
        self
    }

    /// Answers a POST like a GET, whatever it carries.
    #[must_use]
    pub fn taking_posts(mut self) -> Self {
        self.takes_posts = true;
        self
    }

    /// Whether the answer is written below HTTP, which only works on HTTP/1.1.
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
            claimed_bytes: None,
            takes_posts: false,
        }
    }
}

impl From<&str> for Answer {
    /// Text that begins like JSON or HTML is served as such, all else as plain text.
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

/// A strong ETag that depends on nothing but the bytes. `DefaultHasher::new` has fixed keys.
fn etag_of(body: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    format!("\"{:016x}\"", hasher.finish())
}

/// The headers that a 304 repeats (RFC 9110 §15.4.5).
pub(crate) const KEPT_BY_304: [HeaderName; 5] =
    [header::CACHE_CONTROL, header::CONTENT_LOCATION, header::EXPIRES, header::VARY, header::AGE];
