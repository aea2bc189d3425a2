//! Was a crawl polite? Judged from what the servers saw, never from what the crawler says about itself.
//!
//! Each rule is a function over the hits of one scope (an authority, a site, an address, a private suffix) in the order in which they
//! began. Every request is judged by the rules of the host that received it, whoever led there: by redirects, links or lists. All times are the server's monotonic microseconds. An answer ends for the server before the client has read
//! it, and a request begins for the server after the client has sent it, so that measured gaps are never shorter than
//! those that the client kept, except after an answer that the client broke off (see [`Policy::broken_off_us`]).

mod cache;
mod history;
mod identity;
mod pace;
mod report;
mod robots;

use std::{collections::BTreeMap, time::Duration};

use testweb::Hit;

pub use report::{HitRef, Measure, Report, Rule, Violation};

/// What is demanded of a crawl. The default is what any configuration must keep; tests add what they configured.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The configured delay: from the end of an answer to the start of the next request on the same authority.
    pub delay: Duration,
    /// The gap between the starts of two requests to one site, over all its hosts.
    pub site_gap: Option<Duration>,
    /// The gap between the starts of two requests to one address.
    pub address_gap: Option<Duration>,
    /// How many requests may be in flight to one site.
    pub site_in_flight_max: Option<usize>,
    /// How many requests may be in flight to one address.
    pub address_in_flight_max: Option<usize>,
    /// The gap between requests to hosts below one private suffix of the Public Suffix List, from whichever worker.
    pub suffix_gap: Option<Duration>,
    /// How many requests may be in flight below one private suffix.
    pub suffix_in_flight_max: Option<usize>,
    /// How many requests one authority may get in 24 hours.
    pub authority_budget: Option<usize>,
    /// How many requests one site may get in 24 hours, over all its hosts.
    pub site_budget: Option<usize>,
    /// The `From` header that was configured, which then every request carries.
    pub from: Option<String>,
    /// When further passes began, in the log's microseconds: a path may be asked for again in each.
    pub passes_began_us: Vec<u64>,
    /// How many repeated requests an authority may get because a crawler was killed: at most one for each kill.
    pub repeats_forgiven: usize,
    /// How late the server may notice that the client has broken off an answer.
    pub broken_off_us: u64,
    /// How late a request may reach the server after it left. Where several may be in flight, their gap is one between
    /// departures, and the server sees arrivals: one that is late by this much makes the next ones seem early.
    pub arrives_late: Duration,
}

/// The server learns of a broken-off answer by the next packet; on loopback of a busy machine that is within this.
const BROKEN_OFF_US: u64 = 50_000;
/// A new connection with its handshake, on a busy machine.
const ARRIVES_LATE: Duration = Duration::from_millis(500);

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
            repeats_forgiven: 0,
            broken_off_us: BROKEN_OFF_US,
            arrives_late: ARRIVES_LATE,
        }
    }
}

impl Policy {
    /// The default with a delay.
    pub fn with_delay(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// The pass that a moment belongs to.
    fn pass_at(&self, at_us: u64) -> usize {
        self.passes_began_us.iter().filter(|began_us| **began_us <= at_us).count()
    }

    /// When an answer was over, as far as the server can tell.
    fn over_us(&self, hit: &Hit) -> u64 {
        let noticed_late_us = if hit.complete { 0 } else { self.broken_off_us };
        hit.ended_us.saturating_sub(noticed_late_us).max(hit.started_us)
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
