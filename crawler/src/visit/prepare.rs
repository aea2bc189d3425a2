//! The initial plan of a visit, in this order: the proof of a claim, known manifests that the site itself publishes, the paths that
//! `policy::plan` chooses, home pages, and then all other [`known_documents`] in turns. Hosts and URLs that only others name come last,
//! together with URLs whose last request failed.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName, is_main_host};
use policy::plan::{self, FullTableReason, LastCheck, PathPlan, Priors};
use policy::{BodyKind, FetchOutcome, HostKnowledge, PathClass, Seed, Status, take_turns};
use store::{Hint, HostOrigin, HostState, PathSlots, ResourceState, SiteState};

use super::claim;
use super::known_documents::{
    self, KnownDocuments, is_linked_again, is_named_by_others, is_of_another_site, is_requested_again,
    known_task,
};
use super::own_hosts::OwnHosts;
use super::plan::Plan;
use super::progress::Progress;
use super::room::UrlLimits;
use super::task::{NamedBy, Role, Task, Turn, body_of_path};
use super::traffic::Traffic;
use super::turns::{in_shares, in_turn, in_turn_by};

/// Maximum number of URLs per visit to which other sites link and at which no manifest was found yet. Also the number of URLs named by
/// others that are requested before the paths at hosts named by others.
const LINKED_BY_OTHERS_MAX: usize = 10;

/// Maximum number of hosts of one site per visit: the daily budget of the site allows only a few requests to each.
const HOSTS_MAX: usize = 50;

/// Maximum number of hosts per visit that links or submissions name and that have no manifest. Up to [`HOSTS_MAX`] hosts with manifests are
/// requested in addition.
const HOSTS_NAMED_MAX: usize = 10;

/// Number of hosts by which each visit moves its starting position in the list of hosts with manifests that only others name.
const HOSTS_STEP: usize = 4;
/// Number of paths of one host with manifests that only others name which are requested before paths of the next host.
const ROWS_AT_A_TIME: usize = 4;
/// Length of the rotation of the paths that were last checked on the same day: the number of slots. It is a prime, so that each path gets a
/// turn for any number of hosts. At a host without a list of path checks, this applies to all paths.
pub(super) const PATH_TURNS: u64 = 19;
/// Number of positions by which each visit advances this rotation: about the number of paths that a visit requests again.
const PATHS_IN_A_TURN: u64 = 3;
/// Stands for all collected lists where linking sites take turns. No site has this name.
const COLLECTED: &str = "lists";
/// Stands for all submitted and listed URLs at which nothing was found before, in the same turns. No site has this name.
const AGAIN: &str = "again";

/// The plan at the beginning of a visit.
pub(crate) fn begin(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    progress.plan = Plan::after_visits(site.visits);
    progress.traffic = Traffic::after_earlier_visits(site, |host| own_hosts.contains(host), now);
    if let Some(task) = claim::task(site, now, now) {
        progress.plan.add(task);
    }
    let known = known_documents::of_this_visit(site, own_hosts, now);
    for task in of_site(site, own_hosts, priors, &known) {
        progress.plan.add(Task { named_by: own_hosts.named_by_for_task(&task), ..task });
    }
    let known =
        known.others.into_iter().map(|(named_by, known)| Task { named_by, ..known_task(site, known) });
    let mut named = named_by_others(site, now);
    let named_later = named.split_off(named.len().min(LINKED_BY_OTHERS_MAX));
    for task in known {
        progress.plan.add(task);
    }
    let of_others = |turn| {
        move |task: Task| {
            let turn = if task.turn == Turn::Retry { Turn::Retry } else { turn };
            Task { named_by: NamedBy::Others, turn, ..task }
        }
    };
    let named = named.into_iter().map(of_others(Turn::Hint));
    let searched = searched(site, own_hosts, priors).into_iter().map(of_others(Turn::Path));
    for task in named.chain(searched).chain(named_later.into_iter().map(of_others(Turn::Hint))) {
        progress.plan.add(task);
    }
    progress
}

/// The tasks of the site itself: known documents, then paths of the table, then home pages. The main hosts are first, so that their
/// requests do not wait for the delays of other hosts.
fn of_site(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors, known: &KnownDocuments<'_>) -> Vec<Task> {
    let is_main = |url: &ManifestUrl| is_main_host(&site.name, &url.host());
    let KnownDocuments { published, others } = known;
    let of_site = others.iter().filter(|(named_by, _)| *named_by != NamedBy::Others);
    let urls: HashSet<&ManifestUrl> =
        of_site.map(|(_, known)| &known.url).chain(published.iter().map(|known| &known.url)).collect();
    let rows = own(site, own_hosts).flat_map(|state| rows_of(site, own_hosts, state, priors));
    let rows = rows.filter(|task| !urls.contains(&task.url));
    let rows = rows.take(UrlLimits::of(NamedBy::Site).begun.saturating_sub(published.len()));
    let (pages, rows): (Vec<Task>, Vec<Task>) = rows.partition(|task| task.role == Role::Page);
    let (main_rows, other_rows): (Vec<Task>, Vec<Task>) =
        rows.into_iter().partition(|task| is_main(&task.url));
    let known = published.iter().map(|known| known_task(site, known));
    let (main, others): (Vec<Task>, Vec<Task>) = known.partition(|task| is_main(&task.url));
    main.into_iter().chain(main_rows).chain(others).chain(other_rows).chain(pages).collect()
}

/// The site's own hosts that this visit requests.
fn own<'a>(site: &'a SiteState, own: &OwnHosts) -> impl Iterator<Item = &'a HostState> {
    let own = site.hosts.iter().filter(|state| own.contains(&state.host));
    // main hosts first, so that their requests do not wait for the delays of other hosts
    let (main, others): (Vec<&HostState>, Vec<&HostState>) =
        own.partition(|state| is_main_host(&site.name, &state.host));
    main.into_iter().chain(in_turn(others, HOSTS_MAX, site.visits))
}

/// Whether there is something to request at a host: the paths of the table, or a document that was received before.
fn is_requested(state: &HostState, received: &HashSet<Host>) -> bool {
    state.is_seeded() || received.contains(&state.host)
}

/// All paths of the table at the site's own hosts, for a visit that left some for later and now has a reason to request them. Includes
/// paths that the visit has already requested or planned.
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
    let is_searched = |state: &&HostState| is_main_host(&site.name, &state.host) && state.is_seeded();
    let row = plan::PATHS.iter().find(|row| row.body == BodyKind::Homepage);
    let hosts = own(site, own_hosts).filter(is_searched);
    hosts.filter_map(|state| Task::of_path(&state.host, row?)).collect()
}

/// The paths of the table that the next visit requests and those that it leaves, at the site's main host. `None` if none of the site's own
/// hosts is searched.
pub(crate) fn outlook(site: &SiteState, priors: &Priors) -> Option<PathPlan> {
    let own_hosts = OwnHosts::of(site);
    let state = site.hosts.iter().find(|state| own_hosts.has_path_checks(&state.host))?;
    Some(plan_of((site, &own_hosts), &state.host, full_table(site, &own_hosts, &state.host), priors))
}

/// Tasks for URLs that others name: hints, which may be at hosts that were not seeded, and submitted or listed URLs at which no manifest
/// was found yet. The linking sites take turns, and so do submissions, lists, and URLs at which nothing was found before. Each visit begins
/// with another source. A URL to which another site links and at which nothing was found becomes a hint again after a day, even if the link
/// was not read again.
fn named_by_others(site: &SiteState, now: DateTime<Utc>) -> Vec<Task> {
    let again = site
        .resources
        .iter()
        .filter(|known| is_named_by_others(known) && is_requested_again(site, known) && !is_settled(known));
    let again = again.map(|known| (AGAIN.to_owned(), known_task(site, known)));
    let with_owner = |named: &Hint| {
        let from = named.linked_from.as_ref().filter(|from| is_of_another_site(site, Some(from)));
        (from.map(|from| from.site().to_string()).unwrap_or_default(), hint(named))
    };
    let missed = site.resources.iter().filter(|known| is_linked_again(site, known, now)).map(|known| {
        let ResourceState { url, linked_from, discovery, .. } = known.clone();
        let (owner, task) = with_owner(&Hint { url, linked_from, discovery });
        (owner, Task { turn: known_task(site, known).turn, ..task })
    });
    let hints = site.hints.iter().map(with_owner).chain(missed);
    let turn = |name: &str| Seed::of(name).with_counter(site.visits.into());
    let in_turns = take_turns(hints.chain(again).map(|(owner, task)| (turn(&owner), task)));
    let mut linked = 0;
    let is_within = |task: &Task| {
        let is_linked = is_of_another_site(site, task.linked_from.as_deref());
        linked += usize::from(is_linked);
        !is_linked || linked <= LINKED_BY_OTHERS_MAX
    };
    in_turns.into_iter().filter(is_within).collect()
}

/// The paths at hosts that only others name. Hosts without a manifest and hosts with one take turns, with a few paths each time, so that no
/// host displaces the others.
fn searched(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors) -> Vec<Task> {
    let hosts_of = |is_counted: fn(&ResourceState) -> bool| -> HashSet<Host> {
        site.resources.iter().filter(|known| is_counted(known)).map(|known| known.url.host()).collect()
    };
    let received = hosts_of(|known| known.manifest_id.is_some() || known.content_hash.is_some());
    let with_manifests = hosts_of(|known| known.manifest_id.is_some());
    let is_of_others =
        |state: &&HostState| !own_hosts.contains(&state.host) && is_requested(state, &received);
    let named = site.hosts.iter().filter(is_of_others);
    let (with_manifests, without): (Vec<&HostState>, Vec<&HostState>) =
        named.partition(|state| with_manifests.contains(&state.host));
    let with_manifests = in_turn_by(with_manifests, HOSTS_STEP, HOSTS_MAX, site.visits).collect();
    let hosts = in_shares([(1, in_turn_of_linking_sites(site, without)), (1, with_manifests)]);
    let rows: Vec<Vec<Task>> =
        hosts.into_iter().map(|state| rows_of(site, own_hosts, state, priors)).collect();
    let longest = rows.iter().map(Vec::len).max().unwrap_or_default();
    let rounds = (0..longest).step_by(ROWS_AT_A_TIME);
    let at_a_time =
        |begin: usize| rows.iter().flat_map(move |rows| rows.iter().skip(begin).take(ROWS_AT_A_TIME));
    rounds.flat_map(at_a_time).cloned().collect()
}

/// Whether a submitted URL is not requested again, because its document is not a manifest or is a copy of one.
fn is_settled(known: &ResourceState) -> bool {
    known.discovery == Discovery::Submitted && known.outcome == FetchOutcome::NotAManifest
}

/// Hosts that only others name and that have no manifest, up to [`HOSTS_NAMED_MAX`]. The sites that link to them take turns. Who links to a
/// host is known as long as a URL at the host is stored. Collected lists also have a turn, and hosts that a submission names share one turn
/// with all other hosts. Each visit requests the next hosts of each turn.
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

/// The paths of the table at a host. None for a host that is known only from a redirect.
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
    let present: HashSet<u8> = manifests_at(site, host)
        .filter_map(|known| Some(plan::find(&known.url.path_and_query())?.slot))
        .collect();
    let turn = Seed::of(host.as_str()).below(PATH_TURNS) + PATHS_IN_A_TURN * u64::from(site.visits);
    // a check requests every path; at further hosts, which may be many, paths take turns
    let is_checked = site.is_checked && (own_hosts.has_path_checks(host) || is_main_host(&site.name, host));
    let last = |slot: u8| {
        // known documents are requested in any case
        if is_checked && !present.contains(&slot) {
            return None;
        }
        // a site has one list of path checks, for one host; at the other hosts, paths take turns from visit to visit
        let (class, day) = if own_hosts.has_path_checks(host) {
            let check = site.paths_checked.get(slot)?;
            (PathClass::from_code(check.class)?, check.day)
        } else if site.visits == 0 {
            return None;
        } else {
            (PathClass::Absent, 0)
        };
        // whether a path has a document is determined by the stored documents
        let class = match class {
            _ if present.contains(&slot) => PathClass::Present,
            PathClass::Present => PathClass::Absent,
            _ => class,
        };
        let turn = u8::try_from((u64::from(slot) + turn) % PATH_TURNS).unwrap_or_default();
        Some(LastCheck { class, day, turn })
    };
    plan::paths(host_knowledge(site, own_hosts, host), reason, priors, last)
}

/// The reason in the store why a visit requests all paths that were never requested, if there is one.
fn full_table(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> Option<FullTableReason> {
    // manifests that others name are evidence about their hosts, not about the site
    let is_counted = |known: &&ResourceState| {
        own_hosts.names(&known.url) || !own_hosts.contains(host) && known.url.host() == *host
    };
    let is_named = |discovery: Discovery| matches!(discovery, Discovery::Submitted | Discovery::Listed);
    let mut hints = site.hints.iter().map(|hint| hint.discovery);
    let mut manifests = site.resources.iter().filter(|known| known.manifest_id.is_some()).filter(is_counted);
    match () {
        () if site.is_checked => Some(FullTableReason::Checked),
        () if manifests.next().is_some() => Some(FullTableReason::ManifestKnown),
        () if hints.any(is_named) || site.resources.iter().any(|known| is_named(known.discovery)) => {
            Some(FullTableReason::UrlNamed)
        }
        () if site.is_submitted => Some(FullTableReason::Submitted),
        () => None,
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

fn manifests_at<'a>(site: &'a SiteState, host: &'a Host) -> impl Iterator<Item = &'a ResourceState> {
    site.resources.iter().filter(|known| known.url.host() == *host && known.manifest_id.is_some())
}

fn host_knowledge(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> HostKnowledge {
    // documents that others name at an own host are not evidence about it
    let is_counted = |known: &&ResourceState| !own_hosts.contains(host) || own_hosts.names(&known.url);
    let mut manifests = manifests_at(site, host).filter(is_counted);
    let is_unknown =
        if own_hosts.has_path_checks(host) { site.paths_checked.is_empty() } else { site.visits == 0 };
    match () {
        () if manifests.next().is_some() => HostKnowledge::Positive,
        () if site.status == Status::CatchAll => HostKnowledge::CatchAll,
        () if is_unknown => HostKnowledge::Unknown,
        () => HostKnowledge::Negative { visits: site.negatives_in_row },
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
