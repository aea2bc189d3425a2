//! What a site itself names: the hosts whose answers say something about it, and its documents.

use std::collections::HashMap;

use manifest::{Discovery, Host, ManifestUrl};
use policy::naming::{FoundBy, SiteNaming};
use store::{HostOrigin, ResourceState, SiteState};

use super::task::{NamedBy, Task};

/// Hosts whose answers say something about their site. Anybody can name any host below a domain, so a link or a submission is
/// not enough ([`SiteNaming::names_host`]), and neither is a manifest or a redirect: a customer of the site may have the host.
pub(super) struct OwnHosts(SiteNaming);

impl OwnHosts {
    pub(super) fn of(site: &SiteState) -> Self {
        let found_by = |resource: &ResourceState| {
            let found = FoundBy { discovery: resource.discovery, linked_from: resource.linked_from.clone() };
            (resource.url.clone(), found)
        };
        let found: HashMap<ManifestUrl, FoundBy> = site.resources.iter().map(found_by).collect();
        let listed = site.hosts.iter().filter(|state| state.origin == HostOrigin::Listed);
        Self(SiteNaming::new(site.name.clone(), found, listed.map(|state| state.host.clone())))
    }

    /// Whether a host is the site's own. One that was first met in this visit is not, whoever led to it.
    pub(super) fn contains(&self, host: &Host) -> bool {
        self.0.names_host(host)
    }

    /// Whether the response of a host to a task says something about the site: the host is its own, an own host redirects there, or
    /// the operator lists the URL.
    pub(super) fn answers_for_site(&self, host: &Host, task: Option<&Task>) -> bool {
        let is_of_site = |task: &Task| {
            let is_own = task.discovery == Discovery::Listed || self.contains(&task.url.host());
            task.named_by == NamedBy::Site && is_own
        };
        self.contains(host) || task.is_some_and(is_of_site)
    }

    /// Who names what the robots.txt, the DNS records and the home page of a host link to.
    pub(super) fn word_of(&self, host: &Host) -> NamedBy {
        if self.contains(host) { NamedBy::Site } else { NamedBy::Others }
    }

    /// Whether the site names a document.
    pub(super) fn names(&self, url: &ManifestUrl) -> bool {
        self.0.names(url)
    }
}
