//! User-Agent, From, Referer and Cookie, method.

use agentdex_tests::audit::{Policy, Rule};

use crate::crafted::Crafted;

#[test]
fn requires_a_user_agent_that_identifies_the_crawler() {
    let policy = Policy::default();
    let honest = "agentdex/2.10 (+https://bot.example/; mailto:bot@bot.example)";
    Crafted::new().request(|request| request.user_agent = Some(honest.to_owned())).keeps(&policy);
    let dishonest = [
        "Mozilla/5.0 (compatible; agentdex/0.1)",
        "agentdex/0.1.0",
        "agentdex (+https://bot.example/)",
        "agentdex/x (+https://bot.example/)",
        "agentdex/0.1.0 (Mozilla +https://bot.example/)",
        "",
    ];
    for user_agent in dishonest {
        let log = Crafted::new().request(|request| request.user_agent = Some(user_agent.to_owned()));
        log.breaks(Rule::UserAgent, 1, &policy);
    }
    Crafted::new().request(|request| request.user_agent = None).breaks(Rule::UserAgent, 1, &policy);
}

#[test]
fn requires_the_configured_from_header() {
    let policy = Policy { from: Some("bot@bot.example".to_owned()), ..Policy::default() };
    let named = || Crafted::new().request(|request| request.from = Some("bot@bot.example".to_owned()));
    named().keeps(&policy);
    named().get("/agent.json").breaks(Rule::From, 1, &policy);
    Crafted::new().keeps(&Policy::default());
}

#[test]
fn reports_cookies_and_referers() {
    let policy = Policy::default();
    Crafted::new().request(|request| request.cookie = Some("id=1".to_owned())).breaks(
        Rule::TrackingHeader,
        1,
        &policy,
    );
    let referred = Crafted::new().request(|request| request.referer = Some("https://a.example/".to_owned()));
    referred.breaks(Rule::TrackingHeader, 1, &policy);
}

#[test]
fn reports_methods_other_than_get_and_head() {
    let policy = Policy::default();
    Crafted::new().get("/agent.json").change(|hit| hit.method = "HEAD".to_owned()).keeps(&policy);
    let posted = Crafted::new().get("/agent.json").change(|hit| hit.method = "POST".to_owned());
    posted.breaks(Rule::Method, 1, &policy);
}
