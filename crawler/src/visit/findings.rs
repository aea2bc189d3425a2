//! The findings of a visit: the result of each task, links to other sites, and the paths that were checked.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl};
use policy::naming::is_usual;
use policy::schedule::ManifestPresence;
use policy::{FetchOutcome, PathClass, VisitEnd, plan};
use serde::{Deserialize, Serialize};
use store::{PathCheck, PathSlots, ResourceState, Seed, SiteState};

use super::fetched::Fetched;
use super::own_hosts::OwnHosts;
use super::plan::KNOWN_WAITING_MAX;
use super::seeds;
use super::sources::Sources;
use super::task::{NamedBy, Role, Task};
use crate::clock;

/// Number of results by which the list grows: doubling it would waste memory in each of thousands of visits.
const FETCHED_MORE: usize = 4;
/// Maximum bytes of the documents of a parked visit: one of the largest. All of them are written each time the visit is parked.
const PARKED_DOCUMENT_BYTES_MAX: usize = manifest::DOCUMENT_BYTES_MAX;
/// Why a larger document is dropped.
const TOO_LARGE_TO_PARK: &str =
    "the visit had to wait, and carries at most 16 MiB of documents from one request to the next";

/// Links of a visit that found no room and are recorded for the next one: as many as it begins with. Those beyond are read again with
/// their document.
const LEFT_WITHOUT_ROOM_MAX: usize = KNOWN_WAITING_MAX;
/// Why a link is left that found no room.
const NO_ROOM: &str = "the visit had no room for it; the next one requests it";
/// Links of a site that are left at a time. Those beyond are found again when their document changes.
const LEFT_MAX: usize = 100;
/// Why a link is left for a later visit.
const LEFT: &str =
    "its host asks for a long delay, is slow or answers with failures; a later visit requests it";

/// The part of a visit's progress that becomes its record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(crate) fetched: Vec<Fetched>,
    /// Earlier versions wrote another format under the name `seeds`, which is ignored.
    #[serde(default, rename = "links", with = "super::seeds")]
    pub(crate) seeds: Vec<Seed>,
    pub(crate) paths_checked: PathSlots,
    /// When the first of the keys that verified the signatures of its manifests expires.
    #[serde(default)]
    pub(crate) keys_expire_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) sources: Sources,
}

impl Findings {
    pub(crate) fn new(paths_checked: PathSlots) -> Self {
        Self { paths_checked, ..Self::default() }
    }

    /// Keeps the result of a task; `slot` is its row of the path table.
    pub(crate) fn record(&mut self, slot: Option<u8>, fetched: Fetched) {
        if let (Some(slot), Some(class)) = (slot, PathClass::of(fetched.outcome)) {
            let day = plan::day_number(fetched.at);
            self.paths_checked.set(slot, PathCheck { class: class.code(), day });
        }
        if self.fetched.len() == self.fetched.capacity() {
            self.fetched.reserve_exact(FETCHED_MORE);
        }
        self.fetched.push(fetched);
    }

    /// Keeps the denials of documents, except of those that this visit knows to be denied.
    pub(crate) fn deny(&mut self, denied: Vec<Fetched>) {
        let is_denied = |fetched: &&Fetched| fetched.outcome == FetchOutcome::RobotsDenied;
        let before: HashSet<ManifestUrl> =
            self.fetched.iter().filter(is_denied).map(|fetched| fetched.url.clone()).collect();
        self.fetched.extend(denied.into_iter().filter(|denied| !before.contains(&denied.url)));
    }

    /// Adds the time at which the keys of a manifest expire.
    pub(crate) fn add_key_expiry(&mut self, at: Option<DateTime<Utc>>) {
        self.keys_expire_at = self.keys_expire_at.into_iter().chain(at).min();
    }

    /// Adds links to other sites, up to the limit of one visit.
    pub(crate) fn add_seeds(&mut self, more: Vec<Seed>) {
        seeds::add(&mut self.seeds, more);
    }

    /// The URL at which the site already has the document of a result that the site itself does not name. Other sites, clients and users may
    /// name a document under any number of URLs, for example by adding queries. The original is at the same host, or the site publishes it
    /// where no link is needed to find it: the copy of one customer does not displace the document of another one, whatever links to it.
    /// What is at a usual path is no copy of what is not. Of what documents link to, only a URL with the same path is a copy.
    pub(crate) fn original_of<'a>(
        &'a self,
        copy: &Fetched,
        site: &'a SiteState,
        is_found_without_links: impl Fn(&ManifestUrl) -> bool,
    ) -> Option<&'a ManifestUrl> {
        let hash = copy.hash.as_ref().filter(|_| copy.manifest.is_some());
        hash?;
        let is_known =
            |known: &&ResourceState| known.manifest_id.is_some() && known.content_hash.as_ref() == hash;
        let of_site = site.resources.iter().filter(is_known).map(|known| &known.url);
        let is_read = |other: &&Fetched| other.manifest.is_some() && other.hash.as_ref() == hash;
        let of_visit = self.fetched.iter().filter(is_read).map(|other| &other.url);
        let may_be_original = |url: &ManifestUrl| {
            let is_beside = url.host() == copy.url.host() && (is_usual(url) || !is_usual(&copy.url));
            let is_same_path = is_beside && url.path() == copy.url.path();
            let is_elsewhere = copy.named_by == NamedBy::Others && (is_beside || is_found_without_links(url));
            *url != copy.url && (is_same_path || is_elsewhere)
        };
        of_site.chain(of_visit).find(|url| may_be_original(url))
    }

    /// Records the links in documents of the site that are left for a later visit, so that they are requested even if those documents
    /// do not change, and what the site itself names and redirects to a host that is left. For new parts, and for links without room, the
    /// document that has them is requested whole in the next visit.
    pub(crate) fn leave(&mut self, tasks: impl IntoIterator<Item = Task>, site: &SiteState) {
        let mut room = self.room_for_left(site);
        for task in tasks {
            if is_new_link(&task, site) && room > 0 {
                room -= 1;
                self.record_left(&task, LEFT);
            } else if task.named_by != NamedBy::Others
                && known(site, &task.url).is_none()
                && let Some(from) = task.linked_from.as_deref()
            {
                self.sources.add_unfollowed(from);
            }
        }
    }

    /// The same for links for which there was no room, up to [`LEFT_WITHOUT_ROOM_MAX`].
    pub(crate) fn leave_without_room(&mut self, tasks: Vec<Task>, site: &SiteState) {
        let room = LEFT_WITHOUT_ROOM_MAX.saturating_sub(self.left()).min(self.room_for_left(site));
        let tasks = tasks.into_iter().filter(|task| is_new_link(task, site));
        for task in tasks.take(room) {
            if !self.fetched.iter().any(|fetched| fetched.url == task.url) {
                self.record_left(&task, NO_ROOM);
            }
        }
    }

    /// How many more links may be left, of at most [`LEFT_MAX`] of the site.
    fn room_for_left(&self, site: &SiteState) -> usize {
        let is_left = |known: &&ResourceState| known.outcome == FetchOutcome::NotReached;
        LEFT_MAX.saturating_sub(site.resources.iter().filter(is_left).count() + self.left())
    }

    /// Links that this visit has left.
    fn left(&self) -> usize {
        self.fetched.iter().filter(|fetched| fetched.outcome == FetchOutcome::NotReached).count()
    }

    fn record_left(&mut self, task: &Task, reason: &str) {
        let reason = Some(reason.to_owned());
        self.record(None, Fetched::unanswered(task, FetchOutcome::NotReached, reason, clock::now()));
    }

    /// Drops the documents of hosts that answer every path.
    pub(crate) fn reject_catch_all(&mut self, ended: &BTreeMap<Host, VisitEnd>) {
        for fetched in &mut self.fetched {
            let is_catch_all = ended.get(&fetched.url.host()) == Some(&VisitEnd::CatchAll);
            if is_catch_all && fetched.outcome == FetchOutcome::Found {
                fetched.reject(FetchOutcome::NotAManifest, "the host answers every path".to_owned());
            }
        }
    }

    /// Drops documents beyond [`PARKED_DOCUMENT_BYTES_MAX`], those with the least standing first, and of these the largest.
    pub(crate) fn drop_large_documents(&mut self) {
        let mut bytes = self.document_bytes();
        while bytes > PARKED_DOCUMENT_BYTES_MAX
            && let Some(largest) = self
                .fetched
                .iter_mut()
                .filter(|fetched| fetched.body_bytes() > 0)
                .max_by_key(|fetched| (fetched.named_by, fetched.body_bytes()))
        {
            bytes -= largest.body_bytes();
            largest.reject(FetchOutcome::TooLarge, TOO_LARGE_TO_PARK.to_owned());
        }
    }

    /// Bytes of the documents that are kept.
    pub(crate) fn document_bytes(&self) -> usize {
        self.fetched.iter().map(Fetched::body_bytes).sum()
    }

    /// Also treats a part of a manifest as a manifest of its own, because something with at least its standing links to its URL as
    /// one. The manifest that names it still includes it. Returns whether the part did not arrive in this visit, so that it has to
    /// be requested again to be read.
    pub(crate) fn treat_part_as_manifest(&mut self, linked: &Task) -> bool {
        let is_first = !self.manifests().any(|fetched| fetched.url == linked.url);
        let is_part = |fetched: &&mut Fetched| fetched.role == Role::Part && fetched.url == linked.url;
        let part = self.fetched.iter_mut().find(is_part).filter(|part| linked.named_by <= part.named_by);
        let Some(part) = part else { return false };
        part.role = Role::Manifest;
        is_first && matches!(part.outcome, FetchOutcome::NotModified | FetchOutcome::Fresh)
    }

    fn manifests(&self) -> impl Iterator<Item = &Fetched> {
        self.fetched.iter().filter(|fetched| fetched.role == Role::Manifest)
    }

    /// The manifests of this visit that the site names. Those that only others name decide nothing about it.
    fn manifests_of_site(&self, own: &OwnHosts) -> impl Iterator<Item = &Fetched> {
        self.manifests().filter(|fetched| is_of_site(fetched, own))
    }

    /// Whether the site has a manifest: one that was seen, or a known one that this visit did not check.
    pub(crate) fn manifest_presence(&self, site: &SiteState, own: &OwnHosts) -> ManifestPresence {
        let is_present = self.manifests_of_site(own).any(|fetched| fetched.outcome.is_present());
        let is_unchecked = |known: &ResourceState| {
            let is_of_visit = || self.fetched.iter().any(|fetched| fetched.url == known.url);
            known.manifest_id.is_some() && own.names(&known.url) && !is_of_visit()
        };
        if is_present || site.resources.iter().any(is_unchecked) {
            ManifestPresence::Present
        } else {
            ManifestPresence::Absent
        }
    }

    /// When the first manifest becomes stale, if all are fresh. `None` if the site itself publishes none: what its users wrote does not delay
    /// its next visit.
    pub(crate) fn fresh_until(&self, site: &SiteState, own: &OwnHosts) -> Option<DateTime<Utc>> {
        let until = |fetched: &Fetched| match fetched.outcome {
            FetchOutcome::Fresh => known(site, &fetched.url)?.fresh_until,
            _ => fetched.fresh_until(),
        };
        let present: Vec<&Fetched> =
            self.manifests_of_site(own).filter(|fetched| fetched.outcome.is_present()).collect();
        let is_published =
            |fetched: &&&Fetched| fetched.named_by == NamedBy::Site || fetched.discovery == Discovery::Listed;
        present.iter().find(is_published)?;
        present.into_iter().map(until).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Whether the site did not have one of the manifests before.
    pub(crate) fn has_new_manifest(&self, site: &SiteState, own: &OwnHosts) -> bool {
        let is_known = |url| known(site, url).is_some_and(|known| known.manifest_id.is_some());
        self.manifests_of_site(own)
            .any(|fetched| fetched.outcome == FetchOutcome::Found && !is_known(&fetched.url))
    }

    /// Whether a manifest changed since the last visit. What a first visit finds is new, not changed.
    pub(crate) fn changed_any(&self, site: &SiteState, own: &OwnHosts) -> bool {
        let has_changed = |fetched: &Fetched| {
            let known = known(site, &fetched.url);
            match fetched.outcome {
                FetchOutcome::Found | FetchOutcome::NotModified => {
                    fetched.manifest.is_some()
                        && known.and_then(|known| known.content_hash.as_ref()) != fetched.hash.as_ref()
                }
                outcome => known.is_some_and(|known| known.manifest_id.is_some()) && outcome.is_absent(),
            }
        };
        site.visits > 0 && self.manifests_of_site(own).any(has_changed)
    }
}

/// Whether the operator or the site names a document, as far as the store or this visit knows.
pub(super) fn is_of_site(fetched: &Fetched, own: &OwnHosts) -> bool {
    let is_named = fetched.named_by != NamedBy::Others || fetched.discovery == Discovery::Listed;
    is_named || own.names(&fetched.url)
}

/// Whether a task is a link of the site to a document that is not known, or a redirect of the site.
fn is_new_link(task: &Task, site: &SiteState) -> bool {
    let is_link = task.named_by != NamedBy::Others && task.linked_from.is_some();
    let is_redirect = task.named_by == NamedBy::Site && !task.hops.is_empty();
    (is_link || is_redirect) && task.role == Role::Manifest && known(site, &task.url).is_none()
}

/// The stored state of a URL of the site.
pub(super) fn known<'a>(site: &'a SiteState, url: &ManifestUrl) -> Option<&'a ResourceState> {
    site.resources.iter().find(|known| known.url == *url)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use manifest::{ContentHash, Discovery};
    use policy::BodyKind;

    use super::super::fetched::Document;
    use super::super::fixtures;
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn fetched(text: &str, outcome: FetchOutcome) -> Fetched {
        let task = Task::new(url(text), BodyKind::Manifest, Discovery::Root);
        Fetched::unanswered(&task, outcome, None, clock::now())
    }

    /// A result whose document was read as a manifest.
    fn found(text: &str, bytes: &[u8]) -> Fetched {
        let page = url(text);
        let manifest = manifest::read(&manifest::Document {
            bytes,
            url: &page,
            final_url: None,
            discovery: Discovery::Root,
            served: None,
            linked: &[],
            force: None,
        });
        Fetched {
            hash: Some(ContentHash::of(bytes)),
            manifest: Some(Box::new(manifest)),
            body: Some(Document(bytes.to_vec())),
            ..fetched(text, FetchOutcome::Found)
        }
    }

    fn site(visits: u32, manifests: &[(&str, &[u8])]) -> SiteState {
        let name = manifest::SiteName::parse("a.example").unwrap();
        let resource = |(text, bytes): &(&str, &[u8])| ResourceState {
            content_hash: Some(ContentHash::of(bytes)),
            ..fixtures::manifest(text, Discovery::Root, None)
        };
        SiteState {
            visits,
            resources: manifests.iter().map(resource).collect(),
            ..crate::dry_run::unknown(name)
        }
    }

    fn own(site: &SiteState) -> OwnHosts {
        OwnHosts::of(site)
    }

    fn named(named_by: NamedBy, fetched: Fetched) -> Fetched {
        Fetched { named_by, ..fetched }
    }

    fn of(fetched: impl IntoIterator<Item = Fetched>) -> Findings {
        Findings { fetched: fetched.into_iter().collect(), ..Findings::default() }
    }

    const ONE: &str = "https://a.example/1";
    const TWO: &str = "https://a.example/2";

    #[test]
    fn records_the_class_and_day_of_each_checked_path() {
        let mut findings = Findings::default();
        findings.record(Some(3), fetched(ONE, FetchOutcome::NotFound));
        findings.record(None, fetched(TWO, FetchOutcome::NotFound));
        assert_eq!(findings.paths_checked.iter().count(), 1);
        assert_eq!(findings.paths_checked.get(3).map(|check| check.class), Some(PathClass::Absent.code()));
        assert_eq!(findings.fetched.len(), 2);
    }

    #[test]
    fn finds_the_original_of_a_copy_on_the_site_and_in_the_visit() {
        let (copy, none) = (named(NamedBy::Others, found(TWO, b"{}")), |_: &ManifestUrl| false);
        assert_eq!(Findings::default().original_of(&copy, &site(1, &[(ONE, b"{}")]), none), Some(&url(ONE)));
        assert_eq!(of([found(ONE, b"{}")]).original_of(&copy, &site(1, &[]), none), Some(&url(ONE)));
        assert_eq!(of([found(ONE, b"[]")]).original_of(&copy, &site(1, &[(TWO, b"{}")]), none), None);
        let page = fetched(TWO, FetchOutcome::Html);
        assert_eq!(of([found(ONE, b"{}")]).original_of(&page, &site(1, &[]), none), None);
    }

    #[test]
    fn a_copy_at_the_host_of_one_customer_is_no_original_of_the_document_of_another() {
        const OWN: &str = "https://a.example/.well-known/agent.json";
        const FIRST: &str = "https://t1.a.example/agent.json";
        const SECOND: &str = "https://t2.a.example/agent.json";
        const UPLOAD: &str = "https://t2.a.example/u/x.json";
        let is_found = |url: &ManifestUrl| url.as_str() == OWN;
        for (original, copy, expected) in [
            (FIRST, SECOND, false),
            (FIRST, UPLOAD, false),
            (UPLOAD, SECOND, false),
            (SECOND, UPLOAD, true),
            (UPLOAD, "https://t2.a.example/u/x.json?2", true),
            (OWN, SECOND, true),
        ] {
            let copied = named(NamedBy::Others, found(copy, b"{}"));
            let expected = expected.then(|| url(original));
            let stored = site(1, &[(original, b"{}")]);
            let of_site = Findings::default().original_of(&copied, &stored, is_found).cloned();
            let of_visit =
                of([found(original, b"{}")]).original_of(&copied, &site(1, &[]), is_found).cloned();
            assert_eq!((&of_site, &of_visit), (&expected, &expected), "{copy} of {original}");
        }
        for (copy, expected) in [(UPLOAD, false), ("https://t2.a.example/u/x.json?2", true), (SECOND, false)]
        {
            let (stored, copied) = (site(1, &[(UPLOAD, b"{}")]), named(NamedBy::Further, found(copy, b"{}")));
            let original = Findings::default().original_of(&copied, &stored, is_found).cloned();
            assert_eq!(original, expected.then(|| url(UPLOAD)), "{copy}");
        }
        let elsewhere = named(NamedBy::Further, found(UPLOAD, b"{}"));
        assert_eq!(Findings::default().original_of(&elsewhere, &site(1, &[(OWN, b"{}")]), is_found), None);
    }

    #[test]
    fn links_in_documents_of_the_site_are_left_for_a_later_visit() {
        let task = |text: &str, named_by, role| Task {
            role,
            named_by,
            linked_from: Some(Box::new(url("https://a.example/agents.json"))),
            ..Task::new(url(text), BodyKind::Manifest, Discovery::CatalogEntry)
        };
        let mut findings = Findings::default();
        let tasks = [
            task(ONE, NamedBy::Document, Role::Manifest),
            task(TWO, NamedBy::Document, Role::Manifest),
            task("https://a.example/part", NamedBy::Document, Role::Part),
            task("https://a.example/theirs", NamedBy::Others, Role::Manifest),
        ];
        findings.leave(tasks, &site(1, &[(TWO, b"{}")]));
        let left: Vec<_> = findings.fetched.iter().map(|left| (left.url.as_str(), left.outcome)).collect();
        assert_eq!(left, [(ONE, FetchOutcome::NotReached)]);
        let numbers = 0..2 * LEFT_WITHOUT_ROOM_MAX;
        let many = numbers.map(|number| format!("https://a.example/x/{number}"));
        let many = many.map(|at| task(&at, NamedBy::Document, Role::Manifest)).collect();
        findings.leave_without_room(many, &site(1, &[]));
        assert_eq!(findings.fetched.len(), LEFT_WITHOUT_ROOM_MAX);
    }

    #[test]
    fn leaves_at_most_a_hundred_links_of_a_site() {
        let left = (0..60).map(|number| ResourceState {
            outcome: FetchOutcome::NotReached,
            ..fixtures::manifest(&format!("https://a.example/left/{number}"), Discovery::CatalogEntry, None)
        });
        let site = SiteState { resources: left.collect(), ..site(1, &[]) };
        let mut findings = Findings::default();
        for visit in 0..3 {
            let links = (0..30).map(|number| Task {
                named_by: NamedBy::Further,
                linked_from: Some(Box::new(url(ONE))),
                ..Task::new(
                    url(&format!("https://t1.a.example/{visit}/{number}")),
                    BodyKind::Manifest,
                    Discovery::CatalogEntry,
                )
            });
            findings.leave(links, &site);
        }
        assert_eq!(findings.fetched.len(), LEFT_MAX - 60);
    }

    #[test]
    fn rejects_documents_of_hosts_that_answer_every_path() {
        let mut findings = of([found(ONE, b"{}"), found("https://b.a.example/1", b"{}")]);
        findings.reject_catch_all(&BTreeMap::from([(url(ONE).host(), VisitEnd::CatchAll)]));
        let outcomes: Vec<_> = findings.fetched.iter().map(|fetched| fetched.outcome).collect();
        assert_eq!(outcomes, [FetchOutcome::NotAManifest, FetchOutcome::Found]);
        assert!(findings.fetched[0].body.is_none());
    }

    #[test]
    fn a_site_keeps_manifests_that_a_visit_did_not_check() {
        let known = site(1, &[(ONE, b"{}")]);
        assert_eq!(Findings::default().manifest_presence(&known, &own(&known)), ManifestPresence::Present);
        assert_eq!(
            of([fetched(ONE, FetchOutcome::NotFound)]).manifest_presence(&known, &own(&known)),
            ManifestPresence::Absent
        );
        assert_eq!(
            of([found(TWO, b"{}")]).manifest_presence(&site(0, &[]), &own(&site(0, &[]))),
            ManifestPresence::Present
        );
    }

    #[test]
    fn other_bytes_and_missing_manifests_are_changes_after_the_first_visit() {
        let known = |visits| site(visits, &[(ONE, b"{}")]);
        assert!(!of([found(ONE, b"{}")]).changed_any(&known(1), &own(&known(1))));
        assert!(of([found(ONE, b"[]")]).changed_any(&known(1), &own(&known(1))));
        assert!(of([fetched(ONE, FetchOutcome::NotFound)]).changed_any(&known(1), &own(&known(1))));
        assert!(!of([fetched(TWO, FetchOutcome::NotFound)]).changed_any(&known(1), &own(&known(1))));
        assert!(
            !of([found(ONE, b"[]")]).changed_any(&known(0), &own(&known(0))),
            "a first visit finds new manifests"
        );
    }

    #[test]
    fn is_fresh_until_the_first_manifest_becomes_stale() {
        let at = clock::now();
        let later = at + chrono::TimeDelta::hours(1);
        let until = |text, fresh_until| ResourceState {
            fresh_until,
            ..fixtures::manifest(text, Discovery::Root, None)
        };
        let known = |second| {
            let resources = vec![until(ONE, Some(later)), until(TWO, second)];
            SiteState { resources, ..site(1, &[]) }
        };
        let findings = of([fetched(ONE, FetchOutcome::Fresh), fetched(TWO, FetchOutcome::Fresh)]);
        assert_eq!(findings.fresh_until(&known(Some(at)), &own(&known(Some(at)))), Some(at));
        assert_eq!(findings.fresh_until(&known(None), &own(&known(None))), None, "one is stale");
    }

    #[test]
    fn manifests_of_others_decide_nothing_about_the_site() {
        const THEIRS: &str = "https://t1.a.example/.well-known/agent-card.json";
        const LISTED: &str = "https://t1.a.example/listed.json";
        let fresh = |named_by, at| named(named_by, fetched(at, FetchOutcome::Fresh));
        let next_year = clock::now() + chrono::TimeDelta::days(365);
        let until = |at: &str, discovery, from| ResourceState {
            fresh_until: Some(next_year),
            ..fixtures::manifest(at, discovery, from)
        };
        let state = |resources| SiteState { resources, ..site(1, &[]) };
        let theirs = || until(THEIRS, Discovery::WellKnown, None);
        let only_theirs = state(vec![theirs()]);
        for findings in [Findings::default(), of([fresh(NamedBy::Others, THEIRS)])] {
            let presence = findings.manifest_presence(&only_theirs, &own(&only_theirs));
            assert_eq!(presence, ManifestPresence::Absent);
            assert_eq!(findings.fresh_until(&only_theirs, &own(&only_theirs)), None);
        }
        let changed = of([named(NamedBy::Others, found(THEIRS, b"[]"))]);
        assert!(!changed.changed_any(&only_theirs, &own(&only_theirs)));
        assert!(!changed.has_new_manifest(&site(1, &[]), &own(&site(1, &[]))));

        let listed = state(vec![
            fixtures::manifest(ONE, Discovery::Root, None),
            until(LISTED, Discovery::CatalogEntry, Some(ONE)),
        ]);
        let gone = of([fetched(ONE, FetchOutcome::NotFound), fresh(NamedBy::Document, LISTED)]);
        assert_eq!(gone.manifest_presence(&listed, &own(&listed)), ManifestPresence::Present);
        assert_eq!(gone.fresh_until(&listed, &own(&listed)), None, "a link alone delays no visit");
        let both = state(vec![until(ONE, Discovery::Root, None), theirs()]);
        let stale_theirs = of([fresh(NamedBy::Site, ONE), named(NamedBy::Others, found(THEIRS, b"{}"))]);
        assert_eq!(stale_theirs.fresh_until(&both, &own(&both)), Some(next_year));
    }

    #[test]
    fn drops_documents_with_the_least_standing_first() {
        let sized = |named_by, mib: usize| {
            let body = Some(Document(vec![b'x'; mib * MIB]));
            let at = format!("https://a.example/{named_by:?}/{mib}.json");
            named(named_by, Fetched { body, ..fetched(&at, FetchOutcome::Found) })
        };
        let mut findings = of([
            sized(NamedBy::Site, 10),
            sized(NamedBy::Others, 1),
            sized(NamedBy::Document, 4),
            sized(NamedBy::Further, 2),
            sized(NamedBy::Further, 3),
        ]);
        findings.drop_large_documents();
        let kept: Vec<_> = findings.fetched.iter().map(|fetched| fetched.body.is_some()).collect();
        assert_eq!(kept, [true, false, true, true, false]);
    }

    #[test]
    fn drops_the_largest_documents_of_a_parked_visit() {
        let sized = |mib: usize| {
            let body = Some(Document(vec![b'x'; mib * MIB]));
            Fetched { body, ..fetched(&format!("https://a.example/{mib}.json"), FetchOutcome::Found) }
        };
        let mut findings = of([1, 2, 9, 15, 4].map(sized));
        findings.drop_large_documents();
        let kept: Vec<_> = findings.fetched.iter().map(|fetched| fetched.body.is_some()).collect();
        assert_eq!(kept, [true, true, true, false, true], "the largest is dropped");
        let dropped = &findings.fetched[3];
        assert_eq!((dropped.outcome, dropped.hash.is_none()), (FetchOutcome::TooLarge, true));
        assert!(dropped.reason.as_deref().is_some_and(|reason| reason.contains("at most 16 MiB")));
    }

    #[test]
    fn bounds_links_to_other_sites_in_number_and_bytes() {
        let add = |findings: &mut Findings, from: &Arc<ManifestUrl>, numbers: Range<usize>, path: &str| {
            let to = |number| url(&format!("https://v{number}.example/{path}"));
            findings.add_seeds(numbers.map(|number| Seed::linked(to(number), Arc::clone(from))).collect());
        };
        let long = "a".repeat(2_000);
        let from = Arc::new(url(&format!("https://a.example/{long}")));
        let (mut short_links, mut long_links) = (Findings::default(), Findings::default());
        for catalog in 0..20 {
            let numbers = catalog * 1_000..(catalog + 1) * 1_000;
            add(&mut short_links, &from, numbers.clone(), "agent.json");
            add(&mut long_links, &from, numbers, &long);
        }
        assert_eq!(short_links.seeds.len(), seeds::SEEDS_MAX);
        assert!((400..600).contains(&long_links.seeds.len()), "{}", long_links.seeds.len());
        for findings in [short_links, long_links] {
            let written = serde_json::to_string(&findings).unwrap();
            assert!(written.len() < MIB + 64 * 1024, "{}", written.len());
            assert!(written.matches(&from.to_string()).count() <= 1, "written once for all of its links");
            let read: Findings = serde_json::from_str(&written).unwrap();
            assert_eq!(read.seeds, findings.seeds);
            assert!(seeds::held_bytes(&findings.seeds) < 4 * MIB);
        }
    }
}
