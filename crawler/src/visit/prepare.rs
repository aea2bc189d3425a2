//! The initial plan of a visit, in this order: the proof of a claim, known manifests that the site itself publishes, the paths that
//! `policy::plan` chooses, home pages, known documents to which its manifests link, those to which these link, and then URLs and hosts that
//! only others name: first the manifests of such hosts.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName};
use policy::plan::{self, FullTableReason, LastCheck, PathPlan, Priors};
use policy::{BodyKind, FetchOutcome, HostKnowledge, PathClass, Seed, Status, take_turns};
use store::{Hint, HostOrigin, HostState, PathSlots, ResourceState, SiteState, is_main_host};

use super::claim;
use super::own_hosts::OwnHosts;
use super::plan::{
    FURTHER_OF_ONE_MAX, KNOWN_WAITING_MAX, TASKS_BEGUN_MAX, TASKS_FURTHER_MAX, TASKS_OF_OTHERS_MAX,
};
use super::progress::Progress;
use super::task::{NamedBy, Role, Task, body_of_path};
use super::traffic::Traffic;

/// A resource that was missing this often in a row is left to the path table, and to those who name it again.
const MISSES_MAX: u32 = 3;

/// Maximum number of URLs that other sites link to and that one visit requests, of those that yielded no manifest. Each is
/// requested once.
const LINKED_BY_OTHERS_MAX: usize = 10;

/// Maximum number of hosts of one site per visit: the daily budget of the site allows only a few requests to each.
const HOSTS_MAX: usize = 50;

/// Maximum number of hosts per visit that links or submissions name and that have no manifest. Those with manifests do not count, and
/// have [`HOSTS_MAX`] of their own.
const HOSTS_NAMED_MAX: usize = 10;

/// Maximum number of known documents per visit that only others name: two thirds of the tasks of others. Each host, and each site that
/// links to documents at the site's own hosts, has [`KNOWN_OF_ONE_MAX`] of them, and these take turns.
const KNOWN_OF_OTHERS_MAX: usize = TASKS_OF_OTHERS_MAX / 3 * 2;
const KNOWN_OF_ONE_MAX: usize = 10;

/// Known documents that the site itself publishes with which a visit begins, and as many to which they link. The rest of [`TASKS_BEGUN_MAX`] has room for the path table.
const KNOWN_OF_SITE_MAX: usize = TASKS_BEGUN_MAX - 20;
/// Those of them that are at paths of the table of the main hosts, such as its catalogs: each visit begins with these.
const KNOWN_USUAL_MAX: usize = 20;
/// Documents by which each visit begins later with the rest. There is always room for as many.
const KNOWN_TURN: usize = KNOWN_OF_SITE_MAX - KNOWN_USUAL_MAX - KNOWN_WAITING_MAX;
/// Known documents of further links per visit: two thirds of these. Those of each linking document take turns.
const KNOWN_FURTHER_MAX: usize = TASKS_FURTHER_MAX / 3 * 2;
/// Linked documents that failed are requested after the others, except in each eighth visit: a daily budget would otherwise never leave
/// one for them.
const FAILED_IN_ORDER_EVERY: u32 = 8;
/// Whose turn it is to name a host, where a collected list does. No site has this name.
const COLLECTED: &str = "lists";

/// A visit at its beginning.
pub(crate) fn begin(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    progress.traffic = Traffic::after_earlier_visits(site, |host| own_hosts.contains(host), now);
    if let Some(task) = claim::task(site, now, now) {
        progress.plan.add(task);
    }
    for task in of_site(site, own_hosts, priors) {
        progress.plan.add(Task { named_by: own_hosts.word_on(&task), ..task });
    }
    let is_of_others = |state: &&HostState| !own_hosts.contains(&state.host) && is_requested(site, state);
    let named: Vec<&HostState> = site.hosts.iter().filter(is_of_others).collect();
    let is_foreign = |known: &&ResourceState| {
        own_hosts.contains(&known.url.host()) && !own_hosts.names(&known.url) && is_planned(site, known)
    };
    let foreign: Vec<Task> = site.resources.iter().filter(is_foreign).map(known_task).collect();
    let (with_manifests, without): (Vec<&HostState>, Vec<&HostState>) =
        named.into_iter().partition(|state| has_manifests(site, &state.host));
    let with_manifests: Vec<&HostState> = in_turn(with_manifests, HOSTS_MAX, site.visits).collect();
    // no number of other names keeps a visit from the manifests that are known
    let manifests = known_of_others(site, foreign, &with_manifests);
    let searched = with_manifests.iter().copied().chain(in_turn_of_linking_sites(site, without));
    let searched = searched.flat_map(|state| {
        let known = in_turn(known_at(site, &state.host).collect(), KNOWN_OF_ONE_MAX, site.visits);
        known.chain(rows_of(site, own_hosts, state, priors))
    });
    for task in manifests.into_iter().chain(named_by_others(site)).chain(searched) {
        progress.plan.add(Task { named_by: NamedBy::Others, ..task });
    }
    progress
}

/// The tasks of the site: known documents, then paths of the table, at the main hosts first, whose requests do not wait for the delays of
/// other hosts. Home pages are last. The plan puts what documents link to after what the site itself publishes.
fn of_site(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors) -> Vec<Task> {
    let is_main = |url: &ManifestUrl| is_main_host(site.name.as_str(), url.host().as_str());
    let (known, failed) = known_of_site(site, own_hosts);
    let urls: HashSet<&ManifestUrl> = known.iter().chain(&failed).map(|known| &known.url).collect();
    let published = known.iter().filter(|known| own_hosts.publishes(&known.url)).count();
    let rows = own(site, own_hosts).flat_map(|state| rows_of(site, own_hosts, state, priors));
    let rows = rows.filter(|task| !urls.contains(&task.url));
    let rows = rows.take(TASKS_BEGUN_MAX.saturating_sub(published));
    let (pages, rows): (Vec<Task>, Vec<Task>) = rows.partition(|task| task.role == Role::Page);
    let (main_rows, other_rows): (Vec<Task>, Vec<Task>) =
        rows.into_iter().partition(|task| is_main(&task.url));
    let (main, others): (Vec<&ResourceState>, Vec<&ResourceState>) =
        known.into_iter().partition(|known| is_main(&known.url));
    let main = main.into_iter().map(known_task).chain(main_rows);
    let others = others.into_iter().map(known_task).chain(other_rows);
    main.chain(others).chain(failed.into_iter().map(known_task)).chain(pages).collect()
}

/// The known documents that the site names, nearest first, and those of them that failed ([`has_failed`]). What users may have written
/// takes no turn of what the site itself publishes.
fn known_of_site<'a>(
    site: &'a SiteState,
    own_hosts: &OwnHosts,
) -> (Vec<&'a ResourceState>, Vec<&'a ResourceState>) {
    let (mut published, mut linked, mut further) = (Vec::new(), Vec::new(), BTreeMap::new());
    for known in in_turns(site, own_hosts) {
        match own_hosts.word_on(&known_task(known)) {
            NamedBy::Site => published.push(known),
            NamedBy::Further => {
                let of_one: &mut Vec<&ResourceState> = further.entry(&known.linked_from).or_default();
                of_one.push(known);
            }
            NamedBy::Document | NamedBy::Others => linked.push(known),
        }
    }
    let further = further.into_iter().flat_map(|(from, documents)| {
        let from = from.as_ref().map(ManifestUrl::as_str).unwrap_or_default();
        let turn = Seed::of(from).with_counter(site.visits.into());
        in_turn(documents, FURTHER_OF_ONE_MAX, site.visits).map(move |known| (turn, known))
    });
    let mut known = of_this_visit(site, published);
    known.extend(of_this_visit(site, linked));
    known.extend(take_turns(further).into_iter().take(KNOWN_FURTHER_MAX));
    // what the site itself publishes comes before what users may have written, and what was not requested for the longest time first:
    // each visit continues where a budget or a delay ended the last one
    known.sort_by_cached_key(|known| {
        let is_requested = known.outcome != FetchOutcome::NotReached;
        (own_hosts.links_away(&known.url), is_requested, known.fetched_at, known.url.clone())
    });
    let is_last = |known: &&ResourceState| {
        let may_be_last = !site.visits.is_multiple_of(FAILED_IN_ORDER_EVERY);
        may_be_last && has_failed(known.outcome) && !own_hosts.publishes(&known.url)
    };
    let (failed, known) = known.into_iter().partition(is_last);
    (known, failed)
}

/// Whether such an outcome may end the visit of its host, or of what the same document links to there. What is linked and failed comes
/// last: users whose documents fail may not keep visits from those of others.
const fn has_failed(outcome: FetchOutcome) -> bool {
    let is_failure =
        matches!(outcome, FetchOutcome::RateLimited | FetchOutcome::ServerError | FetchOutcome::Blocked);
    is_failure || outcome.is_transport_error()
}

/// Those of known documents that this visit requests. If they are more than [`KNOWN_OF_SITE_MAX`], they take turns: each visit requests
/// those at usual paths, some of those that wait for their first request or to be read whole, and the next ones of the rest.
fn of_this_visit<'a>(site: &SiteState, documents: Vec<&'a ResourceState>) -> Vec<&'a ResourceState> {
    let is_usual = |known: &&ResourceState| {
        let is_main = is_main_host(site.name.as_str(), known.url.host().as_str());
        is_main && plan::find(&known.url.path_and_query()).is_some()
    };
    let is_waiting = |known: &&ResourceState| {
        known.outcome == FetchOutcome::NotReached || known.outcome.is_present() && known.cache.is_none()
    };
    let (mut usual, others): (Vec<&ResourceState>, Vec<&ResourceState>) =
        documents.into_iter().partition(is_usual);
    let rest = usual.split_off(usual.len().min(KNOWN_USUAL_MAX)).into_iter().chain(others);
    let (waiting, rest): (Vec<&ResourceState>, Vec<&ResourceState>) = rest.partition(is_waiting);
    let waiting = in_turn(waiting, KNOWN_WAITING_MAX, site.visits);
    let mut known: Vec<&ResourceState> = usual.into_iter().chain(waiting).collect();
    let room = KNOWN_OF_SITE_MAX.saturating_sub(known.len());
    known.extend(in_turn_by(rest, KNOWN_TURN, room, site.visits));
    known
}

/// The known documents that the site names and that visits request in turns, all of them.
pub(super) fn in_turns<'a>(
    site: &'a SiteState,
    own_hosts: &OwnHosts,
) -> impl Iterator<Item = &'a ResourceState> {
    let hosts: HashSet<&Host> = site.hosts.iter().map(|state| &state.host).collect();
    site.resources.iter().filter(move |known| {
        hosts.contains(&known.url.host()) && own_hosts.names(&known.url) && is_planned(site, known)
    })
}

/// The own hosts of this visit.
fn own<'a>(site: &'a SiteState, own: &OwnHosts) -> impl Iterator<Item = &'a HostState> {
    let own = site.hosts.iter().filter(|state| own.contains(&state.host));
    // The delays of other hosts do not come before the domain itself.
    let (main, others): (Vec<&HostState>, Vec<&HostState>) =
        own.partition(|state| is_main_host(site.name.as_str(), state.host.as_str()));
    main.into_iter().chain(in_turn(others, HOSTS_MAX, site.visits))
}

/// The known documents of this visit that only others name: `at_own_hosts`, and those of `hosts`. Each visit requests the next ones.
fn known_of_others(site: &SiteState, at_own_hosts: Vec<Task>, hosts: &[&HostState]) -> Vec<Task> {
    let mut by_owner: BTreeMap<String, Vec<Task>> = BTreeMap::new();
    for task in at_own_hosts {
        let linked_by = task.linked_from.as_ref().map(|from| from.site().to_string());
        by_owner.entry(linked_by.unwrap_or_default()).or_default().push(task);
    }
    for state in hosts {
        by_owner.insert(state.host.to_string(), known_at(site, &state.host).collect());
    }
    let turns = by_owner.into_iter().flat_map(|(owner, tasks)| {
        let turn = Seed::of(&owner).with_counter(site.visits.into());
        in_turn(tasks, KNOWN_OF_ONE_MAX, site.visits).map(move |task| (turn, task))
    });
    take_turns(turns).into_iter().take(KNOWN_OF_OTHERS_MAX).collect()
}

/// Whether there is something to request at a host: it is searched, or a document of it was received.
fn is_requested(site: &SiteState, state: &HostState) -> bool {
    let is_received = |known: &ResourceState| {
        known.url.host() == state.host && (known.manifest_id.is_some() || known.content_hash.is_some())
    };
    state.is_seeded() || site.resources.iter().any(is_received)
}

/// The paths that a visit left for later, at the site's own hosts, now that there is a reason to request them. Those that the
/// visit has requested or planned are among them.
pub(crate) fn remaining(
    site: &SiteState,
    own_hosts: &OwnHosts,
    priors: &Priors,
    reason: FullTableReason,
) -> Vec<Task> {
    let hosts = own(site, own_hosts).filter(|state| state.is_seeded());
    hosts
        .flat_map(|state| {
            let planned = plan_of((site, own_hosts), &state.host, Some(reason), priors).requested;
            planned.into_iter().filter_map(|row| Task::of_path(&state.host, row))
        })
        .collect()
}

/// The home pages of the main hosts.
pub(crate) fn home_pages(site: &SiteState, own_hosts: &OwnHosts) -> Vec<Task> {
    let is_searched =
        |state: &&HostState| is_main_host(site.name.as_str(), state.host.as_str()) && state.is_seeded();
    let row = plan::PATHS.iter().find(|row| row.body == BodyKind::Homepage);
    let hosts = own(site, own_hosts).filter(is_searched);
    hosts.filter_map(|state| Task::of_path(&state.host, row?)).collect()
}

/// How the next visit divides the path table at the site's first own host; `None` if it has none that is searched.
pub(crate) fn outlook(site: &SiteState, priors: &Priors) -> Option<PathPlan> {
    let own_hosts = OwnHosts::of(site);
    let state = site.hosts.iter().find(|state| own_hosts.contains(&state.host) && state.is_seeded())?;
    Some(plan_of((site, &own_hosts), &state.host, full_table(site, &own_hosts, &state.host), priors))
}

/// Hints, which may name hosts that were not seeded, and submitted or listed URLs that have not yielded a manifest. Of the
/// URLs that other sites link to, each linking site in turn names one; another one is first in each visit.
fn named_by_others(site: &SiteState) -> impl Iterator<Item = Task> {
    let (linked, named): (Vec<&Hint>, Vec<&Hint>) =
        site.hints.iter().partition(|hint| is_of_another_site(site, hint.linked_from.as_ref()));
    let again = site
        .resources
        .iter()
        .filter(|known| is_named_by_others(known) && is_asked_again(site, known) && !is_settled(known));
    let again = again.map(known_task);
    let turn = |hint: &Hint| {
        let from = hint.linked_from.as_ref().map(ManifestUrl::site);
        Seed::of(from.as_ref().map_or("", SiteName::as_str)).with_counter(site.visits.into())
    };
    let linked = take_turns(linked.into_iter().map(|hint| (turn(hint), hint)));
    let hints = named.into_iter().chain(linked.into_iter().take(LINKED_BY_OTHERS_MAX)).map(hint);
    hints.chain(again)
}

/// A submitted URL whose document is not a manifest, or is a copy of one, is requested once.
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

/// The hosts or documents of this visit. Names below a domain cost their owner nothing, so there may be any number of them; each visit
/// looks at the next ones.
fn in_turn<T: Clone>(items: Vec<T>, max: usize, visits: u32) -> impl Iterator<Item = T> {
    in_turn_by(items, max, max, visits)
}

/// Up to `max` items, each visit beginning `step` items later.
fn in_turn_by<T: Clone>(items: Vec<T>, step: usize, max: usize, visits: u32) -> impl Iterator<Item = T> {
    let count = items.len();
    let turn = usize::try_from(visits).unwrap_or_default().saturating_mul(step);
    let first = if count > step { turn % count } else { 0 };
    items.into_iter().cycle().skip(first).take(count.min(max))
}

/// Hosts that only others name and that have no manifest, up to [`HOSTS_NAMED_MAX`]. The sites that link to them take turns, as far as
/// it is known who links: as long as a URL of the host is. Those of collected lists have a turn too, and hosts that a submission
/// names share one turn with the rest. In each visit the next ones of each turn are searched.
fn in_turn_of_linking_sites<'a>(site: &'a SiteState, hosts: Vec<&'a HostState>) -> Vec<&'a HostState> {
    let of_hints = site.hints.iter().map(|hint| (&hint.url, hint.linked_from.as_ref()));
    let of_resources = site.resources.iter().map(|known| (&known.url, known.linked_from.as_ref()));
    let linked = of_resources.chain(of_hints).filter(|(_, from)| is_of_another_site(site, *from));
    let sources: HashMap<Host, SiteName> =
        linked.filter_map(|(url, from)| Some((url.host(), from?.site()))).collect();
    let mut by_source: BTreeMap<&str, Vec<&HostState>> = BTreeMap::new();
    for state in hosts {
        let source = match sources.get(&state.host) {
            _ if state.origin == HostOrigin::Collected => COLLECTED,
            Some(site) => site.as_str(),
            None => "",
        };
        by_source.entry(source).or_default().push(state);
    }
    let share = HOSTS_NAMED_MAX.checked_div(by_source.len()).unwrap_or_default().max(1);
    let turns = by_source.into_iter().flat_map(|(source, hosts)| {
        let turn = Seed::of(source).with_counter(site.visits.into());
        in_turn_by(hosts, share, HOSTS_NAMED_MAX, site.visits).map(move |state| (turn, state))
    });
    take_turns(turns).into_iter().take(HOSTS_NAMED_MAX).collect()
}

/// A visit to one document.
pub(crate) fn only(url: &ManifestUrl, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, PathSlots::default());
    progress.plan.add(Task::new(url.clone(), body_of_path(url), Discovery::Submitted));
    progress
}

/// The known documents of a host that are requested again.
fn known_at<'a>(site: &'a SiteState, host: &'a Host) -> impl Iterator<Item = Task> + 'a {
    let known = site.resources.iter().filter(|resource| resource.url.host() == *host);
    known.filter(|known| is_planned(site, known)).map(known_task)
}

/// Whether visits request a known document again, unless it has no turn.
fn is_planned(site: &SiteState, known: &ResourceState) -> bool {
    !is_named_by_others(known) && is_asked_again(site, known)
}

/// A host that only a redirect led to is not searched.
fn rows_of(site: &SiteState, own_hosts: &OwnHosts, state: &HostState, priors: &Priors) -> Vec<Task> {
    if !state.is_seeded() {
        return Vec::new();
    }
    let reason = full_table(site, own_hosts, &state.host);
    let planned = plan_of((site, own_hosts), &state.host, reason, priors).requested;
    planned.into_iter().filter_map(|row| Task::of_path(&state.host, row)).collect()
}

fn plan_of(
    (site, own_hosts): (&SiteState, &OwnHosts),
    host: &Host,
    reason: Option<FullTableReason>,
    priors: &Priors,
) -> PathPlan {
    let last = |slot| {
        let check = site.paths_checked.get(slot)?;
        Some(LastCheck { class: PathClass::from_code(check.class)?, day: check.day })
    };
    plan::paths(standing(site, own_hosts, host), reason, priors, last)
}

/// Why a visit begins with every path that was never requested, as far as the store knows.
fn full_table(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> Option<FullTableReason> {
    // what others name says something about a host that they name, and nothing about the site
    let is_counted = |known: &&ResourceState| {
        own_hosts.names(&known.url) || !own_hosts.contains(host) && known.url.host() == *host
    };
    let is_named = |discovery: Discovery| matches!(discovery, Discovery::Submitted | Discovery::Listed);
    let mut hints = site.hints.iter().map(|hint| hint.discovery);
    let mut manifests = site.resources.iter().filter(|known| known.manifest_id.is_some()).filter(is_counted);
    match () {
        () if manifests.next().is_some() => Some(FullTableReason::ManifestKnown),
        () if hints.any(is_named) || site.resources.iter().any(|known| is_named(known.discovery)) => {
            Some(FullTableReason::UrlNamed)
        }
        () if site.is_submitted => Some(FullTableReason::Submitted),
        () => None,
    }
}

/// Parts come with their manifest, unless a submission or another site names them too, and documents that have been missing for long are
/// skipped. What another site linked to and was no manifest is not requested a second time for this link, whatever the result.
fn is_asked_again(site: &SiteState, resource: &ResourceState) -> bool {
    let is_part =
        resource.linked_from.is_some() && resource.outcome.is_present() && !resource.is_named_as_manifest();
    let may_become_one =
        !is_part && !is_given_up(resource) && !is_of_another_site(site, resource.linked_from.as_ref());
    resource.manifest_id.is_some() || may_become_one
}

/// Whether a document was missing too often in a row to be requested for what the store knows of it.
pub(super) const fn is_given_up(resource: &ResourceState) -> bool {
    resource.misses_in_row >= MISSES_MAX
}

fn known_task(resource: &ResourceState) -> Task {
    let row = plan::find(&resource.url.path_and_query());
    Task {
        linked_from: resource.linked_from.clone().map(Box::new),
        slot: row.map(|row| row.slot),
        ..Task::new(resource.url.clone(), body_of_path(&resource.url), resource.discovery)
    }
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

fn has_manifests(site: &SiteState, host: &Host) -> bool {
    manifests_at(site, host).next().is_some()
}

fn manifests_at<'a>(site: &'a SiteState, host: &'a Host) -> impl Iterator<Item = &'a ResourceState> {
    site.resources.iter().filter(|known| known.url.host() == *host && known.manifest_id.is_some())
}

fn standing(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> HostKnowledge {
    // what others name at an own host says nothing about it
    let is_counted = |known: &&ResourceState| !own_hosts.contains(host) || own_hosts.names(&known.url);
    let mut manifests = manifests_at(site, host).filter(is_counted);
    match () {
        () if manifests.next().is_some() => HostKnowledge::Positive,
        () if site.status == Status::CatchAll => HostKnowledge::CatchAll,
        () if site.paths_checked.is_empty() => HostKnowledge::Unknown,
        () => HostKnowledge::Negative { visits: site.negatives_in_row },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use chrono::TimeDelta;
    use policy::claim::Claim;

    use super::*;
    use crate::visit::context::Scope;
    use crate::visit::fixtures::{host, manifest};
    use crate::visit::links::FollowUps;
    use crate::visit::plan::Plan;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    #[test]
    fn manifests_that_only_others_name_come_last_and_as_theirs() {
        let evil = Some("https://evil.example/.well-known/ai-catalog.json");
        let site = SiteState {
            hosts: vec![
                host("a.example", HostOrigin::Listed),
                host("tenant.a.example", HostOrigin::Named),
                host("docs.a.example", HostOrigin::Named),
                host("met.a.example", HostOrigin::Met),
            ],
            resources: vec![
                manifest("https://a.example/-/upload.json", Discovery::CatalogEntry, evil),
                manifest("https://a.example/agent.json", Discovery::Root, None),
                manifest(
                    "https://a.example/x/linked.json",
                    Discovery::Pointer,
                    Some("https://a.example/agent.json"),
                ),
                manifest("https://tenant.a.example/agent.json", Discovery::Root, None),
                manifest(
                    "https://docs.a.example/api.json",
                    Discovery::Pointer,
                    Some("https://a.example/agent.json"),
                ),
                manifest("https://docs.a.example/.well-known/mcp.json", Discovery::WellKnown, None),
                manifest("https://met.a.example/agent.json", Discovery::CatalogEntry, evil),
            ],
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        };
        let mut plan = begun(&site);
        let tasks: Vec<(String, NamedBy)> = std::iter::from_fn(|| plan.next(&Scope::Site))
            .map(|task| (task.url.to_string(), task.named_by))
            .collect();
        let at = |text: &str| tasks.iter().position(|(url, _)| url == text).unwrap();
        let own = [
            "https://a.example/agent.json",
            "https://a.example/x/linked.json",
            "https://docs.a.example/api.json",
        ];
        for of_others in [
            "https://a.example/-/upload.json",
            "https://tenant.a.example/agent.json",
            "https://docs.a.example/.well-known/mcp.json",
            "https://met.a.example/agent.json",
        ] {
            assert!(own.iter().all(|own| at(own) < at(of_others)), "{of_others} in {tasks:?}");
            assert_eq!(tasks[at(of_others)].1, NamedBy::Others, "{of_others}");
        }
        let named_by = own.map(|own| tasks[at(own)].1);
        assert_eq!(named_by, [NamedBy::Site, NamedBy::Document, NamedBy::Document], "{tasks:?}");
    }

    #[test]
    fn sites_that_link_to_a_site_take_turns() {
        let hint = |from: &str, number: usize| Hint {
            url: url(&format!("https://a.example/x/{number:03}.json")),
            linked_from: Some(url(&format!("https://{from}/catalog.json"))),
            discovery: Discovery::CatalogEntry,
        };
        // in the order of the store, by URL
        let hints: Vec<Hint> =
            (0..900).map(|number| hint("many.example", number)).chain([hint("few.example", 900)]).collect();
        let mut firsts = HashSet::new();
        for visits in 0..20 {
            let site = SiteState {
                hosts: vec![host("a.example", HostOrigin::Listed)],
                hints: hints.clone(),
                visits,
                ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
            };
            let linked: Vec<ManifestUrl> = named_by_others(&site).map(|task| task.url).collect();
            assert_eq!(linked.len(), LINKED_BY_OTHERS_MAX);
            let few = url("https://a.example/x/900.json");
            assert!(linked[..2].contains(&few), "visit {visits}: {linked:?}");
            firsts.insert(linked[0] == few);
        }
        assert_eq!(firsts.len(), 2, "another site is first in another visit");
    }

    fn begun(site: &SiteState) -> Plan {
        begin(site, &OwnHosts::of(site), &Priors::default(), crate::clock::now()).plan
    }

    fn planned(site: &SiteState) -> Vec<String> {
        let mut plan = begun(site);
        std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.url.to_string()).collect()
    }

    /// A site with this many hosts that only others name, and those that `more` adds.
    fn site_with_named(count: usize, visits: u32, more: &[&str]) -> SiteState {
        let named = (0..count).map(|number| format!("a{number:03}.a.example"));
        let named = named.chain(more.iter().map(|name| (*name).to_owned()));
        let own = host("a.example", HostOrigin::Listed);
        SiteState {
            hosts: named.map(|name| host(&name, HostOrigin::Named)).chain([own]).collect(),
            visits,
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        }
    }

    #[test]
    fn no_number_of_named_hosts_displaces_the_manifests_of_others() {
        let tenants = ["t1.a.example", "t2.a.example"];
        let manifests = tenants.map(|name| format!("https://{name}/agent.json"));
        let submitted = |number| Hint {
            url: url(&format!("https://a.example/s/{number}.json")),
            linked_from: None,
            discovery: Discovery::Submitted,
        };
        for visits in 0..20 {
            let site = SiteState {
                resources: manifests.iter().map(|at| manifest(at, Discovery::Root, None)).collect(),
                hints: (0..900).map(submitted).collect(),
                ..site_with_named(1_000, visits, &tenants)
            };
            let planned = planned(&site);
            assert!(
                manifests.iter().all(|manifest| planned.contains(manifest)),
                "visit {visits}: {planned:?}"
            );
        }
    }

    #[test]
    fn a_host_with_many_manifests_leaves_room_for_those_of_other_hosts() {
        let evil = Some("https://evil.example/.well-known/ai-catalog.json");
        let at = |host: &str, number: usize| format!("https://{host}/x/{number:03}.json");
        let many = (0..200).flat_map(|number| [at("t1.a.example", number), at("a.example", number)]);
        let many: Vec<String> = many.collect();
        let few = at("t2.a.example", 0);
        let mut requested = HashSet::new();
        for visits in 0..20 {
            let linked = many.iter().chain([&few]);
            let site = SiteState {
                resources: linked.map(|at| manifest(at, Discovery::CatalogEntry, evil)).collect(),
                ..site_with_named(0, visits, &["t1.a.example", "t2.a.example"])
            };
            let planned = planned(&site);
            assert!(planned.contains(&few), "visit {visits}: {planned:?}");
            let of_others = planned.iter().filter(|url| many.contains(*url)).count();
            assert_eq!(of_others, 2 * KNOWN_OF_ONE_MAX, "visit {visits}");
            requested.extend(planned);
        }
        assert!(many.iter().all(|url| requested.contains(url)), "every document has its turn");
    }

    /// A site whose catalog links to this many documents.
    fn site_with_known(count: usize, visits: u32) -> SiteState {
        let catalog = "https://a.example/agents.json";
        let linked = (0..count).map(|number| format!("https://a.example/x/{number:03}.json"));
        let linked = linked.map(|at| manifest(&at, Discovery::CatalogEntry, Some(catalog)));
        SiteState {
            hosts: vec![host("a.example", HostOrigin::Listed)],
            resources: linked.chain([manifest(catalog, Discovery::Root, None)]).collect(),
            visits,
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        }
    }

    #[test]
    fn known_documents_of_a_site_take_turns_and_leave_room_for_new_links() {
        let mut requested = HashSet::new();
        for visits in 0..10 {
            let mut plan = begun(&site_with_known(300, visits));
            let urls: Vec<String> = plan.tasks().map(|task| task.url.to_string()).collect();
            assert_eq!(urls[0], "https://a.example/agents.json", "visit {visits}");
            assert!(urls.iter().any(|url| url == "https://a.example/agent.json"), "paths of the table too");
            assert!(urls.len() <= TASKS_BEGUN_MAX, "visit {visits}: {}", urls.len());
            let link = |number| {
                let url = url(&format!("https://a.example/new/{number}.json"));
                Task::new(url, BodyKind::Manifest, Discovery::CatalogEntry)
            };
            assert_eq!(plan.add_next((0..TASKS_BEGUN_MAX / 3).map(link).collect()), [], "visit {visits}");
            requested.extend(urls);
        }
        let known = site_with_known(300, 0).resources;
        assert!(known.iter().all(|known| requested.contains(known.url.as_str())), "each has its turn");
        let few = planned(&site_with_known(KNOWN_OF_SITE_MAX - 1, 7));
        let known = site_with_known(KNOWN_OF_SITE_MAX - 1, 7).resources;
        assert!(known.iter().all(|known| few.contains(&known.url.to_string())), "few need no turns");
    }

    #[test]
    fn a_visit_continues_with_the_documents_at_which_a_budget_ended_the_last_one() {
        let mut site = site_with_known(60, 1);
        let requested_at = crate::clock::now() + TimeDelta::days(1);
        site.resources.iter_mut().take(39).for_each(|known| known.fetched_at = requested_at);
        site.resources[59].outcome = FetchOutcome::NotReached;
        let planned = planned(&site);
        let place = |number: usize| {
            let url = format!("https://a.example/x/{number:03}.json");
            planned.iter().position(|planned| *planned == url).unwrap()
        };
        assert!(place(59) < place(39) && place(39) < place(0), "{planned:?}");
    }

    #[test]
    fn a_visit_ends_with_the_documents_that_failed_in_the_last_one() {
        for outcome in [
            FetchOutcome::RateLimited,
            FetchOutcome::ServerError,
            FetchOutcome::Blocked,
            FetchOutcome::Timeout,
        ] {
            let mut site = site_with_known(9, 1);
            site.hosts.push(host("api.a.example", HostOrigin::Named));
            let at_api = url("https://api.a.example/x/008.json");
            site.resources[8].url = at_api;
            for failed in &mut site.resources[0..2] {
                (failed.outcome, failed.fetched_at) = (outcome, crate::clock::now() - TimeDelta::days(1));
            }
            let mut numbers = |visits: u32| {
                site.visits = visits;
                let planned = planned(&site);
                let linked = planned.iter().filter_map(|url| url.split_once("/x/"));
                linked.map(|(_, number)| number.to_owned()).collect::<Vec<_>>()
            };
            let last = numbers(7);
            assert_eq!(last.len(), 9, "{last:?}");
            assert_eq!(last[7..], ["000.json", "001.json"], "{outcome}: {last:?}");
            assert_eq!(numbers(8)[..2], ["000.json", "001.json"], "a budget does not keep them out for ever");
        }
    }

    #[test]
    fn documents_of_users_take_no_turn_of_what_the_site_itself_publishes() {
        let catalog = "https://a.example/agents.json";
        let upload = |number: usize| format!("https://a.example/u/{number:02}.json");
        let deep = |of: usize, number: usize| format!("https://a.example/d/{of:02}/{number:03}.json");
        let own = (0..30).map(|number| format!("https://api.a.example/own/{number:02}.json"));
        let own: Vec<String> = own.collect();
        let mut requested = HashSet::new();
        for visits in 0..30 {
            let published =
                own.iter().map(|at| manifest(at, Discovery::Agentmap, Some("https://a.example/")));
            let uploads =
                (0..100).map(|number| manifest(&upload(number), Discovery::CatalogEntry, Some(catalog)));
            let linked = (0..2).flat_map(|of| {
                let from = upload(of);
                let many = (0..if of == 0 { 200 } else { 1 }).map(move |number| deep(of, number));
                many.map(move |at| manifest(&at, Discovery::CatalogEntry, Some(&from))).collect::<Vec<_>>()
            });
            let resources =
                published.chain(uploads).chain(linked).chain([manifest(catalog, Discovery::Root, None)]);
            let site = SiteState {
                hosts: vec![host("a.example", HostOrigin::Listed), host("api.a.example", HostOrigin::Named)],
                resources: resources.collect(),
                visits,
                ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
            };
            let planned = planned(&site);
            assert!(own.iter().all(|own| planned.contains(own)), "visit {visits}: {planned:?}");
            assert!(planned.contains(&deep(1, 0)), "visit {visits}: {planned:?}");
            let of_one = planned.iter().filter(|url| url.starts_with("https://a.example/d/00/")).count();
            assert_eq!(of_one, FURTHER_OF_ONE_MAX, "visit {visits}");
            requested.extend(planned);
        }
        assert!((0..100).all(|number| requested.contains(&upload(number))));
        assert!((0..200).all(|number| requested.contains(&deep(0, number))), "every document has its turn");
    }

    #[test]
    fn links_that_found_no_room_are_requested_in_the_next_visit() {
        for visits in 0..5 {
            let mut site = site_with_known(300, visits);
            for waiting in &mut site.resources[290..295] {
                (waiting.outcome, waiting.manifest_id, waiting.cache) =
                    (FetchOutcome::NotReached, None, None);
            }
            site.resources[295].cache = None;
            let planned = planned(&site);
            for waiting in &site.resources[290..=295] {
                assert!(planned.contains(&waiting.url.to_string()), "visit {visits}: {}", waiting.url);
            }
        }
    }

    #[test]
    fn a_link_to_a_known_document_takes_no_room_of_new_ones() {
        let site = site_with_known(300, 0);
        let own_hosts = OwnHosts::of(&site);
        let in_turns: HashSet<&ManifestUrl> = in_turns(&site, &own_hosts).map(|known| &known.url).collect();
        assert_eq!(in_turns.len(), 301);
        let mut progress = begin(&site, &own_hosts, &Priors::default(), crate::clock::now());
        let before = progress.plan.tasks().count();
        let unplanned = url("https://a.example/x/299.json");
        let link = Task::new(unplanned.clone(), BodyKind::Manifest, Discovery::CatalogEntry);
        let mut follow = |task: Task| {
            let follow_ups = FollowUps { tasks: vec![task], seeds: Vec::new() };
            assert_eq!(progress.follow(follow_ups, NamedBy::Document, &in_turns, |_| true), []);
            progress.plan.tasks().collect::<Vec<_>>()
        };
        assert_eq!(follow(link.clone()).len(), before, "it has its turn");
        let planned = follow(Task { role: Role::Part, ..link });
        assert!(planned.iter().any(|task| task.url == unplanned), "a part of another manifest");
    }

    #[test]
    fn sites_that_link_to_hosts_take_turns() {
        let linked = |from: &str, to: &str| Hint {
            url: url(&format!("https://{to}/x/agent.json")),
            linked_from: Some(url(&format!("https://{from}/catalog.json"))),
            discovery: Discovery::CatalogEntry,
        };
        let mut searched = HashSet::new();
        for visits in 0..100 {
            let site = site_with_named(300, visits, &["few.a.example", "submitted.a.example"]);
            let names = (0..300).map(|number| format!("a{number:03}.a.example"));
            let hints = names.map(|name| linked("many.example", &name));
            let hints = hints.chain([linked("few.example", "few.a.example")]).collect();
            let site = SiteState { hints, ..site };
            let linked_hosts = site.hosts.iter().filter(|state| state.origin == HostOrigin::Named).collect();
            let turns: Vec<&str> = in_turn_of_linking_sites(&site, linked_hosts)
                .iter()
                .map(|state| state.host.as_str())
                .collect();
            assert_eq!(turns.len(), HOSTS_NAMED_MAX, "visit {visits}");
            for name in ["few.a.example", "submitted.a.example"] {
                assert!(turns.contains(&name), "visit {visits}: {turns:?}");
            }
            searched.extend(turns.into_iter().map(str::to_owned));
        }
        assert_eq!(searched.len(), 302, "every host has its turn");
    }

    #[test]
    fn the_file_of_a_claim_comes_first() {
        let now = crate::clock::now();
        let site = SiteState {
            hosts: vec![host("a.example", HostOrigin::Listed)],
            resources: vec![manifest("https://a.example/agent.json", Discovery::Root, None)],
            claim: Some(Claim { asked_at: Some(now), ..Claim::default() }),
            ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
        };
        let planned = crate::visit::planned_urls(&site, &Priors::default(), now);
        assert_eq!(planned[0].path(), policy::claim::FILE_PATH);
        assert_eq!(planned[1].path(), "/agent.json");
    }
}
