//! Tests of writing the progress of a visit and reading it again.

use std::sync::Arc;

use manifest::Discovery;
use policy::{BodyKind, NextStep, RobotsKind};
use store::{RobotsRecord, Seed};

use super::super::fetched::{Document, Fetched};
use super::*;

const MIB: usize = 1024 * 1024;

fn begun() -> Progress {
    Progress::new(crate::clock::now(), PathSlots::default())
}

fn task(text: &str) -> Task {
    Task::new(ManifestUrl::parse(text).unwrap(), BodyKind::Manifest, Discovery::Root)
}

fn fetched(text: &str, outcome: FetchOutcome) -> Fetched {
    Fetched::unanswered(&task(text), outcome, None, crate::clock::now())
}

fn robots(host: &Host, bytes: usize) -> RobotsRecord {
    let now = crate::clock::now();
    RobotsRecord {
        host: host.clone(),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(vec![b'#'; bytes].into()),
        fetched_at: now,
        expires_at: now,
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    }
}

fn site(interrupted: Option<serde_json::Value>) -> SiteState {
    let name = manifest::SiteName::parse("a.example").unwrap();
    SiteState { interrupted, ..crate::dry_run::unknown(name) }
}

#[test]
fn a_part_that_is_linked_as_a_manifest_is_read_as_both() {
    let mut progress = begun();
    let part = Task { role: Role::Part, ..task("https://a.example/tools.json") };
    let other = Task { role: Role::Part, ..task("https://a.example/other.json") };
    for task in [&part, &other] {
        let fetched = Fetched::unanswered(task, FetchOutcome::Found, None, crate::clock::now());
        progress.findings.fetched.push(fetched);
    }
    let linked = Task { role: Role::Manifest, ..part };
    progress.follow(
        FollowUps { tasks: vec![linked], seeds: Vec::new() },
        NamedBy::Site,
        &HashSet::new(),
        |_| true,
    );
    let roles: Vec<Role> = progress.findings.fetched.iter().map(|fetched| fetched.role).collect();
    assert_eq!(roles, [Role::Manifest, Role::Part]);
}

#[test]
fn a_link_to_a_part_of_higher_precedence_does_not_change_the_part() {
    let is_repeated = |part_of: NamedBy, linked_by: NamedBy| {
        let mut progress = begun();
        progress.plan.add(task("https://a.example/own"));
        let part = Task { role: Role::Part, named_by: part_of, ..task("https://a.example/part.json") };
        let now = crate::clock::now();
        progress.findings.fetched.push(Fetched::unanswered(&part, FetchOutcome::NotModified, None, now));
        progress.plan.resume(progress.findings.fetched.iter().map(|fetched| &fetched.url));
        let linked = Task { role: Role::Manifest, named_by: NamedBy::Site, ..part };
        progress.follow(
            FollowUps { tasks: vec![linked], seeds: Vec::new() },
            linked_by,
            &HashSet::new(),
            |_| true,
        );
        let is_manifest = progress.findings.fetched[0].role == Role::Manifest;
        let tasks: Vec<Task> = progress.plan.tasks().collect();
        assert_eq!(tasks.len(), 1 + usize::from(is_manifest), "{tasks:?}");
        let repeated = tasks.iter().position(|task| task.url.path() == "/part.json");
        let place = usize::from(linked_by != NamedBy::Site);
        assert_eq!(repeated, is_manifest.then_some(place), "the tasks of the site come first: {tasks:?}");
        assert!(repeated.is_none_or(|at| tasks[at].named_by == linked_by), "{tasks:?}");
        is_manifest
    };
    for (part_of, linked_by, expected) in [
        (NamedBy::Others, NamedBy::Others, true),
        (NamedBy::Others, NamedBy::Document, true),
        (NamedBy::Document, NamedBy::Document, true),
        (NamedBy::Document, NamedBy::Site, true),
        (NamedBy::Document, NamedBy::Others, false),
        (NamedBy::Site, NamedBy::Document, false),
        (NamedBy::Site, NamedBy::Others, false),
    ] {
        assert_eq!(is_repeated(part_of, linked_by), expected, "{part_of:?}, {linked_by:?}");
    }
}

#[test]
fn writes_its_parts_as_one_object_and_reads_them_again() {
    let mut progress = begun();
    progress.traffic.requests = 3;
    progress.plan.add(task("https://a.example/1"));
    progress.findings.record(Some(2), fetched("https://a.example/2", FetchOutcome::NotFound));
    let written: serde_json::Value =
        serde_json::from_str(&progress.write_json(crate::clock::now()).unwrap()).unwrap();
    for key in ["started_at", "requests", "active", "robots", "queue", "rules", "fetched", "links", "phases"]
    {
        assert!(written.get(key).is_some(), "{key} in {written}");
    }
    let mut read = Progress::resume(&site(Some(written)), crate::clock::now()).unwrap();
    assert_eq!((read.traffic.requests, read.findings.fetched.len()), (3, 1));
    assert_eq!(read.findings.paths_checked, progress.findings.paths_checked);
    read.plan.add(task("https://a.example/2"));
    assert_eq!(read.plan.tasks().count(), 1, "a fetched URL is not planned again");
}

#[test]
fn denials_of_known_documents_do_not_count_towards_the_limit_of_a_resumed_visit() {
    let mut progress = begun();
    let denied = |number| fetched(&format!("https://a.example/d/{number}.json"), FetchOutcome::RobotsDenied);
    progress.findings.deny((0..200).map(denied).collect());
    progress.findings.deny((0..201).map(denied).collect());
    assert_eq!(progress.findings.fetched.len(), 201, "each document has one result");
    let written = progress.write_json(crate::clock::now()).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let mut read = Progress::resume(&site(Some(written)), crate::clock::now()).unwrap();
    read.plan.add(task("https://a.example/agent.json"));
    assert_eq!(read.plan.tasks().count(), 1);
}

#[test]
fn starts_over_after_a_day_and_where_the_progress_cannot_be_read() {
    let now = crate::clock::now();
    let mut progress = begun();
    let written: serde_json::Value = serde_json::from_str(&progress.write_json(now).unwrap()).unwrap();
    assert!(Progress::resume(&site(Some(written.clone())), now + INTERRUPTED_AGE_MAX).is_some());
    let later = now + INTERRUPTED_AGE_MAX + TimeDelta::seconds(1);
    assert!(Progress::resume(&site(Some(written)), later).is_none());
    assert!(Progress::resume(&site(Some(serde_json::json!({ "queue": 7 }))), now).is_none());
    assert!(Progress::resume(&site(None), now).is_none());
}

#[test]
fn a_parked_visit_carries_a_bounded_number_of_bytes() {
    let mut progress = begun();
    for mib in [1, 2, 9, 15, 4] {
        let body = Some(Document(vec![b'x'; mib * MIB]));
        let fetched = fetched(&format!("https://a.example/{mib}.json"), FetchOutcome::Found);
        progress.findings.record(None, Fetched { body, ..fetched });
    }
    for number in 0..20 {
        let host = Host::parse(&format!("h{number}.a.example")).unwrap();
        let record = robots(&host, 512 * 1024);
        progress.traffic.robots.insert(host, Box::new(record));
    }
    let parked = progress.park().unwrap();
    assert!(parked.to_string().len() < 30 * MIB);
    assert_eq!(progress.traffic.robots.len(), 8);
    assert_eq!(progress.findings.fetched.iter().filter(|fetched| fetched.body.is_some()).count(), 3);
}

#[test]
fn a_visit_with_large_documents_is_parked_until_it_has_written_128_mib() {
    let parked = |mib: usize| {
        let mut progress = begun();
        let body = Some(Document(vec![b'x'; mib * MIB]));
        let fetched = fetched("https://a.example/1.json", FetchOutcome::Found);
        progress.findings.record(None, Fetched { body, ..fetched });
        let mut times = 0;
        while times < 200 && progress.may_be_parked() {
            progress.park().unwrap();
            times += 1;
        }
        times
    };
    assert_eq!((parked(16), parked(8), parked(0)), (8, 16, 200));
}

#[test]
fn bounds_what_is_written_with_each_request() {
    let now = crate::clock::now();
    let from = Arc::new(ManifestUrl::parse("https://a.example/catalog.json").unwrap());
    let seeds = |count: usize| {
        let to = |number| ManifestUrl::parse(&format!("https://v{number}.example/agent.json")).unwrap();
        (0..count).map(|number| Seed::linked(to(number), Arc::clone(&from))).collect()
    };
    let mut progress = begun();
    progress.follow(
        FollowUps { tasks: Vec::new(), seeds: seeds(1_000) },
        NamedBy::Site,
        &HashSet::new(),
        |_| true,
    );
    assert!(progress.write_json(now).is_some_and(|state| state.len() < 64 * 1024));
    let mut many_links = progress.clone();
    many_links.follow(
        FollowUps { tasks: Vec::new(), seeds: seeds(20_000) },
        NamedBy::Site,
        &HashSet::new(),
        |_| true,
    );
    assert!(many_links.write_json(now).is_none(), "too many links");
    for number in 0..120 {
        let long = task(&format!("https://a.example/{number}?{}", "a".repeat(7_900)));
        assert_eq!(progress.plan.add_next(vec![long]), []);
    }
    assert!(progress.write_json(now).is_none(), "too many long URLs");
}

#[test]
fn a_visit_ends_like_its_hosts() {
    let mut progress = begun();
    assert_eq!(progress.overall_end(|_| true), VisitEnd::NothingNew);
    progress.findings.record(None, fetched("https://a.example/1", FetchOutcome::Fresh));
    assert_eq!(progress.overall_end(|_| true), VisitEnd::NothingNew);
    progress.findings.record(None, fetched("https://a.example/2", FetchOutcome::NotFound));
    assert_eq!(progress.overall_end(|_| true), VisitEnd::Completed);
    assert!(
        progress.plan.apply(&task("https://a.example/3"), NextStep::Stop(VisitEnd::Blocked)).is_continue()
    );
    assert_eq!(progress.overall_end(|_| true), VisitEnd::Blocked);
}

#[test]
fn hosts_named_by_others_count_only_if_no_own_host_was_requested() {
    let is_own = |host: &Host| host.as_str() == "a.example";
    let mut progress = begun();
    progress.findings.record(None, fetched("https://b.a.example/1", FetchOutcome::NotFound));
    assert_eq!(progress.overall_end(is_own), VisitEnd::Completed);
    let own = task("https://a.example/1");
    assert!(progress.plan.apply(&own, NextStep::Stop(VisitEnd::DnsDead)).is_continue());
    assert_eq!(progress.overall_end(is_own), VisitEnd::DnsDead);
}
