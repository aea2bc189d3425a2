//! What a visit sets out to ask for, in this order: known manifests, the paths that `policy::plan` chooses, homepages, and then
//! URLs and hosts that others named and no manifest was read from.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl};
use policy::plan::{self, LastCheck, PlannedPath, Priors};
use policy::{BodyKind, FetchOutcome, PathClass, Seed, Standing, Status};
use store::{Hint, HostOrigin, HostState, PathSlots, ResourceState, SiteState, is_main_host};

use super::progress::Progress;
use super::task::{NamedBy, Role, Task, body_of_path};

/// A resource that was missing this often in a row is left to the path table.
const MISSES_MAX: u32 = 3;

/// URLs that other sites link to, of those from which no manifest was read, that one visit asks for. Each is asked for once.
const LINKED_BY_OTHERS_MAX: usize = 10;

/// Hosts of one site that a visit looks at: the day's budget of the site allows no more than a few requests to each.
const HOSTS_MAX: usize = 50;

/// Of these, hosts that links or submissions name and that have no manifest.
const HOSTS_NAMED_MAX: usize = 10;

/// A visit at its beginning.
pub(crate) fn begin(site: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    let mut pages = Vec::new();
    let own = OwnHosts::of(site);
    let (own, named): (Vec<&HostState>, Vec<&HostState>) =
        site.hosts.iter().partition(|state| own.has(&state.host));
    for state in in_turn(&own, HOSTS_MAX, site.visits) {
        let (last, first): (Vec<Task>, Vec<Task>) =
            tasks_of(site, state, priors).into_iter().partition(|task| task.role == Role::Page);
        for task in first {
            progress.plan(task);
        }
        pages.extend(last);
    }
    for task in pages {
        progress.plan(task);
    }
    for task in named_by_others(site) {
        progress.plan(task);
    }
    for state in in_turn(&named, HOSTS_NAMED_MAX, site.visits) {
        for task in tasks_of(site, state, priors) {
            progress.plan(Task { named_by: NamedBy::Others, ..task });
        }
    }
    progress
}

/// Hosts whose answers say something of their site. Anybody can name any host below a site's name, so a link or a submission
/// is not enough: it is the site itself or its `www.`, the operator listed it, a visit was redirected to it, or a manifest was
/// read from it.
pub(crate) struct OwnHosts<'a> {
    /// The others.
    named: HashSet<&'a Host>,
}

impl<'a> OwnHosts<'a> {
    pub(crate) fn of(site: &'a SiteState) -> Self {
        let resources = site.resources.iter().filter(|resource| resource.manifest_id.is_some());
        let with_manifests: HashSet<Host> = resources.map(|resource| resource.url.host()).collect();
        let is_named = |state: &&HostState| {
            state.origin == HostOrigin::Named
                && !is_main_host(site.name.as_str(), state.host.as_str())
                && !with_manifests.contains(&state.host)
        };
        Self { named: site.hosts.iter().filter(is_named).map(|state| &state.host).collect() }
    }

    /// Whether a host is one of them. One that is not known yet was met in this visit, and is.
    pub(crate) fn has(&self, host: &Host) -> bool {
        !self.named.contains(host)
    }
}

fn has_manifests(site: &SiteState, host: &Host) -> bool {
    site.resources.iter().any(|resource| resource.url.host() == *host && resource.manifest_id.is_some())
}

/// Hints, which may lie on hosts that were not seeded, and what was submitted or listed and is no manifest so far.
fn named_by_others(site: &SiteState) -> impl Iterator<Item = Task> {
    let (linked, named): (Vec<&Hint>, Vec<&Hint>) =
        site.hints.iter().partition(|hint| is_of_another_site(site, hint.linked_from.as_ref()));
    let again = site
        .resources
        .iter()
        .filter(|known| is_named_by_others(known) && is_asked_again(site, known) && !is_settled(known));
    let again = again.map(known_task);
    let hints = named.into_iter().chain(linked.into_iter().take(LINKED_BY_OTHERS_MAX)).map(hint);
    hints.chain(again).map(|task| Task { named_by: NamedBy::Others, ..task })
}

/// A submitted document that is no manifest, or a copy of one, is asked for once.
fn is_settled(known: &ResourceState) -> bool {
    known.discovery == Discovery::Submitted && known.outcome == FetchOutcome::NotAManifest
}

fn is_of_another_site(site: &SiteState, linked_from: Option<&ManifestUrl>) -> bool {
    linked_from.is_some_and(|from| from.site() != site.name)
}

/// Named, not found by looking: no row of the path table, and not linked by a document of any site.
fn is_named_by_others(known: &ResourceState) -> bool {
    known.manifest_id.is_none()
        && matches!(known.discovery, Discovery::Submitted | Discovery::Listed)
        && plan::find(&known.url.path_and_query()).is_none()
}

/// The hosts of this visit. Names below a domain cost their owner nothing, so there may be any number of them; each visit
/// looks at the next ones.
fn in_turn<'a>(hosts: &[&'a HostState], max: usize, visits: u32) -> impl Iterator<Item = &'a HostState> {
    let count = hosts.len();
    let turn = usize::try_from(visits).unwrap_or_default().saturating_mul(max);
    let first = if count > max { turn % count } else { 0 };
    hosts.iter().copied().cycle().skip(first).take(count.min(max))
}

/// A visit that asks for one document.
pub(crate) fn only(url: &ManifestUrl, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, PathSlots::default());
    progress.plan(Task::new(url.clone(), body_of_path(url), Discovery::Submitted));
    progress
}

/// The task that finds out whether a host answers everything.
pub(crate) fn canary(host: &Host) -> Option<Task> {
    let path = plan::canary_path(Seed::of(host.as_str()));
    let url = ManifestUrl::on_host(host, &path).ok()?;
    Some(Task { role: Role::Canary, ..Task::new(url, BodyKind::Other, Discovery::Root) })
}

/// A host that was only met on the way (a redirect led there) is asked for what is known of it, never searched.
fn tasks_of(site: &SiteState, state: &HostState, priors: &Priors) -> Vec<Task> {
    let known = site.resources.iter().filter(|resource| resource.url.host() == state.host);
    let known =
        known.filter(|known| !is_named_by_others(known) && is_asked_again(site, known)).map(known_task);
    if !state.is_seeded() {
        return known.collect();
    }
    let last = |slot| {
        let check = site.paths_checked.get(slot)?;
        Some(LastCheck { class: PathClass::from_code(check.class)?, day: check.day })
    };
    let planned = plan::paths(standing(site, &state.host), priors, last);
    known.chain(planned.into_iter().filter_map(|row| planned_task(&state.host, row))).collect()
}

/// Parts come with the manifest they belong to, and what has been missing for long is left alone. What another site linked to
/// and was no manifest is not asked for a second time, whatever became of it.
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

pub(super) fn planned_task(host: &Host, row: &PlannedPath) -> Option<Task> {
    let url = ManifestUrl::on_host(host, row.path).ok()?;
    let (discovery, role) = Task::manner_of(row);
    Some(Task { slot: Some(row.slot), role, ..Task::new(url, row.body, discovery) })
}

fn hint(Hint { url, linked_from, discovery }: &Hint) -> Task {
    let row = plan::find(&url.path_and_query());
    let role =
        if row.is_some_and(|row| row.body == BodyKind::Homepage) { Role::Page } else { Role::Manifest };
    Task {
        slot: row.map(|row| row.slot),
        role,
        linked_from: linked_from.clone().map(Box::new),
        ..Task::new(url.clone(), body_of_path(url), *discovery)
    }
}

fn standing(site: &SiteState, host: &Host) -> Standing {
    match () {
        () if has_manifests(site, host) => Standing::Positive,
        () if site.status == Status::CatchAll => Standing::CatchAll,
        () if site.paths_checked.is_empty() => Standing::Unknown,
        () => Standing::Negative,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_lies_beside_the_manifests() {
        let task = canary(&Host::parse("a.example").unwrap()).unwrap();
        assert!(task.url.path().starts_with("/.well-known/agentdex-canary-"), "{}", task.url);
        assert_eq!(task.role, Role::Canary);
    }
}
