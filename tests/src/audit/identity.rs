//! Identity of the crawler: an identifying User-Agent and From, only GET or HEAD, no Referer and no Cookie.

use testweb::Hit;

use super::{Measure, Policy, Rule, Violation};

pub(super) fn check(hit: &Hit, policy: &Policy) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut broken = |rule, measured: &Option<String>, required: &str| {
        let measured = measured.clone().unwrap_or_else(|| "none".to_owned());
        violations.push(Violation::at(
            rule,
            hit,
            Measure::Text(measured),
            Measure::Text(required.to_owned()),
        ));
    };
    if !hit.request.user_agent.as_deref().is_some_and(is_honest) {
        broken(Rule::UserAgent, &hit.request.user_agent, "agentdex/VERSION (+https://…)");
    }
    if let Some(from) = &policy.from
        && hit.request.from.as_ref() != Some(from)
    {
        broken(Rule::From, &hit.request.from, from);
    }
    if hit.request.referer.is_some() {
        broken(Rule::TrackingHeader, &hit.request.referer, "no Referer");
    }
    if hit.request.cookie.is_some() {
        broken(Rule::TrackingHeader, &hit.request.cookie, "no Cookie");
    }
    if hit.method != "GET" && hit.method != "HEAD" {
        broken(Rule::Method, &Some(hit.method.clone()), "GET or HEAD");
    }
    violations
}

/// Whether it has the form `agentdex/VERSION (+URL…)` and contains no browser name.
fn is_honest(user_agent: &str) -> bool {
    let Some((version, comment)) = user_agent.strip_prefix("agentdex/").and_then(|rest| rest.split_once(' '))
    else {
        return false;
    };
    let has_version = version.starts_with(|first: char| first.is_ascii_digit());
    let has_page = comment.starts_with("(+https://") || comment.starts_with("(+http://");
    has_version && has_page && comment.ends_with(')') && !comment.contains("Mozilla")
}
