//! Tests of the limiter: one request at a time per address, adaptive rates of platforms, queues, and the speed of decisions with many
//! hosts.

use std::collections::BinaryHeap;
use std::time::Duration;

use policy::delay::{Network, next_request_at};
use tokio::time::Instant;

use super::*;

fn noon() -> DateTime<Utc> {
    DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(12)
}

fn ask(limiter: &Limiter, keys: &[Key], now: DateTime<Utc>) -> (Pace, Option<Slot>) {
    limiter.try_acquire(keys, now, |states| next_request_at(states, Network::Global, now))
}

const fn fine(ms: u64) -> Sample {
    Sample::Success(Duration::from_millis(ms))
}

#[test]
fn an_address_serves_one_request_at_a_time_with_a_gap() {
    let limiter = Limiter::default();
    let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
    let (_, slot) = ask(&limiter, &keys, noon());
    assert!(slot.is_some());
    let answered_at = noon() + TimeDelta::seconds(2);
    assert!(matches!(ask(&limiter, &keys, answered_at).0, Pace::Busy { scope: Scope::Address }));
    limiter.finish(&keys, answered_at, Some(fine(2_000)));
    drop(slot);
    let rest = Pace::Wait { until: answered_at + TimeDelta::milliseconds(500), scope: Scope::Address };
    assert_eq!(ask(&limiter, &keys, answered_at).0, rest);
}

#[test]
fn sites_below_a_public_suffix_share_its_limit() {
    let key = |name: &str| Key::of_private_suffix(&Host::parse(name).unwrap());
    assert_eq!(key("alice.github.io"), key("docs.bob.github.io"));
    assert_eq!(key("example.co.uk"), None);
    let (limiter, keys) = (Limiter::default(), [key("alice.github.io").unwrap()]);
    let mut slots = Vec::new();
    for started in 0..4 {
        let now = noon() + TimeDelta::milliseconds(500 * started);
        let (_, slot) = ask(&limiter, &keys, now);
        slots.push(slot.expect("four may be in flight"));
        let at_once = ask(&limiter, &keys, now).0;
        assert!(matches!(at_once, Pace::Wait { scope: Scope::PublicSuffix, .. }), "{at_once:?}");
    }
    assert!(matches!(ask(&limiter, &keys, noon() + TimeDelta::seconds(3)).0, Pace::Busy { .. }));
}

#[test]
fn groups_addresses_by_budget_network_and_platform() {
    let key = |text: &str| Key::of_address(text.parse().unwrap());
    assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1::2"));
    assert_ne!(key("93.184.216.34"), key("93.184.216.35"));
    assert_eq!(key("104.16.132.229"), key("172.64.0.1"));
    assert_eq!(key("104.16.132.229"), Key::Platform("cloudflare"));
}

/// Sends requests to a platform as soon as its rate allows. Each response gives `sample`. Returns the number of requests that began within
/// a minute.
fn a_minute(limiter: &Limiter, keys: &[Key], from: DateTime<Utc>, sample: Option<Sample>) -> usize {
    let mut now = from;
    let mut started = 0;
    while now < from + TimeDelta::minutes(1) {
        match ask(limiter, keys, now) {
            (_, Some(slot)) => {
                started += 1;
                limiter.finish(keys, now, sample);
                drop(slot);
            }
            (Pace::Wait { until, .. }, None) => now = until,
            (other, None) => panic!("{other:?}"),
        }
    }
    started
}

#[test]
fn adapts_the_rate_of_a_platform_to_its_answers() {
    let limiter = Limiter::default();
    let keys = [Key::of_address("104.16.132.229".parse().unwrap())];
    let first = a_minute(&limiter, &keys, noon(), Some(fine(100)));
    assert!((120..=180).contains(&first), "two a second, and a little more in the end: {first}");
    for minute in 1..10 {
        a_minute(&limiter, &keys, noon() + TimeDelta::minutes(minute), Some(fine(100)));
    }
    let fastest = a_minute(&limiter, &keys, noon() + TimeDelta::minutes(10), Some(fine(100)));
    assert!((1_100..=1_201).contains(&fastest), "at most twenty requests a second: {fastest}");
    for minute in 11..13 {
        a_minute(&limiter, &keys, noon() + TimeDelta::minutes(minute), Some(Sample::Failure));
    }
    let slowest = a_minute(&limiter, &keys, noon() + TimeDelta::minutes(13), Some(Sample::Failure));
    assert!(slowest <= 31, "about one request in two seconds: {slowest}");
}

/// Each queued visit wakes once.
#[tokio::test]
async fn queued_visits_wake_once_in_order() {
    const VISITS: usize = 4;
    let (limiter, reads) = (Limiter::default(), Arc::new(Mutex::new(0_usize)));
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..VISITS {
        let (limiter, reads) = (limiter.clone(), Arc::clone(&reads));
        visits.spawn(async move {
            let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
            let taken = limiter.acquire(&keys, |states, now| {
                *reads.lock().unwrap() += 1;
                next_request_at(states, Network::Global, now)
            });
            let SlotAnswer::Granted(slot) = taken.await else { panic!("four fit the queue") };
            let started = clock::now();
            tokio::task::yield_now().await;
            limiter.finish(&keys, clock::now(), Some(fine(0)));
            drop(slot);
            started
        });
    }
    let mut started = visits.join_all().await;
    started.sort_unstable();
    assert!(started.windows(2).all(|pair| pair[1] - pair[0] >= TimeDelta::milliseconds(500)));
    let reads = *reads.lock().unwrap();
    assert!(reads <= 3 * VISITS, "the clocks were read {reads} times for {VISITS} slots");
}

/// Visits that would wait too long are rejected immediately, and each is assigned its own time.
#[tokio::test]
async fn gives_each_visit_beyond_the_queue_its_own_retry_time() {
    const POSITIONS: usize = 30;
    let (limiter, keys) = (Limiter::default(), [Key::of_address("93.184.216.34".parse().unwrap())]);
    let positions: Vec<QueuePosition> = std::iter::from_fn(|| limiter.enqueue(&keys)).take(1_000).collect();
    assert_eq!(
        positions.len(),
        POSITIONS,
        "as many visits as gaps fit into the time for which a connection is kept"
    );
    let decide = |states: &[ScopeState], now| next_request_at(states, Network::Global, now);
    let mut rejected = Vec::new();
    for _ in 0..20 {
        let SlotAnswer::Crowded { until, scope: Scope::Address } = limiter.acquire(&keys, decide).await
        else {
            panic!("the queue is full")
        };
        rejected.push(until);
    }
    assert!(rejected.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::milliseconds(500)));
    assert!(rejected[0] - clock::now() > TimeDelta::seconds(14));
    drop(positions);
    assert!(matches!(limiter.acquire(&keys, decide).await, SlotAnswer::Granted(_)));
}

#[tokio::test]
async fn a_cancelled_visit_leaves_the_queue() {
    let (limiter, keys) = (Limiter::default(), [Key::of_address("93.184.216.34".parse().unwrap())]);
    let decide = |states: &[ScopeState], now| next_request_at(states, Network::Global, now);
    let SlotAnswer::Granted(first) = limiter.acquire(&keys, decide).await else {
        panic!("the address is free")
    };
    let second = tokio::time::timeout(Duration::from_millis(50), limiter.acquire(&keys, decide)).await;
    assert!(second.is_err(), "the first request is in flight");
    limiter.finish(&keys, clock::now(), Some(fine(50)));
    drop(first);
    assert!(matches!(limiter.acquire(&keys, decide).await, SlotAnswer::Granted(_)));
}

/// 20,000 hosts share one address: the gap of the address is kept, and decisions stay fast.
#[test]
fn keeps_the_gap_of_an_address_with_20_000_hosts_and_decides_fast() {
    const HOSTS: usize = 20_000;
    let limiter = Limiter::default();
    for index in 0..HOSTS {
        // other addresses that this process has requested
        let other = Key::of_address(
            [93, 0, u8::try_from(index / 256).unwrap(), u8::try_from(index % 256).unwrap()].into(),
        );
        limiter.load(&other, noon());
    }
    let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
    let mut waiting: BinaryHeap<std::cmp::Reverse<(DateTime<Utc>, usize)>> =
        (0..HOSTS).map(|host| std::cmp::Reverse((noon(), host))).collect();
    let (mut starts, mut took) = (Vec::new(), Vec::new());
    while starts.len() < 10 {
        let std::cmp::Reverse((now, host)) = waiting.pop().unwrap();
        let asked = Instant::now();
        let (pace, slot) = ask(&limiter, &keys, now);
        took.push(asked.elapsed());
        match (pace, slot) {
            (_, Some(slot)) => {
                starts.push(now);
                limiter.finish(&keys, now, Some(fine(0)));
                drop(slot);
            }
            (Pace::Wait { until, .. } | Pace::Park { until, .. }, None) => {
                waiting.push(std::cmp::Reverse((until, host)));
            }
            (other, None) => panic!("{other:?}"),
        }
    }
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= TimeDelta::milliseconds(500)));
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100];
    assert!(p99 < Duration::from_millis(1), "99 in 100 decisions took less than {p99:?} of {}", took.len());
}
