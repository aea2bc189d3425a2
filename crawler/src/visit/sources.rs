//! Collects what a visit finds out about links to the known documents of a site.
//!
//! A document is stored with one source: a document or a host that links to it. If the source belongs to the site, the document counts as
//! named by the site. So a source that no longer contains the link must be replaced.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use manifest::{Discovery, Host, ManifestUrl};
use policy::naming::FoundBy;
use serde::{Deserialize, Serialize};
use store::{LinkChanges, NewSource, ResourceState, SiteState};

use super::fetched::Fetched;
use super::findings::known;
use super::links::FollowUps;
use super::own_hosts::{OwnHosts, is_of_document};
use super::task::{NamedBy, Role, Task};

/// Maximum number of sources of one document that are compared: this many documents, and this many hosts. Documents that are fewer links
/// away from the site are requested first, so they are compared.
const SOURCES_MAX: usize = 4;
/// Maximum number of documents between a document with another source and one that the site names: the number that [`policy::naming`]
/// follows.
const SOURCES_BETWEEN_MAX: usize = 16;

/// A source of which all links were read.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadWhole<'a> {
    Document(&'a ManifestUrl),
    Robots(&'a Host),
    Page(&'a Host),
    Records(&'a Host),
}

impl ReadWhole<'_> {
    /// Whether this is the stored source of a known document.
    fn is_source_of(self, known: &ResourceState) -> bool {
        let Some(from) = &known.linked_from else { return false };
        match (self, known.discovery) {
            (Self::Robots(host), Discovery::Agentmap)
            | (Self::Page(host), Discovery::HtmlLink | Discovery::LinkHeader)
            | (Self::Records(host), Discovery::Dns) => from.host() == *host,
            (Self::Document(url), discovery) if is_of_document(discovery) => from == url,
            _ => false,
        }
    }
}

/// Links to known documents. There are at most as many as the site has documents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sources {
    /// Documents to which their source no longer links.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unlinked: BTreeSet<ManifestUrl>,
    /// Further sources of documents that belong to the site.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    linked: BTreeMap<ManifestUrl, Vec<(Discovery, ManifestUrl)>>,
    /// Documents with links beyond the limits of the visit.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unfollowed: BTreeSet<ManifestUrl>,
}

impl Sources {
    /// Compares the links that were read with the stored sources, and with the sources by which this visit has requested new URLs. Links of
    /// a document that only others name do not count for the site, so that losing one causes no request.
    pub(super) fn compare(
        &mut self,
        (site, fetched): (&SiteState, &[Fetched]),
        read: ReadWhole<'_>,
        (links, named_by): (&FollowUps, NamedBy),
    ) {
        let links: HashMap<&ManifestUrl, &Task> = links.tasks.iter().map(|task| (&task.url, task)).collect();
        for known in site.resources.iter().filter(|known| !is_part(known)) {
            match links.get(&known.url) {
                None if named_by != NamedBy::Others && read.is_source_of(known) => {
                    self.unlinked.insert(known.url.clone());
                }
                Some(task) if named_by != NamedBy::Others && !read.is_source_of(known) => self.add(task),
                _ => {}
            }
        }
        if named_by == NamedBy::Others {
            return;
        }
        let may_get_better =
            |fetched: &&Fetched| fetched.named_by == NamedBy::Others || is_of_document(fetched.discovery);
        let is_new =
            |fetched: &&Fetched| fetched.role == Role::Manifest && known(site, &fetched.url).is_none();
        let new = fetched.iter().filter(may_get_better).filter(is_new);
        for task in new.filter_map(|fetched| links.get(&fetched.url)) {
            self.add(task);
        }
    }

    /// Adds the source of a task to the sources of its document.
    fn add(&mut self, task: &Task) {
        let Some(from) = task.linked_from.as_deref() else { return };
        let sources = self.linked.entry(task.url.clone()).or_default();
        let source = (task.discovery, from.clone());
        let is_of_same_kind =
            |(discovery, _): &&(Discovery, _)| is_of_document(*discovery) == is_of_document(source.0);
        if sources.iter().filter(is_of_same_kind).count() < SOURCES_MAX && !sources.contains(&source) {
            sources.push(source);
        }
    }

    /// Whether a document lost its source, and no other source was found so far.
    pub(super) fn has_lost(&self) -> bool {
        self.unlinked.iter().any(|url| !self.linked.contains_key(url))
    }

    /// Records that a document has links beyond the limits of the visit.
    pub(super) fn add_unfollowed(&mut self, url: &ManifestUrl) {
        self.unfollowed.insert(url.clone());
    }

    /// The changes to the store after all links of the visit are known: documents that get another source, documents that lost their
    /// source, and documents that the next visit must request without conditions. If a document has no source left, these are all documents
    /// that were not read, because one of them may link to it.
    pub(super) fn conclude(self, site: &SiteState, fetched: &[Fetched]) -> LinkChanges {
        let relinked = self.relinked(site, fetched);
        let Self { unlinked, linked: _, unfollowed } = self;
        let unlinked: Vec<ManifestUrl> =
            unlinked.into_iter().filter(|url| !relinked.contains_key(url)).collect();
        let mut unread = unfollowed;
        if !unlinked.is_empty() {
            let is_unread = |fetched: &&Fetched| {
                let is_copy = fetched.outcome.is_present() && fetched.manifest.is_none();
                is_copy && matches!(fetched.role, Role::Manifest | Role::Page)
            };
            unread.extend(
                fetched.iter().filter(|fetched| is_unread(fetched)).map(|fetched| fetched.url.clone()),
            );
        }
        let new = |(url, (discovery, linked_from))| NewSource { url, discovery, linked_from };
        let relinked = relinked.into_iter().map(new).collect();
        LinkChanges { unlinked, relinked, unread: unread.into_iter().collect() }
    }

    /// The nearest other source for each document that lost its source, that the site does not name, or whose source is only a link of a
    /// document although the robots.txt, the DNS records or the home page of the site link to it, too. A document that gets a new source
    /// may in turn be the source of another one.
    fn relinked(
        &self,
        site: &SiteState,
        fetched: &[Fetched],
    ) -> BTreeMap<ManifestUrl, (Discovery, ManifestUrl)> {
        let mut relinked = BTreeMap::new();
        if self.linked.is_empty() {
            return relinked;
        }
        let of_site = site.resources.iter().map(|known| (&known.url, known.discovery, &known.linked_from));
        let mut found: HashMap<ManifestUrl, FoundBy> = of_site
            .map(|(url, discovery, from)| (url.clone(), FoundBy { discovery, linked_from: from.clone() }))
            .collect();
        for Fetched { url, discovery, linked_from, .. } in fetched {
            let linked_from = linked_from.as_deref().cloned();
            found.insert(url.clone(), FoundBy { discovery: *discovery, linked_from });
        }
        for (url, found_by) in &mut found {
            if self.unlinked.contains(url) {
                found_by.linked_from = None;
            }
        }
        for _ in 0..SOURCES_BETWEEN_MAX {
            let own = OwnHosts::with_sources(site, found.clone());
            let nearest = |(url, sources): (&ManifestUrl, &Vec<(Discovery, ManifestUrl)>)| {
                let needs_one = self.unlinked.contains(url) || !own.names(url);
                let is_word = |(discovery, from): &(Discovery, ManifestUrl)| {
                    own.is_word_of_publisher(url, *discovery, Some(from))
                };
                let found_by = found.get(url);
                let has_word = found_by.is_some_and(|found_by| {
                    own.is_word_of_publisher(url, found_by.discovery, found_by.linked_from.as_ref())
                });
                let mut sources: Vec<_> =
                    sources.iter().filter_map(|source| Some((links_to(source, &own)?, source))).collect();
                sources.sort_by_key(|(links, source)| (!is_word(source), *links));
                let is_better = |source| !has_word && is_word(source);
                let (_, source) = sources.first().filter(|(_, source)| needs_one || is_better(source))?;
                if relinked.contains_key(url) {
                    return None;
                }
                Some((url.clone(), (*source).clone()))
            };
            let new: Vec<_> = self.linked.iter().filter_map(nearest).collect();
            if new.is_empty() {
                break;
            }
            for (url, (discovery, from)) in new {
                found.insert(url.clone(), FoundBy { discovery, linked_from: Some(from.clone()) });
                relinked.insert(url, (discovery, from));
            }
        }
        relinked
    }
}

/// The number of links that lead from a published document to a source. `None` if the site does not name the source.
fn links_to((discovery, from): &(Discovery, ManifestUrl), own: &OwnHosts) -> Option<usize> {
    if is_of_document(*discovery) {
        own.links_away(from).map(|links| links + 1)
    } else {
        own.contains(&from.host()).then_some(0)
    }
}

/// Whether a known document only completes another one and is requested with it.
fn is_part(known: &ResourceState) -> bool {
    known.manifest_id.is_none() && known.outcome.is_present()
}

/// Keeps the stored source of a known document if only others name the document in this visit. Applies if the operator or the site named
/// it, and to manifests in the index, so that links of third parties cannot change the owner of the document. A link of a document does not
/// replace the robots.txt, the DNS records or the home page as the source: these say what the site itself publishes.
pub(super) fn keep_source(task: &mut Task, known: &ResourceState, own: &OwnHosts) {
    let has_source = || !is_part(known) && (own.names(&known.url) || known.manifest_id.is_some());
    let is_word = |discovery, from| own.is_word_of_publisher(&known.url, discovery, from);
    let is_better = || {
        is_word(known.discovery, known.linked_from.as_ref())
            && !is_word(task.discovery, task.linked_from.as_deref())
    };
    let is_kept = || !is_linked_by_site(task, own) || own.names(&known.url) && is_better();
    if known.discovery == Discovery::Listed && !is_word(task.discovery, task.linked_from.as_deref())
        || has_source() && is_kept()
    {
        task.discovery = known.discovery;
        task.linked_from = known.linked_from.clone().map(Box::new);
    }
}

/// Whether a document of the site, or one of its hosts, is the source of a task.
fn is_linked_by_site(task: &Task, own: &OwnHosts) -> bool {
    let is_own = |from: &ManifestUrl| {
        if is_of_document(task.discovery) { own.names(from) } else { own.contains(&from.host()) }
    };
    task.named_by != NamedBy::Others || task.linked_from.as_deref().is_some_and(is_own)
}

#[cfg(test)]
mod tests {
    use manifest::SiteName;
    use policy::{BodyKind, FetchOutcome};

    use super::*;
    use crate::visit::fixtures::manifest;

    const CATALOG: &str = "https://a.example/agents.json";
    const SECOND: &str = "https://a.example/.well-known/ai-catalog.json";
    const PAGE: &str = "https://a.example/";
    const UPLOAD: &str = "https://a.example/u/x.json";
    const CARD: &str = "https://t1.a.example/x.json";

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    /// The catalog lists the upload, and the home page links to the card at the host of a customer.
    fn site() -> SiteState {
        SiteState {
            resources: vec![
                manifest(CATALOG, Discovery::Root, None),
                manifest(SECOND, Discovery::WellKnown, None),
                manifest(UPLOAD, Discovery::CatalogEntry, Some(CATALOG)),
                manifest(CARD, Discovery::HtmlLink, Some(PAGE)),
            ],
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        }
    }

    fn task(at: &str, discovery: Discovery, from: Option<&str>) -> Task {
        let linked_from = from.map(|from| Box::new(url(from)));
        Task { linked_from, ..Task::new(url(at), BodyKind::Manifest, discovery) }
    }

    fn links(tasks: impl Into<Vec<Task>>) -> FollowUps {
        FollowUps { tasks: tasks.into(), ..FollowUps::default() }
    }

    fn fetched(at: &str, outcome: FetchOutcome) -> Fetched {
        let task = task(at, Discovery::CatalogEntry, Some(CATALOG));
        Fetched::unanswered(&task, outcome, None, crate::clock::now())
    }

    #[test]
    fn links_of_third_parties_do_not_change_the_owner_of_an_indexed_manifest() {
        const FIRST: &str = "https://first.example/x.json";
        const EVIL: &str = "https://evil.example/x.json";
        let at = "https://a.example/u/g.json";
        let in_index = manifest(at, Discovery::CatalogEntry, Some(FIRST));
        let bare = ResourceState { manifest_id: None, outcome: FetchOutcome::NotFound, ..in_index.clone() };
        let mut site = site();
        site.resources.push(in_index.clone());
        for (known, from, expected) in
            [(&in_index, EVIL, FIRST), (&bare, EVIL, EVIL), (&in_index, CATALOG, CATALOG)]
        {
            let mut linked =
                Task { named_by: NamedBy::Others, ..task(at, Discovery::CatalogEntry, Some(from)) };
            keep_source(&mut linked, known, &OwnHosts::of(&site));
            assert_eq!(linked.linked_from.as_deref(), Some(&url(expected)), "{from}");
        }
    }

    #[test]
    fn a_document_loses_the_source_that_no_longer_links_to_it() {
        let host = url(PAGE).host();
        let (catalog, second) = (url(CATALOG), url(SECOND));
        for (read, tasks, unlinked) in [
            (ReadWhole::Document(&catalog), Vec::new(), Some(UPLOAD)),
            (ReadWhole::Document(&catalog), vec![task(UPLOAD, Discovery::CatalogEntry, Some(CATALOG))], None),
            (ReadWhole::Document(&second), Vec::new(), None),
            (ReadWhole::Page(&host), Vec::new(), Some(CARD)),
            (ReadWhole::Page(&host), vec![task(CARD, Discovery::LinkHeader, Some(PAGE))], None),
            (ReadWhole::Robots(&host), Vec::new(), None),
            (ReadWhole::Records(&host), Vec::new(), None),
        ] {
            let mut sources = Sources::default();
            sources.compare((&site(), &[]), read, (&links(tasks), NamedBy::Site));
            assert_eq!(sources.has_lost(), unlinked.is_some(), "{read:?}");
            let changes = sources.conclude(&site(), &[]);
            assert_eq!(changes.unlinked, Vec::from_iter(unlinked.map(url)), "{read:?}");
        }
    }

    #[test]
    fn another_document_of_the_site_becomes_the_source() {
        let (catalog, second) = (url(CATALOG), url(SECOND));
        let linked = links([task(UPLOAD, Discovery::CatalogEntry, Some(SECOND))]);
        for (named_by, is_taken_over) in [(NamedBy::Site, true), (NamedBy::Others, false)] {
            let mut sources = Sources::default();
            sources.compare((&site(), &[]), ReadWhole::Document(&second), (&linked, named_by));
            let none = (&FollowUps::default(), NamedBy::Site);
            sources.compare((&site(), &[]), ReadWhole::Document(&catalog), none);
            let written = serde_json::to_value(&sources).unwrap();
            let sources: Sources = serde_json::from_value(written).unwrap();
            // even if the visit does not request the document
            for results in [vec![fetched(UPLOAD, FetchOutcome::Found)], Vec::new()] {
                let changes = sources.clone().conclude(&site(), &results);
                assert_eq!(changes.unlinked.is_empty(), is_taken_over);
                let expected = source(UPLOAD, Discovery::CatalogEntry, SECOND);
                assert_eq!(changes.relinked, Vec::from_iter(is_taken_over.then_some(expected)));
            }
        }
    }

    fn source(at: &str, discovery: Discovery, from: &str) -> NewSource {
        NewSource { url: url(at), discovery, linked_from: url(from) }
    }

    /// The catalog no longer links to a document, so the links of that document are lost too. The second catalog and robots.txt link to
    /// both documents.
    #[test]
    fn the_order_of_links_in_a_visit_does_not_matter() {
        const LINKED: &str = "https://a.example/u/linked.json";
        const ROBOTS: &str = "https://a.example/robots.txt";
        let (catalog, second, upload, host) = (url(CATALOG), url(SECOND), url(UPLOAD), url(ROBOTS).host());
        let mut site = site();
        site.resources.push(manifest(LINKED, Discovery::Pointer, Some(UPLOAD)));
        let entry = |at: &str, from: &str| task(at, Discovery::CatalogEntry, Some(from));
        let line = |at: &str| task(at, Discovery::Agentmap, Some(ROBOTS));
        let reads = [
            (ReadWhole::Document(&catalog), links([]), NamedBy::Document),
            (
                ReadWhole::Document(&upload),
                links([task(LINKED, Discovery::Pointer, Some(UPLOAD))]),
                NamedBy::Document,
            ),
            (ReadWhole::Document(&second), links([entry(UPLOAD, SECOND)]), NamedBy::Document),
            (ReadWhole::Robots(&host), links([line(UPLOAD)]), NamedBy::Site),
        ];
        let relinked = |order: &[usize]| {
            let mut sources = Sources::default();
            for (read, links, named_by) in order.iter().map(|at| &reads[*at]) {
                sources.compare((&site, &[]), *read, (links, *named_by));
            }
            sources.conclude(&site, &[])
        };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
            let changes = relinked(&order);
            assert_eq!(
                changes.relinked,
                [source(UPLOAD, Discovery::Agentmap, ROBOTS)],
                "the nearest: {order:?}"
            );
            assert_eq!(changes.unlinked, []);
        }
        assert_eq!(relinked(&[0, 1]).unlinked, [url(UPLOAD)], "nothing else links to it");
        let theirs = manifest(LINKED, Discovery::CatalogEntry, Some("https://evil.example/a.json"));
        *site.resources.last_mut().unwrap() = theirs;
        let mut sources = Sources::default();
        sources.compare(
            (&site, &[]),
            ReadWhole::Document(&second),
            (&links([entry(LINKED, UPLOAD)]), NamedBy::Document),
        );
        sources.compare((&site, &[]), ReadWhole::Document(&catalog), (&links([]), NamedBy::Document));
        assert_eq!(
            sources.clone().conclude(&site, &[]).relinked,
            [],
            "the site no longer contains the linking document"
        );
        sources.compare(
            (&site, &[]),
            ReadWhole::Document(&second),
            (&links([entry(UPLOAD, SECOND)]), NamedBy::Document),
        );
        let both = [
            source(LINKED, Discovery::CatalogEntry, UPLOAD),
            source(UPLOAD, Discovery::CatalogEntry, SECOND),
        ];
        assert_eq!(sources.conclude(&site, &[]).relinked, both, "the second document follows from the first");
    }

    #[test]
    fn links_of_the_site_apply_to_urls_that_others_named_and_the_visit_has_requested() {
        let second = url(SECOND);
        let evil = task(UPLOAD, Discovery::CatalogEntry, Some("https://evil.example/a.json"));
        let evil = Task { named_by: NamedBy::Others, ..evil };
        let results = [Fetched::unanswered(&evil, FetchOutcome::Found, None, crate::clock::now())];
        let mut site = site();
        site.resources.retain(|known| known.url.as_str() != UPLOAD);
        let linked = links([task(UPLOAD, Discovery::CatalogEntry, Some(SECOND))]);
        let mut sources = Sources::default();
        sources.compare((&site, &results), ReadWhole::Document(&second), (&linked, NamedBy::Document));
        let changes = sources.conclude(&site, &results);
        assert_eq!(changes.relinked, [source(UPLOAD, Discovery::CatalogEntry, SECOND)]);
    }

    /// A catalog may list documents of users. So a document that the home page links to as well is the site's own, whichever link is read
    /// first.
    #[test]
    fn the_home_page_is_a_better_source_than_a_catalog() {
        let page = url(PAGE).host();
        let of_page = links([task(UPLOAD, Discovery::HtmlLink, Some(PAGE))]);
        let new = url("https://a.example/u/new.json");
        let of_page_too = links([task(new.as_str(), Discovery::HtmlLink, Some(PAGE))]);
        let results = [fetched(new.as_str(), FetchOutcome::Found)];
        for (results, links, at) in
            [(&results[..0], &of_page, UPLOAD), (&results, &of_page_too, new.as_str())]
        {
            for (named_by, relinked) in [(NamedBy::Site, true), (NamedBy::Others, false)] {
                let mut sources = Sources::default();
                sources.compare((&site(), results), ReadWhole::Page(&page), (links, named_by));
                let expected = source(at, Discovery::HtmlLink, PAGE);
                assert_eq!(
                    sources.conclude(&site(), results).relinked,
                    Vec::from_iter(relinked.then_some(expected))
                );
            }
        }
        let known = manifest(UPLOAD, Discovery::HtmlLink, Some(PAGE));
        let listed = |from: &str| {
            let mut task = task(UPLOAD, Discovery::CatalogEntry, Some(from));
            keep_source(&mut task, &known, &OwnHosts::of(&site()));
            task.discovery
        };
        assert_eq!(listed(CATALOG), Discovery::HtmlLink, "a link of the catalog does not replace it");
    }

    #[test]
    fn documents_that_were_not_read_are_read_whole_after_a_link_is_lost() {
        let catalog = url(CATALOG);
        let results = || {
            [
                fetched(SECOND, FetchOutcome::NotModified),
                fetched(UPLOAD, FetchOutcome::NotFound),
                Fetched { role: Role::Part, ..fetched(PAGE, FetchOutcome::NotModified) },
            ]
        };
        let mut sources = Sources::default();
        assert_eq!(sources.clone().conclude(&site(), &results()), LinkChanges::default());
        let none = (&FollowUps::default(), NamedBy::Site);
        sources.compare((&site(), &[]), ReadWhole::Document(&catalog), none);
        assert_eq!(sources.conclude(&site(), &results()).unread, [url(SECOND)]);
        let mut sources = Sources::default();
        sources.add_unfollowed(&catalog);
        assert_eq!(sources.conclude(&site(), &[]).unread, [catalog]);
    }

    /// Otherwise such a document could cause all documents of the site to be downloaded in full in every visit.
    #[test]
    fn does_not_send_a_request_for_a_lost_link_of_a_document_of_third_parties() {
        let upload = url("https://a.example/u/other.json");
        let mut site = site();
        let linked =
            manifest("https://a.example/u/linked.json", Discovery::CatalogEntry, Some(upload.as_str()));
        site.resources.push(linked);
        for (named_by, unread) in [(NamedBy::Others, Vec::new()), (NamedBy::Document, vec![url(SECOND)])] {
            let mut sources = Sources::default();
            sources.compare((&site, &[]), ReadWhole::Document(&upload), (&FollowUps::default(), named_by));
            let results = [fetched(SECOND, FetchOutcome::NotModified)];
            assert_eq!(sources.conclude(&site, &results).unread, unread, "{named_by:?}");
        }
    }

    #[test]
    fn links_of_third_parties_do_not_replace_sources_that_the_site_named() {
        let (evil, upload) = ("https://evil.example/a.json", "https://a.example/u/other.json");
        let mut site = site();
        let listed = manifest("https://a.example/l.json", Discovery::Listed, None);
        let theirs = manifest(upload, Discovery::CatalogEntry, Some(evil));
        site.resources.extend([listed.clone(), theirs.clone()]);
        let own = OwnHosts::of(&site);
        let after = |known: &ResourceState, from: &str| {
            let mut task = Task {
                named_by: NamedBy::Others,
                ..task(known.url.as_str(), Discovery::CatalogEntry, Some(from))
            };
            keep_source(&mut task, known, &own);
            (task.discovery, task.linked_from.map(|from| *from), task.named_by)
        };
        let named = &site.resources[2];
        let kept = (Discovery::CatalogEntry, Some(url(CATALOG)), NamedBy::Others);
        assert_eq!(after(named, upload), kept);
        assert_eq!(after(named, SECOND).1, Some(url(SECOND)), "a link of the site");
        let gone = ResourceState { manifest_id: None, outcome: FetchOutcome::NotFound, ..named.clone() };
        assert_eq!(
            after(&gone, upload),
            kept,
            "the source is kept if the document returns after it was missing"
        );
        let part = ResourceState { manifest_id: None, ..named.clone() };
        assert_eq!(after(&part, upload).1, Some(url(upload)), "a part is requested with its manifest");
        assert_eq!(after(&theirs, upload).1, Some(url(evil)), "its first source");
        assert_eq!(after(&listed, CATALOG), (Discovery::Listed, None, NamedBy::Others));
    }
}
