//! The stream between TLS and HTTP, through which a host can send what HTTP would never send, or nothing at all.
//!
//! HTTP above goes on believing that it writes its answer; what it writes is swallowed once a plan is set.

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

/// What to do in place of writing HTTP's answer. The record of the hit closes when it is done.
pub(crate) struct Plan {
    pub(crate) deed: Deed,
    pub(crate) hit: OpenHit,
}

/// How to end a connection.
pub(crate) enum Deed {
    /// Write these bytes, then close.
    Write(Bytes, Option<Pace>),
    /// Reset it.
    Reset,
    /// Close it.
    Close,
}

/// Shared by the stream and by whoever answers on it.
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

/// A TLS stream whose writing side can be taken over.
pub(crate) struct TamperedStream {
    inner: TlsStream<TcpStream>,
    tampering: Tampering,
    pause: Option<Pin<Box<Sleep>>>,
}

impl TamperedStream {
    pub(crate) fn new(inner: TlsStream<TcpStream>, tampering: Tampering) -> Self {
        Self { inner, tampering, pause: None }
    }

    /// Carries out the plan, if there is one: ready with an error when the connection is to end.
    fn poll_plan(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let tampering = self.tampering.clone();
        let mut plan = tampering.plan();
        let Some(Plan { deed, hit }) = plan.as_mut() else {
            return Poll::Ready(None);
        };
        match deed {
            Deed::Close => {}
            Deed::Reset => reset_on_close(self.inner.get_ref().0),
            Deed::Write(bytes, pace) => {
                let written = ready!(self.poll_write_all(context, bytes, *pace, hit));
                if written.is_ok() {
                    hit.mark_complete();
                    ready!(Pin::new(&mut self.inner).poll_shutdown(context)).ok();
                }
            }
        }
        *plan = None;
        Poll::Ready(Some(io::Error::new(io::ErrorKind::ConnectionAborted, "the answer was tampered with")))
    }

    fn poll_write_all(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut Bytes,
        pace: Option<Pace>,
        hit: &mut OpenHit,
    ) -> Poll<io::Result<()>> {
        while !bytes.is_empty() {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            let chunk_bytes = pace.map_or(bytes.len(), |pace| pace.chunk_bytes.min(bytes.len()));
            let chunk = bytes.slice(..chunk_bytes);
            let count = ready!(Pin::new(&mut self.inner).poll_write(context, &chunk))?;
            let sent = bytes.split_to(count);
            hit.add_bytes(sent.len());
            ready!(Pin::new(&mut self.inner).poll_flush(context))?;
            self.pause = pace.map(|pace| Box::pin(sleep(pace.pause)));
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
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Makes closing this socket send RST in place of FIN.
pub(crate) fn reset_on_close(socket: &TcpStream) {
    socket.set_zero_linger().ok();
}
