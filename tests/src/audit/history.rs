//! The hits of a log, grouped by scope and ordered by start time.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    net::IpAddr,
};

use manifest::Host;
use testweb::Hit;
use url::Url;

/// A log, grouped by scope.
pub(super) struct History<'a> {
    pub(super) hits: Vec<&'a Hit>,
    pub(super) authorities: BTreeMap<&'a str, Vec<&'a Hit>>,
    pub(super) sites: BTreeMap<String, Vec<&'a Hit>>,
    pub(super) addresses: BTreeMap<IpAddr, Vec<&'a Hit>>,
    /// Private suffixes of the Public Suffix List.
    pub(super) suffixes: BTreeMap<&'a str, Vec<&'a Hit>>,
    led_to: HashSet<(String, String)>,
    robots_led_to: HashSet<(String, String)>,
}

impl<'a> History<'a> {
    pub(super) fn of(hits: &'a [Hit]) -> Self {
        let mut hits: Vec<&Hit> = hits.iter().collect();
        hits.sort_by_key(|hit| (hit.started_us, hit.id));
        let mut history = Self {
            hits: Vec::new(),
            authorities: BTreeMap::new(),
            sites: BTreeMap::new(),
            addresses: BTreeMap::new(),
            suffixes: BTreeMap::new(),
            led_to: HashSet::new(),
            robots_led_to: HashSet::new(),
        };
        let mut sites: HashMap<&str, String> = HashMap::new();
        for hit in &hits {
            let site = sites.entry(&hit.host).or_insert_with(|| site_of(&hit.host));
            history.authorities.entry(&hit.host).or_default().push(hit);
            history.sites.entry(site.clone()).or_default().push(hit);
            history.addresses.entry(hit.server.ip()).or_default().push(hit);
            if let Some(suffix) = private_suffix(&hit.host) {
                history.suffixes.entry(suffix).or_default().push(hit);
            }
            history.follow_redirect(hit);
        }
        history.hits = hits;
        history
    }

    /// Whether a redirect of the same site points here anywhere in the log. A crawler can reach such a path in several ways.
    pub(super) fn is_redirect_target(&self, hit: &Hit) -> bool {
        self.led_to.contains(&host_and_path(hit))
    }

    /// Whether a redirect of this authority's robots.txt points here: then the hit is part of that fetch of robots.txt. The target of
    /// another authority's robots.txt is an ordinary request.
    pub(super) fn is_robots_by_redirect(&self, hit: &Hit) -> bool {
        self.robots_led_to.contains(&host_and_path(hit))
    }

    /// The first hit on a path at or after a time.
    pub(super) fn first_on(&self, host_and_path: &(String, String), from_us: u64) -> Option<&'a Hit> {
        let hits = self.authorities.get(host_and_path.0.as_str())?;
        hits.iter().copied().find(|hit| hit.started_us >= from_us && hit.path == host_and_path.1)
    }

    fn follow_redirect(&mut self, hit: &Hit) {
        let Some(target) = redirect_target(hit).filter(|target| is_same_site(&hit.host, &target.0)) else {
            return;
        };
        let is_robots = hit.path == "/robots.txt" || self.robots_led_to.contains(&host_and_path(hit));
        if is_robots && hit.host == target.0 {
            self.robots_led_to.insert(target.clone());
        }
        self.led_to.insert(target);
    }
}

/// The target host of a redirect, and the path with its query.
pub(super) fn redirect_target(hit: &Hit) -> Option<(String, String)> {
    let redirects = matches!(hit.status, Some(301 | 302 | 303 | 307 | 308));
    let location = hit.response.location.as_deref().filter(|_| redirects)?;
    let target = Url::parse(&format!("https://{}{}", hit.host, hit.path)).ok()?.join(location).ok()?;
    let path =
        target.query().map_or_else(|| target.path().to_owned(), |query| format!("{}?{query}", target.path()));
    Some((target.host_str()?.to_owned(), path))
}

fn host_and_path(hit: &Hit) -> (String, String) {
    (hit.host.clone(), hit.path.clone())
}

/// The private suffix of a host, such as `github.io`.
fn private_suffix(host: &str) -> Option<&str> {
    let suffix = psl::suffix(host.as_bytes()).filter(|suffix| suffix.typ() == Some(psl::Type::Private))?;
    std::str::from_utf8(suffix.as_bytes()).ok()
}

/// Whether two hosts belong to one site.
pub(super) fn is_same_site(one: &str, other: &str) -> bool {
    site_of(one) == site_of(other)
}

/// Whether a host is the domain of its site or its `www.` host.
pub(super) fn is_main_host(host: &str) -> bool {
    host.strip_prefix("www.").unwrap_or(host) == site_of(host)
}

fn site_of(host: &str) -> String {
    Host::parse(host).map_or_else(|_| host.to_owned(), |host| host.site().as_str().to_owned())
}
