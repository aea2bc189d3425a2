//! The rules of a host apply to every request, regardless of its source: logs of sites that direct a crawler to a victim.

use std::time::Duration;

use agentdex_tests::audit::{Policy, Rule};

use crate::crafted::{Crafted, HOUR_US, SECOND_US};

const VICTIM: &str = "victim.example";
const ATTACKERS: usize = 5;

/// Adds a request for the robots.txt of another site, which redirects to this path of the victim. The next request follows immediately.
fn redirect_to(log: Crafted, number: usize, path: &str) -> Crafted {
    let location = format!("https://{VICTIM}{path}");
    let redirected = log.get_on(&format!("site{number}.example"), "/robots.txt").status(302);
    redirected.response(|response| response.location = Some(location)).hurry(0)
}

fn requested(log: Crafted, path: &str, body: &str) -> Crafted {
    log.get_on(VICTIM, path).change(|hit| hit.robots_body = Some(body.into()))
}

/// Every attacker redirects to the victim's robots.txt, a second after the previous one.
fn all_redirect(body: &str) -> Crafted {
    (0..ATTACKERS).fold(Crafted::empty(), |log, number| {
        requested(redirect_to(log, number, "/robots.txt"), "/robots.txt", body)
    })
}

#[test]
fn gaps_apply_to_the_requested_host() {
    let report = all_redirect("").check(&Policy::with_delay(Duration::from_secs(3)));
    assert_eq!(report.count(Rule::AuthorityGap), ATTACKERS - 1, "{report}");
    assert_eq!(report.count(Rule::Duplicate), ATTACKERS - 1, "each attacker causes one request: {report}");
}

#[test]
fn the_crawl_delay_applies_to_the_requested_host() {
    let report = all_redirect("User-agent: *\nCrawl-delay: 30\n").check(&Policy::default());
    assert_eq!(report.count(Rule::AuthorityGap), ATTACKERS - 1, "{report}");
}

#[test]
fn budgets_apply_to_the_requested_host() {
    let policy = Policy { authority_budget: Some(2), site_budget: Some(2), ..Policy::default() };
    let report = all_redirect("").check(&policy);
    assert_eq!(report.count(Rule::Budget), 2 * (ATTACKERS - 2), "{report}");
}

#[test]
fn retry_after_applies_to_every_way_to_reach_the_host() {
    let refused = |log: Crafted| {
        log.get_on(VICTIM, "/robots.txt")
            .status(429)
            .response(|response| response.retry_after = Some("3600".to_owned()))
    };
    let refused = || refused(redirect_to(Crafted::empty(), 0, "/robots.txt"));
    let policy = Policy { passes_began_us: vec![HOUR_US / 2], ..Policy::default() };
    redirect_to(refused(), 1, "/robots.txt").get_on(VICTIM, "/robots.txt").breaks(
        Rule::RetryAfter,
        1,
        &policy,
    );
    let later = redirect_to(refused().wait(HOUR_US), 1, "/robots.txt");
    later.get_on(VICTIM, "/robots.txt").keeps(&policy);
}

/// The host of a site's customer refuses requests; the documents of two other sites link to it again.
#[test]
fn retry_after_applies_to_the_requested_host_whatever_site_leads_there() {
    const TENANT: &str = "tenant.victim.example";
    let led = |log: Crafted, number: usize| {
        let redirected = log.get_on(&format!("site{number}.example"), "/robots.txt").status(302);
        let location = Some(format!("https://{TENANT}/robots.txt"));
        redirected.response(|response| response.location = location).hurry(0)
    };
    let asked = |log: Crafted, seconds: &str| {
        let seconds = Some(seconds.to_owned());
        log.status(503).response(|response| response.retry_after = seconds)
    };
    let policy = Policy { passes_began_us: vec![HOUR_US / 2], ..Policy::default() };
    let refused = || asked(led(Crafted::empty(), 0).get_on(TENANT, "/robots.txt"), "3600");
    // the Retry-After of another authority does not replace it
    let other = || asked(refused().get_on("site9.example", "/robots.txt"), "1");
    led(other(), 1).get_on(TENANT, "/robots.txt").breaks(Rule::RetryAfter, 1, &policy);
    led(other(), 1).get_on(VICTIM, "/robots.txt").keeps(&policy);
}

#[test]
fn the_victims_robots_applies_to_targets_of_other_robots() {
    let policy = Policy::default();
    let forbidding = || requested(Crafted::empty(), "/robots.txt", "User-agent: *\nDisallow: /private\n");
    redirect_to(forbidding(), 0, "/private/x").hurry(SECOND_US).get_on(VICTIM, "/private/x").breaks(
        Rule::Disallowed,
        1,
        &policy,
    );
    redirect_to(forbidding(), 0, "/open").hurry(SECOND_US).get_on(VICTIM, "/open").keeps(&policy);
    redirect_to(Crafted::empty(), 0, "/x").get_on(VICTIM, "/x").breaks(Rule::RobotsFirst, 1, &policy);
}

#[test]
fn robots_applies_to_redirect_targets_on_another_host_of_the_site() {
    let redirected = Crafted::empty().get("/robots.txt").status(302);
    let redirected =
        redirected.response(|response| response.location = Some("https://www.site.example/r".to_owned()));
    redirected.get_on("www.site.example", "/r").breaks(Rule::RobotsFirst, 1, &Policy::default());
}

#[test]
fn a_robots_redirect_to_another_site_permits_nothing() {
    let log = requested(redirect_to(Crafted::empty(), 0, "/robots.txt"), "/robots.txt", "");
    log.get_on("site0.example", "/agent.json").breaks(Rule::RobotsUnreachable, 1, &Policy::default());
}

#[test]
fn a_bot_wall_in_place_of_robots_permits_nothing() {
    let walled = |wall: &str| {
        let wall = Some(wall.to_owned());
        Crafted::new().response(|response| response.wall = wall).get("/agent.json")
    };
    walled("cf-mitigated: challenge").breaks(Rule::Disallowed, 1, &Policy::default());
    walled("x-amzn-waf-action: count").keeps(&Policy::default());
}
