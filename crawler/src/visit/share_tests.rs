//! Tests that failing, slow or numerous documents of some users do not displace the documents of other users.

use store::Seed;
use testweb::Answer;

use super::requester::tests::{Fixture, fixture, fixture_with};
use super::slow_tests::{
    AWP, MANIFEST, NAME, advance_until_due, open, open_until_the_end, report, submitted,
};
use super::*;

const CATALOG: &str = "/.well-known/api-catalog";
const JSON: &str = "application/json";
const LINKSET: &str = "application/linkset+json";

fn catalog_of<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    let links = paths.into_iter().map(|path| format!(r#"{{"href":"https://{NAME}{path}"}}"#));
    let links = links.collect::<Vec<_>>().join(",");
    format!(r#"{{"linkset":[{{"anchor":"https://{NAME}/","service-desc":[{links}]}}]}}"#)
}

fn awp(action: &str) -> String {
    AWP.replace("buy_book", action)
}

/// A site with a manifest and this catalog, which is due.
async fn begun(host: testweb::Host, catalog: String) -> Fixture {
    let fixture = fixture(host.robots("").file(MANIFEST, JSON, AWP).file(CATALOG, LINKSET, catalog)).await;
    fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    fixture
}

/// The paths of the next visit.
async fn visited(fixture: &Fixture) -> Vec<String> {
    let requested = open_until_the_end(fixture).await.into_iter().flat_map(|opening| opening.requested);
    let requested = requested.collect();
    advance_until_due(fixture).await;
    requested
}

/// In each visit, one document of the catalog fails. All other documents are at the same host.
#[tokio::test]
async fn a_failing_document_does_not_prevent_other_requests() {
    const DEAD: &str = "/a/dead.json";
    const WHOLE: &str = "/x/agent-manifest.json";
    const REACHED: [&str; 5] = ["/team/catalog.json", "/team/0.json", WHOLE, "/x/openapi.json", "/u/0.json"];
    let whole = format!(
        r#"{{"arws_version":"1.0","name":"M","description":"D","tools":"https://{NAME}/x/openapi.json"}}"#
    );
    let tools = format!(
        r#"{{"openapi":"3.1.0","info":{{"title":"M","version":"1"}},"servers":[{{"url":"https://{NAME}/api"}}],
        "paths":{{"/tickets":{{"post":{{"operationId":"buy","responses":{{"200":{{"description":"ok"}}}}}}}}}}}}"#
    );
    let host = testweb::Host::new(NAME)
        .file(DEAD, JSON, awp("dead"))
        .file("/team/catalog.json", LINKSET, catalog_of(["/team/0.json"]))
        .file("/team/0.json", JSON, awp("team"))
        .file(WHOLE, JSON, whole)
        .file("/x/openapi.json", JSON, tools)
        .file("/u/0.json", JSON, awp("upload"));
    let fixture = begun(host, catalog_of([DEAD, "/team/catalog.json", WHOLE])).await;
    let upload = submitted(&format!("https://{NAME}/u/0.json"));
    fixture.tools.store.seeds_add(&[upload], clock::now()).await.unwrap();
    clock::advance(TimeDelta::minutes(1));
    visited(&fixture).await;
    fixture.web.set(NAME, DEAD, Answer::status(503));
    visited(&fixture).await;
    for visit in 3..8 {
        let requested = visited(&fixture).await;
        for path in REACHED {
            assert!(requested.iter().any(|other| other == path), "visit {visit}: {path} in {requested:?}");
        }
        assert_eq!(requested.last().map(String::as_str), Some(DEAD), "visit {visit}: {requested:?}");
    }
}

/// The catalog gets new documents in each visit, all of which fail.
#[tokio::test]
async fn new_documents_that_fail_do_not_prevent_requests_for_known_ones_in_every_second_visit() {
    let known = ["/d/0.json", "/d/1.json", "/d/2.json"];
    for answer in [Answer::status(503), Answer::status(500)] {
        let host = known.into_iter().enumerate().fold(testweb::Host::new(NAME), |host, (number, path)| {
            host.file(path, JSON, awp(&format!("known{number}")))
        });
        let fixture = begun(host, catalog_of(known)).await;
        visited(&fixture).await;
        let mut new: Vec<String> = Vec::new();
        let mut read = 0;
        for visit in 0..8 {
            new.extend((0..3).map(|number| format!("/c/{visit}-{number}.json")));
            for path in &new {
                fixture.web.set(NAME, path, answer.clone());
            }
            let listed = known.into_iter().chain(new.iter().map(String::as_str));
            fixture.web.set_file(NAME, CATALOG, LINKSET, catalog_of(listed));
            let requested = visited(&fixture).await;
            read += usize::from(known.iter().all(|path| requested.iter().any(|other| other == path)));
        }
        assert!(read >= 4, "{read} of 8");
    }
}

/// A client submits a path of the domain that answers 503, and an agent card at the host of a customer.
#[tokio::test]
async fn a_failure_of_a_url_of_third_parties_delays_only_the_host_that_answered() {
    const CUSTOMER: &str = "t1.slow.example";
    let site = testweb::Host::new(NAME)
        .robots("")
        .file(MANIFEST, JSON, AWP)
        .route("/busy.json", Answer::status(503));
    let customer = testweb::Host::new(CUSTOMER).robots("").file("/u/card.json", JSON, awp("card"));
    let fixture = fixture_with(site, customer).await;
    let (store, token) = (&fixture.tools.store, &fixture.leased.token);
    store.standalone_end(token, &[]).await.unwrap();
    let urls = [format!("https://{NAME}/busy.json"), format!("https://{CUSTOMER}/u/card.json")];
    store.seeds_add(&urls.each_ref().map(|url| submitted(url)), clock::now()).await.unwrap();
    clock::advance(TimeDelta::minutes(1));
    let opening = open(&fixture).await;
    assert!(opening.requested.contains(&"/busy.json".to_owned()), "{:?}", opening.requested);
    let hits = fixture.web.log().hits_on(CUSTOMER);
    assert!(hits.iter().any(|hit| hit.path == "/u/card.json"), "{hits:?}");
    let report = report(&fixture).await;
    assert_eq!((report.visits[0].end, report.state.not_before), (VisitEnd::Completed, None));
    assert_eq!(report.summary.manifests, 2);
}

/// The home page links to a manifest at another host of the site. After the first visit, that host answers 503.
#[tokio::test]
async fn a_failure_of_another_own_host_ends_only_this_host() {
    const API: &str = "api.slow.example";
    let page =
        format!("<html><head><link rel='agent-manifest' href='https://{API}/x/api.json'></head></html>");
    let site = testweb::Host::new(NAME)
        .robots("")
        .file(MANIFEST, JSON, AWP)
        .file(CATALOG, LINKSET, catalog_of(["/d/0.json"]))
        .file("/d/0.json", JSON, awp("listed"))
        .route("/", Answer::html(page));
    let api = testweb::Host::new(API).robots("").file("/x/api.json", JSON, awp("api"));
    let fixture = fixture_with(site, api).await;
    fixture.tools.store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    visited(&fixture).await;
    for path in ["/x/api.json", MANIFEST, "/.well-known/agent.json"] {
        fixture.web.set(API, path, Answer::status(503));
    }
    for visit in 2..5 {
        let requested = visited(&fixture).await;
        assert!(requested.contains(&"/d/0.json".to_owned()), "visit {visit}: {requested:?}");
        let limited =
            fixture.web.log().hits_on(API).into_iter().filter(|hit| hit.status == Some(503)).count();
        assert_eq!(limited, visit - 1, "one request of each visit");
        let report = report(&fixture).await;
        assert_eq!(report.visits[0].end, VisitEnd::Completed, "visit {visit}");
        assert_eq!(report.state.failures_in_row, 0, "visit {visit}");
    }
}

/// In each visit, a document of a user links to one more path of the main host. All of these paths ask for a delay.
#[tokio::test]
async fn failing_new_links_delay_new_urls_of_third_parties_in_few_visits() {
    const UPLOAD: &str = "/u/e.json";
    let host = testweb::Host::new(NAME).file("/u/g.json", JSON, awp("named"));
    let fixture = begun(host.file(UPLOAD, LINKSET, catalog_of([])), catalog_of([UPLOAD])).await;
    visited(&fixture).await;
    let url = |text: &str| ManifestUrl::parse(text).unwrap();
    let link = Seed::linked(url(&format!("https://{NAME}/u/g.json")), url("https://evil.example/x.json"));
    fixture.tools.store.seeds_add(&[link], clock::now()).await.unwrap();
    let mut requested = Vec::new();
    for visit in 0..3 {
        let busy = format!("/busy/{visit}.json");
        fixture.web.set(NAME, &busy, Answer::status(503));
        fixture.web.set_file(NAME, UPLOAD, LINKSET, catalog_of([busy.as_str()]));
        requested.extend(visited(&fixture).await);
    }
    assert!(requested.contains(&"/u/g.json".to_owned()), "{requested:?}");
    assert!(requested.iter().any(|path| path.starts_with("/busy/")), "{requested:?}");
}

/// In every second visit, a document of a customer redirects to a path of the main host that asks for a delay.
#[tokio::test]
async fn failing_redirects_delay_known_documents_in_few_visits() {
    const CUSTOMER: &str = "t1.slow.example";
    let site = testweb::Host::new(NAME)
        .robots("")
        .file(MANIFEST, JSON, AWP)
        .route("/busy", Answer::status(503))
        .file("/u/g.json", JSON, awp("upload"));
    let customer = testweb::Host::new(CUSTOMER).robots("").file("/r.json", JSON, awp("customer"));
    let fixture = fixture_with(site, customer).await;
    let store = &fixture.tools.store;
    store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    let urls = [format!("https://{NAME}/u/g.json"), format!("https://{CUSTOMER}/r.json")];
    store.seeds_add(&urls.each_ref().map(|url| submitted(url)), clock::now()).await.unwrap();
    clock::advance(TimeDelta::minutes(1));
    visited(&fixture).await;
    assert_eq!(report(&fixture).await.summary.manifests, 3);
    let mut visits_with_known = 0;
    for visit in 0..8 {
        if visit % 2 == 0 {
            fixture.web.set(CUSTOMER, "/r.json", Answer::redirect(302, &format!("https://{NAME}/busy")));
        } else {
            fixture.web.set_file(CUSTOMER, "/r.json", JSON, awp("customer"));
        }
        let requested = visited(&fixture).await;
        visits_with_known += usize::from(requested.contains(&"/u/g.json".to_owned()));
        assert_eq!(requested.contains(&"/busy".to_owned()), visit % 2 == 0, "{visit}: {requested:?}");
    }
    assert!(visits_with_known >= 6, "in {visits_with_known} of 8 visits");
}

/// Otherwise the daily budget might never suffice for a request to the target.
#[tokio::test]
async fn a_redirect_to_another_host_is_followed_in_the_same_visit() {
    const CUSTOMER: &str = "t1.slow.example";
    let moved = format!("https://{CUSTOMER}/moved.json");
    let site = testweb::Host::new(NAME)
        .robots("")
        .file(MANIFEST, JSON, AWP)
        .route("/u/a.json", Answer::redirect(302, &moved))
        .file("/u/b.json", JSON, awp("second"));
    let customer = testweb::Host::new(CUSTOMER).robots("").file("/moved.json", JSON, awp("customer"));
    let fixture = fixture_with(site, customer).await;
    let store = &fixture.tools.store;
    store.standalone_end(&fixture.leased.token, &[]).await.unwrap();
    let urls = ["a", "b"].map(|name| submitted(&format!("https://{NAME}/u/{name}.json")));
    store.seeds_add(&urls, clock::now()).await.unwrap();
    clock::advance(TimeDelta::minutes(1));
    visited(&fixture).await;
    let log = fixture.web.log();
    let at = |host: &str, path: &str| log.hits().iter().position(|hit| hit.host == host && hit.path == path);
    let (redirect, target) = (at(NAME, "/u/a.json"), at(CUSTOMER, "/moved.json"));
    assert!(redirect < target && target.is_some(), "{redirect:?} {target:?}");
}

/// Another site keeps linking to a document that fails at first. The catalog with the link is read in each visit, or never changes.
#[tokio::test]
async fn a_link_of_another_site_is_requested_three_times() {
    const AT: &str = "/u/g.json";
    let url = |text: &str| ManifestUrl::parse(text).unwrap();
    for (failures, is_read_again) in [(2, true), (9, true), (2, false), (9, false)] {
        let host = testweb::Host::new(NAME).route(AT, Answer::status(503));
        let fixture = begun(host, catalog_of([])).await;
        visited(&fixture).await;
        let mut requests = 0;
        for visit in 0..7 {
            if visit == failures {
                fixture.web.set_file(NAME, AT, JSON, awp("late"));
            }
            let link = Seed::linked(url(&format!("https://{NAME}{AT}")), url("https://evil.example/x.json"));
            if visit == 0 || is_read_again {
                fixture.tools.store.seeds_add(&[link], clock::now()).await.unwrap();
            }
            requests += visited(&fixture).await.iter().filter(|path| *path == AT).count();
            clock::advance(TimeDelta::days(1));
        }
        let manifests = report(&fixture).await.summary.manifests;
        let is_found = failures == 2;
        let expected = (!is_found, 2 + u32::from(is_found));
        assert_eq!((requests == 3, manifests), expected, "{requests} {is_read_again}");
    }
}

#[tokio::test]
async fn a_slow_owner_does_not_use_up_the_time_of_others() {
    let fixture = begun(testweb::Host::new(NAME), catalog_of([])).await;
    let stop = Stop::default();
    let session = fixture.tools.egress.session(fixture.leased.token.site.clone());
    let mut visit = Visit::new(&fixture.tools, &stop, &fixture.leased, Scope::Site, session);
    let task = |host: &str, path: &str| {
        let url = ManifestUrl::parse(&format!("https://{host}.{NAME}/{path}.json")).unwrap();
        let task = Task::new(url, policy::BodyKind::Manifest, manifest::Discovery::CatalogEntry);
        Task { named_by: NamedBy::Others, ..task }
    };
    for (host, path) in [("q0", "1"), ("a.q0", "2"), ("q1", "1")] {
        visit.progress.plan.add(task(host, path));
    }
    let slow = task("q0", "0");
    visit.progress.traffic.active = TIME_OF_ONE_MAX;
    visit.progress.traffic.count_for_links((&slow, &visit.own_hosts.owner_of(&slow)), Duration::ZERO);
    assert_eq!(visit.observe_time(&slow), NextStep::Continue);
    let left = visit.progress.plan.tasks().filter(|task| task.named_by == NamedBy::Others);
    assert_eq!(left.map(|task| task.url.host().to_string()).collect::<Vec<_>>(), [format!("q1.{NAME}")]);
}

#[tokio::test]
async fn limits_the_time_of_each_kind_of_link_separately() {
    let fixture = begun(testweb::Host::new(NAME), catalog_of([])).await;
    let stop = Stop::default();
    for used_up in UrlLimits::LINKS {
        let session = fixture.tools.egress.session(fixture.leased.token.site.clone());
        let mut visit = Visit::new(&fixture.tools, &stop, &fixture.leased, Scope::Site, session);
        let task = |named_by: NamedBy| {
            let url = ManifestUrl::parse(&format!("https://{NAME}/{named_by:?}.json")).unwrap();
            Task { named_by, ..Task::new(url, policy::BodyKind::Manifest, manifest::Discovery::CatalogEntry) }
        };
        for named_by in UrlLimits::LINKS {
            visit.progress.plan.add(task(named_by));
        }
        visit.progress.traffic.active = UrlLimits::of(used_up).time;
        visit.progress.traffic.active_for.insert(used_up, UrlLimits::of(used_up).time);
        assert_eq!(visit.observe_time(&task(NamedBy::Site)), NextStep::Continue);
        let left: Vec<NamedBy> = visit
            .progress
            .plan
            .tasks()
            .map(|task| task.named_by)
            .filter(|named_by| *named_by != NamedBy::Site)
            .collect();
        let expected = UrlLimits::LINKS.into_iter().filter(|named_by| *named_by != used_up);
        assert_eq!(left, expected.collect::<Vec<_>>());
    }
    let sum: Duration = UrlLimits::LINKS.into_iter().map(|named_by| UrlLimits::of(named_by).time).sum();
    assert_eq!(sum, Duration::from_secs(75));
}
