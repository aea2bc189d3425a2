//! What a request passes before it is routed: whether it is well-formed, and whether there is time for it.
//!
//! Turning away has to cost next to nothing, or a process that has too much to do spends its time on saying so. So it
//! happens here, before routing, logs and compression, with an answer that was written once; the connection stays open,
//! and the answer is held back for a moment, since a client that asks again at once is the usual cause.
//!
//! Under overload those are turned away who have their fair part of what is under way: a client with nothing under way is
//! served while there is a place.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use axum::response::Response;
use hyper::body::{Body as _, Incoming};
use tokio::time::Instant;
use tower::ServiceExt as _;

use super::Admission;
use super::stream::MayStillSend;
use crate::client::Client;
use crate::metrics;
use crate::middleware::name_turned_away;
use crate::names::host;
use crate::problem::Problem;
use crate::routes::metrics::may_see_metrics;

/// Whoever looks after this process has to see whether it lives and whether it can search while it turns others away.
pub(crate) const ALWAYS_ANSWERED: [&str; 2] = ["/healthz", "/readyz"];
/// The numbers, which are told to whom they are for while others are turned away: overload is when they are needed.
pub(crate) const METRICS: &str = "/metrics";
/// Least and most milliseconds that an answer is held back which turns a request away.
const HELD_BACK_MS: (u64, u64) = (200, 600);
/// Least and most seconds until a client that was turned away is asked to come back.
const RETRY_AFTER_S: (u64, u64) = (1, 5);

/// A request that is not to be handled, and why: its answer goes the way of every other one, to get the one shape.
#[derive(Debug, Clone)]
pub(crate) struct Refused(pub(crate) Problem);

/// The answer that turns a request away, but for when to come back.
#[derive(Debug, Clone)]
pub(crate) struct TurnedAway {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The way of every request to the router.
#[derive(Clone)]
pub(super) struct Gate(Arc<Parts>);

struct Parts {
    router: Router,
    admission: Admission,
    turned_away: AtomicU64,
}

impl Gate {
    pub(super) fn new(router: Router, admission: Admission) -> Self {
        Self(Arc::new(Parts { router, admission, turned_away: AtomicU64::new(0) }))
    }

    pub(super) async fn answer(
        self,
        request: Request<Incoming>,
        peer: SocketAddr,
        may_still_send: MayStillSend,
    ) -> Result<Response, Infallible> {
        let has_body = !request.body().is_end_stream();
        let response = if self.has_time_for(&request, peer).await {
            let mut request = request.map(Body::new);
            if let Some(problem) = malformed(request.version(), request.headers()) {
                request.extensions_mut().insert(Refused(problem));
            }
            request.extensions_mut().insert(ConnectInfo(peer));
            self.0.router.clone().oneshot(request).await?
        } else {
            self.turn_away(request.headers()).await
        };
        // The bodies of the requests before were read, or this one could not have been.
        may_still_send
            .set(has_body && (response.status().is_client_error() || response.status().is_server_error()));
        Ok(response)
    }

    async fn has_time_for(&self, request: &Request<Incoming>, peer: SocketAddr) -> bool {
        let (admission, uri, headers) = (&self.0.admission, request.uri(), request.headers());
        let is_overload = admission.load.is_overload(Instant::now());
        if !(is_overload || admission.requests.is_exhausted()) || ALWAYS_ANSWERED.contains(&uri.path()) {
            return true;
        }
        let client = Client::connected(peer.ip(), uri, headers, &admission.trusted_proxies, &admission.names);
        if uri.path() == METRICS && may_see_metrics(client, &admission.admin_tokens, headers).await {
            return true;
        }
        !admission.requests.is_exhausted() && !admission.requests.holds_fair_share(client.address)
    }

    async fn turn_away(&self, asked: &HeaderMap) -> Response {
        metrics::turned_away("load");
        let number = self.0.turned_away.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(spread(number, HELD_BACK_MS))).await;
        let TurnedAway { headers, body } = &self.0.admission.turned_away;
        let mut response = Response::new(Body::from(body.clone()));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().clone_from(headers);
        name_turned_away(response.headers_mut(), asked, number);
        let seconds = spread(number, RETRY_AFTER_S);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        response
    }
}

/// Values between two bounds, both included, that lie far from those of the numbers before: multiples of the golden
/// ratio fill an interval evenly.
const fn spread(number: u64, (least, most): (u64, u64)) -> u64 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let fraction = number.wrapping_mul(GOLDEN) >> 32;
    least + ((fraction * (most - least + 1)) >> 32)
}

/// Seconds after which a client may come back for which there was no room; others are told others.
pub(crate) fn next_retry_after_s() -> u32 {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let seconds = spread(NUMBER.fetch_add(1, Ordering::Relaxed), RETRY_AFTER_S);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// HTTP/1.1 asks for exactly one `Host` (RFC 9112 §3.2). HTTP/1.0 has none, and what watches over a process may speak it.
fn malformed(version: Version, headers: &HeaderMap) -> Option<Problem> {
    let may_be_missing = version < Version::HTTP_11 && !headers.contains_key(header::HOST);
    let is_well_formed = may_be_missing || host(headers).is_some();
    (!is_well_formed)
        .then(|| Problem::bad_request("a request names its host once, as in Host: agentdex.example"))
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn clients_that_were_turned_away_come_back_at_different_times() {
        let mut counts = [0_usize; 6];
        for number in 0..1_000 {
            counts[usize::try_from(spread(number, RETRY_AFTER_S)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (190..=210).contains(count)), "{counts:?}");
    }
}
