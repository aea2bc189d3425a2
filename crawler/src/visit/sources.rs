//! What a visit learned about the links to the known documents of a site.
//!
//! A document is stored with one source: what links to it. As long as that is the site's, the site names the document, so a source
//! that no longer has the link must not stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use manifest::{Discovery, Host, ManifestUrl};
use serde::{Deserialize, Serialize};
use store::{LinkChanges, ResourceState, SiteState};

use super::fetched::Fetched;
use super::links::FollowUps;
use super::own_hosts::OwnHosts;
use super::task::{NamedBy, Role, Task};

/// Where links were read, all of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadWhole<'a> {
    Document(&'a ManifestUrl),
    Robots(&'a Host),
    Page(&'a Host),
    Records(&'a Host),
}

impl ReadWhole<'_> {
    /// Whether a known document is stored as linked from here.
    fn is_source_of(self, known: &ResourceState) -> bool {
        let Some(from) = &known.linked_from else { return false };
        match (self, known.discovery) {
            (Self::Robots(host), Discovery::Agentmap)
            | (Self::Page(host), Discovery::HtmlLink | Discovery::LinkHeader)
            | (Self::Records(host), Discovery::Dns) => from.host() == *host,
            (Self::Document(url), Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted) => {
                from == url
            }
            _ => false,
        }
    }
}

/// Links to known documents. They are at most as many as the site has documents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Sources {
    /// Documents to which their source no longer links.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unlinked: BTreeSet<ManifestUrl>,
    /// Another source of the site for each document that has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    others: BTreeMap<ManifestUrl, (Discovery, ManifestUrl)>,
    /// Documents with links for which the visit had no room.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unfollowed: BTreeSet<ManifestUrl>,
}

impl Sources {
    /// Compares the links that were read with what is stored. Where only others name what was read, its links name nothing for the site,
    /// so that losing one causes no request.
    pub(super) fn compare(
        &mut self,
        site: &SiteState,
        read: ReadWhole<'_>,
        (links, named_by): (&FollowUps, NamedBy),
    ) {
        let links: HashMap<&ManifestUrl, &Task> = links.tasks.iter().map(|task| (&task.url, task)).collect();
        for known in &site.resources {
            let is_part = known.manifest_id.is_none() && known.outcome.is_present();
            match links.get(&known.url) {
                None if named_by != NamedBy::Others && read.is_source_of(known) && !is_part => {
                    self.unlinked.insert(known.url.clone());
                }
                Some(Task { discovery, linked_from: Some(from), .. })
                    if named_by != NamedBy::Others && !read.is_source_of(known) =>
                {
                    let source = || (*discovery, ManifestUrl::clone(from));
                    self.others.entry(known.url.clone()).or_insert_with(source);
                }
                _ => {}
            }
        }
    }

    /// Notes that a document has links for which the visit had no room.
    pub(super) fn add_unfollowed(&mut self, url: &ManifestUrl) {
        self.unfollowed.insert(url.clone());
    }

    /// Gives documents that lost their source another one. The rest, and what is to be read whole in the next visit, are to be stored.
    /// Where a document is left without a source, that is every document that was not read: one of them may link to it.
    pub(super) fn conclude(self, fetched: &mut [Fetched]) -> LinkChanges {
        let Self { unlinked, others, unfollowed } = self;
        for fetched in fetched.iter_mut().filter(|fetched| unlinked.contains(&fetched.url)) {
            if let Some((discovery, from)) = others.get(&fetched.url) {
                (fetched.discovery, fetched.linked_from) = (*discovery, Some(Box::new(from.clone())));
            }
        }
        let unlinked: Vec<ManifestUrl> =
            unlinked.into_iter().filter(|url| !others.contains_key(url)).collect();
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
        LinkChanges { unlinked, unread: unread.into_iter().collect() }
    }
}

/// Keeps the source by which the operator or the site names a known document, where only others name it in this visit.
pub(super) fn keep_source(task: &mut Task, known: &ResourceState, own: &OwnHosts) {
    let is_of_site = || known.manifest_id.is_some() && own.names(&known.url) && !is_linked_by_site(task, own);
    if known.discovery == Discovery::Listed || is_of_site() {
        task.discovery = known.discovery;
        task.linked_from = known.linked_from.clone().map(Box::new);
    }
}

/// Whether a document of the site, or one of its hosts, is the source of a task.
fn is_linked_by_site(task: &Task, own: &OwnHosts) -> bool {
    let is_own = |from: &ManifestUrl| match task.discovery {
        Discovery::CatalogEntry | Discovery::Pointer | Discovery::Submitted => own.names(from),
        _ => own.contains(&from.host()),
    };
    task.named_by != NamedBy::Others || task.linked_from.as_deref().is_some_and(is_own)
}

#[cfg(test)]
mod tests {
    use manifest::{ManifestId, SiteName};
    use policy::{BodyKind, FetchOutcome};

    use super::*;

    const CATALOG: &str = "https://a.example/agents.json";
    const SECOND: &str = "https://a.example/.well-known/ai-catalog.json";
    const PAGE: &str = "https://a.example/";
    const UPLOAD: &str = "https://a.example/u/x.json";
    const CARD: &str = "https://t1.a.example/x.json";

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn known(at: &str, discovery: Discovery, from: Option<&str>) -> ResourceState {
        ResourceState {
            url: url(at),
            manifest_id: Some(ManifestId::of(&url(at))),
            discovery,
            linked_from: from.map(url),
            outcome: FetchOutcome::Found,
            status: Some(200),
            etag: None,
            last_modified: None,
            cache: None,
            fresh_until: None,
            content_hash: None,
            fetched_at: crate::clock::now(),
            changed_at: None,
            misses_in_row: 0,
        }
    }

    /// The catalog lists the upload, and the home page links to the card at the host of a customer.
    fn site() -> SiteState {
        SiteState {
            resources: vec![
                known(CATALOG, Discovery::Root, None),
                known(SECOND, Discovery::WellKnown, None),
                known(UPLOAD, Discovery::CatalogEntry, Some(CATALOG)),
                known(CARD, Discovery::HtmlLink, Some(PAGE)),
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
            sources.compare(&site(), read, (&links(tasks), NamedBy::Site));
            let changes = sources.conclude(&mut []);
            assert_eq!(changes.unlinked, Vec::from_iter(unlinked.map(url)), "{read:?}");
        }
    }

    #[test]
    fn another_document_of_the_site_becomes_the_source() {
        let (catalog, second) = (url(CATALOG), url(SECOND));
        let linked = links([task(UPLOAD, Discovery::CatalogEntry, Some(SECOND))]);
        for (named_by, is_taken_over) in [(NamedBy::Site, true), (NamedBy::Others, false)] {
            let mut sources = Sources::default();
            sources.compare(&site(), ReadWhole::Document(&second), (&linked, named_by));
            sources.compare(&site(), ReadWhole::Document(&catalog), (&FollowUps::default(), NamedBy::Site));
            let written = serde_json::to_value(&sources).unwrap();
            let sources: Sources = serde_json::from_value(written).unwrap();
            let mut results = [fetched(UPLOAD, FetchOutcome::Found)];
            let changes = sources.conclude(&mut results);
            assert_eq!(changes.unlinked.is_empty(), is_taken_over);
            let from = if is_taken_over { SECOND } else { CATALOG };
            assert_eq!(results[0].linked_from.as_deref(), Some(&url(from)));
        }
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
        assert_eq!(sources.clone().conclude(&mut results()), LinkChanges::default());
        sources.compare(&site(), ReadWhole::Document(&catalog), (&FollowUps::default(), NamedBy::Site));
        assert_eq!(sources.conclude(&mut results()).unread, [url(SECOND)]);
        let mut sources = Sources::default();
        sources.add_unfollowed(&catalog);
        assert_eq!(sources.conclude(&mut []).unread, [catalog]);
    }

    /// Otherwise such a document could have all documents of the site requested whole, in every visit.
    #[test]
    fn a_link_that_a_document_of_others_loses_causes_no_request() {
        let upload = url("https://a.example/u/other.json");
        let mut site = site();
        let linked = known("https://a.example/u/linked.json", Discovery::CatalogEntry, Some(upload.as_str()));
        site.resources.push(linked);
        for (named_by, unread) in [(NamedBy::Others, Vec::new()), (NamedBy::Document, vec![url(SECOND)])] {
            let mut sources = Sources::default();
            sources.compare(&site, ReadWhole::Document(&upload), (&FollowUps::default(), named_by));
            let mut results = [fetched(SECOND, FetchOutcome::NotModified)];
            assert_eq!(sources.conclude(&mut results).unread, unread, "{named_by:?}");
        }
    }

    #[test]
    fn a_link_of_others_replaces_no_source_of_the_site() {
        let (evil, upload) = ("https://evil.example/a.json", "https://a.example/u/other.json");
        let mut site = site();
        let listed = known("https://a.example/l.json", Discovery::Listed, None);
        let theirs = known(upload, Discovery::CatalogEntry, Some(evil));
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
        assert_eq!(after(&theirs, upload).1, Some(url(upload)), "the site does not name it");
        assert_eq!(after(&listed, CATALOG), (Discovery::Listed, None, NamedBy::Others));
    }
}
