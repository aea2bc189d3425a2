//! Accepts connections and cuts those that take too long to say what they want.
//!
//! HTTP/1.1 alone: a proxy that speaks HTTP/2 to the world speaks HTTP/1.1 to us, and one protocol has one set of
//! limits. A client has a few seconds for its headers; an idle connection is closed by the same clock.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// How long is waited for others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// A client may take so long for the headers of its next request.
    pub(crate) headers: Duration,
    /// Open requests may take so long after the signal to stop.
    pub(crate) drain: Duration,
}

/// Long enough for the slowest honest line, short enough for a flood of dishonest ones.
pub(crate) const PATIENCE: Patience =
    Patience { headers: Duration::from_secs(10), drain: Duration::from_secs(5) };

/// Largest headers of a request, in bytes.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Most headers of a request.
const HEADER_COUNT_MAX: usize = 64;
/// Connections at once: at 50 kB each, a hundred megabytes at most. Further ones wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 2_000;
/// Pause after a connection could not be accepted: no file descriptors are left, and one has to be given back first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `cancel`, then lets open requests finish for a while.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    cancel: CancellationToken,
    patience: Patience,
) {
    let connections = TaskTracker::new();
    let broken_off = CancellationToken::new();
    let graceful = GracefulShutdown::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Some((stream, peer, slot)) = next(&listener, &slots, &cancel).await {
        let connection = connection(stream, peer, router.clone(), patience);
        let watched = graceful.watch(connection);
        let until = broken_off.clone();
        connections.spawn(async move {
            if let Some(Err(error)) = until.run_until_cancelled(watched).await {
                tracing::debug!(error = &error as &dyn std::error::Error, "connection broke off");
            }
            drop(slot);
        });
    }
    connections.close();
    drop(listener);
    if tokio::time::timeout(patience.drain, graceful.shutdown()).await.is_err() {
        tracing::info!("stopping with requests under way");
        broken_off.cancel();
    }
    connections.wait().await;
}

/// The next connection, or `None` when it is time to stop.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    cancel: &CancellationToken,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    cancel
        .run_until_cancelled(async {
            let slot = Arc::clone(slots).acquire_owned().await.ok()?;
            loop {
                match listener.accept().await {
                    Ok((stream, peer)) => return Some((stream, peer, slot)),
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

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    patience: Patience,
) -> http1::Connection<
    TokioIo<TcpStream>,
    impl hyper::service::Service<
        hyper::Request<Incoming>,
        Response = axum::response::Response,
        Error = std::convert::Infallible,
        Future: Send,
    >,
> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = &error as &dyn std::error::Error, "answers may be delayed");
    }
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.headers)
        .max_headers(HEADER_COUNT_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::task::JoinSet;

    /// Longest that a test waits for what has to happen.
    const SOON: Duration = Duration::from_secs(20);

    async fn said(stream: &mut TcpStream) -> String {
        let mut text = Vec::new();
        tokio::time::timeout(SOON, stream.read_to_end(&mut text)).await.unwrap().unwrap();
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn clients_that_do_not_say_what_they_want_are_cut() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "hello"));
        let (stop, patience) = (CancellationToken::new(), Duration::from_millis(200));
        let patience = Patience { headers: patience, drain: patience };
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, router, stop.clone(), patience));
        for begun in ["", "GET / HTTP/1.1\r\nhost: x\r\nx-slow: "] {
            let mut slow = TcpStream::connect(address).await.unwrap();
            slow.write_all(begun.as_bytes()).await.unwrap();
            let answer = said(&mut slow).await;
            assert!(!answer.contains("200 OK"), "{begun:?}: {answer}");
        }
        let mut honest = TcpStream::connect(address).await.unwrap();
        honest.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let answer = said(&mut honest).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello"), "{answer}");
        stop.cancel();
        tokio::time::timeout(SOON, serving.join_next()).await.unwrap().unwrap().unwrap();
    }
}
