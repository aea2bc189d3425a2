//! Decides when a visit ends early.
//!
//! A state machine without I/O. It receives the outcome of each request and decides whether the visit continues. It is stored with a parked
//! visit. A 429 or 503, an unreachable host, or a robots.txt that forbids everything ends the visit immediately.

use std::time::Duration;

use manifest::{ContentHash, Host};
use serde::{Deserialize, Serialize};

use crate::outcome::{BLOCKS_MAX, FetchOutcome, RobotsKind, VisitEnd};
use crate::plan::BodyKind;
use crate::robots::{RobotsDecision, RobotsVerdict};

/// Maximum wall time of a visit, without the time for which it is parked.
const VISIT_WALL_MAX: Duration = Duration::from_mins(2);
/// Number of server errors after which the visit ends.
const SERVER_ERRORS_MAX: u32 = 2;
/// Number of transport errors in a row after which the visit ends.
const TRANSPORT_ERRORS_MAX: u32 = 2;
/// Number of paths answered with a page after which the host counts as a catch-all.
pub const PAGES_MAX: usize = 2;
/// Number of paths with the same document after which a path that should not exist is requested. Two are common, because many hosts publish
/// the same card at the old and the new path.
const SAME_DOCUMENT_MAX: usize = 3;

/// The next step of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// The next path of the plan.
    Continue,
    /// Request the canary path, and pass its outcome to [`VisitRules::observe_canary`].
    RequestCanary,
    /// End the visit.
    Stop(VisitEnd),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Canary {
    #[default]
    #[serde(rename = "not_asked")]
    NotRequested,
    #[serde(rename = "asked")]
    Requested,
    /// The outcome was recorded, and the host does not answer every path.
    #[serde(rename = "quiet")]
    Passed,
}

/// The state of the rules for one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitRules {
    blocks: u32,
    server_errors: u32,
    transport_errors_in_row: u32,
    pages: usize,
    documents: Vec<ContentHash>,
    canary: Canary,
}

impl VisitRules {
    /// The state at the start of a visit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records robots.txt. Stops the visit if access to it is denied, it is unreachable, or it forbids every planned path.
    /// `planned` contains its decisions on these paths.
    pub fn observe_robots(&self, verdict: &RobotsVerdict, planned: &[RobotsDecision]) -> NextStep {
        let stop = match verdict.kind() {
            RobotsKind::NoFile => false,
            RobotsKind::Denied | RobotsKind::Unreachable => true,
            RobotsKind::Rules => !planned.is_empty() && planned.iter().all(|decision| !decision.is_allowed()),
        };
        if stop { NextStep::Stop(verdict.visit_end()) } else { NextStep::Continue }
    }

    /// Records the outcome of a request. `document` is the hash of the document, if one was found.
    pub fn observe(
        &mut self,
        outcome: FetchOutcome,
        body: BodyKind,
        document: Option<&ContentHash>,
    ) -> NextStep {
        if outcome.is_response() {
            self.transport_errors_in_row = 0;
        }
        match outcome {
            FetchOutcome::RateLimited => NextStep::Stop(VisitEnd::RateLimited),
            FetchOutcome::DnsFailed => NextStep::Stop(VisitEnd::DnsFailed),
            FetchOutcome::ConnectFailed => NextStep::Stop(VisitEnd::Unreachable),
            FetchOutcome::TlsFailed => NextStep::Stop(VisitEnd::TlsFailed),
            FetchOutcome::AddressRefused => NextStep::Stop(VisitEnd::AddressRefused),
            FetchOutcome::OverBudget => NextStep::Stop(VisitEnd::OverBudget),
            FetchOutcome::RobotsUnreachable => NextStep::Stop(VisitEnd::RobotsUnreachable),
            FetchOutcome::Blocked => count(&mut self.blocks, BLOCKS_MAX, VisitEnd::Blocked),
            FetchOutcome::ServerError => {
                count(&mut self.server_errors, SERVER_ERRORS_MAX, VisitEnd::ServerErrors)
            }
            FetchOutcome::Timeout | FetchOutcome::ProtocolError => {
                count(&mut self.transport_errors_in_row, TRANSPORT_ERRORS_MAX, VisitEnd::TransportErrors)
            }
            FetchOutcome::Html if body != BodyKind::Homepage => self.observe_page(),
            FetchOutcome::Found => self.observe_document(document),
            _ => NextStep::Continue,
        }
    }

    /// Counts a page. Several pages end the visit, unless the host has served manifests. Such a host may serve a page for missing paths.
    fn observe_page(&mut self) -> NextStep {
        self.pages = self.pages.saturating_add(1);
        let is_catch_all = self.pages >= PAGES_MAX && self.documents.is_empty();
        if is_catch_all { NextStep::Stop(VisitEnd::CatchAll) } else { NextStep::Continue }
    }

    fn observe_document(&mut self, document: Option<&ContentHash>) -> NextStep {
        let Some(document) = document else { return NextStep::Continue };
        self.documents.push(document.clone());
        let same = self.documents.iter().filter(|seen| *seen == document).count();
        if same >= SAME_DOCUMENT_MAX && self.canary == Canary::NotRequested {
            self.canary = Canary::Requested;
            return NextStep::RequestCanary;
        }
        NextStep::Continue
    }

    /// Records the outcome of the canary path. A host that serves a document there answers every path, so its visit stops.
    pub fn observe_canary(&mut self, outcome: FetchOutcome) -> NextStep {
        self.canary = Canary::Passed;
        match outcome {
            FetchOutcome::Found | FetchOutcome::Html | FetchOutcome::NotAManifest => {
                NextStep::Stop(VisitEnd::CatchAll)
            }
            other => self.observe(other, BodyKind::Other, None),
        }
    }

    /// Stops the visit when `active`, its duration without parking, reaches the maximum.
    pub fn observe_time(&self, active: Duration) -> NextStep {
        if active >= VISIT_WALL_MAX { NextStep::Stop(VisitEnd::OutOfTime) } else { NextStep::Continue }
    }
}

/// The host whose failure explains how a visit ended: that of the first fetch that can end a visit in this way, otherwise of the first fetch
/// that failed. `None` if no fetch failed: each found a document, showed that there is none, or was not tried.
pub fn failed_host(end: VisitEnd, fetches: impl IntoIterator<Item = (Host, FetchOutcome)>) -> Option<Host> {
    let mut first_failed = None;
    for (host, outcome) in fetches {
        if is_cause(outcome, end) {
            return Some(host);
        }
        if !(outcome.is_present() || outcome.is_absent() || outcome == FetchOutcome::NotReached) {
            first_failed.get_or_insert(host);
        }
    }
    first_failed
}

/// Whether a fetch with this outcome can end a visit in this way.
const fn is_cause(outcome: FetchOutcome, end: VisitEnd) -> bool {
    use {FetchOutcome as Outcome, VisitEnd as End};
    matches!(
        (outcome, end),
        (Outcome::DnsFailed, End::DnsDead | End::DnsFailed)
            | (Outcome::ConnectFailed, End::Unreachable)
            | (Outcome::TlsFailed, End::TlsFailed)
            | (Outcome::AddressRefused, End::AddressRefused)
            | (Outcome::RobotsUnreachable, End::RobotsUnreachable)
            | (Outcome::RobotsDenied, End::RobotsDenied)
            | (Outcome::RateLimited, End::RateLimited)
            | (Outcome::Blocked, End::Blocked)
            | (Outcome::ServerError, End::ServerErrors)
            | (Outcome::Timeout | Outcome::ProtocolError, End::TransportErrors)
            | (Outcome::OverBudget, End::OverBudget)
    )
}

fn count(counter: &mut u32, limit: u32, end: VisitEnd) -> NextStep {
    *counter = counter.saturating_add(1);
    if *counter >= limit { NextStep::Stop(end) } else { NextStep::Continue }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::robots::{PRODUCT_TOKEN, RobotsResponse};

    /// The end of a visit with a series of outcomes, and the number of requests before it.
    fn run(outcomes: &[FetchOutcome]) -> Option<(usize, VisitEnd)> {
        let mut rules = VisitRules::new();
        outcomes.iter().enumerate().find_map(|(index, outcome)| {
            match rules.observe(*outcome, BodyKind::Manifest, None) {
                NextStep::Stop(end) => Some((index + 1, end)),
                _ => None,
            }
        })
    }

    #[test]
    fn outcomes_end_a_visit_at_their_limits() {
        use FetchOutcome as O;
        type Row<'a> = (&'a [FetchOutcome], Option<(usize, VisitEnd)>);
        let table: [Row<'_>; 14] = [
            (&[O::NotFound; 18], None),
            (&[O::NotFound, O::RateLimited], Some((2, VisitEnd::RateLimited))),
            (&[O::TlsFailed], Some((1, VisitEnd::TlsFailed))),
            (&[O::ConnectFailed], Some((1, VisitEnd::Unreachable))),
            (&[O::DnsFailed], Some((1, VisitEnd::DnsFailed))),
            (&[O::AddressRefused], Some((1, VisitEnd::AddressRefused))),
            (&[O::Timeout, O::NotFound, O::Timeout, O::NotFound], None),
            (&[O::Timeout, O::ProtocolError], Some((2, VisitEnd::TransportErrors))),
            (&[O::ServerError, O::NotFound, O::ServerError], Some((3, VisitEnd::ServerErrors))),
            (&[O::Blocked, O::NotFound, O::Blocked, O::Blocked], Some((4, VisitEnd::Blocked))),
            (&[O::Html, O::NotFound, O::Html], Some((3, VisitEnd::CatchAll))),
            (&[O::RobotsDenied, O::RobotsDenied, O::RobotsDenied], None),
            (&[O::OverBudget], Some((1, VisitEnd::OverBudget))),
            (&[O::TooLarge, O::BadEncoding, O::RedirectRefused, O::RedirectedAway], None),
        ];
        for (outcomes, expected) in table {
            assert_eq!(run(outcomes), expected, "{outcomes:?}");
        }
    }

    #[test]
    fn ignores_pages_after_a_manifest_and_on_the_homepage() {
        let mut rules = VisitRules::new();
        let document = ContentHash::of(b"{}");
        assert_eq!(
            rules.observe(FetchOutcome::Found, BodyKind::Manifest, Some(&document)),
            NextStep::Continue
        );
        for _ in 0..5 {
            assert_eq!(rules.observe(FetchOutcome::Html, BodyKind::Manifest, None), NextStep::Continue);
        }
        let mut rules = VisitRules::new();
        for _ in 0..5 {
            assert_eq!(rules.observe(FetchOutcome::Html, BodyKind::Homepage, None), NextStep::Continue);
        }
    }

    #[test]
    fn requests_the_canary_once_if_documents_are_equal() {
        let document = ContentHash::of(b"{\"name\":\"x\"}");
        let mut rules = VisitRules::new();
        let mut found = || rules.observe(FetchOutcome::Found, BodyKind::Manifest, Some(&document));
        assert_eq!(
            [found(), found(), found()],
            [NextStep::Continue, NextStep::Continue, NextStep::RequestCanary]
        );
        let mut catch_all = rules.clone();
        assert_eq!(catch_all.observe_canary(FetchOutcome::Found), NextStep::Stop(VisitEnd::CatchAll));
        assert_eq!(rules.observe_canary(FetchOutcome::NotFound), NextStep::Continue);
        let again = rules.observe(FetchOutcome::Found, BodyKind::Manifest, Some(&document));
        assert_eq!(again, NextStep::Continue);
    }

    #[test]
    fn robots_ends_a_visit_only_if_it_forbids_every_path() {
        let verdict = |status, body: &str| {
            RobotsVerdict::of(RobotsResponse::Answered { status, body: Some(body.as_bytes()) }, PRODUCT_TOKEN)
        };
        let step = |verdict: &RobotsVerdict| {
            let planned = ["/agent.json", "/"].map(|path| verdict.decide(path));
            VisitRules::new().observe_robots(verdict, &planned)
        };
        let table = [
            (404, "", NextStep::Continue),
            (200, "user-agent: *\ndisallow: /agent.json", NextStep::Continue),
            (200, "user-agent: *\ndisallow: /", NextStep::Stop(VisitEnd::RobotsDenied)),
            (403, "", NextStep::Stop(VisitEnd::RobotsDenied)),
            (500, "", NextStep::Stop(VisitEnd::RobotsUnreachable)),
            (429, "", NextStep::Stop(VisitEnd::RateLimited)),
        ];
        for (status, body, expected) in table {
            assert_eq!(step(&verdict(status, body)), expected, "{status} {body}");
        }
        let failed = RobotsVerdict::of(RobotsResponse::Failed(FetchOutcome::TlsFailed), PRODUCT_TOKEN);
        assert_eq!(step(&failed), NextStep::Stop(VisitEnd::TlsFailed));
    }

    #[test]
    fn a_visit_has_two_minutes_and_survives_storage() {
        let mut rules = VisitRules::new();
        assert_eq!(rules.observe_time(Duration::from_secs(119)), NextStep::Continue);
        assert_eq!(rules.observe_time(VISIT_WALL_MAX), NextStep::Stop(VisitEnd::OutOfTime));
        rules.observe(FetchOutcome::ServerError, BodyKind::Manifest, None);
        let json = serde_json::to_string(&rules).unwrap();
        let mut back: VisitRules = serde_json::from_str(&json).unwrap();
        assert_eq!(back, rules);
        let step = back.observe(FetchOutcome::ServerError, BodyKind::Manifest, None);
        assert_eq!(step, NextStep::Stop(VisitEnd::ServerErrors));
    }

    proptest! {
        /// A site that fails in any way gets few further requests.
        #[test]
        fn failures_end_a_visit_after_few_requests(picks in proptest::collection::vec(0_usize..4, 10..30)) {
            let failures = [FetchOutcome::Blocked, FetchOutcome::ServerError, FetchOutcome::Timeout, FetchOutcome::Html];
            let outcomes: Vec<_> = picks.iter().filter_map(|pick| failures.get(*pick).copied()).collect();
            let end = run(&outcomes);
            // in the worst case, each outcome below its limit (2 denials, 1 error, 1 page) comes between two timeouts
            prop_assert!(end.is_some_and(|(count, _)| count <= 2 * (2 + 1 + 1) + 2), "{:?}", end);
        }
    }
}
