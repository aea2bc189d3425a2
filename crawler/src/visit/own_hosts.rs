//! What a site itself names: the hosts whose answers say something about it, and its documents.

use std::collections::{HashMap, HashSet};

use manifest::{Host, ManifestUrl};
use policy::naming::{FoundBy, SiteNaming};
use store::{HostOrigin, HostState, ResourceState, SiteState};

/// Hosts whose answers say something about their site. Anybody can name any host below a domain, so a link or a submission is
/// not enough ([`SiteNaming::names_host`]), and neither is a manifest: a customer of the site may have the host.
pub(super) struct OwnHosts<'a> {
    naming: SiteNaming,
    /// The hosts that are not the site's own.
    named: HashSet<&'a Host>,
}

impl<'a> OwnHosts<'a> {
    pub(super) fn of(site: &'a SiteState) -> Self {
        let found_by = |resource: &ResourceState| {
            let found = FoundBy { discovery: resource.discovery, linked_from: resource.linked_from.clone() };
            (resource.url.clone(), found)
        };
        let found: HashMap<ManifestUrl, FoundBy> = site.resources.iter().map(found_by).collect();
        let hosts = site.hosts.iter().filter(|state| state.origin != HostOrigin::Named);
        let naming = SiteNaming::new(site.name.clone(), found, hosts.map(|state| state.host.clone()));
        let is_named =
            |state: &&HostState| state.origin == HostOrigin::Named && !naming.names_host(&state.host);
        let named = site.hosts.iter().filter(is_named).map(|state| &state.host).collect();
        Self { naming, named }
    }

    /// Whether a host is the site's own. A host that the store does not know was found in this visit, and is.
    pub(super) fn contains(&self, host: &Host) -> bool {
        !self.named.contains(host)
    }

    /// Whether the site names a document.
    pub(super) fn names(&self, url: &ManifestUrl) -> bool {
        self.naming.names(url)
    }
}
