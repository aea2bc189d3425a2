//! Reads bodies chunk by chunk under limits on bytes on the wire, decoded bytes, compression ratio, time, and rate.
//!
//! The HTTP client decodes nothing. gzip is decoded here into a sink that refuses the first byte beyond its cap, so that a decompression
//! bomb costs one buffer. Other codings and nested codings are refused (RFC 9110 §8.4). Brotli is not accepted, because the server chooses
//! the window of the decoder, which can take 16 MiB for each body in flight (RFC 7932 §9.1).

use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use flate2::write::GzDecoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use hyper::body::{Body as _, Bytes};
use policy::BodyKind;
use policy::plan::ERROR_BODY_BYTES_MAX;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use crate::failure::{Cause, Failure};
use crate::head::Head;
use crate::response::{Body, Extent};

const KIB: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Cut,
    Fail,
}

/// What happens at the cap of a body. A robots.txt is used up to the cap (RFC 9309 §2.5), and only the head of a page is used. A truncated
/// manifest is refused.
const fn overflow(kind: BodyKind) -> Overflow {
    match kind {
        BodyKind::Robots | BodyKind::Homepage | BodyKind::Other => Overflow::Cut,
        BodyKind::Manifest | BodyKind::OpenApi | BodyKind::LlmsTxt | BodyKind::Results => Overflow::Fail,
    }
}

/// Maximum time for a body. robots.txt has less, because all other requests wait for it.
const fn time_max(kind: BodyKind) -> Duration {
    match kind {
        BodyKind::Robots => Duration::from_secs(10),
        _ => Duration::from_secs(15),
    }
}

/// Maximum time between two chunks of a body.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Minimum rate after the grace period.
const RATE_BYTES_PER_SECOND_MIN: u64 = 1024;
const RATE_GRACE: Duration = Duration::from_secs(5);
/// Maximum compression ratio. Text rarely compresses beyond 20:1; decompression bombs reach at least 1,000:1.
const RATIO_MAX: usize = 50;
/// Decoded bytes below which the ratio is not checked.
const RATIO_APPLIES_FROM_BYTES: usize = 64 * KIB;
/// Size above which a body is large: six times the 95th percentile of published documents.
const LARGE_BODY_BYTES: usize = 256 * KIB;
/// Permits for large bodies in flight in all visits of this process. With the largest cap of 16 MiB, these bodies take at most 256 MiB.
static LARGE_BODIES: Semaphore = Semaphore::const_new(16);

/// Maximum wait for a permit. Servers do not wait much longer for a client that does not read.
const LARGE_BODY_WAIT: Duration = Duration::from_secs(10);
/// Maximum time for a body of any kind: the time as a small body, the wait for a permit, and the time as a large body.
pub(crate) const BODY_TIME_MAX: Duration =
    Duration::from_secs(2 * time_max(BodyKind::Manifest).as_secs() + LARGE_BODY_WAIT.as_secs());
/// Minimum rate of a large body, because other bodies wait for its permit.
const LARGE_BODY_BYTES_PER_SECOND_MIN: u64 = 32 * 1024;

/// Reads the body of a successful response.
pub(crate) async fn read(response: reqwest::Response, head: &Head, kind: BodyKind) -> Result<Body, Failure> {
    let coding = Coding::of(head)?;
    let stated = stated_bytes(head);
    let mut body = reqwest::Body::from(response);
    let mut reader = Reader::new(coding, kind);
    let mut pace = Pace::start(time_max(kind));
    let mut permit = None;
    loop {
        match pace.chunk(&mut body).await? {
            None if stated.is_some_and(|stated| pace.wire_bytes < stated) => {
                return Err(Failure::new(Cause::Protocol, "the body ended before its Content-Length"));
            }
            None => return reader.finish(pace.wire_bytes).map(|body| Body { permit, ..body }),
            Some(chunk) => {
                if reader.push(chunk.as_ref(), pace.wire_bytes)? == Progress::Enough {
                    return Ok(Body { permit, ..reader.cut(pace.wire_bytes) });
                }
            }
        }
        if permit.is_none() && reader.decoder.sink().bytes.len() > LARGE_BODY_BYTES {
            permit = Some(Arc::new(large_body().await?));
            pace.becomes_large();
        }
    }
}

/// The length of the body on the wire that a response states.
fn stated_bytes(head: &Head) -> Option<u64> {
    let is_framed_otherwise = head.headers.contains_key(TRANSFER_ENCODING);
    head.text(&CONTENT_LENGTH).filter(|_| !is_framed_otherwise)?.trim().parse().ok()
}

/// Acquires a permit for a large body. If that fails, the server is not at fault.
async fn large_body() -> Result<SemaphorePermit<'static>, Failure> {
    match timeout(LARGE_BODY_WAIT, LARGE_BODIES.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Failure::new(Cause::Busy, "many large bodies are being read")),
    }
}

/// The next data of a body, or `None` at its end. Trailers are ignored.
async fn next_data(body: &mut reqwest::Body) -> reqwest::Result<Option<Bytes>> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads and discards an unneeded body, as long as this is cheaper than a new connection.
pub(crate) async fn skip(response: reqwest::Response) -> u64 {
    let mut body = reqwest::Body::from(response);
    let mut pace = Pace::start(IDLE_MAX);
    while pace.wire_bytes <= ERROR_BODY_BYTES_MAX as u64 {
        match pace.chunk(&mut body).await {
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    pace.wire_bytes
}

/// Time and rate of a body.
struct Pace {
    started: Instant,
    time_max: Duration,
    wire_bytes: u64,
    /// When the body became large, and its length at that time.
    large_since: Option<(Instant, u64)>,
}

impl Pace {
    fn start(time_max: Duration) -> Self {
        Self { started: Instant::now(), time_max, wire_bytes: 0, large_since: None }
    }

    /// The wait for the permit does not count against the server.
    fn becomes_large(&mut self) {
        let now = Instant::now();
        self.started = now;
        self.large_since = Some((now, self.wire_bytes));
    }

    async fn chunk(&mut self, body: &mut reqwest::Body) -> Result<Option<Bytes>, Failure> {
        let left = self.time_max.saturating_sub(self.started.elapsed());
        let wait = left.min(IDLE_MAX);
        let chunk = match timeout(wait, next_data(body)).await {
            Err(_) => return Err(self.too_slow(wait)),
            Ok(chunk) => chunk.map_err(|error| Failure::of_client(&error))?,
        };
        if let Some(chunk) = &chunk {
            self.wire_bytes += chunk.len() as u64;
            self.check_rate()?;
        }
        Ok(chunk)
    }

    fn check_rate(&self) -> Result<(), Failure> {
        if let Some((since, bytes)) = self.large_since {
            let wanted = since.elapsed().as_secs() * LARGE_BODY_BYTES_PER_SECOND_MIN;
            if self.wire_bytes - bytes < wanted {
                let reason = "the rest of a large body arrived slower than 32 KiB a second";
                return Err(Failure::new(Cause::Timeout, reason));
            }
        }
        let elapsed = self.started.elapsed();
        if elapsed < RATE_GRACE || self.wire_bytes >= elapsed.as_secs() * RATE_BYTES_PER_SECOND_MIN {
            return Ok(());
        }
        let reason = format!("the body arrived slower than {RATE_BYTES_PER_SECOND_MIN} bytes a second");
        Err(Failure::new(Cause::Timeout, reason))
    }

    fn too_slow(&self, waited: Duration) -> Failure {
        let reason = if waited == IDLE_MAX {
            format!("no data of the body arrived for more than {} s", IDLE_MAX.as_secs())
        } else {
            format!("the body took longer than {} s", self.time_max.as_secs())
        };
        Failure::new(Cause::Timeout, reason)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
}

impl Coding {
    fn of(head: &Head) -> Result<Self, Failure> {
        let mut codings = head.texts(&CONTENT_ENCODING).flat_map(|value| value.split(',')).map(str::trim);
        let refused = |reason: String| Failure::new(Cause::Encoding, reason);
        let first = codings.next().unwrap_or_default().to_ascii_lowercase();
        if codings.next().is_some() {
            return Err(refused("the body is encoded more than once".to_owned()));
        }
        match first.as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            other => {
                let other: String = other.chars().take(40).collect();
                Err(refused(format!("the body is encoded as \"{other}\", which was not requested")))
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    Enough,
}

/// Collects decoded bytes, up to the cap.
struct Sink {
    bytes: Vec<u8>,
    bytes_max: usize,
    wire_bytes: u64,
    stop: Option<Stop>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Full,
    Ratio,
}

impl Write for Sink {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let room = self.bytes_max - self.bytes.len();
        self.bytes.extend_from_slice(chunk.get(..room.min(chunk.len())).unwrap_or_default());
        let wire_bytes = usize::try_from(self.wire_bytes).unwrap_or(usize::MAX);
        if self.bytes.len() > RATIO_APPLIES_FROM_BYTES && self.bytes.len() / RATIO_MAX > wire_bytes {
            self.stop = Some(Stop::Ratio);
        } else if chunk.len() > room {
            self.stop = Some(Stop::Full);
        }
        if self.stop.is_some() { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(chunk.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Identity(Sink),
    Gzip(GzDecoder<Sink>),
}

impl Decoder {
    fn sink(&self) -> &Sink {
        match self {
            Self::Identity(sink) => sink,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    fn sink_mut(&mut self) -> &mut Sink {
        match self {
            Self::Identity(sink) => sink,
            Self::Gzip(decoder) => decoder.get_mut(),
        }
    }

    fn write(&mut self, chunk: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(sink) => sink.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
        }
    }
}

struct Reader {
    decoder: Decoder,
    kind: BodyKind,
    /// Number of bytes of a homepage in which the end of the head was searched for.
    searched: usize,
}

impl Reader {
    fn new(coding: Coding, kind: BodyKind) -> Self {
        let sink = Sink { bytes: Vec::new(), bytes_max: kind.bytes_max(), wire_bytes: 0, stop: None };
        let decoder = match coding {
            Coding::Identity => Decoder::Identity(sink),
            Coding::Gzip => Decoder::Gzip(GzDecoder::new(sink)),
        };
        Self { decoder, kind, searched: 0 }
    }

    fn push(&mut self, chunk: &[u8], wire_bytes: u64) -> Result<Progress, Failure> {
        self.decoder.sink_mut().wire_bytes = wire_bytes;
        let written = self.decoder.write(chunk);
        self.judge(written)
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<Progress, Failure> {
        match (self.decoder.sink().stop, written) {
            (None, Ok(())) if self.head_ended() => Ok(Progress::Enough),
            (None, Ok(())) => Ok(Progress::More),
            (Some(Stop::Full), _) if overflow(self.kind) == Overflow::Cut => Ok(Progress::Enough),
            (Some(Stop::Full), _) => {
                let reason = format!("the body is larger than {} KiB", self.kind.bytes_max() / KIB);
                Err(Failure::new(Cause::TooLarge, reason))
            }
            (Some(Stop::Ratio), _) => {
                let reason = format!("the body expands to more than {RATIO_MAX} times its size");
                Err(Failure::new(Cause::Encoding, reason))
            }
            (None, Err(_)) => Err(Failure::new(
                Cause::Encoding,
                "the body is not what its Content-Encoding says".to_owned(),
            )),
        }
    }

    fn head_ended(&mut self) -> bool {
        const END: &[u8] = b"</head";
        if self.kind != BodyKind::Homepage {
            return false;
        }
        let bytes = &self.decoder.sink().bytes;
        let from = self.searched.saturating_sub(END.len());
        let ended = bytes
            .get(from..)
            .is_some_and(|new| new.windows(END.len()).any(|window| window.eq_ignore_ascii_case(END)));
        self.searched = bytes.len();
        ended
    }

    fn cut(mut self, wire_bytes: u64) -> Body {
        let bytes = std::mem::take(&mut self.decoder.sink_mut().bytes);
        Body { bytes, extent: Extent::Cut, wire_bytes, permit: None }
    }

    fn finish(mut self, wire_bytes: u64) -> Result<Body, Failure> {
        // an empty body needs no gzip trailer
        let closed = if wire_bytes == 0 { Ok(()) } else { self.decoder.close() };
        match self.judge(closed)? {
            Progress::Enough => Ok(self.cut(wire_bytes)),
            Progress::More => {
                let body = self.cut(wire_bytes);
                Ok(Body { extent: Extent::Whole, ..body })
            }
        }
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
