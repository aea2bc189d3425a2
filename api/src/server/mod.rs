//! Accepts connections, and cuts those that take too long to say what they want or to take what they asked for.
//!
//! HTTP/1.1 alone: a proxy that speaks HTTP/2 to the world speaks HTTP/1.1 to us, and one protocol has one set of
//! limits. A client has a few seconds for its headers; an idle connection is closed by the same clock. What a request
//! passes before it is routed is in `gate`, what a slow reader is held to in `stream`.

mod gate;
mod stream;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::gate::Gate;
use self::stream::{ClientStream, MayStillSend};
use crate::admin::AdminTokens;
use crate::client::{client_network, is_trusted};
use crate::load::Load;
use crate::metrics;
use crate::names::OwnNames;
use crate::pace::Patience;
use runtime::{Share, Shares};

pub(crate) use self::gate::{ALWAYS_ANSWERED, METRICS, Refused, TurnedAway, next_retry_after_s};

/// Largest headers of a request with its first line, in bytes.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Most headers of a request.
const HEADER_COUNT_MAX: usize = 64;
/// Connections at once: at 50 kB each, a hundred megabytes at most. Further ones wait in the kernel's queue.
pub(crate) const CONNECTIONS_MAX: usize = 2_000;
/// How long connections are still accepted after the signal to stop: those that the kernel has taken already count on an answer.
const LAST_CALL: Duration = Duration::from_millis(100);
/// How long a connection that has asked nothing yet may do so after the signal to stop.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted: no file descriptors are left, and one has to be given back first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What connections and requests are admitted by.
#[derive(Clone)]
pub(crate) struct Admission {
    pub(crate) connections: Arc<Shares>,
    pub(crate) requests: Arc<Shares>,
    pub(crate) load: Load,
    pub(crate) turned_away: TurnedAway,
    pub(crate) trusted_proxies: Arc<[IpNet]>,
    pub(crate) names: OwnNames,
    pub(crate) admin_tokens: AdminTokens,
    pub(crate) patience: Patience,
}

/// A connection that was accepted, and its places.
struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    _slot: OwnedSemaphorePermit,
    /// None for a trusted proxy, which connects for many.
    _share: Option<Share>,
}

/// Serves until `cancel`, then answers whoever is connected already, for a while.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    admission: Admission,
    cancel: CancellationToken,
) {
    let connections = TaskTracker::new();
    let broken_off = CancellationToken::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let drain = admission.patience.drain;
    let gate = Gate::new(router, admission.clone());
    let accept = async |until: &CancellationToken| {
        while let Some(accepted) = next(&listener, &slots, &admission, until).await {
            let connection = connection(accepted, gate.clone(), admission.patience, cancel.clone());
            let until = broken_off.clone();
            connections.spawn(async move {
                if let Some(Err(error)) = until.run_until_cancelled(connection).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "connection broke off");
                }
            });
        }
    };
    accept(&cancel).await;
    // Nobody who got through to this machine is turned away by the moment of the signal.
    drop(tokio::time::timeout(LAST_CALL, accept(&CancellationToken::new())).await);
    drop(listener);
    connections.close();
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        tracing::info!("stopping with requests under way");
        broken_off.cancel();
    }
    connections.wait().await;
}

/// The next connection, or `None` when it is time to stop. Those beyond a client's share are closed at once.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    admission: &Admission,
    cancel: &CancellationToken,
) -> Option<Accepted> {
    cancel
        .run_until_cancelled(async {
            let slot = Arc::clone(slots).acquire_owned().await.ok()?;
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => {
                        let is_proxy = is_trusted(peer.ip(), &admission.trusted_proxies);
                        let share =
                            (!is_proxy).then(|| admission.connections.take(client_network(peer.ip()), 1));
                        match share.transpose() {
                            Ok(share) => return Some(Accepted { stream, peer, _slot: slot, _share: share }),
                            Err(_full) => metrics::turned_away("connections"),
                        }
                    }
                    Err(error) => {
                        tracing::warn!(error = &error as &dyn std::error::Error, "connection not accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        })
        .await
        .flatten()
}

/// Serves one connection; after `cancel` its request under way, or its first one, is the last.
async fn connection(
    accepted: Accepted,
    gate: Gate,
    patience: Patience,
    cancel: CancellationToken,
) -> hyper::Result<()> {
    let Accepted { stream, peer, _slot, _share } = accepted;
    let may_still_send = MayStillSend::default();
    let stream = ClientStream::new(stream, patience.reads, patience.linger, may_still_send.clone());
    let asked = CancellationToken::new();
    let asks = asked.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        asks.cancel();
        gate.clone().answer(request, peer, may_still_send.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.headers)
        .max_headers(HEADER_COUNT_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let last_request = async {
        cancel.cancelled().await;
        drop(tokio::time::timeout(FIRST_REQUEST.min(patience.drain), asked.cancelled()).await);
    };
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = last_request => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
