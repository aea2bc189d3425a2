//! The initial plan of a visit, in this order: the proof of a claim, known manifests that the site itself names, the paths that
//! `policy::plan` chooses, home pages, and then URLs and hosts that only others name: first the manifests of such hosts.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName};
use policy::plan::{self, FullTableReason, LastCheck, PathPlan, Priors};
use policy::{BodyKind, FetchOutcome, HostKnowledge, PathClass, Seed, Status, take_turns};
use store::{Hint, HostOrigin, HostState, PathSlots, ResourceState, SiteState, is_main_host};

use super::claim;
use super::own_hosts::OwnHosts;
use super::plan::TASKS_OF_OTHERS_MAX;
use super::progress::Progress;
use super::task::{NamedBy, Role, Task, body_of_path};

/// A resource that was missing this often in a row is left to the path table.
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

/// Whose turn it is to name a host, where a collected list does. No site has this name.
const COLLECTED: &str = "lists";

/// A visit at its beginning.
pub(crate) fn begin(site: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    if let Some(task) = claim::task(site, now, now) {
        progress.plan.add(task);
    }
    let mut pages = Vec::new();
    let mut foreign = Vec::new();
    let own_hosts = OwnHosts::of(site);
    let named: Vec<&HostState> = site
        .hosts
        .iter()
        .filter(|state| !own_hosts.contains(&state.host) && is_requested(site, state))
        .collect();
    for state in own(site, &own_hosts) {
        let (last, first): (Vec<Task>, Vec<Task>) =
            tasks_of(site, state, priors).into_iter().partition(|task| task.role == Role::Page);
        let (own, others): (Vec<Task>, Vec<Task>) =
            first.into_iter().partition(|task| own_hosts.names(&task.url));
        for task in own {
            progress.plan.add(Task { named_by: own_hosts.word_on(&task), ..task });
        }
        foreign.extend(others);
        pages.extend(last);
    }
    for task in linked_elsewhere(site, &own_hosts, &named) {
        progress.plan.add(Task { named_by: own_hosts.word_on(&task), ..task });
    }
    for task in pages {
        progress.plan.add(task);
    }
    let (with_manifests, without): (Vec<&HostState>, Vec<&HostState>) =
        named.into_iter().partition(|state| has_manifests(site, &state.host));
    let with_manifests: Vec<&HostState> = in_turn(with_manifests, HOSTS_MAX, site.visits).collect();
    // no number of other names keeps a visit from the manifests that are known
    let manifests = known_of_others(site, foreign, &with_manifests);
    let searched = with_manifests.iter().copied().chain(in_turn_of_linking_sites(site, without));
    let searched = searched.flat_map(|state| {
        let known = in_turn(known_at(site, &state.host).collect(), KNOWN_OF_ONE_MAX, site.visits);
        known.chain(rows_of(site, state, priors))
    });
    for task in manifests.into_iter().chain(named_by_others(site)).chain(searched) {
        progress.plan.add(Task { named_by: NamedBy::Others, ..task });
    }
    progress
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

/// Whether there is something to request at a host: it is searched, or a document of it is known.
fn is_requested(site: &SiteState, state: &HostState) -> bool {
    state.is_seeded() || site.resources.iter().any(|known| known.url.host() == state.host)
}

/// The documents that the site names at hosts that are not its own: its catalogs link to them.
fn linked_elsewhere(site: &SiteState, own: &OwnHosts, others: &[&HostState]) -> Vec<Task> {
    let is_linked = |known: &&ResourceState| {
        !own.contains(&known.url.host())
            && own.names(&known.url)
            && !is_named_by_others(known)
            && is_asked_again(site, known)
    };
    let mut linked: HashMap<Host, Vec<&ResourceState>> = HashMap::new();
    for known in site.resources.iter().filter(is_linked) {
        linked.entry(known.url.host()).or_default().push(known);
    }
    let hosts = others.iter().copied().filter(|state| linked.contains_key(&state.host)).collect();
    let hosts = in_turn(hosts, HOSTS_MAX, site.visits);
    hosts.filter_map(|state| linked.get(&state.host)).flatten().map(|known| known_task(known)).collect()
}

/// The paths that a visit left for later, at the site's own hosts, now that there is a reason to request them. Those that the
/// visit has requested or planned are among them.
pub(crate) fn remaining(site: &SiteState, priors: &Priors, reason: FullTableReason) -> Vec<Task> {
    let own_hosts = OwnHosts::of(site);
    let hosts = own(site, &own_hosts).filter(|state| state.is_seeded());
    hosts
        .flat_map(|state| {
            let planned = plan_of(site, &state.host, Some(reason), priors).requested;
            planned.into_iter().filter_map(|row| Task::of_path(&state.host, row))
        })
        .collect()
}

/// How the next visit divides the path table at the site's first own host; `None` if it has none that is searched.
pub(crate) fn outlook(site: &SiteState, priors: &Priors) -> Option<PathPlan> {
    let own_hosts = OwnHosts::of(site);
    let state = site.hosts.iter().find(|state| own_hosts.contains(&state.host) && state.is_seeded())?;
    Some(plan_of(site, &state.host, full_table(site), priors))
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
    known.filter(|known| !is_named_by_others(known) && is_asked_again(site, known)).map(known_task)
}

/// The known documents of a host, and its rows of the path table.
fn tasks_of(site: &SiteState, state: &HostState, priors: &Priors) -> Vec<Task> {
    known_at(site, &state.host).chain(rows_of(site, state, priors)).collect()
}

/// A host that only a redirect led to is not searched.
fn rows_of(site: &SiteState, state: &HostState, priors: &Priors) -> Vec<Task> {
    if !state.is_seeded() {
        return Vec::new();
    }
    let planned = plan_of(site, &state.host, full_table(site), priors).requested;
    planned.into_iter().filter_map(|row| Task::of_path(&state.host, row)).collect()
}

fn plan_of(site: &SiteState, host: &Host, reason: Option<FullTableReason>, priors: &Priors) -> PathPlan {
    let last = |slot| {
        let check = site.paths_checked.get(slot)?;
        Some(LastCheck { class: PathClass::from_code(check.class)?, day: check.day })
    };
    plan::paths(standing(site, host), reason, priors, last)
}

/// Why a visit begins with every path that was never requested, as far as the store knows.
fn full_table(site: &SiteState) -> Option<FullTableReason> {
    let is_named = |discovery: Discovery| matches!(discovery, Discovery::Submitted | Discovery::Listed);
    let mut hints = site.hints.iter().map(|hint| hint.discovery);
    let mut resources = site.resources.iter();
    match () {
        () if resources.any(|known| known.manifest_id.is_some()) => Some(FullTableReason::ManifestKnown),
        () if hints.any(is_named) || site.resources.iter().any(|known| is_named(known.discovery)) => {
            Some(FullTableReason::UrlNamed)
        }
        () if site.is_submitted => Some(FullTableReason::Submitted),
        () => None,
    }
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
    site.resources.iter().any(|resource| resource.url.host() == *host && resource.manifest_id.is_some())
}

fn standing(site: &SiteState, host: &Host) -> HostKnowledge {
    match () {
        () if has_manifests(site, host) => HostKnowledge::Positive,
        () if site.status == Status::CatchAll => HostKnowledge::CatchAll,
        () if site.paths_checked.is_empty() => HostKnowledge::Unknown,
        () => HostKnowledge::Negative { visits: site.negatives_in_row },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use manifest::ManifestId;
    use policy::claim::Claim;

    use super::*;
    use crate::visit::context::Scope;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn manifest(at: &str, discovery: Discovery, linked_from: Option<&str>) -> ResourceState {
        ResourceState {
            url: url(at),
            manifest_id: Some(ManifestId::of(&url(at))),
            discovery,
            linked_from: linked_from.map(url),
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

    fn host(name: &str, origin: HostOrigin) -> HostState {
        HostState {
            host: Host::parse(name).unwrap(),
            origin,
            robots: None,
            next_ok_at: None,
            requests_today: 0,
            requests_day: 0,
        }
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
        let mut plan = begin(&site, &Priors::default(), crate::clock::now()).plan;
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

    fn planned(site: &SiteState) -> Vec<String> {
        let mut plan = begin(site, &Priors::default(), crate::clock::now()).plan;
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
