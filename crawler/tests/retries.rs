//! Tests that documents that failed once are requested again, and that manifests are kept until they can be read again.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use crawler::egress::{EgressSettings, HostsFile};
use manifest::{ManifestId, ManifestUrl, SiteName};
use policy::{FetchOutcome, OwnNetworks, VisitEnd};
use store::{GroupSet, LeaseRequest, RobotsRecord, WorkerId};
use support::{AWP, Crawl, now};
use testweb::{Answer, Host, Web};

const SITE: &str = "plat.example";
const API: &str = "api.plat.example";
const CATALOG: &str = "/.well-known/api-catalog";
const PLUGIN: &str = "/.well-known/ai-plugin.json";
const OPENAPI: &str = "/openapi.json";

/// A catalog of a site, which links to these URLs.
fn catalog(site: &str, urls: &[String]) -> Answer {
    let links: Vec<_> = urls.iter().map(|url| format!(r#"{{"href":"{url}"}}"#)).collect();
    let text =
        format!(r#"{{"linkset":[{{"anchor":"https://{site}/","service-desc":[{}]}}]}}"#, links.join(","));
    Answer::ok("application/linkset+json", text)
}

/// A document with one action.
fn card(action: &str) -> Answer {
    Answer::json(AWP.replace("buy_book", action))
}

/// A plugin that this OpenAPI document completes.
fn plugin(text: &str, openapi: &str) -> Answer {
    Answer::json(format!(
        r#"{{"schema_version":"v1","name_for_model":"own","name_for_human":"Own","description_for_model":"{text}",
        "description_for_human":"{text}","auth":{{"type":"none"}},"api":{{"type":"openapi","url":"{openapi}"}},
        "logo_url":"https://{SITE}/l.png","contact_email":"a@{SITE}","legal_info_url":"https://{SITE}/l"}}"#
    ))
}

fn openapi(operation: &str) -> Answer {
    Answer::json(format!(
        r#"{{"openapi":"3.0.0","info":{{"title":"Own","version":"1"}},"servers":[{{"url":"https://{SITE}/"}}],
        "paths":{{"/p":{{"get":{{"operationId":"{operation}","responses":{{"200":{{"description":"ok"}}}}}}}}}}}}"#
    ))
}

/// If the operator repairs or starts a server after a visit that did not reach it, the next visit uses it.
#[tokio::test]
async fn a_robots_txt_that_no_server_answered_is_requested_in_the_next_visit() {
    let closed = HostsFile::parse("127.0.0.1:1 shop.example\n").unwrap();
    let elsewhere = HostsFile::parse("127.0.0.1:1 other.example\n").unwrap();
    let silent = "127.0.0.1:1".parse().unwrap();
    for expected in
        [VisitEnd::Unreachable, VisitEnd::DnsFailed, VisitEnd::AddressRefused, VisitEnd::TlsFailed]
    {
        let mut crawl = Crawl::of([support::shop()]).await;
        let mended = crawl.config.egress.clone();
        crawl.config.egress = match expected {
            VisitEnd::Unreachable => EgressSettings { hosts: closed.clone(), ..mended.clone() },
            VisitEnd::DnsFailed => {
                EgressSettings { hosts: elsewhere.clone(), name_servers: vec![silent], ..mended.clone() }
            }
            VisitEnd::AddressRefused => {
                EgressSettings { own_networks: OwnNetworks::default(), ..mended.clone() }
            }
            _ => EgressSettings { additional_roots_pem: None, ..mended.clone() },
        };
        crawl.pass().await;
        assert_eq!(crawl.report("shop.example").await.visits[0].end, expected);
        crawl.config.egress = mended;
        let summary = crawl.pass_again().await;
        assert_eq!(summary.manifests_added, 1, "{expected}: {summary:?}");
    }
}

/// The capabilities that the manifest at a URL declares. Empty if it is not in the index.
async fn declared(crawl: &Crawl, url: &str) -> Vec<String> {
    let url = ManifestUrl::parse(url).unwrap();
    let known = crawl.report(SITE).await.state.resources;
    let known = known.into_iter().find(|known| known.url == url);
    let Some(id) = known.and_then(|known| known.manifest_id) else { return Vec::new() };
    let found = crawl.store.manifest_find(&id).await.unwrap();
    let capabilities = found.map(|found| found.manifest.capabilities).unwrap_or_default();
    capabilities.iter().map(|capability| capability.native_id.clone()).collect()
}

fn at(path: &str) -> String {
    format!("https://{SITE}{path}")
}

async fn crawl_of(hosts: Vec<Host>, seeds: &str) -> Crawl {
    Crawl::on(Web::builder().hosts(hosts).start().await.unwrap(), seeds).await
}

/// The catalog and the plugin do not change, and everything to which they link fails at first.
#[tokio::test]
async fn links_whose_first_response_was_a_failure_are_requested_again() {
    let tenants = ["t1.plat.example", "t2.plat.example", "t3.plat.example"];
    let links = [at("/d/y.json")].into_iter().chain(tenants.map(|host| format!("https://{host}/z.json")));
    let links: Vec<String> = links.collect();
    let openapi_url = format!("https://{API}{OPENAPI}");
    let site = Host::new(SITE)
        .robots("")
        .route(CATALOG, catalog(SITE, &links))
        .route(PLUGIN, plugin("own", &openapi_url));
    let failing = |name: &str, path: &str, answer: Answer| Host::new(name).robots("").route(path, answer);
    let hosts = vec![
        site.route("/d/y.json", Answer::status(404)),
        failing(tenants[0], "/z.json", Answer::status(500)),
        failing(tenants[1], "/z.json", Answer::reset()),
        failing(tenants[2], "/z.json", Answer::html("<html></html>")),
        failing(API, OPENAPI, Answer::status(500)),
    ];
    let mut crawl = crawl_of(hosts, SITE).await;
    crawl.pass().await;
    assert_eq!(crawl.outcome(SITE, "/d/y.json").await, FetchOutcome::NotFound);
    assert_eq!(declared(&crawl, &at(PLUGIN)).await, [""; 0]);
    crawl.web.set(SITE, "/d/y.json", card("y"));
    for host in tenants {
        crawl.web.set(host, "/z.json", card("z"));
    }
    crawl.web.set(API, OPENAPI, openapi("own_op"));
    crawl.pass_again().await;
    let hits = crawl.hits(SITE);
    let unchanged = hits.iter().filter(|hit| [CATALOG, PLUGIN].contains(&hit.path.as_str()));
    assert!(
        unchanged.clone().count() == 2 && unchanged.clone().all(|hit| hit.status == Some(304)),
        "{hits:?}"
    );
    for link in &links {
        assert_eq!(declared(&crawl, link).await.len(), 1, "{link}");
    }
    assert_eq!(declared(&crawl, &at(PLUGIN)).await, ["own_op"]);
    assert_eq!(declared(&crawl, &openapi_url).await, [""; 0], "a part is not a manifest of its own");
    crawl.pass_again().await;
    assert_eq!(declared(&crawl, &at(PLUGIN)).await, ["own_op"]);
    assert_eq!(crawl.hits(API).iter().map(|hit| hit.status).collect::<Vec<_>>(), [Some(304)]);
}

#[tokio::test]
async fn a_link_that_never_leads_to_a_document_is_requested_three_times() {
    let openapi_url = at(OPENAPI);
    for (status, name) in [(404, "absent"), (500, "failing")] {
        let links: Vec<String> = vec![at("/d/y.json"), format!("https://none.{SITE}/z.json")];
        let site = Host::new(SITE)
            .robots("")
            .route(CATALOG, catalog(SITE, &links))
            .route(PLUGIN, plugin("own", &openapi_url))
            .route("/d/y.json", Answer::status(status))
            .route(OPENAPI, Answer::status(status));
        let mut crawl = crawl_of(vec![site], SITE).await;
        crawl.pass().await;
        let mut paths = crawl.paths(SITE);
        for _ in 0..5 {
            crawl.pass_again().await;
            paths.extend(crawl.paths(SITE));
        }
        for path in ["/d/y.json", OPENAPI] {
            let requests = paths.iter().filter(|other| *other == path).count();
            assert_eq!(requests, 3, "{name}: {path}");
        }
        assert!(declared(&crawl, &at(CATALOG)).await.is_empty());
    }
}

/// The part may not be stored. A visit in which the part fails finds another text of the plugin.
#[tokio::test]
async fn a_manifest_keeps_its_capabilities_while_a_part_that_may_not_be_stored_fails() {
    let unstored = |operation: &str| openapi(operation).header("cache-control", "no-store");
    let site = Host::new(SITE)
        .robots("")
        .route("/agent.json", card("own"))
        .route(PLUGIN, plugin("old", &format!("https://{API}{OPENAPI}")));
    let api = Host::new(API).robots("").route(OPENAPI, unstored("own_op"));
    let mut crawl = crawl_of(vec![site, api], SITE).await;
    crawl.pass().await;
    assert_eq!(declared(&crawl, &at(PLUGIN)).await, ["own_op"]);
    crawl.web.set(SITE, PLUGIN, plugin("new", &format!("https://{API}{OPENAPI}")));
    crawl.web.set(API, OPENAPI, Answer::status(500));
    for _ in 0..2 {
        crawl.pass_again().await;
        assert_eq!(
            declared(&crawl, &at(PLUGIN)).await,
            ["own_op"],
            "the capabilities that were read are kept"
        );
        let fetch = crawl.fetch(SITE, PLUGIN).await;
        assert_eq!(fetch.outcome, FetchOutcome::NotReached, "{fetch:?}");
    }
    crawl.web.set(API, OPENAPI, unstored("new_op"));
    crawl.pass_again().await;
    assert_eq!(declared(&crawl, &at(PLUGIN)).await, ["new_op"]);
    let id = ManifestId::of(&ManifestUrl::parse(&at(PLUGIN)).unwrap());
    let read = crawl.store.manifest_find(&id).await.unwrap().unwrap().manifest;
    assert_eq!(read.description.as_deref(), Some("new"));
    assert_eq!(crawl.pass_again().await.manifests_changed, 0);
}

/// Another document names known manifests as its parts, in a visit in which these manifests change.
#[tokio::test]
async fn a_known_manifest_that_is_named_as_a_part_is_read_when_it_changes() {
    const MANY: usize = 14;
    let users: Vec<String> = (0..MANY).map(|number| format!("/u/g{number:02}.json")).collect();
    let plugins: Vec<String> = (0..MANY).map(|number| format!("/u/e{number:02}.json")).collect();
    let mut site = Host::new(SITE).robots("");
    for (number, path) in users.iter().enumerate() {
        site = site.route(path, card(&format!("old_{number}")));
    }
    let urls = |paths: &[String]| paths.iter().map(|path| at(path)).collect::<Vec<_>>();
    let honest =
        Host::new("honest.example").robots("").route(CATALOG, catalog("honest.example", &urls(&users)));
    let evil = Host::new("evil.example").robots("").route(CATALOG, catalog("evil.example", &[]));
    let mut crawl = crawl_of(vec![site, honest, evil], "plat.example\nhonest.example\nevil.example").await;
    for _ in 0..4 {
        crawl.pass_again().await;
    }
    for (number, path) in users.iter().enumerate() {
        assert_eq!(declared(&crawl, &at(path)).await, [format!("old_{number}")], "{path}");
    }
    for (number, (user, plugin_path)) in users.iter().zip(&plugins).enumerate() {
        crawl.web.set(SITE, plugin_path, plugin(&format!("evil {number}"), &at(user)));
        crawl.web.set(SITE, user, card(&format!("new_{number}")));
    }
    crawl.web.set("evil.example", CATALOG, catalog("evil.example", &urls(&plugins)));
    for _ in 0..5 {
        crawl.pass_again().await;
    }
    for (number, path) in users.iter().enumerate() {
        assert_eq!(declared(&crawl, &at(path)).await, [format!("new_{number}")], "{path}");
    }
    let report = crawl.report(SITE).await;
    let fetches = report.visits.iter().flat_map(|visit| &visit.fetches);
    let of_users = fetches.filter(|fetch| fetch.url.path().starts_with("/u/g"));
    for fetch in of_users {
        let from = fetch.linked_from.as_ref().unwrap().site();
        assert_eq!(from.as_str(), "honest.example", "a plugin is not its source: {fetch:?}");
    }
}

/// One site names documents that do not exist yet, or names them as parts of its manifest. Another site names them later.
#[tokio::test]
async fn the_first_source_of_a_document_can_be_replaced() {
    let user = |number: usize| at(&format!("/u/g{number}.json"));
    let users: Vec<String> = (0..4).map(user).collect();
    let plugins = [at("/u/e0.json"), at("/u/e1.json")];
    let early: Vec<String> = users[..2].iter().chain(&plugins).cloned().collect();
    let site = Host::new(SITE)
        .robots("")
        .route("/u/e0.json", plugin("evil", &users[2]))
        .route("/u/e1.json", plugin("evil", &users[3]))
        .route("/u/g2.json", card("g2"))
        .route("/u/g3.json", card("g3"));
    let evil = Host::new("evil.example").robots("").route(CATALOG, catalog("evil.example", &early));
    let honest = Host::new("honest.example").robots("").route(CATALOG, catalog("honest.example", &[]));
    let mut crawl = crawl_of(vec![site, evil, honest], "plat.example\nevil.example\nhonest.example").await;
    for _ in 0..4 {
        crawl.pass_again().await;
    }
    for url in &users {
        assert!(declared(&crawl, url).await.is_empty(), "{url}");
    }
    crawl.web.set(SITE, "/u/g0.json", card("g0"));
    crawl.web.set(SITE, "/u/g1.json", card("g1"));
    crawl.web.set("honest.example", CATALOG, catalog("honest.example", &users));
    for _ in 0..3 {
        crawl.pass_again().await;
    }
    for url in &users {
        assert_eq!(declared(&crawl, url).await.len(), 1, "{url}");
    }
}

/// Lets the stored copies of robots.txt of the site expire.
async fn expire_robots(crawl: &Crawl) {
    let request = LeaseRequest {
        worker: WorkerId::new("expiry"),
        sites_max: 1,
        duration: Duration::from_mins(1),
        due_before: DateTime::<Utc>::MAX_UTC,
        only: Some(vec![SiteName::parse(SITE).unwrap()]),
        groups: GroupSet::all(),
    };
    let leased = crawl.store.sites_lease(&request, now()).await.unwrap().pop().unwrap();
    let copies = leased.site.hosts.iter().filter_map(|host| host.robots.clone());
    let expires_at = now() - TimeDelta::seconds(1);
    let expired: Vec<_> = copies.map(|copy| RobotsRecord { expires_at, ..copy }).collect();
    crawl.store.standalone_end(&leased.token, &expired).await.unwrap();
}

#[tokio::test]
async fn a_rule_of_robots_removes_documents_that_the_visit_would_not_request() {
    const MANY: usize = 110;
    let paths: Vec<String> = (0..MANY).map(|number| format!("/d/{number:03}.json")).collect();
    let urls: Vec<String> = paths.iter().map(|path| at(path)).collect();
    let mut site = Host::new(SITE)
        .robots("User-agent: *\nAllow: /\n")
        .route("/agent.json", card("own"))
        .route(CATALOG, catalog(SITE, &urls));
    for path in &paths {
        site = site.route(path, card(&path.replace(['/', '.'], "_")));
    }
    let mut crawl = crawl_of(vec![site], SITE).await;
    for _ in 0..4 {
        crawl.pass_again().await;
    }
    assert!(crawl.report(SITE).await.summary.manifests > 100);
    crawl.web.set(SITE, "/robots.txt", Answer::text("User-agent: *\nDisallow: /d/\n"));
    expire_robots(&crawl).await;
    let summary = crawl.pass_again().await;
    assert!(summary.manifests_removed > 100, "{summary:?}");
    assert!(crawl.paths(SITE).iter().all(|path| !path.starts_with("/d/")), "{:?}", crawl.paths(SITE));
    for url in &urls {
        assert!(declared(&crawl, url).await.is_empty(), "{url}");
    }
    assert_eq!(declared(&crawl, &at("/agent.json")).await, ["own"]);
    let report = crawl.report(SITE).await;
    let fetches: Vec<_> = report.visits[0].fetches.iter().map(|fetch| fetch.url.as_str()).collect();
    let mut once = fetches.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(fetches.len(), once.len(), "each has one result");
}
