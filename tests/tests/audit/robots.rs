//! robots.txt: fetched first, obeyed, recent, and never permissive after a failure.

use agentdex_tests::audit::{Policy, Rule};

use crate::crafted::{Crafted, HOUR_US};

#[test]
fn requires_robots_first_on_every_authority() {
    let policy = Policy::default();
    Crafted::new().get("/agent.json").keeps(&policy);
    Crafted::empty().get("/agent.json").robots("").breaks(Rule::RobotsFirst, 1, &policy);
    let other_host = Crafted::new().get_on("www.site.example", "/agent.json");
    other_host.breaks(Rule::RobotsFirst, 1, &policy);
}

#[test]
fn reports_a_request_before_the_end_of_the_robots_response() {
    let report = Crafted::new().overlap().get("/agent.json").check(&Policy::default());
    assert_eq!((report.count(Rule::RobotsFirst), report.count(Rule::InFlight)), (1, 1), "{report}");
}

#[test]
fn reports_the_use_of_a_robots_copy_older_than_a_day() {
    let policy = Policy { passes_began_us: vec![HOUR_US], ..Policy::default() };
    Crafted::new().wait(23 * HOUR_US).get("/agent.json").keeps(&policy);
    Crafted::new().wait(25 * HOUR_US).get("/agent.json").breaks(Rule::RobotsStale, 1, &policy);
    Crafted::new().wait(25 * HOUR_US).robots("").get("/agent.json").keeps(&policy);
    let confirmed = Crafted::new().wait(25 * HOUR_US).get("/robots.txt").status(304).get("/agent.json");
    confirmed.keeps(&policy);
    let confirmed = Crafted::new().wait(25 * HOUR_US).get("/robots.txt").status(304).get("/private/x");
    confirmed.breaks(Rule::Disallowed, 1, &policy);
}

#[test]
fn a_robots_copy_counts_for_one_request_after_a_long_delay() {
    let policy = Policy { passes_began_us: vec![HOUR_US], ..Policy::default() };
    let after = |delay: u64, hours: u64| {
        let robots = format!("User-agent: *\nCrawl-delay: {delay}\n");
        Crafted::empty().robots(&robots).wait(hours * HOUR_US).get("/agent.json")
    };
    after(86_400, 30).keeps(&policy);
    after(86_400, 49).breaks(Rule::RobotsStale, 1, &policy);
    after(3_700, 30).keeps(&policy);
    after(3_700, 49).breaks(Rule::RobotsStale, 1, &policy);
    after(60, 25).breaks(Rule::RobotsStale, 1, &policy);
    after(86_400, 25).wait(25 * HOUR_US).get("/agents.json").breaks(Rule::RobotsStale, 1, &policy);
}

#[test]
fn reports_disallowed_requests() {
    let policy = Policy::default();
    Crafted::new().get("/private/agent.json").breaks(Rule::Disallowed, 1, &policy);
    let rules = "User-agent: agentdex\nDisallow: /a\nAllow: /agent.json$\n\nUser-agent: *\nDisallow: /\n";
    Crafted::empty().robots(rules).get("/agent.json").get("/other").keeps(&policy);
    Crafted::empty().robots(rules).get("/agents.json").breaks(Rule::Disallowed, 1, &policy);
    Crafted::empty().robots(rules).get("/agent.json?x").breaks(Rule::Disallowed, 1, &policy);
}

/// agentdex requests documents for search, so a path whose use for search is denied is disallowed.
#[test]
fn reports_requests_of_documents_that_may_not_be_searched() {
    let policy = Policy::default();
    let with = |rules: &str| Crafted::empty().robots(rules).get("/agent.json");
    for denied in [
        "Content-Signal: search=no, ai-train=yes",
        "Content-Usage: search=n",
        "Content-Usage: /agent search=n",
    ] {
        with(&format!("User-agent: *\n{denied}\nAllow: /\n")).breaks(Rule::Disallowed, 1, &policy);
    }
    for permitted in [
        "Content-Signal: search=yes, ai-train=no",
        "Content-Usage: train-ai=n",
        "Content-Usage: /other search=n",
    ] {
        with(&format!("User-agent: *\n{permitted}\nAllow: /\n")).keeps(&policy);
    }
}

#[test]
fn a_missing_robots_permits_and_a_denied_one_forbids() {
    let policy = Policy::default();
    let with_status = |status| Crafted::empty().get("/robots.txt").status(status).get("/agent.json");
    for status in [404, 410, 400] {
        with_status(status).keeps(&policy);
    }
    for status in [401, 403, 451] {
        with_status(status).breaks(Rule::Disallowed, 1, &policy);
    }
}

#[test]
fn an_unreachable_robots_forbids() {
    let policy = Policy::default();
    for status in [206, 226, 429, 500, 503, 304] {
        let log = Crafted::empty().get("/robots.txt").status(status).get("/agent.json");
        log.breaks(Rule::RobotsUnreachable, 1, &policy);
    }
    let reset = Crafted::empty().get("/robots.txt").change(|hit| hit.status = None).get("/agent.json");
    reset.breaks(Rule::RobotsUnreachable, 1, &policy);
    let cut_off = Crafted::new().change(|hit| hit.complete = false).wait(HOUR_US).get("/agent.json");
    cut_off.breaks(Rule::RobotsUnreachable, 1, &policy);
    let long = Crafted::new().change(|hit| (hit.complete, hit.body_bytes) = (false, 600 * 1024));
    long.wait(HOUR_US).get("/agent.json").keeps(&policy);
    let failed_later = Crafted::new().wait(HOUR_US).get("/robots.txt").status(503).get("/agent.json");
    let two_passes = Policy { passes_began_us: vec![HOUR_US], ..Policy::default() };
    failed_later.breaks(Rule::RobotsUnreachable, 1, &two_passes);
}

#[test]
fn a_redirected_robots_applies_to_the_requested_authority() {
    let policy = Policy::default();
    let redirected = |body: &str| {
        Crafted::empty()
            .get("/robots.txt")
            .status(301)
            .response(|response| response.location = Some("https://www.site.example/robots.txt".to_owned()))
            .get_on("www.site.example", "/robots.txt")
            .change(|hit| hit.robots_body = Some(body.into()))
    };
    redirected("").get("/agent.json").keeps(&policy);
    redirected("User-agent: *\nDisallow: /").get("/agent.json").breaks(Rule::Disallowed, 1, &policy);
    let unfollowed = Crafted::empty().get("/robots.txt").status(302).response(|response| {
        response.location = Some("/robots.txt".to_owned());
    });
    unfollowed.get("/agent.json").breaks(Rule::RobotsUnreachable, 1, &policy);
}
