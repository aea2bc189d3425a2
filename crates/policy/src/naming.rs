//! Decides whether a site itself names a document or a host.
//!
//! Sites may serve files of their users: raw files of repositories, attachments of a wiki. Others can link to such a file and submit it.
//! Such a file is read like a document of the site, but it is not attributed to the site, so its declarations must not become declarations
//! of the site.

use std::collections::HashMap;

use manifest::{Discovery, Host, ManifestUrl, NamedBy, Publisher, SiteName, is_main_host};

use crate::plan;

/// Maximum number of links that are followed back from a document. In practice, catalogs are nested two or three levels deep.
const LINKS_MAX: usize = 16;

/// Path of the home page, whose markup may contain a manifest.
const HOME_PAGE: &str = "/";

/// How a document was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBy {
    pub discovery: Discovery,
    /// The document that links to it. It may belong to any site.
    pub linked_from: Option<ManifestUrl>,
}

/// Who named a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming {
    Site,
    Others,
    /// Whoever named this document, which links to it.
    LikeThis,
}

/// The documents and hosts that a site itself names. A host below the domain may belong to a customer and have its own home page and
/// robots.txt, so hosts have to be named too. A document that links to another one names only that document, not its host, because catalogs
/// of a site list the documents of its customers.
#[derive(Debug)]
pub struct SiteNaming {
    site: SiteName,
    found: HashMap<ManifestUrl, FoundBy>,
    /// The named hosts besides the main ones, with their distance: the number of links that lead to them from documents that the site
    /// itself publishes.
    hosts: HashMap<Host, usize>,
}

impl SiteNaming {
    /// `found` contains the documents of the site, and `hosts` the hosts that the operator listed.
    pub fn new(
        site: SiteName,
        found: HashMap<ManifestUrl, FoundBy>,
        hosts: impl IntoIterator<Item = Host>,
    ) -> Self {
        let hosts = hosts.into_iter().map(|host| (host, 0)).collect();
        let mut naming = Self { site, found, hosts };
        for _ in 0..LINKS_MAX {
            let linked: Vec<(Host, usize)> =
                naming.found.iter().filter_map(|(url, found_by)| naming.nearer_host(url, found_by)).collect();
            if linked.is_empty() {
                break;
            }
            for (host, links) in linked {
                let nearest = naming.hosts.entry(host).or_insert(links);
                *nearest = links.min(*nearest);
            }
        }
        naming
    }

    /// The host of a document to which the robots.txt, the DNS records or the home page of a named host link, with its distance, if this is
    /// less than the known distance.
    fn nearer_host(&self, url: &ManifestUrl, found_by: &FoundBy) -> Option<(Host, usize)> {
        let is_link_of_host = matches!(
            found_by.discovery,
            Discovery::Agentmap | Discovery::Dns | Discovery::HtmlLink | Discovery::LinkHeader
        );
        if !is_link_of_host || naming(&self.site, found_by) != Naming::Site {
            return None;
        }
        let links = self.links_to_host(&found_by.linked_from.as_ref()?.host())? + 1;
        let host = url.host();
        self.links_to_host(&host).is_none_or(|known| links < known).then_some((host, links))
    }

    /// Whether the site names a host: the domain, its `www.` host, a host that the operator listed, or one to which the robots.txt,
    /// the DNS records or the home page of such a host link.
    pub fn names_host(&self, host: &Host) -> bool {
        self.links_to_host(host).is_some()
    }

    fn links_to_host(&self, host: &Host) -> Option<usize> {
        if is_main_host(&self.site, host) { Some(0) } else { self.hosts.get(host).copied() }
    }

    /// The result of [`Self::names`] as it is stored with a manifest.
    pub fn named_by(&self, url: &ManifestUrl) -> NamedBy {
        if self.names(url) { NamedBy::Site } else { NamedBy::Others }
    }

    /// Whether the site names a document: the document is at a usual path of one of its hosts, or the robots.txt, the DNS records or the
    /// home page of such a host or a document that the site names links to it. Documents in the operator's list also count as named by the
    /// site.
    pub fn names(&self, url: &ManifestUrl) -> bool {
        self.links_away(url).is_some()
    }

    /// Whether a document is kept like one that the site itself publishes: at a usual path of one of its hosts, in the operator's list, or
    /// at one of its hosts if the domain or this host itself names it (see [`Self::is_word_of_publisher`]). Documents that other links lead
    /// to may have been written by users.
    pub fn publishes(&self, url: &ManifestUrl) -> bool {
        let is_published = self.names_host(&url.host()) && (is_usual(url) || self.is_named_by_publisher(url));
        self.links_away(url) == Some(0) || is_published
    }

    fn is_named_by_publisher(&self, url: &ManifestUrl) -> bool {
        self.found.get(url).is_some_and(|found_by| self.is_word_of_publisher(&url.host(), found_by))
    }

    /// Whether a source says what the publisher of a host publishes there: a usual path, or the robots.txt, the DNS records, the home page
    /// or the list of APIs (RFC 9727) of the domain or of this host. Another host below the domain may belong to a customer, even if the
    /// operator lists it or the home page links to it, so it cannot speak for the domain. The operator's list says what is requested, not
    /// who wrote it: anybody can propose a line of a public list.
    pub fn is_word_of_publisher(&self, host: &Host, found_by: &FoundBy) -> bool {
        let from = found_by.linked_from.as_ref();
        let is_main = |host: &Host| is_main_host(&self.site, host);
        let is_own = from.is_none_or(|from| is_main(&from.host()) || from.host() == *host);
        // RFC 9727 section 2
        let is_own_api = || from.is_some_and(|from| from.path_and_query() == "/.well-known/api-catalog");
        let is_listed = found_by.discovery == Discovery::Listed;
        is_own && !is_listed && (naming(&self.site, found_by) == Naming::Site || is_own_api())
    }

    /// Who publishes a document: the site at its domain, the owner of the host at another host, or an unknown user.
    pub fn publisher(&self, url: &ManifestUrl) -> Publisher {
        let is_at_own_path = is_usual(url) || url.path_and_query() == HOME_PAGE;
        match is_at_own_path || self.is_named_by_publisher(url) {
            false => Publisher::Unknown,
            true if is_main_host(&self.site, &url.host()) => Publisher::Site,
            true => Publisher::Host,
        }
    }

    /// The distance of a document: the number of links that lead to it from documents that the site itself publishes, at most 32. It is 0
    /// at a usual path of the domain or of a listed host, and for a URL of the operator's list. At a usual path of another host it is the
    /// distance of the host. `None` if only others name the document.
    pub fn links_away(&self, url: &ManifestUrl) -> Option<usize> {
        let mut current = url;
        for links in 0..LINKS_MAX {
            if is_usual(current)
                && let Some(to_host) = self.links_to_host(&current.host())
            {
                return Some(links + to_host);
            }
            let found_by = self.found.get(current)?;
            match (naming(&self.site, found_by), &found_by.linked_from) {
                (Naming::LikeThis, Some(from)) => current = from,
                (Naming::Site, _) if found_by.discovery == Discovery::Listed => return Some(links),
                (Naming::Site, Some(from)) => return Some(self.links_to_host(&from.host())? + links + 1),
                (Naming::Site, None) => return Some(self.links_to_host(&current.host())? + links),
                _ => return None,
            }
        }
        None
    }
}

fn naming(site: &SiteName, found_by: &FoundBy) -> Naming {
    let from = found_by.linked_from.as_ref();
    match (found_by.discovery, from) {
        (Discovery::Listed, _) => Naming::Site,
        (_, Some(from)) if from.site() != *site => Naming::Others,
        (Discovery::WellKnown | Discovery::Root, _)
        | (Discovery::Agentmap | Discovery::Dns | Discovery::HtmlLink | Discovery::LinkHeader, Some(_)) => {
            Naming::Site
        }
        // a linked document may also have been submitted
        (Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted, Some(_)) => Naming::LikeThis,
        // submitted, or the URL of the linking document was too long to be stored
        _ => Naming::Others,
    }
}

/// The customer of a site to whom a host belongs: the name directly below the domain. Names below that name cost the customer nothing, so
/// they do not count.
pub fn customer_of<'a>(host: &'a Host, site: &SiteName) -> &'a str {
    let below = host.as_str().strip_suffix(site.as_str()).and_then(|name| name.strip_suffix('.'));
    below.and_then(|below| below.rsplit('.').next()).unwrap_or(host.as_str())
}

/// Whether a document may speak for its site: the site names it, and its publisher is known. Users may have written the others.
pub fn may_speak(named_by: NamedBy, publisher: Publisher) -> bool {
    named_by == NamedBy::Site && publisher != Publisher::Unknown
}

/// The publisher whose documents speak for a site: the site itself, or the owners of its other hosts if it publishes none at its domain.
/// `None` if no document may speak for it.
pub fn speaker(documents: impl IntoIterator<Item = (NamedBy, Publisher)>) -> Option<Publisher> {
    let may_speak = |(named_by, publisher)| may_speak(named_by, publisher).then_some(publisher);
    documents.into_iter().filter_map(may_speak).min_by_key(|publisher| *publisher != Publisher::Site)
}

/// Who names a document, if only its URL is known: the site at a usual path of its domain or its `www.` host, otherwise others.
pub fn named_by_url(url: &ManifestUrl) -> NamedBy {
    let is_of_site = is_usual(url) && is_main_host(&url.site(), &url.host());
    if is_of_site { NamedBy::Site } else { NamedBy::Others }
}

/// Who publishes a document, if only its URL is known: the site at a usual path of its domain or its `www.` host, the host at a usual path
/// of another host.
pub fn publisher_by_url(url: &ManifestUrl) -> Publisher {
    match named_by_url(url) {
        NamedBy::Site => Publisher::Site,
        NamedBy::Others if is_usual(url) => Publisher::Host,
        NamedBy::Others => Publisher::Unknown,
    }
}

/// Whether only the host itself can publish at a URL: below `/.well-known/`, or at a path of the table.
pub fn is_usual(url: &ManifestUrl) -> bool {
    url.is_well_known() || plan::find(&url.path_and_query()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    #[test]
    fn documents_at_other_hosts_speak_only_for_a_site_without_its_own() {
        use NamedBy::{Others, Site};
        let (own, host) = ((Site, Publisher::Site), (Site, Publisher::Host));
        for (documents, wanted) in [
            (vec![host, own], Some(Publisher::Site)),
            (vec![host, (Others, Publisher::Site)], Some(Publisher::Host)),
            (vec![(Site, Publisher::Unknown), (Others, Publisher::Host)], None),
        ] {
            assert_eq!(speaker(documents.clone()), wanted, "{documents:?}");
        }
    }

    fn is_named(found: &[(&str, Discovery, Option<&str>)], asked: &str) -> bool {
        let found_by = |(at, discovery, from): &(&str, Discovery, Option<&str>)| {
            (url(at), FoundBy { discovery: *discovery, linked_from: from.map(url) })
        };
        let site = SiteName::parse("a.example").unwrap();
        SiteNaming::new(site, found.iter().map(found_by).collect(), []).names(&url(asked))
    }

    #[test]
    fn a_site_names_documents_at_usual_paths_and_those_that_they_link_to() {
        let other = Some("https://other.example/");
        for path in ["/agent.json", "/.well-known/mcp.json", "/.well-known/a/b.json"] {
            let at = format!("https://a.example{path}");
            let found = [(at.as_str(), Discovery::CatalogEntry, other)];
            assert!(is_named(&found, &at), "{path}, whoever links to it");
        }
        let (catalog, page) = ("https://a.example/.well-known/ard.json", "https://www.a.example/en/");
        let (one, two) = ("https://a.example/x/one.json", "https://a.example/x/two.json");
        for (discovery, from) in [
            (Discovery::CatalogEntry, catalog),
            (Discovery::Pointer, catalog),
            (Discovery::Submitted, catalog),
            (Discovery::HtmlLink, page),
            (Discovery::Agentmap, two),
        ] {
            let chain = [(one, discovery, Some(from)), (two, Discovery::CatalogEntry, Some(one))];
            assert!(is_named(&chain, one) && is_named(&chain, two), "{discovery}");
        }
        assert!(is_named(&[(one, Discovery::Listed, None)], one), "the operator names it");
    }

    #[test]
    fn a_url_alone_names_documents_at_usual_paths_of_the_domain() {
        for own in ["https://a.example/agent.json", "https://www.a.example/.well-known/mcp.json"] {
            assert_eq!(named_by_url(&url(own)), NamedBy::Site, "{own}");
        }
        for other in ["https://a.example/u/agent.json", "https://tenant.a.example/agent.json"] {
            assert_eq!(named_by_url(&url(other)), NamedBy::Others, "{other}");
        }
        for (at, publisher) in [
            ("https://www.a.example/.well-known/mcp.json", Publisher::Site),
            ("https://tenant.a.example/agent.json", Publisher::Host),
            ("https://a.example/u/agent.json", Publisher::Unknown),
        ] {
            assert_eq!(publisher_by_url(&url(at)), publisher, "{at}");
        }
    }

    #[test]
    fn links_are_counted_from_what_the_site_itself_publishes() {
        let (catalog, page) = ("https://a.example/.well-known/ard.json", "https://a.example/en/");
        let (one, two) = ("https://a.example/u/one.json", "https://a.example/u/two.json");
        let (from_page, listed) = ("https://a.example/x.json", "https://a.example/y.json");
        let found_by = |discovery, from: Option<&str>| FoundBy { discovery, linked_from: from.map(url) };
        let found = HashMap::from([
            (url(catalog), found_by(Discovery::WellKnown, None)),
            (url(one), found_by(Discovery::CatalogEntry, Some(catalog))),
            (url(two), found_by(Discovery::Pointer, Some(one))),
            (url(from_page), found_by(Discovery::HtmlLink, Some(page))),
            (url(listed), found_by(Discovery::Listed, None)),
        ]);
        let naming = SiteNaming::new(SiteName::parse("a.example").unwrap(), found, []);
        let links = [catalog, listed, one, from_page, two].map(|at| naming.links_away(&url(at)));
        assert_eq!(links, [Some(0), Some(0), Some(1), Some(1), Some(2)]);
        assert_eq!(naming.links_away(&url("https://a.example/u/unknown.json")), None);
    }

    #[test]
    fn linked_documents_are_not_published_by_the_site_itself() {
        let (catalog, page) = ("https://a.example/.well-known/ard.json", "https://a.example/");
        let found_by = |discovery, from: Option<&str>| FoundBy { discovery, linked_from: from.map(url) };
        let upload = "https://a.example/u/one.json";
        let (at_api, at_home) = ("https://api.a.example/x.json", "https://a.example/x.json");
        let found = HashMap::from([
            (url(catalog), found_by(Discovery::WellKnown, None)),
            (url(upload), found_by(Discovery::CatalogEntry, Some(catalog))),
            (url(at_api), found_by(Discovery::HtmlLink, Some(page))),
            (url(at_home), found_by(Discovery::Agentmap, Some("https://a.example/robots.txt"))),
        ]);
        let apis = "https://a.example/.well-known/api-catalog";
        let (by_listed, of_listed) = ("https://a.example/u/two.json", "https://listed.a.example/x.json");
        let home_of_listed = Some("https://listed.a.example/");
        let (own_api, of_tenant) = ("https://a.example/openapi.json", "https://t1.a.example/openapi.json");
        let found = found.into_iter().chain([
            (url(apis), found_by(Discovery::WellKnown, None)),
            (url(own_api), found_by(Discovery::CatalogEntry, Some(apis))),
            (url(of_tenant), found_by(Discovery::CatalogEntry, Some(apis))),
            (url(by_listed), found_by(Discovery::HtmlLink, home_of_listed)),
            (url(of_listed), found_by(Discovery::HtmlLink, home_of_listed)),
        ]);
        let listed = Host::parse("listed.a.example").unwrap();
        let (listed_upload, listed_card) =
            ("https://a.example/u/listed.json", "https://a.example/agent.json");
        let found =
            found.chain([listed_upload, listed_card].map(|at| (url(at), found_by(Discovery::Listed, None))));
        let naming = SiteNaming::new(SiteName::parse("a.example").unwrap(), found.collect(), [listed]);
        for (at, publisher) in [
            (listed_upload, Publisher::Unknown),
            (listed_card, Publisher::Site),
            (own_api, Publisher::Site),
            (upload, Publisher::Unknown),
            (at_home, Publisher::Site),
            (by_listed, Publisher::Unknown),
            (of_listed, Publisher::Host),
            (of_tenant, Publisher::Host),
            (at_api, Publisher::Host),
            ("https://t1.a.example/agent.json", Publisher::Host),
            ("https://api.a.example/agent.json", Publisher::Host),
            ("https://listed.a.example/agent.json", Publisher::Host),
            ("https://listed.a.example/u/x.json", Publisher::Unknown),
        ] {
            assert_eq!(naming.publisher(&url(at)), publisher, "{at}");
        }
        for (at, expected) in [
            (own_api, true),
            (of_tenant, false),
            (catalog, true),
            ("https://a.example/agent.json", true),
            (at_api, true),
            ("https://api.a.example/agent.json", true),
            (at_home, true),
            (upload, false),
            ("https://t1.a.example/agent.json", false),
        ] {
            assert_eq!(naming.publishes(&url(at)), expected, "{at}");
        }
    }

    #[test]
    fn a_host_besides_the_domain_speaks_only_for_itself() {
        let (upload, at_api) = ("https://a.example/u/x.json", "https://api.a.example/x.json");
        let of_customer = "https://listed.a.example/robots.txt";
        let publisher = |at: &str, discovery, from: &str| {
            let found_by = |discovery, from: &str| FoundBy { discovery, linked_from: Some(url(from)) };
            let found = HashMap::from([
                (url("https://api.a.example/y.json"), found_by(Discovery::HtmlLink, "https://a.example/")),
                (url(at), found_by(discovery, from)),
            ]);
            let listed = Host::parse("listed.a.example").unwrap();
            SiteNaming::new(SiteName::parse("a.example").unwrap(), found, [listed]).publisher(&url(at))
        };
        for (at, discovery, from, expected) in [
            (upload, Discovery::Agentmap, "https://www.a.example/robots.txt", Publisher::Site),
            (at_api, Discovery::Agentmap, "https://a.example/robots.txt", Publisher::Host),
            (at_api, Discovery::Agentmap, "https://api.a.example/robots.txt", Publisher::Host),
            (upload, Discovery::Agentmap, "https://api.a.example/robots.txt", Publisher::Unknown),
            (upload, Discovery::Agentmap, of_customer, Publisher::Unknown),
            (upload, Discovery::CatalogEntry, "https://a.example/.well-known/ard.json", Publisher::Unknown),
            ("https://a.example/", Discovery::CatalogEntry, of_customer, Publisher::Site),
            ("https://listed.a.example/", Discovery::Root, "https://a.example/", Publisher::Host),
        ] {
            assert_eq!(publisher(at, discovery, from), expected, "{at} from {from}");
        }
    }

    #[test]
    fn the_distance_of_a_host_is_that_of_the_document_that_names_it() {
        let (page, robots) = ("https://a.example/", "https://b.a.example/agent.json");
        let (at_b, at_c) = ("https://b.a.example/x.json", "https://c.a.example/x.json");
        let of_catalog = "https://d.a.example/.well-known/mcp.json";
        let found_by = |discovery, from: Option<&str>| FoundBy { discovery, linked_from: from.map(url) };
        let found = HashMap::from([
            (url(at_b), found_by(Discovery::HtmlLink, Some(page))),
            (url(at_c), found_by(Discovery::Agentmap, Some(robots))),
            (url(of_catalog), found_by(Discovery::CatalogEntry, Some("https://c.a.example/agents.json"))),
        ]);
        let naming = SiteNaming::new(SiteName::parse("a.example").unwrap(), found, []);
        for (at, links) in [
            ("https://www.a.example/agent.json", Some(0)),
            (at_b, Some(1)),
            ("https://b.a.example/agent.json", Some(1)),
            (at_c, Some(2)),
            ("https://c.a.example/.well-known/agent-card.json", Some(2)),
            (of_catalog, Some(3)),
            ("https://d.a.example/agent.json", None),
        ] {
            assert_eq!(naming.links_away(&url(at)), links, "{at}");
        }
    }

    #[test]
    fn links_of_documents_named_by_others_do_not_make_them_the_sites_own() {
        let (one, two) = ("https://a.example/u/one.json", "https://a.example/u/two.json");
        for (discovery, from) in [
            (Discovery::CatalogEntry, Some("https://evil.example/")),
            (Discovery::Submitted, None),
            (Discovery::CatalogEntry, None),
            (Discovery::CatalogEntry, Some("https://a.example/u/not-found.json")),
            (Discovery::CatalogEntry, Some(two)),
        ] {
            let chain = [(one, discovery, from), (two, Discovery::CatalogEntry, Some(one))];
            assert!(!is_named(&chain, one) && !is_named(&chain, two), "{discovery} {from:?}");
        }
        assert!(!is_named(&[], one));
        for odd in ["/.well-known/..%2Fu/one.json", "/.well-known/x?file=u/one.json"] {
            assert!(!is_named(&[], &format!("https://a.example{odd}")), "{odd}");
        }
    }

    #[test]
    fn hosts_of_customers_do_not_name_documents() {
        let (card, upload) = ("https://tenant.a.example/agent.json", "https://a.example/u/evil.json");
        for (discovery, from) in [
            (Discovery::HtmlLink, "https://tenant.a.example/"),
            (Discovery::Agentmap, "https://tenant.a.example/robots.txt"),
            (Discovery::CatalogEntry, card),
        ] {
            let found = [(card, Discovery::Root, None), (upload, discovery, Some(from))];
            assert!(!is_named(&found, card) && !is_named(&found, upload), "{discovery}");
        }
        let catalog = "https://a.example/agents.json";
        let of_upload = [(upload, Discovery::Submitted, None), (card, Discovery::Pointer, Some(upload))];
        assert!(!is_named(&of_upload, card), "an upload does not make a host the site's own");
        let linked = "https://tenant.a.example/x.json";
        let by_site = [
            (catalog, Discovery::Root, None),
            (linked, Discovery::Pointer, Some(catalog)),
            (card, Discovery::Root, None),
        ];
        assert!(is_named(&by_site, linked), "the site links to the document");
        assert!(!is_named(&by_site, card), "the site does not link to other documents of that host");
        let listed = SiteNaming::new(
            SiteName::parse("a.example").unwrap(),
            HashMap::new(),
            [Host::parse("tenant.a.example").unwrap()],
        );
        assert!(listed.names(&url(card)) && !listed.names(&url("https://other.a.example/agent.json")));
    }
}
