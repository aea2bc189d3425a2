//! Gaps, requests in flight, budgets, Retry-After.

use std::time::Duration;

use agentdex_tests::audit::{Policy, Rule};

use crate::crafted::{BEGAN_S, Crafted, HOUR_US, SECOND_US};

#[test]
fn requires_the_configured_delay_to_the_microsecond() {
    let policy = Policy::with_delay(Duration::from_secs(1));
    Crafted::new().get("/a").get("/b").keeps(&policy);
    Crafted::new().get("/a").hurry(SECOND_US).get("/b").keeps(&policy);
    Crafted::new().get("/a").hurry(SECOND_US - 1).get("/b").breaks(Rule::AuthorityGap, 1, &policy);
}

#[test]
fn the_delay_applies_to_each_authority_separately() {
    let policy = Policy::with_delay(Duration::from_secs(1));
    Crafted::new().hurry(10).get_on("other.example", "/robots.txt").keeps(&policy);
}

#[test]
fn requires_the_crawl_delay_from_the_first_robots_response() {
    let slow = || Crafted::empty().robots("User-agent: *\nCrawl-delay: 5\n");
    slow().hurry(5 * SECOND_US).get("/a").keeps(&Policy::default());
    slow().get("/a").breaks(Rule::AuthorityGap, 1, &Policy::default());
    let longer = Policy::with_delay(Duration::from_secs(6));
    slow().hurry(5 * SECOND_US).get("/a").breaks(Rule::AuthorityGap, 1, &longer);
}

#[test]
fn tolerates_a_late_end_of_an_aborted_response() {
    let policy = Policy::with_delay(Duration::from_millis(100));
    let broken_off = |gap_us| {
        Crafted::new()
            .get("/")
            .change(|hit| {
                (hit.complete, hit.ended_us) = (false, hit.ended_us + SECOND_US / 10);
            })
            .hurry(gap_us)
            .get("/a")
    };
    broken_off(99_000).keeps(&policy);
    broken_off(40_000).breaks(Rule::AuthorityGap, 1, &policy);
}

#[test]
fn requires_one_request_at_a_time_per_authority() {
    let policy = Policy::default();
    Crafted::new().get("/a").hurry(0).get("/b").keeps(&policy);
    Crafted::new().get("/a").overlap().get("/b").breaks(Rule::InFlight, 1, &policy);
}

#[test]
fn requires_a_gap_over_all_hosts_of_a_site() {
    let policy = Policy { site_gap: Some(Duration::from_secs(1)), ..Policy::default() };
    let spread = |host, gap_us| Crafted::new().hurry(gap_us).get_on(host, "/robots.txt");
    spread("www.site.example", SECOND_US).keeps(&policy);
    spread("www.site.example", SECOND_US / 2).breaks(Rule::SiteGap, 1, &policy);
    spread("www.other.example", SECOND_US / 2).keeps(&policy);
}

#[test]
fn requires_a_gap_over_all_sites_of_an_address() {
    let policy = Policy { address_gap: Some(Duration::from_millis(500)), ..Policy::default() };
    let near = Crafted::new().hurry(SECOND_US / 4).get_on("other.example", "/robots.txt");
    near.breaks(Rule::AddressGap, 1, &policy);
    let elsewhere = near.change(|hit| hit.server = "127.0.0.2:8443".parse().expect("an address"));
    elsewhere.keeps(&policy);
}

#[test]
fn limits_a_private_suffix_over_all_its_sites() {
    let policy = |late_ms| Policy {
        suffix_gap: Some(Duration::from_millis(500)),
        arrival_delay: Duration::from_millis(late_ms),
        ..Policy::default()
    };
    // each request starts one gap after the previous response, and none arrives late
    let many = |gap_us: u64, suffix: &str| {
        (0..9).fold(Crafted::empty(), |log, index| {
            log.hurry(gap_us).get_on(&format!("site{index}.{suffix}"), "/robots.txt")
        })
    };
    many(SECOND_US / 2, "github.io").keeps(&policy(0));
    many(SECOND_US / 4, "example").keeps(&policy(0));
    many(SECOND_US / 4, "github.io").breaks(Rule::SuffixGap, 8, &policy(0));
    let report = many(SECOND_US / 4, "github.io").check(&policy(500));
    assert!(
        (5..8).contains(&report.count(Rule::SuffixGap)),
        "a rate that is too high does not count as a late arrival: {report}"
    );
    let late = || {
        let log = Crafted::empty().get_on("a.github.io", "/robots.txt").hurry(SECOND_US);
        let log = log.get_on("b.github.io", "/robots.txt").hurry(SECOND_US / 10);
        log.get_on("c.github.io", "/robots.txt")
    };
    late().keeps(&policy(500));
    late().breaks(Rule::SuffixGap, 1, &policy(100));
}

#[test]
fn sites_and_addresses_limit_requests_in_flight() {
    let overlapping = || Crafted::new().overlap().get_on("www.site.example", "/robots.txt");
    overlapping().keeps(&Policy { site_in_flight_max: Some(2), ..Policy::default() });
    let one_each = Policy { site_in_flight_max: Some(1), ..Policy::default() };
    overlapping().breaks(Rule::SiteInFlight, 1, &one_each);
    let below = |name: &str| {
        Crafted::empty().get_on("a.github.io", "/robots.txt").overlap().get_on(name, "/robots.txt")
    };
    let one_a_suffix = Policy { suffix_in_flight_max: Some(1), ..Policy::default() };
    below("b.github.io").breaks(Rule::SuffixInFlight, 1, &one_a_suffix);
    below("b.example").keeps(&one_a_suffix);
    let one_an_address = Policy { address_in_flight_max: Some(1), ..Policy::default() };
    overlapping().breaks(Rule::AddressInFlight, 1, &one_an_address);
}

#[test]
fn forbids_requests_during_a_retry_after_in_seconds() {
    let policy = Policy { passes_began_us: vec![HOUR_US / 2], ..Policy::default() };
    for status in [200, 301, 304, 404, 429, 500, 503] {
        let refused = || {
            let log = Crafted::new().get("/a").status(status);
            log.response(|response| response.retry_after = Some("3600".to_owned()))
        };
        refused().hurry(HOUR_US).get("/a").keeps(&policy);
        refused().hurry(HOUR_US - 1).get("/a").breaks(Rule::RetryAfter, 1, &policy);
    }
}

#[test]
fn retry_after_applies_to_all_hosts_of_a_site_and_is_never_shortened() {
    let asked = |seconds: &str, log: Crafted| {
        let seconds = Some(seconds.to_owned());
        log.status(503).response(|response| response.retry_after = seconds)
    };
    let refused = || asked("3600", Crafted::new().get("/a"));
    refused().get_on("www.site.example", "/robots.txt").breaks(Rule::RetryAfter, 1, &Policy::default());
    refused().get_on("other.example", "/robots.txt").keeps(&Policy::default());
    let policy = Policy { passes_began_us: vec![HOUR_US], ..Policy::default() };
    let shorter = asked("1", refused().hurry(HOUR_US / 2).get("/b"));
    let report = shorter.hurry(HOUR_US / 4).get("/c").check(&policy);
    assert_eq!(report.count(Rule::RetryAfter), 2, "{report}");
}

#[test]
fn retry_after_of_a_host_of_a_customer_applies_to_this_host_alone() {
    const TENANT: &str = "tenant.site.example";
    let refused = || {
        let log = Crafted::new().get_on(TENANT, "/robots.txt").status(429);
        log.response(|response| response.retry_after = Some("3600".to_owned()))
    };
    let policy = Policy { passes_began_us: vec![HOUR_US / 2], ..Policy::default() };
    refused().get("/a").keeps(&policy);
    refused().get_on("other.site.example", "/robots.txt").keeps(&policy);
    refused().hurry(HOUR_US / 2).get_on(TENANT, "/robots.txt").breaks(Rule::RetryAfter, 1, &policy);
}

#[test]
fn retry_after_as_a_date_counts_from_the_response() {
    let policy = Policy { passes_began_us: vec![HOUR_US / 2], ..Policy::default() };
    let at = std::time::UNIX_EPOCH + Duration::from_secs(BEGAN_S + 3_600);
    let refused = || {
        let log = Crafted::new().get("/a").status(503);
        log.response(|response| response.retry_after = Some(httpdate::fmt_http_date(at)))
    };
    refused().wait(HOUR_US).get("/a").keeps(&policy);
    refused().wait(HOUR_US / 2).get("/a").breaks(Rule::RetryAfter, 1, &policy);
    let past = Crafted::new().get("/a").status(503);
    past.response(|response| response.retry_after = Some("Sat, 01 Jan 2000 00:00:00 GMT".to_owned()))
        .get("/b")
        .keeps(&policy);
}

#[test]
fn clamps_retry_after_to_a_week() {
    let policy = Policy { passes_began_us: vec![HOUR_US], ..Policy::default() };
    let refused = || {
        let log = Crafted::new().get("/a").status(503);
        log.response(|response| response.retry_after = Some("1000000000000".to_owned()))
    };
    refused().hurry(7 * 24 * HOUR_US).robots("").hurry(0).get("/a").keeps(&policy);
    let report = refused().hurry(6 * 24 * HOUR_US).robots("").check(&policy);
    assert_eq!(report.count(Rule::RetryAfter), 1, "{report}");
}

#[test]
fn limits_requests_per_authority_and_day() {
    let policy = Policy { authority_budget: Some(3), ..Policy::default() };
    let three = || Crafted::new().get("/a").get("/b");
    three().keeps(&policy);
    three().get("/c").breaks(Rule::Budget, 1, &policy);
    three().wait(23 * HOUR_US).get("/c").breaks(Rule::Budget, 1, &policy);
    let next_day = Policy { passes_began_us: vec![HOUR_US], ..policy };
    three().wait(24 * HOUR_US).robots("").get("/c").keeps(&next_day);
}

#[test]
fn limits_requests_per_site_over_all_hosts() {
    let policy = Policy { site_budget: Some(3), ..Policy::default() };
    let three = || Crafted::new().get("/a").get_on("www.site.example", "/robots.txt");
    three().keeps(&policy);
    three().get_on("www.site.example", "/b").breaks(Rule::Budget, 1, &policy);
    three().get_on("other.example", "/robots.txt").keeps(&policy);
}
