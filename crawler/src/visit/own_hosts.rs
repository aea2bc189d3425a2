//! The hosts of a site whose answers say something about the site.

use std::collections::HashSet;

use manifest::Host;
use store::{HostOrigin, HostState, SiteState, is_main_host};

/// Hosts whose answers say something about their site. Anybody can name any host below a domain, so a link or a submission is
/// not enough. A host is the site's own if it is the domain itself or its `www.` host, the operator listed it, a redirect
/// of a visit led to it, or a manifest was read from it.
pub(super) struct OwnHosts<'a> {
    /// The hosts that are not the site's own.
    named: HashSet<&'a Host>,
}

impl<'a> OwnHosts<'a> {
    pub(super) fn of(site: &'a SiteState) -> Self {
        let resources = site.resources.iter().filter(|resource| resource.manifest_id.is_some());
        let with_manifests: HashSet<Host> = resources.map(|resource| resource.url.host()).collect();
        let is_named = |state: &&HostState| {
            state.origin == HostOrigin::Named
                && !is_main_host(site.name.as_str(), state.host.as_str())
                && !with_manifests.contains(&state.host)
        };
        Self { named: site.hosts.iter().filter(is_named).map(|state| &state.host).collect() }
    }

    /// Whether a host is the site's own. A host that the store does not know was found in this visit, and is.
    pub(super) fn contains(&self, host: &Host) -> bool {
        !self.named.contains(host)
    }
}
