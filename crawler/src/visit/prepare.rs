//! The initial plan of a visit, in this order: known manifests, the paths that `policy::plan` chooses, home pages, and URLs that
//! others named and that have not yielded a manifest.

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl};
use policy::plan::{self, LastCheck, Priors};
use policy::{BodyKind, HostKnowledge, PathClass, Status};
use store::{Hint, HostState, PathSlots, ResourceState, SiteState};

use super::progress::Progress;
use super::task::{NamedBy, Role, Task, body_of_path};

/// A resource that was missing this often in a row is left to the path table.
const MISSES_MAX: u32 = 3;

/// URLs that other sites link to and that one visit requests, of those that yielded no manifest. Each is requested once.
const LINKED_BY_OTHERS_MAX: usize = 10;

/// Hosts of one site per visit: the daily budget of the site allows only a few requests to each.
const HOSTS_MAX: usize = 50;

/// A visit at its beginning.
pub(crate) fn begin(site: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    let mut pages = Vec::new();
    for state in hosts_in_turn(site) {
        let (last, first): (Vec<Task>, Vec<Task>) =
            tasks_of(site, state, priors).into_iter().partition(|task| task.role == Role::Page);
        for task in first {
            progress.plan.add(task);
        }
        pages.extend(last);
    }
    for task in pages {
        progress.plan.add(task);
    }
    for task in named_by_others(site) {
        progress.plan.add(task);
    }
    progress
}

/// Hints, which may name hosts that were not seeded, and submitted or listed URLs that have not yielded a manifest.
fn named_by_others(site: &SiteState) -> impl Iterator<Item = Task> {
    let (linked, named): (Vec<&Hint>, Vec<&Hint>) =
        site.hints.iter().partition(|hint| is_of_another_site(site, hint.linked_from.as_ref()));
    let again =
        site.resources.iter().filter(|known| is_named_by_others(known) && is_asked_again(site, known));
    let again = again.map(known_task);
    let hints = named.into_iter().chain(linked.into_iter().take(LINKED_BY_OTHERS_MAX)).map(hint);
    hints.chain(again).map(|task| Task { named_by: NamedBy::Others, ..task })
}

fn is_of_another_site(site: &SiteState, linked_from: Option<&ManifestUrl>) -> bool {
    linked_from.is_some_and(|from| from.site() != site.name)
}

/// Named, not found by looking: no row of the path table, and not linked by a document of any site.
fn is_named_by_others(known: &ResourceState) -> bool {
    known.manifest_id.is_none()
        && known.discovery == Discovery::Submitted
        && plan::find(&known.url.path_and_query()).is_none()
}

/// The hosts of this visit. Names below a domain cost their owner nothing, so there may be any number of them; each visit
/// looks at the next ones.
fn hosts_in_turn(site: &SiteState) -> impl Iterator<Item = &HostState> {
    let count = site.hosts.len();
    let turn = usize::try_from(site.visits).unwrap_or_default().saturating_mul(HOSTS_MAX);
    let first = if count > HOSTS_MAX { turn % count } else { 0 };
    site.hosts.iter().cycle().skip(first).take(count.min(HOSTS_MAX))
}

/// A visit to one document.
pub(crate) fn only(url: &ManifestUrl, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, PathSlots::default());
    progress.plan.add(Task::new(url.clone(), body_of_path(url), Discovery::Submitted));
    progress
}

/// A host that only a redirect led to is requested for known documents, and not searched.
fn tasks_of(site: &SiteState, state: &HostState, priors: &Priors) -> Vec<Task> {
    let known = site.resources.iter().filter(|resource| resource.url.host() == state.host);
    let known =
        known.filter(|known| !is_named_by_others(known) && is_asked_again(site, known)).map(known_task);
    if !state.seeded {
        return known.collect();
    }
    let last = |slot| {
        let check = site.paths_checked.get(slot)?;
        Some(LastCheck { class: PathClass::from_code(check.class)?, day: check.day })
    };
    let planned = plan::paths(standing(site, &state.host), priors, last);
    known.chain(planned.into_iter().filter_map(|row| Task::of_path(&state.host, row))).collect()
}

/// Parts come with their manifest, and documents that have been missing for long are skipped. What another site linked to
/// and was no manifest is not requested a second time, whatever the result.
fn is_asked_again(site: &SiteState, resource: &ResourceState) -> bool {
    let is_part = resource.linked_from.is_some() && resource.outcome.is_present();
    let may_become_one = !is_part
        && resource.misses_in_row < MISSES_MAX
        && !is_of_another_site(site, resource.linked_from.as_ref());
    resource.manifest_id.is_some() || may_become_one
}

fn known_task(resource: &ResourceState) -> Task {
    let row = plan::find(&resource.url.path_and_query());
    Task {
        linked_from: resource.linked_from.clone().map(Box::new),
        slot: row.map(|row| row.slot),
        ..Task::new(resource.url.clone(), body_of_path(&resource.url), resource.discovery)
    }
}

fn hint(Hint { url, linked_from }: &Hint) -> Task {
    let row = plan::find(&url.path_and_query());
    let role =
        if row.is_some_and(|row| row.body == BodyKind::Homepage) { Role::Page } else { Role::Manifest };
    let discovery = if linked_from.is_some() { Discovery::CatalogEntry } else { Discovery::Submitted };
    Task {
        slot: row.map(|row| row.slot),
        role,
        linked_from: linked_from.clone().map(Box::new),
        ..Task::new(url.clone(), body_of_path(url), discovery)
    }
}

fn standing(site: &SiteState, host: &Host) -> HostKnowledge {
    let has_manifests =
        site.resources.iter().any(|resource| resource.url.host() == *host && resource.manifest_id.is_some());
    match () {
        () if has_manifests => HostKnowledge::Positive,
        () if site.status == Status::CatchAll => HostKnowledge::CatchAll,
        () if site.paths_checked.is_empty() => HostKnowledge::Unknown,
        () => HostKnowledge::Negative,
    }
}
