//! Decides whether a redirect is followed.
//!
//! A redirect to another site is never followed, not even for robots.txt: a visit has only the limits of its own site. The other site
//! becomes a seed and is visited under its own robots.txt. Within the site a manifest may redirect three times and robots.txt five times
//! (RFC 9309 §2.3.1.2). robots.txt may redirect to another host of the site only if the target is that host's robots.txt, because the rules
//! for other paths of that host are not known yet. Redirects to http, to an IP address, with user information, or to a port other than 443
//! and the first one are refused.

use manifest::{ManifestUrl, NameError, string_enum};

use crate::outcome::FetchOutcome;
use crate::plan::ROBOTS_PATH;

/// Maximum number of redirects followed for a manifest. Common chains such as apex → www → /en/… need two.
const RESOURCE_HOPS_MAX: usize = 3;
/// Maximum number of redirects followed for robots.txt: "at least five consecutive redirects" (RFC 9309 §2.3.1.2).
const ROBOTS_HOPS_MAX: usize = 5;
/// The port of https.
const HTTPS_PORT: u16 = 443;

/// The kind of the file that is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A manifest or another document.
    Resource,
    /// robots.txt.
    Robots,
}

string_enum! {
    /// Why a redirect is refused.
    RedirectRefusal, "redirect refusal" {
        /// No Location, or more than one that differ.
        NoLocation = "no_location",
        /// The Location is not a URL, or has no host name.
        NotAUrl = "not_a_url",
        /// To http or another scheme.
        NotHttps = "not_https",
        /// To an IP address.
        IpLiteral = "ip_literal",
        /// To a URL with a user name or password.
        UserInfo = "user_info",
        /// To a port that is neither 443 nor the port of the first URL of the chain.
        Port = "port",
        /// To a URL that was already requested.
        Loop = "loop",
        /// Too many redirects.
        TooManyHops = "too_many_hops",
        /// robots.txt redirects to a path of another host that is not that host's robots.txt.
        NotRobots = "not_robots",
    }
}

impl RedirectRefusal {
    /// The outcome of a fetch that ends with this refusal.
    pub const fn outcome(self) -> FetchOutcome {
        match self {
            Self::Loop => FetchOutcome::RedirectLoop,
            _ => FetchOutcome::RedirectRefused,
        }
    }
}

/// The reaction to a redirect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedirectDecision {
    /// Request this URL next, under the same limits and address checks.
    Follow(ManifestUrl),
    /// Another site: record it as a seed.
    OtherSite(ManifestUrl),
    /// Do not follow.
    Refuse(RedirectRefusal),
}

/// Decides whether to follow a redirect. `chain` contains all URLs that were requested so far, in order.
pub fn decide(chain: &[ManifestUrl], location: Option<&str>, purpose: Purpose) -> RedirectDecision {
    match target(chain, location) {
        Err(reason) => RedirectDecision::Refuse(reason),
        Ok(hop) => hop.decide(chain.len(), purpose),
    }
}

/// A redirect whose Location is a usable URL.
struct Hop<'a> {
    first: &'a ManifestUrl,
    current: &'a ManifestUrl,
    target: ManifestUrl,
}

impl Hop<'_> {
    fn decide(self, requests: usize, purpose: Purpose) -> RedirectDecision {
        let Self { first, current, target } = self;
        if first.site() != target.site() {
            return RedirectDecision::OtherSite(target);
        }
        let hops_max = match purpose {
            Purpose::Resource => RESOURCE_HOPS_MAX,
            Purpose::Robots => ROBOTS_HOPS_MAX,
        };
        if requests > hops_max {
            return RedirectDecision::Refuse(RedirectRefusal::TooManyHops);
        }
        let is_other_host = current.host() != target.host();
        if purpose == Purpose::Robots && is_other_host && target.path_and_query() != ROBOTS_PATH {
            return RedirectDecision::Refuse(RedirectRefusal::NotRobots);
        }
        RedirectDecision::Follow(target)
    }
}

fn target<'a>(chain: &'a [ManifestUrl], location: Option<&str>) -> Result<Hop<'a>, RedirectRefusal> {
    let (Some(first), Some(current)) = (chain.first(), chain.last()) else {
        return Err(RedirectRefusal::NoLocation);
    };
    let location =
        location.map(str::trim).filter(|text| !text.is_empty()).ok_or(RedirectRefusal::NoLocation)?;
    let target = current.join(location).map_err(|error| refusal_of(&error))?;
    if target.port() != HTTPS_PORT && target.port() != first.port() {
        return Err(RedirectRefusal::Port);
    }
    if chain.contains(&target) {
        return Err(RedirectRefusal::Loop);
    }
    Ok(Hop { first, current, target })
}

fn refusal_of(error: &NameError) -> RedirectRefusal {
    match error {
        NameError::Scheme(_) => RedirectRefusal::NotHttps,
        NameError::UserInfo(_) => RedirectRefusal::UserInfo,
        NameError::IpLiteral(_) => RedirectRefusal::IpLiteral,
        _ => RedirectRefusal::NotAUrl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn refuse(reason: RedirectRefusal) -> RedirectDecision {
        RedirectDecision::Refuse(reason)
    }

    #[test]
    fn decides_on_a_redirect_by_its_target() {
        let chain = [url("https://example.org/agent.json")];
        let follow = |text: &str| RedirectDecision::Follow(url(text));
        let table = [
            ("/.well-known/agent.json", follow("https://example.org/.well-known/agent.json")),
            ("agent-card.json#top", follow("https://example.org/agent-card.json")),
            ("https://www.example.org/agent.json", follow("https://www.example.org/agent.json")),
            ("//api.example.org/a", follow("https://api.example.org/a")),
            ("https://other.example/a", RedirectDecision::OtherSite(url("https://other.example/a"))),
            ("http://example.org/agent.json", refuse(RedirectRefusal::NotHttps)),
            ("file:///etc/passwd", refuse(RedirectRefusal::NotHttps)),
            ("data:text/plain,x", refuse(RedirectRefusal::NotHttps)),
            ("https://10.0.0.1/", refuse(RedirectRefusal::IpLiteral)),
            ("https://[::1]/", refuse(RedirectRefusal::IpLiteral)),
            ("https://2130706433/", refuse(RedirectRefusal::IpLiteral)),
            ("https://u:p@example.org/", refuse(RedirectRefusal::UserInfo)),
            ("https://example.org:22/", refuse(RedirectRefusal::Port)),
            ("https://example.org:80/", refuse(RedirectRefusal::Port)),
            ("https://localhost/", refuse(RedirectRefusal::NotAUrl)),
            ("https://", refuse(RedirectRefusal::NotAUrl)),
            ("", refuse(RedirectRefusal::NoLocation)),
            ("/agent.json", refuse(RedirectRefusal::Loop)),
        ];
        for (location, expected) in table {
            assert_eq!(decide(&chain, Some(location), Purpose::Resource), expected, "{location}");
        }
        assert_eq!(decide(&chain, None, Purpose::Resource), refuse(RedirectRefusal::NoLocation));
    }

    #[test]
    fn follows_redirects_on_the_port_of_the_first_url() {
        let chain = [url("https://example.org:8443/a")];
        for (location, followed) in [
            ("/b", true),
            ("https://www.example.org:8443/b", true),
            ("https://example.org/b", true),
            ("https://example.org:9000/b", false),
        ] {
            let decision = decide(&chain, Some(location), Purpose::Resource);
            assert_eq!(matches!(decision, RedirectDecision::Follow(_)), followed, "{location}");
        }
    }

    #[test]
    fn refuses_too_many_redirects_and_loops() {
        for (purpose, hops_max) in
            [(Purpose::Resource, RESOURCE_HOPS_MAX), (Purpose::Robots, ROBOTS_HOPS_MAX)]
        {
            let mut chain = vec![url("https://example.org/0")];
            for hop in 1..=hops_max {
                let RedirectDecision::Follow(next) = decide(&chain, Some(&format!("/{hop}")), purpose) else {
                    panic!("hop {hop} of {purpose:?} was not followed");
                };
                chain.push(next);
            }
            assert_eq!(decide(&chain, Some("/more"), purpose), refuse(RedirectRefusal::TooManyHops));
            assert_eq!(decide(&chain, Some("/0"), purpose), refuse(RedirectRefusal::Loop));
        }
    }

    #[test]
    fn does_not_follow_robots_to_another_site() {
        let chain = [url("https://example.org/robots.txt")];
        for target in
            ["https://cdn.example/robots.txt", "https://victim.example/any", "https://org/robots.txt"]
        {
            let decision = decide(&chain, Some(target), Purpose::Robots);
            assert!(!matches!(decision, RedirectDecision::Follow(_)), "{target}: {decision:?}");
        }
        let decision = decide(&chain, Some("https://cdn.example/robots.txt"), Purpose::Robots);
        assert_eq!(decision, RedirectDecision::OtherSite(url("https://cdn.example/robots.txt")));
    }

    #[test]
    fn follows_robots_to_another_host_only_to_its_robots() {
        let apex = url("https://example.org/robots.txt");
        let www = url("https://www.example.org/robots.txt");
        for (chain, location, expected) in [
            (vec![apex.clone()], www.as_str(), RedirectDecision::Follow(www.clone())),
            (vec![apex.clone()], "/r", RedirectDecision::Follow(url("https://example.org/r"))),
            (vec![apex.clone()], "https://www.example.org/r", refuse(RedirectRefusal::NotRobots)),
            (vec![apex.clone()], "https://www.example.org/robots.txt?x", refuse(RedirectRefusal::NotRobots)),
            (vec![apex, www.clone()], "/r", RedirectDecision::Follow(url("https://www.example.org/r"))),
        ] {
            assert_eq!(decide(&chain, Some(location), Purpose::Robots), expected, "{location}");
        }
    }

    #[test]
    fn a_redirect_loop_has_its_own_outcome() {
        assert_eq!(RedirectRefusal::Loop.outcome(), FetchOutcome::RedirectLoop);
        assert_eq!(RedirectRefusal::NotHttps.outcome(), FetchOutcome::RedirectRefused);
    }
}
