//! Tests the cost of robots.txt and response headers: doubling a hostile input at most doubles the allocations, and the largest robots.txt
//! takes a few times its length.

use std::time::Duration;

use allocation_counter::{AllocationInfo, measure};
use chrono::{DateTime, Utc};
use http::header::{AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, LAST_MODIFIED, RETRY_AFTER, VARY};
use http::{HeaderMap, HeaderValue};
use policy::freshness::CacheRecord;
use policy::robots::{BODY_BYTES_MAX, PATH_WORK_MAX, PATHS_WORK_MAX, SHORT_BYTES_MAX};
use policy::{ContentUsage, RobotsFile, RobotsResponse, RobotsVerdict};

/// Maximum ratio of the costs of a doubled and a single input, in tenths: two, plus a margin for containers that grow by powers of two.
const FACTOR_TENTHS_MAX: u64 = 23;
const SLACK_BYTES: u64 = 64 * 1_024;
const SLACK_BLOCKS: u64 = 500;
/// Memory for the largest robots.txt: each rule is kept in normal form, as it was written, and by the matcher.
const PEAK_BYTES_MAX: u64 = 48 * 1_024 * 1_024;
/// Memory of the parsed rules as a multiple of the file's length. The crawler reserves this much for them.
const RULES_FACTOR: i64 = 24;

/// Memory for a robots.txt that is short enough to be parsed on the async runtime.
const SHORT_PEAK_BYTES_MAX: u64 = 4 * 1_024 * 1_024;
const SHORT_TIME_MAX: Duration = Duration::from_millis(50);

type Make = fn(usize) -> String;

const ROBOTS: &[(&str, Make)] = &[
    ("rules", |n| format!("User-agent: *\n{}", numbered(n, |at| format!("Disallow: /{at:06}\n")))),
    ("rules of one letter", |n| format!("User-agent: *\n{}", "Allow:a\n".repeat(n))),
    ("short rules", |n| format!("User-agent: *\n{}", "Allow: /\n".repeat(n))),
    ("rules that end with a dollar", |n| {
        format!("User-agent: *\n{}", numbered(n, |at| format!("Disallow: /{at:06}$\n")))
    }),
    ("rules with stars", |n| {
        format!("User-agent: *\n{}", numbered(n, |at| format!("Disallow: /*a*{at:06}*\n")))
    }),
    ("a long rule of stars", |n| format!("User-agent: *\nDisallow: /{}$\n", "a*".repeat(n))),
    ("groups", |n| "User-agent: *\nDisallow: /a\n\n".repeat(n)),
    ("agents of one group", |n| format!("{}Disallow: /\n", numbered(n, |at| format!("User-agent: a{at}\n")))),
    ("groups for this crawler", |n| "User-agent: agentdex\nDisallow: /a\nCrawl-delay: 1\n".repeat(n)),
    ("comments", |n| "# comment\n".repeat(n)),
    ("empty lines", |n| "\r\n".repeat(n)),
    ("a long line", |n| "x".repeat(n)),
    ("a long line of colons", |n| ":".repeat(n)),
    ("spaces", |n| format!("User-agent{}: *\nDisallow: /", " ".repeat(n))),
    ("Agentmap lines", |n| "Agentmap: https://a.example/a.json\n".repeat(n)),
    ("Sitemap lines", |n| "Sitemap: https://a.example/a.xml\n".repeat(n)),
    ("misspelt lines", |n| "dissallow: /\n".repeat(n)),
    ("delays", |n| "User-agent: *\nCrawl-delay: 1e999\n".repeat(n)),
    ("a long delay", |n| format!("User-agent: *\nCrawl-delay: {}\n", "1".repeat(n))),
    ("escapes", |n| format!("User-agent: *\nDisallow: /{}\n", "%e3%83%84".repeat(n))),
    ("null characters", |n| "\0:\0\n".repeat(n)),
    ("line breaks of some editors", |n| format!("User-agent: *\n{}", "Disallow:a\u{b}".repeat(n))),
    ("colons of full width", |n| "a\u{ff1a}".repeat(n)),
    ("statements on use", |n| format!("User-agent: *\n{}", "Content-Usage: /a train-ai=n\n".repeat(n))),
    ("statements on use of many paths", |n| {
        format!("User-agent: *\n{}", numbered(n, |at| format!("Content-Usage: /{at:06} search=n\n")))
    }),
    ("a long statement on use", |n| format!("User-agent: *\nContent-Usage: {}\n", "a=(b c);d=1, ".repeat(n))),
    ("signals", |n| format!("User-agent: *\n{}", "Content-Signal: ai-train=no\n".repeat(n))),
    ("a long signal", |n| format!("User-agent: *\nContent-Signal: {}\n", "search=yes, ".repeat(n))),
    ("rules with invisible characters", |n| format!("User-agent: *\n{}", "Disallow:a\u{ad}b\n".repeat(n))),
];

fn numbered(n: usize, unit: impl Fn(usize) -> String) -> String {
    (0..n).map(unit).collect()
}

/// Processor time of this thread so far; zero if the system does not report it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default())
}

/// Checks the processor time, which also shows work without allocations. Eight times the input may take twenty times as long, plus a
/// quarter of a second for variations of the machine. Quadratic work would take 64 times as long.
#[track_caller]
fn assert_time_is_linear(name: &str, make: impl Fn(usize) -> String, units: usize, work: impl Fn(&str)) {
    let time = |text: &str| {
        let once = || {
            let start = cpu_time();
            work(text);
            cpu_time().saturating_sub(start)
        };
        once().min(once())
    };
    let (one, eight) = (time(&make(units)), time(&make(8 * units)));
    assert!(eight <= one * 20 + Duration::from_millis(250), "{name}: {one:?} become {eight:?}");
}

#[track_caller]
fn assert_linear(name: &str, single: &AllocationInfo, double: &AllocationInfo) {
    let within = |one: u64, two: u64, slack: u64| 10 * two <= FACTOR_TENTHS_MAX * one + 10 * slack;
    assert!(
        within(single.bytes_total, double.bytes_total, SLACK_BYTES)
            && within(single.count_total, double.count_total, SLACK_BLOCKS),
        "{name}: {} bytes in {} blocks become {} in {}",
        single.bytes_total,
        single.count_total,
        double.bytes_total,
        double.count_total
    );
}

#[test]
fn parsing_robots_allocates_linearly() {
    for (name, make) in ROBOTS {
        for units in [20, 200, 1_000] {
            let cost = |text: String| measure(|| drop(RobotsFile::parse(text.as_bytes(), "agentdex")));
            assert_linear(name, &cost(make(units)), &cost(make(2 * units)));
        }
    }
}

#[test]
fn processor_time_of_robots_grows_linearly() {
    let path = format!("/{}", "a".repeat(500));
    for (name, make) in ROBOTS {
        assert_time_is_linear(name, make, 1_000, |text| {
            drop(RobotsFile::parse(text.as_bytes(), "agentdex").decide(&path));
        });
    }
}

#[test]
fn the_largest_robots_file_has_bounded_memory_and_time() {
    for (name, make) in ROBOTS {
        let per_unit = make(1_000).len() / 1_000 + 1;
        let text = make(BODY_BYTES_MAX / per_unit);
        let start = cpu_time();
        let mut file = None;
        let spent = measure(|| file = Some(RobotsFile::parse(text.as_bytes(), "agentdex")));
        assert!(spent.bytes_max <= PEAK_BYTES_MAX, "{name}: {} MiB", spent.bytes_max / 1_024 / 1_024);
        let factor = spent.bytes_current / i64::try_from(text.len()).unwrap();
        assert!(factor < RULES_FACTOR, "{name}: the rules take {factor} times the bytes of the file");
        let path = format!("/{}", "a".repeat(8_000));
        let decided = measure(|| drop(file.unwrap().decide(&path)));
        assert!(decided.bytes_max < 1_024 * 1_024, "{name}: a decision takes {} bytes", decided.bytes_max);
        let time = cpu_time().saturating_sub(start);
        assert!(cfg!(debug_assertions) || time <= Duration::from_secs(2), "{name}: {time:?}");
    }
}

#[test]
fn a_short_robots_file_has_bounded_memory_and_time() {
    let path = format!("/{}", "a".repeat(2_000));
    for (name, make) in ROBOTS {
        let per_unit = make(1_000).len() / 1_000 + 1;
        let text = make(SHORT_BYTES_MAX / per_unit);
        let start = cpu_time();
        let spent = measure(|| {
            let file = RobotsFile::parse(text.as_bytes(), "agentdex");
            drop(file.decide(&path));
        });
        let time = cpu_time().saturating_sub(start);
        assert!(spent.bytes_max <= SHORT_PEAK_BYTES_MAX, "{name}: {} KiB", spent.bytes_max / 1_024);
        assert!(cfg!(debug_assertions) || time <= SHORT_TIME_MAX, "{name}: {time:?}");
    }
}

/// Files of the largest size whose rules are expensive to compare with the paths below.
const EXPENSIVE: &[(&str, &str)] = &[
    ("short rules with wildcards", "Allow:*b*\n"),
    ("rules with searches that nearly match", "Allow:*aaaaaaaaaaaaaaaab*\n"),
    ("long rules with wildcards", "Allow: /*a*aa*aaa*aaaa*aaaaa*aaaaaaa*aaaaaaaa*b\n"),
    ("rules without wildcards", "Allow:/b\n"),
];

/// The work for any path, and for many paths together, is bounded. A unit of work takes at most a nanosecond in a release build.
#[test]
fn comparing_paths_with_the_largest_robots_file_takes_bounded_time() {
    let seconds = |work: u64| Duration::from_nanos(4 * work);
    for (name, rule) in EXPENSIVE {
        for rules in [1_000, BODY_BYTES_MAX / rule.len()] {
            let text = format!("User-agent: *\n{}", rule.repeat(rules));
            let answer = RobotsResponse::Answered { status: 200, body: Some(text.as_bytes()) };
            let verdict = RobotsVerdict::of(answer, "agentdex");
            for bytes in [10, 300, 3_000, 8_000] {
                let path = format!("/{}", "a".repeat(bytes));
                let start = cpu_time();
                drop(verdict.decide(&path));
                let one = cpu_time().saturating_sub(start);
                drop(verdict.decide_all(&vec![path; 117]));
                let all = cpu_time().saturating_sub(start);
                println!("{name}: {rules} rules, {bytes} bytes: {one:?}, {all:?}");
                let is_bounded = one <= seconds(PATH_WORK_MAX) && all <= seconds(PATHS_WORK_MAX);
                assert!(cfg!(debug_assertions) || is_bounded, "{name}: {one:?}, {all:?}");
            }
        }
    }
}

#[test]
fn parsing_headers_allocates_linearly() {
    let now = DateTime::<Utc>::from_timestamp(1_700_000_000, 0).unwrap();
    let classes: &[(&str, Make)] = &[
        ("directives", |n| numbered(n, |at| format!("d{at}=1, "))),
        ("a repeated directive", |n| "max-age=1, ".repeat(n)),
        ("commas", |n| ",".repeat(n)),
        ("open quotes", |n| "a=\", ".repeat(n)),
        ("escapes", |n| format!("a=\"{}\"", "\\\"".repeat(n))),
        ("a long number", |n| format!("max-age={}", "9".repeat(n))),
        ("inner lists", |n| format!("a=({})", "b ".repeat(n))),
        ("open inner lists", |n| "a=(".repeat(n)),
        ("parameters", |n| format!("a{}", ";b=1".repeat(n))),
        ("statements on use", |n| "train-ai=n, search=yes, ".repeat(n)),
    ];
    for (name, make) in classes {
        for header in [CACHE_CONTROL, VARY, AGE, DATE, EXPIRES, ETAG, LAST_MODIFIED] {
            let cost = |text: String| {
                let mut headers = HeaderMap::new();
                headers.insert(header.clone(), HeaderValue::from_str(&text).unwrap());
                measure(|| {
                    let record = CacheRecord::of(200, &headers, now);
                    let _ = (record.freshness(now), record.stated_lifetime(), record.conditional_headers());
                })
            };
            assert_linear(&format!("{name} in {header}"), &cost(make(500)), &cost(make(1_000)));
        }
        let usage_of = |text: &str| {
            let mut headers = HeaderMap::new();
            for field in ["content-usage", "content-signal"] {
                headers.append(field, HeaderValue::from_str(text).unwrap());
            }
            let _ = (ContentUsage::of_headers(&headers), ContentUsage::too_long_in(&headers));
        };
        let usage = |text: String| measure(|| usage_of(&text));
        assert_linear(&format!("{name} in statements on use"), &usage(make(500)), &usage(make(1_000)));
        assert_time_is_linear(name, make, 500, usage_of);
        let retry = |text: String| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_str(&text).unwrap());
            measure(|| {
                let _ = policy::RetryAfter::of_response(&headers, None, now);
            })
        };
        assert_linear(name, &retry(make(500)), &retry(make(1_000)));
    }
}
