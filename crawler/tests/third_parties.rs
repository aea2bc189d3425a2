//! Politeness towards hosts that other sites link to: the rules of the requested host apply, for every referring site.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

mod support;

use std::net::Ipv4Addr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use crawler::config::{Mode, SeedLists, SeedSource, WithoutSeeds};
use crawler::egress::{Cause, Egress, HostsFile, LeaveCheck, OwnRules};
use http::HeaderMap;
use manifest::{Discovery, ManifestId, ManifestUrl, NamedBy, SiteName};
use policy::delay::day_of;
use policy::plan::canary_path;
use policy::{BodyKind, FetchOutcome, RobotsKind, VisitEnd};
use store::{ClockWrite, GroupSet, HostOrigin, LeaseRequest, RobotsRecord, Seed, SeedOrigin, WorkerId};
use support::{AWP, Crawl, now, shop};
use testweb::{Addresses, Answer, Host, Web};

const MANIFEST: &str = "/.well-known/agent.json";
const VICTIM: &str = "victim.example";
const LIST: &str = "/top.txt";
const ATTACKERS: usize = 12;

fn attackers(make: impl Fn(Host) -> Host) -> Vec<Host> {
    (0..ATTACKERS).map(|number| make(Host::new(&format!("attacker{number}.example")))).collect()
}

/// A crawl of a test web with the attackers and the victim. Only the attackers are seeded.
async fn crawl_with(attackers: Vec<Host>, victim: Host) -> Crawl {
    let seeds: Vec<String> = attackers.iter().map(|host| host.name().to_owned()).collect();
    let web = Web::builder().hosts(attackers).host(victim).start().await.unwrap();
    Crawl::on(web, &seeds.join("\n")).await
}

/// Lets the stored copies of robots.txt of a site expire.
async fn expire_robots(crawl: &Crawl, site: &str) {
    let request = LeaseRequest {
        worker: WorkerId::new("expiry"),
        sites_max: 1,
        duration: Duration::from_mins(1),
        due_before: DateTime::<Utc>::MAX_UTC,
        only: Some(vec![SiteName::parse(site).unwrap()]),
        groups: GroupSet::all(),
    };
    let leased = crawl.store.sites_lease(&request, now()).await.unwrap().pop().unwrap();
    let copies = leased.site.hosts.iter().filter_map(|host| host.robots.clone());
    let expires_at = now() - TimeDelta::seconds(1);
    let expired: Vec<_> = copies.map(|copy| RobotsRecord { expires_at, ..copy }).collect();
    assert!(!expired.is_empty(), "no copy is kept of {site}");
    crawl.store.standalone_end(&leased.token, &expired).await.unwrap();
}

/// Why a list of seeds at this URL was not read.
async fn refused_list(crawl: &mut Crawl, url: &str) -> String {
    crawl.config.seeds = vec![SeedSource::Url(ManifestUrl::parse(url).unwrap())];
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), crawler::Cancel::default(), &|_| ());
    let ran = tokio::time::timeout(Duration::from_mins(1), run).await.expect("an end");
    ran.expect_err("a list that is not read").to_string()
}

fn list_host(robots: Answer) -> Host {
    Host::new("lists.example").route("/robots.txt", robots).file(LIST, "text/plain", "shop.example\n")
}

async fn list_crawl(hosts: Vec<Host>) -> Crawl {
    let web = Web::builder().hosts(hosts).host(shop()).start().await.unwrap();
    Crawl::on(web, "").await
}

/// The robots.txt of every attacker redirects to the victim. The victim gets no request in visits to the attackers. It becomes a seed and
/// is visited once, under its own robots.txt.
#[tokio::test]
async fn does_not_follow_robots_to_another_site() {
    for target in ["https://victim.example/robots.txt", "https://victim.example/private/page"] {
        let hosts = attackers(|host| host.redirect("/robots.txt", 302, target).route(MANIFEST, AWP));
        let crawl = crawl_with(hosts, Host::new(VICTIM).robots("User-agent: *\nDisallow: /\n")).await;
        crawl.pass().await;
        assert_eq!(crawl.hits(VICTIM).len(), 0, "{target}");
        for number in 0..ATTACKERS {
            let name = format!("attacker{number}.example");
            assert_eq!(crawl.paths(&name), ["/robots.txt"], "unreachable does not permit anything");
            let report = crawl.report(&name).await;
            assert_eq!(report.visits[0].end, VisitEnd::RobotsUnreachable);
            let robots = report.state.hosts[0].robots.as_ref().unwrap();
            assert_eq!(robots.kind, RobotsKind::Unreachable);
            assert_eq!(robots.cause.as_deref(), Some("redirects_to_other_site victim.example"));
        }
        crawl.pass().await;
        assert_eq!(crawl.paths(VICTIM), ["/robots.txt"], "the victim is visited like any other site");
    }
}

/// Tests every way in which one site can refer to another. None of them causes a request to the other site in a visit to the first.
#[tokio::test]
async fn a_visit_sends_no_request_to_another_site() {
    let url = format!("https://{VICTIM}/private.json");
    let card = format!(r#"{{"arws_version":"1.0","name":"A","description":"B","tools":"{url}"}}"#);
    let page = format!("<html><head><link rel='agent-manifest' href='{url}'></head></html>");
    let robots = format!("User-agent: *\nAllow: /\nAgentmap: {url}\n");
    let hosts = attackers(|host| {
        host.robots(&robots)
            .redirect("/agent.json", 302, &url)
            .file("/.well-known/agent-manifest.json", "application/json", card.clone())
            .route("/", Answer::html(page.clone()).header("link", &format!("<{url}>; rel=\"ard\"")))
    });
    let victim = Host::new(VICTIM).robots("User-agent: *\nDisallow: /private\n");
    let crawl = crawl_with(hosts, victim.file("/private.json", "application/json", AWP)).await;
    crawl.pass().await;
    assert_eq!(crawl.hits(VICTIM).len(), 0);
    assert_eq!(crawl.outcome("attacker0.example", "/agent.json").await, FetchOutcome::RedirectedAway);
    crawl.pass().await;
    let paths = crawl.paths(VICTIM);
    assert_eq!(paths.first().map(String::as_str), Some("/robots.txt"));
    assert_eq!(paths.iter().filter(|path| *path == "/robots.txt").count(), 1);
    assert!(!paths.contains(&"/private.json".to_owned()), "{paths:?}");
}

#[tokio::test]
async fn applies_retry_after_and_crawl_delay_of_a_host_for_every_referring_site() {
    let limited = Host::new(VICTIM).catch_all(Answer::retry_after(429, "3600"));
    let slow = Host::new(VICTIM).robots("User-agent: *\nCrawl-delay: 30\n").file(
        LIST,
        "text/plain",
        "shop.example\n",
    );
    for victim in [limited, slow] {
        let hosts = attackers(|host| host.redirect("/robots.txt", 302, "https://victim.example/robots.txt"));
        let mut crawl = crawl_with(hosts, victim).await;
        let seeds = crawl.config.seeds.clone();
        crawl.config.seeds = vec![SeedSource::Text { name: "seeds".to_owned(), text: VICTIM.to_owned() }];
        crawl.pass().await;
        assert_eq!(crawl.paths(VICTIM), ["/robots.txt"]);
        crawl.config.seeds = seeds;
        crawl.config.revisit_older_than = Some(Duration::ZERO);
        crawl.pass().await;
        let refused = refused_list(&mut crawl, &format!("https://{VICTIM}{LIST}")).await;
        assert!(
            refused.contains("may not be requested before") || refused.contains("does not allow it"),
            "{refused}"
        );
        assert_eq!(crawl.paths(VICTIM), ["/robots.txt"], "within its delay");
    }
}

#[tokio::test]
async fn sessions_reject_hosts_of_other_sites() {
    let crawl = crawl_with(attackers(|host| host), Host::new(VICTIM)).await;
    let egress = Egress::new(crawl.config.egress.clone(), || DateTime::UNIX_EPOCH).unwrap();
    let session = egress.session(SiteName::parse("attacker0.example").unwrap());
    let victim = ManifestUrl::parse("https://victim.example/").unwrap();
    assert_eq!(session.resolve(&victim.host()).await.unwrap_err().cause, Cause::OtherSite);
    let leave = LeaveCheck::new(|| true);
    let fetched = session.fetch(&victim, BodyKind::Robots, &HeaderMap::new(), leave.clone()).await;
    assert_eq!(fetched.unwrap_err().cause, Cause::OtherSite);
    let posted =
        session.post_json(&victim, BodyKind::Manifest, (HeaderMap::new(), String::new()), leave).await;
    assert_eq!(posted.unwrap_err().cause, Cause::OtherSite);
    assert!(crawl.web.log().connections().is_empty());
    let own: manifest::Host = "www.attacker0.example".parse().unwrap();
    assert_ne!(session.resolve(&own).await.map_err(|failure| failure.cause).err(), Some(Cause::OtherSite));
}

/// A robots.txt on another host of the site is requested under the clock and the Crawl-delay of that host.
#[tokio::test]
async fn redirected_robots_uses_the_clock_of_its_host() {
    let www = Host::new("www.shop.example").robots("User-agent: *\nCrawl-delay: 30\n");
    let api =
        Host::new("api.shop.example").redirect("/robots.txt", 301, "https://www.shop.example/robots.txt");
    let apex = shop().redirect("/robots.txt", 301, "https://www.shop.example/robots.txt");
    let crawl = Crawl::of([www, api, apex]).await;
    let summary = crawl.pass().await;
    assert_eq!(summary.parked.len(), 1, "{summary:?}");
    assert_eq!(crawl.paths("www.shop.example"), ["/robots.txt"], "once within its Crawl-delay");
    crawl.pass().await;
    assert_eq!(crawl.paths("www.shop.example"), ["/robots.txt"]);
    let elsewhere = shop().redirect("/robots.txt", 301, "https://www.shop.example/rules.txt");
    let crawl = Crawl::of([elsewhere]).await;
    crawl.pass().await;
    let report = crawl.report("shop.example").await;
    assert_eq!(report.visits[0].end, VisitEnd::RobotsDenied, "the rules for that path are not known");
}

/// The file is read for every 2xx status, but a partial file allows nothing. Responses with 204 and 205 have no body (RFC 9110 §15.3.5,
/// §15.3.6), which counts as an empty file.
#[tokio::test]
async fn robots_with_any_2xx_are_read() {
    let answers = (200..=299).filter(|status| ![204, 205].contains(status));
    let hosts: Vec<Host> = answers
        .map(|status| {
            let robots = Answer::text("User-agent: *\nDisallow: /\n").with_status(status);
            Host::new(&format!("site{status}.example")).route("/robots.txt", robots).route(MANIFEST, AWP)
        })
        .collect();
    let names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
    let crawl = Crawl::of(hosts).await;
    crawl.pass().await;
    for name in names {
        assert_eq!(crawl.paths(&name), ["/robots.txt"], "{name}");
    }
    for status in [204, 205] {
        let empty = Host::new("empty.example").route("/robots.txt", Answer::status(status));
        let crawl = Crawl::of([empty.route(MANIFEST, AWP)]).await;
        crawl.pass().await;
        assert_eq!(crawl.report("empty.example").await.visits[0].end, VisitEnd::Completed, "{status}");
    }
}

#[tokio::test]
async fn retry_after_is_obeyed_on_every_answer_that_carries_it() {
    let asking = |answer: Answer| answer.header("retry-after", "3600");
    let answers = [
        asking(Answer::redirect(302, "/moved.json")),
        asking(Answer::redirect(302, "https://other.example/x")),
        asking(Answer::json(AWP)),
        asking(Answer::status(404)),
        asking(Answer::status(500)),
        asking(Answer::html("<p>prove it").header("cf-mitigated", "challenge")),
        asking(Answer::json("{}").header("content-encoding", "gzip, gzip")),
    ];
    let hosts: Vec<Host> = answers
        .into_iter()
        .enumerate()
        .flat_map(|(number, answer)| {
            let file = Host::new(&format!("file{number}.example")).robots("").route(MANIFEST, answer.clone());
            [file, Host::new(&format!("robots{number}.example")).route("/robots.txt", answer)]
        })
        .collect();
    let names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
    let mut crawl = Crawl::of(hosts).await;
    crawl.pass().await;
    for name in &names {
        let wanted = if name.starts_with("file") { 2 } else { 1 };
        assert_eq!(crawl.paths(name).len(), wanted, "{name}: {:?}", crawl.paths(name));
        let wait = crawl.report(name).await.state.not_before.unwrap() - now();
        assert!((3_400..=3_600).contains(&wait.num_seconds()), "{name}: {wait}");
    }
    crawl.pass_again().await;
    assert_eq!(crawl.web.log().hit_count(), 0, "requests of the operator also wait");
}

#[tokio::test]
async fn three_bot_walls_of_any_status_end_a_visit() {
    for status in [200, 202, 302, 404, 503] {
        let wall = Answer::html("<p>prove it").with_status(status).header("cf-mitigated", "challenge");
        let walled = Host::new("wall.example").robots("").catch_all(wall.clone());
        let robots = Host::new("robots.example").route("/robots.txt", wall);
        let crawl = Crawl::of([walled, robots]).await;
        crawl.pass().await;
        let report = crawl.report("wall.example").await;
        assert_eq!(
            (report.visits[0].end, crawl.paths("wall.example").len()),
            (VisitEnd::Blocked, 4),
            "{status}"
        );
        let report = crawl.report("robots.example").await;
        assert_eq!(report.visits[0].end, VisitEnd::RobotsUnreachable, "{status}");
        assert_eq!(crawl.paths("robots.example"), ["/robots.txt"], "{status}");
        assert_eq!(report.state.hosts[0].robots.as_ref().unwrap().cause.as_deref(), Some("bot_wall"));
    }
}

#[tokio::test]
async fn keeps_manifests_until_the_third_bot_wall_for_robots() {
    let mut crawl = Crawl::of([shop()]).await;
    assert_eq!(crawl.pass().await.manifests_added, 1);
    let wall = Answer::html("<p>prove it").with_status(403).header("cf-mitigated", "challenge");
    crawl.web.set("shop.example", "/robots.txt", wall);
    let unreachable = (VisitEnd::RobotsUnreachable, RobotsKind::Unreachable, 0);
    let denied = (VisitEnd::RobotsDenied, RobotsKind::Denied, 1);
    for (number, (end, kind, removed)) in [unreachable, unreachable, denied].into_iter().enumerate() {
        expire_robots(&crawl, "shop.example").await;
        let summary = crawl.pass_again().await;
        let report = crawl.report("shop.example").await;
        let robots = report.state.hosts[0].robots.clone().unwrap();
        assert_eq!((report.visits[0].end, robots.kind), (end, kind), "wall {number}");
        assert_eq!(robots.cause.as_deref(), Some("bot_wall"));
        assert_eq!(summary.manifests_removed, removed, "wall {number}");
        assert_eq!(crawl.paths("shop.example"), ["/robots.txt"]);
    }
}

/// The target of a redirected robots.txt becomes a seed if it may be a site; another host of the same site is followed.
#[tokio::test]
async fn redirected_robots_adds_only_valid_sites_as_seeds() {
    for (target, sites, end) in [
        ("https://victim.example/robots.txt", 2, VisitEnd::RobotsUnreachable),
        ("https://victim.internal/robots.txt", 1, VisitEnd::RobotsUnreachable),
        ("https://victim.onion/robots.txt", 1, VisitEnd::RobotsUnreachable),
        ("https://co.uk/robots.txt", 1, VisitEnd::RobotsUnreachable),
        ("https://victim.example:8443/robots.txt", 1, VisitEnd::RobotsDenied),
        ("https://192.0.2.1/robots.txt", 1, VisitEnd::RobotsDenied),
        ("https://www.shop.example/robots.txt", 1, VisitEnd::Completed),
        ("https://www.shop.example/rules.txt", 1, VisitEnd::RobotsDenied),
    ] {
        let www = Host::new("www.shop.example").robots("User-agent: *\nAllow: /\n");
        let shop = shop().redirect("/robots.txt", 301, target);
        let crawl =
            Crawl::on(Web::builder().host(shop).host(www).start().await.unwrap(), "shop.example").await;
        crawl.pass().await;
        assert_eq!(crawl.report("shop.example").await.visits[0].end, end, "{target}");
        assert_eq!(crawl.store.stats(now()).await.unwrap().sites, sites, "{target}");
    }
}

/// A site whose catalog links to these URLs.
fn naming(urls: impl Iterator<Item = String>) -> Host {
    let named: Vec<_> = urls.map(|url| format!(r#"{{"href":"{url}"}}"#)).collect();
    let named = named.join(",");
    let catalog =
        format!(r#"{{"linkset":[{{"anchor":"https://attacker.example/","service-desc":[{named}]}}]}}"#);
    Host::new("attacker.example").file("/.well-known/api-catalog", "application/linkset+json", catalog)
}

/// Another site names URLs of the victim that fail, are refused, limited, missing or too large.
#[tokio::test]
async fn requests_urls_that_another_site_names_once() {
    const NAMED: usize = 25;
    for (case, answer) in [
        ("fails", Answer::status(500)),
        ("refused", Answer::status(403)),
        ("limited", Answer::retry_after(429, "604800")),
        ("missing", Answer::status(404)),
        ("page", Answer::html("<html></html>")),
        ("large", Answer::json(vec![b' '; 3 * 1024 * 1024])),
    ] {
        let victim = (0..NAMED).fold(Host::new(VICTIM).route(MANIFEST, AWP), |host, number| {
            host.route(&format!("/!{number:03}.json"), answer.clone())
        });
        let attacker = naming((0..NAMED).map(|number| format!("https://{VICTIM}/!{number:03}.json")));
        let web = Web::builder().host(victim).host(attacker).start().await.unwrap();
        let mut crawl = Crawl::on(web, &format!("{VICTIM}\nattacker.example")).await;
        let mut paths = Vec::new();
        crawl.pass().await;
        for _ in 0..3 {
            paths.extend(crawl.paths(VICTIM));
            crawl.pass_again().await;
        }
        let passes = if case == "limited" { 2 } else { 3 };
        let own = paths.iter().filter(|path| *path == MANIFEST).count();
        assert!(own >= passes, "{case}: the manifest is read in each visit: {paths:?}");
        let mut named: Vec<_> = paths.iter().filter(|path| path.starts_with("/!")).collect();
        assert!((1..=20).contains(&named.len()), "{case}: ten in a visit: {named:?}");
        let all = named.len();
        named.sort();
        named.dedup();
        assert_eq!(named.len(), all, "{case}: each is requested once");
        let report = crawl.report(VICTIM).await;
        assert!(report.visits.iter().all(|visit| visit.end == VisitEnd::Completed), "{case}: {report:?}");
        assert_eq!((report.summary.manifests, report.state.failures_in_row), (1, 0), "{case}");
    }
}

/// Who names the manifest at a path of the victim, as stored.
async fn named_by(crawl: &Crawl, path: &str) -> NamedBy {
    let url = ManifestUrl::parse(&format!("https://{VICTIM}{path}")).unwrap();
    let stored = crawl.store.manifest_find(&ManifestId::of(&url)).await.unwrap();
    stored.unwrap_or_else(|| panic!("no manifest at {url}")).named_by
}

/// A file of a user of the victim. At first another site links to it, and later a catalog of the victim too.
#[tokio::test]
async fn stores_that_only_others_name_a_document() {
    const UPLOAD: &str = "/u/someone/agent.json";
    const CATALOG: &str = "/.well-known/api-catalog";
    let catalog = |paths: &[&str]| {
        let links: Vec<_> =
            paths.iter().map(|path| format!(r#"{{"href":"https://{VICTIM}{path}"}}"#)).collect();
        format!(r#"{{"linkset":[{{"anchor":"https://{VICTIM}/","service-desc":[{}]}}]}}"#, links.join(","))
    };
    let victim = Host::new(VICTIM)
        .route(MANIFEST, AWP)
        .file(UPLOAD, "application/json", AWP.replace("buy_book", "cancel_order"))
        .file(CATALOG, "application/linkset+json", catalog(&[MANIFEST]));
    let attacker = naming(std::iter::once(format!("https://{VICTIM}{UPLOAD}")));
    let web = Web::builder().host(victim).host(attacker).start().await.unwrap();
    let mut crawl = Crawl::on(web, &format!("{VICTIM}\nattacker.example")).await;
    crawl.pass().await;
    crawl.pass_again().await;
    assert_eq!(named_by(&crawl, MANIFEST).await, NamedBy::Site);
    assert_eq!(named_by(&crawl, UPLOAD).await, NamedBy::Others);
    let both = catalog(&[MANIFEST, UPLOAD]);
    crawl.web.set_file(VICTIM, CATALOG, "application/linkset+json", both);
    crawl.pass_again().await;
    assert_eq!(named_by(&crawl, UPLOAD).await, NamedBy::Site);
    crawl.pass_again().await;
    assert_eq!(named_by(&crawl, UPLOAD).await, NamedBy::Site, "and it stays so");
    crawl.web.set_file(VICTIM, CATALOG, "application/linkset+json", catalog(&[MANIFEST]));
    for _ in 0..2 {
        crawl.pass_again().await;
        assert_eq!(named_by(&crawl, UPLOAD).await, NamedBy::Others, "the site no longer names the document");
    }
}

/// Another site names hosts of the victim that do not exist, deny access, fail, limit requests, or have no manifest.
#[tokio::test]
async fn visits_hosts_that_another_site_names_last() {
    const NAMED: usize = 60;
    for (case, answer) in [
        ("dead", None),
        ("refused", Some(Answer::status(403))),
        ("fails", Some(Answer::status(503))),
        ("limited", Some(Answer::status(429))),
        ("missing", Some(Answer::status(404))),
    ] {
        let names: Vec<String> = (0..NAMED).map(|number| format!("a{number:02}.{VICTIM}")).collect();
        let hosts = answer
            .iter()
            .flat_map(|answer| names.iter().map(|name| Host::new(name).route("/robots.txt", answer.clone())));
        let urls = names.iter().map(|name| format!("https://{name}/agent.json"));
        let web = Web::builder()
            .hosts(hosts.collect::<Vec<_>>())
            .host(Host::new(VICTIM).route(MANIFEST, AWP))
            .host(naming(urls))
            .start();
        let mut crawl = Crawl::on(web.await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
        crawl.pass().await;
        for pass in 0..3 {
            crawl.pass_again().await;
            assert!(crawl.paths(VICTIM).contains(&MANIFEST.to_owned()), "{case}: the manifest is read");
            let searched = names.iter().filter(|name| !crawl.hits(name).is_empty()).count();
            assert!(searched <= 20, "{case}: ten hosts and ten URLs per visit: {searched} in visit {pass}");
            let first_of_others =
                names.iter().flat_map(|name| crawl.hits(name)).map(|hit| hit.started_us).min();
            let last_of_own = crawl.hits(VICTIM).iter().map(|hit| hit.started_us).max();
            assert!(
                first_of_others.is_none_or(|at| Some(at) > last_of_own),
                "{case}: the site's own hosts are requested first"
            );
        }
        let report = crawl.report(VICTIM).await;
        assert!(report.visits.iter().all(|visit| visit.end == VisitEnd::Completed), "{case}: {report:?}");
        assert_eq!((report.summary.manifests, report.state.failures_in_row), (1, 0), "{case}");
    }
}

/// A host of a customer of the victim, to which another site links, asks for a delay of a week.
#[tokio::test]
async fn retry_after_of_a_host_that_only_others_name_delays_only_this_host() {
    let names = ["a00", "b00"].map(|name| format!("{name}.{VICTIM}"));
    let limited = Host::new(&names[0]).robots("").catch_all(Answer::retry_after(429, "604800"));
    let other = Host::new(&names[1]).robots("");
    let urls = names.iter().map(|name| format!("https://{name}/agent.json"));
    let web = Web::builder()
        .host(Host::new(VICTIM).route(MANIFEST, AWP))
        .hosts([limited, other])
        .host(naming(urls))
        .start();
    let mut crawl = Crawl::on(web.await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
    crawl.pass().await;
    let mut requested = [0, 1].map(|number| crawl.hits(&names[number]).len());
    for pass in 0..3 {
        crawl.pass_again().await;
        assert!(crawl.paths(VICTIM).contains(&MANIFEST.to_owned()), "pass {pass}: the manifest is read");
        for (count, name) in requested.iter_mut().zip(&names) {
            *count += crawl.hits(name).len();
        }
    }
    assert_eq!(requested[0], 2, "robots.txt and one file, and nothing during the delay");
    assert!(requested[1] > 2, "another host is searched meanwhile: {requested:?}");
    let state = crawl.report(VICTIM).await.state;
    assert_eq!(state.not_before, None);
    let host = state.hosts.iter().find(|known| known.host.as_str() == names[0]).unwrap();
    assert!(host.next_ok_at.unwrap() - now() > TimeDelta::days(6), "{host:?}");
}

/// Another site, or a user in a catalog of the site, links to an endpoint that returns any header, or that has a strict limit of its own.
#[tokio::test]
async fn retry_after_of_a_link_delays_the_site_for_two_hours() {
    let echo = format!("https://{VICTIM}/echo.json");
    let catalog = naming([echo.clone()].into_iter());
    for busy in [Answer::json("{}").header("retry-after", "604800"), Answer::retry_after(429, "604800")] {
        let victim = || Host::new(VICTIM).route(MANIFEST, AWP).route("/echo.json", busy.clone());
        let own = format!(
            r#"{{"linkset":[{{"anchor":"https://{VICTIM}/","service-desc":[{{"href":"{echo}"}}]}}]}}"#
        );
        let with_own = victim().file("/.well-known/api-catalog", "application/linkset+json", own);
        for web in [Web::builder().host(victim()).host(catalog.clone()), Web::builder().host(with_own)] {
            let mut crawl =
                Crawl::on(web.start().await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
            crawl.pass().await;
            let mut paths = crawl.paths(VICTIM);
            if !paths.contains(&"/echo.json".to_owned()) {
                crawl.pass_again().await;
                paths = crawl.paths(VICTIM);
            }
            assert_eq!(paths.iter().filter(|path| *path == "/echo.json").count(), 1, "{paths:?}");
            let wait = crawl.report(VICTIM).await.state.not_before.unwrap() - now();
            assert!((7_000..=7_200).contains(&wait.num_seconds()), "{wait}");
            crawl.pass_again().await;
            assert!(crawl.hits(VICTIM).is_empty(), "nothing is requested in this time");
        }
    }
}

/// A host below the domain may belong to a customer, even if the operator lists it: it cannot delay the domain.
#[tokio::test]
async fn retry_after_of_a_listed_host_delays_only_this_host() {
    let customer = format!("a00.{VICTIM}");
    for busy in [Answer::retry_after(429, "604800"), Answer::retry_after(404, "604800")] {
        let limited = Host::new(&customer).route("/robots.txt", busy);
        let web = Web::builder().host(Host::new(VICTIM).route(MANIFEST, AWP)).host(limited).start();
        let mut crawl = Crawl::on(web.await.unwrap(), &format!("{VICTIM}\n{customer}")).await;
        for pass in 0..3 {
            let requested = if pass == 0 { crawl.pass().await } else { crawl.pass_again().await };
            let paths = crawl.paths(VICTIM);
            assert!(paths.contains(&MANIFEST.to_owned()), "pass {pass}: {requested:?}, {paths:?}");
        }
        let state = crawl.report(VICTIM).await.state;
        assert_eq!(state.not_before, None);
        let host = state.hosts.iter().find(|known| known.host.as_str() == customer).unwrap();
        assert!(host.next_ok_at.unwrap() - now() > TimeDelta::days(6), "{host:?}");
        assert!(crawl.hits(&customer).is_empty(), "nothing is requested during the delay");
    }
}

/// Responses of hosts that others name are not evidence about the site: a dead site stays dead.
#[tokio::test]
async fn reports_a_dead_site_despite_hosts_that_another_site_names() {
    let named = Host::new("a00.victim.example");
    let web = Web::builder()
        .host(named)
        .host(naming(std::iter::once("https://a00.victim.example/x.json".to_owned())));
    let mut crawl = Crawl::on(web.start().await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
    crawl.pass().await;
    crawl.pass_again().await;
    assert_eq!(crawl.report(VICTIM).await.visits[0].end, VisitEnd::DnsDead);
}

/// One document at many submitted URLs is one manifest. At URLs that the operator lists it is one manifest for each URL.
#[tokio::test]
async fn submissions_with_queries_do_not_duplicate_a_manifest() {
    let mut crawl = Crawl::of([Host::new(VICTIM).route(MANIFEST, AWP)]).await;
    crawl.pass().await;
    let copies = |origin: SeedOrigin, key: &str| {
        let url =
            |number: u32| ManifestUrl::parse(&format!("https://{VICTIM}{MANIFEST}?{key}={number}")).unwrap();
        let seed = |url: ManifestUrl| Seed {
            host: url.host(),
            url: Some(url),
            rank: None,
            origin: origin.clone(),
            revisit_now: true,
        };
        (0..4).map(|number| seed(url(number))).collect::<Vec<_>>()
    };
    for (origin, key, manifests) in [(SeedOrigin::Submitted, "s", 1), (SeedOrigin::File, "f", 5)] {
        crawl.store.seeds_add(&copies(origin, key), now()).await.unwrap();
        crawl.pass_again().await;
        assert_eq!(crawl.report(VICTIM).await.summary.manifests, manifests);
    }
    crawl.pass_again().await;
    let again = crawl.paths(VICTIM).into_iter().filter(|path| path.contains("?s=")).count();
    assert_eq!(again, 0, "a submitted copy is requested once");
}

/// One document, named at many URLs, is one manifest.
#[tokio::test]
async fn links_with_queries_do_not_duplicate_a_manifest() {
    let victim = Host::new(VICTIM).route(MANIFEST, AWP);
    let web = Web::builder()
        .host(victim)
        .host(naming((0..8).map(|number| format!("https://{VICTIM}{MANIFEST}?n={number}"))));
    let mut crawl = Crawl::on(web.start().await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
    crawl.pass().await;
    crawl.pass_again().await;
    assert_eq!(crawl.report(VICTIM).await.summary.manifests, 1);
    let copy = crawl.fetch(VICTIM, &format!("{MANIFEST}?n=0")).await;
    assert_eq!(copy.outcome, FetchOutcome::NotAManifest);
    let reason = copy.reason.unwrap();
    assert!(reason.contains("the same document is at https://victim.example/.well-known/"), "{reason}");
}

/// Two users have a document each, to which other sites link. Later both documents have the same content, and both stay in the index.
#[tokio::test]
async fn a_copy_does_not_displace_an_indexed_document() {
    let paths = ["/u/first.json", "/u/second.json"];
    let json = "application/json";
    let victim = Host::new(VICTIM).robots("").route(MANIFEST, AWP);
    let victim = paths
        .iter()
        .fold(victim, |victim, path| victim.file(path, json, awp_with(path.trim_start_matches("/u/"))));
    let web =
        Web::builder().host(victim).host(naming(paths.iter().map(|path| format!("https://{VICTIM}{path}"))));
    let mut crawl = Crawl::on(web.start().await.unwrap(), &format!("{VICTIM}\nattacker.example")).await;
    crawl.pass().await;
    crawl.pass_again().await;
    assert_eq!(crawl.report(VICTIM).await.summary.manifests, 3);
    for action in ["both", "again"] {
        for path in paths {
            crawl.web.set_file(VICTIM, path, json, awp_with(action));
        }
        for pass in 0..2 {
            crawl.pass_again().await;
            for path in paths {
                let outcome = crawl.outcome(VICTIM, path).await;
                assert!(outcome.is_present(), "{action}, pass {pass}: {path}: {outcome}");
            }
        }
        assert_eq!(crawl.report(VICTIM).await.summary.manifests, 3);
    }
}

/// The catalog lists more documents than one visit requests. After robots.txt forbids them, the next visit that reads it removes all of
/// them from the index, and keeps the documents that are still allowed.
#[tokio::test]
async fn a_robots_txt_that_forbids_documents_removes_all_of_them_in_one_visit() {
    const LISTED: usize = 100;
    const CATALOG: &str = "/.well-known/api-catalog";
    let json = "application/json";
    let listed: Vec<String> = (0..LISTED).map(|number| format!("/d/{number}.json")).collect();
    let kept = "/kept/agent.json".to_owned();
    let urls: Vec<String> =
        [&kept].into_iter().chain(&listed).map(|path| format!("https://{VICTIM}{path}")).collect();
    let catalog = catalog_of(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let victim = Host::new(VICTIM).robots("").file(CATALOG, "application/linkset+json", catalog);
    let victim = listed
        .iter()
        .fold(victim, |victim, path| victim.file(path, json, awp_with(&path.replace(['/', '.'], "_"))));
    let mut crawl = Crawl::of([victim.file(&kept, json, awp_with("kept"))]).await;
    for _ in 0..3 {
        crawl.pass_again().await;
    }
    let manifests = crawl.report(VICTIM).await.summary.manifests;
    assert!(manifests > 90, "more than a visit plans at its start: {manifests}");
    for rules in ["User-agent: *\nDisallow: /d/\n", "User-agent: *\nDisallow: /d/\nCrawl-delay: 0\n"] {
        crawl.web.set(VICTIM, "/robots.txt", Answer::text(rules));
        expire_robots(&crawl, VICTIM).await;
        crawl.pass_again().await;
        assert!(!crawl.paths(VICTIM).iter().any(|path| path.starts_with("/d/")), "{:?}", crawl.paths(VICTIM));
        let site = SiteName::parse(VICTIM).unwrap();
        let stored = crawl.store.manifests_of_site(&site).await.unwrap();
        let mut stored: Vec<&str> = stored.iter().map(|stored| stored.manifest.url.path()).collect();
        stored.sort_unstable();
        assert_eq!(stored, [CATALOG, kept.as_str()]);
        let visit = &crawl.report(VICTIM).await.visits[0];
        assert_eq!(visit.end, VisitEnd::Completed);
        let denied = visit.fetches.iter().filter(|fetch| fetch.outcome == FetchOutcome::RobotsDenied);
        let mut denied: Vec<&str> = denied.map(|fetch| fetch.url.path()).collect();
        denied.sort_unstable();
        let count = denied.len();
        denied.dedup();
        assert_eq!(denied.len(), count, "each is denied once");
    }
}

/// Validators of a robots.txt are sent only to the URL that gave them, and a 304 response of another URL does not confirm the copy.
#[tokio::test]
async fn does_not_send_validators_of_robots_to_redirect_targets() {
    const WWW: &str = "www.shop.example";
    let file = |etag: &str| Answer::text("User-agent: *\nAllow: /\n").etag(etag);
    let apex = shop().route("/robots.txt", file("\"apex\""));
    let web = Web::builder().host(apex).host(Host::new(WWW)).start().await.unwrap();
    let mut crawl = Crawl::on(web, "shop.example").await;
    crawl.pass().await;
    crawl.web.set(
        "shop.example",
        "/robots.txt",
        Answer::redirect(301, "https://www.shop.example/robots.txt"),
    );
    for (answer, sent_to_apex, end) in [
        (Answer::status(304), Some("\"apex\""), VisitEnd::RobotsUnreachable),
        (file("\"www\""), None, VisitEnd::Completed),
        (file("\"www\""), None, VisitEnd::Completed),
    ] {
        crawl.web.set(WWW, "/robots.txt", answer);
        expire_robots(&crawl, "shop.example").await;
        crawl.pass_again().await;
        let sent = |host: &str| {
            let hits = crawl.hits(host);
            let robots = hits.iter().find(|hit| hit.path == "/robots.txt").expect("a request for robots.txt");
            robots.request.if_none_match.clone()
        };
        assert_eq!(sent("shop.example").as_deref(), sent_to_apex);
        assert_eq!(sent(WWW), None, "requested on behalf of another host");
        assert_eq!(crawl.report("shop.example").await.visits[0].end, end);
    }
}

#[tokio::test]
async fn fetches_seed_lists_under_the_rules_of_their_host() {
    let mut crawl = list_crawl(vec![list_host(Answer::text("User-agent: *\nAllow: /\n"))]).await;
    crawl.config.seeds = vec![SeedSource::Url(ManifestUrl::parse("https://lists.example/top.txt").unwrap())];
    crawl.config.delay = Duration::from_millis(60);
    let summary = crawl.pass().await;
    assert_eq!((summary.seeds.read, summary.sites_visited), (1, 1), "{summary:?}");
    crawl.pass().await;
    assert_eq!(crawl.paths("lists.example"), ["/robots.txt", LIST, LIST], "the copy of robots.txt is kept");
    for pair in crawl.hits("lists.example").windows(2) {
        assert!(pair[1].started_us.saturating_sub(pair[0].ended_us) >= 60_000, "the gap holds: {pair:?}");
    }
    let site = SiteName::parse("lists.example").unwrap();
    crawl.store.site_block(&site, "by letter", now()).await.unwrap();
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("opted out"), "{refused}");
    assert_eq!(crawl.hits("lists.example").len(), 3);
}

#[tokio::test]
async fn does_not_read_lists_that_robots_forbids_or_that_must_wait() {
    for (robots, hits, reason) in [
        (Answer::text("User-agent: *\nDisallow: /top"), 1, "disallowed by line 2"),
        (Answer::text("User-agent: *\nCrawl-delay: 30"), 1, "may not be requested before"),
        (Answer::retry_after(404, "3600"), 1, "may not be requested before"),
    ] {
        let mut crawl = list_crawl(vec![list_host(robots)]).await;
        for _ in 0..2 {
            let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
            assert!(refused.contains(reason), "{refused}");
            assert_eq!(crawl.hits("lists.example").len(), hits, "{reason}: also the next time");
        }
        assert_eq!(crawl.hits("shop.example").len(), 0, "{reason}");
    }
}

/// Each start requests robots.txt or the list again, unless the server asked for a delay. The delay after which visits request robots.txt
/// again does not grow with the starts.
#[tokio::test]
async fn a_start_requests_a_list_again_that_failed() {
    let list = |robots: Answer, list: Answer| {
        Host::new("lists.example").route("/robots.txt", robots).route(LIST, list)
    };
    let (rules, fine) = (|| Answer::text(""), || Answer::text("shop.example\n"));
    for (host, each_start, reason) in [
        (
            list(Answer::status(500), fine()),
            "/robots.txt",
            "robots.txt of lists.example could not be read: the server answered 500",
        ),
        (
            list(Answer::status(503), fine()),
            "/robots.txt",
            "robots.txt of lists.example could not be read: the server answered 503",
        ),
        (
            list(Answer::redirect(302, "https://shop.example/robots.txt"), fine()),
            "/robots.txt",
            "robots.txt of lists.example could not be read: redirect to another site",
        ),
        (
            list(rules(), Answer::status(503)),
            LIST,
            "cannot fetch https://lists.example/top.txt: the server answered 503",
        ),
        (list(rules(), Answer::status(500)), LIST, "the server answered 500"),
    ] {
        let mut crawl = list_crawl(vec![host]).await;
        for start in 1..=3 {
            let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
            assert!(refused.contains(reason), "{refused}");
            assert!(refused.contains("it is requested again at the next start"), "{refused}");
            let requests = crawl.paths("lists.example").iter().filter(|path| **path == each_start).count();
            assert_eq!(requests, start, "{reason}");
        }
        assert_eq!(crawl.hits("shop.example").len(), 0, "{reason}");
        let report = crawl.report("lists.example").await;
        let robots = report.state.hosts.iter().find_map(|host| host.robots.clone()).expect("a robots.txt");
        assert!(robots.failures_in_row <= 1, "{robots:?}");
    }
}

/// A supervisor may restart a daemon all the time.
#[tokio::test]
async fn a_daemon_that_starts_again_waits_before_it_requests_an_unreadable_robots_txt() {
    for robots in [Answer::status(500), Answer::status(503)] {
        let mut crawl = list_crawl(vec![list_host(robots)]).await;
        crawl.config.mode = Mode::Daemon;
        for _ in 0..3 {
            let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
            assert!(refused.contains("robots.txt of lists.example could not be read"), "{refused}");
            assert!(refused.contains("by a daemon after an hour at the earliest"), "{refused}");
            assert_eq!(crawl.paths("lists.example"), ["/robots.txt"]);
        }
    }
}

/// The first start names the time, as the next ones do.
#[tokio::test]
async fn a_robots_txt_that_asks_for_a_delay_is_named_with_its_time() {
    for (name, robots) in [
        ("lists.example", Answer::retry_after(503, "7200")),
        ("lists.example", Answer::retry_after(429, "7200")),
        ("lists.example", Answer::status(429)),
        ("registry.lists.example", Answer::retry_after(503, "7200")),
    ] {
        let host = Host::new(name).route("/robots.txt", robots).file(LIST, "text/plain", "shop.example\n");
        let mut crawl = list_crawl(vec![host]).await;
        for start in 1..=2 {
            let refused = refused_list(&mut crawl, &format!("https://{name}{LIST}")).await;
            let asked = format!("{name} may not be requested before ");
            assert!(refused.contains(&asked) && refused.contains("start again after that time"), "{refused}");
            assert_eq!(refused.contains("for its robots.txt"), start == 1, "{refused}");
            assert_eq!(crawl.paths(name), ["/robots.txt"]);
        }
    }
}

#[tokio::test]
async fn redirects_of_a_list_obey_the_rules_of_their_target() {
    let to_victim =
        Host::new("lists.example").robots("").redirect(LIST, 302, "https://victim.example/private");
    let victim = Host::new(VICTIM).robots("User-agent: *\nDisallow: /private\n");
    let mut crawl =
        list_crawl(vec![to_victim, victim.file("/private", "text/plain", "shop.example\n")]).await;
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("robots.txt of victim.example does not allow it"), "{refused}");
    assert_eq!(crawl.paths(VICTIM), ["/robots.txt"]);
    let site = SiteName::parse(VICTIM).unwrap();
    crawl.store.site_block(&site, "by letter", now()).await.unwrap();
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("the owner of victim.example opted out"), "{refused}");
    assert_eq!(crawl.paths(VICTIM), ["/robots.txt"]);
}

/// The delay of a host below the domain is kept with the clock of the host.
#[tokio::test]
async fn a_host_below_a_domain_that_asked_for_a_delay_is_named_with_its_time() {
    let host = Host::new("registry.lists.example").robots("").route(LIST, Answer::retry_after(503, "3600"));
    let mut crawl = list_crawl(vec![host]).await;
    let refused = refused_list(&mut crawl, "https://registry.lists.example/top.txt").await;
    let asked = "the server answered 503 Service Unavailable, and asked for no request before ";
    assert!(refused.contains(asked) && refused.contains("start again after that time"), "{refused}");
    let refused = refused_list(&mut crawl, "https://registry.lists.example/top.txt").await;
    assert!(refused.contains("registry.lists.example may not be requested before 20"), "{refused}");
    assert!(refused.contains("its server asked for a delay (Retry-After"), "{refused}");
    assert_eq!(crawl.paths("registry.lists.example"), ["/robots.txt", LIST]);
}

/// Sources that fail do not stop the others, and nothing is deleted while one of them is unknown.
#[tokio::test]
async fn sources_that_fail_do_not_stop_the_others() {
    let lists = Host::new("lists.example")
        .robots("")
        .route("/busy.txt", Answer::status(503))
        .file("/page.txt", "text/html", "<!DOCTYPE html>\n<html><body>No list here</body></html>\n")
        .file("/empty.txt", "text/plain", "# nothing\n");
    let registry = Host::new("registry.example").robots("").route("/v0.1/servers", Answer::json("{}"));
    let mut crawl = list_crawl(vec![lists, registry]).await;
    let url = |text: &str| ManifestUrl::parse(text).unwrap();
    let list = |text: &str| SeedSource::Text { name: "list".to_owned(), text: text.to_owned() };
    let failing = vec![
        SeedSource::Url(url("https://lists.example/busy.txt")),
        SeedSource::Url(url("https://lists.example/page.txt")),
        SeedSource::Url(url("https://lists.example/empty.txt")),
        SeedSource::Url(url("https://no-such-name.example/list.txt")),
        SeedSource::McpRegistry(url("https://registry.example/")),
    ];
    crawl.config.seeds = vec![list("shop.example\nother.example\n")];
    crawl.config.seed_lists = SeedLists::Followed;
    crawl.pass().await;
    crawl.config.seeds = [failing.clone(), vec![list("shop.example\n")]].concat();
    let summary = crawl.pass().await;
    assert_eq!((summary.seeds.read, summary.seeds.sites_forgotten), (1, 0), "{summary:?}");
    for (failed, expected) in summary.seeds.failed.iter().zip([
        "https://lists.example/busy.txt: the server answered 503 Service Unavailable; it is requested again",
        "https://lists.example/page.txt",
        "https://lists.example/empty.txt holds no seed: check that the URL is that of a list",
        "https://no-such-name.example/list.txt: the name no-such-name.example does not exist; check the URL",
        "https://registry.example/: its response is no page of a list; check that the URL is the base of an MCP registry",
    ]) {
        assert!(failed.contains(expected), "{failed}");
    }
    assert_eq!(summary.seeds.failed.len(), failing.len(), "{:?}", summary.seeds.failed);
    let failing_tasks = crawl.store.tasks_failing(10).await.unwrap();
    assert!(failing_tasks.len() == 1 && failing_tasks[0].reason.contains("busy.txt"), "{failing_tasks:?}");
    crawl.config.seeds = vec![list("shop.example\n")];
    assert_eq!(crawl.pass().await.seeds.sites_forgotten, 1);
    assert_eq!(crawl.store.tasks_failing(10).await.unwrap(), []);

    crawl.config.seeds = failing;
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), crawler::Cancel::default(), &|_| ());
    let error = run.await.expect_err("a crawl without a source").to_string();
    assert!(error.starts_with("no source of seeds could be read: ") && error.contains("503"), "{error}");
    crawl.config.without_seeds = WithoutSeeds::VisitsKnownSites;
    let summary = crawl.pass().await;
    assert_eq!((summary.seeds.read, summary.seeds.failed.len()), (0, 5), "{summary:?}");
    assert_eq!(crawl.store.tasks_failing(10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn keeps_retry_after_of_a_seed_list() {
    let limited = Host::new("lists.example").robots("").route(LIST, Answer::retry_after(429, "3600"));
    let mut crawl = list_crawl(vec![limited]).await;
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("429"), "{refused}");
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("lists.example may not be requested before"), "{refused}");
    assert!(refused.contains("its server asked for a delay (Retry-After"), "{refused}");
    assert_eq!(crawl.paths("lists.example"), ["/robots.txt", LIST]);
    let report = crawl.report("lists.example").await;
    assert_eq!((report.visits.len(), report.summary.next_visit_at), (0, None), "the site is never visited");
    assert!(report.state.not_before.is_some());
}

/// The operator or a watch causes such a request, so it says nothing about what the site itself names.
#[tokio::test]
async fn a_limit_on_a_request_outside_visits_delays_only_its_host() {
    let limited = Host::new("lists.example").robots("").route(LIST, Answer::status(429));
    let mut crawl = list_crawl(vec![limited]).await;
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("429"), "{refused}");
    let state = crawl.report("lists.example").await.state;
    assert_eq!(state.not_before, None);
    let host = state.hosts.iter().find(|known| known.host.as_str() == "lists.example").unwrap();
    assert!(host.next_ok_at.unwrap() - now() > TimeDelta::minutes(50), "{host:?}");
}

/// Uses up the daily request budget of a host.
async fn spend_budget(crawl: &mut Crawl, host: &str) {
    crawl.config.egress.own_rules = OwnRules::Strict;
    crawl.store.site_add_unplanned(&SiteName::parse(host).unwrap(), now()).await.unwrap();
    let spent = ClockWrite {
        host: host.parse().unwrap(),
        address: None,
        next_ok_at: now(),
        not_before: None,
        requests_add: 40,
        day: day_of(now()),
        progress: None,
        member: None,
        lease: None,
    };
    crawl.store.clocks_save(&[spent]).await.unwrap();
}

/// The daily budget applies to lists too, except on the operator's own addresses.
#[tokio::test]
async fn a_list_is_within_the_budget_of_its_host() {
    let mut crawl = list_crawl(vec![list_host(Answer::text(""))]).await;
    spend_budget(&mut crawl, "lists.example").await;
    let refused = refused_list(&mut crawl, "https://lists.example/top.txt").await;
    assert!(refused.contains("budget"), "{refused}");
    assert_eq!(crawl.web.log().hit_count(), 0);
}

/// Two sites with lists and the site that the lists name share one address.
#[tokio::test]
async fn lists_on_one_address_keep_its_gap() {
    let lists = ["first.example", "second.example"];
    let hosts = lists.map(|name| Host::new(name).robots("").file(LIST, "text/plain", "closed.example\n"));
    let closed = Host::new("closed.example").robots("User-agent: *\nDisallow: /\n");
    let shared = Addresses::Shared(Ipv4Addr::new(127, 66, 0, 2));
    let web = Web::builder().addresses(shared).hosts(hosts).host(closed).start().await.unwrap();
    let mut crawl = Crawl::on(web, "").await;
    let url = |name: &str| ManifestUrl::parse(&format!("https://{name}{LIST}")).unwrap();
    crawl.config.seeds = lists.map(|name| SeedSource::Url(url(name))).into();
    crawl.config.egress.own_rules = OwnRules::Strict;
    crawl.config.mode = Mode::Once { park_wait: Duration::from_secs(40), goes_on: false };
    let summary = crawl.pass().await;
    assert_eq!(
        (summary.seeds.read, summary.seeds.duplicates, summary.sites_visited),
        (1, 1, 1),
        "{summary:?}"
    );
    for name in lists {
        assert_eq!(crawl.paths(name), ["/robots.txt", LIST], "{name}");
    }
    let mut at: Vec<u64> = crawl.web.log().hits().iter().map(|hit| hit.started_us).collect();
    at.sort_unstable();
    let gaps: Vec<u64> = at.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    assert!(gaps.len() == 4 && gaps.iter().all(|gap| *gap >= 450), "milliseconds between requests: {gaps:?}");
}

/// A registry is searched page by page with the gap, and pages that were read before a delay are used.
#[tokio::test]
async fn searches_a_registry_under_its_rules_and_keeps_pages_read_before_a_delay() {
    let page = r#"{"results":[{"identifier":"urn:air:shop.example:agents:one"}],"pageToken":"next"}"#;
    let pages = Answer::json(page).taking_posts();
    let pages = pages.times(1, Answer::json(page).taking_posts().header("retry-after", "3600"));
    let registry = Host::new("registry.example").robots("").route("/search", pages);
    let mut crawl = list_crawl(vec![registry]).await;
    crawl.config.seeds =
        vec![SeedSource::Registry(ManifestUrl::parse("https://registry.example/?q=books").unwrap())];
    crawl.config.mode = Mode::Once { park_wait: Duration::ZERO, goes_on: false };
    let summary = crawl.pass().await;
    assert_eq!((summary.seeds.read, summary.sites_visited), (1, 1), "{summary:?}");
    assert_eq!(crawl.paths("registry.example"), ["/robots.txt", "/search", "/search"]);
    let forbidding = Host::new("registry.example").robots("User-agent: *\nDisallow: /search\n");
    let mut crawl = list_crawl(vec![forbidding.route("/search", Answer::json(page).taking_posts())]).await;
    let refused = refused_registry(&mut crawl).await;
    assert!(refused.contains("does not allow it"), "{refused}");
    assert_eq!(crawl.paths("registry.example"), ["/robots.txt"]);
}

/// Why the registry was not searched.
async fn refused_registry(crawl: &mut Crawl) -> String {
    let url = ManifestUrl::parse("https://registry.example/?q=books").unwrap();
    crawl.config.seeds = vec![SeedSource::Registry(url)];
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), crawler::Cancel::default(), &|_| ());
    let ran = tokio::time::timeout(Duration::from_mins(1), run).await.expect("an end");
    ran.expect_err("a registry that is not searched").to_string()
}

#[tokio::test]
async fn a_registry_is_not_searched_after_opt_out_over_budget_or_across_a_redirect() {
    let registry = |answer: Answer| Host::new("registry.example").robots("").route("/search", answer);
    let page = || Answer::json(r#"{"results":[]}"#).taking_posts();
    let mut opted_out = list_crawl(vec![registry(page())]).await;
    let site = SiteName::parse("registry.example").unwrap();
    opted_out.store.site_block(&site, "by letter", now()).await.unwrap();
    let refused = refused_registry(&mut opted_out).await;
    assert!(refused.contains("opted out"), "{refused}");
    assert_eq!(opted_out.web.log().hit_count(), 0);

    let mut spent = list_crawl(vec![registry(page())]).await;
    spend_budget(&mut spent, "registry.example").await;
    let refused = refused_registry(&mut spent).await;
    assert!(refused.contains("budget"), "{refused}");
    assert_eq!(spent.web.log().hit_count(), 0);

    let away = Answer::redirect(307, "https://victim.example/search").taking_posts();
    let victim = Host::new(VICTIM).robots("").route("/search", page());
    let mut redirected = list_crawl(vec![registry(away), victim]).await;
    let refused = refused_registry(&mut redirected).await;
    assert!(refused.contains("307"), "{refused}");
    assert_eq!(redirected.paths("registry.example"), ["/robots.txt", "/search"]);
    assert_eq!(redirected.hits(VICTIM).len(), 0);
}

#[tokio::test]
async fn registry_entries_are_trusted_like_links_and_rank_below_lists() {
    let page = r#"{"results":[
        {"identifier":"urn:air:only.victim.example:a","url":"https://victim.example/linked.json"},
        {"identifier":"urn:air:both.victim.example:b","url":"https://victim.example/both.json"}]}"#;
    let registry = Host::new("registry.example").robots("");
    let registry = registry.route("/search", Answer::json(page).taking_posts());
    let mut crawl = list_crawl(vec![registry, Host::new(VICTIM).robots("")]).await;
    let text = "both.victim.example\nhttps://victim.example/both.json\n".to_owned();
    crawl.config.seeds = vec![
        SeedSource::Registry(ManifestUrl::parse("https://registry.example/?q=books").unwrap()),
        SeedSource::Text { name: "list".to_owned(), text },
    ];
    crawl.pass().await;
    let story = crawl.report(VICTIM).await;
    let origin = |name: &str| {
        let host = story.state.hosts.iter().find(|known| known.host.as_str() == name);
        host.map(|known| known.origin)
    };
    assert_eq!(origin("only.victim.example"), Some(HostOrigin::Named));
    assert_eq!(origin("both.victim.example"), Some(HostOrigin::Listed));
    let linked = crawl.fetch(VICTIM, "/linked.json").await;
    assert_eq!(linked.discovery, Discovery::CatalogEntry);
    assert_eq!(crawl.fetch(VICTIM, "/both.json").await.discovery, Discovery::Listed);
}

/// Names whose first address accepts no connection, and whose second address is the victim's.
#[tokio::test]
async fn a_closed_first_address_does_not_evade_the_gap_of_the_second() {
    let hosts: Vec<Host> = attackers(|host| host.robots("User-agent: *\nDisallow: /\n"));
    let names: Vec<String> = hosts.iter().map(|host| host.name().to_owned()).collect();
    let shared = Addresses::Shared(Ipv4Addr::new(127, 66, 0, 1));
    let web = Web::builder().addresses(shared).hosts(hosts).start().await.unwrap();
    let closed = |(number, name): (usize, &String)| format!("127.67.{number}.1:1 {name}\n");
    let closed: String = names.iter().enumerate().map(closed).collect();
    let mut crawl = Crawl::on(web, &names.join("\n")).await;
    crawl.config.egress.hosts = HostsFile::parse(&(closed + &crawl.web.hosts_file())).unwrap();
    crawl.config.egress.own_rules = OwnRules::Strict;
    crawl.config.mode = Mode::Once { park_wait: Duration::from_secs(40), goes_on: false };
    let summary = crawl.pass().await;
    assert_eq!(summary.sites_visited, ATTACKERS as u64, "{summary:?}");
    let mut at: Vec<u64> = crawl.web.log().hits().iter().map(|hit| hit.started_us).collect();
    at.sort_unstable();
    assert_eq!(at.len(), ATTACKERS, "the second address of each name answers");
    let gaps: Vec<u64> = at.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000).collect();
    assert!(gaps.iter().all(|gap| *gap >= 450), "milliseconds between requests: {gaps:?}");
    for name in &names {
        assert_eq!(crawl.report(name).await.visits[0].end, VisitEnd::RobotsDenied, "{name}");
    }
}

#[tokio::test]
async fn a_visit_keeps_connections_to_two_hosts_at_most() {
    let name = |number: usize| format!("h{number}.shop.example");
    let entries: Vec<String> = (0..12)
        .map(|number| {
            format!(
                r#"{{"identifier":"urn:air:shop.example:e{number}","displayName":"e{number}",
                    "type":"application/a2a-agent-card+json","url":"https://{}/card.json"}}"#,
                name(number)
            )
        })
        .collect();
    let catalog =
        format!(r#"{{"specVersion":"1.0","host":{{"displayName":"x"}},"entries":[{}]}}"#, entries.join(","));
    let robots = || Answer::text("User-agent: *\nDisallow: /\n").after(Duration::from_millis(50));
    let others = (0..12).map(|number| Host::new(&name(number)).route("/robots.txt", robots()));
    let shop =
        Host::new("shop.example").robots("").file("/.well-known/agents.json", "application/json", catalog);
    let web = Web::builder().hosts(std::iter::once(shop).chain(others)).start().await.unwrap();
    let crawl = Crawl::on(web, "shop.example").await;
    crawl.pass().await;
    assert!((0..12).all(|number| crawl.paths(&name(number)) == ["/robots.txt"]));
    let connections = crawl.web.log().connections();
    let open_at =
        |at: u64| connections.iter().filter(move |one| (one.opened_us..one.closed_us).contains(&at));
    let most = connections.iter().map(|one| open_at(one.opened_us).count()).max().unwrap_or_default();
    // the third connection is being closed
    assert!(connections.len() > 12 && most <= 3, "{most} of {} connections at once", connections.len());
}

/// A URL of the victim that a client submits.
fn submitted(url: &str) -> Seed {
    let url = ManifestUrl::parse(url).unwrap();
    Seed { host: url.host(), url: Some(url), rank: None, origin: SeedOrigin::Submitted, revisit_now: true }
}

/// An AWP manifest that differs from the others by its action.
fn awp_with(action: &str) -> String {
    AWP.replace("buy_book", action)
}

/// A catalog that links to these URLs.
fn catalog_of(urls: &[&str]) -> String {
    let links: Vec<_> = urls.iter().map(|url| format!(r#"{{"href":"{url}"}}"#)).collect();
    let links = links.join(",");
    format!(r#"{{"linkset":[{{"anchor":"https://victim.example/","service-desc":[{links}]}}]}}"#)
}

/// Who names the manifest at a URL, as stored.
async fn naming_of(crawl: &Crawl, url: &str) -> NamedBy {
    let id = ManifestId::of(&ManifestUrl::parse(url).unwrap());
    let stored = crawl.store.manifest_find(&id).await.unwrap();
    stored.unwrap_or_else(|| panic!("no manifest at {url}")).named_by
}

/// A customer of the victim has two hosts. A link, a redirect, the robots.txt or the home page of the first leads to the second.
#[tokio::test]
async fn a_host_that_only_hosts_of_customers_lead_to_is_not_the_sites_own() {
    const FIRST: &str = "t1.victim.example";
    const SECOND: &str = "t2.victim.example";
    const CATALOG: &str = "/.well-known/api-catalog";
    let card = format!("https://{SECOND}{MANIFEST}");
    let json = "application/json";
    let first = || Host::new(FIRST).robots("").file("/agent.json", json, awp_with("first"));
    let page = format!("<html><head><link rel='agent-manifest' href='{card}'></head></html>");
    let ways = [
        first().file(CATALOG, "application/linkset+json", catalog_of(&[card.as_str()])),
        first().robots(&format!("User-agent: *\nAllow: /\nAgentmap: {card}\n")),
        first().route("/", Answer::html(page)),
        first().redirect(MANIFEST, 302, &card),
        first().redirect("/robots.txt", 301, &format!("https://{SECOND}/robots.txt")),
    ];
    for (way, first) in ways.into_iter().enumerate() {
        let second = Host::new(SECOND).robots("").file(MANIFEST, json, awp_with("second"));
        let victim = Host::new(VICTIM).route(MANIFEST, AWP);
        let web = Web::builder().host(victim).host(first).host(second).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        crawl.store.seeds_add(&[submitted(&format!("https://{FIRST}/agent.json"))], now()).await.unwrap();
        crawl.pass().await;
        assert!(!crawl.hits(SECOND).is_empty(), "way {way}: the second host is reached");
        for pass in 0..2 {
            let urls =
                [format!("https://{FIRST}/agent.json"), format!("https://{FIRST}{MANIFEST}"), card.clone()];
            for url in urls {
                let id = ManifestId::of(&ManifestUrl::parse(&url).unwrap());
                let stored = crawl.store.manifest_find(&id).await.unwrap();
                let named_by = stored.map(|stored| stored.named_by);
                assert_ne!(named_by, Some(NamedBy::Site), "way {way}, pass {pass}: {url}");
            }
            assert_eq!(naming_of(&crawl, &format!("https://{VICTIM}{MANIFEST}")).await, NamedBy::Site);
            crawl.pass_again().await;
        }
    }
}

/// An upload links to one document at many URLs, to URLs that fail, and to one that limits requests. The victim answers the path that
/// cannot exist with a page.
#[tokio::test]
async fn links_of_a_document_of_third_parties_are_not_evidence_about_the_site() {
    const UPLOAD: &str = "/u/someone/links.json";
    const COPY: &str = "/u/someone/copy.json";
    let canary = canary_path(policy::Seed::of(VICTIM));
    let at = |path: &str| format!("https://{VICTIM}{path}");
    let copies = || (0..3).map(|number| at(&format!("{COPY}?{number}")));
    let failing = || (0..2).map(|number| at(&format!("/u/fails/{number}.json")));
    let cases = [
        ("copies", copies().collect::<Vec<_>>()),
        ("failing", failing().collect()),
        ("limited", vec![at("/u/limited.json")]),
        ("host", vec!["https://t1.victim.example/u/limited.json".to_owned()]),
    ];
    for (case, links) in cases {
        let links: Vec<&str> = links.iter().map(String::as_str).collect();
        let limited = || Answer::status(429);
        let mut victim = Host::new(VICTIM)
            .robots("")
            .route(&canary, Answer::html("<html><p>Not here</p></html>"))
            .route(MANIFEST, AWP)
            .file(UPLOAD, "application/linkset+json", catalog_of(&links))
            .route("/u/limited.json", limited())
            .file(COPY, "application/json", awp_with("copied"));
        for number in 0..2 {
            victim = victim.route(&format!("/u/fails/{number}.json"), Answer::status(500));
        }
        let customer = Host::new("t1.victim.example").robots("").route("/u/limited.json", limited());
        let web = Web::builder().host(victim).host(customer).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        crawl.store.seeds_add(&[submitted(&at(UPLOAD))], now()).await.unwrap();
        crawl.pass().await;
        for pass in 0..2 {
            let report = crawl.report(VICTIM).await;
            assert_eq!(report.visits[0].end, VisitEnd::Completed, "{case}, pass {pass}");
            assert_eq!(report.state.failures_in_row, 0, "{case}, pass {pass}");
            assert!(crawl.outcome(VICTIM, MANIFEST).await.is_present(), "{case}, pass {pass}");
            let requested = links.iter().any(|link| {
                let link = ManifestUrl::parse(link).unwrap();
                crawl.paths(link.host().as_str()).contains(&link.path_and_query())
            });
            assert!(requested || pass > 0, "{case}: a link of the upload is requested");
            crawl.pass_again().await;
        }
    }
}

/// The catalog of the victim lists a document of a user. This document links to one document at many URLs, to URLs that fail, and to one at
/// a customer's host that limits requests. The victim answers the path that cannot exist with a page.
#[tokio::test]
async fn links_of_a_listed_document_of_a_user_are_not_evidence_about_the_site() {
    const CATALOG: &str = "/.well-known/api-catalog";
    const LISTED: &str = "/u/someone/links.json";
    const LINKSET: &str = "application/linkset+json";
    let at = |path: &str| format!("https://{VICTIM}{path}");
    let copies: Vec<String> = (0..4).map(|number| at(&format!("/u/copy.json?{number}"))).collect();
    let failing: Vec<String> = (0..2).map(|number| at(&format!("/u/fails.json?{number}"))).collect();
    let limited = vec!["https://t1.victim.example/u/limited.json".to_owned()];
    for links in [copies, failing, limited] {
        let listed: Vec<&str> = links.iter().map(String::as_str).collect();
        let victim = Host::new(VICTIM)
            .robots("")
            .route(&canary_path(policy::Seed::of(VICTIM)), Answer::html("<html><p>Not here</p></html>"))
            .route(MANIFEST, AWP)
            .file(CATALOG, LINKSET, catalog_of(&[at(LISTED).as_str()]))
            .file(LISTED, LINKSET, catalog_of(&listed))
            .file("/u/copy.json", "application/json", awp_with("copied"))
            .route("/u/fails.json", Answer::status(500));
        let limited = Answer::status(429);
        let customer = Host::new("t1.victim.example").robots("").route("/u/limited.json", limited);
        let web = Web::builder().host(victim).host(customer).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        crawl.pass().await;
        let first = ManifestUrl::parse(&links[0]).unwrap();
        let requested = crawl.paths(first.host().as_str());
        assert!(requested.contains(&first.path_and_query()), "{links:?}: {requested:?}");
        for pass in 0..2 {
            let report = crawl.report(VICTIM).await;
            assert_eq!(report.visits[0].end, VisitEnd::Completed, "{links:?}, pass {pass}");
            assert_eq!(report.state.failures_in_row, 0, "{links:?}, pass {pass}");
            assert!(crawl.outcome(VICTIM, MANIFEST).await.is_present(), "{links:?}, pass {pass}");
            crawl.pass_again().await;
        }
    }
}

/// The catalog of the victim lists a document of a user, and other documents. The document of the user links to the hosts of these, and its
/// links come first and fail.
#[tokio::test]
async fn failing_links_of_one_document_do_not_prevent_requests_for_other_documents() {
    const CUSTOMER: &str = "t1.victim.example";
    const LISTED: &str = "/u/someone/links.json";
    const LINKSET: &str = "application/linkset+json";
    let json = "application/json";
    for status in [429, 500] {
        let failing = [0, 1].map(|number| format!("https://{CUSTOMER}/u/fails.json?{number}"));
        let at_own_host = [0, 1].map(|number| format!("https://{VICTIM}/u/fails.json?{number}"));
        let links: Vec<&str> = failing.iter().chain(&at_own_host).map(String::as_str).collect();
        let others = [format!("https://{CUSTOMER}/x/listed.json"), format!("https://{VICTIM}/x/listed.json")];
        let listed = format!("https://{VICTIM}{LISTED}");
        let catalog = catalog_of(&[listed.as_str(), others[0].as_str(), others[1].as_str()]);
        let victim = Host::new(VICTIM)
            .robots("")
            .route(MANIFEST, AWP)
            .file("/.well-known/api-catalog", LINKSET, catalog)
            .file(LISTED, LINKSET, catalog_of(&links))
            .file("/x/listed.json", json, awp_with("listed"))
            .route("/u/fails.json", Answer::status(500));
        let customer = Host::new(CUSTOMER)
            .robots("")
            .file("/x/listed.json", json, awp_with("at_customer"))
            .route("/u/fails.json", Answer::status(status));
        let web = Web::builder().host(victim).host(customer).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        crawl.pass().await;
        assert!(crawl.paths(CUSTOMER).iter().any(|path| path.starts_with("/u/fails.json")), "{status}");
        // a 429 delays requests for URLs that users and others name at its host until the next visit
        crawl.pass_again().await;
        for url in &others {
            assert_eq!(naming_of(&crawl, url).await, NamedBy::Site, "{status}: {url}");
        }
        assert_eq!(crawl.report(VICTIM).await.visits[0].end, VisitEnd::Completed, "{status}");
    }
}

/// The catalog of the victim lists a document of a user, which links to another document.
#[tokio::test]
async fn linked_documents_are_requested_after_urls_that_the_site_itself_names() {
    const LINKSET: &str = "application/linkset+json";
    let at = |path: &str| format!("https://{VICTIM}{path}");
    let page = "<html><head><link rel='agent-manifest' href='/x/of-page.json'></head></html>";
    let (further, theirs) = (at("/u/further.json"), at("/u/theirs.json"));
    let victim = Host::new(VICTIM)
        .robots("User-agent: *\nAllow: /\nAgentmap: /x/of-robots.json\n")
        .route(MANIFEST, AWP)
        .route("/", Answer::html(page))
        .file("/.well-known/api-catalog", LINKSET, catalog_of(&[at("/u/listed.json").as_str()]))
        .file("/u/listed.json", LINKSET, catalog_of(&[further.as_str()]));
    let web = Web::builder().host(victim).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    crawl.store.seeds_add(&[submitted(&theirs)], now()).await.unwrap();
    for pass in 0..2 {
        crawl.pass_again().await;
        let paths = crawl.paths(VICTIM);
        let links = ["/u/listed.json", "/u/further.json", "/u/theirs.json"];
        let is_link = |path: &&String| links.contains(&path.as_str());
        let requested: Vec<&String> = paths.iter().filter(is_link).collect();
        assert_eq!(
            paths.iter().rev().take(requested.len()).rev().collect::<Vec<_>>(),
            requested,
            "pass {pass}"
        );
        if pass == 0 {
            assert_eq!(requested.len(), links.len(), "{paths:?}");
            for own in ["/x/of-page.json", "/x/of-robots.json", "/", "/llms.txt"] {
                assert!(paths.iter().any(|path| path == own), "{own} in {paths:?}");
            }
        }
    }
}

/// A document of a user links to paths below `/.well-known/` that the victim refuses or where it fails.
#[tokio::test]
async fn links_of_a_user_below_well_known_are_not_evidence_about_the_site() {
    const LINKSET: &str = "application/linkset+json";
    for answer in [Answer::status(403), Answer::status(500)] {
        let forbidden: Vec<String> =
            (0..10).map(|number| format!("https://{VICTIM}/.well-known/.hta{number}")).collect();
        let forbidden: Vec<&str> = forbidden.iter().map(String::as_str).collect();
        let listed = format!("https://{VICTIM}/u/u.json");
        let mut victim = Host::new(VICTIM)
            .robots("")
            .route(MANIFEST, AWP)
            .file("/.well-known/api-catalog", LINKSET, catalog_of(&[listed.as_str()]))
            .file("/u/u.json", LINKSET, catalog_of(&forbidden));
        for number in 0..10 {
            victim = victim.route(&format!("/.well-known/.hta{number}"), answer.clone());
        }
        let web = Web::builder().host(victim).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        for pass in 0..3 {
            crawl.pass_again().await;
            let report = crawl.report(VICTIM).await;
            assert_eq!(report.visits[0].end, VisitEnd::Completed, "{answer:?}, pass {pass}");
            assert!(crawl.paths(VICTIM).contains(&MANIFEST.to_owned()), "{answer:?}, pass {pass}");
            assert!(crawl.outcome(VICTIM, MANIFEST).await.is_present(), "{answer:?}, pass {pass}");
        }
    }
}

/// A user's listed document links to one file under many URLs. The catalog then lists a document of its own.
#[tokio::test]
async fn links_of_a_user_do_not_displace_links_of_the_site() {
    const CATALOG: &str = "/.well-known/api-catalog";
    const LINKSET: &str = "application/linkset+json";
    let at = |path: &str| format!("https://{VICTIM}{path}");
    let copies: Vec<String> = (0..150).map(|number| at(&format!("/u/s.json?{number}"))).collect();
    let copies: Vec<&str> = copies.iter().map(String::as_str).collect();
    let (listed, own) = (at("/u/u.json"), at("/x/own.json"));
    let victim = Host::new(VICTIM)
        .robots("")
        .route(MANIFEST, AWP)
        .file(CATALOG, LINKSET, catalog_of(&[listed.as_str()]))
        .file("/u/u.json", LINKSET, catalog_of(&copies))
        .file("/u/s.json", "application/json", awp_with("copied"))
        .file("/x/own.json", "application/json", awp_with("own"));
    let web = Web::builder().host(victim).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    for pass in 0..3 {
        crawl.pass_again().await;
        let repeated = crawl.paths(VICTIM).iter().filter(|path| path.starts_with("/u/s.json")).count();
        assert!((1..=20).contains(&repeated), "pass {pass}: {repeated}");
    }
    crawl.web.set_file(VICTIM, CATALOG, LINKSET, catalog_of(&[listed.as_str(), own.as_str()]));
    crawl.pass_again().await;
    assert_eq!(naming_of(&crawl, &own).await, NamedBy::Site);
    let repeated = crawl.report(VICTIM).await.state.resources.into_iter();
    let repeated = repeated.filter(|known| known.url.path() == "/u/s.json" && known.manifest_id.is_some());
    assert_eq!(repeated.count(), 1, "one document is one manifest");
}

/// The victim has no manifest. The card of a customer is fresh for a year.
#[tokio::test]
async fn a_card_of_a_customer_does_not_delay_visits_of_the_site() {
    const CUSTOMER: &str = "t1.victim.example";
    let card = Answer::json(awp_with("card")).max_age(365 * 24 * 60 * 60);
    let customer = Host::new(CUSTOMER).robots("").route(MANIFEST, card);
    let web = Web::builder().host(Host::new(VICTIM).robots("")).host(customer).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    crawl.store.seeds_add(&[submitted(&format!("https://{CUSTOMER}{MANIFEST}"))], now()).await.unwrap();
    for pass in 0..2 {
        crawl.pass_again().await;
        let report = crawl.report(VICTIM).await;
        let wait = report.summary.next_visit_at.unwrap() - now();
        let days = 10..=40;
        assert!(days.contains(&wait.num_days()), "pass {pass}: {wait}");
    }
    assert_eq!(naming_of(&crawl, &format!("https://{CUSTOMER}{MANIFEST}")).await, NamedBy::Others);
}

/// The only source of a document is a line of robots.txt. Later the link is on the home page instead.
#[tokio::test]
async fn a_document_counts_as_named_by_the_site_while_any_source_of_the_site_links_to_it() {
    const LINKED: &str = "/x/agents.json";
    let victim = Host::new(VICTIM).robots(&format!("User-agent: *\nAllow: /\nAgentmap: {LINKED}\n")).file(
        LINKED,
        "application/json",
        AWP,
    );
    let web = Web::builder().host(victim).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    crawl.pass().await;
    for pass in 0..3 {
        assert_eq!(named_by(&crawl, LINKED).await, NamedBy::Site, "pass {pass}");
        crawl.pass_again().await;
    }
    let page = format!("<html><head><link rel='agent-manifest' href='{LINKED}'></head></html>");
    crawl.web.set(VICTIM, "/", Answer::html(page));
    crawl.web.set(VICTIM, "/robots.txt", Answer::text("User-agent: *\nAllow: /\n"));
    expire_robots(&crawl, VICTIM).await;
    crawl.pass_again().await;
    assert!(crawl.paths(VICTIM).contains(&"/".to_owned()), "the home page may contain the link now");
    assert_eq!(named_by(&crawl, LINKED).await, NamedBy::Site);
    crawl.web.set(VICTIM, "/", Answer::html("<html></html>"));
    crawl.web.set(
        VICTIM,
        "/robots.txt",
        Answer::text(format!("User-agent: *\nAllow: /\nAgentmap: {LINKED}\n")),
    );
    expire_robots(&crawl, VICTIM).await;
    crawl.pass_again().await;
    assert_eq!(named_by(&crawl, LINKED).await, NamedBy::Site, "the link is in robots.txt again");
}

/// The catalog of the victim lists documents at the host of a customer, which asks for a delay of a week or of a day.
#[tokio::test]
async fn a_delay_of_a_customers_host_does_not_delay_the_site() {
    const CUSTOMER: &str = "t1.victim.example";
    const NUMBERS: [u32; 3] = [0, 1, 2];
    let listed = NUMBERS.map(|number| format!("https://{CUSTOMER}/u/{number}.json"));
    let catalog = catalog_of(&listed.each_ref().map(String::as_str));
    for (robots, is_delayed_by_answers) in [("", true), ("User-agent: *\nCrawl-delay: 86400\n", false)] {
        let customer = NUMBERS.into_iter().fold(Host::new(CUSTOMER).robots(robots), |host, number| {
            let answer = Answer::json(awp_with(&format!("pay_{number}")));
            let answer = if is_delayed_by_answers { answer.header("retry-after", "604800") } else { answer };
            host.route(&format!("/u/{number}.json"), answer)
        });
        let victim = Host::new(VICTIM).robots("").route(MANIFEST, AWP);
        let victim = victim.file("/.well-known/api-catalog", "application/linkset+json", catalog.clone());
        let web = Web::builder().host(victim).host(customer).start().await.unwrap();
        let crawl = Crawl::on(web, VICTIM).await;
        let summary = crawl.pass().await;
        assert!(summary.parked.is_empty(), "{robots:?}: {summary:?}");
        let requested = crawl.paths(CUSTOMER);
        assert_eq!(requested.len(), 1 + usize::from(is_delayed_by_answers), "{requested:?}");
        let report = crawl.report(VICTIM).await;
        assert_eq!(report.visits[0].end, VisitEnd::Completed, "{robots:?}");
        assert_eq!(named_by(&crawl, MANIFEST).await, NamedBy::Site);
        for url in &listed {
            let known = report.state.resources.iter().any(|known| known.url.as_str() == url);
            assert!(known, "{robots:?}: the link to {url} is kept for a later visit");
        }
    }
}

/// The catalog of the victim lists documents at the host of a customer, a client submits others there, and the host asks for a delay
/// without saying how long.
#[tokio::test]
async fn a_customers_host_that_asks_for_a_delay_is_left_for_an_hour() {
    const CUSTOMER: &str = "t1.victim.example";
    let listed = [0, 1].map(|number| format!("https://{CUSTOMER}/u/{number}.json"));
    let catalog = catalog_of(&listed.each_ref().map(String::as_str));
    for status in [429, 503] {
        let customer = Host::new(CUSTOMER).robots("").catch_all(Answer::status(status));
        let victim = Host::new(VICTIM).robots("").route(MANIFEST, AWP);
        let victim = victim.file("/.well-known/api-catalog", "application/linkset+json", catalog.clone());
        let web = Web::builder().host(victim).host(customer).start().await.unwrap();
        let mut crawl = Crawl::on(web, VICTIM).await;
        let upload = submitted(&format!("https://{CUSTOMER}/u/upload.json"));
        crawl.store.seeds_add(&[upload], now()).await.unwrap();
        crawl.pass().await;
        let requested = crawl.paths(CUSTOMER);
        assert_eq!(requested.len(), 2, "{status}: robots.txt and one document: {requested:?}");
        for visits in [2, 3] {
            crawl.pass_again().await;
            assert_eq!(crawl.paths(CUSTOMER), [""; 0], "{status}: nothing within the hour");
            assert!(crawl.paths(VICTIM).contains(&MANIFEST.to_owned()), "{status}: the manifest is read");
            let report = crawl.report(VICTIM).await;
            assert_eq!(
                (report.visits.len(), report.visits[0].end),
                (visits, VisitEnd::Completed),
                "{status}"
            );
            assert_eq!(report.state.not_before, None, "{status}: the site is not delayed");
        }
    }
}

/// A host that is only in a collected list is not evidence about its site. A host in the operator's own list is.
#[tokio::test]
async fn a_host_of_a_ranking_is_not_the_sites_own() {
    let card = "t1.victim.example";
    for (line, named_by, origin) in [
        ("7,t1.victim.example", NamedBy::Others, HostOrigin::Collected),
        ("t1.victim.example", NamedBy::Site, HostOrigin::Listed),
    ] {
        let customer = Host::new(card).robots("").route(MANIFEST, Answer::json(awp_with("pay")));
        let web = Web::builder().host(Host::new(VICTIM).robots("")).host(customer).start().await.unwrap();
        let crawl = Crawl::on(web, &format!("{VICTIM}\n{line}\n")).await;
        crawl.pass().await;
        assert_eq!(naming_of(&crawl, &format!("https://{card}{MANIFEST}")).await, named_by, "{line}");
        let hosts = crawl.report(VICTIM).await.state.hosts;
        assert_eq!(hosts.iter().find(|known| known.host.as_str() == card).unwrap().origin, origin);
    }
}

/// The home page of a customer's host redirects to an upload, which links to another one.
#[tokio::test]
async fn links_of_a_page_count_as_links_of_the_requested_host() {
    const UPLOAD: &str = "/u/evil.json";
    let page = format!("<html><head><link rel='agent-manifest' href='{UPLOAD}'></head></html>");
    let victim = Host::new(VICTIM)
        .robots("")
        .route(MANIFEST, AWP)
        .route("/u/evil.html", Answer::html(page))
        .file(UPLOAD, "application/json", awp_with("evil"));
    let customer = Host::new("t1.victim.example")
        .robots("")
        .file("/agent.json", "application/json", awp_with("customer"))
        .redirect("/", 302, &format!("https://{VICTIM}/u/evil.html"));
    let web = Web::builder().host(victim).host(customer).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    crawl.store.seeds_add(&[submitted("https://t1.victim.example/agent.json")], now()).await.unwrap();
    crawl.pass().await;
    crawl.pass_again().await;
    assert_eq!(named_by(&crawl, UPLOAD).await, NamedBy::Others);
    assert_eq!(named_by(&crawl, MANIFEST).await, NamedBy::Site);
}

/// A catalog of the victim links to an API description at another host, and the home page links to a host with an agent card.
#[tokio::test]
async fn a_catalog_names_documents_and_a_home_page_names_hosts() {
    const API: &str = "https://api.victim.example/v1/agent.json";
    const CARD: &str = "https://docs.victim.example/.well-known/agent.json";
    let json = "application/json";
    let page =
        "<html><head><link rel='agent-manifest' href='https://docs.victim.example/x.json'></head></html>";
    let catalog = Answer::ok("application/linkset+json", catalog_of(&[API]));
    let victim = Host::new(VICTIM).robots("").route(MANIFEST, AWP);
    let victim = victim.route("/", Answer::html(page)).route("/.well-known/api-catalog", catalog);
    let api = Host::new("api.victim.example").robots("");
    let api = api.file("/v1/agent.json", json, awp_with("api")).file("/agent.json", json, awp_with("usual"));
    let docs = Host::new("docs.victim.example").robots("");
    let docs = docs.file("/x.json", json, awp_with("docs")).file(MANIFEST, json, awp_with("card"));
    let web = Web::builder().host(victim).host(api).host(docs).start().await.unwrap();
    let mut crawl = Crawl::on(web, VICTIM).await;
    let submissions = [submitted("https://api.victim.example/agent.json"), submitted(CARD)];
    crawl.store.seeds_add(&submissions, now()).await.unwrap();
    for _ in 0..3 {
        crawl.pass_again().await;
    }
    for (url, named_by) in [
        (API, NamedBy::Site),
        ("https://docs.victim.example/x.json", NamedBy::Site),
        (CARD, NamedBy::Site),
        ("https://api.victim.example/agent.json", NamedBy::Others),
    ] {
        assert_eq!(naming_of(&crawl, url).await, named_by, "{url}");
    }
    assert_eq!(crawl.report(VICTIM).await.visits[0].end, VisitEnd::Completed);
}

/// The catalog of the victim lists large documents of users, which differ in each visit, and a small one after them.
#[tokio::test]
async fn large_listed_documents_use_at_most_half_of_a_visit_and_take_turns() {
    const OWN: &str = "/x/own.json";
    const LARGE_BYTES: usize = 14 * 1024 * 1024;
    let json = "application/json";
    let path = |number: usize| format!("/u/openapi-{number}.json");
    let large = |number: usize, version: usize| {
        let blanks = " ".repeat(LARGE_BYTES);
        format!(
            r#"{{"openapi":"3.1.0","info":{{"title":"T{number}","version":"{version}"}},{blanks}
            "paths":{{"/p{number}":{{"get":{{"operationId":"read{number}","responses":{{}}}}}}}}}}"#
        )
    };
    let listed = (0..4).map(path).chain([OWN.to_owned()]).map(|path| format!("https://{VICTIM}{path}"));
    let listed: Vec<String> = listed.collect();
    let catalog = catalog_of(&listed.iter().map(String::as_str).collect::<Vec<_>>());
    let victim = Host::new(VICTIM)
        .robots("")
        .route(MANIFEST, AWP)
        .file("/.well-known/api-catalog", "application/linkset+json", catalog)
        .file(OWN, json, awp_with("own0"));
    let victim = (0..4).fold(victim, |victim, number| victim.file(&path(number), json, large(number, 0)));
    let mut crawl = Crawl::of([victim]).await;
    for visit in 1..=14 {
        crawl.pass_again().await;
        let downloads = crawl.paths(VICTIM).into_iter().filter(|path| path.starts_with("/u/")).count();
        assert!(downloads <= 3, "visit {visit}: {downloads}");
        let fetches = crawl.report(VICTIM).await.visits.remove(0).fetches;
        assert!(
            fetches.iter().all(|fetch| fetch.outcome != FetchOutcome::TooLarge),
            "visit {visit}: {fetches:?}"
        );
        if visit == 10 {
            for url in &listed {
                naming_of(&crawl, url).await;
            }
            crawl.web.set_file(VICTIM, OWN, json, awp_with("own1"));
        }
        for number in 0..4 {
            crawl.web.set_file(VICTIM, &path(number), json, large(number, visit));
        }
    }
    let own = ManifestId::of(&ManifestUrl::parse(&listed[4]).unwrap());
    let own = crawl.store.manifest_find(&own).await.unwrap().expect("a manifest").manifest;
    assert!(own.capabilities.iter().any(|capability| capability.native_id == "own1"), "{own:?}");
}

/// The catalog of the victim lists a manifest with a part, and catalogs of users that list new documents in each visit.
#[tokio::test]
async fn catalogs_of_users_do_not_crowd_out_parts_of_a_listed_manifest() {
    const WHOLE: &str = "/x/agent-manifest.json";
    const PART: &str = "/x/openapi.json";
    let at = |path: &str| format!("https://{VICTIM}{path}");
    let whole = format!(r#"{{"arws_version":"1.0","name":"M","description":"D","tools":"{}"}}"#, at(PART));
    let part = |operation: &str| {
        format!(
            r#"{{"openapi":"3.1.0","info":{{"title":"M","version":"1"}},"servers":[{{"url":"https://{VICTIM}/api"}}],
            "paths":{{"/t":{{"post":{{"operationId":"{operation}","responses":{{}}}}}}}}}}"#
        )
    };
    let uploads: Vec<String> = (0..8).map(|number| at(&format!("/a/u{number}.json"))).collect();
    let upload_of = |visit: usize, number: usize| {
        let links: Vec<String> =
            (0..12).map(|link| at(&format!("/l/{visit}-{number}-{link}.json"))).collect();
        catalog_of(&links.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let whole_url = at(WHOLE);
    let listed = uploads.iter().chain([&whole_url]).map(String::as_str);
    let victim = Host::new(VICTIM)
        .robots("")
        .route(MANIFEST, AWP)
        .file("/.well-known/api-catalog", "application/linkset+json", catalog_of(&listed.collect::<Vec<_>>()))
        .route(WHOLE, Answer::json(whole).without_validators())
        .file(PART, "application/json", part("buy"));
    let mut crawl = Crawl::of([victim]).await;
    for visit in 0..3 {
        for (number, url) in uploads.iter().enumerate() {
            let path = ManifestUrl::parse(url).unwrap().path_and_query();
            crawl.web.set_file(VICTIM, &path, "application/linkset+json", upload_of(visit, number));
        }
        crawl.web.set_file(VICTIM, PART, "application/json", part(&format!("buy{visit}")));
        crawl.pass_again().await;
        assert!(crawl.paths(VICTIM).contains(&PART.to_owned()), "visit {visit}: {:?}", crawl.paths(VICTIM));
        let id = ManifestId::of(&ManifestUrl::parse(&at(WHOLE)).unwrap());
        let stored = crawl.store.manifest_find(&id).await.unwrap().expect("a manifest").manifest;
        let operations: Vec<_> =
            stored.capabilities.iter().map(|capability| capability.native_id.as_str()).collect();
        assert_eq!(operations, [format!("buy{visit}")], "visit {visit}");
    }
}
