//! Pace: gaps, requests in flight, budgets, and Retry-After.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, UNIX_EPOCH},
};

use testweb::Hit;

use super::{
    Measure, Policy, Rule, Violation,
    history::is_main_host,
    robots::{Round, crawl_delay_at},
};

const DAY_US: u64 = 24 * 3_600 * 1_000_000;
/// Maximum Retry-After.
const RETRY_AFTER_MAX_US: u64 = 7 * DAY_US;

pub(super) fn check_authority(hits: &[&Hit], rounds: &[Round], policy: &Policy) -> Vec<Violation> {
    let mut violations = in_flight(hits, 1, Rule::InFlight, policy);
    violations.extend(gaps_after_answers(hits, rounds, policy));
    if let Some(budget) = policy.authority_budget {
        violations.extend(over_budget(hits, budget));
    }
    violations
}

pub(super) fn check_site(hits: &[&Hit], policy: &Policy) -> Vec<Violation> {
    let gap = policy.site_gap.map(|gap| gaps_between_starts(hits, gap, Rule::SiteGap));
    let flight = policy.site_in_flight_max.map(|max| in_flight(hits, max, Rule::SiteInFlight, policy));
    let budget = policy.site_budget.map(|budget| over_budget(hits, budget));
    gap.into_iter().chain(flight).chain(budget).flatten().chain(during_retry_after(hits)).collect()
}

pub(super) fn check_address(hits: &[&Hit], policy: &Policy) -> Vec<Violation> {
    let gap = policy.address_gap.map(|gap| gaps_between_starts(hits, gap, Rule::AddressGap));
    let flight = policy.address_in_flight_max.map(|max| in_flight(hits, max, Rule::AddressInFlight, policy));
    gap.into_iter().chain(flight).flatten().collect()
}

pub(super) fn check_suffix(hits: &[&Hit], policy: &Policy) -> Vec<Violation> {
    let rate = policy.suffix_gap.map(|gap| departures(hits, gap, policy.arrival_delay));
    let flight = policy.suffix_in_flight_max.map(|max| in_flight(hits, max, Rule::SuffixInFlight, policy));
    rate.into_iter().chain(flight).flatten().collect()
}

/// Checks gaps between sends: each request is due one gap after the time at which the previous one was due or arrived, whichever is later.
fn departures(hits: &[&Hit], gap: Duration, late: Duration) -> Vec<Violation> {
    let mut due_us: u64 = 0;
    let mut violations = Vec::new();
    let before = std::iter::once(None).chain(hits.iter().map(Some));
    for (first, second) in before.zip(hits) {
        let earliest_us = due_us.saturating_sub(micros(late));
        if let Some(first) = first
            && second.started_us < earliest_us
        {
            let since = |at_us: u64| Measure::us(at_us.saturating_sub(first.started_us));
            let (measured, required) = (since(second.started_us), since(earliest_us));
            violations.push(Violation::between(Rule::SuffixGap, first, second, measured, required));
        }
        due_us = due_us.max(second.started_us) + micros(gap);
    }
    violations
}

/// Checks the time from the end of each response to the start of the next request: at least the configured delay and the site's
/// Crawl-delay.
fn gaps_after_answers(hits: &[&Hit], rounds: &[Round], policy: &Policy) -> Vec<Violation> {
    let mut violations = Vec::new();
    for pair in hits.windows(2) {
        let &[first, second] = pair else { continue };
        let required_us = micros(policy.delay.max(crawl_delay_at(rounds, second.started_us)));
        // Another rule reports overlaps.
        let Some(gap_us) = second.started_us.checked_sub(policy.end_us(first)) else { continue };
        if gap_us < required_us {
            let (measured, required) = (Measure::us(gap_us), Measure::us(required_us));
            violations.push(Violation::between(Rule::AuthorityGap, first, second, measured, required));
        }
    }
    violations
}

fn gaps_between_starts(hits: &[&Hit], required: Duration, rule: Rule) -> Vec<Violation> {
    let required_us = micros(required);
    let mut violations = Vec::new();
    for pair in hits.windows(2) {
        let &[first, second] = pair else { continue };
        let gap_us = second.started_us - first.started_us;
        if gap_us < required_us {
            let (measured, required) = (Measure::us(gap_us), Measure::us(required_us));
            violations.push(Violation::between(rule, first, second, measured, required));
        }
    }
    violations
}

fn in_flight(hits: &[&Hit], max: usize, rule: Rule, policy: &Policy) -> Vec<Violation> {
    let mut open: Vec<&Hit> = Vec::new();
    let mut violations = Vec::new();
    for hit in hits {
        open.retain(|earlier| policy.end_us(earlier) > hit.started_us);
        open.push(hit);
        if open.len() > max {
            let (measured, required) = (Measure::Count(open.len()), Measure::Count(max));
            violations.push(Violation::between(rule, open[0], hit, measured, required));
        }
    }
    violations
}

fn over_budget(hits: &[&Hit], budget: usize) -> Vec<Violation> {
    let mut within: VecDeque<&Hit> = VecDeque::new();
    let mut violations = Vec::new();
    for hit in hits {
        while within.front().is_some_and(|first| hit.started_us - first.started_us >= DAY_US) {
            within.pop_front();
        }
        within.push_back(hit);
        if within.len() > budget {
            let (measured, required) = (Measure::Count(within.len()), Measure::Count(budget));
            violations.push(Violation::between(Rule::Budget, within[0], hit, measured, required));
        }
    }
    violations
}

/// After a response with Retry-After and any status, no request may be sent to its authority until that time is over. The delay of a main
/// host applies to all hosts of the site. Another host of the site may belong to a customer, so its delay applies to that host only.
fn during_retry_after(hits: &[&Hit]) -> Vec<Violation> {
    let until_us = |(refusal, silent_us): &(&Hit, u64)| refusal.ended_us.saturating_add(*silent_us);
    let mut asked: BTreeMap<&str, (&Hit, u64)> = BTreeMap::new();
    let mut violations = Vec::new();
    for hit in hits {
        let applies = |(host, _): &(&&str, &(&Hit, u64))| **host == hit.host || is_main_host(host);
        // the delay that ends last applies
        let delay = asked.iter().filter(applies).map(|(_, delay)| *delay).max_by_key(until_us);
        if let Some((refusal, silent_us)) = delay
            && hit.started_us < refusal.ended_us.saturating_add(silent_us)
        {
            let measured = Measure::us(hit.started_us.saturating_sub(refusal.ended_us));
            violations.push(Violation::between(
                Rule::RetryAfter,
                refusal,
                hit,
                measured,
                Measure::us(silent_us),
            ));
        }
        if let Some(silent_us) = retry_after_us(hit) {
            let later = (*hit, silent_us);
            let delay = asked.entry(&hit.host).or_insert(later);
            *delay = std::cmp::max_by_key(*delay, later, until_us);
        }
    }
    violations
}

/// The delay of Retry-After: seconds, or an HTTP date (RFC 9110 §10.2.3).
fn retry_after_us(hit: &Hit) -> Option<u64> {
    let value = hit.response.retry_after.as_deref()?.trim();
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let wait_us = if is_number {
        value.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000_000)
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        let sent_us = hit.wall_us + (hit.ended_us - hit.started_us);
        micros(date.duration_since(UNIX_EPOCH).ok()?).saturating_sub(sent_us)
    };
    Some(wait_us.min(RETRY_AFTER_MAX_US))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
