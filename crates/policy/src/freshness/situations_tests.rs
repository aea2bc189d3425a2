//! The cases of http-tests/cache-tests that apply to a private cache that revalidates, as tables.
//!
//! Each row contains the headers of the response and the lifetime of the copy. Where the suite allows several behaviours, the copy is
//! revalidated (docs/POLITENESS.md).

use chrono::{TimeDelta, TimeZone};

use super::*;

const HOUR_S: i64 = 3_600;
/// The longest lifetime of a copy.
const LONGEST_S: i64 = 30 * 86_400;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 1, 12, 0, 0).unwrap()
}

fn at(seconds: i64) -> String {
    httpdate::fmt_http_date(SystemTime::from(now() + TimeDelta::seconds(seconds)))
}

/// Lines of `name: value`.
fn headers(lines: &str) -> HeaderMap {
    let mut map = HeaderMap::new();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or_else(|| (line.trim_end_matches(':'), ""));
        map.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    map
}

/// The lifetime of a copy in seconds; 0 if it is stale immediately.
fn lifetime_s(status: u16, lines: &str) -> i64 {
    match CacheRecord::of(status, &headers(lines), now()).freshness(now()) {
        Freshness::Fresh { until } => (until - now()).num_seconds(),
        _ => 0,
    }
}

#[track_caller]
fn check(rows: &[(&str, i64)]) {
    for (lines, expected) in rows {
        assert_eq!(lifetime_s(200, lines), *expected, "{lines:?}");
    }
}

#[test]
fn parses_cache_control_strictly() {
    check(&[
        ("cache-control: max-age=1800, max-age=1", 1),
        ("cache-control: max-age=1800\ncache-control: max-age=1", 1),
        ("cache-control: max-age=1, max-age=1800", 1_800),
        ("cache-control: max-age=1\ncache-control: max-age=1800", 1_800),
        ("cache-control: max-age=\"3600\"", HOUR_S),
        ("cache-control: extension=\"max-age=3600\", max-age=1", 1),
        ("cache-control: max-age=1, extension=\"max-age=3600\"", 1),
        ("cache-control: max-age =3600", 0),
        ("cache-control: max-age= 3600", 0),
        ("cache-control: max-age=003600", HOUR_S),
        ("cache-control: max-age='3600'", 0),
        ("cache-control: max-age=3600.0", 0),
        ("cache-control: max-age=3600.5", 0),
        ("cache-control: max-age=a3600", 0),
        ("cache-control: max-age=3600a", 0),
        ("cache-control: max-age=-3600", 0),
        ("cache-control: MAX-AGE=3600", HOUR_S),
        ("cache-control: max-age=3600, something", HOUR_S),
    ]);
}

#[test]
fn computes_lifetimes_from_max_age_expires_and_age() {
    let hour = at(HOUR_S);
    check(&[
        ("", 0),
        ("cache-control: max-age=3600", HOUR_S),
        ("cache-control: max-age=0", 0),
        ("cache-control: max-age=2147483647", LONGEST_S),
        ("cache-control: max-age=2147483648", LONGEST_S),
        ("cache-control: max-age=2147483649", LONGEST_S),
        ("cache-control: max-age=99999999999", LONGEST_S),
        ("cache-control: max-age=3600\nage: 7200", 0),
        ("cache-control: max-age=3600\nexpires: Thu, 01 Jan 1970 00:00:00 GMT", HOUR_S),
        ("cache-control: max-age=3600\nexpires: 0", HOUR_S),
        // directives for shared caches
        ("cache-control: s-maxage=1, max-age=3600", HOUR_S),
        ("cache-control: private, max-age=3600", HOUR_S),
        ("cache-control: s-maxage=3600", 0),
    ]);
    check(&[
        (&format!("expires: {hour}"), HOUR_S),
        (&format!("cache-control: max-age=0\nexpires: {hour}"), 0),
        (&format!("expires: {}", at(-60)), 0),
        (&format!("expires: {}\ndate: {}", at(0), at(0)), 0),
        ("expires: 0", 0),
        ("expires: tomorrow", 0),
        (&format!("expires: {hour}\ndate: {}", at(-2 * HOUR_S)), HOUR_S),
        (&format!("expires: {hour}\nage: {}", 2 * HOUR_S), 0),
    ]);
}

#[test]
fn accepts_dates_in_three_forms_only() {
    check(&[
        ("expires: Wed, 01 Jul 2026 13:00:00 GMT", HOUR_S),
        ("expires: Wednesday, 01-Jul-26 13:00:00 GMT", HOUR_S),
        ("expires: Wed Jul  1 13:00:00 2026", HOUR_S),
        ("expires: Tue, 19 Jan 2038 14:14:08 GMT", LONGEST_S),
        ("expires: Sun, 21 Nov 2286 04:46:39 GMT", LONGEST_S),
        ("expires: Wed, 01 Jul 2026 13:00:00 UTC", 0),
        ("expires: Wed, 01 Jul 2026 13:00:00 AEST", 0),
        ("expires: Wed, 01 Jul 26 13:00:00 GMT", 0),
        ("expires: Wed 01 Jul 2026 13:00:00 GMT", 0),
        ("expires: Wed,  01  Jul  2026  13:00:00  GMT", 0),
        ("expires: Wed, 01-Jul-2026 13:00:00 GMT", 0),
        ("expires: Wed, 01 Jul 2026 13.00.00 GMT", 0),
        ("expires: Wed, 01 Jul 2026 3:00:00 GMT", 0),
    ]);
}

#[test]
fn ignores_ages_that_are_not_numbers() {
    let aged = |age: &str| lifetime_s(200, &format!("cache-control: max-age=3600\n{age}"));
    for (age, expected) in [
        ("age: abc", HOUR_S),
        ("age: -7200", HOUR_S),
        ("age: 7200.0", HOUR_S),
        ("age: 2147483647", 0),
        ("age: 2147483648", 0),
        ("age: 99999999999", 0),
        ("age: 7200, 0", 0),
        ("age: 0, 7200", HOUR_S),
        ("age: 7200\nage: 0", 0),
        ("age: 0\nage: 0", HOUR_S),
    ] {
        assert_eq!(aged(age), expected, "{age:?}");
    }
}

#[test]
fn only_cacheable_statuses_have_a_lifetime() {
    for status in [200, 203, 204, 404, 410] {
        assert_eq!(lifetime_s(status, "cache-control: max-age=3600"), HOUR_S, "{status}");
    }
    // not a representation of the resource
    for status in [400, 403, 429, 500, 502, 503, 504, 599] {
        assert_eq!(lifetime_s(status, "cache-control: max-age=3600"), 0, "{status}");
    }
    let heuristic = format!("last-modified: {}", at(-10 * HOUR_S));
    for (status, expected) in
        [(200, HOUR_S), (203, HOUR_S), (404, HOUR_S), (410, HOUR_S), (201, 0), (202, 0), (403, 0), (599, 0)]
    {
        assert_eq!(lifetime_s(status, &heuristic), expected, "{status}");
    }
}

#[test]
fn revalidates_responses_that_require_it() {
    check(&[
        ("cache-control: no-store, max-age=3600", 0),
        ("cache-control: No-StOrE, max-age=3600", 0),
        ("cache-control: no-cache, max-age=3600", 0),
        ("cache-control: No-CaChE, max-age=3600", 0),
        ("cache-control: no-cache=\"a\", max-age=3600", 0),
        ("cache-control: must-revalidate, max-age=3600", HOUR_S),
        ("cache-control: immutable, max-age=3600", HOUR_S),
        ("cache-control: max-age=3600\npragma: no-cache", HOUR_S),
        ("cache-control: max-age=3600\npragma: something", HOUR_S),
        ("cache-control: max-age=3600\nset-cookie: a=b", HOUR_S),
        ("cache-control: max-age=3600\ncontent-disposition: attachment; filename=a", HOUR_S),
        ("cache-control: max-age=3600\nvary: *", 0),
        ("cache-control: max-age=3600\nvary: *, *", 0),
        ("cache-control: max-age=3600\nvary: *\nvary: *", 0),
        ("cache-control: max-age=3600\nvary: , *", 0),
        ("cache-control: max-age=3600\nvary:\nvary: *", 0),
        ("cache-control: max-age=3600\nvary: *, accept", 0),
        ("cache-control: max-age=3600\nvary: accept, *", 0),
        // all requests of the crawler carry the same headers
        ("cache-control: max-age=3600\nvary: accept, accept-language", HOUR_S),
    ]);
}

/// Extensions that allow stale responses have no effect: a stale copy is requested again.
#[test]
fn stale_responses_are_not_used() {
    for extension in
        ["stale-while-revalidate=3600", "stale-if-error=3600", "must-revalidate", "proxy-revalidate"]
    {
        let record = CacheRecord::of(200, &headers(&format!("cache-control: max-age=2, {extension}")), now());
        let later = now() + TimeDelta::seconds(3);
        assert!(!matches!(record.freshness(later), Freshness::Fresh { .. }), "{extension}");
    }
}

#[test]
fn both_validators_are_sent_back_unchanged() {
    let modified = at(-HOUR_S);
    for etag in ["\"a\"", "W/\"a\"", "w/\"a\"", "W\\\"a\"", "W\"a\"", "a", "\"a, b\"", "\"\""] {
        let lines = format!("etag: {etag}\nlast-modified: {modified}\ncache-control: max-age=1");
        let sent = CacheRecord::of(200, &headers(&lines), now()).conditional_headers();
        assert_eq!(sent.get(IF_NONE_MATCH).map(HeaderValue::as_bytes), Some(etag.as_bytes()));
        assert_eq!(sent.get(IF_MODIFIED_SINCE).map(HeaderValue::as_bytes), Some(modified.as_bytes()));
    }
    let dated = CacheRecord::of(200, &headers("last-modified: Wednesday, 01-Jul-26 10:00:00 GMT"), now());
    let sent = dated.conditional_headers();
    assert_eq!(sent.get(IF_MODIFIED_SINCE).unwrap(), "Wednesday, 01-Jul-26 10:00:00 GMT");
    assert!(sent.get(IF_NONE_MATCH).is_none());
}

/// Headers of a 304 replace stored ones; other stored headers are kept.
#[test]
fn a_304_updates_the_headers_that_it_contains() {
    let stored = CacheRecord::of(
        200,
        &headers(&format!("etag: \"a\"\nlast-modified: {}\ncache-control: max-age=60", at(-86_400))),
        now(),
    );
    let later = now() + TimeDelta::hours(1);
    let expires = httpdate::fmt_http_date(SystemTime::from(later + TimeDelta::seconds(900)));
    for (lines, fresh_s) in [
        ("etag: \"a\"", 60),
        ("etag: \"a\"\ncache-control: max-age=3600", HOUR_S),
        ("cache-control: no-cache", 0),
        ("cache-control: max-age=5\nage: 10", 0),
        (&format!("cache-control: public\nexpires: {expires}"), 900),
    ] {
        let renewed = match on_not_modified(Some(&stored), RequestKind::Conditional, &headers(lines), later) {
            NotModified::Valid(record) => record,
            NotModified::Repeat(problem) => panic!("{lines:?}: {problem}"),
        };
        let lifetime = match renewed.freshness(later) {
            Freshness::Fresh { until } => (until - later).num_seconds(),
            _ => 0,
        };
        assert_eq!(lifetime, fresh_s, "{lines:?}");
        assert_eq!((renewed.etag(), renewed.last_modified()), (Some("\"a\""), stored.last_modified()));
    }
}
