//! Determines when a site is visited next, and its status after a visit.
//!
//! Sites with manifests are visited as often as their manifests change, between once a day and once a month, but not before their freshness
//! ends. The intervals of sites without manifests grow. Delays after failures are those of the ladders in [`crate::retry`]. Retry-After is
//! always honoured.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::string_enum;

use crate::delay::{Network, next_day};
use crate::outcome::{Status, VisitEnd};
use crate::retry::{Ladder, RETRY_AFTER_DEFAULT, RETRY_AFTER_MAX, backoff, days};
use crate::spread::Seed;
use crate::time::{DAY, later, until};

/// Shortest interval between visits to a site with manifests.
const POSITIVE_MIN: Duration = DAY;
/// Minimum interval that an operator can set for sites outside its own networks. It is also the minimum for sites with manifests.
pub const REVISIT_EVERY_FLOOR: Duration = POSITIVE_MIN;
/// Longest interval between visits to a site with manifests.
const POSITIVE_MAX: Duration = days(30);
/// First interval between visits to a site without manifests.
const NEGATIVE_FIRST: Duration = days(14);
/// Longest interval between visits to a site without manifests.
const NEGATIVE_MAX: Duration = days(90);
/// The interval of a site without manifests varies by this much in both directions.
const NEGATIVE_SPREAD_PERCENT: u32 = 20;
/// Number of visits in a row without a DNS name after which a site counts as gone. They span at least 41 days.
const TOMBSTONE_AFTER: u32 = 5;
/// The first visits of listed sites are spread over this time.
const FIRST_VISIT_SPREAD_MS: u64 = 60_000;
/// Links from other sites advance the next visit to a site at most once in this interval.
pub const HINT_INTERVAL: TimeDelta = TimeDelta::days(1);
/// Maximum delay of a third-party host after which a visit is planned for the end of the delay: a day with its jitter. It is below the 48
/// hours for which a copy of robots.txt may be used.
const SKIPPED_HOST_DELAY_MAX: TimeDelta = TimeDelta::hours(30);
/// Maximum time by which a visit that waits for a third-party host's delay may be later than usual.
const POSTPONED_MAX: TimeDelta = TimeDelta::hours(6);
/// Delay of the next visit of a site that opted out. The site is not leased while it is blocked.
const OPTED_OUT_WAIT: Duration = days(365);

string_enum! {
    /// The reason for the time of the next visit.
    NextVisitReason, "next visit reason" {
        /// The rate at which its manifests change.
        ChangeRate = "change_rate",
        /// The end of the freshness of its first manifest, or of a part of one.
        FreshUntil = "fresh_until",
        /// Nothing was found.
        Negative = "negative",
        /// Every path is answered with a page.
        CatchAll = "catch_all",
        /// The operator's `--revisit-every`.
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
        /// The site owner opted out.
        OptedOut = "opted_out",
        /// The proof of the site's owner must be checked.
        OwnersProof = "owners_proof",
        /// A key that verified a signature expires.
        KeyExpiry = "key_expiry",
        /// It was requested while the last one was in progress.
        Requested = "requested",
        /// The end of the delay of a host at which the last visit requested only robots.txt.
        Rest = "rest",
    }
}

/// The time of the next visit, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextVisit {
    pub at: DateTime<Utc>,
    pub reason: NextVisitReason,
}

/// Whether a site has manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManifestPresence {
    Present,
    Absent,
}

/// The history from which the next visit is planned. Counts include the visit that has just ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteHistory {
    pub end: VisitEnd,
    /// Whether the site has manifests after the visit.
    pub manifest_presence: ManifestPresence,
    /// Visits that found the site's manifests.
    pub visits: u32,
    /// Visits among these that found a change.
    pub changes: u32,
    /// Time of the first of these visits.
    pub first_visit_at: Option<DateTime<Utc>>,
    /// Time of the previous visit.
    pub previous_visit_at: Option<DateTime<Utc>>,
    /// Failed visits in a row.
    pub failures_in_row: u32,
    /// Visits in a row that found nothing.
    pub negatives_in_row: u32,
    /// End of the freshness of the site's first response.
    pub fresh_until: Option<DateTime<Utc>>,
    /// The time given by Retry-After.
    pub not_before: Option<DateTime<Utc>>,
}

impl SiteHistory {
    /// A first visit with this end.
    pub const fn first(end: VisitEnd, manifest_presence: ManifestPresence) -> Self {
        Self {
            end,
            manifest_presence,
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

/// The operator's own interval between visits, as it applies to a site. Sites outside the operator's networks are visited at most once a
/// day.
pub fn revisit_every(configured: Option<Duration>, network: Network) -> Option<Duration> {
    configured.map(|interval| match network {
        Network::Global => interval.max(REVISIT_EVERY_FLOOR),
        Network::Own => interval,
    })
}

/// Determines when the site is visited next. `revisit_every` is the operator's own interval for sites that respond. `seed` is the seed of
/// the site's name.
pub fn next_visit(
    history: &SiteHistory,
    revisit_every: Option<Duration>,
    seed: Seed,
    now: DateTime<Utc>,
) -> NextVisit {
    use NextVisitReason as Reason;
    let step = |ladder: Ladder| later(now, ladder.wait(history.failures_in_row));
    let (at, reason) = match history.end {
        VisitEnd::Completed | VisitEnd::NothingNew => {
            return after_response(history, revisit_every, seed, now);
        }
        VisitEnd::CatchAll => (negative(history, seed, now), Reason::CatchAll),
        VisitEnd::RobotsDenied => (negative(history, seed, now), Reason::RobotsDenied),
        VisitEnd::Blocked => (negative(history, seed, now), Reason::Blocked),
        VisitEnd::RobotsUnreachable => (step(Ladder::ROBOTS), Reason::RobotsUnreachable),
        VisitEnd::DnsDead => (step(Ladder::DNS_DEAD), Reason::DnsDead),
        VisitEnd::DnsFailed
        | VisitEnd::Unreachable
        | VisitEnd::TlsFailed
        | VisitEnd::AddressRefused
        | VisitEnd::ServerErrors
        | VisitEnd::TransportErrors
        | VisitEnd::OutOfTime => (step(Ladder::TRANSPORT), Reason::Transport),
        VisitEnd::RateLimited => (rate_limited(history, now), Reason::RetryAfter),
        VisitEnd::OverBudget => (next_day(now), Reason::OverBudget),
        VisitEnd::Parked | VisitEnd::Interrupted | VisitEnd::LeaseLost => (now, Reason::Resumed),
        VisitEnd::OptedOut => (later(now, OPTED_OUT_WAIT), Reason::OptedOut),
    };
    not_before(history, NextVisit { at, reason })
}

/// Determines the next visit after one without a request, which a stored robots.txt ended. The time is counted from the request for
/// this copy, so that any number of such visits does not postpone the next request. It is not before the copy expires. `copy` has the
/// times at which the copy was fetched and expires.
pub fn after_stored_robots(
    history: &SiteHistory,
    seed: Seed,
    copy: (DateTime<Utc>, DateTime<Utc>),
    now: DateTime<Utc>,
) -> NextVisit {
    let (fetched_at, expires_at) = copy;
    let next = next_visit(history, None, seed, fetched_at.min(now));
    NextVisit { at: next.at.max(expires_at), ..next }
}

/// Postpones the next visit until the robots.txt that ended the last one is requested again. A visit before this would send no request.
#[must_use]
pub fn after_unread_robots(next: NextVisit, requested_again_at: Option<DateTime<Utc>>) -> NextVisit {
    NextVisit { at: requested_again_at.map_or(next.at, |at| next.at.max(at)), ..next }
}

/// Advances the next visit if it must look for the proof of the site's owner ([`Claim::next_check_by`]) or check an expired key, but to at
/// most one visit a day. The visit is not advanced if the site asked for a delay or opted out, or if its name does not exist.
///
/// [`Claim::next_check_by`]: crate::claim::Claim::next_check_by
pub fn with_check_by(
    next: NextVisit,
    check_by: Option<DateTime<Utc>>,
    reason: NextVisitReason,
    history: &SiteHistory,
    now: DateTime<Utc>,
) -> NextVisit {
    use NextVisitReason as Reason;
    let is_kept = matches!(next.reason, Reason::RetryAfter | Reason::OptedOut | Reason::DnsDead);
    let Some(by) = check_by.filter(|_| !is_kept) else { return next };
    let at = by.max(later(now, POSITIVE_MIN));
    let at = history.not_before.map_or(at, |not_before| at.max(not_before));
    if at < next.at { NextVisit { at, reason } } else { next }
}

/// Adjusts the next visit after one that requested only robots.txt at a third-party host and left the host because of its delay, which ends
/// at `from`. The copy of robots.txt may be used for one request if the next visit begins soon after the delay, and at least a day after
/// the last visit. Without this, each visit would request only robots.txt at this host. The visit is delayed by at most six hours. Visits
/// after failures are not changed.
pub fn after_skipped_hosts(
    next: NextVisit,
    from: Option<DateTime<Utc>>,
    history: &SiteHistory,
    now: DateTime<Utc>,
) -> NextVisit {
    use NextVisitReason as Reason;
    let may_move =
        matches!(next.reason, Reason::ChangeRate | Reason::FreshUntil | Reason::Negative | Reason::Revisit);
    let Some(from) = from.filter(|from| may_move && *from <= now + SKIPPED_HOST_DELAY_MAX) else {
        return next;
    };
    let at = from.max(later(now, POSITIVE_MIN).min(next.at));
    let at = history.not_before.map_or(at, |not_before| at.max(not_before));
    if at - next.at <= POSTPONED_MAX { NextVisit { at, reason: Reason::Rest } } else { next }
}

/// Plans the next visit for now if it was requested during the last one, unless the site asked for a delay or opted out, or its budget is
/// used up.
pub fn with_request(next: NextVisit, history: &SiteHistory, now: DateTime<Utc>) -> NextVisit {
    use NextVisitReason as Reason;
    if matches!(next.reason, Reason::RetryAfter | Reason::OptedOut | Reason::OverBudget) {
        return next;
    }
    let at = history.not_before.map_or(now, |not_before| now.max(not_before));
    if at < next.at { NextVisit { at, reason: Reason::Requested } } else { next }
}

/// The next visit to a site that responded. It depends on the operator's interval or the site's rate of change, or is that of a site
/// without manifests.
fn after_response(
    history: &SiteHistory,
    revisit_every: Option<Duration>,
    seed: Seed,
    now: DateTime<Utc>,
) -> NextVisit {
    if let Some(interval) = revisit_every {
        return not_before(history, NextVisit { at: later(now, interval), reason: NextVisitReason::Revisit });
    }
    let next = match history.manifest_presence {
        ManifestPresence::Absent => {
            NextVisit { at: negative(history, seed, now), reason: NextVisitReason::Negative }
        }
        ManifestPresence::Present => {
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
    let seed = seed.with_counter(u64::from(history.negatives_in_row));
    later(now, least + seed.share_of(base, 2 * NEGATIVE_SPREAD_PERCENT))
}

/// The end of the delay of Retry-After, to the second. Later if the site repeats it.
fn rate_limited(history: &SiteHistory, now: DateTime<Utc>) -> DateTime<Utc> {
    let requested = history.not_before.unwrap_or_else(|| later(now, RETRY_AFTER_DEFAULT));
    match history.failures_in_row.checked_sub(1) {
        None | Some(0) => requested.max(now),
        Some(repeats) => requested.max(later(now, backoff(RETRY_AFTER_DEFAULT, repeats, RETRY_AFTER_MAX))),
    }
}

/// The expected time between two changes, by Cho and Garcia-Molina's bias-reduced estimate for polling: with X changes
/// seen in n visits an interval I apart, the rate is −ln((n − X + 0.5) / (n + 0.5)) / I. If the sample is too
/// small, the interval grows to at most twice the last one.
fn change_interval(history: &SiteHistory, now: DateTime<Utc>) -> Duration {
    let visits = history.visits.saturating_sub(1);
    let (Some(first), Some(previous)) = (history.first_visit_at, history.previous_visit_at) else {
        return POSITIVE_MIN;
    };
    if visits == 0 {
        return POSITIVE_MIN;
    }
    let interval_s = until(first, now).as_secs_f64() / f64::from(visits);
    let unchanged = f64::from(visits - history.changes.min(visits)) + 0.5;
    let rate = -(unchanged / (f64::from(visits) + 0.5)).ln() / interval_s.max(1.0);
    let expected = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(POSITIVE_MAX);
    let doubled = until(previous, now).saturating_mul(2);
    expected.min(doubled).clamp(POSITIVE_MIN, POSITIVE_MAX)
}

/// The status of a site after a visit. It is `before` if the visit does not determine it.
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

/// The due time of the first visit to a listed site. All sites are due immediately, but in a shuffled order: the seed of the name spreads
/// them over the minute before now. Lists are sorted, and adjacent sites are often at the same hosting provider.
pub fn first_visit_at(site: Seed, now: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = TimeDelta::milliseconds(i64::try_from(site.below(FIRST_VISIT_SPREAD_MS)).unwrap_or(0));
    now.checked_sub_signed(ahead).unwrap_or(now)
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
