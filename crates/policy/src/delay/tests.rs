//! Tests gaps and waits with tables of cases, and invariants with random cases.

use chrono::{TimeDelta, TimeZone};
use proptest::prelude::*;

use super::*;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 1, 22, 0, 0).unwrap()
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn waiting(scope: Scope, seconds: i64) -> ScopeState {
    ScopeState { next_ok_at: Some(now() + TimeDelta::seconds(seconds)), ..ScopeState::idle(scope) }
}

fn spent(scope: Scope, requests_today: u32, days_before: i32) -> ScopeState {
    ScopeState { requests_today, day: day_of(now()) - days_before, ..ScopeState::idle(scope) }
}

#[test]
fn the_gap_is_the_longest_required_delay() {
    let ms = Duration::from_millis;
    let table = [
        (secs(3), None, None, Network::Global, secs(3), GapReason::Configured),
        (secs(0), None, None, Network::Global, secs(1), GapReason::Floor),
        (secs(1), None, None, Network::Global, secs(1), GapReason::Configured),
        (secs(3), None, Some(ms(500)), Network::Global, secs(3), GapReason::Configured),
        (secs(3), None, Some(secs(2)), Network::Global, secs(10), GapReason::Latency),
        (secs(3), Some(secs(30)), Some(secs(2)), Network::Global, secs(30), GapReason::CrawlDelay),
        (secs(3), Some(secs(1)), None, Network::Global, secs(3), GapReason::Configured),
        (secs(0), None, Some(secs(9)), Network::Own, secs(0), GapReason::Configured),
        (ms(100), None, Some(secs(9)), Network::Own, ms(100), GapReason::Configured),
        (ms(100), Some(secs(5)), None, Network::Own, secs(5), GapReason::CrawlDelay),
    ];
    for (configured, crawl_delay, last_latency, network, wait, reason) in table {
        let pace = AuthorityPace { configured, crawl_delay, last_latency, network };
        let gap = pace.gap(Seed::of("a.example"));
        let limit = wait + wait / 5;
        assert_eq!(gap.reason, reason, "{pace:?}");
        assert!((wait..=limit).contains(&gap.wait), "{pace:?}: {gap:?}");
    }
}

#[test]
fn the_strictest_scope_determines_the_wait() {
    let at = |seconds| now() + TimeDelta::seconds(seconds);
    let table = [
        (vec![], Pace::Go),
        (Scope::ALL.iter().map(|scope| ScopeState::idle(*scope)).collect(), Pace::Go),
        (vec![waiting(Scope::Authority, -5), waiting(Scope::Site, 0)], Pace::Go),
        (
            vec![waiting(Scope::Authority, 1), waiting(Scope::Address, 2)],
            Pace::Wait { until: at(2), scope: Scope::Address },
        ),
        (vec![waiting(Scope::Authority, 6)], Pace::Wait { until: at(6), scope: Scope::Authority }),
        (vec![waiting(Scope::Authority, 7)], Pace::Park { until: at(7), scope: Scope::Authority }),
        (
            vec![waiting(Scope::Authority, 1), waiting(Scope::RetryAfter, 600)],
            Pace::Park { until: at(600), scope: Scope::RetryAfter },
        ),
        (
            vec![ScopeState { in_flight: 1, ..ScopeState::idle(Scope::Authority) }],
            Pace::Busy { scope: Scope::Authority },
        ),
        (vec![ScopeState { in_flight: 1, ..ScopeState::idle(Scope::Site) }], Pace::Go),
        (
            vec![ScopeState { in_flight: 2, ..ScopeState::idle(Scope::Site) }],
            Pace::Busy { scope: Scope::Site },
        ),
        (vec![spent(Scope::Authority, 39, 0)], Pace::Go),
        (
            vec![spent(Scope::Authority, 40, 0)],
            Pace::OverBudget { scope: Scope::Authority, until: at(7_200) },
        ),
        (vec![spent(Scope::Authority, 40, 1)], Pace::Go),
        (
            vec![spent(Scope::Authority, 40, -1)],
            Pace::OverBudget { scope: Scope::Authority, until: at(7_200) },
        ),
        (
            vec![spent(Scope::Site, 120, 0), waiting(Scope::Authority, 2)],
            Pace::OverBudget { scope: Scope::Site, until: at(7_200) },
        ),
        (
            vec![spent(Scope::Address, 20_000, 0)],
            Pace::OverBudget { scope: Scope::Address, until: at(7_200) },
        ),
    ];
    for (scopes, expected) in table {
        assert_eq!(next_request_at(&scopes, Network::Global, now()), expected, "{scopes:?}");
    }
}

#[test]
fn own_networks_are_limited_by_authority_and_retry_after_only() {
    let go = |scopes: &[ScopeState]| next_request_at(scopes, Network::Own, now());
    assert_eq!(
        go(&[waiting(Scope::Address, 60), waiting(Scope::Site, 60), spent(Scope::Authority, 99, 0)]),
        Pace::Go
    );
    assert!(matches!(go(&[waiting(Scope::Authority, 2)]), Pace::Wait { scope: Scope::Authority, .. }));
    assert!(matches!(go(&[waiting(Scope::RetryAfter, 90)]), Pace::Park { scope: Scope::RetryAfter, .. }));
    let busy = ScopeState { in_flight: 1, ..ScopeState::idle(Scope::Authority) };
    assert_eq!(go(&[busy]), Pace::Busy { scope: Scope::Authority });
}

#[test]
fn a_quarter_of_a_budget_is_kept() {
    let decide = |sent, kept| {
        let state = ScopeState { kept, ..spent(Scope::Authority, sent, 0) };
        next_request_at(&[state], Network::Global, now())
    };
    let kept = Scope::Authority.requests_kept();
    assert_eq!((kept, Scope::Site.requests_kept(), Scope::Address.requests_kept()), (10, 30, 5_000));
    assert_eq!((decide(29, kept), decide(39, 0)), (Pace::Go, Pace::Go));
    assert!(matches!(decide(30, kept), Pace::OverBudget { scope: Scope::Authority, .. }));
}

#[test]
fn days_are_counted_in_utc() {
    assert_eq!(day_of(DateTime::<Utc>::UNIX_EPOCH), 0);
    assert_eq!(day_of(DateTime::<Utc>::UNIX_EPOCH - TimeDelta::seconds(1)), -1);
    assert_eq!(next_day(now()), Utc.with_ymd_and_hms(2026, 7, 2, 0, 0, 0).unwrap());
}

fn any_scope() -> impl Strategy<Value = ScopeState> {
    let scope = proptest::sample::select(Scope::ALL.to_vec());
    (scope, proptest::option::of(-100_i64..100), 0_u32..5, 0_u32..200).prop_map(
        |(scope, wait_s, in_flight, sent)| ScopeState {
            scope,
            next_ok_at: wait_s.map(|seconds| now() + TimeDelta::seconds(seconds)),
            in_flight,
            requests_today: sent,
            day: day_of(now()),
            kept: 0,
        },
    )
}

proptest! {
    /// The gap is never below Crawl-delay, the configured delay, or the floor of global addresses.
    #[test]
    fn gaps_respect_every_lower_bound(
        configured_ms in 0_u64..100_000,
        crawl_delay_ms in proptest::option::of(0_u64..86_400_000),
        latency_ms in proptest::option::of(0_u64..60_000),
        count: u64,
    ) {
        let millis = Duration::from_millis;
        for network in [Network::Global, Network::Own] {
            let pace = AuthorityPace {
                configured: millis(configured_ms),
                crawl_delay: crawl_delay_ms.map(millis),
                last_latency: latency_ms.map(millis),
                network,
            };
            let gap = pace.gap(Seed::of("a.example").with_counter(count));
            prop_assert!(gap.wait >= pace.configured);
            prop_assert!(gap.wait >= pace.crawl_delay.unwrap_or_default());
            if network == Network::Global {
                prop_assert!(gap.wait >= DELAY_FLOOR);
                prop_assert!(gap.wait >= pace.last_latency.unwrap_or_default() * LATENCY_FACTOR);
            }
        }
    }

    /// `Go` requires that every scope of a global address is ready and has free slots and budget.
    #[test]
    fn go_requires_every_scope_to_be_ready(scopes in proptest::collection::vec(any_scope(), 0..6)) {
        match next_request_at(&scopes, Network::Global, now()) {
            Pace::Go => {
                for state in &scopes {
                    let limits = state.scope.limits();
                    prop_assert!(state.next_ok_at.is_none_or(|at| at <= now()));
                    prop_assert!(state.in_flight < limits.in_flight_max);
                    prop_assert!(limits.requests_per_day_max.is_none_or(|budget| state.requests_today < budget));
                }
            }
            Pace::Wait { until, .. } | Pace::Park { until, .. } => {
                prop_assert!(scopes.iter().all(|state| state.next_ok_at.is_none_or(|at| at <= until)));
            }
            Pace::Busy { .. } | Pace::OverBudget { .. } => {}
        }
    }

    /// An additional scope never allows an earlier request.
    #[test]
    fn an_additional_scope_never_allows_a_request(scopes in proptest::collection::vec(any_scope(), 0..5), more in any_scope()) {
        let before = next_request_at(&scopes, Network::Global, now());
        let all: Vec<_> = scopes.iter().copied().chain([more]).collect();
        if before != Pace::Go {
            prop_assert_ne!(next_request_at(&all, Network::Global, now()), Pace::Go);
        }
    }
}
