//! The byte stream of a connection: it is closed when the client stops reading or reads too slowly, and lingers when the client is still
//! sending, so that the client receives the response.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use runtime::Share;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use crate::metrics;
use crate::timeouts::{Allowance, MinRate};

/// Size of the kernel's send buffer for a client's socket; Linux doubles this number for its own bookkeeping.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// How long the kernel waits for a client to acknowledge data before it closes the connection, for clients that disappear
/// without closing it. `MinRate` closes the connection of a client that acknowledges data but does not read it.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);
/// Maximum number of bytes discarded at the end of a connection: four of the largest bodies.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes discarded by one read.
const LINGER_CHUNK_BYTES: usize = 8 * 1024;

/// Whether a connection is still read after its last response. Closing a socket with unread bytes resets the connection, which loses the
/// response in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Linger {
    /// Only if the last read returned bytes.
    #[default]
    AfterBytes,
    /// The client may still be sending a body that was not read.
    Always,
    /// Does not linger, because the connection does not count towards the limit of any client.
    Never,
}

/// How a connection handles its current response, and whether it lingers afterwards.
#[derive(Debug, Default)]
pub(super) struct ResponseTerms {
    pub(super) linger: Linger,
    /// The time by which the response has to be read, if it is kept in memory until then.
    pub(super) read_by: Option<Instant>,
    /// The share of a forwarded client, if the connection may stay open after the response because of this client.
    pub(super) _share: Option<Arc<Share>>,
}

/// The terms of the current response, from its headers to the next request or to the end of the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct CurrentResponse(Arc<Mutex<ResponseTerms>>);

impl CurrentResponse {
    pub(super) fn set(&self, terms: ResponseTerms) {
        *self.terms() = terms;
    }

    fn terms(&self) -> MutexGuard<'_, ResponseTerms> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shortens a wait so that it ends when the response has to be read.
    fn limit(&self, wait: Duration) -> Duration {
        let at = self.terms().read_by;
        at.map_or(wait, |at| wait.min(at.saturating_duration_since(Instant::now())))
    }
}

/// A client's stream with a minimum read rate, which lingers before it closes.
#[derive(Debug)]
pub(super) struct ClientStream {
    stream: TcpStream,
    allowance: Allowance,
    response: CurrentResponse,
    blocked: Option<Blocked>,
    /// Whether the last read returned bytes, so that there may be more unread ones.
    last_read_returned_bytes: bool,
    linger_max: Duration,
    lingering: Option<Lingering>,
}

/// A write that is blocked because the client does not read.
#[derive(Debug)]
struct Blocked {
    since: Instant,
    cut: Pin<Box<Sleep>>,
}

/// The response was sent. Data that the client still sends is discarded for a while.
#[derive(Debug)]
struct Lingering {
    bytes_left: usize,
    until: Pin<Box<Sleep>>,
}

fn set_options(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)
}

impl ClientStream {
    pub(super) fn new(
        stream: TcpStream,
        reads: MinRate,
        linger_max: Duration,
        response: CurrentResponse,
    ) -> Self {
        if let Err(error) = set_options(&stream) {
            tracing::debug!(error = &error as &dyn std::error::Error, "socket options not set");
        }
        Self {
            stream,
            allowance: Allowance::new(reads),
            response,
            blocked: None,
            last_read_returned_bytes: false,
            linger_max,
            lingering: None,
        }
    }

    /// Counts the bytes of a write, and closes the connection when the client has blocked it for too long.
    fn enforce_min_rate(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = written {
            let waited = self.blocked.take().map_or(Duration::ZERO, |blocked| blocked.since.elapsed());
            if let Ok(bytes) = &written {
                self.allowance.moved(*bytes, waited);
            }
            return Poll::Ready(written);
        }
        let left = self.response.limit(self.allowance.left());
        let blocked =
            self.blocked.get_or_insert_with(|| Blocked { since: Instant::now(), cut: Box::pin(sleep(left)) });
        ready!(blocked.cut.as_mut().poll(cx));
        metrics::cut("slow_reader");
        // closing the socket then also discards data in the kernel's buffer
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::debug!(error = &error as &dyn std::error::Error, "socket options not set");
        }
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read the response")))
    }

    /// Discards further input of the client until it ends, sends too much or takes too long.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(lingering) = &mut self.lingering else { return Poll::Ready(()) };
        loop {
            let mut piece = [0; LINGER_CHUNK_BYTES];
            let mut buffer = ReadBuf::new(&mut piece);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) => {
                    let bytes = buffer.filled().len();
                    lingering.bytes_left = lingering.bytes_left.saturating_sub(bytes);
                    if bytes == 0 || lingering.bytes_left == 0 {
                        return Poll::Ready(());
                    }
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return lingering.until.as_mut().poll(cx),
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.last_read_returned_bytes = buffer.filled().len() > before;
        read
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.enforce_min_rate(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.enforce_min_rate(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            let lingers = match self.response.terms().linger {
                Linger::AfterBytes => self.last_read_returned_bytes,
                Linger::Always => true,
                Linger::Never => false,
            };
            if !lingers {
                return Poll::Ready(Ok(()));
            }
            let until = Box::pin(sleep(self.linger_max));
            self.lingering = Some(Lingering { bytes_left: LINGER_BYTES_MAX, until });
        }
        ready!(self.poll_linger(cx));
        Poll::Ready(Ok(()))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unacknowledged_data_closes_the_connection_after_30_s() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let connecting = TcpStream::connect(listener.local_addr().unwrap());
        let (_client, accepted) = tokio::join!(connecting, listener.accept());
        let reads = crate::timeouts::ClientTimeouts::default().reads;
        let stream = accepted.unwrap().0;
        let stream = ClientStream::new(stream, reads, Duration::ZERO, CurrentResponse::default());
        let socket = socket2::SockRef::from(&stream.stream);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED_MAX));
    }
}
