//! The hosts of a site whose answers say something about the site.

use std::collections::HashSet;

use manifest::{Discovery, Host};
use store::{HostOrigin, HostState, ResourceState, SiteState, is_main_host};

/// Hosts whose answers say something about their site. Anybody can name any host below a domain, so a link or a submission is
/// not enough. A host is the site's own if it is the domain itself or its `www.` host, the operator listed it, a redirect
/// of a visit led to it, or a manifest was read from it that the domain links to. A manifest alone proves nothing: a customer of
/// the site may have the host.
pub(super) struct OwnHosts<'a> {
    /// The hosts that are not the site's own.
    named: HashSet<&'a Host>,
}

impl<'a> OwnHosts<'a> {
    pub(super) fn of(site: &'a SiteState) -> Self {
        let is_main = |host: &Host| is_main_host(site.name.as_str(), host.as_str());
        let is_named_by_site = |resource: &&ResourceState| {
            matches!(resource.discovery, Discovery::Listed | Discovery::Dns)
                || resource.linked_from.as_ref().is_some_and(|from| is_main(&from.host()))
        };
        let resources = site.resources.iter().filter(|resource| resource.manifest_id.is_some());
        let with_manifests: HashSet<Host> =
            resources.filter(is_named_by_site).map(|resource| resource.url.host()).collect();
        let is_named = |state: &&HostState| {
            state.origin == HostOrigin::Named
                && !is_main(&state.host)
                && !with_manifests.contains(&state.host)
        };
        Self { named: site.hosts.iter().filter(is_named).map(|state| &state.host).collect() }
    }

    /// Whether a host is the site's own. A host that the store does not know was found in this visit, and is.
    pub(super) fn contains(&self, host: &Host) -> bool {
        !self.named.contains(host)
    }
}
