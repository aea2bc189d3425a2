//! The stream between TLS and HTTP. It allows a host to send bytes that the HTTP layer would never send, or nothing.
//!
//! After a plan was set, the output of the HTTP layer is discarded.

use std::{
    future::Future,
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use hyper::body::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Sleep,
};
use tokio_rustls::server::TlsStream;

use crate::{answer::Pace, body::sleep, log::OpenHit};

/// Replaces the HTTP response. The record of the hit is closed when the plan is done.
pub(crate) struct Plan {
    pub(crate) action: Takeover,
    pub(crate) hit: OpenHit,
}

/// The end of a connection.
pub(crate) enum Takeover {
    /// Write these bytes, then close.
    Write(Bytes, Option<Pace>),
    /// Write these bytes, then close the connection without `close_notify`.
    WriteAndBreak(Bytes, Option<Pace>),
    /// Reset it.
    Reset,
    /// Close it.
    Close,
}

/// Shared by the stream and the request handler.
#[derive(Clone, Default)]
pub(crate) struct Tampering(Arc<Mutex<Option<Plan>>>);

impl Tampering {
    pub(crate) fn set(&self, plan: Plan) {
        *self.plan() = Some(plan);
    }

    fn plan(&self) -> MutexGuard<'_, Option<Plan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A TLS stream whose output can be replaced by a [`Plan`].
pub(crate) struct TamperedStream {
    inner: TlsStream<TcpStream>,
    tampering: Tampering,
    delay: Option<Pin<Box<Sleep>>>,
    /// Whether the connection ends without `close_notify`.
    is_broken: bool,
}

impl TamperedStream {
    pub(crate) fn new(inner: TlsStream<TcpStream>, tampering: Tampering) -> Self {
        Self { inner, tampering, delay: None, is_broken: false }
    }

    /// Executes the plan, if there is one. Returns an error when the connection has to end.
    fn poll_plan(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let tampering = self.tampering.clone();
        let mut plan = tampering.plan();
        let Some(Plan { action, hit }) = plan.as_mut() else {
            return Poll::Ready(None);
        };
        match action {
            Takeover::Close => {}
            Takeover::Reset => reset_on_close(self.inner.get_ref().0),
            Takeover::Write(bytes, pace) => {
                let written = ready!(self.poll_write_all(context, bytes, *pace, hit));
                if written.is_ok() {
                    hit.mark_complete();
                    ready!(Pin::new(&mut self.inner).poll_shutdown(context)).ok();
                }
            }
            Takeover::WriteAndBreak(bytes, pace) => {
                ready!(self.poll_write_all(context, bytes, *pace, hit)).ok();
                self.is_broken = true;
            }
        }
        *plan = None;
        Poll::Ready(Some(io::Error::new(io::ErrorKind::ConnectionAborted, "the response was replaced")))
    }

    fn poll_write_all(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut Bytes,
        pace: Option<Pace>,
        hit: &mut OpenHit,
    ) -> Poll<io::Result<()>> {
        while !bytes.is_empty() {
            if let Some(delay) = &mut self.delay {
                ready!(delay.as_mut().poll(context));
                self.delay = None;
            }
            let chunk_bytes = pace.map_or(bytes.len(), |pace| pace.chunk_bytes.min(bytes.len()));
            let chunk = bytes.slice(..chunk_bytes);
            let count = ready!(Pin::new(&mut self.inner).poll_write(context, &chunk))?;
            let sent = bytes.split_to(count);
            hit.add_bytes(sent.len());
            ready!(Pin::new(&mut self.inner).poll_flush(context))?;
            self.delay = pace.map(|pace| Box::pin(sleep(pace.delay)));
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for TamperedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for TamperedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match ready!(self.poll_plan(context)) {
            Some(end) => Poll::Ready(Err(end)),
            None => Pin::new(&mut self.inner).poll_write(context, buffer),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_broken {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Makes closing this socket send RST in place of FIN.
pub(crate) fn reset_on_close(socket: &TcpStream) {
    socket.set_zero_linger().ok();
}
