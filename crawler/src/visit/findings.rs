//! The findings of a visit: the result of each task, links to other sites, and the paths that were checked.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestId, ManifestUrl};
use policy::naming::is_usual;
use policy::schedule::ManifestPresence;
use policy::{BodyKind, FetchOutcome, PathClass, VisitEnd, plan};
use serde::{Deserialize, Serialize};
use store::{PathCheck, PathSlots, ResourceState, Seed, SiteState, Verdict};

use super::fetched::Fetched;
use super::known_documents::{KNOWN_WAITING_MAX, known_task};
use super::own_hosts::OwnHosts;
use super::room::{Counts, UrlLimits};
use super::seeds;
use super::sources::Sources;
use super::task::{NamedBy, Role, Task};
use crate::clock;

/// Number of results by which the list grows. Doubling it would waste memory in thousands of visits.
const FETCHED_MORE: usize = 4;
/// Maximum bytes of the documents of a parked visit: the size of the largest document. All of them are written each time the visit is
/// parked.
const PARKED_DOCUMENT_BYTES_MAX: usize = manifest::DOCUMENT_BYTES_MAX;
/// Reason for dropping documents beyond [`PARKED_DOCUMENT_BYTES_MAX`].
const TOO_LARGE_TO_PARK: &str = "the visit had to wait, and carries at most 16 MiB of documents from one request to the next; a later visit reads it";

/// Maximum number of links beyond the limits of a visit that are recorded for the next visit. The next visit begins with this many. Further
/// links are found again when their document is read again.
const LEFT_WITHOUT_ROOM_MAX: usize = KNOWN_WAITING_MAX;
/// Reason for leaving a link for which there was no room.
const NO_ROOM: &str = "it is beyond the limits of this visit; the next visit requests it";
/// Reason for leaving a link to a later visit.
pub(super) const LEFT: &str =
    "its host asks for a long delay, is slow or answers with failures; a later visit requests it";

/// The part of a visit's progress that becomes its record.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Findings {
    pub(crate) fetched: Vec<Fetched>,
    /// Earlier versions wrote another format under the name `seeds`, which is ignored.
    #[serde(default, rename = "links", with = "super::seeds")]
    pub(crate) seeds: Vec<Seed>,
    pub(crate) paths_checked: PathSlots,
    /// The earliest expiry of the keys that verified the signatures of its manifests.
    #[serde(default)]
    pub(crate) keys_expire_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) sources: Sources,
}

impl Findings {
    pub(crate) fn new(paths_checked: PathSlots) -> Self {
        Self { paths_checked, ..Self::default() }
    }

    /// Records the result of a task. `slot` is the row of its path in the path table.
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

    /// Records denials, except for documents that this visit has already recorded as denied.
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

    /// The URL of the original, if a result that the site itself does not name is a copy of a document of the site. This matters because
    /// other sites, clients and users may name a document by any number of URLs, for example by adding queries. The original is at the same
    /// host, or the site publishes it where no link is needed to find it, so that the copy of one customer never displaces the document of
    /// another one. A document at a path of the path table is never a copy of a document at another path. If a document of the site links
    /// to the URL, the result is a copy only if the original has the same path.
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

    /// Records the links in documents of the site that are left for a later visit, so that they are requested even if those documents do
    /// not change. It also records URLs that the site itself names and that redirect to a skipped host. For new parts, for links beyond the
    /// limits, and for links of third parties, the next visit instead requests the document that contains them without conditions.
    pub(crate) fn leave(&mut self, tasks: Vec<Task>, reason: &str, (site, own): (&SiteState, &OwnHosts)) {
        if tasks.is_empty() {
            return;
        }
        let mut left = self.left_so_far(site, own);
        for task in tasks {
            if is_new_link(&task, site) && count_if_within_limit(&mut left, &task) {
                self.record_left(&task, reason);
            } else if known(site, &task.url).is_none()
                && let Some(from) = task.linked_from.as_deref()
            {
                self.sources.add_unfollowed(from);
            }
        }
    }

    /// Records up to [`LEFT_WITHOUT_ROOM_MAX`] links for which there was no room, for a later visit. Links beyond that are found again when
    /// their document is read again.
    pub(crate) fn leave_without_room(&mut self, tasks: Vec<Task>, (site, own): (&SiteState, &OwnHosts)) {
        if tasks.is_empty() {
            return;
        }
        let mut left = self.left_so_far(site, own);
        let mut room = LEFT_WITHOUT_ROOM_MAX.saturating_sub(self.not_reached(site).count());
        for task in tasks {
            let is_recorded = self.fetched.iter().any(|fetched| fetched.url == task.url);
            if room > 0 && !is_recorded && is_new_link(&task, site) && count_if_within_limit(&mut left, &task)
            {
                room -= 1;
                self.record_left(&task, NO_ROOM);
            }
        }
    }

    /// The links that are left, by this visit and earlier ones.
    fn left_so_far(&self, site: &SiteState, own: &OwnHosts) -> Counts {
        let mut left = Counts::default();
        for known in site.resources.iter().filter(|known| known.outcome == FetchOutcome::NotReached) {
            let task = known_task(site, known);
            left.add(&as_left_link(Task { named_by: own.named_by_for_task(&task), ..task }));
        }
        for fetched in self.not_reached(site) {
            let task = Task::new(fetched.url.clone(), BodyKind::Manifest, fetched.discovery);
            let linked_from = fetched.linked_from.clone();
            left.add(&as_left_link(Task { named_by: fetched.named_by, linked_from, ..task }));
        }
        left
    }

    /// Links that this visit has left and that no earlier visit knew.
    fn not_reached(&self, site: &SiteState) -> impl Iterator<Item = &Fetched> {
        let is_left = |fetched: &&Fetched| {
            fetched.outcome == FetchOutcome::NotReached && known(site, &fetched.url).is_none()
        };
        self.fetched.iter().filter(is_left)
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

    /// Keeps a manifest as an earlier visit read it, because one of its parts could not be read in this visit. A later visit reads both
    /// again.
    pub(crate) fn keep_reading(&mut self, index: usize, part: &ManifestUrl) {
        let Some(whole) = self.fetched.get_mut(index) else { return };
        // the stored data of a manifest that was not received is kept
        (whole.manifest, whole.body, whole.hash) = (None, None, None);
        if whole.outcome == FetchOutcome::Found {
            let reason = format!("its part {part} could not be read; a later visit reads both");
            whole.reject(FetchOutcome::NotReached, reason);
        }
    }

    /// Drops documents beyond [`PARKED_DOCUMENT_BYTES_MAX`], first those with the lowest precedence of [`NamedBy`], and among these the
    /// last ones. The next visit requests them without conditions.
    pub(crate) fn drop_large_documents(&mut self) {
        let mut bytes = self.document_bytes(|_| true);
        while bytes > PARKED_DOCUMENT_BYTES_MAX
            && let Some((_, last)) = self
                .fetched
                .iter_mut()
                .enumerate()
                .filter(|(_, fetched)| fetched.body_bytes() > 0)
                .max_by_key(|(index, fetched)| (fetched.named_by, *index))
        {
            bytes -= last.body_bytes();
            last.reject(FetchOutcome::NotReached, TOO_LARGE_TO_PARK.to_owned());
            self.sources.add_unfollowed(&last.url);
        }
    }

    /// Bytes of the documents that are kept.
    pub(crate) fn document_bytes(&self, is_counted: impl Fn(&Fetched) -> bool) -> usize {
        self.fetched.iter().filter(|fetched| is_counted(fetched)).map(Fetched::body_bytes).sum()
    }

    /// Also treats a part of a manifest as a separate manifest, because a source with at least the same precedence of [`NamedBy`] links to
    /// its URL as a manifest. The part still completes the manifest that names it. Returns whether the part must be requested again,
    /// because this visit did not receive it.
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

    /// The manifests of this visit that the site names. Manifests that only others name have no effect on the site.
    fn manifests_of_site(&self, own: &OwnHosts) -> impl Iterator<Item = &Fetched> {
        self.manifests().filter(|fetched| is_of_site(fetched, own))
    }

    /// Whether the site has a manifest: one that was seen, or a known one that this visit does not remove, for example because it is missing
    /// for the first time.
    pub(crate) fn manifest_presence(&self, site: &SiteState, own: &OwnHosts) -> ManifestPresence {
        let is_present = self.manifests_of_site(own).any(|fetched| fetched.outcome.is_present());
        let is_kept = |known: &ResourceState| {
            let verdict = |fetched: &Fetched| Verdict::after(fetched.outcome, known.misses_in_row);
            let is_removed = |fetched: &Fetched| {
                fetched.url == known.url && matches!(verdict(fetched), Verdict::Removed(_))
            };
            known.manifest_id.is_some() && own.names(&known.url) && !self.fetched.iter().any(is_removed)
        };
        if is_present || site.resources.iter().any(is_kept) {
            ManifestPresence::Present
        } else {
            ManifestPresence::Absent
        }
    }

    /// When the first manifest or part of one becomes stale, if all are fresh. `None` if the site itself publishes no manifest: documents of
    /// its users do not delay its next visit. Also `None` if the visit left links of the site for a later one.
    pub(crate) fn fresh_until(&self, site: &SiteState, own: &OwnHosts) -> Option<DateTime<Utc>> {
        let until = |fetched: &Fetched| match fetched.outcome {
            FetchOutcome::Fresh => {
                let known = known(site, &fetched.url)?;
                known.fresh_until.map(|until| fetched.role.copy_use().limit(known.fetched_at, until))
            }
            _ => fetched.fresh_until(),
        };
        let present: Vec<&Fetched> =
            self.manifests_of_site(own).filter(|fetched| fetched.outcome.is_present()).collect();
        let is_published =
            |fetched: &&&Fetched| fetched.named_by == NamedBy::Site || fetched.discovery == Discovery::Listed;
        present.iter().find(is_published)?;
        if self.has_left(site, own) {
            return None;
        }
        let is_part = |fetched: &&Fetched| fetched.role == Role::Part && is_of_site(fetched, own);
        let parts = self.fetched.iter().filter(is_part).filter(|fetched| fetched.outcome.is_present());
        present.into_iter().chain(parts).map(until).collect::<Option<Vec<_>>>()?.into_iter().min()
    }

    /// Whether links in documents that the site itself publishes are left for a later visit.
    fn has_left(&self, site: &SiteState, own: &OwnHosts) -> bool {
        let is_left = |fetched: &Fetched| {
            fetched.outcome == FetchOutcome::NotReached && fetched.named_by <= NamedBy::Document
        };
        let fetched: HashSet<&ManifestUrl> = self.fetched.iter().map(|fetched| &fetched.url).collect();
        let is_waiting = |known: &ResourceState| {
            known.outcome == FetchOutcome::NotReached
                && own.links_away(&known.url).is_some_and(|links| links <= 1)
                && !fetched.contains(&known.url)
        };
        self.fetched.iter().any(is_left) || site.resources.iter().any(is_waiting)
    }

    /// Whether one of the manifests is new to the site.
    pub(crate) fn has_new_manifest(&self, site: &SiteState, own: &OwnHosts) -> bool {
        let is_known = |url| known(site, url).is_some_and(|known| known.manifest_id.is_some());
        self.manifests_of_site(own)
            .any(|fetched| fetched.outcome == FetchOutcome::Found && !is_known(&fetched.url))
    }

    /// Whether a manifest changed since the last visit. Manifests of a first visit are new, not changed.
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

/// Whether a document is a manifest in the index that an earlier version of the reader read.
pub(super) fn is_outdated(site: &SiteState, url: &ManifestUrl) -> bool {
    !site.outdated.is_empty() && site.outdated.contains(&ManifestId::of(url))
}

/// Whether the operator or the site names a document, according to the store and this visit.
pub(super) fn is_of_site(fetched: &Fetched, own: &OwnHosts) -> bool {
    let is_named = fetched.named_by != NamedBy::Others || fetched.discovery == Discovery::Listed;
    is_named || own.names(&fetched.url)
}

/// Counts a link as left if the limit is not reached. Returns whether it was counted.
fn count_if_within_limit(left: &mut Counts, task: &Task) -> bool {
    let task = as_left_link(task.clone());
    let has_room = left.has_room(&task, UrlLimits::of(task.named_by).left);
    if has_room {
        left.add(&task);
    }
    has_room
}

/// Prepares a link to be counted by the limits on links that are left for later. Redirects of the site itself count like links of its
/// documents.
fn as_left_link(task: Task) -> Task {
    Task { named_by: task.named_by.max(NamedBy::Document), ..task }
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
#[path = "findings_tests.rs"]
mod tests;
