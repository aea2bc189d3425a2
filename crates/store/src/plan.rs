//! Plans the changes of a visit before they are written.
//!
//! A pure function of the stored state and the findings of the visit. A manifest is removed only because of a response, or because the
//! manifest of another owner displaces it. A 410 or a robots.txt that forbids the URL removes it immediately; a response without a manifest
//! removes it at the second visit in a row. A network or server error only changes its status.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::model::PolicyChoice;
use manifest::{ContentHash, Format, Manifest, ManifestId, ManifestUrl, NamedBy, Publisher};
use policy::VisitEnd;
use policy::naming::{FoundBy, SiteNaming, named_by_url, publisher_by_url};
use policy::{FetchOutcome, Status};

use crate::StoreError;
use crate::known::{Known, KnownManifest};
use crate::model::seed::kept_source;
use crate::model::{FeedChange, FetchRecord, HostOrigin, LinkChanges, NewSource, ResourceState, VisitRecord};
use crate::resource_change::{is_read_as_part, resource_after};
use crate::room;
use crate::verdict::{Earlier, Verdict, misses, verdict_of_end, verdict_of_fetch};

/// Maximum number of rows of a site for requested or linked URLs. Beyond it, rows without a manifest or a stored document are deleted, the
/// oldest first, until [`BARE_KEPT`] of them are left.
const RESOURCES_MAX: usize = 2_000;
/// Minimum number of rows without a manifest or document that are kept, regardless of the number of manifests.
const BARE_KEPT: usize = 100;
/// Maximum number of rows that one visit deletes. The next one continues.
const FORGOTTEN_MAX: usize = 10_000;

/// A change for the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) what: FeedChange,
    pub(crate) manifest_id: ManifestId,
    pub(crate) at: DateTime<Utc>,
    pub(crate) reason: Option<String>,
}

#[derive(Debug)]
pub(crate) struct NewVersion<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) fetch: &'a FetchRecord,
    pub(crate) version: i32,
    pub(crate) status: Status,
    pub(crate) training: PolicyChoice,
    pub(crate) naming: StoredNaming,
}

/// Who names and publishes a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredNaming {
    pub(crate) named_by: NamedBy,
    pub(crate) publisher: Publisher,
}

impl StoredNaming {
    fn of(naming: &SiteNaming, url: &ManifestUrl) -> Self {
        Self { named_by: naming.named_by(url), publisher: naming.publisher(url) }
    }
}

/// A manifest with unchanged content.
#[derive(Debug)]
pub(crate) struct Touch<'a> {
    pub(crate) id: ManifestId,
    pub(crate) version: i32,
    pub(crate) status: Status,
    pub(crate) training: PolicyChoice,
    /// When the content was confirmed.
    pub(crate) seen_at: Option<DateTime<Utc>>,
    /// The fetch that read it, which determines whether the document may be stored.
    pub(crate) reread: Option<&'a FetchRecord>,
    /// The manifest, if it had left the index and returned.
    pub(crate) returned: Option<&'a Manifest>,
    /// The manifest, if an earlier version of the reader read the one that is stored, and it is a different one.
    pub(crate) read_again: Option<&'a Manifest>,
}

/// A document that completes a manifest at another URL: an OpenAPI document, a list of tools.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) id: ManifestId,
    pub(crate) fetch: &'a FetchRecord,
    /// Hash of the document that it replaces.
    pub(crate) replaces: Option<ContentHash>,
}

/// All changes of a visit.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) resources: Vec<ResourceState>,
    /// Rows that are deleted because the site has too many.
    pub(crate) forgotten: Vec<ManifestId>,
    /// Manifests that lose their source.
    pub(crate) unlinked: Vec<ManifestId>,
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) versions: Vec<NewVersion<'a>>,
    pub(crate) touches: Vec<Touch<'a>>,
    /// Manifests of which this version of the reader read the current version, if an earlier one had read it.
    pub(crate) readings: Vec<ManifestId>,
    pub(crate) removals: Vec<(ManifestId, Status)>,
    /// Who names and publishes a manifest, if that is new or changed; new versions contain it as well.
    pub(crate) named: Vec<(ManifestId, StoredNaming)>,
    pub(crate) changes: Vec<Change>,
    /// Documents that exceed the limits of the site, with the reason. They are not stored.
    pub(crate) refused: HashMap<ManifestId, &'static str>,
    /// The documents that the site names, if the grouping of declarations into capabilities must be recomputed.
    pub(crate) regroups: Option<SiteNaming>,
}

impl Plan<'_> {
    pub(crate) fn count(&self, change: FeedChange) -> u32 {
        let count = self.changes.iter().filter(|row| row.what == change).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The manifests whose capabilities are written.
    pub(crate) fn manifests_indexed(&self) -> impl Iterator<Item = &Manifest> {
        let touched = self.touches.iter().filter_map(|touch| touch.returned.or(touch.read_again));
        self.versions.iter().map(|new| new.manifest).chain(touched)
    }
}

/// Plans a visit. If a URL was fetched more than once, the last fetch counts. `stored_bytes` returns the bytes that a document takes in the
/// store.
pub(crate) fn plan<'a>(
    visit: &'a VisitRecord,
    known: &Known,
    stored_bytes: &dyn Fn(&ManifestId) -> usize,
) -> Result<Plan<'a>, StoreError> {
    let mut last: BTreeMap<ManifestId, &FetchRecord> = BTreeMap::new();
    for fetch in &visit.fetches {
        last.insert(ManifestId::of(&fetch.url), fetch);
    }
    let mut plan = Plan::default();
    for (id, fetch) in &last {
        let before = known.resources.get(id);
        // a redirect to a skipped host is recorded
        let is_left = fetch.outcome == FetchOutcome::NotReached && fetch.final_url.is_some();
        if is_known(id, fetch, (visit, known)) || fetch.outcome.is_present() || is_left {
            let misses_in_row = misses(fetch, fetch.outcome, Earlier::of(known, id));
            let mut resource = resource_after(fetch, before, misses_in_row);
            if is_read_as_part(fetch, known.manifests.get(id)) {
                (resource.etag, resource.last_modified, resource.cache) = (None, None, None);
            }
            plan.resources.push(resource);
        }
    }
    plan_links(&mut plan, &visit.links, known);
    plan_forgotten(&mut plan, known);
    let mut naming = naming_after(visit, known, &plan.resources);
    let allotted = room::allot(&last, known, &naming, stored_bytes);
    plan.refused = allotted.refused;
    plan_displaced(&mut plan, &allotted.displaced, visit.ended_at);
    if !plan.refused.is_empty() {
        plan_refused(&mut plan, &last, (visit, known));
        naming = naming_after(visit, known, &plan.resources);
    }
    for (id, fetch) in &last {
        let before = known.resources.get(id);
        let is_refused = plan.refused.contains_key(id);
        let outcome = if is_refused { FetchOutcome::TooLarge } else { fetch.outcome };
        let misses_in_row = misses(fetch, outcome, Earlier::of(known, id));
        if let Some(manifest) = fetch.manifest.as_ref().filter(|_| !is_refused) {
            let is_kept = allotted.kept.contains(id);
            let naming = StoredNaming::of(&naming, &fetch.url);
            plan_read(&mut plan, (id, fetch, manifest), (known, is_kept), naming)?;
            continue;
        }
        if !is_refused {
            plan_part(&mut plan, id, fetch, before);
        }
        if let Some(manifest) = known.manifests.get(id).filter(|manifest| manifest.in_index) {
            let verdict = verdict_of_fetch(outcome, misses_in_row);
            let training = training_after(fetch, Some(manifest));
            plan_verdict(&mut plan, (id, manifest), verdict, training, fetch.at, outcome.as_str());
        }
    }
    let verdict = verdict_of_end(visit.end, visit.status);
    // these two ends apply to all hosts, because no name exists below a domain that does not exist (RFC 8020 §2); other ends apply only to
    // the site's own hosts
    let is_of_all_hosts = matches!(visit.end, VisitEnd::OptedOut | VisitEnd::DnsDead);
    let is_ended = |id: &ManifestId| {
        let is_own = |known: &ResourceState| naming.names_host(&known.url.host());
        is_of_all_hosts || known.resources.get(id).is_none_or(is_own)
    };
    let is_unread = |(id, manifest): &(&ManifestId, &KnownManifest)| {
        manifest.in_index && !last.contains_key(*id) && !allotted.displaced.contains(*id) && is_ended(id)
    };
    for (id, manifest) in known.manifests.iter().filter(is_unread) {
        let training = manifest.training;
        plan_verdict(&mut plan, (id, manifest), verdict, training, visit.ended_at, visit.end.as_str());
    }
    let naming_changed = plan_naming(&mut plan, known, &naming, visit.ended_at);
    plan.regroups = regroups(&plan, known, naming_changed).then_some(naming);
    Ok(plan)
}

/// Whether a URL keeps or gets a row after its fetch, whatever the outcome: if it already has one, or if a document of the site links to
/// it, because that document may not be read again until it changes.
fn is_known(id: &ManifestId, fetch: &FetchRecord, (visit, known): (&VisitRecord, &Known)) -> bool {
    let is_linked = || fetch.linked_from.as_ref().is_some_and(|from| from.site() == visit.site);
    known.resources.contains_key(id) || known.hints.contains_key(id) || is_linked()
}

/// Refused documents get no row, unless they have one or the site links to them. Their stored content stays.
fn plan_refused(
    plan: &mut Plan<'_>,
    last: &BTreeMap<ManifestId, &FetchRecord>,
    (visit, known): (&VisitRecord, &Known),
) {
    let Plan { resources, refused, .. } = plan;
    resources.retain_mut(|resource| {
        let id = ManifestId::of(&resource.url);
        if !refused.contains_key(&id) {
            return true;
        }
        let before = known.resources.get(&id);
        let is_kept = |fetch: &&&FetchRecord| is_known(&id, fetch, (visit, known));
        let Some(fetch) = last.get(&id).filter(is_kept) else { return false };
        resource.misses_in_row = misses(fetch, FetchOutcome::TooLarge, Earlier::of(known, &id));
        let kept = before.cloned().map(|before| {
            (before.etag, before.last_modified, before.cache, before.content_hash, before.changed_at)
        });
        (resource.etag, resource.last_modified, resource.cache, resource.content_hash, resource.changed_at) =
            kept.unwrap_or_default();
        (resource.outcome, resource.fresh_until) = (FetchOutcome::TooLarge, None);
        true
    });
}

/// Plans the removal of manifests that owners with fewer manifests displace.
fn plan_displaced(plan: &mut Plan<'_>, displaced: &[ManifestId], at: DateTime<Utc>) {
    for id in displaced {
        let reason = Some("no_room".to_owned());
        plan.changes.push(Change { what: FeedChange::Removed, manifest_id: id.clone(), at, reason });
        plan.removals.push((id.clone(), Status::Stale));
    }
}

/// Plans the changes of links between documents of the site.
fn plan_links(plan: &mut Plan<'_>, links: &LinkChanges, known: &Known) {
    let mut change = |url: &ManifestUrl, change: &dyn Fn(&mut ResourceState)| {
        let id = ManifestId::of(url);
        if let Some(resource) = plan.resources.iter_mut().find(|resource| resource.url == *url) {
            change(resource);
        } else if let Some(before) = known.resources.get(&id) {
            let mut resource = before.clone();
            change(&mut resource);
            plan.resources.push(resource);
        }
        id
    };
    for url in &links.unread {
        change(url, &|resource| {
            (resource.etag, resource.last_modified, resource.cache) = (None, None, None);
        });
    }
    for NewSource { url, discovery, linked_from } in &links.relinked {
        change(url, &|resource| {
            (resource.discovery, resource.linked_from) = (*discovery, Some(linked_from.clone()));
        });
    }
    let unlinked = links.unlinked.iter().map(|url| change(url, &|resource| resource.linked_from = None));
    plan.unlinked = unlinked.collect();
}

/// Plans which rows are deleted and which new ones are not written, so that the number of rows stays limited.
fn plan_forgotten(plan: &mut Plan<'_>, known: &Known) {
    let after: HashMap<ManifestId, &ResourceState> =
        plan.resources.iter().map(|resource| (ManifestId::of(&resource.url), resource)).collect();
    let is_bare = |id: &ManifestId, resource: &ResourceState| {
        let has_content = resource.manifest_id.is_some() || resource.content_hash.is_some();
        !has_content && !known.manifests.contains_key(id)
    };
    let before = known.resources.iter().filter(|(id, _)| !after.contains_key(*id));
    let (mut bare, mut count) = (Vec::new(), 0_usize);
    for (id, resource) in before.chain(after.iter().map(|(id, resource)| (id, *resource))) {
        count += 1;
        if is_bare(id, resource) {
            bare.push((resource.fetched_at, id));
        }
    }
    let excess = count.saturating_sub(RESOURCES_MAX).min(bare.len().saturating_sub(BARE_KEPT));
    bare.sort_unstable();
    let forgotten: Vec<ManifestId> =
        bare.into_iter().take(excess.min(FORGOTTEN_MAX)).map(|(_, id)| id.clone()).collect();
    let is_forgotten: HashSet<&ManifestId> = forgotten.iter().collect();
    plan.resources.retain(|resource| !is_forgotten.contains(&ManifestId::of(&resource.url)));
    plan.forgotten = forgotten;
}

/// The documents that the site names after the visit.
fn naming_after(visit: &VisitRecord, known: &Known, after: &[ResourceState]) -> SiteNaming {
    let found_by = |resource: &ResourceState| {
        let linked_from = kept_source(resource.linked_from.as_ref()).cloned();
        (resource.url.clone(), FoundBy { discovery: resource.discovery, linked_from })
    };
    let found = known.resources.values().chain(after).map(found_by).collect();
    let listed = known.hosts.iter().filter(|(_, origin)| **origin == HostOrigin::Listed);
    SiteNaming::new(visit.site.clone(), found, listed.map(|(host, _)| host.clone()))
}

/// Plans to store who names and publishes the manifests that stay in the index, if that changed or was not stored. Returns whether it
/// changed. The content of such a manifest is the same, so the feed reports a change of status if it counts as that of another publisher,
/// or if another one names it.
fn plan_naming(plan: &mut Plan<'_>, known: &Known, naming: &SiteNaming, at: DateTime<Utc>) -> bool {
    let reported: HashSet<ManifestId> =
        plan.changes.iter().map(|change| change.manifest_id.clone()).collect();
    let new: HashSet<&ManifestId> = plan.versions.iter().map(|new| &new.manifest.id).collect();
    let removed: HashSet<&ManifestId> = plan.removals.iter().map(|(id, _)| id).collect();
    let returned = plan.touches.iter().filter(|touch| touch.returned.is_some());
    let returned: HashSet<&ManifestId> = returned.map(|touch| &touch.id).collect();
    let stays = |(id, manifest): &(&ManifestId, &KnownManifest)| {
        let is_in_index = manifest.in_index || returned.contains(id);
        is_in_index && !new.contains(id) && !removed.contains(id)
    };
    let (mut changed, mut is_other_publisher) = (Vec::new(), false);
    for (id, before) in known.manifests.iter().filter(stays) {
        let Some(url) = known.resources.get(id).map(|resource| &resource.url) else { continue };
        let now @ StoredNaming { named_by, publisher } = StoredNaming::of(naming, url);
        is_other_publisher |= before.publisher != Some(publisher);
        if before.named_by == Some(named_by) && before.publisher == Some(publisher) {
            continue;
        }
        plan.named.push((id.clone(), now));
        if before.named_by.unwrap_or_else(|| named_by_url(url)) != named_by {
            changed.push((id.clone(), format!("named_by_{named_by}")));
        } else if before.publisher.unwrap_or_else(|| publisher_by_url(url)) != publisher {
            changed.push((id.clone(), format!("published_by_{publisher}")));
        }
    }
    let is_any_changed = is_other_publisher || !changed.is_empty();
    changed.retain(|(id, _)| !reported.contains(id));
    plan.changes.extend(changed.into_iter().map(|(manifest_id, reason)| Change {
        what: FeedChange::StatusChanged,
        manifest_id,
        at,
        reason: Some(reason),
    }));
    is_any_changed
}

/// Whether the grouping of capabilities may change. It never does if there is only one manifest.
fn regroups(plan: &Plan<'_>, known: &Known, naming_changed: bool) -> bool {
    let before = || known.manifests.values().filter(|manifest| manifest.in_index);
    let returned = plan.touches.iter().filter(|touch| touch.returned.is_some()).count();
    let is_new = |new: &&NewVersion<'_>| {
        known.manifests.get(&new.manifest.id).is_none_or(|manifest| !manifest.in_index)
    };
    let is_any_read_again = plan.touches.iter().any(|touch| touch.read_again.is_some());
    let added = returned + plan.versions.iter().filter(is_new).count();
    let changes = naming_changed
        || is_any_read_again
        || added > 0
        || !plan.versions.is_empty()
        || !plan.removals.is_empty();
    let are_several = before().count() + added > 1;
    before().any(|manifest| manifest.shares_capabilities) && changes
        || are_several && (changes || before().any(|manifest| manifest.lacks_statements))
}

/// A document without its own manifest is stored as a part.
fn plan_part<'a>(
    plan: &mut Plan<'a>,
    id: &ManifestId,
    fetch: &'a FetchRecord,
    before: Option<&ResourceState>,
) {
    let has_body_or_no_permission = fetch.body.is_some() || !fetch.store_body;
    if fetch.outcome == FetchOutcome::Found && fetch.content_hash.is_some() && has_body_or_no_permission {
        let hash_before = before.and_then(|before| before.content_hash.clone());
        let replaces =
            hash_before.filter(|hash| !fetch.store_body || fetch.content_hash.as_ref() != Some(hash));
        plan.parts.push(Part { id: id.clone(), fetch, replaces });
    }
}

/// A manifest was read: it is new, has a new version, returned, or is unchanged. If `is_kept`, there is no room for a new reading of an
/// unchanged document.
fn plan_read<'a>(
    plan: &mut Plan<'a>,
    (id, fetch, manifest): (&ManifestId, &'a FetchRecord, &'a Manifest),
    (known, is_kept): (&Known, bool),
    naming: StoredNaming,
) -> Result<(), StoreError> {
    if manifest.id != *id {
        let reason = format!("its id is {}, but the id for its URL {} is {id}", manifest.id, fetch.url);
        return Err(StoreError::Unstorable { what: "manifest", reason });
    }
    let is_confirmed = matches!(fetch.outcome, FetchOutcome::Found | FetchOutcome::NotModified);
    let status = match known.manifests.get(id).map(|before| before.status) {
        _ if manifest.format() == Format::Malformed => Status::Invalid,
        Some(before) if !is_confirmed && before != Status::Invalid => before,
        _ => Status::Fresh,
    };
    let training = training_after(fetch, known.manifests.get(id));
    let mut change = |change| {
        plan.changes.push(Change { what: change, manifest_id: id.clone(), at: fetch.at, reason: None });
    };
    match known.manifests.get(id) {
        Some(before) if before.hash == manifest.content_hash => {
            let is_other_reading = before.is_outdated() && !fetch.is_stored_reading && !is_kept;
            if !before.in_index {
                change(FeedChange::Added);
            } else if before.status != status || before.training != training {
                change(FeedChange::StatusChanged);
            } else if is_other_reading {
                let (manifest_id, reason) = (id.clone(), Some("read_again".to_owned()));
                let what = FeedChange::StatusChanged;
                plan.changes.push(Change { what, manifest_id, at: fetch.at, reason });
            }
            plan.touches.push(Touch {
                id: id.clone(),
                version: before.version,
                status,
                training,
                seen_at: is_confirmed.then_some(fetch.at),
                reread: Some(fetch),
                returned: (!before.in_index).then_some(manifest),
                read_again: is_other_reading.then_some(manifest),
            });
            if before.is_outdated() && !is_kept {
                plan.readings.push(id.clone());
            }
        }
        before => {
            // a changed part was received, even if the document itself was not requested
            let status = if status == Status::Invalid { status } else { Status::Fresh };
            let in_index = before.is_some_and(|before| before.in_index);
            change(if in_index { FeedChange::Changed } else { FeedChange::Added });
            let version = before.map_or(1, |before| before.version.saturating_add(1));
            plan.versions.push(NewVersion { manifest, fetch, version, status, training, naming });
        }
    }
    Ok(())
}

/// The training preference after a fetch. Only a response changes it.
fn training_after(fetch: &FetchRecord, before: Option<&KnownManifest>) -> PolicyChoice {
    match fetch.outcome {
        FetchOutcome::Found | FetchOutcome::NotModified => fetch.training,
        _ => before.map(|before| before.training).unwrap_or_default(),
    }
}

fn plan_verdict(
    plan: &mut Plan<'_>,
    (id, before): (&ManifestId, &KnownManifest),
    verdict: Verdict,
    training: PolicyChoice,
    at: DateTime<Utc>,
    reason: &str,
) {
    let mut change = |change| {
        plan.changes.push(Change {
            what: change,
            manifest_id: id.clone(),
            at,
            reason: Some(reason.to_owned()),
        });
    };
    let (status, seen_at) = match verdict {
        Verdict::Unknown => return,
        Verdict::Removed(status) => {
            change(FeedChange::Removed);
            plan.removals.push((id.clone(), status));
            return;
        }
        // a confirmed document that was invalid is still invalid
        Verdict::Confirmed if before.status == Status::Invalid => (Status::Invalid, Some(at)),
        Verdict::Confirmed => (Status::Fresh, Some(at)),
        Verdict::StatusOnly(status) | Verdict::Missed(status) => (status, None),
    };
    if status == before.status && seen_at.is_none() {
        return;
    }
    if status != before.status || training != before.training {
        change(FeedChange::StatusChanged);
    }
    let version = before.version;
    let id = id.clone();
    let (reread, returned, read_again) = (None, None, None);
    plan.touches.push(Touch { id, version, status, training, seen_at, reread, returned, read_again });
}
