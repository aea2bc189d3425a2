//! When a site is visited next, and its status after a visit.
//!
//! Sites with manifests are visited at the rate at which they change, between once a day and once a month, and not before
//! their freshness ends. Sites without manifests are visited less and less often. Failures follow ladders. Retry-After is
//! always honoured.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::string_enum;

use crate::delay::next_day;
use crate::outcome::{Status, VisitEnd};
use crate::retry::{Ladder, RETRY_AFTER_DEFAULT, RETRY_AFTER_MAX, backoff, days};
use crate::spread::Seed;
use crate::time::{DAY, later, until};

/// Shortest interval between visits to a site with manifests.
const POSITIVE_MIN: Duration = DAY;
/// Longest interval between visits to a site with manifests.
const POSITIVE_MAX: Duration = days(30);
/// First interval between visits to a site without manifests.
const NEGATIVE_FIRST: Duration = days(14);
/// Longest interval between visits to a site without manifests.
const NEGATIVE_MAX: Duration = days(90);
/// The interval of a site without manifests varies by this much in both directions.
const NEGATIVE_SPREAD_PERCENT: u32 = 20;
/// Visits in a row without a DNS name after which a site counts as gone; these take at least 41 days.
const TOMBSTONE_AFTER: u32 = 5;
/// The first visits of listed sites are spread over this time.
const FIRST_VISIT_SPREAD_MS: u64 = 60_000;
/// Links from other sites bring the visit of a site forward at most once in this interval.
pub const HINT_INTERVAL: TimeDelta = TimeDelta::days(1);
/// Delay of the next visit of a site that opted out. The site is not leased while it is blocked.
const OPTED_OUT_WAIT: Duration = days(365);

string_enum! {
    /// Why the next visit is at its time.
    NextVisitReason, "next visit reason" {
        /// The rate at which its manifests change.
        ChangeRate = "change_rate",
        /// When the first of its manifests is no longer fresh.
        FreshUntil = "fresh_until",
        /// Nothing was found.
        Negative = "negative",
        /// Every path is answered with a page.
        CatchAll = "catch_all",
        /// The operator's `--revisit`.
        Revisit = "revisit",
        /// The name does not exist.
        DnsDead = "dns_dead",
        /// The network, the name servers or the server failed.
        Transport = "transport",
        /// robots.txt could not be read.
        RobotsUnreachable = "robots_unreachable",
        /// robots.txt forbids every planned path.
        RobotsDenied = "robots_denied",
        /// The site denies access.
        Blocked = "blocked",
        /// Retry-After of the site.
        RetryAfter = "retry_after",
        /// The daily budget is used up.
        OverBudget = "over_budget",
        /// The visit is resumed.
        Resumed = "resumed",
        /// The owner opted out.
        OptedOut = "opted_out",
    }
}

/// The time of the next visit, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextVisit {
    /// The earliest time.
    pub at: DateTime<Utc>,
    /// Why.
    pub reason: NextVisitReason,
}

/// Whether a site has manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holdings {
    /// At least one.
    Manifests,
    /// None.
    Nothing,
}

/// What the next visit depends on. Counts include the visit that has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteHistory {
    /// How the visit ended.
    pub end: VisitEnd,
    /// Whether the site has manifests, as known after the visit.
    pub holdings: Holdings,
    /// Visits that found the site's manifests.
    pub visits: u32,
    /// Visits among these that found a change.
    pub changes: u32,
    /// When the first of these visits was.
    pub first_visit_at: Option<DateTime<Utc>>,
    /// When the visit before this one was.
    pub previous_visit_at: Option<DateTime<Utc>>,
    /// Failed visits in a row.
    pub failures_in_row: u32,
    /// Visits in a row that found nothing.
    pub negatives_in_row: u32,
    /// When the first of the site's answers is no longer fresh.
    pub fresh_until: Option<DateTime<Utc>>,
    /// The time given by Retry-After.
    pub not_before: Option<DateTime<Utc>>,
}

impl SiteHistory {
    /// A first visit with this end.
    pub const fn first(end: VisitEnd, holdings: Holdings) -> Self {
        Self {
            end,
            holdings,
            visits: 1,
            changes: 0,
            first_visit_at: None,
            previous_visit_at: None,
            failures_in_row: 0,
            negatives_in_row: 0,
            fresh_until: None,
            not_before: None,
        }
    }
}

/// Decides when the site is visited next. `revisit` is the operator's own interval for sites that answer; `seed` is the
/// site's.
pub fn next_visit(
    history: &SiteHistory,
    revisit: Option<Duration>,
    seed: Seed,
    now: DateTime<Utc>,
) -> NextVisit {
    use NextVisitReason as Reason;
    let climb = |ladder: Ladder| later(now, ladder.wait(history.failures_in_row));
    let (at, reason) = match history.end {
        VisitEnd::Completed | VisitEnd::NothingNew => return answered(history, revisit, seed, now),
        VisitEnd::CatchAll => (negative(history, seed, now), Reason::CatchAll),
        VisitEnd::RobotsDenied => (negative(history, seed, now), Reason::RobotsDenied),
        VisitEnd::Blocked => (negative(history, seed, now), Reason::Blocked),
        VisitEnd::RobotsUnreachable => (climb(Ladder::ROBOTS), Reason::RobotsUnreachable),
        VisitEnd::DnsDead => (climb(Ladder::DNS_DEAD), Reason::DnsDead),
        VisitEnd::DnsFailed
        | VisitEnd::Unreachable
        | VisitEnd::TlsFailed
        | VisitEnd::AddressRefused
        | VisitEnd::ServerErrors
        | VisitEnd::TransportErrors
        | VisitEnd::OutOfTime => (climb(Ladder::TRANSPORT), Reason::Transport),
        VisitEnd::RateLimited => (rate_limited(history, now), Reason::RetryAfter),
        VisitEnd::OverBudget => (next_day(now), Reason::OverBudget),
        VisitEnd::Parked | VisitEnd::Interrupted | VisitEnd::LeaseLost => (now, Reason::Resumed),
        VisitEnd::OptedOut => (later(now, OPTED_OUT_WAIT), Reason::OptedOut),
    };
    not_before(history, NextVisit { at, reason })
}

/// A site that answered: by the operator's interval, by its rate of change, or as one with nothing.
fn answered(history: &SiteHistory, revisit: Option<Duration>, seed: Seed, now: DateTime<Utc>) -> NextVisit {
    if let Some(interval) = revisit {
        return not_before(history, NextVisit { at: later(now, interval), reason: NextVisitReason::Revisit });
    }
    let next = match history.holdings {
        Holdings::Nothing => {
            NextVisit { at: negative(history, seed, now), reason: NextVisitReason::Negative }
        }
        Holdings::Manifests => {
            NextVisit { at: later(now, change_interval(history, now)), reason: NextVisitReason::ChangeRate }
        }
    };
    let next = match history.fresh_until {
        Some(at) if at > next.at => NextVisit { at, reason: NextVisitReason::FreshUntil },
        _ => next,
    };
    not_before(history, next)
}

fn not_before(history: &SiteHistory, next: NextVisit) -> NextVisit {
    match history.not_before {
        Some(at) if at > next.at => NextVisit { at, reason: NextVisitReason::RetryAfter },
        _ => next,
    }
}

fn negative(history: &SiteHistory, seed: Seed, now: DateTime<Utc>) -> DateTime<Utc> {
    let base = backoff(NEGATIVE_FIRST, history.negatives_in_row, NEGATIVE_MAX);
    let least = base * (100 - NEGATIVE_SPREAD_PERCENT) / 100;
    let turn = seed.turn(u64::from(history.negatives_in_row));
    later(now, least + turn.share_of(base, 2 * NEGATIVE_SPREAD_PERCENT))
}

/// As long as Retry-After asked for, to the second; a site that goes on asking is given more.
fn rate_limited(history: &SiteHistory, now: DateTime<Utc>) -> DateTime<Utc> {
    let asked = history.not_before.unwrap_or_else(|| later(now, RETRY_AFTER_DEFAULT));
    match history.failures_in_row.checked_sub(1) {
        None | Some(0) => asked.max(now),
        Some(repeats) => asked.max(later(now, backoff(RETRY_AFTER_DEFAULT, repeats, RETRY_AFTER_MAX))),
    }
}

/// The expected time between two changes, by Cho and Garcia-Molina's bias-reduced estimate for polling: with X changes
/// seen in n looks an interval I apart, the rate is −ln((n − X + 0.5) / (n + 0.5)) / I. Where too little was seen to
/// say, the interval grows to twice the last one at most.
fn change_interval(history: &SiteHistory, now: DateTime<Utc>) -> Duration {
    let looks = history.visits.saturating_sub(1);
    let (Some(first), Some(previous)) = (history.first_visit_at, history.previous_visit_at) else {
        return POSITIVE_MIN;
    };
    if looks == 0 {
        return POSITIVE_MIN;
    }
    let interval_s = until(first, now).as_secs_f64() / f64::from(looks);
    let unchanged = f64::from(looks - history.changes.min(looks)) + 0.5;
    let rate = -(unchanged / (f64::from(looks) + 0.5)).ln() / interval_s.max(1.0);
    let expected = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(POSITIVE_MAX);
    let doubled = until(previous, now).saturating_mul(2);
    expected.min(doubled).clamp(POSITIVE_MIN, POSITIVE_MAX)
}

/// How a site stands after a visit; `before` stays where the visit says nothing about it.
pub fn status_after(history: &SiteHistory, before: Status) -> Status {
    match history.end {
        VisitEnd::Completed | VisitEnd::NothingNew => Status::Fresh,
        VisitEnd::CatchAll => Status::CatchAll,
        VisitEnd::RobotsDenied | VisitEnd::Blocked => Status::Denied,
        VisitEnd::DnsDead if history.failures_in_row >= TOMBSTONE_AFTER => Status::Gone,
        VisitEnd::DnsDead
        | VisitEnd::DnsFailed
        | VisitEnd::Unreachable
        | VisitEnd::TlsFailed
        | VisitEnd::AddressRefused
        | VisitEnd::RobotsUnreachable
        | VisitEnd::ServerErrors
        | VisitEnd::TransportErrors => Status::Unreachable,
        VisitEnd::OptedOut => Status::OptedOut,
        VisitEnd::RateLimited | VisitEnd::OutOfTime => match before {
            Status::Fresh => Status::Stale,
            other => other,
        },
        VisitEnd::OverBudget | VisitEnd::Parked | VisitEnd::Interrupted | VisitEnd::LeaseLost => before,
    }
}

/// When the first visit of a listed site is due: at once, but in an order of its own. Lists are sorted, and neighbours in
/// them are often neighbours at one hoster; the seed of the name spreads them over the minute before now.
pub fn first_visit_at(site: Seed, now: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = TimeDelta::milliseconds(i64::try_from(site.below(FIRST_VISIT_SPREAD_MS)).unwrap_or(0));
    now.checked_sub_signed(ahead).unwrap_or(now)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
