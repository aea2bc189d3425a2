//! Shared clocks: one request an address, a pace for each platform, and decisions that stay quick in a crowd.

use std::collections::BinaryHeap;
use std::time::Duration;

use policy::delay::{Network, next_request_at};
use tokio::time::Instant;

use super::*;

fn noon() -> DateTime<Utc> {
    DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::hours(12)
}

fn ask(book: &Book, keys: &[Key], now: DateTime<Utc>) -> (Pace, Option<Claim>) {
    book.claim(keys, now, |states| next_request_at(states, Network::Global, now))
}

const fn fine(ms: u64) -> Sample {
    Sample::Success(Duration::from_millis(ms))
}

#[test]
fn an_address_is_claimed_by_one_request_and_then_rests() {
    let book = Book::default();
    let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
    let (_, claim) = ask(&book, &keys, noon());
    assert!(claim.is_some());
    let answered_at = noon() + TimeDelta::seconds(2);
    assert!(matches!(ask(&book, &keys, answered_at).0, Pace::Busy { scope: Scope::Address }));
    book.finish(&keys, answered_at, Some(fine(2_000)));
    drop(claim);
    let rest = Pace::Wait { until: answered_at + TimeDelta::milliseconds(500), scope: Scope::Address };
    assert_eq!(ask(&book, &keys, answered_at).0, rest);
}

#[test]
fn neighbours_under_a_private_suffix_share_its_clock_and_start_one_after_another() {
    let key = |name: &str| Key::of_private_suffix(&Host::parse(name).unwrap());
    assert_eq!(key("alice.github.io"), key("docs.bob.github.io"));
    assert_eq!(key("example.co.uk"), None);
    let (book, keys) = (Book::default(), [key("alice.github.io").unwrap()]);
    let mut claims = Vec::new();
    for started in 0..4 {
        let now = noon() + TimeDelta::milliseconds(500 * started);
        let (_, claim) = ask(&book, &keys, now);
        claims.push(claim.expect("four may be under way"));
        let at_once = ask(&book, &keys, now).0;
        assert!(matches!(at_once, Pace::Wait { scope: Scope::PublicSuffix, .. }), "{at_once:?}");
    }
    assert!(matches!(ask(&book, &keys, noon() + TimeDelta::seconds(3)).0, Pace::Busy { .. }));
}

#[test]
fn addresses_of_one_customer_are_one_key_and_so_are_those_of_a_platform() {
    let key = |text: &str| Key::of_address(text.parse().unwrap());
    assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1::2"));
    assert_ne!(key("93.184.216.34"), key("93.184.216.35"));
    assert_eq!(key("104.16.132.229"), key("172.64.0.1"));
    assert_eq!(key("104.16.132.229"), Key::Platform("cloudflare"));
}

/// Requests of a platform, one as soon as the last pace allows it, each answered so; returns how many started in a minute.
fn a_minute(book: &Book, keys: &[Key], from: DateTime<Utc>, sample: Option<Sample>) -> usize {
    let mut now = from;
    let mut started = 0;
    while now < from + TimeDelta::minutes(1) {
        match ask(book, keys, now) {
            (_, Some(claim)) => {
                started += 1;
                book.finish(keys, now, sample);
                drop(claim);
            }
            (Pace::Wait { until, .. }, None) => now = until,
            (other, None) => panic!("{other:?}"),
        }
    }
    started
}

#[test]
fn a_platform_that_answers_well_is_asked_faster_and_one_in_trouble_slower() {
    let book = Book::default();
    let keys = [Key::of_address("104.16.132.229".parse().unwrap())];
    let first = a_minute(&book, &keys, noon(), Some(fine(100)));
    assert!((120..=180).contains(&first), "two a second, and a little more in the end: {first}");
    for minute in 1..10 {
        a_minute(&book, &keys, noon() + TimeDelta::minutes(minute), Some(fine(100)));
    }
    let fastest = a_minute(&book, &keys, noon() + TimeDelta::minutes(10), Some(fine(100)));
    assert!((1_100..=1_201).contains(&fastest), "never more than twenty a second: {fastest}");
    for minute in 11..13 {
        a_minute(&book, &keys, noon() + TimeDelta::minutes(minute), Some(Sample::Failure));
    }
    let slowest = a_minute(&book, &keys, noon() + TimeDelta::minutes(13), Some(Sample::Failure));
    assert!(slowest <= 31, "one in two seconds: {slowest}");
}

/// Each visit that waits is woken once for its turn.
#[tokio::test]
async fn a_crowd_waits_in_a_queue() {
    const VISITS: usize = 4;
    let (book, looks) = (Book::default(), Arc::new(Mutex::new(0_usize)));
    let mut visits = tokio::task::JoinSet::new();
    for _ in 0..VISITS {
        let (book, looks) = (book.clone(), Arc::clone(&looks));
        visits.spawn(async move {
            let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
            let taken = book.take(&keys, |states, now| {
                *looks.lock().unwrap() += 1;
                next_request_at(states, Network::Global, now)
            });
            let Taken::Go(claim) = taken.await else { panic!("four are no crowd") };
            let started = clock::now();
            tokio::task::yield_now().await;
            book.finish(&keys, clock::now(), Some(fine(0)));
            drop(claim);
            started
        });
    }
    let mut started = visits.join_all().await;
    started.sort_unstable();
    assert!(started.windows(2).all(|pair| pair[1] - pair[0] >= TimeDelta::milliseconds(500)));
    let looks = *looks.lock().unwrap();
    assert!(looks <= 3 * VISITS, "{looks} looks at the clocks for {VISITS} turns");
}

/// Visits that would wait too long are sent away at once, each with a time of its own.
#[tokio::test]
async fn a_larger_crowd_comes_back_by_appointment() {
    const PLACES: usize = 30;
    let (book, keys) = (Book::default(), [Key::of_address("93.184.216.34".parse().unwrap())]);
    let places: Vec<Place> = std::iter::from_fn(|| book.queue_up(&keys)).take(1_000).collect();
    assert_eq!(places.len(), PLACES, "as many gaps as a connection is kept for");
    let decide = |states: &[ScopeState], now| next_request_at(states, Network::Global, now);
    let mut sent_away = Vec::new();
    for _ in 0..20 {
        let Taken::Crowded { until, scope: Scope::Address } = book.take(&keys, decide).await else {
            panic!("the queue is full")
        };
        sent_away.push(until);
    }
    assert!(sent_away.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::milliseconds(500)));
    assert!(sent_away[0] - clock::now() > TimeDelta::seconds(14));
    drop(places);
    assert!(matches!(book.take(&keys, decide).await, Taken::Go(_)));
}

#[tokio::test]
async fn who_gives_up_leaves_the_queue_to_the_next() {
    let (book, keys) = (Book::default(), [Key::of_address("93.184.216.34".parse().unwrap())]);
    let decide = |states: &[ScopeState], now| next_request_at(states, Network::Global, now);
    let Taken::Go(first) = book.take(&keys, decide).await else { panic!("the address is free") };
    let impatient = tokio::time::timeout(Duration::from_millis(50), book.take(&keys, decide)).await;
    assert!(impatient.is_err(), "the first request is still under way");
    book.finish(&keys, clock::now(), Some(fine(50)));
    drop(first);
    assert!(matches!(book.take(&keys, decide).await, Taken::Go(_)));
}

/// Twenty thousand hosts of one address that all want to be asked: the address keeps its gap, and deciding stays quick.
#[test]
fn a_crowd_on_one_address_keeps_the_gap_and_is_decided_quickly() {
    const HOSTS: usize = 20_000;
    let book = Book::default();
    for index in 0..HOSTS {
        // other addresses that the process has met
        let other = Key::of_address(
            [93, 0, u8::try_from(index / 256).unwrap(), u8::try_from(index % 256).unwrap()].into(),
        );
        book.learn(&other, noon());
    }
    let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
    let mut waiting: BinaryHeap<std::cmp::Reverse<(DateTime<Utc>, usize)>> =
        (0..HOSTS).map(|host| std::cmp::Reverse((noon(), host))).collect();
    let (mut starts, mut took) = (Vec::new(), Vec::new());
    while starts.len() < 10 {
        let std::cmp::Reverse((now, host)) = waiting.pop().unwrap();
        let asked = Instant::now();
        let (pace, claim) = ask(&book, &keys, now);
        took.push(asked.elapsed());
        match (pace, claim) {
            (_, Some(claim)) => {
                starts.push(now);
                book.finish(&keys, now, Some(fine(0)));
                drop(claim);
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
