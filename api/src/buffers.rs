//! Bytes that are kept in memory for clients: bodies of requests while they arrive, and large answers while they are read.
//!
//! All of them together have a limit, and each client has one (see `shares`), so that memory follows neither the number of
//! connections nor the size of what is asked for. A large answer goes out in pieces, and what it occupies is given back when
//! the last piece has been taken.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, timeout};

use crate::pace::{Allowance, Pace};
use crate::shares::{Full, Share, Shares};

/// Bytes kept for all clients together.
pub(crate) const BUFFERED_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Answers up to this size are not counted: the connection's own buffers hold them.
const SMALL_BYTES: usize = 32 * 1024;
/// Bytes of a large answer that are handed to the connection at once.
const PIECE_BYTES: usize = 16 * 1024;
/// What an answer without a known size counts as: the pieces that are made ahead of the client, and their compression.
const STREAM_BYTES: usize = 256 * 1024;

/// Why the body of a request was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    TooLarge,
    TooSlow,
    /// The client went away, or broke the rules of the transfer.
    Broken,
    NoRoom(Full),
}

/// Reads a body while its client keeps the pace. The bytes count for the client as long as the share lives.
pub(crate) async fn read(
    mut body: Body,
    bytes_max: usize,
    pace: Pace,
    shares: &Arc<Shares>,
    client: IpAddr,
) -> Result<(Bytes, Share), Unread> {
    let mut share = shares.take(client, 0).map_err(Unread::NoRoom)?;
    let mut allowance = Allowance::new(pace);
    let mut bytes = Vec::new();
    loop {
        let begun = Instant::now();
        let next = timeout(allowance.left(), body.frame()).await.map_err(|_| Unread::TooSlow)?;
        let Some(frame) = next else { return Ok((bytes.into(), share)) };
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        allowance.moved(data.len(), begun.elapsed());
        if bytes.len() + data.len() > bytes_max {
            return Err(Unread::TooLarge);
        }
        share.grow(data.len()).map_err(Unread::NoRoom)?;
        bytes.extend_from_slice(&data);
    }
}

/// Counts what an answer occupies until its client has taken it.
pub(crate) fn counted(response: Response, shares: &Arc<Shares>, client: IpAddr) -> Result<Response, Full> {
    let size = response.body().size_hint().exact();
    let bytes = size.map_or(STREAM_BYTES, |size| usize::try_from(size).unwrap_or(usize::MAX));
    if bytes <= SMALL_BYTES {
        return Ok(response);
    }
    let share = shares.take(client, bytes)?;
    Ok(response.map(|body| Body::new(InPieces { body, rest: Bytes::new(), _share: share })))
}

/// A body that goes out piece by piece. Pieces are copies, so that the last of them, in the buffers of a connection, does
/// not keep the whole in memory.
struct InPieces {
    body: Body,
    rest: Bytes,
    _share: Share,
}

impl InPieces {
    fn piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES));
        Frame::data(Bytes::copy_from_slice(&piece))
    }
}

impl HttpBody for InPieces {
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
                Ok(data) if data.len() > PIECE_BYTES => {
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
    use std::time::Duration;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const PACE: Pace = Pace { allowance: Duration::from_millis(100), bytes_per_second: 1_000 };

    #[tokio::test]
    async fn a_large_answer_counts_until_its_last_piece_is_taken() {
        let shares = Shares::new(300_000, 150_000);
        let whole: Vec<u8> = (0..100_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let answer = counted(Response::new(Body::from(whole.clone())), &shares, CLIENT).unwrap();
        assert_eq!(shares.taken(), whole.len());
        assert_eq!(answer.body().size_hint().exact(), Some(100_000), "its length is still told");
        let second = Response::new(Body::from(vec![0; 60_000]));
        assert_eq!(counted(second, &shares, CLIENT).unwrap_err(), Full::Client);
        let small = Response::new(Body::from(vec![0; SMALL_BYTES]));
        assert!(counted(small, &shares, CLIENT).is_ok(), "small ones are always sent");
        let mut body = answer.into_body();
        let mut seen = Vec::new();
        while let Some(frame) = body.frame().await {
            let data = frame.unwrap().into_data().unwrap();
            assert!(data.len() <= PIECE_BYTES);
            seen.extend_from_slice(&data);
        }
        assert_eq!(seen, whole);
        drop(body);
        assert_eq!(shares.taken(), 0);
    }

    #[tokio::test]
    async fn a_body_counts_by_what_has_arrived_and_has_to_go_on() {
        let shares = Shares::new(1_000, 400);
        let read_of = |body: Body| read(body, 300, PACE, &shares, CLIENT);
        let (bytes, share) = read_of(Body::from("hello")).await.unwrap();
        assert_eq!((&bytes[..], shares.taken()), (&b"hello"[..], 5));
        assert_eq!(read_of(Body::from(vec![0; 301])).await.unwrap_err(), Unread::TooLarge);
        let held = shares.take(CLIENT, 390).unwrap();
        assert_eq!(read_of(Body::from(vec![0; 100])).await.unwrap_err(), Unread::NoRoom(Full::Client));
        drop((held, share));
        let silent = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
        assert_eq!(read_of(silent).await.unwrap_err(), Unread::TooSlow);
        let broken =
            Body::from_stream(futures::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]));
        assert_eq!(read_of(broken).await.unwrap_err(), Unread::Broken);
        assert_eq!(shares.taken(), 0);
    }
}
