//! Tests next visits with tables of cases, and invariants with random histories.

use chrono::{TimeDelta, TimeZone};
use proptest::prelude::*;

use super::*;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 1, 12, 0, 0).unwrap()
}

fn days_before(days: i64) -> DateTime<Utc> {
    now() - TimeDelta::days(days)
}

fn seed() -> Seed {
    Seed::of("skyhop.example")
}

fn next(history: &SiteHistory) -> NextVisit {
    next_visit(history, None, seed(), now())
}

fn hours(history: &SiteHistory) -> i64 {
    (next(history).at - now()).num_hours()
}

fn positive(visits: u32, changes: u32, first_days_ago: i64, previous_days_ago: i64) -> SiteHistory {
    SiteHistory {
        visits,
        changes,
        first_visit_at: Some(days_before(first_days_ago)),
        previous_visit_at: Some(days_before(previous_days_ago)),
        ..SiteHistory::first(VisitEnd::Completed, ManifestPresence::Present)
    }
}

#[test]
fn a_visit_waits_for_the_robots_txt_that_ended_the_last_one() {
    let planned = NextVisit { at: now() + TimeDelta::hours(1), reason: NextVisitReason::RetryAfter };
    let later = now() + TimeDelta::hours(6);
    assert_eq!(after_unread_robots(planned, Some(later)), NextVisit { at: later, ..planned });
    for until in [None, Some(now())] {
        assert_eq!(after_unread_robots(planned, until), planned);
    }
}

#[test]
fn visits_sites_at_their_rate_of_change() {
    assert_eq!(hours(&SiteHistory::first(VisitEnd::Completed, ManifestPresence::Present)), 24);
    // twenty visits, two days apart: 20, 10, 2 and no changes
    assert_eq!(hours(&positive(21, 20, 40, 2)), 24);
    assert_eq!(hours(&positive(21, 10, 40, 2)) / 24, 2);
    assert_eq!(hours(&positive(21, 2, 40, 2)) / 24, 4, "at most twice the last interval");
    assert_eq!(hours(&positive(21, 2, 400, 20)) / 24, 30);
    assert_eq!(hours(&positive(2, 0, 1, 1)) / 24, 2);
    assert_eq!(hours(&positive(9, 0, 200, 25)) / 24, 30);
    assert_eq!(next(&positive(21, 10, 40, 2)).reason, NextVisitReason::ChangeRate);
}

#[test]
fn a_visit_that_a_stored_robots_txt_ended_does_not_postpone_the_next_request() {
    let expires_at = now() + TimeDelta::minutes(20);
    let fetched_at = now() - TimeDelta::minutes(40);
    for (end, least) in [(VisitEnd::RobotsUnreachable, 0), (VisitEnd::RobotsDenied, 10 * 24 * 60)] {
        let history = SiteHistory {
            failures_in_row: 1,
            negatives_in_row: 1,
            ..SiteHistory::first(end, ManifestPresence::Absent)
        };
        let at = |minutes: i64| {
            after_stored_robots(
                &history,
                seed(),
                (fetched_at, expires_at),
                now() + TimeDelta::minutes(minutes),
            )
            .at
        };
        assert_eq!([at(0), at(5), at(19)].map(|next| next == at(0)), [true; 3], "{end}");
        assert!(at(0) >= expires_at && (at(0) - fetched_at).num_minutes() >= least, "{end}: {}", at(0));
        assert!(at(0) <= next_visit(&history, None, seed(), now()).at.max(expires_at), "{end}");
    }
}

#[test]
fn freshness_and_retry_after_delay_the_next_visit() {
    let at = now() + TimeDelta::days(3);
    let fresh = SiteHistory { fresh_until: Some(at), ..positive(1, 0, 0, 0) };
    assert_eq!(next(&fresh), NextVisit { at, reason: NextVisitReason::FreshUntil });
    let requested = SiteHistory { not_before: Some(at + TimeDelta::days(1)), ..fresh };
    assert_eq!(
        next(&requested),
        NextVisit { at: at + TimeDelta::days(1), reason: NextVisitReason::RetryAfter }
    );
}

#[test]
fn a_proof_that_must_be_checked_advances_the_next_visit() {
    let after = |days: i64| now() + TimeDelta::days(days);
    let history = positive(1, 0, 0, 0);
    let planned = |reason| NextVisit { at: after(90), reason };
    let reason = NextVisitReason::OwnersProof;
    let checked =
        |by, history: &SiteHistory, other| with_check_by(planned(other), by, reason, history, now());
    let proof = |at| NextVisit { at, reason };
    let negative = NextVisitReason::Negative;
    assert_eq!(checked(Some(after(50)), &history, negative), proof(after(50)));
    assert_eq!(checked(Some(now()), &history, negative), proof(after(1)), "at most once a day");
    assert_eq!(checked(Some(after(95)), &history, negative), planned(negative));
    assert_eq!(checked(None, &history, negative), planned(negative));
    let delayed = SiteHistory { not_before: Some(after(60)), ..history };
    assert_eq!(checked(Some(after(50)), &delayed, negative), proof(after(60)));
    for reason in [NextVisitReason::RetryAfter, NextVisitReason::OptedOut, NextVisitReason::DnsDead] {
        assert_eq!(checked(Some(after(50)), &history, reason), planned(reason), "{reason:?}");
    }
}

#[test]
fn plans_the_next_visit_for_the_end_of_a_skipped_hosts_delay() {
    let after = |hours: i64| now() + TimeDelta::hours(hours);
    let history = positive(1, 0, 0, 0);
    let planned = |hours, reason| NextVisit { at: after(hours), reason };
    let (rate, rest) = (NextVisitReason::ChangeRate, NextVisitReason::Rest);
    // the time of the next visit without the delay, the end of the delay, and the expected time
    for (usual, from, expected) in [
        (30 * 24, 2, planned(24, rest)),
        (30 * 24, 29, planned(29, rest)),
        (24, 29, planned(29, rest)),
        (20, 29, planned(20, rate)),
        (30 * 24, 31, planned(30 * 24, rate)),
    ] {
        let found = after_skipped_hosts(planned(usual, rate), Some(after(from)), &history, now());
        assert_eq!(found, expected, "after {usual} h, delay of {from} h");
    }
    assert_eq!(after_skipped_hosts(planned(99, rate), None, &history, now()), planned(99, rate));
    let delayed = SiteHistory { not_before: Some(after(60)), ..history };
    assert_eq!(after_skipped_hosts(planned(99, rate), Some(after(25)), &delayed, now()), planned(60, rest));
    for reason in [NextVisitReason::RetryAfter, NextVisitReason::OptedOut, NextVisitReason::Transport] {
        assert_eq!(
            after_skipped_hosts(planned(99, reason), Some(after(25)), &history, now()),
            planned(99, reason)
        );
    }
}

#[test]
fn a_visit_that_was_requested_during_another_one_follows_it() {
    let (day, week) = (now() + TimeDelta::days(1), now() + TimeDelta::days(7));
    let history = positive(1, 0, 0, 0);
    let after = |reason, history: &SiteHistory| with_request(NextVisit { at: week, reason }, history, now());
    let requested = |at| NextVisit { at, reason: NextVisitReason::Requested };
    for reason in [NextVisitReason::Negative, NextVisitReason::ChangeRate, NextVisitReason::Transport] {
        assert_eq!(after(reason, &history), requested(now()), "{reason:?}");
    }
    let delayed = SiteHistory { not_before: Some(day), ..history };
    assert_eq!(after(NextVisitReason::Negative, &delayed), requested(day), "not before Retry-After");
    for reason in [NextVisitReason::RetryAfter, NextVisitReason::OptedOut, NextVisitReason::OverBudget] {
        assert_eq!(after(reason, &history), NextVisit { at: week, reason }, "{reason:?}");
    }
}

#[test]
fn honours_retry_after_and_doubles_it_if_it_repeats() {
    let requested = now() + TimeDelta::seconds(120);
    let limited = |failures_in_row| SiteHistory {
        failures_in_row,
        not_before: Some(requested),
        ..SiteHistory::first(VisitEnd::RateLimited, ManifestPresence::Absent)
    };
    assert_eq!(next(&limited(1)), NextVisit { at: requested, reason: NextVisitReason::RetryAfter });
    assert_eq!(hours(&limited(2)), 1);
    assert_eq!(hours(&limited(4)), 4);
}

#[test]
fn failures_increase_the_delay_by_their_ladder() {
    let table = [
        (VisitEnd::DnsDead, 1, 24, NextVisitReason::DnsDead),
        (VisitEnd::DnsDead, 3, 7 * 24, NextVisitReason::DnsDead),
        (VisitEnd::DnsDead, 99, 180 * 24, NextVisitReason::DnsDead),
        (VisitEnd::DnsFailed, 1, 6, NextVisitReason::Transport),
        (VisitEnd::Unreachable, 2, 24, NextVisitReason::Transport),
        (VisitEnd::TlsFailed, 99, 90 * 24, NextVisitReason::Transport),
        (VisitEnd::ServerErrors, 3, 72, NextVisitReason::Transport),
        (VisitEnd::RobotsUnreachable, 1, 1, NextVisitReason::RobotsUnreachable),
        (VisitEnd::RobotsUnreachable, 2, 6, NextVisitReason::RobotsUnreachable),
        (VisitEnd::RobotsUnreachable, 50, 168, NextVisitReason::RobotsUnreachable),
        (VisitEnd::RateLimited, 1, 1, NextVisitReason::RetryAfter),
        (VisitEnd::RateLimited, 3, 2, NextVisitReason::RetryAfter),
        (VisitEnd::RateLimited, 99, 168, NextVisitReason::RetryAfter),
        (VisitEnd::OverBudget, 0, 12, NextVisitReason::OverBudget),
        (VisitEnd::Interrupted, 0, 0, NextVisitReason::Resumed),
        (VisitEnd::Parked, 0, 0, NextVisitReason::Resumed),
        (VisitEnd::OptedOut, 0, 365 * 24, NextVisitReason::OptedOut),
    ];
    for (end, failures_in_row, expected, reason) in table {
        let history = SiteHistory { failures_in_row, ..SiteHistory::first(end, ManifestPresence::Absent) };
        assert_eq!((hours(&history), next(&history).reason), (expected, reason), "{end} {failures_in_row}");
    }
}

#[test]
fn the_interval_of_sites_without_manifests_grows() {
    for (end, reason) in [
        (VisitEnd::Completed, NextVisitReason::Negative),
        (VisitEnd::CatchAll, NextVisitReason::CatchAll),
        (VisitEnd::RobotsDenied, NextVisitReason::RobotsDenied),
        (VisitEnd::Blocked, NextVisitReason::Blocked),
    ] {
        for (negatives_in_row, days) in [(1, 14), (2, 28), (3, 56), (4, 90), (50, 90)] {
            let history =
                SiteHistory { negatives_in_row, ..SiteHistory::first(end, ManifestPresence::Absent) };
            let wait = hours(&history);
            assert!(
                (days * 24 * 8 / 10..=days * 24 * 12 / 10).contains(&wait),
                "{end} {negatives_in_row}: {wait} h"
            );
            assert_eq!(next(&history).reason, reason);
        }
    }
}

#[test]
fn an_operator_visits_public_sites_at_most_once_a_day() {
    let (minute, week) = (Duration::from_mins(1), Duration::from_hours(7 * 24));
    assert_eq!(revisit_every(Some(minute), Network::Global), Some(Duration::from_hours(24)));
    assert_eq!(revisit_every(Some(minute), Network::Own), Some(minute));
    for network in [Network::Global, Network::Own] {
        assert_eq!(revisit_every(Some(week), network), Some(week));
        assert_eq!(revisit_every(None, network), None);
    }
}

#[test]
fn the_operators_interval_applies_only_to_sites_that_respond() {
    let revisit = Some(Duration::from_mins(5));
    let at = |history: &SiteHistory| next_visit(history, revisit, seed(), now());
    for manifest_presence in [ManifestPresence::Present, ManifestPresence::Absent] {
        let next = at(&SiteHistory::first(VisitEnd::Completed, manifest_presence));
        assert_eq!(next, NextVisit { at: now() + TimeDelta::minutes(5), reason: NextVisitReason::Revisit });
    }
    let dead =
        SiteHistory { failures_in_row: 1, ..SiteHistory::first(VisitEnd::DnsDead, ManifestPresence::Absent) };
    assert_eq!(at(&dead).reason, NextVisitReason::DnsDead);
    let requested = SiteHistory {
        not_before: Some(now() + TimeDelta::hours(1)),
        ..SiteHistory::first(VisitEnd::Completed, ManifestPresence::Present)
    };
    assert_eq!(at(&requested).reason, NextVisitReason::RetryAfter);
}

#[test]
fn the_end_of_a_visit_determines_the_status() {
    let table = [
        (VisitEnd::Completed, 0, Status::Pending, Status::Fresh),
        (VisitEnd::NothingNew, 0, Status::Stale, Status::Fresh),
        (VisitEnd::CatchAll, 0, Status::Fresh, Status::CatchAll),
        (VisitEnd::RobotsDenied, 0, Status::Fresh, Status::Denied),
        (VisitEnd::RobotsUnreachable, 1, Status::Fresh, Status::Unreachable),
        (VisitEnd::DnsDead, 4, Status::Fresh, Status::Unreachable),
        (VisitEnd::DnsDead, 5, Status::Unreachable, Status::Gone),
        (VisitEnd::RateLimited, 1, Status::Fresh, Status::Stale),
        (VisitEnd::RateLimited, 1, Status::Pending, Status::Pending),
        (VisitEnd::Interrupted, 0, Status::Fresh, Status::Fresh),
        (VisitEnd::OptedOut, 0, Status::Fresh, Status::OptedOut),
    ];
    for (end, failures_in_row, before, after) in table {
        let history = SiteHistory { failures_in_row, ..SiteHistory::first(end, ManifestPresence::Absent) };
        assert_eq!(status_after(&history, before), after, "{end} from {before}");
    }
}

#[test]
fn spreads_the_first_visits_of_a_list() {
    let mut queue: Vec<_> = (0..4_000)
        .map(|index| {
            // a sorted list: a thousand sites of each of four hosting providers
            let hoster = index / 1_000;
            (first_visit_at(Seed::of(&format!("site{index}.hoster{hoster}.example")), now()), hoster)
        })
        .collect();
    assert!(queue.iter().all(|(at, _)| *at <= now() && *at > now() - TimeDelta::minutes(1)));
    queue.sort_by_key(|(at, _)| *at);
    for batch in queue.chunks(200) {
        for hoster in 0..4 {
            let count = batch.iter().filter(|(_, of)| *of == hoster).count();
            assert!((20..=80).contains(&count), "{count} of a batch of 200 at one hosting provider");
        }
    }
}

fn any_history() -> impl Strategy<Value = SiteHistory> {
    let end = proptest::sample::select(VisitEnd::ALL.to_vec());
    let manifest_presence =
        proptest::sample::select(vec![ManifestPresence::Present, ManifestPresence::Absent]);
    let at = || proptest::option::of((-1_000_i64..1_000).prop_map(|hours| now() + TimeDelta::hours(hours)));
    (
        end,
        manifest_presence,
        (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()),
        (at(), at(), at(), at()),
    )
        .prop_map(
            |(
                end,
                manifest_presence,
                (visits, changes, failures_in_row, negatives_in_row),
                (first, previous, fresh, requested),
            )| {
                SiteHistory {
                    end,
                    manifest_presence,
                    visits,
                    changes,
                    first_visit_at: first,
                    previous_visit_at: previous,
                    failures_in_row,
                    negatives_in_row,
                    fresh_until: fresh,
                    not_before: requested,
                }
            },
        )
}

proptest! {
    /// No visit is before Retry-After, in the past, or further away than a year; no visit to a site that responded is before its freshness
    /// ends.
    #[test]
    fn next_visits_respect_every_bound(history in any_history()) {
        let next = next(&history);
        prop_assert!(next.at >= now());
        prop_assert!(next.at <= now() + TimeDelta::days(366));
        prop_assert!(history.not_before.is_none_or(|at| next.at >= at));
        if matches!(history.end, VisitEnd::Completed | VisitEnd::NothingNew) {
            prop_assert!(history.fresh_until.is_none_or(|at| next.at >= at));
            prop_assert!(next.at >= now() + TimeDelta::hours(24));
        }
    }

    /// More observed changes never delay the next visit.
    #[test]
    fn more_changes_never_delay_a_visit(visits in 2_u32..1_000, changes in 0_u32..1_000, days in 1_i64..1_000) {
        let less = positive(visits, changes, days, days);
        let more = positive(visits, changes.saturating_add(1), days, days);
        prop_assert!(change_interval(&more, now()) <= change_interval(&less, now()));
    }

    /// More failures in a row never bring a visit forward.
    #[test]
    fn more_failures_never_bring_a_visit_forward(history in any_history()) {
        let worse = SiteHistory { failures_in_row: history.failures_in_row.saturating_add(1), ..history };
        prop_assert!(next(&worse).at >= next(&history).at);
    }
}
