//! Checks whether a crawl was polite, from the log of the servers alone.
//!
//! Each rule is a function over the hits of one scope (an authority, a site, an address, a private suffix) in the order of their start. The
//! rules of the requested host apply, regardless of the redirect, link or list that led to the request. All times are the server's
//! monotonic clock in microseconds. The server finishes sending a response before the client has read it, and receives a request after the
//! client has sent it. Measured gaps are therefore never shorter than those of the client, except after a response that the client aborted
//! (see [`Policy::abort_delay_us`]).

mod cache;
mod history;
mod identity;
mod pace;
mod report;
mod robots;

use std::{collections::BTreeMap, time::Duration};

use testweb::Hit;

pub use report::{HitRef, Measure, Report, Rule, Violation};

/// The requirements on a crawl. The default applies to every configuration; tests add what they configured.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The configured delay: from the end of a response to the start of the next request on the same authority.
    pub delay: Duration,
    /// The gap between the starts of two requests to one site, over all its hosts.
    pub site_gap: Option<Duration>,
    /// The gap between the starts of two requests to one address.
    pub address_gap: Option<Duration>,
    /// Maximum requests in flight to one site.
    pub site_in_flight_max: Option<usize>,
    /// Maximum requests in flight to one address.
    pub address_in_flight_max: Option<usize>,
    /// The gap between requests to hosts below one private suffix of the Public Suffix List, over all workers.
    pub suffix_gap: Option<Duration>,
    /// Maximum requests in flight below one private suffix.
    pub suffix_in_flight_max: Option<usize>,
    /// Maximum requests to one authority in 24 hours.
    pub authority_budget: Option<usize>,
    /// Maximum requests to one site in 24 hours, over all its hosts.
    pub site_budget: Option<usize>,
    /// The configured `From` header, which every request must have.
    pub from: Option<String>,
    /// The start times of further passes, in microseconds of the log: each pass may request a path again.
    pub passes_began_us: Vec<u64>,
    /// Maximum number of repeated requests to an authority after kills of a crawler: one for each kill.
    pub repeats_allowed: usize,
    /// Maximum delay until the server detects that the client aborted a response.
    pub abort_delay_us: u64,
    /// Maximum delay of a request on its way to the server. If several may be in flight, the gap applies between sends, but the server sees
    /// arrivals: after a late arrival, the next ones appear too early.
    pub arrival_delay: Duration,
}

/// The server detects an aborted response at the next packet: within this time on the loopback interface of a busy machine.
const ABORT_DELAY_US: u64 = 50_000;
/// Time for a new connection with its handshake, on a busy machine.
const ARRIVAL_DELAY: Duration = Duration::from_millis(500);

impl Default for Policy {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            site_gap: None,
            address_gap: None,
            site_in_flight_max: None,
            address_in_flight_max: None,
            suffix_gap: None,
            suffix_in_flight_max: None,
            authority_budget: None,
            site_budget: None,
            from: None,
            passes_began_us: Vec::new(),
            repeats_allowed: 0,
            abort_delay_us: ABORT_DELAY_US,
            arrival_delay: ARRIVAL_DELAY,
        }
    }
}

impl Policy {
    /// The default with a delay.
    pub fn with_delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// The pass at a time.
    fn pass_at(&self, at_us: u64) -> usize {
        self.passes_began_us.iter().filter(|began_us| **began_us <= at_us).count()
    }

    /// The end of a response, as far as the server can detect it.
    fn end_us(&self, hit: &Hit) -> u64 {
        let abort_delay_us = if hit.complete { 0 } else { self.abort_delay_us };
        hit.ended_us.saturating_sub(abort_delay_us).max(hit.started_us)
    }
}

/// Checks every rule over a log.
pub fn check(hits: &[Hit], policy: &Policy) -> Report {
    let history = history::History::of(hits);
    let mut violations = Vec::new();
    for hit in &history.hits {
        violations.extend(identity::check(hit, policy));
    }
    for authority in history.authorities.values() {
        let rounds = robots::rounds(authority, &history);
        violations.extend(robots::check(authority, &rounds, &history));
        violations.extend(pace::check_authority(authority, &rounds, policy));
        violations.extend(cache::check(authority, policy, &history));
    }
    for site in history.sites.values() {
        violations.extend(pace::check_site(site, policy));
    }
    for address in history.addresses.values() {
        violations.extend(pace::check_address(address, policy));
    }
    for suffix in history.suffixes.values() {
        violations.extend(pace::check_suffix(suffix, policy));
    }
    violations.sort_by_key(|violation| violation.second.id);
    Report { requests: history.hits.len(), authorities: requests_by_authority(&history), violations }
}

fn requests_by_authority(history: &history::History<'_>) -> BTreeMap<String, usize> {
    history.authorities.iter().map(|(host, hits)| ((*host).to_owned(), hits.len())).collect()
}
