//! Removes URLs and hosts that only other sites or clients named from the record of a site.
//!
//! Anybody can submit or link to a URL, and so choose its text, which people could mistake for a statement of the site. A URL of others is
//! listed if it has a manifest.

use std::collections::{HashMap, HashSet};

use manifest::{Discovery, Host, ManifestUrl, SiteName, is_main_host};
use store::{FetchReport, HostOrigin, HostState, ResourceState, SiteState, VisitReport};

/// Removes URLs and hosts that only clients or other sites named and that have no manifest, with their fetches. Returns the number of URLs.
pub(super) fn leave_out(site: &SiteName, state: &mut SiteState, visits: &mut [VisitReport]) -> u64 {
    let of_site = NamedBySite::of(site, state, visits);
    let before = state.resources.len();
    state.resources.retain(|resource| resource.manifest_id.is_some() || of_site.names(resource));
    let listed: HashSet<&ManifestUrl> = state.resources.iter().map(|resource| &resource.url).collect();
    let mut hosts = of_site.hosts.clone();
    hosts.extend(listed.iter().map(|url| url.host()));
    state.hosts.retain(|of| hosts.contains(&of.host));
    for visit in visits {
        visit.fetches.retain(|fetch| {
            listed.contains(&fetch.url)
                || of_site.would_name(&fetch.url, fetch.discovery, fetch.linked_from.as_ref())
        });
    }
    (before - state.resources.len()) as u64
}

/// What the site itself or the operator names.
struct NamedBySite {
    /// The main host, those to which it redirects, and those of the operator's lists.
    hosts: HashSet<Host>,
    urls: HashSet<ManifestUrl>,
}

impl NamedBySite {
    fn of(site: &SiteName, state: &SiteState, visits: &[VisitReport]) -> Self {
        let mut named = Self { hosts: known_hosts(site, &state.hosts, visits), urls: HashSet::new() };
        let mut by_source: HashMap<&ManifestUrl, Vec<&ResourceState>> = HashMap::new();
        for resource in &state.resources {
            if let Some(from) = &resource.linked_from {
                by_source.entry(from).or_default().push(resource);
            }
        }
        let mut waiting: Vec<&ResourceState> = state.resources.iter().collect();
        // a document that the site names may name further ones
        while let Some(of) = waiting.pop() {
            if !named.names(of) && named.would_name(&of.url, of.discovery, of.linked_from.as_ref()) {
                named.urls.insert(of.url.clone());
                waiting.extend(by_source.remove(&of.url).into_iter().flatten());
            }
        }
        named
    }

    fn names(&self, resource: &ResourceState) -> bool {
        self.urls.contains(&resource.url)
    }

    /// Whether a URL that became known in this way is named by the site. The home page, its headers and robots.txt speak for their host.
    #[expect(clippy::match_same_arms, reason = "each arm has its own reason")]
    fn would_name(&self, url: &ManifestUrl, discovery: Discovery, linked_from: Option<&ManifestUrl>) -> bool {
        match (discovery, linked_from) {
            (Discovery::Submitted, _) => false,
            (Discovery::HtmlLink | Discovery::LinkHeader | Discovery::Agentmap, Some(from)) => {
                self.hosts.contains(&from.host())
            }
            (_, Some(from)) => self.urls.contains(from),
            // anybody may have written a link whose source is not stored
            (
                Discovery::HtmlLink
                | Discovery::LinkHeader
                | Discovery::Agentmap
                | Discovery::CatalogEntry
                | Discovery::Pointer,
                None,
            ) => false,
            (Discovery::WellKnown | Discovery::Root | Discovery::Listed | Discovery::Dns, None) => {
                self.hosts.contains(&url.host())
            }
        }
    }
}

fn known_hosts(site: &SiteName, hosts: &[HostState], visits: &[VisitReport]) -> HashSet<Host> {
    let is_main = |host: &Host| is_main_host(site, host);
    let listed = hosts.iter().filter(|of| is_main(&of.host) || of.origin >= HostOrigin::Collected);
    let mut known: HashSet<Host> = listed.map(|of| of.host.clone()).collect();
    // anybody may link to a URL that redirects to a host of their choice
    let is_usual = |of: &&FetchReport| {
        matches!(of.discovery, Discovery::WellKnown | Discovery::Root | Discovery::Listed)
    };
    let fetches = visits.iter().flat_map(|visit| &visit.fetches);
    let of_site = fetches.filter(|of| is_main(&of.url.host())).filter(is_usual);
    known.extend(of_site.filter_map(|fetch| Some(fetch.final_url.as_ref()?.host())));
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source of more than 2,048 bytes is not stored.
    #[test]
    fn a_link_without_a_source_does_not_count_as_one_of_the_site() {
        let site = SiteName::parse("shop.example").unwrap();
        let hosts = HashSet::from([Host::parse(site.as_str()).unwrap()]);
        let named = NamedBySite { hosts, urls: HashSet::new() };
        let url = ManifestUrl::parse("https://shop.example/WARNING/agent.json").unwrap();
        for discovery in Discovery::ALL.iter().copied() {
            let is_own = matches!(
                discovery,
                Discovery::WellKnown | Discovery::Root | Discovery::Listed | Discovery::Dns
            );
            assert_eq!(named.would_name(&url, discovery, None), is_own, "{discovery}");
        }
    }
}
