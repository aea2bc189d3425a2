//! What a site itself names: the hosts whose answers say something about it, and its documents.

use std::collections::HashMap;

use manifest::{Discovery, Host, ManifestUrl};
use policy::naming::{FoundBy, SiteNaming, is_usual};
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

    /// Whether a host is the site's own. A host that this visit met first is not.
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

    /// Who names what the document of a task links to, also where the site came to name the document after the task was planned as
    /// that of others.
    pub(super) fn word_of_document(&self, task: &Task) -> NamedBy {
        let is_named = task.discovery == Discovery::Listed || self.names(&task.url);
        if is_named { NamedBy::Document } else { task.named_by.of_links() }
    }

    /// Who names the URL of a task that the store knows or the path table has.
    pub(super) fn word_on(&self, task: &Task) -> NamedBy {
        let is_of_document =
            matches!(task.discovery, Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted)
                && !is_usual(&task.url);
        match () {
            () if !self.names(&task.url) => NamedBy::Others,
            () if task.discovery == Discovery::Listed => NamedBy::Site,
            () if is_of_document || !self.contains(&task.url.host()) => NamedBy::Document,
            () => NamedBy::Site,
        }
    }

    /// Whether the site names a document.
    pub(super) fn names(&self, url: &ManifestUrl) -> bool {
        self.0.names(url)
    }
}

#[cfg(test)]
mod tests {
    use manifest::SiteName;
    use policy::BodyKind;
    use store::HostState;

    use super::*;

    const LISTED: &str = "https://listed.a.example/x.json";
    const COLLECTED: &str = "https://collected.a.example/x.json";
    const NAMED: &str = "https://tenant.a.example/agent.json";
    const MET: &str = "https://met.a.example/agent.json";
    const UPLOAD: &str = "https://a.example/u/x.json";

    fn task(at: &str, named_by: NamedBy) -> Task {
        let url = ManifestUrl::parse(at).unwrap();
        Task { named_by, ..Task::new(url, BodyKind::Manifest, Discovery::CatalogEntry) }
    }

    fn own() -> OwnHosts {
        let host = |at: &str, origin| HostState {
            host: ManifestUrl::parse(at).unwrap().host(),
            origin,
            robots: None,
            next_ok_at: None,
            requests_today: 0,
            requests_day: 0,
        };
        let origins = [
            (LISTED, HostOrigin::Listed),
            (COLLECTED, HostOrigin::Collected),
            (NAMED, HostOrigin::Named),
            (MET, HostOrigin::Met),
        ];
        OwnHosts::of(&SiteState {
            hosts: origins.map(|(at, origin)| host(at, origin)).into(),
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        })
    }

    #[test]
    fn hosts_that_were_met_or_are_unknown_are_not_the_sites_own() {
        let own = own();
        for (at, named_by) in [
            (UPLOAD, NamedBy::Site),
            ("https://www.a.example/", NamedBy::Site),
            (LISTED, NamedBy::Site),
            (COLLECTED, NamedBy::Others),
            (NAMED, NamedBy::Others),
            (MET, NamedBy::Others),
            ("https://unknown.a.example/", NamedBy::Others),
        ] {
            assert_eq!(own.word_of(&ManifestUrl::parse(at).unwrap().host()), named_by, "{at}");
        }
    }

    #[test]
    fn links_of_a_document_have_less_standing_than_what_the_site_itself_names() {
        let own = own();
        for (at, planned_as, named_by) in [
            (UPLOAD, NamedBy::Others, NamedBy::Others),
            (UPLOAD, NamedBy::Document, NamedBy::Document),
            (UPLOAD, NamedBy::Site, NamedBy::Document),
            (MET, NamedBy::Others, NamedBy::Others),
            ("https://a.example/.well-known/x.json", NamedBy::Site, NamedBy::Document),
            ("https://a.example/.well-known/x.json", NamedBy::Others, NamedBy::Document),
        ] {
            assert_eq!(own.word_of_document(&task(at, planned_as)), named_by, "{at}");
        }
        let listed = Task { discovery: Discovery::Listed, ..task(UPLOAD, NamedBy::Others) };
        assert_eq!(own.word_of_document(&listed), NamedBy::Document);
    }

    #[test]
    fn a_host_answers_for_the_site_where_an_own_url_led_to_it() {
        let (own, met) = (own(), ManifestUrl::parse(MET).unwrap().host());
        for (task, answers) in [
            (Some(task("https://a.example/agent.json", NamedBy::Site)), true),
            (Some(task(UPLOAD, NamedBy::Others)), false),
            (Some(task(MET, NamedBy::Site)), false),
            (None, false),
        ] {
            assert_eq!(own.answers_for_site(&met, task.as_ref()), answers, "{task:?}");
        }
    }
}
