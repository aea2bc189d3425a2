//! The fuzz targets for robots.txt and for response headers.
//!
//! `tests/fuzz_targets.rs` also runs these functions, on the regressions and on seeded mutations, without a fuzzer.

use chrono::DateTime;
use http::{HeaderMap, HeaderName, HeaderValue};
use policy::freshness::CacheRecord;
use policy::{ContentUsage, RetryAfter, RobotsDecision, RobotsFile};

pub type Target = (&'static str, fn(&[u8]));

pub const TARGETS: &[Target] = &[("robots", robots), ("headers", headers)];

/// Paths for which decisions are made.
const PATHS: &[&str] =
    &["/", "/robots.txt", "/.well-known/agent.json", "/a/b.php?x=1&y=%20", "/ä/%E3%83%84", "//", "/*$"];

/// Parses one robots.txt and makes decisions on several paths.
pub fn robots(data: &[u8]) {
    let file = RobotsFile::parse(data, "agentdex");
    let again = RobotsFile::parse(data, "agentdex");
    assert!(file.notes().len() <= 50, "more notes than the cap");
    assert!(file.agentmaps().len() <= 100, "more lines than the cap");
    for path in PATHS {
        let decision = file.decide(path);
        assert_eq!(decision, again.decide(path), "two readings differ on {path}");
        let free = *path == "/robots.txt";
        assert!(
            !free || matches!(decision, RobotsDecision::Allowed(None)),
            "robots.txt itself is always allowed"
        );
    }
}

/// Headers that affect freshness, use and delays.
const HEADERS: &[&str] = &[
    "cache-control",
    "vary",
    "age",
    "date",
    "expires",
    "etag",
    "last-modified",
    "retry-after",
    "content-usage",
    "content-signal",
];

/// Uses each line as the value of the next header, and then all of the data as the value of each header.
pub fn headers(data: &[u8]) {
    let mut by_line = HeaderMap::new();
    for (name, line) in HEADERS.iter().cycle().zip(data.split(|byte| *byte == b'\n')).take(64) {
        append(&mut by_line, name, line);
    }
    let mut whole = HeaderMap::new();
    for name in HEADERS {
        append(&mut whole, name, &data[..data.len().min(8_192)]);
    }
    let now = DateTime::from_timestamp(1_700_000_000, 0).expect("a valid time");
    for headers in [by_line, whole] {
        let read = || {
            let record = CacheRecord::of(200, &headers, now);
            let freshness = record.freshness(now);
            let _ = (record.stated_lifetime(), record.conditional_headers());
            let usage = (ContentUsage::of_headers(&headers), ContentUsage::too_long_in(&headers));
            format!("{freshness:?} {usage:?} {:?}", RetryAfter::of_response(&headers, None, now))
        };
        assert_eq!(read(), read(), "two readings differ");
    }
}

fn append(headers: &mut HeaderMap, name: &'static str, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        headers.append(HeaderName::from_static(name), value);
    }
}
