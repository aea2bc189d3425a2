//! Memory for clients: request bodies while they arrive, and large responses while they are read.
//!
//! All of them together have a limit, and each client has one (see `shares`), so that memory depends neither on the number of
//! connections nor on the size of responses. Small bodies are not counted, so that clients at their limit can still send small requests. A large response is sent in chunks, and its bytes are released with
//! the last chunk.

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

/// Largest request body: the cap of a manifest. A larger OpenAPI document is validated by the address where it was crawled.
pub(crate) const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum number of bytes kept for all clients together.
pub(crate) const BUFFERED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Responses up to this size are not counted: the connection's own buffers hold them. The first bytes of a body are not either.
const SMALL_BYTES: usize = 32 * 1024;
/// Bytes of a large response that are passed to the connection in one piece.
const CHUNK_BYTES: usize = 16 * 1024;
/// Assumed size of a response of unknown size: the pieces produced ahead of the client.
const STREAM_BYTES: usize = 256 * 1024;
/// Larger responses, compressed, may wait in the compressor until their client reads them; smaller ones fit into the kernel's buffer.
const COMPRESSOR_IDLE_BYTES: usize = 64 * 1024;
/// Memory of a compressor of zstd at the fastest level, and of gzip.
const ZSTD_BYTES: usize = 512 * 1024;
const GZIP_BYTES: usize = 256 * 1024;

/// Time in which a body beyond the first bytes has to arrive, as long as a large response may take to be read: it is kept in
/// memory meanwhile. 4 MiB need 70 kB per second.
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

/// Reads a body while its client sends fast enough, a large one within [`LARGE_BODY_TIME_MAX`]. Beyond the first bytes, the memory that is reserved for it counts for the
/// client until the share is dropped.
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

/// Enlarges a share to what is kept of a request, beyond the first bytes.
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

/// What is kept in memory for a client. Beyond the first bytes, it counts for the client until it is dropped.
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

    /// Counts this number of bytes in all, unless as many are counted already.
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

/// A share that was taken before the response was made: an extension of the response.
#[derive(Debug, Clone)]
pub(crate) struct Reserved(Arc<Share>);

impl Reserved {
    pub(crate) fn new(share: Share) -> Self {
        Self(Arc::new(share))
    }

    /// Passes the share of what a response contains on to it.
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

/// A response that is kept in memory until its client has read it: an extension of the response.
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

/// Counts the memory of a response until its client has received it, with that of its compressor.
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

/// A body that is sent in pieces. Pieces are copies, so that the last of them, in the buffers of a connection, does
/// not keep the whole in memory.
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
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PACE: MinRate = MinRate { allowance: Duration::from_millis(100), bytes_per_second: 1_000 };

    #[tokio::test]
    async fn large_response_counts_until_its_last_chunk_is_sent() {
        let shares = Shares::new(300_000, 150_000);
        let whole: Vec<u8> = (0..100_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let answer = counted(Response::new(Body::from(whole.clone())), 0, &shares, CLIENT).unwrap();
        assert_eq!(shares.taken(), whole.len());
        assert_eq!(answer.body().size_hint().exact(), Some(100_000), "Content-Length is still sent");
        let second = Response::new(Body::from(vec![0; 60_000]));
        assert_eq!(counted(second, 0, &shares, CLIENT).unwrap_err(), LimitReached::Client);
        let small = Response::new(Body::from(vec![0; SMALL_BYTES]));
        assert!(counted(small, 0, &shares, CLIENT).is_ok(), "small ones are always sent");
        let mut body = answer.into_body();
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= CHUNK_BYTES);
            seen.extend_from_slice(&data);
        }
        assert_eq!(seen, whole);
        drop(body);
        assert_eq!(shares.taken(), 0);
    }

    #[test]
    fn compressor_of_a_large_response_counts() {
        let shares = Shares::new(10_000_000, 10_000_000);
        for (accepted, bytes) in
            [("gzip, deflate, br, ZSTD", ZSTD_BYTES), ("gzip", GZIP_BYTES), ("identity", 0)]
        {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
            let compressor = compressor_bytes(&headers);
            let large = counted(Response::new(Body::from(vec![0; 135_000])), compressor, &shares, CLIENT);
            assert_eq!(shares.taken(), 135_000 + bytes, "{accepted}");
            drop(large);
            let usual = counted(Response::new(Body::from(vec![0; 60_000])), compressor, &shares, CLIENT);
            assert_eq!(shares.taken(), 60_000, "the kernel takes it at once");
            drop(usual);
        }
        assert_eq!(compressor_bytes(&HeaderMap::new()), 0);
    }

    #[tokio::test]
    async fn request_body_counts_by_received_bytes_and_times_out_when_it_stalls() {
        let shares = Shares::new(1_000_000, 100_000);
        let read_of = |body: Body| read(body, 200_000, PACE, &shares, CLIENT);
        let (bytes, share) = read_of(Body::from(vec![0; 50_000])).await.unwrap();
        assert_eq!((bytes.len(), shares.taken()), (50_000, 50_000 - SMALL_BYTES));
        assert_eq!(read_of(Body::from(vec![0; 200_001])).await.unwrap_err(), BodyError::TooLarge);
        let held = shares.take(CLIENT, 80_000).unwrap();
        assert_eq!(
            read_of(Body::from(vec![0; 50_000])).await.unwrap_err(),
            BodyError::OverCapacity(LimitReached::Client)
        );
        drop((held, share));
        let silent = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        assert_eq!(read_of(silent).await.unwrap_err(), BodyError::TooSlow);
        let broken =
            Body::from_stream(futures::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]));
        assert_eq!(read_of(broken).await.unwrap_err(), BodyError::Broken);
        assert_eq!(shares.taken(), 0);
    }

    #[tokio::test]
    async fn large_request_body_that_trickles_ends_at_its_deadline() {
        let shares = Shares::new(1_000_000, 500_000);
        let trickle = |first: usize| {
            Body::from_stream(futures::stream::unfold(first, |bytes| async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Some((Ok::<_, std::io::Error>(vec![0; bytes]), 200))
            }))
        };
        let begun = Instant::now();
        let kept = CountedBytes::new(&shares, CLIENT);
        let large =
            read_until(begun + Duration::from_millis(300), trickle(50_000), 400_000, PACE, kept).await;
        assert_eq!(large.unwrap_err(), BodyError::TooSlow);
        assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
        assert_eq!(shares.taken(), 0);
    }

    #[tokio::test]
    async fn small_request_body_is_read_when_all_memory_is_taken() {
        let shares = Shares::new(1_000, 500);
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let _all = [shares.take(CLIENT, 500).unwrap(), shares.take(other, 500).unwrap()];
        let small = vec![b'x'; SMALL_BYTES];
        let (bytes, share) = read(Body::from(small.clone()), 100_000, PACE, &shares, CLIENT).await.unwrap();
        assert_eq!((bytes.len(), share.is_none()), (small.len(), true));
        let larger = Body::from(vec![b'x'; SMALL_BYTES + 1]);
        assert!(matches!(
            read(larger, 100_000, PACE, &shares, CLIENT).await,
            Err(BodyError::OverCapacity(_))
        ));
    }

    #[tokio::test]
    async fn request_body_counts_by_its_reserved_capacity() {
        let pieces = |count: usize| {
            let pieces = (0..count).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 10_000]));
            Body::from_stream(futures::stream::iter(pieces))
        };
        let shares = Shares::new(1_000_000, 1_000_000);
        let (bytes, _share) = read(pieces(9), 100_000, PACE, &shares, CLIENT).await.unwrap();
        assert_eq!(bytes.len(), 90_000);
        assert_eq!(
            shares.taken(),
            100_000 - SMALL_BYTES,
            "room for 10, 20, 40, 80 and then all that may come"
        );
    }

    #[test]
    fn event_streams_count_no_buffered_bytes() {
        let shares = Shares::new(2 * STREAM_BYTES, STREAM_BYTES);
        let endless = || Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let events = Response::builder().header("content-type", "text/event-stream").body(endless()).unwrap();
        let held = counted(events, 0, &shares, CLIENT).unwrap();
        assert_eq!(shares.taken(), 0);
        let lines = counted(Response::new(endless()), 0, &shares, CLIENT).unwrap();
        assert_eq!(shares.taken(), STREAM_BYTES);
        drop((held, lines));
    }

    #[test]
    fn reserved_bytes_of_a_response_are_counted_once() {
        let shares = Shares::new(200_000, 200_000);
        let mut response = Response::new(Body::from(vec![0; 150_000]));
        let share = shares.take(CLIENT, 150_000).unwrap();
        response.extensions_mut().insert(Reserved::new(share));
        let answer = counted(response, 0, &shares, CLIENT).unwrap();
        assert_eq!(shares.taken(), 150_000);
        drop(answer);
        assert_eq!(shares.taken(), 0);
    }
}
