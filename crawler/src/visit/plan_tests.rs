//! Tests of the limits, the order and the ends of a plan.

use policy::FetchOutcome;

use super::*;
use crate::visit::task::Turn;

const TASKS_MAX: usize = UrlLimits::of(NamedBy::Site).tasks;
const TASKS_BEGUN_MAX: usize = UrlLimits::of(NamedBy::Site).begun;
const TASKS_OF_OTHERS_MAX: usize = UrlLimits::of(NamedBy::Others).tasks;
const TASKS_FURTHER_MAX: usize = UrlLimits::of(NamedBy::Further).tasks;
const FURTHER_OF_ONE_MAX: usize = UrlLimits::of(NamedBy::Further).of_one;

fn url(text: &str) -> ManifestUrl {
    ManifestUrl::parse(text).unwrap()
}

fn task(text: &str) -> Task {
    Task::new(url(text), BodyKind::Manifest, Discovery::Root)
}

fn by_others(text: &str) -> Task {
    Task { named_by: NamedBy::Others, ..task(text) }
}

fn by_document(text: &str) -> Task {
    Task { named_by: NamedBy::Document, ..task(text) }
}

fn rest(mut plan: Plan) -> Vec<String> {
    std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.url.to_string()).collect()
}

#[test]
fn plans_each_url_once_and_links_first() {
    let mut plan = Plan::default();
    plan.add(task("https://a.example/1"));
    plan.add(task("https://a.example/2"));
    plan.add_next(vec![
        task("https://a.example/3"),
        task("https://a.example/2"),
        task("https://a.example/4"),
    ]);
    let urls = [3, 4, 1, 2].map(|number| format!("https://a.example/{number}"));
    assert_eq!(rest(plan), urls);
}

#[test]
fn plans_at_most_the_daily_budget_of_a_site() {
    let mut plan = Plan::default();
    let tasks = |path: &str| {
        let numbered = (0..TASKS_MAX).map(|number| task(&format!("https://a.example/{path}/{number}")));
        numbered.collect::<Vec<_>>()
    };
    for task in tasks("known") {
        plan.add(task);
    }
    plan.add_own(tasks("row"));
    assert_eq!(plan.tasks().count(), TASKS_BEGUN_MAX);
    assert_eq!(plan.add_next(tasks("new")).len(), TASKS_BEGUN_MAX, "a quarter of the limit is for new links");
    assert_eq!(rest(plan).len(), TASKS_MAX);
}

#[test]
fn tasks_of_third_parties_do_not_displace_tasks_of_the_site() {
    let mut plan = Plan::default();
    for number in 0..200 {
        plan.add(by_others(&format!("https://t.a.example/{number}")));
    }
    let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
    plan.resume([].iter());
    let linked = |number| by_others(&format!("https://t.a.example/linked/{number}"));
    let room = TASKS_OF_OTHERS_MAX - UrlLimits::of(NamedBy::Others).begun;
    assert_eq!(
        plan.add_next((0..room).map(linked).collect()),
        [],
        "the rest is for links of known documents"
    );
    let more = by_others("https://t.a.example/more");
    assert_eq!(plan.add_next(vec![more.clone()]), [more]);
    assert_eq!(plan.add_next(vec![task("https://a.example/linked")]), []);
    let own = |number| task(&format!("https://a.example/{number}"));
    plan.add_own((1..2 * TASKS_MAX).map(own).collect());
    let linked: Vec<Task> = (TASKS_BEGUN_MAX..TASKS_MAX).map(own).collect();
    assert_eq!(plan.add_next(linked), []);
    let more = task("https://a.example/more");
    assert_eq!(plan.add_next(vec![more.clone()]), [more]);
    let urls = rest(plan);
    assert_eq!((urls.len(), urls[0].as_str()), (TASKS_MAX + TASKS_OF_OTHERS_MAX, "https://a.example/90"));
}

#[test]
fn links_do_not_displace_urls_that_the_site_names_and_further_links_do_not_displace_links() {
    let linked = |named_by, from: &str, role, path: String| Task {
        named_by,
        role,
        linked_from: Some(Box::new(url(&format!("https://a.example/{from}")))),
        ..task(&format!("https://a.example/{path}"))
    };
    let of_upload = |upload: &str, count| {
        let paths = (0..count).map(|number| format!("{upload}/{number}"));
        paths.map(|path| linked(NamedBy::Further, upload, Role::Manifest, path)).collect::<Vec<_>>()
    };
    let mut plan = Plan::default();
    for number in 0..20 {
        let without_room = plan.add_next(of_upload(&format!("u/{number}"), 200)).len();
        let followed = if number < TASKS_FURTHER_MAX / FURTHER_OF_ONE_MAX { FURTHER_OF_ONE_MAX } else { 0 };
        assert_eq!(without_room, 200 - followed, "upload {number}");
    }
    let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
    plan.resume([].iter());
    assert_eq!(plan.add_next(of_upload("u/20", 1)).len(), 1, "also after an interruption");
    let link = |number| linked(NamedBy::Document, "agents.json", Role::Manifest, format!("x/{number}"));
    for begin in (0..TASKS_MAX).step_by(LINKS_FOLLOWED_MAX) {
        let links = (begin..TASKS_MAX.min(begin + LINKS_FOLLOWED_MAX)).map(link).collect();
        assert_eq!(plan.add_next(links), [], "links from {begin}");
    }
    assert_eq!(plan.add_next(vec![link(TASKS_MAX)]).len(), 1);
    let part = linked(NamedBy::Document, "agent.json", Role::Part, "openapi.json".to_owned());
    assert_eq!(plan.add_next(vec![part]), []);
    plan.add_own((1..TASKS_BEGUN_MAX).map(|number| task(&format!("https://a.example/{number}"))).collect());
    let ranks: Vec<u8> = std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.rank()).collect();
    let count = |rank: u8| ranks.iter().map(|of| usize::from(*of == rank)).sum::<usize>();
    assert_eq!([0, 1, 3, 4].map(count), [TASKS_BEGUN_MAX - 1, 1, TASKS_MAX, TASKS_FURTHER_MAX]);
    assert!(ranks[..=TASKS_BEGUN_MAX].is_sorted(), "{ranks:?}");
}

/// The catalog of the site lists manifests with parts, and users' catalogs with many links.
#[test]
fn parts_do_not_count_as_links_and_are_requested_directly_after_their_manifest() {
    let linked = |named_by, from: &str, role, path: &str| Task {
        named_by,
        role,
        linked_from: Some(Box::new(url(&format!("https://a.example/{from}")))),
        ..task(&format!("https://a.example/{path}"))
    };
    for (manifest_by, links_by) in [
        (NamedBy::Document, NamedBy::Further),
        (NamedBy::Further, NamedBy::Further),
        (NamedBy::Others, NamedBy::Others),
    ] {
        let mut plan = Plan::default();
        let link = |number: usize| {
            linked(links_by, &format!("u/{}", number % 20), Role::Manifest, &format!("l/{number}"))
        };
        assert!(!plan.add_next((0..200).map(link).collect()).is_empty());
        plan.add_next((200..400).map(link).collect());
        for path in ["x/card.json", "x/last.json"] {
            plan.put_next(linked(manifest_by, "agents.json", Role::Manifest, path));
        }
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        plan.resume([].iter());
        assert_eq!(plan.next(&Scope::Site).unwrap().url.path(), "/x/last.json");
        let parts = |from: &str, count| {
            let paths = (0..count).map(|number| format!("{from}/{number}.json"));
            paths.map(|path| linked(links_by, from, Role::Part, &path)).collect::<Vec<_>>()
        };
        let without_room = plan.add_next(parts("x/last.json", 7));
        assert_eq!(without_room.len(), 2, "{manifest_by:?}");
        assert_eq!(plan.add_next(parts("x/card.json", 5)), [], "each manifest has its parts");
        let next: Vec<String> = rest(plan).into_iter().take(10).collect();
        assert!(next.iter().all(|url| url.contains("/x/")), "{next:?}");
    }
}

#[test]
fn limits_requests_of_one_document_at_a_third_party_host_to_ten() {
    let is_own = |host: &Host| host.as_str() == "a.example";
    let links = |from: &str, named_by, at: &str, numbers: std::ops::Range<usize>| {
        let linked = numbers.map(|number| Task {
            named_by,
            linked_from: Some(Box::new(url(from))),
            ..task(&format!("https://{at}/{number:03}"))
        });
        linked.collect::<Vec<_>>()
    };
    let (catalog, card) = ("https://a.example/agents.json", "https://t1.a.example/card.json");
    for (from, named_by, at, expected) in [
        (catalog, NamedBy::Document, "t1.a.example", LINKS_AT_OTHERS_MAX),
        (card, NamedBy::Further, "t2.a.example", LINKS_AT_OTHERS_MAX),
        (card, NamedBy::Others, "t2.a.example", LINKS_AT_OTHERS_MAX),
        (card, NamedBy::Others, "t1.a.example", 30),
        (catalog, NamedBy::Document, "a.example", 30),
    ] {
        let mut plan = Plan::default();
        let mut tasks = links(from, named_by, at, 0..30);
        let beyond = plan.take_beyond_host(&mut tasks, is_own);
        assert_eq!([tasks.len(), beyond.len()], [expected, 30 - expected], "{from} to {at}");
        plan.add_next(tasks.clone());
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        plan.resume([].iter());
        assert_eq!(plan.take_beyond_host(&mut tasks, is_own), [], "they are planned");
        let mut more = links(from, named_by, at, 40..41);
        assert_eq!(plan.take_beyond_host(&mut more, is_own).is_empty(), expected == 30, "{from} to {at}");
        let mut of_another = links("https://a.example/x.json", named_by, at, 50..51);
        let is_beyond = expected < 30 && named_by != NamedBy::Document;
        let beyond = plan.take_beyond_host(&mut of_another, is_own);
        assert_eq!(
            beyond.len(),
            usize::from(is_beyond),
            "{from} to {at}: documents of users share one limit of ten"
        );
    }
}

#[test]
fn after_an_interruption_results_without_a_request_do_not_count_towards_the_limit() {
    let mut plan = Plan::default();
    plan.end_host(Host::parse("b.a.example").unwrap(), VisitEnd::RobotsDenied);
    let denied: Vec<ManifestUrl> =
        (0..TASKS_MAX).map(|number| url(&format!("https://b.a.example/{number}"))).collect();
    plan.resume(denied.iter());
    assert_eq!(plan.add_next(vec![task("https://a.example/linked")]), []);
}

#[test]
fn returns_links_of_a_document_beyond_the_limit() {
    let links = |numbers: std::ops::Range<usize>| {
        numbers.map(|number| task(&format!("https://a.example/{number:03}"))).collect::<Vec<_>>()
    };
    let mut plan = Plan::default();
    let last = links(LINKS_FOLLOWED_MAX..LINKS_FOLLOWED_MAX + 1);
    assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)), last);
    assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX)), [], "they are planned");
    assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)), [], "the next visit follows the link");
    assert_eq!(rest(plan).len(), LINKS_FOLLOWED_MAX + 1);
}

#[test]
fn a_link_of_the_site_does_not_change_a_url_of_the_operators_list() {
    let mut plan = Plan::default();
    let listed = Task { discovery: Discovery::Listed, ..by_others("https://a.example/x.json") };
    plan.add(listed.clone());
    plan.add_next(vec![Task {
        discovery: Discovery::CatalogEntry,
        linked_from: Some(Box::new(url("https://a.example/agent.json"))),
        ..task("https://a.example/x.json")
    }]);
    assert_eq!(plan.tasks().collect::<Vec<_>>(), [listed]);
}

#[test]
fn resumes_with_the_interrupted_task_and_does_not_repeat_fetched_urls() {
    let mut plan = Plan::default();
    plan.add(task("https://a.example/1"));
    plan.add(task("https://a.example/2"));
    plan.current = plan.next(&Scope::Site);
    let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
    plan.resume([url("https://a.example/0")].iter());
    plan.add(task("https://a.example/0"));
    assert_eq!(rest(plan), ["https://a.example/1", "https://a.example/2"]);
}

#[test]
fn skips_hosts_that_have_ended() {
    let mut plan = Plan::default();
    for text in ["https://a.example/1", "https://a.example/2", "https://b.a.example/1"] {
        plan.add(task(text));
    }
    let first = plan.next(&Scope::Site).unwrap();
    assert!(plan.apply(&first, NextStep::Stop(VisitEnd::Blocked)).is_continue());
    assert_eq!(rest(plan), ["https://b.a.example/1"]);
}

#[test]
fn ends_the_visit_when_the_site_opts_out_and_a_host_when_it_asks_for_a_delay() {
    let task = task("https://a.example/1");
    let opted_out = Plan::default().apply(&task, NextStep::Stop(VisitEnd::OptedOut));
    assert_eq!(opted_out, ControlFlow::Break(VisitEnd::OptedOut));
    let mut plan = Plan::default();
    plan.add(by_document("https://a.example/linked"));
    plan.add(by_document("https://b.a.example/linked"));
    let limited = plan.apply(&task, NextStep::Stop(VisitEnd::RateLimited));
    assert_eq!(limited, ControlFlow::Continue(Vec::new()));
    assert_eq!(plan.ended.get(&task.url.host()), Some(&VisitEnd::RateLimited));
    assert_eq!(rest(plan), ["https://b.a.example/linked"]);
}

#[test]
fn failures_of_urls_of_third_parties_drop_urls_of_the_same_source_at_the_host() {
    let urls = ["own", "linked", "theirs"].map(|path| format!("https://a.example/{path}"));
    let elsewhere = ["linked", "theirs"].map(|path| format!("https://b.a.example/{path}"));
    let [own, linked, theirs] = &urls;
    let tasks = || {
        [
            task(own),
            by_document(linked),
            by_document(&elsewhere[0]),
            by_others(theirs),
            by_others(&elsewhere[1]),
        ]
    };
    for (failed, dropped) in [
        (by_document("https://a.example/failed"), by_document(linked)),
        (by_others("https://a.example/failed"), by_others(theirs)),
    ] {
        for end in [VisitEnd::Blocked, VisitEnd::ServerErrors, VisitEnd::CatchAll] {
            let mut plan = Plan::default();
            for task in tasks() {
                plan.add(task);
            }
            let applied = plan.apply(&failed, NextStep::Stop(end));
            assert_eq!(applied, ControlFlow::Continue(vec![dropped.clone()]), "{end}");
            let kept: Vec<Task> = tasks().into_iter().filter(|task| *task != dropped).collect();
            assert_eq!(plan.tasks().collect::<Vec<_>>(), kept, "{end}");
            assert!(plan.ended.is_empty(), "{end}");
        }
        let opted_out = Plan::default().apply(&failed, NextStep::Stop(VisitEnd::OptedOut));
        assert_eq!(opted_out, ControlFlow::Break(VisitEnd::OptedOut));
    }
}

#[test]
fn failing_links_of_one_document_do_not_drop_links_of_another() {
    let from = |document: &str, task: Task| Task {
        linked_from: Some(Box::new(url(&format!("https://a.example/{document}")))),
        ..task
    };
    let at = |path: &str| format!("https://a.example/{path}");
    for named in [by_document as fn(&str) -> Task, by_others] {
        let upload = from("u/upload.json", named(&at("upload")));
        let catalog = from("agents.json", named(&at("catalog")));
        let fail = |plan: &mut Plan, task: &Task| {
            plan.rules(task).observe(FetchOutcome::ServerError, task.body, None)
        };
        let mut plan = Plan::default();
        assert_eq!([fail(&mut plan, &upload), fail(&mut plan, &catalog)], [NextStep::Continue; 2]);
        assert_eq!(fail(&mut plan, &upload), NextStep::Stop(VisitEnd::ServerErrors));
        let dropped_after = |end: VisitEnd, failed: &Task| {
            let mut plan = Plan::default();
            plan.add(upload.clone());
            plan.add(catalog.clone());
            match plan.apply(failed, NextStep::Stop(end)) {
                ControlFlow::Continue(dropped) => dropped,
                ControlFlow::Break(end) => panic!("{end}"),
            }
        };
        let failed = from("u/upload.json", named(&at("failed")));
        for end in [VisitEnd::Blocked, VisitEnd::ServerErrors, VisitEnd::CatchAll] {
            assert_eq!(dropped_after(end, &failed), std::slice::from_ref(&upload), "{end}");
        }
        let both = [upload.clone(), catalog.clone()];
        assert_eq!(
            dropped_after(VisitEnd::Unreachable, &failed),
            both,
            "the host is unreachable for all links"
        );
        let elsewhere = Task { hops: vec![url("https://t.a.example/x")], ..failed };
        let dropped = dropped_after(VisitEnd::Unreachable, &elsewhere);
        assert_eq!(dropped, std::slice::from_ref(&upload), "the target of a redirect");
    }
}

#[test]
fn a_host_with_a_delay_gets_only_requests_that_the_site_itself_names() {
    let own = task("https://a.example/own");
    let [linked, theirs] = [by_document("https://a.example/linked"), by_others("https://a.example/theirs")];
    let elsewhere = by_others("https://b.a.example/theirs");
    for failed in [by_document("https://a.example/failed"), by_others("https://a.example/failed")] {
        let mut plan = Plan::default();
        for task in [&own, &linked, &theirs, &elsewhere] {
            plan.add(task.clone());
        }
        let applied = plan.apply(&failed, NextStep::Stop(VisitEnd::RateLimited));
        assert_eq!(applied, ControlFlow::Continue(vec![linked.clone(), theirs.clone()]));
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        let more = by_document("https://a.example/more");
        assert_eq!(plan.add_next(vec![more.clone()]), [more], "the next visit follows it");
        assert_eq!(plan.add_next(vec![by_document("https://b.a.example/more")]), []);
        let left: Vec<String> = plan.tasks().map(|task| task.url.to_string()).collect();
        assert_eq!(left, [own.url.as_str(), "https://b.a.example/more", elsewhere.url.as_str()]);
    }
}

#[test]
fn links_in_documents_of_third_parties_come_first_among_the_tasks_of_third_parties() {
    let mut plan = Plan::default();
    for task in [task("https://a.example/own"), by_others("https://a.example/theirs")] {
        plan.add(task);
    }
    let linked = |text: &str| Task {
        discovery: Discovery::CatalogEntry,
        linked_from: Some(Box::new(url("https://a.example/u/upload.json"))),
        ..by_others(text)
    };
    let links = ["https://a.example/1", "https://a.example/theirs", "https://a.example/2"];
    plan.add_next(links.map(linked).into());
    let tasks: Vec<Task> = plan.tasks().collect();
    assert_eq!(tasks[3], by_others("https://a.example/theirs"), "a link of others does not change the task");
    let urls = ["own", "1", "2", "theirs"].map(|path| format!("https://a.example/{path}"));
    assert_eq!(rest(plan), urls);
}

#[test]
fn counts_responses_separately_by_who_named_their_urls() {
    let (own, theirs) = (task("https://a.example/own"), by_others("https://a.example/theirs"));
    let linked = by_document("https://a.example/linked");
    let mut plan = Plan::default();
    let mut fail = |task: &Task| plan.rules(task).observe(FetchOutcome::ServerError, task.body, None);
    assert_eq!([fail(&theirs), fail(&linked), fail(&own)], [NextStep::Continue; 3]);
    assert_eq!(fail(&own), NextStep::Stop(VisitEnd::ServerErrors));
    let mut read: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
    let failed = read.rules(&theirs).observe(FetchOutcome::ServerError, theirs.body, None);
    assert_eq!(failed, NextStep::Stop(VisitEnd::ServerErrors), "also after an interruption");
    let failed = read.rules(&linked).observe(FetchOutcome::ServerError, linked.body, None);
    assert_eq!(failed, NextStep::Stop(VisitEnd::ServerErrors), "likewise");
}

#[test]
fn a_link_of_the_site_is_recorded_at_a_queued_url_that_others_named() {
    let mut plan = Plan::default();
    plan.add(task("https://a.example/own"));
    plan.add(by_others("https://a.example/theirs"));
    let linked = |task: Task| Task {
        discovery: Discovery::CatalogEntry,
        linked_from: Some(Box::new(url("https://a.example/agent.json"))),
        ..task
    };
    plan.add_next(
        ["https://a.example/own", "https://a.example/theirs"].map(|text| linked(task(text))).into(),
    );
    let tasks: Vec<Task> = std::iter::from_fn(|| plan.next(&Scope::Site)).collect();
    let theirs = linked(by_others("https://a.example/theirs"));
    assert_eq!(tasks, [task("https://a.example/own"), theirs], "at the position of the first task");
}

#[test]
fn known_documents_get_half_of_the_requests_and_kinds_of_new_urls_take_turns() {
    let of = |kind: &str, named_by, turn, number: usize| Task {
        named_by,
        turn,
        ..task(&format!("https://a.example/{kind}/{number:02}.json"))
    };
    let kinds = [
        ("known", NamedBy::Document, Turn::Known),
        ("link", NamedBy::Document, Turn::NewLink),
        ("further", NamedBy::Further, Turn::NewLink),
        ("hint", NamedBy::Others, Turn::Hint),
        ("theirs", NamedBy::Others, Turn::NewLink),
        ("path", NamedBy::Others, Turn::Path),
    ];
    for visits in (1..24).step_by(2) {
        let mut plan = Plan::after_visits(visits);
        for (kind, named_by, turn) in kinds {
            let count = if turn == Turn::Known { 40 } else { 10 };
            plan.add_next((0..count).map(|number| of(kind, named_by, turn, number)).collect());
        }
        let first: Vec<String> = rest(plan).into_iter().take(12).collect();
        let count = |kind: &str| first.iter().filter(|path| path.contains(&format!("/{kind}/"))).count();
        let counts = kinds.map(|(kind, ..)| count(kind));
        assert_eq!(counts, [6, 2, 1, 1, 1, 1], "visit {visits}: {first:?}");
    }
}

#[test]
fn adds_the_canary_path_to_the_plan() {
    let mut plan = Plan::default();
    assert!(plan.apply(&task("https://a.example/1"), NextStep::RequestCanary).is_continue());
    let canary = plan.next(&Scope::Site).unwrap();
    assert!(canary.url.path().starts_with("/.well-known/agentdex-canary-"), "{}", canary.url);
    assert_eq!((canary.role, canary.named_by), (Role::Canary, NamedBy::Site));
    for task in [by_document("https://b.a.example/1"), by_others("https://b.a.example/1")] {
        let task = Task { linked_from: Some(Box::new(url("https://a.example/agents.json"))), ..task };
        let mut plan = Plan::default();
        assert!(plan.apply(&task, NextStep::RequestCanary).is_continue());
        let canary = plan.next(&Scope::Site).unwrap();
        assert_eq!((canary.named_by, canary.linked_from), (task.named_by, task.linked_from));
    }
}

#[test]
fn a_visit_to_one_document_requests_it_and_its_parts() {
    let mut plan = Plan::default();
    plan.add(task("https://a.example/1"));
    plan.add(task("https://a.example/2"));
    plan.add(Task { role: Role::Part, ..task("https://a.example/part") });
    let scope = Scope::Document(url("https://a.example/2"));
    let urls: Vec<String> =
        std::iter::from_fn(|| plan.next(&scope)).map(|task| task.url.to_string()).collect();
    assert_eq!(urls, ["https://a.example/2", "https://a.example/part"]);
}
