//! Tests of a private cache that revalidates: tables of cases, and invariants with random headers.

use chrono::{TimeDelta, TimeZone};
use proptest::prelude::*;

use super::*;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 1, 12, 0, 0).unwrap()
}

/// The HTTP date this many seconds from now.
fn at(seconds: i64) -> String {
    httpdate::fmt_http_date(SystemTime::from(now() + TimeDelta::seconds(seconds)))
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in lines {
        map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
    }
    map
}

fn record(status: u16, lines: &[(&str, &str)]) -> CacheRecord {
    CacheRecord::of(status, &headers(lines), now())
}

/// Seconds for which the response is fresh. `None` if it is stale immediately.
fn fresh_s(status: u16, lines: &[(&str, &str)]) -> Option<i64> {
    match record(status, lines).freshness(now()) {
        Freshness::Fresh { until } => Some((until - now()).num_seconds()),
        _ => None,
    }
}

#[test]
fn computes_explicit_lifetimes() {
    type Row = (Vec<(&'static str, String)>, Option<i64>);
    let table: Vec<Row> = vec![
        (vec![("cache-control", "max-age=3600".into())], Some(3_600)),
        (vec![("cache-control", "max-age=0".into())], None),
        (vec![("cache-control", "s-maxage=3600".into())], None),
        (vec![("cache-control", "s-maxage=1, max-age=3600".into())], Some(3_600)),
        (vec![("cache-control", "private, max-age=60".into())], Some(60)),
        (vec![("cache-control", "max-age=3600".into()), ("expires", at(-10))], Some(3_600)),
        (vec![("cache-control", "max-age=0".into()), ("expires", at(3_600))], None),
        (vec![("cache-control", "max-age=abc".into()), ("expires", at(3_600))], None),
        (vec![("expires", at(3_600)), ("date", at(0))], Some(3_600)),
        (vec![("expires", at(3_600))], Some(3_600)),
        (vec![("expires", at(3_600)), ("date", at(3_600))], None),
        (vec![("expires", at(7_200)), ("date", at(3_600))], Some(3_600)),
        (vec![("expires", "0".into())], None),
        (vec![("expires", "Thu, 18 Aug 2050 02:01:18".into())], None),
        (vec![("expires", "Thu, 18 Aug 2050 02:01:18 +1000".into())], None),
        (vec![("expires", at(3_600)), ("expires", at(60))], None),
        (vec![("expires", "Wednesday, 01-Jul-26 13:00:00 GMT".into())], Some(3_600)),
        (vec![("expires", "Wed Jul  1 13:00:00 2026".into())], Some(3_600)),
        (vec![("cache-control", "max-age=99999999999999".into())], Some(30 * 86_400)),
        (vec![("expires", "Fri, 31 Dec 9999 23:59:59 GMT".into())], Some(30 * 86_400)),
        (vec![("cache-control", "immutable".into())], Some(86_400)),
        (vec![("cache-control", "foo=\"max-age=3600\"".into())], None),
        (vec![("CACHE-CONTROL", "MaX-aGe=3600".into())], Some(3_600)),
        (
            vec![("cache-control", "max-age=3600".into()), ("vary", "accept, accept-encoding".into())],
            Some(3_600),
        ),
        (vec![("cache-control", "max-age=3600".into()), ("set-cookie", "a=b".into())], Some(3_600)),
        (vec![("cache-control", "max-age=3600, must-revalidate".into())], Some(3_600)),
        (vec![("cache-control", "max-age=3600".into()), ("pragma", "no-cache".into())], Some(3_600)),
        (vec![], None),
    ];
    for (lines, expected) in table {
        let lines: Vec<(&str, &str)> = lines.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(fresh_s(200, &lines), expected, "{lines:?}");
    }
}

#[test]
fn subtracts_the_age_from_the_lifetime() {
    let table = [
        (Some("600"), None, Some(3_000)),
        (Some("3600"), None, None),
        (Some("99999999999999"), None, None),
        (Some("-600"), None, Some(3_600)),
        (Some("600, 7200"), None, Some(3_000)),
        (None, Some(at(-1_200)), Some(2_400)),
        (Some("600"), Some(at(-1_200)), Some(2_400)),
        (None, Some(at(-7_200)), None),
        (None, Some(at(86_400)), Some(3_600)),
        (None, Some("yesterday".to_owned()), Some(3_600)),
    ];
    for (age, date, expected) in table {
        let mut lines = vec![("cache-control", "max-age=3600")];
        lines.extend(age.map(|age| ("age", age)));
        lines.extend(date.as_deref().map(|date| ("date", date)));
        assert_eq!(fresh_s(200, &lines), expected, "{lines:?}");
    }
}

#[test]
fn heuristic_lifetimes_are_at_most_a_day() {
    let modified = |days: i64| at(-days * 86_400);
    let table = [
        (200, modified(5), Some(43_200)),
        (200, modified(1_000), Some(86_400)),
        (404, modified(5), Some(43_200)),
        (410, modified(5), Some(43_200)),
        (200, at(3_600), None),
        (200, "long ago".to_owned(), None),
        (403, modified(5), None),
        (500, modified(5), None),
        (302, modified(5), None),
    ];
    for (status, last_modified, expected) in table {
        assert_eq!(
            fresh_s(status, &[("last-modified", &last_modified)]),
            expected,
            "{status} {last_modified}"
        );
    }
}

#[test]
fn negative_responses_have_the_publishers_lifetime() {
    for status in [404, 410] {
        assert_eq!(fresh_s(status, &[("cache-control", "max-age=600")]), Some(600));
        assert_eq!(fresh_s(status, &[]), None);
    }
    for status in [429, 500, 503] {
        assert_eq!(fresh_s(status, &[("cache-control", "max-age=600")]), None, "{status}");
    }
}

#[test]
fn always_revalidates_no_cache_and_vary_star() {
    use RevalidateReason as Reason;
    let table = [
        (vec![("cache-control", "no-store, max-age=60")], Freshness::NoStore),
        (vec![("cache-control", "max-age=60"), ("cache-control", "NO-STORE")], Freshness::NoStore),
        (vec![("cache-control", "max-age=60, no-cache")], Freshness::MustRevalidate(Reason::NoCache)),
        (vec![("cache-control", "max-age=60, no-cache=\"x\"")], Freshness::MustRevalidate(Reason::NoCache)),
        (vec![("pragma", "no-cache"), ("expires", "0")], Freshness::MustRevalidate(Reason::NoCache)),
        (vec![("cache-control", "max-age=60"), ("vary", "*")], Freshness::MustRevalidate(Reason::VaryStar)),
        (
            vec![("cache-control", "max-age=60"), ("vary", "accept"), ("vary", "x, *")],
            Freshness::MustRevalidate(Reason::VaryStar),
        ),
    ];
    for (lines, expected) in table {
        assert_eq!(record(200, &lines).freshness(now()), expected, "{lines:?}");
    }
}

#[test]
fn freshness_ends_at_the_exact_second_and_tolerates_a_clock_set_back() {
    let record = record(200, &[("cache-control", "max-age=60")]);
    let until = now() + TimeDelta::seconds(60);
    assert_eq!(record.freshness(until - TimeDelta::seconds(1)), Freshness::Fresh { until });
    assert_eq!(record.freshness(until), Freshness::Stale);
    assert_eq!(record.freshness(now() - TimeDelta::hours(1)), Freshness::Fresh { until });
}

#[test]
fn validators_are_sent_back_byte_for_byte() {
    let date = "Tue,  1 Jul 2025 00:00:00 gmt (roughly)";
    for etag in ["\"abc\"", "W/\"abc\"", "abc", "\"a,b\"", "\"\"", "w/'x'"] {
        let sent = record(200, &[("etag", etag), ("last-modified", date)]).conditional_headers();
        assert_eq!(sent.get(IF_NONE_MATCH).unwrap().as_bytes(), etag.as_bytes());
        assert_eq!(sent.get(IF_MODIFIED_SINCE).unwrap().as_bytes(), date.as_bytes());
    }
    let mut raw = HeaderMap::new();
    raw.insert(ETAG, HeaderValue::from_bytes(b"\"caf\xe9 \xff\"").unwrap());
    let stored = serde_json::to_string(&CacheRecord::of(200, &raw, now())).unwrap();
    let back: CacheRecord = serde_json::from_str(&stored).unwrap();
    assert_eq!(back.conditional_headers().get(IF_NONE_MATCH).unwrap().as_bytes(), b"\"caf\xe9 \xff\"");
    assert!(record(200, &[("cache-control", "max-age=5")]).conditional_headers().is_empty());
}

#[test]
fn stores_no_validator_under_no_store() {
    let record = record(200, &[("cache-control", "no-store"), ("etag", "\"x\""), ("last-modified", &at(-5))]);
    assert!(record.conditional_headers().is_empty());
    assert_eq!(record.retention(), Retention::HashOnly);
    assert!(!serde_json::to_string(&record).unwrap().contains("\\\"x\\\""));
}

#[test]
fn a_too_long_header_is_not_a_validator_and_ends_freshness() {
    let long = "x".repeat(VALUE_BYTES_MAX + 1);
    assert!(record(200, &[("etag", &long)]).conditional_headers().is_empty());
    assert_eq!(fresh_s(200, &[("cache-control", "max-age=60"), ("vary", &long)]), None);
}

#[test]
fn a_304_renews_the_stored_response() {
    let stored = record(
        200,
        &[
            ("etag", "\"v1\""),
            ("last-modified", &at(-86_400)),
            ("cache-control", "max-age=60"),
            ("age", "50"),
            ("date", &at(-50)),
        ],
    );
    let then = now() + TimeDelta::hours(2);
    let renew = |lines: &[(&str, &str)]| match on_not_modified(
        Some(&stored),
        RequestKind::Conditional,
        &headers(lines),
        then,
    ) {
        NotModified::Valid(record) => record,
        NotModified::Repeat(problem) => panic!("{problem}"),
    };
    let plain = renew(&[]);
    assert_eq!(plain.freshness(then), Freshness::Fresh { until: then + TimeDelta::seconds(60) });
    assert_eq!(plain.etag(), Some("\"v1\""));
    let longer = renew(&[("cache-control", "max-age=600"), ("etag", "W/\"v1\"")]);
    assert_eq!(longer.freshness(then), Freshness::Fresh { until: then + TimeDelta::seconds(600) });
    assert_eq!(longer.etag(), Some("W/\"v1\""));
    assert_eq!(longer.last_modified(), stored.last_modified());
    assert_eq!(renew(&[("cache-control", "no-store")]).etag(), None);
}

#[test]
fn repeats_the_request_without_validators_after_an_unusable_304() {
    let stored = record(200, &[("etag", "\"v1\"")]);
    let dated = record(200, &[("last-modified", &at(-60))]);
    let modified = at(-30);
    let table = [
        (Some(&stored), RequestKind::Unconditional, vec![], NotModifiedProblem::NotConditional),
        (None, RequestKind::Conditional, vec![], NotModifiedProblem::NothingStored),
        (
            Some(&stored),
            RequestKind::Conditional,
            vec![("etag", "\"v2\"")],
            NotModifiedProblem::OtherValidator,
        ),
        (
            Some(&dated),
            RequestKind::Conditional,
            vec![("last-modified", modified.as_str())],
            NotModifiedProblem::OtherValidator,
        ),
    ];
    for (stored, kind, lines, problem) in table {
        let decision = on_not_modified(stored, kind, &headers(&lines), now());
        assert_eq!(decision, NotModified::Repeat(problem));
    }
}

#[test]
fn stated_lifetimes_differ_from_heuristic_ones() {
    let table = [
        (vec![("cache-control", "max-age=600")], Some(600)),
        (vec![("cache-control", "max-age=600"), ("age", "100")], Some(500)),
        (vec![("cache-control", "no-store")], Some(0)),
        (vec![("cache-control", "no-cache")], Some(0)),
        (vec![("expires", "0")], Some(0)),
        (vec![("last-modified", "Tue, 01 Jul 2025 00:00:00 GMT")], None),
        (vec![], None),
    ];
    for (lines, expected) in table {
        assert_eq!(record(200, &lines).stated_lifetime().map(|left| left.as_secs()), expected, "{lines:?}");
    }
}

fn any_headers() -> impl Strategy<Value = HeaderMap> {
    let name = proptest::sample::select(STORED_HEADERS.to_vec());
    let known = proptest::sample::select(vec![
        "max-age=60",
        "no-cache",
        "no-store",
        "max-age=99999999999999999999",
        "immutable",
        "*",
        "accept",
        "0",
        "86400",
        "Wed, 01 Jul 2026 11:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "W/\"a\"",
    ]);
    let value = prop_oneof![
        known.prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(prop_oneof![32_u8..127, 128_u8..=255], 0..30),
    ];
    proptest::collection::vec((name, value), 0..8).prop_map(|lines| {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(name, HeaderValue::from_bytes(&value).unwrap());
        }
        map
    })
}

proptest! {
    /// Freshness lasts at most 30 days, and a stale response stays stale.
    #[test]
    fn freshness_is_bounded_and_ends_once(headers in any_headers(), status in 100_u16..600, first in 0_i64..1 << 34, more in 0_i64..1 << 34) {
        let record = CacheRecord::of(status, &headers, now());
        let earlier = now() + TimeDelta::seconds(first);
        if let Freshness::Fresh { until } = record.freshness(earlier) {
            prop_assert!(until <= now() + TimeDelta::days(30));
        } else {
            let fresh_again = matches!(record.freshness(earlier + TimeDelta::seconds(more)), Freshness::Fresh { .. });
            prop_assert!(!fresh_again);
        }
    }

    /// Records survive serialization, with validators of any bytes that a header may contain.
    #[test]
    fn records_survive_serialization(headers in any_headers()) {
        let record = CacheRecord::of(200, &headers, now());
        let back: CacheRecord = serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        prop_assert_eq!(&back, &record);
        if record.retention() == Retention::Everything && headers.get(ETAG).is_some_and(|tag| !tag.is_empty()) {
            let conditional = back.conditional_headers();
            prop_assert_eq!(conditional.get(IF_NONE_MATCH), headers.get(ETAG));
        }
    }

    /// A 304 never restores a validator that no-store forbids to store.
    #[test]
    fn a_304_never_restores_validators_under_no_store(stored in any_headers(), mut sent in any_headers()) {
        sent.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let stored = CacheRecord::of(200, &stored, now());
        if let NotModified::Valid(record) = on_not_modified(Some(&stored), RequestKind::Conditional, &sent, now()) {
            prop_assert!(record.conditional_headers().is_empty());
        }
    }
}

#[test]
fn a_304_keeps_the_usage_preferences_of_the_response() {
    let headers = |lines: &[(&'static str, &str)]| {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    };
    let now = DateTime::UNIX_EPOCH;
    let first =
        headers(&[("etag", "\"a\""), ("content-usage", "train-ai=n"), ("content-signal", "search=yes")]);
    let stored = CacheRecord::of(200, &first, now);
    let after = |lines: &[(&'static str, &str)]| match on_not_modified(
        Some(&stored),
        RequestKind::Conditional,
        &headers(lines),
        now,
    ) {
        NotModified::Valid(record) => record.usage(),
        NotModified::Repeat(problem) => panic!("{problem}"),
    };
    assert_eq!(after(&[("etag", "\"a\"")]), ContentUsage::of_headers(&first));
    let repeated = [("content-usage", "train-ai=y")];
    let both = headers(&[repeated[0], ("content-signal", "search=yes")]);
    assert_eq!(after(&repeated), ContentUsage::of_headers(&both));
    let long = format!("ai-train=no, {}", "x=yes, ".repeat(1_000));
    let stored = CacheRecord::of(200, &headers(&[("content-signal", &long)]), now);
    assert_eq!(stored.usage(), ContentUsage::of_headers(&headers(&[("content-signal", &long)])));
}
