//! Tests of which results a visit keeps.

use std::ops::Range;
use std::sync::Arc;

use manifest::{ContentHash, Discovery};
use policy::BodyKind;

use super::super::fetched::Document;
use super::super::fixtures;
use super::*;

const MIB: usize = 1024 * 1024;

fn url(text: &str) -> ManifestUrl {
    ManifestUrl::parse(text).unwrap()
}

fn fetched(text: &str, outcome: FetchOutcome) -> Fetched {
    let task = Task::new(url(text), BodyKind::Manifest, Discovery::Root);
    Fetched::unanswered(&task, outcome, None, clock::now())
}

/// A result whose document was read as a manifest.
fn found(text: &str, bytes: &[u8]) -> Fetched {
    let page = url(text);
    let manifest = manifest::read(&manifest::Document {
        bytes,
        url: &page,
        final_url: None,
        discovery: Discovery::Root,
        served: None,
        linked: &[],
        force: None,
    });
    Fetched {
        hash: Some(ContentHash::of(bytes)),
        manifest: Some(Box::new(manifest)),
        body: Some(Document(bytes.to_vec())),
        ..fetched(text, FetchOutcome::Found)
    }
}

fn site(visits: u32, manifests: &[(&str, &[u8])]) -> SiteState {
    let name = manifest::SiteName::parse("a.example").unwrap();
    let resource = |(text, bytes): &(&str, &[u8])| ResourceState {
        content_hash: Some(ContentHash::of(bytes)),
        ..fixtures::manifest(text, Discovery::Root, None)
    };
    SiteState { visits, resources: manifests.iter().map(resource).collect(), ..crate::dry_run::unknown(name) }
}

fn own(site: &SiteState) -> OwnHosts {
    OwnHosts::of(site)
}

fn named(named_by: NamedBy, fetched: Fetched) -> Fetched {
    Fetched { named_by, ..fetched }
}

fn of(fetched: impl IntoIterator<Item = Fetched>) -> Findings {
    Findings { fetched: fetched.into_iter().collect(), ..Findings::default() }
}

const ONE: &str = "https://a.example/1";
const TWO: &str = "https://a.example/2";

#[test]
fn records_the_class_and_day_of_each_checked_path() {
    let mut findings = Findings::default();
    findings.record(Some(3), fetched(ONE, FetchOutcome::NotFound));
    findings.record(None, fetched(TWO, FetchOutcome::NotFound));
    assert_eq!(findings.paths_checked.iter().count(), 1);
    assert_eq!(findings.paths_checked.get(3).map(|check| check.class), Some(PathClass::Absent.code()));
    assert_eq!(findings.fetched.len(), 2);
}

#[test]
fn finds_the_original_of_a_copy_on_the_site_and_in_the_visit() {
    let (copy, none) = (named(NamedBy::Others, found(TWO, b"{}")), |_: &ManifestUrl| false);
    assert_eq!(Findings::default().original_of(&copy, &site(1, &[(ONE, b"{}")]), none), Some(&url(ONE)));
    assert_eq!(of([found(ONE, b"{}")]).original_of(&copy, &site(1, &[]), none), Some(&url(ONE)));
    assert_eq!(of([found(ONE, b"[]")]).original_of(&copy, &site(1, &[(TWO, b"{}")]), none), None);
    let page = fetched(TWO, FetchOutcome::Html);
    assert_eq!(of([found(ONE, b"{}")]).original_of(&page, &site(1, &[]), none), None);
}

#[test]
fn a_document_of_one_customer_is_not_the_original_of_a_copy_of_another() {
    const OWN: &str = "https://a.example/.well-known/agent.json";
    const FIRST: &str = "https://t1.a.example/agent.json";
    const SECOND: &str = "https://t2.a.example/agent.json";
    const UPLOAD: &str = "https://t2.a.example/u/x.json";
    let is_found = |url: &ManifestUrl| url.as_str() == OWN;
    for (original, copy, expected) in [
        (FIRST, SECOND, false),
        (FIRST, UPLOAD, false),
        (UPLOAD, SECOND, false),
        (SECOND, UPLOAD, true),
        (UPLOAD, "https://t2.a.example/u/x.json?2", true),
        (OWN, SECOND, true),
    ] {
        let copied = named(NamedBy::Others, found(copy, b"{}"));
        let expected = expected.then(|| url(original));
        let stored = site(1, &[(original, b"{}")]);
        let of_site = Findings::default().original_of(&copied, &stored, is_found).cloned();
        let of_visit = of([found(original, b"{}")]).original_of(&copied, &site(1, &[]), is_found).cloned();
        assert_eq!((&of_site, &of_visit), (&expected, &expected), "{copy} of {original}");
    }
    for (copy, expected) in [(UPLOAD, false), ("https://t2.a.example/u/x.json?2", true), (SECOND, false)] {
        let (stored, copied) = (site(1, &[(UPLOAD, b"{}")]), named(NamedBy::Further, found(copy, b"{}")));
        let original = Findings::default().original_of(&copied, &stored, is_found).cloned();
        assert_eq!(original, expected.then(|| url(UPLOAD)), "{copy}");
    }
    let elsewhere = named(NamedBy::Further, found(UPLOAD, b"{}"));
    assert_eq!(Findings::default().original_of(&elsewhere, &site(1, &[(OWN, b"{}")]), is_found), None);
}

#[test]
fn links_in_documents_of_the_site_are_left_for_a_later_visit() {
    let task = |text: &str, named_by, role| Task {
        role,
        named_by,
        linked_from: Some(Box::new(url("https://a.example/agents.json"))),
        ..Task::new(url(text), BodyKind::Manifest, Discovery::CatalogEntry)
    };
    let mut findings = Findings::default();
    let tasks = [
        task(ONE, NamedBy::Document, Role::Manifest),
        task(TWO, NamedBy::Document, Role::Manifest),
        task("https://a.example/part", NamedBy::Document, Role::Part),
        task("https://a.example/theirs", NamedBy::Others, Role::Manifest),
    ];
    let known = site(1, &[(TWO, b"{}")]);
    findings.leave(tasks.into(), LEFT, (&known, &own(&known)));
    let left: Vec<_> = findings.fetched.iter().map(|left| (left.url.as_str(), left.outcome)).collect();
    assert_eq!(left, [(ONE, FetchOutcome::NotReached)]);
    let numbers = 0..2 * LEFT_WITHOUT_ROOM_MAX;
    let many = numbers.map(|number| format!("https://a.example/x/{number}"));
    let many = many.map(|at| task(&at, NamedBy::Document, Role::Manifest)).collect();
    let unknown = site(1, &[]);
    findings.leave_without_room(many, (&unknown, &own(&unknown)));
    assert_eq!(findings.fetched.len(), LEFT_WITHOUT_ROOM_MAX);
}

/// In each visit, documents of users list links at a host that always fails. Then a catalog of the site lists links at that host.
#[test]
fn left_links_of_one_user_do_not_displace_links_of_the_site_or_of_other_users() {
    const CATALOG: &str = "https://a.example/agents.json";
    let upload = |number: usize| format!("https://a.example/u/{number}.json");
    let link = |from: &str, named_by, path: String| Task {
        named_by,
        linked_from: Some(Box::new(url(from))),
        ..Task::new(url(&format!("https://t1.a.example/{path}")), BodyKind::Manifest, Discovery::CatalogEntry)
    };
    let uploads =
        (0..6).map(|number| fixtures::manifest(&upload(number), Discovery::CatalogEntry, Some(CATALOG)));
    let catalog = fixtures::manifest(CATALOG, Discovery::Root, None);
    let mut site = SiteState { resources: uploads.chain([catalog]).collect(), ..site(1, &[]) };
    let leave = |site: &mut SiteState, tasks: Vec<Task>| {
        let mut findings = Findings::default();
        findings.leave(tasks, LEFT, (site, &own(site)));
        let left = findings.fetched.iter().map(|left| ResourceState {
            outcome: FetchOutcome::NotReached,
            ..fixtures::manifest(
                left.url.as_str(),
                left.discovery,
                left.linked_from.as_ref().map(|from| from.as_str()),
            )
        });
        site.resources.extend(left);
        let unread = findings.sources.conclude(site, &findings.fetched).unread;
        (findings.fetched.len(), unread)
    };
    let mut all = 0;
    for visit in 0..3 {
        for number in 0..6 {
            let from = upload(number);
            let links = (0..30)
                .map(|link_number| link(&from, NamedBy::Further, format!("{visit}/{number}/{link_number}")));
            let (left, unread) = leave(&mut site, links.collect());
            all += left;
            assert!(left <= 10, "one document");
            assert_eq!(unread, [url(&from)], "the other links of this document are read again");
        }
    }
    assert_eq!(all, 40);
    let links = |count: usize| {
        (0..count).map(|number| link(CATALOG, NamedBy::Document, format!("own/{number}"))).collect()
    };
    assert_eq!(leave(&mut site, links(50)), (50, Vec::new()));
    assert_eq!(leave(&mut site, links(80)), (10, vec![url(CATALOG)]));
    let theirs = link("https://t2.a.example/card.json", NamedBy::Others, "theirs".to_owned());
    assert_eq!(leave(&mut site, vec![theirs]), (0, vec![url("https://t2.a.example/card.json")]));
}

#[test]
fn rejects_documents_of_hosts_that_answer_every_path() {
    let mut findings = of([found(ONE, b"{}"), found("https://b.a.example/1", b"{}")]);
    findings.reject_catch_all(&BTreeMap::from([(url(ONE).host(), VisitEnd::CatchAll)]));
    let outcomes: Vec<_> = findings.fetched.iter().map(|fetched| fetched.outcome).collect();
    assert_eq!(outcomes, [FetchOutcome::NotAManifest, FetchOutcome::Found]);
    assert!(findings.fetched[0].body.is_none());
}

#[test]
fn a_site_has_manifests_until_a_visit_removes_them() {
    let known = site(1, &[(ONE, b"{}")]);
    assert_eq!(Findings::default().manifest_presence(&known, &own(&known)), ManifestPresence::Present);
    let mut missed = known.clone();
    missed.resources[0].misses_in_row = 1;
    for (outcome, first, second) in [
        (FetchOutcome::NotFound, ManifestPresence::Present, ManifestPresence::Absent),
        (FetchOutcome::ServerError, ManifestPresence::Present, ManifestPresence::Present),
        (FetchOutcome::Gone, ManifestPresence::Absent, ManifestPresence::Absent),
    ] {
        let findings = of([fetched(ONE, outcome)]);
        assert_eq!(findings.manifest_presence(&known, &own(&known)), first, "{outcome}");
        assert_eq!(findings.manifest_presence(&missed, &own(&missed)), second, "{outcome}, the second time");
    }
    assert_eq!(
        of([found(TWO, b"{}")]).manifest_presence(&site(0, &[]), &own(&site(0, &[]))),
        ManifestPresence::Present
    );
}

#[test]
fn other_bytes_and_missing_manifests_are_changes_after_the_first_visit() {
    let known = |visits| site(visits, &[(ONE, b"{}")]);
    assert!(!of([found(ONE, b"{}")]).changed_any(&known(1), &own(&known(1))));
    assert!(of([found(ONE, b"[]")]).changed_any(&known(1), &own(&known(1))));
    assert!(of([fetched(ONE, FetchOutcome::NotFound)]).changed_any(&known(1), &own(&known(1))));
    assert!(!of([fetched(TWO, FetchOutcome::NotFound)]).changed_any(&known(1), &own(&known(1))));
    assert!(
        !of([found(ONE, b"[]")]).changed_any(&known(0), &own(&known(0))),
        "a first visit finds new manifests"
    );
}

#[test]
fn is_fresh_until_the_first_manifest_becomes_stale() {
    let at = clock::now();
    let later = at + chrono::TimeDelta::hours(1);
    let until =
        |text, fresh_until| ResourceState { fresh_until, ..fixtures::manifest(text, Discovery::Root, None) };
    let known = |second| {
        let resources = vec![until(ONE, Some(later)), until(TWO, second)];
        SiteState { resources, ..site(1, &[]) }
    };
    let findings = of([fetched(ONE, FetchOutcome::Fresh), fetched(TWO, FetchOutcome::Fresh)]);
    assert_eq!(findings.fresh_until(&known(Some(at)), &own(&known(Some(at)))), Some(at));
    assert_eq!(findings.fresh_until(&known(None), &own(&known(None))), None, "one is stale");
    let link = |outcome| named(NamedBy::Document, fetched("https://a.example/d.json", outcome));
    for (outcome, until) in [(FetchOutcome::NotReached, None), (FetchOutcome::NotFound, Some(at))] {
        let fetched = findings.fetched.iter().cloned().chain([link(outcome)]);
        assert_eq!(of(fetched).fresh_until(&known(Some(at)), &own(&known(Some(at)))), until, "{outcome}");
    }
}

#[test]
fn manifests_that_others_name_do_not_affect_the_site() {
    const THEIRS: &str = "https://t1.a.example/.well-known/agent-card.json";
    const LISTED: &str = "https://t1.a.example/listed.json";
    let fresh = |named_by, at| named(named_by, fetched(at, FetchOutcome::Fresh));
    let later = clock::now() + chrono::TimeDelta::days(20);
    let until = |at: &str, discovery, from| ResourceState {
        fresh_until: Some(later),
        ..fixtures::manifest(at, discovery, from)
    };
    let state = |resources| SiteState { resources, ..site(1, &[]) };
    let theirs = || until(THEIRS, Discovery::WellKnown, None);
    let only_theirs = state(vec![theirs()]);
    for findings in [Findings::default(), of([fresh(NamedBy::Others, THEIRS)])] {
        let presence = findings.manifest_presence(&only_theirs, &own(&only_theirs));
        assert_eq!(presence, ManifestPresence::Absent);
        assert_eq!(findings.fresh_until(&only_theirs, &own(&only_theirs)), None);
    }
    let changed = of([named(NamedBy::Others, found(THEIRS, b"[]"))]);
    assert!(!changed.changed_any(&only_theirs, &own(&only_theirs)));
    assert!(!changed.has_new_manifest(&site(1, &[]), &own(&site(1, &[]))));

    let listed = state(vec![
        fixtures::manifest(ONE, Discovery::Root, None),
        until(LISTED, Discovery::CatalogEntry, Some(ONE)),
    ]);
    let gone = of([fetched(ONE, FetchOutcome::NotFound), fresh(NamedBy::Document, LISTED)]);
    assert_eq!(gone.manifest_presence(&listed, &own(&listed)), ManifestPresence::Present);
    assert_eq!(gone.fresh_until(&listed, &own(&listed)), None, "a link alone does not delay the next visit");
    let both = state(vec![until(ONE, Discovery::Root, None), theirs()]);
    let stale_theirs = of([fresh(NamedBy::Site, ONE), named(NamedBy::Others, found(THEIRS, b"{}"))]);
    assert_eq!(stale_theirs.fresh_until(&both, &own(&both)), Some(later));
}

#[test]
fn drops_documents_with_the_lowest_precedence_first() {
    let sized = |named_by, mib: usize| {
        let body = Some(Document(vec![b'x'; mib * MIB]));
        let at = format!("https://a.example/{named_by:?}/{mib}.json");
        named(named_by, Fetched { body, ..fetched(&at, FetchOutcome::Found) })
    };
    let mut findings = of([
        sized(NamedBy::Site, 10),
        sized(NamedBy::Others, 1),
        sized(NamedBy::Document, 4),
        sized(NamedBy::Further, 2),
        sized(NamedBy::Further, 3),
    ]);
    findings.drop_large_documents();
    let kept: Vec<_> = findings.fetched.iter().map(|fetched| fetched.body.is_some()).collect();
    assert_eq!(kept, [true, false, true, true, false]);
}

/// Dropping a document does not affect what is stored about it, and the next visit reads it.
#[test]
fn a_parked_visit_keeps_the_first_documents_and_the_next_one_reads_the_others() {
    let sized = |mib: usize| {
        let body = Some(Document(vec![b'x'; mib * MIB]));
        Fetched { body, ..fetched(&format!("https://a.example/{mib}.json"), FetchOutcome::Found) }
    };
    let mut findings = of([1, 2, 9, 15, 4].map(sized));
    findings.drop_large_documents();
    let kept: Vec<_> = findings.fetched.iter().map(|fetched| fetched.body.is_some()).collect();
    assert_eq!(kept, [true, true, true, false, false]);
    let dropped = &findings.fetched[3];
    assert_eq!((dropped.outcome, dropped.hash.is_none()), (FetchOutcome::NotReached, true));
    assert!(dropped.reason.as_deref().is_some_and(|reason| reason.contains("at most 16 MiB")));
    let site = site(1, &[("https://a.example/15.json", b"{}")]);
    assert_eq!(findings.manifest_presence(&site, &own(&site)), ManifestPresence::Present);
    let unread = findings.sources.conclude(&site, &findings.fetched).unread;
    assert_eq!(unread, ["https://a.example/15.json", "https://a.example/4.json"].map(url));
}

#[test]
fn bounds_links_to_other_sites_in_number_and_bytes() {
    let add = |findings: &mut Findings, from: &Arc<ManifestUrl>, numbers: Range<usize>, path: &str| {
        let to = |number| url(&format!("https://v{number}.example/{path}"));
        findings.add_seeds(numbers.map(|number| Seed::linked(to(number), Arc::clone(from))).collect());
    };
    let long = "a".repeat(2_000);
    let from = Arc::new(url(&format!("https://a.example/{long}")));
    let (mut short_links, mut long_links) = (Findings::default(), Findings::default());
    for catalog in 0..20 {
        let numbers = catalog * 1_000..(catalog + 1) * 1_000;
        add(&mut short_links, &from, numbers.clone(), "agent.json");
        add(&mut long_links, &from, numbers, &long);
    }
    assert_eq!(short_links.seeds.len(), seeds::SEEDS_MAX);
    assert!((400..600).contains(&long_links.seeds.len()), "{}", long_links.seeds.len());
    for findings in [short_links, long_links] {
        let written = serde_json::to_string(&findings).unwrap();
        assert!(written.len() < MIB + 64 * 1024, "{}", written.len());
        assert!(
            written.matches(&from.to_string()).count() <= 1,
            "its URL is written once for all of its links"
        );
        let read: Findings = serde_json::from_str(&written).unwrap();
        assert_eq!(read.seeds, findings.seeds);
        assert!(seeds::held_bytes(&findings.seeds) < 4 * MIB);
    }
}
