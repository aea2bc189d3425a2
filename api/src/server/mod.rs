//! Accepts connections, and closes those whose client is too slow to send its request or to read its response.
//!
//! HTTP/1.1 only: proxies that use HTTP/2 with clients use HTTP/1.1 with this server, and one protocol needs only one set of limits. The
//! header timeout also closes idle connections. Checks before routing are in `dispatch`, the minimum rate of readers in `stream`.

mod dispatch;
mod stream;
#[cfg(test)]
mod tests;

use async_recursion::async_recursion as boxed;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use ipnet::IpNet;
use store::{BackgroundTask, OUTAGE, Store, TaskFailure, TaskMonitor};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::dispatch::Dispatcher;
use self::stream::{ClientStream, CurrentResponse};
use crate::admin::AdminTokens;
use crate::capacity::CONNECTIONS_MAX;
use crate::client::{client_network, is_trusted};
use crate::config::ApiConfig;
use crate::limits::PRUNE_INTERVAL;
use crate::load::Load;
use crate::overload::RejectionResponse;
use crate::router::router;
use crate::server_names::ServerNames;
use crate::state::{ApiError, App};
use crate::timeouts::ClientTimeouts;
use crate::{clock, index, metrics, middleware, replica, search_counts, search_watches};
use runtime::{Share, Shares};

/// Maximum size of the headers of a request, including the request line, in bytes.
const HEADER_BYTES_MAX: usize = 32 * 1024;
const HEADER_COUNT_MAX: usize = 64;
/// How long connections are still accepted after the signal to stop: those in the kernel's queue expect a response.
const ACCEPT_AFTER_STOP: Duration = Duration::from_millis(100);
/// How long a new connection may still send its first request after the signal to stop.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(1);
/// Delay after a connection could not be accepted, for example because no file descriptors are left.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Poll interval of a database that does not answer.
const OUTAGE_POLL: Duration = Duration::from_secs(1);

/// State that decides whether connections and requests are accepted.
#[derive(Clone)]
pub(crate) struct AdmissionControl {
    pub(crate) connections: Arc<Shares>,
    pub(crate) requests: Arc<Shares>,
    pub(crate) load: Load,
    pub(crate) rejected: RejectionResponse,
    pub(crate) trusted_proxies: Arc<[IpNet]>,
    pub(crate) names: ServerNames,
    pub(crate) admin_tokens: AdminTokens,
    pub(crate) timeouts: ClientTimeouts,
}

impl AdmissionControl {
    fn of(app: &App) -> Self {
        let config = &app.config;
        Self {
            connections: Arc::clone(&app.capacity.connections),
            requests: Arc::clone(&app.capacity.requests),
            load: app.load.clone(),
            rejected: middleware::rejected(middleware::HeaderSettings::of(config)),
            trusted_proxies: config.trusted_proxies.as_slice().into(),
            names: app.names.clone(),
            admin_tokens: app.admin_tokens.clone(),
            timeouts: config.timeouts,
        }
    }
}

struct Accepted {
    stream: TcpStream,
    peer: SocketAddr,
    _slot: OwnedSemaphorePermit,
    /// `None` for a trusted proxy, which connects for many clients: its requests are counted instead.
    _share: Option<Share>,
}

/// Binds the address of the settings, and returns them with the port that was bound, which port 0 leaves to the system.
#[boxed]
pub async fn bind(config: ApiConfig) -> Result<(TcpListener, ApiConfig), ApiError> {
    let address = config.listen;
    let failed = |source| ApiError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let listen = listener.local_addr().map_err(failed)?;
    Ok((listener, ApiConfig { listen, ..config }))
}

/// Serves until `cancel`, then lets open requests finish for a few seconds.
#[boxed]
pub async fn serve(listener: TcpListener, app: App, cancel: CancellationToken) -> Result<(), ApiError> {
    let stop_following = cancel.child_token();
    let config = &app.config;
    if let Some(warning) = config.warning_without_contact() {
        tracing::warn!("{warning}");
    }
    let location = config.index_from.as_ref();
    let snapshots = location.map(|location| location.open(stop_following.clone())).transpose()?;
    // An existing index is opened and warmed before the first request is served.
    app.refresh_index().await;
    let tasks = TaskTracker::new();
    tasks.spawn(index::follow(Arc::clone(&app.index), app.store.clone(), stop_following.clone()));
    tasks.spawn(await_ends_of_outages(app.store.clone(), stop_following.clone()));
    tasks.spawn(prune(app.clone(), stop_following.clone()));
    tasks.spawn(write_search_counts(app.clone(), stop_following.clone()));
    tasks.spawn(search_watches::run(app.clone(), stop_following.clone()));
    if let Some(from) = snapshots {
        let to = config.index.dir.clone();
        // Snapshots contain no vectors: a replica computes its own.
        if let Some(embedder) = &config.embedder {
            let (embedder, stop) = (Arc::clone(embedder), stop_following.clone());
            let monitor = Arc::new(TaskMonitor::new(app.store.clone(), BackgroundTask::Vectors));
            tasks.spawn(indexer::vectors::keep_current(to.clone(), embedder, monitor, stop));
        }
        let replica = Arc::clone(&app.replica);
        let monitor = TaskMonitor::new(app.store.clone(), BackgroundTask::FetchSnapshots);
        tasks.spawn(replica::follow(Arc::from(from), to, (replica, monitor), stop_following.clone()));
    }

    // Streams end only when they are closed.
    let (stop, closing) = (cancel.clone(), app.closing());
    tasks.spawn(async move {
        stop.cancelled().await;
        closing.cancel();
    });
    tasks.close();
    accept_until(listener, router(&app), AdmissionControl::of(&app), cancel).await;
    stop_following.cancel();
    tasks.wait().await;
    Ok(())
}

/// Polls a database that does not answer until it does, and the primary of a replica.
async fn await_ends_of_outages(store: Store, cancel: CancellationToken) {
    let polled = async || {
        tokio::time::sleep(OUTAGE_POLL).await;
        if OUTAGE.is_on() && store.check_available().await.is_ok() {
            OUTAGE.answered();
        }
    };
    while cancel.run_until_cancelled(polled()).await.is_some() {}
}

/// Drops full rate limit buckets and old metric samples.
async fn prune(app: App, until: CancellationToken) {
    while until.run_until_cancelled(tokio::time::sleep(PRUNE_INTERVAL)).await.is_some() {
        app.limits.prune();
        metrics::upkeep();
    }
}

/// Writes the counts of searches every minute, and for the last time when the process stops.
async fn write_search_counts(app: App, until: CancellationToken) {
    let monitor = TaskMonitor::new(app.store.clone(), BackgroundTask::SearchCounts);
    loop {
        let began = tokio::time::Instant::now();
        let result = match app.write_search_counts().await {
            // the counts of a replica without a primary stay in memory
            Err(error) if error.is_read_only() => Ok(()),
            written => written.map_err(|error| TaskFailure::of_store(&error, began)),
        };
        monitor.ended(result, clock::now()).await;
        if until.is_cancelled() {
            return;
        }
        until.run_until_cancelled(tokio::time::sleep(search_counts::WRITE_INTERVAL)).await;
    }
}

/// Serves until `cancel`, then serves connected clients for a short time.
async fn accept_until(
    listener: TcpListener,
    router: Router,
    admission: AdmissionControl,
    cancel: CancellationToken,
) {
    let connections = TaskTracker::new();
    let broken_off = CancellationToken::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let drain = admission.timeouts.drain;
    let dispatcher = Dispatcher::new(router, admission.clone());
    let accept = async |until: &CancellationToken| {
        while let Some(accepted) = next(&listener, &slots, &admission, until).await {
            let connection = connection(accepted, dispatcher.clone(), admission.timeouts, cancel.clone());
            let until = broken_off.clone();
            connections.spawn(async move {
                if let Some(Err(error)) = until.run_until_cancelled(connection).await {
                    tracing::debug!(error = &error as &dyn std::error::Error, "connection failed");
                }
            });
        }
    };
    accept(&cancel).await;
    // connections that the kernel completed before the signal are still served
    drop(tokio::time::timeout(ACCEPT_AFTER_STOP, accept(&CancellationToken::new())).await);
    drop(listener);
    connections.close();
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        tracing::info!("stopping with active requests");
        broken_off.cancel();
    }
    connections.wait().await;
}

/// The next connection, or `None` when the server stops. Connections beyond a client's limit are closed immediately.
async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    admission: &AdmissionControl,
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
                            Err(_full) => metrics::rejected("connections"),
                        }
                    }
                    Err(error) => {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "cannot accept a connection"
                        );
                        tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    }
                }
            }
        })
        .await
        .flatten()
}

/// Serves one connection; after `cancel`, its current request, or its first one, is the last.
async fn connection(
    accepted: Accepted,
    dispatcher: Dispatcher,
    timeouts: ClientTimeouts,
    cancel: CancellationToken,
) -> hyper::Result<()> {
    let Accepted { stream, peer, _slot, _share } = accepted;
    let current = CurrentResponse::default();
    let stream = ClientStream::new(stream, timeouts.reads, timeouts.linger, current.clone());
    let first_request = CancellationToken::new();
    let received = first_request.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        received.cancel();
        dispatcher.clone().answer(request, peer, current.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.headers)
        .max_headers(HEADER_COUNT_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let last_request = async {
        cancel.cancelled().await;
        drop(tokio::time::timeout(FIRST_REQUEST_MAX.min(timeouts.drain), first_request.cancelled()).await);
    };
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = last_request => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
