//! One peer: sends the search to it and parses its response.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use egress::{Body, Cause, Egress, Failure, LeaveCheck, Reply};
use manifest::ListedEntry;
use manifest::budget::{Limits, PageLimits, parse_list_page};
use policy::{BodyKind, FetchOutcome, RetryAfter};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::breaker::{Admission, Breaker};
use super::settings::PeerUrl;
use super::{Fault, Outcome, PeerAnswer, Question, Skip};
use crate::permitted::off_runtime;
use crate::{clock, metrics};

/// Maximum number of searches that wait for one peer at the same time. With eight peers and [`BodyKind::Results`], the responses take at
/// most 32 MiB.
const AT_ONCE_MAX: usize = 4;
/// Maximum memory of one response while it is parsed, in bytes.
pub(super) const TREE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum number of parsed results, whatever the search asks for.
const RESULTS_MAX: usize = 100;
/// Each result, which has about fifty values in six levels. An instance answers with texts of publishers, so a result that exceeds these
/// limits is left out alone. A quarter of the memory of a response remains for its other members.
const RESULT: Limits = Limits {
    depth: 32,
    nodes: 1_000,
    scalar_bytes: 32 * 1024,
    tree_bytes: TREE_BYTES_MAX * 3 / 4 / RESULTS_MAX,
};

/// A peer with its state.
pub(super) struct Peer {
    address: PeerUrl,
    breaker: Mutex<Breaker>,
    places: Semaphore,
}

impl Peer {
    pub(super) fn new(address: PeerUrl) -> Self {
        Self { address, breaker: Mutex::default(), places: Semaphore::new(AT_ONCE_MAX) }
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn skipped(&self, why: Skip) -> PeerAnswer {
        self.answer(Outcome::Skipped(why), Duration::ZERO)
    }

    fn answer(&self, outcome: Outcome, took: Duration) -> PeerAnswer {
        metrics::peer(self.address.host(), outcome.as_str(), took);
        PeerAnswer { source: self.address.source().to_owned(), outcome, took }
    }

    /// Queries the peer unless it is skipped, and records whether it failed, for the next searches.
    pub(super) async fn ask(
        &self,
        egress: &Egress,
        question: &Question,
        reading: &Arc<Semaphore>,
        deadline: Instant,
    ) -> PeerAnswer {
        match self.breaker().admission(clock::now()) {
            Admission::Admitted => {}
            Admission::LeftOut => return self.skipped(Skip::LeftOut),
            Admission::Waits => return self.skipped(Skip::Waits),
        }
        let Ok(_place) = self.places.try_acquire() else { return self.skipped(Skip::Busy) };
        let (began, started) = (clock::now(), Instant::now());
        let asked = Box::pin(self.exchange(egress, question, deadline));
        let outcome = match timeout_at(deadline, asked).await {
            Ok(Ok(body)) => {
                let read = timeout_at(deadline, read(body, question.results_max, reading)).await;
                read.unwrap_or(Err(Fault::Own)).map_or_else(Outcome::Failed, Outcome::Answered)
            }
            Ok(Err(fault)) => Outcome::Failed(fault),
            Err(_) => Outcome::Late,
        };
        self.note(&outcome, began);
        self.answer(outcome, started.elapsed())
    }

    /// Records the outcome for the circuit breaker. A response that is too large and most statuses 4xx depend on the search, which a client
    /// chose. Neither they nor a failure of this machine count against the peer.
    fn note(&self, outcome: &Outcome, began: DateTime<Utc>) {
        let mut breaker = self.breaker();
        match outcome {
            Outcome::Answered(_) => breaker.answered(),
            Outcome::Skipped(_) | Outcome::Failed(Fault::Own | Fault::TooLarge) => {}
            Outcome::Failed(Fault::Status(status @ 400..=499)) if !matches!(status, 401 | 404 | 407) => {}
            Outcome::Late | Outcome::Failed(_) => breaker.failed(began, clock::now()),
        }
    }

    async fn exchange(&self, egress: &Egress, question: &Question, deadline: Instant) -> Result<Body, Fault> {
        let url = self.address.search();
        let session = egress.session(url.site());
        let asked = async {
            session.resolve(&url.host()).await?;
            let leave = LeaveCheck::new(move || Instant::now() < deadline);
            let message = (question.headers.clone(), question.body.clone());
            session.post_json(url, BodyKind::Results, message, leave).await
        };
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(failure) => {
                tracing::debug!(peer = %url, %failure, "a peer could not be queried");
                return Err(fault(&failure));
            }
        };
        self.obey_retry_after(&reply);
        body_of(reply)
    }

    /// A Retry-After counts with any status, as for crawling.
    fn obey_retry_after(&self, reply: &Reply) {
        let (status, headers) = (reply.head.status, &reply.head.headers);
        let outcome = FetchOutcome::of_response(status.as_u16(), headers);
        if let Some(asked) = RetryAfter::of_response(headers, outcome, clock::now()) {
            self.breaker().wait_until(asked.not_before());
        }
    }
}

/// Reads an answer off the runtime. A wait for other answers is no fault of the peer.
async fn read(body: Body, results_max: usize, reading: &Arc<Semaphore>) -> Result<Vec<ListedEntry>, Fault> {
    let permit = Arc::clone(reading).acquire_owned().await.map_err(|_| Fault::Own)?;
    let read = off_runtime(move || {
        let _permit = permit;
        read_results(&body.bytes, results_max)
    });
    read.await.map_err(|_| Fault::Own)?.ok_or(Fault::Content)
}

fn body_of(reply: Reply) -> Result<Body, Fault> {
    match reply.head.status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => Err(Fault::Busy),
        StatusCode::OK => reply.body.ok_or(Fault::Content),
        status => Err(Fault::Status(status.as_u16())),
    }
}

/// The results of a page that can be used. `None` if it is not a page of results.
fn read_results(bytes: &[u8], results_max: usize) -> Option<Vec<ListedEntry>> {
    let limits = PageLimits { entries: results_max.min(RESULTS_MAX), each: RESULT };
    let answer = parse_list_page(bytes, &["results"], &limits).ok()?;
    let results = answer.page.get("results")?.as_array()?;
    Some(results.iter().filter_map(ListedEntry::read).collect())
}

/// The reasons of failures that clients see, without addresses of the operator's network.
fn fault(failure: &Failure) -> Fault {
    match failure.cause {
        Cause::NameUnknown | Cause::NameServers | Cause::Address | Cause::OtherSite => Fault::Name,
        Cause::Connect | Cause::Timeout => Fault::Connection,
        Cause::Tls => Fault::Tls,
        Cause::TooLarge => Fault::TooLarge,
        Cause::Encoding | Cause::Protocol => Fault::Protocol,
        Cause::Busy | Cause::Late => Fault::Own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn answers_are_read_within_limits() {
        let entry = |number: usize| json!({"identifier": format!("urn:air:a.example:n{number}"), "url": "https://a.example/"});
        let many: Vec<Value> = (0..500).map(entry).collect();
        let read = |value: &Value| read_results(value.to_string().as_bytes(), 10);
        assert_eq!(read(&json!({"results": many})).unwrap().len(), 10);
        assert_eq!(read(&json!({"results": [1, null, {}, entry(1)]})).unwrap().len(), 1);
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let nested = json!({"identifier": "urn:air:a.example:deep", "url": "https://a.example/", "x": deep});
        assert_eq!(read(&json!({"results": [nested, entry(1)], "x": deep})).unwrap().len(), 1);
        assert!(read(&json!({"results": vec![json!([]); 60_000]})).unwrap().is_empty());
        for unusable in [json!([]), json!({"results": {}}), json!({})] {
            assert!(read(&unusable).is_none());
        }
        assert!(read_results(b"<html>", 10).is_none());
    }

    #[test]
    fn only_faults_of_the_peer_count() {
        let peer = Peer::new(PeerUrl::parse("https://b.example", manifest::SiteScope::Public).unwrap());
        let is_queried = || peer.breaker().admission(clock::now()) == Admission::Admitted;
        for _ in 0..10 {
            peer.note(&Outcome::Failed(Fault::Own), clock::now());
            peer.note(&Outcome::Failed(Fault::Status(400)), clock::now());
            peer.note(&Outcome::Failed(Fault::Status(413)), clock::now());
            peer.note(&Outcome::Failed(Fault::TooLarge), clock::now());
        }
        assert!(is_queried());
        for _ in 0..3 {
            peer.note(&Outcome::Late, clock::now());
        }
        assert!(!is_queried());
    }
}
