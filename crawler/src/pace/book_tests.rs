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
    Sample::Fine(Duration::from_millis(ms))
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
        a_minute(&book, &keys, noon() + TimeDelta::minutes(minute), Some(Sample::Trouble));
    }
    let slowest = a_minute(&book, &keys, noon() + TimeDelta::minutes(13), Some(Sample::Trouble));
    assert!(slowest <= 31, "one in two seconds: {slowest}");
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
