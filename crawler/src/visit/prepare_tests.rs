//! Tests of the initial plan of a visit and of its turns.

use std::collections::HashSet;

use chrono::TimeDelta;
use policy::claim::Claim;
use store::PathCheck;

use super::*;
use crate::visit::context::Scope;
use crate::visit::fixtures::{host, manifest};
use crate::visit::known_documents::{KNOWN_OF_ONE_MAX, in_turns};
use crate::visit::links::FollowUps;
use crate::visit::plan::Plan;

const TASKS_BEGUN_MAX: usize = UrlLimits::of(NamedBy::Site).begun;
const KNOWN_OF_SITE_MAX: usize = UrlLimits::of(NamedBy::Site).known;
const FURTHER_OF_ONE_MAX: usize = UrlLimits::of(NamedBy::Further).of_one;

fn url(text: &str) -> ManifestUrl {
    ManifestUrl::parse(text).unwrap()
}

#[test]
fn manifests_that_only_others_name_come_last_and_count_as_named_by_others() {
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
fn a_check_requests_every_path_also_those_of_the_same_day() {
    let today = plan::day_number(crate::clock::now());
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed)],
        resources: vec![manifest("https://a.example/agent.json", Discovery::Root, None)],
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    for row in plan::PATHS {
        let day = if row.path == "/llms.txt" { today - 1 } else { today };
        site.paths_checked.set(row.slot, PathCheck { class: PathClass::Absent.code(), day });
    }
    // the manifest and the path that was checked longest ago
    assert_eq!(planned(&site).len(), 2);
    site.is_checked = true;
    let paths = planned(&site);
    assert_eq!(paths.len(), plan::PATHS.len(), "{paths:?}");
    site.status = Status::CatchAll;
    site.resources.clear();
    assert_eq!(planned(&site).len(), plan::PATHS.len(), "whatever the last visit found");
    // further hosts may be many
    site.status = Status::Fresh;
    site.visits = 1;
    site.hosts.push(host("docs.a.example", HostOrigin::Listed));
    let further = planned(&site).into_iter().filter(|url| url.starts_with("https://docs.a.example/"));
    assert_eq!(further.count(), 3, "paths take turns");
}

#[test]
fn visits_of_one_day_request_other_paths_each() {
    let today = plan::day_number(crate::clock::now());
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed)],
        negatives_in_row: 1,
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    for row in plan::PATHS {
        site.paths_checked.set(row.slot, PathCheck { class: PathClass::Absent.code(), day: today });
    }
    let mut requested = HashSet::new();
    for visits in 3..10 {
        site.visits = visits;
        let paths = planned(&site);
        assert_eq!(paths.len(), 3, "{paths:?}");
        requested.extend(paths);
    }
    assert_eq!(requested.len(), plan::PATHS.len(), "seven visits cover the table");
}

#[test]
fn sites_that_link_to_a_site_take_turns() {
    let hint = |from: &str, number: usize| Hint {
        url: url(&format!("https://a.example/x/{number:03}.json")),
        linked_from: Some(url(&format!("https://{from}/catalog.json"))),
        discovery: Discovery::CatalogEntry,
    };
    // sorted by URL, as in the store
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
        let linked: Vec<ManifestUrl> =
            named_by_others(&site, crate::clock::now()).into_iter().map(|task| task.url).collect();
        assert_eq!(linked.len(), LINKED_BY_OTHERS_MAX);
        let few = url("https://a.example/x/900.json");
        assert!(linked[..2].contains(&few), "visit {visits}: {linked:?}");
        firsts.insert(linked[0] == few);
    }
    assert_eq!(firsts.len(), 2, "another site is first in another visit");
}

/// The catalog with the link may never change, and then its link is not read again.
#[test]
fn a_link_of_another_site_without_a_document_is_requested_in_three_visits_a_day_apart() {
    let evil = Some("https://evil.example/.well-known/ai-catalog.json");
    let own = Some("https://a.example/.well-known/ai-catalog.json");
    let hours = TimeDelta::hours;
    let failed = |at: &str, outcome, misses_in_row, ago| ResourceState {
        manifest_id: None,
        outcome,
        misses_in_row,
        fetched_at: crate::clock::now() - ago,
        ..manifest(&format!("https://t1.a.example/{at}"), Discovery::CatalogEntry, evil)
    };
    let received = ResourceState {
        content_hash: Some(manifest::ContentHash::of(b"{}")),
        ..failed("received.json", FetchOutcome::Gone, 1, hours(25))
    };
    let linked = |at: &str, from| ResourceState {
        linked_from: from,
        ..failed(at, FetchOutcome::NotFound, 1, hours(25))
    };
    let site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed), host("t1.a.example", HostOrigin::Met)],
        resources: vec![
            failed("busy.json", FetchOutcome::RateLimited, 1, hours(25)),
            failed("missing.json", FetchOutcome::NotFound, 2, hours(25)),
            failed("today.json", FetchOutcome::NotFound, 1, hours(23)),
            failed("thrice.json", FetchOutcome::NotFound, 3, hours(25)),
            received,
            linked("own.json", own.map(url)),
        ],
        visits: 5,
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    let named = named_by_others(&site, crate::clock::now());
    let mut named: Vec<(String, Turn)> =
        named.into_iter().map(|task| (task.url.path().to_owned(), task.turn)).collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(
        named,
        [("/busy.json".to_owned(), Turn::Retry), ("/missing.json".to_owned(), Turn::Known)],
        "the plan turns them into hints, except those that failed"
    );
    let tasks: Vec<Task> =
        begun(&site).tasks().filter(|task| task.url.path().ends_with("missing.json")).collect();
    let [missing] = tasks.as_slice() else { panic!("{tasks:?}") };
    assert_eq!((missing.turn, missing.named_by), (Turn::Hint, NamedBy::Others));
}

fn begun(site: &SiteState) -> Plan {
    begin(site, &OwnHosts::of(site), &Priors::default(), crate::clock::now()).plan
}

fn planned(site: &SiteState) -> Vec<String> {
    let mut plan = begun(site);
    std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.url.to_string()).collect()
}

/// A site with `count` hosts that only others name, and the hosts in `more`.
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
fn any_number_of_named_hosts_does_not_displace_manifests_of_third_parties() {
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
        assert!(manifests.iter().all(|manifest| planned.contains(manifest)), "visit {visits}: {planned:?}");
    }
}

#[test]
fn a_host_with_many_manifests_does_not_displace_other_hosts() {
    let evil = Some("https://evil.example/.well-known/ai-catalog.json");
    let at = |host: &str, number: usize| format!("https://{host}/x/{number:03}.json");
    let many = (0..200).flat_map(|number| [at("t1.a.example", number), at("a.example", number)]);
    let many: Vec<String> = many.collect();
    let few = at("t2.a.example", 0);
    let mut requested = HashSet::new();
    let linked = many.iter().chain([&few]);
    let mut site = SiteState {
        resources: linked.map(|at| manifest(at, Discovery::CatalogEntry, evil)).collect(),
        ..site_with_named(0, 0, &["t1.a.example", "t2.a.example"])
    };
    for visits in 0..40 {
        let planned = visited(&mut site);
        assert!(planned.contains(&few), "visit {visits}: {planned:?}");
        let of_others = planned.iter().filter(|url| many.contains(*url)).count();
        assert_eq!(of_others, 2 * KNOWN_OF_ONE_MAX, "visit {visits}");
        requested.extend(planned);
    }
    assert!(many.iter().all(|url| requested.contains(url)), "every document has its turn");
}

/// The URLs that the next visit to a site plans. The visit requests all of them.
fn visited(site: &mut SiteState) -> Vec<String> {
    let planned = planned(site);
    site.visits += 1;
    let at = crate::clock::now() + TimeDelta::days(site.visits.into());
    for known in &mut site.resources {
        if planned.contains(&known.url.to_string()) {
            known.fetched_at = at;
        }
    }
    planned
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
fn known_documents_of_a_site_take_turns_and_do_not_displace_new_links() {
    let mut requested = HashSet::new();
    let mut site = site_with_known(300, 0);
    for visits in 0..10 {
        let mut plan = begun(&site);
        visited(&mut site);
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
    assert!(
        known.iter().all(|known| few.contains(&known.url.to_string())),
        "a small number of documents needs no turns"
    );
}

#[test]
fn a_visit_continues_where_the_daily_budget_ended_the_previous_one() {
    let mut site = site_with_known(60, 1);
    let requested_at = crate::clock::now() + TimeDelta::days(1);
    site.resources.iter_mut().take(39).for_each(|known| known.fetched_at = requested_at);
    (site.resources[59].outcome, site.resources[59].manifest_id) = (FetchOutcome::NotReached, None);
    for visits in [3, 2] {
        site.visits = visits;
        let planned = planned(&site);
        let place = |number: usize| {
            let url = format!("https://a.example/x/{number:03}.json");
            planned.iter().position(|planned| *planned == url).unwrap()
        };
        if visits == 3 {
            assert!(place(39) < place(59) && place(59) < place(0), "{planned:?}");
        } else {
            let is_last = (0..59).all(|known| place(known) < place(59));
            assert!(is_last, "new URLs may fail, so every second visit begins with indexed documents");
        }
    }
}

#[test]
fn documents_named_by_others_take_turns_by_age_and_failures_come_last() {
    let evil = Some("https://evil.example/.well-known/ai-catalog.json");
    let at = |number: usize| format!("https://a.example/u/{number}.json");
    let card = "https://t1.a.example/agent.json";
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed), host("t1.a.example", HostOrigin::Named)],
        resources: (0..4).map(|number| manifest(&at(number), Discovery::CatalogEntry, evil)).collect(),
        visits: 3,
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    site.resources.push(manifest(card, Discovery::Root, None));
    site.resources[0].outcome = FetchOutcome::RateLimited;
    site.resources[1].fetched_at += TimeDelta::days(1);
    let planned = planned(&site);
    let place = |at: &str| planned.iter().position(|planned| planned == at).unwrap();
    assert!(place(&at(2)) < place(&at(3)) && place(&at(3)) < place(&at(1)), "{planned:?}");
    assert!(place(card) < place(&at(0)), "{planned:?}");
    let is_before = |other: &String| place(other) < place(&at(0));
    assert!(
        [at(2), at(3), at(1)].iter().all(is_before),
        "a failure may end all requests for URLs that others name: {planned:?}"
    );
}

#[test]
fn failed_links_come_after_documents_of_lower_precedence() {
    let catalog = "https://a.example/agents.json";
    let nested = "https://a.example/team/catalog.json";
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed)],
        resources: vec![
            manifest("https://a.example/a/dead.json", Discovery::CatalogEntry, Some(catalog)),
            manifest(catalog, Discovery::Root, None),
            manifest(nested, Discovery::CatalogEntry, Some(catalog)),
            manifest("https://a.example/team/0.json", Discovery::CatalogEntry, Some(nested)),
            manifest(
                "https://a.example/u/0.json",
                Discovery::CatalogEntry,
                Some("https://evil.example/x.json"),
            ),
        ],
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    site.resources[0].outcome = FetchOutcome::RateLimited;
    for visits in 1..20 {
        site.visits = visits;
        let mut plan = begun(&site);
        let part = Task {
            role: Role::Part,
            named_by: NamedBy::Further,
            linked_from: Some(Box::new(url(nested))),
            ..Task::new(url("https://a.example/team/openapi.json"), BodyKind::OpenApi, Discovery::Pointer)
        };
        plan.add_next(vec![part]);
        let planned: Vec<String> =
            std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.url.to_string()).collect();
        let is_last = planned.last().is_some_and(|url| url.ends_with("/a/dead.json"));
        assert_eq!(is_last, visits % 8 != 0, "{visits}: {planned:?}");
    }
}

#[test]
fn a_visit_ends_with_the_documents_that_failed_in_the_last_one() {
    for outcome in [
        FetchOutcome::TooLarge,
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
        let mut last = numbers(7);
        assert_eq!(last.len(), 9, "{last:?}");
        last[7..].sort();
        assert_eq!(last[7..], ["000.json", "001.json"], "{outcome}: {last:?}");
        let is_before_others =
            |eighth: u32| numbers(8 * eighth)[..7].iter().any(|number| number == "000.json");
        assert!((1..9).any(is_before_others), "a daily budget does not exclude them forever");
    }
}

/// The catalogs that link to them never change.
#[test]
fn documents_that_are_gone_are_requested_again_in_some_visits() {
    for from in ["https://a.example/agents.json", "https://evil.example/x.json"] {
        for was_received in [true, false] {
            let mut site = site_with_known(1, 0);
            let mut gone = manifest("https://a.example/gone.json", Discovery::CatalogEntry, Some(from));
            (gone.manifest_id, gone.outcome, gone.misses_in_row) = (None, FetchOutcome::NotFound, 9);
            gone.content_hash = was_received.then(|| manifest::ContentHash::of(b"{}"));
            site.resources.push(gone);
            let is_requested = |visits: u32| {
                let site = SiteState { visits, ..site.clone() };
                planned(&site).iter().any(|url| url.ends_with("/gone.json"))
            };
            let count = (0..16).filter(|visits| is_requested(*visits)).count();
            assert_eq!(count, if was_received { 2 } else { 0 }, "{from}");
        }
    }
}

/// A catalog lists more documents than a visit may request.
#[test]
fn a_large_catalog_is_read_in_a_few_visits() {
    let mut site = site_with_known(60, 0);
    let now = crate::clock::now();
    for known in &mut site.resources[20..60] {
        (known.outcome, known.manifest_id, known.content_hash) = (FetchOutcome::NotReached, None, None);
    }
    let mut visits = 0;
    while site.resources.iter().any(|known| known.outcome == FetchOutcome::NotReached) {
        site.visits = visits;
        for url in planned(&site).into_iter().filter(|url| url.contains("/x/")).take(20) {
            if let Some(known) = site.resources.iter_mut().find(|known| known.url.as_str() == url) {
                known.outcome = FetchOutcome::Found;
                known.manifest_id.get_or_insert_with(|| manifest::ManifestId::of(&known.url));
                known.fetched_at = now + TimeDelta::days(i64::from(visits) + 1);
            }
        }
        visits += 1;
        assert!(visits <= 5, "{visits} visits");
    }
}

#[test]
fn documents_of_users_do_not_displace_published_documents() {
    let catalog = "https://a.example/agents.json";
    let upload = |number: usize| format!("https://a.example/u/{number:02}.json");
    let deep = |of: usize, number: usize| format!("https://a.example/d/{of:02}/{number:03}.json");
    let own = (0..30).map(|number| format!("https://api.a.example/own/{number:02}.json"));
    let own: Vec<String> = own.collect();
    let published = own.iter().map(|at| manifest(at, Discovery::Agentmap, Some("https://a.example/")));
    let uploads = (0..100).map(|number| manifest(&upload(number), Discovery::CatalogEntry, Some(catalog)));
    let linked = (0..2).flat_map(|of| {
        let from = upload(of);
        let many = (0..if of == 0 { 200 } else { 1 }).map(move |number| deep(of, number));
        many.map(move |at| manifest(&at, Discovery::CatalogEntry, Some(&from))).collect::<Vec<_>>()
    });
    let resources = published.chain(uploads).chain(linked).chain([manifest(catalog, Discovery::Root, None)]);
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed), host("api.a.example", HostOrigin::Named)],
        resources: resources.collect(),
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    let mut requested = HashSet::new();
    for visits in 0..40 {
        let planned = visited(&mut site);
        assert!(own.iter().all(|own| planned.contains(own)), "visit {visits}: {planned:?}");
        assert!(planned.contains(&deep(1, 0)), "visit {visits}: {planned:?}");
        let of_one = planned.iter().filter(|url| url.starts_with("https://a.example/d/00/")).count();
        assert_eq!(of_one, FURTHER_OF_ONE_MAX, "visit {visits}");
        requested.extend(planned);
    }
    assert!((0..100).all(|number| requested.contains(&upload(number))));
    assert!((0..200).all(|number| requested.contains(&deep(0, number))), "every document has its turn");
}

/// Catalogs of teams list a few documents each, in total more than a visit requests.
#[test]
fn documents_of_many_linking_documents_have_their_turns() {
    let catalog = "https://a.example/agents.json";
    let team = |number: usize| format!("https://a.example/t/{number:02}.json");
    let card = |of: usize, number: usize| format!("https://a.example/c/{of:02}-{number}.json");
    let teams = (0..45).map(|number| manifest(&team(number), Discovery::CatalogEntry, Some(catalog)));
    let cards = (0..45).flat_map(|of| {
        (0..4).map(move |number| manifest(&card(of, number), Discovery::CatalogEntry, Some(&team(of))))
    });
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed)],
        resources: teams.chain(cards).chain([manifest(catalog, Discovery::Root, None)]).collect(),
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    let mut requested = HashSet::new();
    for _ in 0..14 {
        let planned = visited(&mut site);
        let cards = planned.iter().filter(|url| url.contains("/c/")).count();
        assert_eq!(cards, UrlLimits::of(NamedBy::Further).known, "{planned:?}");
        requested.extend(planned);
    }
    let cards = (0..45).flat_map(|of| (0..4).map(move |number| card(of, number)));
    let missing: Vec<String> = cards.filter(|card| !requested.contains(card)).collect();
    assert_eq!(missing, [""; 0]);
}

/// Five catalogs of a user link to known documents at the host of another customer, whose card others name.
#[test]
fn links_of_users_do_not_use_up_the_daily_budget_of_a_customers_host() {
    let catalog = "https://a.example/agents.json";
    let upload = |number: usize| format!("https://a.example/u/{number}.json");
    let uploads = (0..5).map(|number| manifest(&upload(number), Discovery::CatalogEntry, Some(catalog)));
    let junk = (0..50).map(|number| {
        let at = format!("https://t1.a.example/junk/{number:02}.json");
        manifest(&at, Discovery::CatalogEntry, Some(&upload(number % 5)))
    });
    let card = "https://t1.a.example/.well-known/agent.json";
    let own = [manifest(catalog, Discovery::Root, None), manifest(card, Discovery::WellKnown, None)];
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed), host("t1.a.example", HostOrigin::Named)],
        resources: uploads.chain(junk).chain(own).collect(),
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    for visits in 0..20 {
        site.visits = visits;
        let planned = planned(&site);
        let junk = planned.iter().filter(|url| url.contains("/junk/")).count();
        assert_eq!((junk, planned.iter().any(|url| url == card)), (10, true), "visit {visits}: {planned:?}");
    }
}

/// A daily budget ends each visit before all documents of the catalog were requested.
#[test]
fn each_kind_of_document_gets_its_share_of_a_visit() {
    let catalog = "https://a.example/agents.json";
    let at = |kind: &str, number: usize| format!("https://a.example/{kind}/{number:02}.json");
    let of = |kind: &'static str, count: usize, from: &'static str| {
        let numbers = 0..count;
        numbers.map(move |number| manifest(&at(kind, number), Discovery::CatalogEntry, Some(from)))
    };
    let resources = of("x", 90, catalog)
        .chain(of("f", 10, "https://a.example/x/00.json"))
        .chain(of("o", 10, "https://evil.example/catalog.json"))
        .chain([manifest(catalog, Discovery::Root, None)]);
    let mut site = SiteState {
        hosts: vec![host("a.example", HostOrigin::Listed)],
        resources: resources.collect(),
        ..crate::dry_run::unknown(SiteName::parse("a.example").unwrap())
    };
    for visits in 0..4 {
        site.visits = visits;
        let planned = planned(&site);
        let linked = planned.iter().filter(|url| ["/x/", "/f/", "/o/"].iter().any(|kind| url.contains(kind)));
        let first: Vec<&String> = linked.take(25).collect();
        let count = |kind: &str| first.iter().filter(|url| url.contains(kind)).count();
        assert_eq!(["/x/", "/f/", "/o/"].map(count), [15, 5, 5], "visit {visits}: {first:?}");
    }
}

/// The catalog lists many documents at a host that no visit reaches, and some that are fresh for long.
#[test]
fn unrequested_documents_do_not_take_turns_from_others() {
    let mut site = site_with_known(300, 0);
    site.hosts.push(host("t1.a.example", HostOrigin::Named));
    let long_ago = crate::clock::now() - TimeDelta::days(9);
    for (number, known) in site.resources.iter_mut().enumerate().take(200) {
        known.fetched_at = long_ago;
        match number {
            0..60 => known.url = url(&format!("https://t1.a.example/x/{number:03}.json")),
            60..100 => known.outcome = FetchOutcome::NotReached,
            _ => known.fresh_until = Some(crate::clock::now() + TimeDelta::days(365)),
        }
    }
    let mut requested = HashSet::new();
    for _ in 0..60 {
        let planned = visited(&mut site);
        for known in site.resources.iter_mut().take(200) {
            known.fetched_at = long_ago;
        }
        requested.extend(planned);
    }
    let living = site.resources.iter().skip(200);
    assert!(
        living.clone().count() > 100 && living.clone().all(|known| requested.contains(known.url.as_str()))
    );
}

#[test]
fn links_beyond_the_limit_are_requested_in_the_next_visit() {
    for visits in 0..5 {
        let mut site = site_with_known(300, visits);
        for waiting in &mut site.resources[290..295] {
            (waiting.outcome, waiting.manifest_id, waiting.cache) = (FetchOutcome::NotReached, None, None);
        }
        site.resources[295].cache = None;
        let planned = planned(&site);
        for waiting in &site.resources[290..=295] {
            assert!(planned.contains(&waiting.url.to_string()), "visit {visits}: {}", waiting.url);
        }
    }
}

#[test]
fn a_link_to_a_known_document_does_not_count_towards_the_limit_of_new_links() {
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
    assert_eq!(follow(link.clone()).len(), before, "the known document keeps its turn");
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
        let turns: Vec<&str> =
            in_turn_of_linking_sites(&site, linked_hosts).iter().map(|state| state.host.as_str()).collect();
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
