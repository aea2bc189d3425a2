//! The current phase of a connection and the duration of each phase.
//!
//! The HTTP client does not report when the TCP connection was open and TLS began. So a connector layer records the start and the end, and
//! the store of TLS sessions records the start of the handshake, when rustls looks for a session. No session is ever stored. When a
//! connection is open, the layer also checks whether the request may still be sent.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use crate::leave::{Late, LeaveCheck};

/// The current phase of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Connecting,
    Handshake,
    Headers,
    Body,
}

impl Stage {
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Handshake => "the TLS handshake",
            Self::Headers => "the answer's headers",
            Self::Body => "the body",
        }
    }
}

/// Duration of each phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    pub connect: Duration,
    pub tls: Duration,
    pub first_byte: Duration,
    pub body: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Marks {
    stage: Stage,
    since: Instant,
    timings: Timings,
}

/// Shared by the connector, rustls and the reader of one visit. A visit sends one request at a time.
#[derive(Clone)]
pub(crate) struct Probe {
    marks: Arc<Mutex<Marks>>,
    /// The check of the current request.
    leave: Arc<Mutex<Option<LeaveCheck>>>,
}

impl Probe {
    pub(crate) fn new() -> Self {
        let marks = Marks { stage: Stage::Headers, since: Instant::now(), timings: Timings::default() };
        Self { marks: Arc::new(Mutex::new(marks)), leave: Arc::default() }
    }

    /// Begins a request; on an open connection it waits for headers immediately.
    pub(crate) fn begin(&self, leave: LeaveCheck) {
        *self.leave.lock().unwrap_or_else(PoisonError::into_inner) = Some(leave);
        self.with(|marks| {
            *marks = Marks { stage: Stage::Headers, since: Instant::now(), timings: Timings::default() };
        });
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.with(|marks| {
            let now = Instant::now();
            marks.close(now);
            marks.stage = stage;
            marks.since = now;
        });
    }

    /// The stage, and when it began.
    pub(crate) fn stage(&self) -> (Stage, Instant) {
        self.with(|marks| (marks.stage, marks.since))
    }

    /// The timings, including the current phase.
    pub(crate) fn timings(&self) -> Timings {
        self.with(|marks| {
            let mut closed = *marks;
            closed.close(Instant::now());
            closed.timings
        })
    }

    fn check_leave(&self) -> Result<(), Late> {
        let leave = self.leave.lock().unwrap_or_else(PoisonError::into_inner).clone();
        leave.map_or(Ok(()), |leave| leave.check())
    }

    fn with<T>(&self, action: impl FnOnce(&mut Marks) -> T) -> T {
        action(&mut self.marks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Marks {
    fn close(&mut self, now: Instant) {
        let spent = now.saturating_duration_since(self.since);
        match self.stage {
            Stage::Connecting => self.timings.connect += spent,
            Stage::Handshake => self.timings.tls += spent,
            Stage::Headers => self.timings.first_byte += spent,
            Stage::Body => self.timings.body += spent,
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Probe").field(&self.stage().0).finish()
    }
}

impl ClientSessionStore for Probe {
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.enter(Stage::Handshake);
        None
    }

    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, _: Tls13ClientSessionValue) {}

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}

impl<S> Layer<S> for Probe {
    type Service = Probed<S>;

    fn layer(&self, inner: S) -> Probed<S> {
        Probed { inner, probe: self.clone() }
    }
}

/// A connector that records its start and end. It fails if, once the connection is open, the request may no longer be sent.
#[derive(Clone)]
pub(crate) struct Probed<S> {
    inner: S,
    probe: Probe,
}

impl<S, R> Service<R> for Probed<S>
where
    S: Service<R, Error: Into<BoxError>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let probe = self.probe.clone();
        probe.enter(Stage::Connecting);
        let connecting = self.inner.call(target);
        Box::pin(async move {
            let connected = connecting.await.map_err(Into::into)?;
            probe.check_leave()?;
            probe.enter(Stage::Headers);
            Ok(connected)
        })
    }
}
