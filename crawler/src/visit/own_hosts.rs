//! Determines the hosts and documents that a site itself names. Only responses of its own hosts are evidence about the site.

use std::collections::{HashMap, HashSet};

use manifest::{Discovery, Host, ManifestUrl, is_main_host};
use policy::naming::{FoundBy, SiteNaming, customer_of, is_usual};
use policy::plan;
use store::{HostOrigin, HostState, ResourceState, SiteState};

use super::task::{NamedBy, Task};

/// Hosts whose responses are evidence about their site. A link or a submission does not make a host one of these, because anyone can name
/// any host below a domain ([`SiteNaming::names_host`]). A manifest or a redirect is not enough either: the host may belong to a customer
/// of the site.
///
/// It is built once per visit, so findings of the visit take effect when it ends.
pub(super) struct OwnHosts {
    naming: SiteNaming,
    /// Documents that were found through a link in another document.
    linked: HashSet<ManifestUrl>,
    path_checks_of: Option<Host>,
}

impl OwnHosts {
    pub(super) fn of(site: &SiteState) -> Self {
        let found_by = |resource: &ResourceState| {
            let found = FoundBy { discovery: resource.discovery, linked_from: resource.linked_from.clone() };
            (resource.url.clone(), found)
        };
        Self::with_sources(site, site.resources.iter().map(found_by).collect())
    }

    /// The own hosts of a site whose documents were found in these sources.
    pub(super) fn with_sources(site: &SiteState, found: HashMap<ManifestUrl, FoundBy>) -> Self {
        let listed = site.hosts.iter().filter(|state| state.origin == HostOrigin::Listed);
        let is_linked = |found_by: &FoundBy| is_of_document(found_by.discovery);
        let linked = found.iter().filter(|(_, found_by)| is_linked(found_by)).map(|(url, _)| url.clone());
        let linked = linked.collect();
        let listed = listed.map(|state| state.host.clone());
        let naming = SiteNaming::new(site.name.clone(), found, listed);
        let sort_key = |state: &&HostState| {
            let host = &state.host;
            (!is_main_host(&site.name, host), host.as_str() != site.name.as_str(), host.clone())
        };
        let searched = site.hosts.iter().filter(|state| state.is_seeded() && naming.names_host(&state.host));
        let path_checks_of = searched.min_by_key(sort_key).map(|state| state.host.clone());
        Self { naming, linked, path_checks_of }
    }

    /// Whether the site's list of path checks ([`SiteState::paths_checked`]) applies to a host. It applies to one of the site's own hosts,
    /// if possible to a main one.
    pub(super) fn has_path_checks(&self, host: &Host) -> bool {
        self.path_checks_of.as_ref() == Some(host)
    }

    /// Whether a host is the site's own. False for hosts that this visit was the first to find.
    pub(super) fn contains(&self, host: &Host) -> bool {
        self.naming.names_host(host)
    }

    /// The [`NamedBy`] of the links in the robots.txt, the DNS records and the home page of a host.
    pub(super) fn named_by_host(&self, host: &Host) -> NamedBy {
        if self.contains(host) { NamedBy::Site } else { NamedBy::Others }
    }

    /// The [`NamedBy`] of the links in the document of a task, even if the site began to name the document after the task was planned.
    pub(super) fn named_by_document(&self, task: &Task) -> NamedBy {
        let named_by = match () {
            () if task.discovery == Discovery::Listed => NamedBy::Site,
            () if self.names(&task.url) => self.named_by_for_task(task).min(task.named_by),
            () => task.named_by,
        };
        named_by.of_links()
    }

    /// The [`NamedBy`] of the URL of a task, if the URL is stored or in the path table.
    pub(super) fn named_by_for_task(&self, task: &Task) -> NamedBy {
        let is_own = self.contains(&task.url.host());
        // a visit requests URLs below `/.well-known/` that are not in the path table only because of such a link
        let is_linked = is_of_document(task.discovery) && !(is_own && is_in_table(&task.url));
        let is_link_of_site =
            || !is_linked || task.linked_from.as_deref().is_some_and(|from| self.publishes(from));
        match () {
            () if !self.names(&task.url) => NamedBy::Others,
            () if task.discovery == Discovery::Listed => NamedBy::Site,
            () if !is_link_of_site() => NamedBy::Further,
            () if is_linked || !is_own => NamedBy::Document,
            () => NamedBy::Site,
        }
    }

    /// Whether the site itself publishes a document: at a path of the table at an own host, or at a URL to which the robots.txt, the DNS
    /// records or the home page of an own host lead. Documents that other links lead to may have been written by users.
    pub(super) fn publishes(&self, url: &ManifestUrl) -> bool {
        let is_own = self.contains(&url.host());
        is_own && (is_in_table(url) || self.names(url) && !self.linked.contains(url))
    }

    /// Whether a source says what the publisher of a URL publishes there, so that it is a better one than a link of another document.
    pub(super) fn is_word_of_publisher(
        &self,
        url: &ManifestUrl,
        discovery: Discovery,
        linked_from: Option<&ManifestUrl>,
    ) -> bool {
        let found_by = FoundBy { discovery, linked_from: linked_from.cloned() };
        self.naming.is_word_of_publisher(&url.host(), &found_by)
    }

    /// Whether a document is at a usual path of an own host, or the operator lists it: no link is needed to find it.
    pub(super) fn is_found_without_links(&self, url: &ManifestUrl) -> bool {
        self.contains(&url.host()) && is_usual(url) || self.links_away(url) == Some(0)
    }

    /// The document owner whose turns and time a task uses if users of the site or others name it: the document with the link, the site
    /// that links
    /// to a document at an own host, or the customer to whom the host belongs. Empty if the task has no owner.
    pub(super) fn owner_of(&self, task: &Task) -> String {
        let (host, from) = (task.url.host(), task.linked_from.as_deref());
        match task.named_by {
            NamedBy::Site | NamedBy::Document => String::new(),
            NamedBy::Further => from.map(ToString::to_string).unwrap_or_default(),
            NamedBy::Others if self.contains(&host) => {
                from.map(|from| from.site().to_string()).unwrap_or_default()
            }
            NamedBy::Others => customer_of(&host, &task.url.site()).to_owned(),
        }
    }

    /// Whether the site names a document.
    pub(super) fn names(&self, url: &ManifestUrl) -> bool {
        self.naming.names(url)
    }

    /// The number of links that lead to a document from documents that the site itself publishes. `None` if the site does not name it.
    pub(super) fn links_away(&self, url: &ManifestUrl) -> Option<usize> {
        self.naming.links_away(url)
    }
}

fn is_in_table(url: &ManifestUrl) -> bool {
    plan::find(&url.path_and_query()).is_some()
}

/// Whether a URL that was found in this way comes from a document or a submission, not from the robots.txt, the DNS records or the home
/// page of a host.
pub(super) fn is_of_document(discovery: Discovery) -> bool {
    matches!(discovery, Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted)
}

#[cfg(test)]
mod tests {
    use manifest::SiteName;
    use policy::BodyKind;

    use super::*;
    use crate::visit::fixtures::{host, manifest};

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
        let host = |at: &str, origin| host(ManifestUrl::parse(at).unwrap().host().as_str(), origin);
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
    fn hosts_that_were_only_visited_or_are_unknown_are_not_the_sites_own() {
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
            assert_eq!(own.named_by_host(&ManifestUrl::parse(at).unwrap().host()), named_by, "{at}");
        }
    }

    #[test]
    fn links_of_a_document_have_lower_precedence_than_what_the_site_itself_names() {
        let own = own();
        for (at, planned_as, named_by) in [
            (UPLOAD, NamedBy::Others, NamedBy::Others),
            (UPLOAD, NamedBy::Further, NamedBy::Further),
            (UPLOAD, NamedBy::Document, NamedBy::Further),
            (UPLOAD, NamedBy::Site, NamedBy::Document),
            (MET, NamedBy::Others, NamedBy::Others),
            ("https://a.example/.well-known/agent.json", NamedBy::Site, NamedBy::Document),
            ("https://a.example/.well-known/agent.json", NamedBy::Others, NamedBy::Document),
            ("https://a.example/.well-known/x.json", NamedBy::Others, NamedBy::Further),
        ] {
            assert_eq!(own.named_by_document(&task(at, planned_as)), named_by, "{at}");
        }
        let listed = Task { discovery: Discovery::Listed, ..task(UPLOAD, NamedBy::Others) };
        assert_eq!(own.named_by_document(&listed), NamedBy::Document);
    }

    #[test]
    fn links_of_linked_documents_rank_below_links_of_the_sites_own() {
        const CATALOG: &str = "https://a.example/agents.json";
        const PAGE: &str = "https://a.example/";
        const OF_PAGE: &str = "https://a.example/x/of-page.json";
        const DEEP: &str = "https://a.example/u/deep.json";
        const CARD: &str = "https://t1.a.example/.well-known/agent.json";
        let resources = vec![
            manifest(CATALOG, Discovery::Root, None),
            manifest(OF_PAGE, Discovery::HtmlLink, Some(PAGE)),
            manifest(UPLOAD, Discovery::CatalogEntry, Some(CATALOG)),
            manifest(DEEP, Discovery::CatalogEntry, Some(UPLOAD)),
            manifest(CARD, Discovery::CatalogEntry, Some(UPLOAD)),
        ];
        let own = OwnHosts::of(&SiteState {
            resources: resources.clone(),
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        });
        let known = |at: &str, from: Option<&str>| {
            let of = resources.iter().find(|known| known.url.as_str() == at);
            let from = from.map(|from| Box::new(ManifestUrl::parse(from).unwrap()));
            let discovery = of.map_or(Discovery::CatalogEntry, |known| known.discovery);
            Task { discovery, linked_from: from, ..task(at, NamedBy::Others) }
        };
        for (at, from, named_by) in [
            (CATALOG, None, NamedBy::Site),
            (OF_PAGE, Some(PAGE), NamedBy::Site),
            (UPLOAD, Some(CATALOG), NamedBy::Document),
            (UPLOAD, Some(OF_PAGE), NamedBy::Document),
            (DEEP, Some(UPLOAD), NamedBy::Further),
            (CARD, Some(UPLOAD), NamedBy::Further),
            ("https://a.example/u/unknown.json", Some(CATALOG), NamedBy::Others),
            ("https://a.example/.well-known/.hta0", Some(UPLOAD), NamedBy::Further),
            ("https://a.example/.well-known/x.json", Some(CATALOG), NamedBy::Document),
            ("https://a.example/.well-known/agent.json", Some(UPLOAD), NamedBy::Site),
        ] {
            assert_eq!(own.named_by_for_task(&known(at, from)), named_by, "{at} from {from:?}");
            assert_eq!(own.named_by_document(&known(at, from)), named_by.of_links(), "{at}");
        }
        let publishes =
            [CATALOG, OF_PAGE, UPLOAD, CARD].map(|at| own.publishes(&ManifestUrl::parse(at).unwrap()));
        assert_eq!(publishes, [true, true, false, false]);
    }
}
