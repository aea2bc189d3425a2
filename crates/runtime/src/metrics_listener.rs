//! Records the metrics of the process, and serves them as text over HTTP/1.1 to permitted clients.
//!
//! A listener on a loopback address is for clients on this machine. It answers only requests whose `Host` is a loopback name or address, so
//! that a page in a browser cannot read the metrics under its own name (DNS rebinding). A filter of peer addresses would not prevent this,
//! because the browser is on this machine. On any other address, every `Host` is accepted, because the operator chose the address and may
//! use any name for it.
//!
//! One peer may have at most a quarter of the connections, so that it cannot block others. The head of a request must arrive within a few
//! seconds.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::shares::{Shares, client_network};

const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Maximum number of concurrent connections: a few scrapers and a health check.
const CONNECTIONS_MAX: usize = 32;
/// Maximum number of concurrent connections of one peer. Further connections are closed.
const CONNECTIONS_OF_PEER_MAX: usize = CONNECTIONS_MAX / 4;
/// Maximum time for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(3);
/// Maximum time of a connection, which serves one request.
const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// Delay after a connection could not be accepted, for example because no file descriptor is left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// Interval of the upkeep that bounds the memory of histograms.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// The metrics cannot be recorded or served.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve metrics on {address}: {reason}")]
pub struct MetricsError {
    address: SocketAddr,
    reason: String,
}

/// Records the metrics of the process from now on, and serves them under `/metrics` until `stop`. `second_buckets` are the
/// bounds of the histograms whose names end in `_seconds`. Must be called within the runtime.
///
/// # Errors
///
/// If the address cannot be listened on, or the process records metrics already.
pub fn serve_metrics(
    address: SocketAddr,
    second_buckets: &[f64],
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Result<(), MetricsError> {
    let cannot = |error: &dyn std::fmt::Display| MetricsError { address, reason: error.to_string() };
    let listener = std::net::TcpListener::bind(address).map_err(|error| cannot(&error))?;
    listener.set_nonblocking(true).map_err(|error| cannot(&error))?;
    let listener = TcpListener::from_std(listener).map_err(|error| cannot(&error))?;
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), second_buckets)
        .map_err(|error| cannot(&error))?
        .build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|error| cannot(&error))?;
    tracker.spawn(serve(listener, handle, stop));
    Ok(())
}

/// Serves until `stop`.
async fn serve(listener: TcpListener, metrics: PrometheusHandle, stop: CancellationToken) {
    let is_for_this_machine = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let mut connections = JoinSet::new();
    let shares = Shares::new(CONNECTIONS_MAX, CONNECTIONS_OF_PEER_MAX);
    let mut upkeep = tokio::time::interval(UPKEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = upkeep.tick() => metrics.run_upkeep(),
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, peer)) => {
                    let Ok(share) = shares.take(client_network(peer.ip()), 1) else {
                        tracing::debug!(%peer, "connection for metrics closed: its peer has enough of them");
                        continue;
                    };
                    let served = connection(stream, peer, metrics.clone(), is_for_this_machine);
                    connections.spawn(async move {
                        drop(tokio::time::timeout(CONNECTION_MAX, served).await);
                        drop(share);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "connection for metrics not accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    metrics: PrometheusHandle,
    is_for_this_machine: bool,
) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let answer = answer(&request, &metrics, is_for_this_machine);
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%peer, %error, "connection for metrics failed");
    }
}

fn answer(
    request: &Request<Incoming>,
    metrics: &PrometheusHandle,
    is_for_this_machine: bool,
) -> Response<Full<Bytes>> {
    let is_refused = is_for_this_machine && !asks_for_loopback(request.headers());
    let (status, text) = match request.uri().path() {
        _ if is_refused => (StatusCode::FORBIDDEN, "metrics are for programs on this machine\n".to_owned()),
        "/metrics" => (StatusCode::OK, metrics.render()),
        _ => (StatusCode::NOT_FOUND, "metrics are at /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    response
}

/// Whether the one `Host` of a request is `localhost` or a loopback address.
fn asks_for_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let authority = host.to_str().ok().and_then(|host| host.parse::<http::uri::Authority>().ok());
    authority.is_some_and(|authority| {
        let name = authority.host().trim_matches(['[', ']']);
        let is_plain = !authority.as_str().contains('@');
        is_plain
            && (name.eq_ignore_ascii_case("localhost")
                || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    async fn status(address: SocketAddr, path: &str, host: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn loopback_listener_rejects_other_host_names() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, metrics, stop.clone()));
        for host in ["localhost", "127.0.0.1:9101", "[::1]:9101", "LOCALHOST:1"] {
            assert_eq!(status(address, "/metrics", host).await, "200", "{host}");
        }
        for host in ["rebound.example", "127.0.0.1.rebound.example", "user@localhost", "192.0.2.1"] {
            assert_eq!(status(address, "/metrics", host).await, "403", "{host}");
        }
        assert_eq!(status(address, "/", "localhost").await, "404");
        stop.cancel();
        serving.join_all().await;
    }

    /// A connection from this address of the machine.
    async fn connected(from: &str, to: SocketAddr) -> TcpStream {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
        socket.connect(to).await.unwrap()
    }

    /// Whether a connection of a peer is closed without a response.
    async fn is_closed(stream: &mut TcpStream, within: Duration) -> bool {
        let read = tokio::time::timeout(within, stream.read(&mut [0_u8; 1_024])).await;
        read.is_ok_and(|read| read.map_or(true, |bytes| bytes == 0))
    }

    #[tokio::test]
    async fn limits_connections_per_peer_and_closes_silent_ones() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, metrics, CancellationToken::new()));
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS_OF_PEER_MAX {
            silent.push(connected("127.0.0.1", address).await);
        }
        let asked = tokio::time::Instant::now();
        let mut more = connected("127.0.0.1", address).await;
        assert!(is_closed(&mut more, CONNECTION_MAX).await, "the peer exceeds its limit");
        let mut other = connected("127.0.0.2", address).await;
        other.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        for stream in &mut silent {
            assert!(is_closed(stream, CONNECTION_MAX).await, "the head of the request does not arrive");
        }
        assert!(asked.elapsed() < CONNECTION_MAX, "closed at the deadline of the head");
        assert_eq!(status(address, "/metrics", "localhost").await, "200", "the peer may connect again");
        serving.abort_all();
    }

    #[tokio::test]
    async fn network_listener_accepts_any_host_name() {
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, metrics, CancellationToken::new()));
        let address = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
        assert_eq!(status(address, "/metrics", "crawler:9101").await, "200");
        serving.abort_all();
    }
}
