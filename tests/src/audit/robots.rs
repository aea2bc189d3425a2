//! Checks robots.txt by RFC 9309, as agentdex interprets it: fetched first on every authority, never older than 24 hours except for one
//! request after a long delay, and never permissive after a failure. A path whose use for search is denied by Content-Usage or
//! Content-Signal is disallowed. Two parsers check the bodies that were sent: agentdex's own and `robotxt`; the stricter result applies. A
//! redirect to another site permits nothing: the redirecting robots.txt counts as unreachable, and the target is subject to the robots.txt
//! of the other authority.

use std::time::Duration;

use policy::{RobotsFile, robots::PRODUCT_TOKEN};
use robotxt::Robots;
use testweb::Hit;

use super::{
    Measure, Rule, Violation,
    history::{History, is_same_site, redirect_target},
};

/// RFC 9309 §2.4.
const COPY_AGE_MAX_US: u64 = 24 * HOUR_US;
/// The maximum age for the first request after robots.txt if its Crawl-delay is long: the delay uses up nearly the whole lifetime of the
/// copy, or the visit does not wait for it and the next visit begins a day later.
const COPY_AGE_DELAYED_MAX_US: u64 = 48 * HOUR_US;
const LONG_DELAY_MIN: Duration = Duration::from_mins(5);
const HOUR_US: u64 = 3_600 * 1_000_000;
/// RFC 9309 §2.3.1.2: at least five; agentdex follows no more.
const REDIRECTS_MAX: usize = 5;
/// Bytes that a crawler must read (RFC 9309 §2.5, rounded up).
const BODY_BYTES_MAX: u64 = 512 * 1024;

/// One fetch of robots.txt with its redirects, and its verdict, which applies until the next fetch.
pub(super) struct Round {
    requested_us: u64,
    received_us: u64,
    first: u64,
    verdict: Verdict,
}

enum Verdict {
    Rules {
        ours: Box<RobotsFile>,
        second: Box<Robots>,
    },
    NoFile,
    Denied,
    Unreachable,
    /// A 304: confirms the previous verdict.
    Unchanged,
}

/// The fetches of robots.txt on one authority, in order.
pub(super) fn rounds(hits: &[&Hit], history: &History<'_>) -> Vec<Round> {
    hits.iter().filter(|hit| hit.path == "/robots.txt").map(|hit| round(hit, history)).collect()
}

/// The Crawl-delay that applies at a time.
pub(super) fn crawl_delay_at(rounds: &[Round], at_us: u64) -> Duration {
    match in_force(rounds, at_us).map(|(_, verdict)| verdict) {
        Some(Verdict::Rules { ours, .. }) => ours.crawl_delay().map_or(Duration::ZERO, |delay| delay.wait),
        _ => Duration::ZERO,
    }
}

/// Checks every request to one authority against the latest robots.txt that was received before it.
pub(super) fn check(hits: &[&Hit], rounds: &[Round], history: &History<'_>) -> Vec<Violation> {
    let governed = |hit: &&&Hit| hit.path != "/robots.txt" && !history.is_robots_by_redirect(hit);
    hits.iter().filter(governed).filter_map(|hit| check_one(hit, hits, rounds)).collect()
}

fn check_one(hit: &Hit, hits: &[&Hit], rounds: &[Round]) -> Option<Violation> {
    let Some((round, verdict)) = in_force(rounds, hit.started_us) else {
        let (measured, required) = ("no robots.txt before", "robots.txt first");
        return Some(Violation::at(Rule::RobotsFirst, hit, measured.into(), required.into()));
    };
    let age_us = hit.started_us.saturating_sub(round.requested_us);
    let robots = hits.iter().find(|robots| robots.id == round.first)?;
    let broken = |rule, measured: Measure, required: Measure| {
        Some(Violation::between(rule, robots, hit, measured, required))
    };
    let age_max_us = copy_age_max_us(round, verdict, hit, hits);
    match verdict {
        _ if age_us > age_max_us => broken(Rule::RobotsStale, Measure::us(age_us), Measure::us(age_max_us)),
        Verdict::Rules { ours, second } => {
            let by_ours = !ours.decide(&hit.path).is_allowed();
            let by_second = !second.is_allowed(&hit.path);
            let who = match (by_ours, by_second) {
                (false, false) => return None,
                (true, true) => "disallowed",
                (true, false) => "disallowed by the first parser",
                (false, true) => "disallowed by the second parser",
            };
            broken(Rule::Disallowed, who.into(), "an allowed path".into())
        }
        Verdict::NoFile => None,
        Verdict::Denied => broken(Rule::Disallowed, "robots.txt was refused".into(), "no fetch".into()),
        Verdict::Unreachable | Verdict::Unchanged => {
            broken(Rule::RobotsUnreachable, "robots.txt was unreachable".into(), "no fetch".into())
        }
    }
}

/// The maximum age of the copy of a round for a request. The crawler lengthens a delay by at most a fifth.
fn copy_age_max_us(round: &Round, verdict: &Verdict, hit: &Hit, hits: &[&Hit]) -> u64 {
    let Verdict::Rules { ours, .. } = verdict else { return COPY_AGE_MAX_US };
    let delay = ours.crawl_delay().map_or(Duration::ZERO, |delay| delay.wait * 6 / 5);
    let is_between =
        |other: &&&Hit| round.received_us < other.started_us && other.started_us < hit.started_us;
    let is_next = !hits.iter().any(|other| is_between(&other));
    if is_next && delay >= LONG_DELAY_MIN { COPY_AGE_DELAYED_MAX_US } else { COPY_AGE_MAX_US }
}

/// The latest round that had ended at a time, with its verdict or the verdict that it confirms.
fn in_force(rounds: &[Round], at_us: u64) -> Option<(&Round, &Verdict)> {
    let known = rounds.iter().rposition(|round| round.received_us <= at_us)?;
    let verdicts = rounds[..=known].iter().rev().map(|round| &round.verdict);
    let verdict = verdicts.into_iter().find(|verdict| !matches!(verdict, Verdict::Unchanged));
    Some((&rounds[known], verdict.unwrap_or(&Verdict::Unreachable)))
}

fn round(first: &Hit, history: &History<'_>) -> Round {
    let mut hit = first;
    let mut unfollowed = false;
    for hop in 0..=REDIRECTS_MAX {
        let Some(target) = redirect_target(hit) else { break };
        let may_follow = hop < REDIRECTS_MAX && is_same_site(&hit.host, &target.0);
        match history.first_on(&target, hit.ended_us).filter(|_| may_follow) {
            Some(next) => hit = next,
            None => unfollowed = true,
        }
        if unfollowed {
            break;
        }
    }
    let verdict = if unfollowed { Verdict::Unreachable } else { verdict(hit) };
    Round { requested_us: first.started_us, received_us: hit.ended_us, first: first.id, verdict }
}

fn verdict(hit: &Hit) -> Verdict {
    let read_enough = hit.complete || hit.body_bytes >= BODY_BYTES_MAX;
    match hit.status {
        _ if is_wall(hit) => Verdict::Denied,
        Some(304) => Verdict::Unchanged,
        // 206 and 226 carry a part or a delta, which the crawler did not request
        Some(206 | 226 | 429) => Verdict::Unreachable,
        Some(200..=299) if read_enough => {
            let body = hit.robots_body.as_deref().unwrap_or_default();
            Verdict::Rules {
                ours: Box::new(RobotsFile::parse(body.as_bytes(), PRODUCT_TOKEN)),
                second: Box::new(Robots::parse(body.as_bytes(), PRODUCT_TOKEN)),
            }
        }
        Some(401 | 403 | 451) => Verdict::Denied,
        Some(400..=499) => Verdict::NoFile,
        _ => Verdict::Unreachable,
    }
}

/// Whether the response is a bot wall, with any status.
fn is_wall(hit: &Hit) -> bool {
    let values = [": challenge", ": captcha"];
    hit.response.wall.as_deref().is_some_and(|wall| values.iter().any(|value| wall.ends_with(value)))
}
