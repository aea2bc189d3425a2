//! Tests that any number of hostile documents does not displace other documents.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Discovery, ManifestUrl, SiteName};
use policy::plan::Priors;
use policy::{FetchOutcome, PathClass};
use store::{Hint, HostOrigin, PathCheck, ResourceState, SiteState};

use crate::visit::context::Scope;
use crate::visit::fixtures::{host, manifest};
use crate::visit::own_hosts::OwnHosts;
use crate::visit::plan::Plan;
use crate::visit::prepare::{PATH_TURNS, begin};
use crate::visit::task::{NamedBy, Role, Task};
use crate::visit::turns::in_turn_by;

const EVIL: &str = "https://evil.example/.well-known/ai-catalog.json";
const CARD: &str = "https://t1.a.example/custom.json";

fn site(hosts: &[String], resources: Vec<ResourceState>) -> SiteState {
    let named = hosts.iter().map(|name| host(name, HostOrigin::Named));
    SiteState {
        hosts: named.chain([host("a.example", HostOrigin::Listed)]).collect(),
        resources,
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    }
}

fn by_others(at: &str) -> ResourceState {
    manifest(at, Discovery::CatalogEntry, Some(EVIL))
}

/// A link that led to no document, or that no visit has requested.
fn bare(at: &str, from: Option<&str>, outcome: FetchOutcome) -> ResourceState {
    let misses_in_row = u32::from(outcome != FetchOutcome::NotReached);
    let known = manifest(at, Discovery::CatalogEntry, from);
    ResourceState { manifest_id: None, cache: None, outcome, misses_in_row, ..known }
}

fn plan_at(site: &SiteState, now: DateTime<Utc>) -> Plan {
    begin(site, &OwnHosts::of(site), &Priors::default(), now).plan
}

fn planned(site: &SiteState) -> Vec<Task> {
    let mut plan = plan_at(site, crate::clock::now());
    std::iter::from_fn(|| plan.next(&Scope::Site)).collect()
}

/// In each visit, a document of one customer links to more URLs at the host of another one.
#[test]
fn links_that_lead_to_nothing_do_not_displace_manifests() {
    let from = "https://q0.a.example/c.json";
    let outcomes = [FetchOutcome::NotFound, FetchOutcome::NotReached];
    let junk = (0..200).map(|number| {
        let from = [Some(from), None][number % 2];
        bare(&format!("https://t1.a.example/junk/{number:03}.json"), from, outcomes[number / 100])
    });
    let mut site = site(&["q0.a.example".to_owned(), "t1.a.example".to_owned()], junk.collect());
    site.resources.extend([by_others(from), by_others(CARD)]);
    let now = crate::clock::now();
    for visits in 0..20 {
        site.visits = visits;
        let planned = planned(&site);
        let place = planned.iter().position(|task| task.url.as_str() == CARD);
        let junk: Vec<usize> = planned
            .iter()
            .enumerate()
            .filter(|(_, task)| task.url.path().starts_with("/junk/"))
            .map(|(place, _)| place)
            .collect();
        let before = junk.iter().filter(|junk| place.is_some_and(|place| **junk < place)).count();
        let before_max = usize::from(visits % 4 == 1);
        assert_eq!(
            (place.is_some(), before, junk.len()),
            (true, before_max, 9),
            "visit {visits}: {planned:?}"
        );
        for known in &mut site.resources {
            if planned.iter().any(|task| task.url == known.url) {
                known.fetched_at = now + TimeDelta::days(visits.into());
            }
        }
    }
}

/// Simulates a site with hostile customers. Each visit has time for few requests only.
struct Simulation {
    site: SiteState,
    now: DateTime<Utc>,
}

const REQUESTS: usize = 12;
const HONEST: usize = 30;
const SLOW: usize = 60;
const FAILING: usize = 20;
const DELAYED: usize = 40;

impl Simulation {
    fn new() -> Self {
        let named = |kind: &'static str, count: usize| {
            (0..count).map(move |number| format!("{kind}{number:02}.a.example"))
        };
        let customers = || {
            let hostile = named("slow", SLOW).chain(named("fail", FAILING)).chain(named("late", DELAYED));
            hostile.chain(named("honest", HONEST))
        };
        let cards = customers().map(|name| by_others(&format!("https://{name}/card.json")));
        let hosts: Vec<String> = customers().collect();
        let mut site = site(&hosts, cards.collect());
        let now = crate::clock::now() + TimeDelta::hours(1);
        for state in site.hosts.iter_mut().filter(|state| state.host.as_str().starts_with("late")) {
            state.next_ok_at = Some(now + TimeDelta::days(1_000));
        }
        Self { site, now }
    }

    /// Simulates one visit. Hostile hosts fail in every second visit, and junk ends all planned requests to its host. Returns the requested
    /// URLs.
    fn visit(&mut self) -> Vec<String> {
        let (visits, now) = (self.site.visits, self.now);
        for honest in 0..HONEST {
            let at = format!("https://honest{honest:02}.a.example/junk/{visits}.json");
            let from = Some("https://slow00.a.example/card.json");
            self.site.resources.push(bare(&at, from, FetchOutcome::NotReached));
        }
        let mut plan = plan_at(&self.site, now);
        let mut outcomes: HashMap<ManifestUrl, FetchOutcome> = HashMap::new();
        let mut ended: Vec<String> = Vec::new();
        while outcomes.len() < REQUESTS
            && let Some(task) = plan.next(&Scope::Site)
        {
            let host = task.url.host().to_string();
            let is_known = self.site.resources.iter().any(|known| known.url == task.url);
            if !is_known || ended.contains(&host) || host.starts_with("late") {
                continue;
            }
            let is_junk = task.url.path().starts_with("/junk/");
            let fails = is_junk || host.starts_with("fail") && visits % 2 == 1;
            let outcome = if fails { FetchOutcome::RateLimited } else { FetchOutcome::Found };
            ended.extend(fails.then_some(host));
            outcomes.insert(task.url, outcome);
        }
        for known in &mut self.site.resources {
            if let Some(outcome) = outcomes.get(&known.url) {
                (known.outcome, known.fetched_at) = (*outcome, now);
                known.misses_in_row += u32::from(known.manifest_id.is_none());
            }
        }
        self.site.visits += 1;
        self.now = now + TimeDelta::days(1);
        outcomes.into_keys().map(|url| url.to_string()).collect()
    }
}

#[test]
fn waiting_time_depends_only_on_the_number_of_documents() {
    let mut simulation = Simulation::new();
    let documents = HONEST + SLOW + FAILING + DELAYED;
    // an eighth of the requests is for URLs that may yield nothing
    let in_order = REQUESTS - REQUESTS.div_ceil(8);
    let waits_max = 2 * documents.div_ceil(in_order) + 2;
    let mut last = [0; HONEST];
    for visit in 1..=3 * waits_max {
        let requested = simulation.visit();
        for (honest, last) in last.iter_mut().enumerate() {
            if requested.contains(&format!("https://honest{honest:02}.a.example/card.json")) {
                *last = visit;
            }
            assert!(visit - *last <= waits_max, "customer {honest} in visit {visit}");
        }
    }
}

/// Many customers have documents in the index. One more has none, and the document of another one has new links.
#[test]
fn known_documents_do_not_displace_hosts_and_links_that_others_newly_name() {
    let customer = |number: usize| format!("q{number:02}.a.example");
    let cards = (0..25).flat_map(|number| {
        ["c.json", "card.json"].map(|path| by_others(&format!("https://{}/{path}", customer(number))))
    });
    let hosts: Vec<String> = (0..25).map(customer).chain(["t1.a.example".to_owned()]).collect();
    let mut site = site(&hosts, cards.collect());
    let mut searched: Vec<String> = Vec::new();
    for visits in 0..7 {
        site.visits = visits;
        let mut plan = plan_at(&site, crate::clock::now());
        let rows = plan.tasks().filter(|task| task.named_by == NamedBy::Others && task.slot.is_some());
        let rows: Vec<String> = rows.map(|task| task.url.host().to_string()).collect();
        assert!(rows.contains(&"t1.a.example".to_owned()), "visit {visits}: {rows:?}");
        searched.extend(rows);
        let link = |number: usize| Task {
            named_by: NamedBy::Others,
            role: Role::Manifest,
            linked_from: Some(Box::new(site.resources[0].url.clone())),
            ..Task::new(
                ManifestUrl::parse(&format!("https://{}/new/{number}.json", customer(0))).unwrap(),
                policy::BodyKind::Manifest,
                Discovery::CatalogEntry,
            )
        };
        assert_eq!(plan.add_next((0..25).map(link).collect()), [], "visit {visits}");
    }
    let missing: Vec<&String> = hosts.iter().filter(|host| !searched.contains(host)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// In the last visit, a path had a document at another host. All hosts of the site share one list of path checks.
#[test]
fn a_document_at_one_host_does_not_hide_its_path_at_others() {
    let hosts: Vec<String> = (0..25).map(|number| format!("q{number:02}.a.example")).collect();
    let cards = hosts.iter().map(|host| by_others(&format!("https://{host}/c.json")));
    let mut site = site(&hosts, cards.collect());
    for row in policy::plan::PATHS {
        assert!(u64::from(row.slot) < PATH_TURNS, "{}", row.path);
        let check = PathCheck { class: PathClass::Present.code(), day: 20_000 };
        site.paths_checked.set(row.slot, check);
    }
    let mut searched: HashMap<String, usize> = HashMap::new();
    for visits in 0..150 {
        site.visits = visits;
        for task in planned(&site) {
            if task.url.path() == "/.well-known/agent-card.json" {
                *searched.entry(task.url.host().to_string()).or_default() += 1;
            }
        }
    }
    let missing: Vec<&String> = hosts.iter().filter(|host| !searched.contains_key(*host)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The site's own hosts share one list of path checks. One host has a document at a path, and later another host publishes one at the same
/// path.
#[test]
fn a_document_at_one_own_host_does_not_hide_its_path_at_other_own_hosts() {
    let at = |host: &str, path: &str| manifest(&format!("https://{host}{path}"), Discovery::WellKnown, None);
    let card = "/.well-known/agent-card.json";
    for (with_card, other) in [
        ("t1.a.example", "a.example"),
        ("www.a.example", "a.example"),
        ("a.example", "www.a.example"),
        ("a.example", "api.a.example"),
    ] {
        for other_has_documents in [true, false] {
            let mut site = site(&[], vec![at(with_card, card)]);
            let hosts = [with_card, other].into_iter().filter(|name| *name != "a.example");
            let origin =
                |name: &str| if name.starts_with('t') { HostOrigin::Named } else { HostOrigin::Listed };
            site.hosts.extend(hosts.map(|name| host(name, origin(name))));
            if other_has_documents {
                site.resources.push(at(other, "/agents.json"));
            }
            let own_hosts = OwnHosts::of(&site);
            let mut requested = false;
            for visits in 0..24 {
                site.visits = visits;
                let day = 20_000 + u16::try_from(visits).unwrap();
                for task in planned(&site) {
                    requested |= task.url.host().as_str() == other && task.url.path() == card && visits > 0;
                    let class = if task.url.path() == card { PathClass::Present } else { PathClass::Absent };
                    if let Some(slot) = task.slot.filter(|_| own_hosts.has_path_checks(&task.url.host())) {
                        site.paths_checked.set(slot, PathCheck { class: class.code(), day });
                    }
                }
            }
            assert!(requested, "{with_card} has a card, {other} publishes one; more: {other_has_documents}");
        }
    }
}

/// A visit uses the first two of any number of items.
#[test]
fn each_item_is_among_the_first_in_some_visit() {
    for (count, step) in (1..50).flat_map(|count| [1, 4, 10].map(|step| (count, step))) {
        let items: Vec<usize> = (0..count).collect();
        let first = |visits| in_turn_by(items.clone(), step, 10, visits).take(2).collect::<Vec<_>>();
        let served: HashSet<usize> = (0..u32::try_from(count).unwrap()).flat_map(first).collect();
        assert_eq!(served.len(), count, "{count} items by {step}");
    }
}

/// The known documents of the main host use up its budget in each visit.
#[test]
fn urls_that_others_name_have_turns_among_known_documents() {
    let catalog = "https://a.example/agents.json";
    let known = (0..60).map(|number| {
        manifest(&format!("https://a.example/d/{number:02}.json"), Discovery::CatalogEntry, Some(catalog))
    });
    let mut site = site(&[], known.chain([manifest(catalog, Discovery::Root, None)]).collect());
    let at = ManifestUrl::parse("https://a.example/u/g.json").unwrap();
    let from = ManifestUrl::parse(EVIL).unwrap();
    site.hints.push(Hint { url: at.clone(), linked_from: Some(from), discovery: Discovery::CatalogEntry });
    let place = |visits| {
        let site = SiteState { visits, ..site.clone() };
        planned(&site).iter().position(|task| task.url == at)
    };
    assert!(
        (4..8).any(|visits| place(visits).is_some_and(|place| place < 40)),
        "{:?}",
        (4..8).map(place).collect::<Vec<_>>()
    );
}

/// The catalog of the site links to a host that no visit has requested, because the time for links was used up.
#[test]
fn a_link_that_was_left_at_a_host_without_requests_is_requested() {
    let catalog = "https://a.example/agents.json";
    let at = "https://h3.a.example/card.json";
    let left = bare(at, Some(catalog), FetchOutcome::NotReached);
    let mut site = site(&[], vec![manifest(catalog, Discovery::Root, None), left]);
    for visits in 1..5 {
        site.visits = visits;
        let planned = planned(&site);
        assert!(planned.iter().any(|task| task.url.as_str() == at), "visit {visits}: {planned:?}");
    }
}
