//! Revalidation, freshness, repeated requests.

use agentdex_tests::audit::{Policy, Rule};

use crate::crafted::{Crafted, SECOND_US};

/// A policy for logs of two passes; the second pass begins with the next hit.
fn second_pass(first: &Crafted) -> Policy {
    Policy { passes_began_us: vec![first.now_us()], ..Policy::default() }
}

fn with_etag() -> Crafted {
    Crafted::new().get("/agent.json").response(|response| response.etag = Some("W/\"v1\"".to_owned()))
}

#[test]
fn requires_revalidation_of_a_stored_copy_by_its_etag() {
    let policy = second_pass(&with_etag());
    let again = |tag: &str| {
        let tag = Some(tag.to_owned());
        with_etag().get("/agent.json").status(304).request(|request| request.if_none_match = tag)
    };
    again("W/\"v1\"").keeps(&policy);
    again("\"v1\"").breaks(Rule::Unconditional, 1, &policy);
    with_etag().get("/agent.json").breaks(Rule::Unconditional, 1, &policy);
}

#[test]
fn requires_revalidation_by_date_without_an_etag() {
    let date = || Some("Tue, 14 Nov 2023 22:13:20 GMT".to_owned());
    let dated = || Crafted::new().get("/agent.json").response(|response| response.last_modified = date());
    let policy = second_pass(&dated());
    dated().get("/agent.json").request(|request| request.if_modified_since = date()).keeps(&policy);
    dated().get("/agent.json").breaks(Rule::Unconditional, 1, &policy);
}

#[test]
fn requires_no_revalidation_of_responses_that_are_not_stored() {
    let policy = second_pass(&with_etag());
    let not_stored = with_etag().response(|response| response.cache_control = Some("No-Store".to_owned()));
    not_stored.get("/agent.json").keeps(&policy);
    let page = with_etag().response(|response| response.content_type = Some("text/html".to_owned()));
    page.get("/agent.json").keeps(&policy);
    let gone = Policy { passes_began_us: vec![2 * SECOND_US, 3 * SECOND_US], ..policy };
    let conditional = with_etag().get("/agent.json").status(404);
    conditional
        .request(|request| request.if_none_match = Some("W/\"v1\"".to_owned()))
        .get("/agent.json")
        .keeps(&gone);
}

#[test]
fn allows_a_repeat_after_an_unrequested_304() {
    let unasked = Crafted::new().get("/agent.json").status(304);
    unasked.get("/agent.json").keeps(&Policy::default());
}

#[test]
fn reports_a_request_for_a_fresh_copy() {
    let fresh = |control: &str| {
        let control = Some(control.to_owned());
        Crafted::new().get("/agent.json").response(|response| response.cache_control = control)
    };
    let policy = second_pass(&fresh(""));
    fresh("public, max-age=60").hurry(60 * SECOND_US).get("/agent.json").keeps(&policy);
    let early = fresh("public, max-age=60").hurry(60 * SECOND_US - 1).get("/agent.json");
    early.breaks(Rule::Fresh, 1, &policy);
    fresh("max-age=60, no-cache").get("/agent.json").keeps(&policy);
    let aged = fresh("max-age=60").response(|response| response.age = Some("59".to_owned()));
    aged.get("/agent.json").keeps(&policy);
}

#[test]
fn reports_a_request_for_a_fresh_404() {
    let missing = || {
        let log = Crafted::new().get("/agent.json").status(404);
        log.response(|response| response.cache_control = Some("max-age=600".to_owned()))
    };
    missing().get("/agent.json").breaks(Rule::Fresh, 1, &second_pass(&missing()));
}

#[test]
fn reports_a_path_requested_twice_in_a_pass() {
    let once = || Crafted::new().get("/agent.json");
    once().get("/agent.json").breaks(Rule::Duplicate, 1, &Policy::default());
    once().get("/agent.json").keeps(&second_pass(&once()));
    once().get("/agent.json?page=2").keeps(&Policy::default());
    once().status(500).get("/agent.json").keeps(&Policy::default());
}

#[test]
fn allows_two_requests_for_a_redirect_target() {
    let redirected = Crafted::new().get("/agent.json").get("/old").status(301);
    redirected
        .response(|response| response.location = Some("/agent.json".to_owned()))
        .get("/agent.json")
        .keeps(&Policy::default());
}

#[test]
fn allows_one_repeat_for_each_killed_crawler() {
    let policy = Policy { repeats_allowed: 1, ..Policy::default() };
    let once = || Crafted::new().get("/a").get("/a");
    once().keeps(&policy);
    once().get("/b").get("/b").breaks(Rule::Duplicate, 1, &policy);
}
