//! Checks before routing: whether a request is well-formed, and whether there is capacity for it.
//!
//! Rejections must be cheap, or an overloaded process spends its time on them. So they happen before routing, logging and compression, with
//! a response that is rendered once. The connection stays open, and the response is delayed, because clients that retry immediately are the
//! usual cause of overload.
//!
//! Under overload, clients that already have their fair share of requests in progress are rejected; a client with none is served while
//! there is capacity. While few connections are free, connections of clients with too many are closed after the response.
//!
//! Each connection of a direct client counts towards its limit while it is open. For a client behind a trusted proxy, each request counts,
//! from the headers to the end of the response; a request beyond the limit is refused before its body is read.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use axum::response::Response;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use runtime::{LimitReached, Share};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::AdmissionControl;
use super::stream::{CurrentResponse, Linger, ResponseTerms};
use crate::buffers::KeptInMemory;
use crate::client::{Client, client_network, is_trusted};
use crate::metrics;
use crate::middleware::set_rejection_id;
use crate::overload::{
    ALWAYS_ANSWERED, METRICS, RETRY_AFTER_S, Refused, RejectionResponse, capacity_problem, spread,
};
use crate::problem::Problem;
use crate::server_names::host;

/// Minimum and maximum delay of a rejection.
const REJECTION_DELAY_MS: (u64, u64) = (200, 600);
/// Passes requests to the router, or rejects them.
#[derive(Clone)]
pub(super) struct Dispatcher(Arc<Parts>);

struct Parts {
    router: Router,
    admission: AdmissionControl,
    rejected: AtomicU64,
}

impl Dispatcher {
    pub(super) fn new(router: Router, admission: AdmissionControl) -> Self {
        Self(Arc::new(Parts { router, admission, rejected: AtomicU64::new(0) }))
    }

    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
        peer: SocketAddr,
        current: CurrentResponse,
    ) -> Result<Response, Infallible> {
        // the share of the previous request on this connection is released before the share of this request is taken
        current.set(ResponseTerms::default());
        let has_body = !request.body().is_end_stream();
        let share = self.forwarded_share(&request, peer);
        let is_over_share = share.is_err();
        let mut response = if self.has_capacity_for(&request, peer).await {
            let mut request = request.map(Body::new);
            let over_share = share.as_ref().err().map(|full| capacity_problem("connections", *full));
            if let Some(problem) = over_share.or_else(|| malformed(request.version(), request.headers())) {
                request.extensions_mut().insert(Refused(problem));
            }
            request.extensions_mut().insert(ConnectInfo(peer));
            self.0.router.clone().oneshot(request).await?
        } else {
            self.reject(request.headers()).await
        };
        if is_over_share || self.has_too_many_connections(peer) {
            metrics::cut("connections");
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let is_kept = response.extensions().get::<KeptInMemory>().is_some();
        let is_error = response.status().is_client_error() || response.status().is_server_error();
        let share = share.ok().flatten().map(Arc::new);
        let linger = match has_body {
            _ if is_over_share => Linger::Never,
            // The bodies of earlier requests were read completely; otherwise this request could not have been read.
            true if is_error => Linger::Always,
            _ => Linger::default(),
        };
        current.set(ResponseTerms {
            linger,
            read_by: is_kept.then(|| Instant::now() + self.0.admission.timeouts.large_responses),
            _share: share.clone().filter(|_| linger == Linger::Always),
        });
        Ok(match share {
            Some(share) => response.map(|body| Body::new(SharedConnection { body, _share: share })),
            None => response,
        })
    }

    /// The share of the connections that a client behind a trusted proxy has for this request. `None` for a direct client.
    fn forwarded_share(
        &self,
        request: &Request<Incoming>,
        peer: SocketAddr,
    ) -> Result<Option<Share>, LimitReached> {
        let AdmissionControl { connections, trusted_proxies, names, .. } = &self.0.admission;
        if !is_trusted(peer.ip(), trusted_proxies) {
            return Ok(None);
        }
        let client = Client::connected(peer.ip(), request.uri(), request.headers(), trusted_proxies, names);
        connections.take(client.address, 1).map(Some)
    }

    async fn has_capacity_for(&self, request: &Request<Incoming>, peer: SocketAddr) -> bool {
        let (admission, uri, headers) = (&self.0.admission, request.uri(), request.headers());
        let is_overload = admission.load.is_overload(Instant::now());
        if !(is_overload || admission.requests.is_exhausted()) || ALWAYS_ANSWERED.contains(&uri.path()) {
            return true;
        }
        let client = Client::connected(peer.ip(), uri, headers, &admission.trusted_proxies, &admission.names);
        if uri.path() == METRICS && admission.admin_tokens.allow_metrics(client, headers).await {
            return true;
        }
        !admission.requests.is_exhausted() && !admission.requests.holds_fair_share(client.address)
    }

    /// Whether the client has too many connections while few are free. The header timeout closes idle connections, but a client can keep
    /// active ones open indefinitely.
    fn has_too_many_connections(&self, peer: SocketAddr) -> bool {
        let AdmissionControl { connections, trusted_proxies, .. } = &self.0.admission;
        !is_trusted(peer.ip(), trusted_proxies) && connections.holds_too_much(client_network(peer.ip()))
    }

    async fn reject(&self, requested: &HeaderMap) -> Response {
        metrics::rejected("load");
        let number = self.0.rejected.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(spread(number, REJECTION_DELAY_MS))).await;
        let RejectionResponse { headers, body } = &self.0.admission.rejected;
        let mut response = Response::new(Body::from(body.clone()));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().clone_from(headers);
        set_rejection_id(response.headers_mut(), requested, number);
        let seconds = spread(number, RETRY_AFTER_S);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    }
}

/// The body of a response to a forwarded client. It counts as a connection of the client until it is sent.
struct SharedConnection {
    body: Body,
    _share: Arc<Share>,
}

impl hyper::body::Body for SharedConnection {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// HTTP/1.1 requires exactly one `Host` (RFC 9112 §3.2). HTTP/1.0, which health checks may use, has none.
fn malformed(version: Version, headers: &HeaderMap) -> Option<Problem> {
    let may_be_missing = version < Version::HTTP_11 && !headers.contains_key(header::HOST);
    let is_well_formed = may_be_missing || host(headers).is_some();
    (!is_well_formed).then(|| {
        Problem::bad_request("a request needs exactly one Host header, as in Host: agentdex.example")
    })
}
