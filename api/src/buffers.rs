//! Memory for clients: request bodies while they arrive, and large responses while they are read.
//!
//! There is one limit for all clients together and one for each client (see `shares`), so memory use depends neither on the number of
//! connections nor on the size of responses. Small bodies are not counted, so that clients at their limit can still send small requests. A
//! large response is sent in chunks, and its bytes are released with the last chunk.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, timeout};

use crate::timeouts::{Allowance, MinRate};
use runtime::{LimitReached, Share, Shares};

/// Maximum size of a request body: the limit for a manifest. A larger OpenAPI document can be validated by the URL at which it was crawled.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of bytes kept for all clients together.
pub(crate) const BUFFERED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Responses up to this size are not counted, because the buffers of the connection hold them. Nor are the first bytes of a request body,
/// up to this number.
const SMALL_BYTES: usize = 32 * 1024;
/// Bytes of a large response that are passed to the connection in one piece.
const CHUNK_BYTES: usize = 16 * 1024;
/// Assumed memory of a response of unknown size: the pieces that are produced before the client reads them.
const STREAM_BYTES: usize = 256 * 1024;
/// Larger responses, compressed, may wait in the compressor until their client reads them; smaller ones fit into the kernel's buffer.
const COMPRESSOR_IDLE_BYTES: usize = 64 * 1024;
/// Memory of a compressor of zstd at the fastest level, and of gzip.
const ZSTD_BYTES: usize = 512 * 1024;
const GZIP_BYTES: usize = 256 * 1024;

/// A body larger than the first bytes has to arrive within this time, because it is kept in memory meanwhile. Clients have the same time to
/// read a large response. 4 MiB need 70 kB per second.
const LARGE_BODY_TIME_MAX: Duration = Duration::from_mins(1);

/// Why the body of a request was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    TooLarge,
    TooSlow,
    /// The client disconnected, or violated the protocol.
    Broken,
    OverCapacity(LimitReached),
}

/// Reads a body while its client sends fast enough, a large one within [`LARGE_BODY_TIME_MAX`]. Memory that is reserved beyond the first
/// bytes counts towards the limit of the client until the share is dropped.
pub(crate) async fn read(
    body: Body,
    bytes_max: usize,
    pace: MinRate,
    shares: &Arc<Shares>,
    client: IpAddr,
) -> Result<(Bytes, Option<Share>), BodyError> {
    let deadline = Instant::now() + LARGE_BODY_TIME_MAX;
    read_until(deadline, body, bytes_max, pace, CountedBytes::new(shares, client)).await
}

/// Reads a body; beyond the first bytes it has to arrive before `deadline`.
async fn read_until(
    deadline: Instant,
    mut body: Body,
    bytes_max: usize,
    pace: MinRate,
    mut kept: CountedBytes,
) -> Result<(Bytes, Option<Share>), BodyError> {
    let announced = body.size_hint().upper().and_then(|upper| usize::try_from(upper).ok());
    let whole = announced.unwrap_or(bytes_max).min(bytes_max);
    let mut allowance = Allowance::new(pace);
    loop {
        let begun = Instant::now();
        let left = if kept.count.share.is_some() {
            allowance.left().min(deadline.saturating_duration_since(begun))
        } else {
            allowance.left()
        };
        let next = timeout(left, body.frame()).await.map_err(|_| BodyError::TooSlow)?;
        let Some(frame) = next else {
            let (bytes, share) = kept.into_parts();
            return Ok((bytes.into(), share));
        };
        let Ok(data) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        allowance.moved(data.len(), begun.elapsed());
        if kept.len() + data.len() > bytes_max {
            return Err(BodyError::TooLarge);
        }
        kept.push(&data, whole).map_err(BodyError::OverCapacity)?;
    }
}

/// Enlarges a share to the bytes kept for a request, minus the first bytes.
pub(crate) fn enlarge(
    share: &mut Option<Share>,
    bytes: usize,
    shares: &Arc<Shares>,
    client: IpAddr,
) -> Result<(), LimitReached> {
    match (bytes.saturating_sub(SMALL_BYTES), share) {
        (0, _) => {}
        (bytes, Some(share)) => share.grow_to(bytes)?,
        (bytes, none @ None) => *none = Some(shares.take(client, bytes)?),
    }
    Ok(())
}

/// Counts a value in memory towards the limit of a client, except for its first bytes, until this is dropped.
#[derive(Debug)]
pub(crate) struct ByteCount {
    shares: Arc<Shares>,
    client: IpAddr,
    share: Option<Share>,
    counted: usize,
}

impl ByteCount {
    pub(crate) fn new(shares: &Arc<Shares>, client: IpAddr) -> Self {
        Self { shares: Arc::clone(shares), client, share: None, counted: 0 }
    }

    /// Raises the counted total to this number of bytes, if it is lower.
    pub(crate) fn reach(&mut self, bytes: usize) -> Result<(), LimitReached> {
        let bytes = bytes.saturating_sub(SMALL_BYTES);
        let more = bytes.saturating_sub(self.counted);
        match &mut self.share {
            _ if more == 0 => return Ok(()),
            Some(share) => share.grow(more)?,
            share @ None => *share = Some(self.shares.take(self.client, more)?),
        }
        self.counted = bytes;
        Ok(())
    }

    /// The bytes that are counted.
    pub(crate) const fn counted(&self) -> usize {
        self.counted
    }

    /// The share of the client, for a response that contains the bytes.
    pub(crate) fn into_share(self) -> Option<Share> {
        self.share
    }
}

/// A growing buffer. Its capacity is counted for a client before it is allocated.
pub(crate) struct CountedBytes {
    bytes: Vec<u8>,
    count: ByteCount,
}

impl CountedBytes {
    pub(crate) fn new(shares: &Arc<Shares>, client: IpAddr) -> Self {
        Self { bytes: Vec::new(), count: ByteCount::new(shares, client) }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends `data`. The capacity grows to at most `whole` bytes, unless `data` needs more.
    pub(crate) fn push(&mut self, data: &[u8], whole: usize) -> Result<(), LimitReached> {
        let length = self.bytes.len() + data.len();
        if length > self.bytes.capacity() {
            // Doubles the capacity, so that each byte is moved a few times at most, but never beyond the expected size.
            let capacity = length.max((self.bytes.capacity() * 2).min(whole));
            self.count.reach(capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }

    /// The bytes and their share, which is released with them.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Option<Share>) {
        (self.bytes, self.count.into_share())
    }
}

/// A share that was taken before the response was built. Stored as an extension of the response.
#[derive(Debug, Clone)]
pub(crate) struct Reserved(Arc<Share>);

impl Reserved {
    pub(crate) fn new(share: Share) -> Self {
        Self(Arc::new(share))
    }

    /// Transfers the share of a response's content to the response.
    pub(crate) fn attach(response: &mut Response, share: Option<Share>) {
        if let Some(share) = share {
            response.extensions_mut().insert(Self::new(share));
        }
    }

    /// The share, enlarged to a number of bytes.
    fn enlarged(self, bytes: usize) -> Result<Arc<Share>, LimitReached> {
        match Arc::try_unwrap(self.0) {
            Ok(mut share) => {
                share.grow_to(bytes)?;
                Ok(Arc::new(share))
            }
            Err(shared) => Ok(shared),
        }
    }
}

/// Marks a response that is kept in memory until its client has read it. Stored as an extension of the response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptInMemory;

/// Event streams have their own shares, and each event is small.
fn is_event_stream(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// Memory of the compressor of a large response to a request with these headers.
pub(crate) fn compressor_bytes(headers: &HeaderMap) -> usize {
    let accepts = |coding: &str| {
        let mut values =
            headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        values.any(|value| value.to_ascii_lowercase().contains(coding))
    };
    if accepts("zstd") {
        ZSTD_BYTES
    } else if accepts("gzip") {
        GZIP_BYTES
    } else {
        0
    }
}

/// Counts the memory of a response and its compressor until the client has received the response.
pub(crate) fn counted(
    mut response: Response,
    compressor_bytes: usize,
    shares: &Arc<Shares>,
    client: IpAddr,
) -> Result<Response, LimitReached> {
    let reserved = response.extensions_mut().remove::<Reserved>();
    if is_event_stream(&response) {
        return Ok(response);
    }
    let size = response.body().size_hint().exact();
    let bytes = size.map_or(STREAM_BYTES, |size| usize::try_from(size).unwrap_or(usize::MAX));
    if bytes <= SMALL_BYTES {
        return Ok(response);
    }
    let bytes = if bytes > COMPRESSOR_IDLE_BYTES { bytes.saturating_add(compressor_bytes) } else { bytes };
    let share = match reserved {
        Some(reserved) => reserved.enlarged(bytes.saturating_sub(SMALL_BYTES))?,
        None => Arc::new(shares.take(client, bytes)?),
    };
    if size.is_some() {
        response.extensions_mut().insert(KeptInMemory);
    }
    Ok(response.map(|body| Body::new(ChunkedBody { body, rest: Bytes::new(), _share: share })))
}

/// A body that is sent in pieces. Pieces are copies, so that the last piece, while it is in the buffers of a connection, does not keep the
/// whole body in memory.
struct ChunkedBody {
    body: Body,
    rest: Bytes,
    _share: Arc<Share>,
}

impl ChunkedBody {
    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(CHUNK_BYTES));
        Frame::data(Bytes::copy_from_slice(&piece))
    }
}

impl HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.len() > CHUNK_BYTES => {
                    self.rest = data;
                    Poll::Ready(Some(Ok(self.piece())))
                }
                Ok(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                Err(trailers) => Poll::Ready(Some(Ok(trailers))),
            },
            ended => Poll::Ready(ended),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(rest));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
