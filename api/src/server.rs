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
/// How long connections are still accepted after the signal to stop: those that the kernel has taken already count on an answer.
const LAST_CALL: Duration = Duration::from_millis(100);
/// How long a connection that has asked nothing yet may do so after the signal to stop.
const FIRST_REQUEST: Duration = Duration::from_secs(1);
/// Pause after a connection could not be accepted: no file descriptors are left, and one has to be given back first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves until `cancel`, then answers whoever is connected already, for a while.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    cancel: CancellationToken,
    patience: Patience,
) {
    let connections = TaskTracker::new();
    let broken_off = CancellationToken::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accept = async |until: &CancellationToken| {
        while let Some((stream, peer, slot)) = next(&listener, &slots, until).await {
            let connection = connection(stream, peer, router.clone(), patience, cancel.clone());
            let until = broken_off.clone();
            connections.spawn(async move {
                if let Some(Err(error)) = until.run_until_cancelled(connection).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "connection broke off");
                }
                drop(slot);
            });
        }
    };
    accept(&cancel).await;
    // Nobody who got through to this machine is turned away by the moment of the signal.
    drop(tokio::time::timeout(LAST_CALL, accept(&CancellationToken::new())).await);
    drop(listener);
    connections.close();
    if tokio::time::timeout(patience.drain, connections.wait()).await.is_err() {
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

/// Serves one connection; after `cancel` its request under way, or its first one, is the last.
async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    patience: Patience,
    cancel: CancellationToken,
) -> hyper::Result<()> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(error = &error as &dyn std::error::Error, "answers may be delayed");
    }
    let asked = CancellationToken::new();
    let asks = asked.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        asks.cancel();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience.headers)
        .max_headers(HEADER_COUNT_MAX)
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

    #[tokio::test]
    async fn whoever_is_connected_when_it_stops_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().route("/", get(async || "hello"));
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, router, stop.clone(), PATIENCE));
        let mut early = TcpStream::connect(address).await.unwrap();
        stop.cancel();
        let mut late = TcpStream::connect(address).await.unwrap();
        for client in [&mut early, &mut late] {
            client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            let answer = said(client).await;
            assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello"), "{answer}");
        }
        tokio::time::timeout(SOON, serving.join_next()).await.unwrap().unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err());
    }
}
