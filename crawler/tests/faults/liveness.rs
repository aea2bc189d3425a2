//! Daily checks of the hosts of endpoints: one TLS handshake without a request, only where it is permitted.

use std::time::Duration;

use chrono::TimeDelta;
use crawler::Cancel;
use crawler::config::EndpointChecks;
use crawler::egress::HostsFile;
use manifest::SiteName;
use policy::liveness::{HostCheckOutcome, Uptime};
use store::{ClockWrite, NamedHost, WorkerId};
use testweb::{Certificate, Connection, Handshake, Host, Web};

use crate::names::{NXDOMAIN, Responder, Zone};
use crate::support::{Crawl, now};

/// Hosts of the endpoints that the manifest of `caller.example` declares.
const ENDPOINT_HOSTS: [&str; 10] = [
    "api.caller.example",
    "api.shut.example",
    "caller.example",
    "expired.example",
    "inside.example",
    "nowhere.example",
    "quiet.example",
    "shut.example",
    "unlisted.example",
    "unused.example",
];

fn manifest(hosts: &[&str]) -> String {
    let action = |host: &&str| {
        format!(
            r#"{{"id":"call_{host}","description":"Call {host}","method":"GET","endpoint":"https://{host}/x"}}"#
        )
    };
    let actions: Vec<String> = hosts.iter().map(action).collect();
    format!(
        r#"{{"awp_version":"0.1","domain":"caller.example","intent":"Call","actions":[{}]}}"#,
        actions.join(",")
    )
}

/// A crawl of these hosts. `nowhere.example` does not exist, `inside.example` has a private address, and `unlisted.example` is no known
/// site.
async fn crawl(responder: &Responder) -> Crawl {
    let permits = "User-agent: *\nAllow: /\n";
    let web = Web::builder()
        .host(Host::new("caller.example").robots(permits).file(
            "/agent.json",
            "application/json",
            manifest(&ENDPOINT_HOSTS),
        ))
        .host(Host::new("expired.example").robots(permits).certificate(Certificate::Expired))
        .host(Host::new("quiet.example").robots(permits))
        .host(Host::new("shut.example").robots("User-agent: agentdex\nDisallow: /\n"))
        .host(Host::new("unlisted.example").robots(permits))
        .host(Host::new("api.caller.example").robots(permits))
        .host(Host::new("api.shut.example").robots(permits))
        .host(Host::new("unused.example").robots(permits))
        .start()
        .await
        .unwrap();
    let hosts = format!("{}\n10.0.0.1 inside.example\n", web.hosts_file());
    let seeds = "caller.example\nexpired.example\nquiet.example\nshut.example\nunused.example";
    let mut crawl = Crawl::on(web, seeds).await;
    crawl.config.egress.hosts = HostsFile::parse(&hosts).unwrap();
    crawl.config.egress.name_servers = vec![responder.address];
    crawl
}

async fn outcome(crawl: &Crawl, host: &str) -> Option<HostCheckOutcome> {
    let host = manifest::Host::parse(host).unwrap();
    crawl.store.host_check_find(&host).await.unwrap().map(|check| check.outcome)
}

/// The requests of the day to a host, as its daily limit counts them.
async fn requests_today(crawl: &Crawl, host: &str) -> u32 {
    let hosts = crawl.report(host).await.state.hosts;
    hosts.iter().find(|state| state.host.as_str() == host).expect("a host").requests_today
}

/// The names of the connections, once all of them have ended.
async fn connected(crawl: &Crawl, count: usize) -> Vec<String> {
    let all = |log: &testweb::Log| log.connections().len() >= count;
    let waited = tokio::time::timeout(Duration::from_secs(10), crawl.web.log().wait_until(all));
    waited.await.expect("the connections end");
    let name = |connection: Connection| connection.host.unwrap_or_default();
    let mut names: Vec<String> = crawl.web.log().connections().into_iter().map(name).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn hosts_of_endpoints_are_checked_once_a_day_without_a_request() {
    let responder = Responder::start([("nowhere.example", Zone::Code(NXDOMAIN))]).await;
    let mut crawl = crawl(&responder).await;
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.manifests_added), (5, 1), "{summary:?}");
    for host in ENDPOINT_HOSTS {
        assert_eq!(outcome(&crawl, host).await, None, "{host}: off by default");
    }
    let opted_out = SiteName::parse("quiet.example").unwrap();
    crawl.store.site_block(&opted_out, "asked", now()).await.unwrap();

    let before = requests_today(&crawl, "caller.example").await;
    crawl.config.endpoint_checks = EndpointChecks::Daily;
    crawl.web.log().clear();
    let day = now().date_naive();
    let summary = crawl.pass().await;
    assert_eq!((summary.sites_visited, summary.requests), (0, 0), "{summary:?}");
    for (host, expected) in [
        ("caller.example", Some(HostCheckOutcome::Completed)),
        ("api.caller.example", Some(HostCheckOutcome::Completed)),
        ("unused.example", Some(HostCheckOutcome::Completed)),
        ("expired.example", Some(HostCheckOutcome::TlsFailed)),
        ("nowhere.example", Some(HostCheckOutcome::NameUnknown)),
        ("inside.example", Some(HostCheckOutcome::AddressRefused)),
        ("shut.example", Some(HostCheckOutcome::RobotsDenied)),
        ("api.shut.example", Some(HostCheckOutcome::RobotsDenied)),
        ("unlisted.example", Some(HostCheckOutcome::NotContacted)),
        ("quiet.example", None),
    ] {
        assert_eq!(outcome(&crawl, host).await, expected, "{host}");
    }
    let contacted = ["api.caller.example", "caller.example", "expired.example", "unused.example"];
    assert_eq!(connected(&crawl, contacted.len()).await, contacted, "one connection each, and no other host");
    assert_eq!(crawl.web.log().hit_count(), 0, "no request is sent");

    crawl.web.log().clear();
    crawl.pass().await;
    if now().date_naive() == day {
        assert_eq!(
            requests_today(&crawl, "caller.example").await,
            before + 1,
            "a handshake counts like a request"
        );
        assert_eq!(connected(&crawl, 0).await, [""; 0], "at most once a day");
    }
    let host = manifest::Host::parse("expired.example").unwrap();
    let check = crawl.store.host_check_find(&host).await.unwrap().unwrap();
    assert_eq!(check.history.uptime(check.checked_at), Uptime { checks: 1, succeeded: 0 });
}

const PERMITS: &str = "User-agent: *\nAllow: /\n";
/// Hosts of one site, in the order of their checks.
const OWN_HOSTS: [&str; 3] = ["api.caller.example", "caller.example", "mcp.caller.example"];

/// A crawl of one site that declares endpoints at its hosts, after its first visit. The first host handles handshakes like this.
async fn visited(first: Handshake) -> Crawl {
    let [api, own, mcp] = OWN_HOSTS.map(|name| Host::new(name).robots(PERMITS));
    let own = own.file("/agent.json", "application/json", manifest(&OWN_HOSTS));
    let web = Web::builder().hosts([api.handshake(first), own, mcp]).start().await.unwrap();
    let mut crawl = Crawl::on(web, "caller.example").await;
    crawl.pass().await;
    crawl.config.endpoint_checks = EndpointChecks::Daily;
    crawl.web.log().clear();
    crawl
}

/// Both programs read the same manifests at the same time.
#[tokio::test]
async fn two_programs_check_each_host_once() {
    let crawl = visited(Handshake::Complete).await;
    let other = crawler::config::CrawlConfig { worker: WorkerId::new("other"), ..crawl.config.clone() };
    let run = |config| crawler::run(config, crawl.store.clone(), Cancel::default(), &|_| ());
    let (one, two) = tokio::join!(run(crawl.config.clone()), run(other));
    assert_eq!((one.unwrap().requests, two.unwrap().requests), (0, 0));
    assert_eq!(connected(&crawl, OWN_HOSTS.len()).await, OWN_HOSTS, "one connection each");
    for host in OWN_HOSTS {
        assert_eq!(outcome(&crawl, host).await, Some(HostCheckOutcome::Completed), "{host}");
        let host = manifest::Host::parse(host).unwrap();
        let check = crawl.store.host_check_find(&host).await.unwrap().unwrap();
        assert_eq!(check.history.uptime(check.checked_at), Uptime { checks: 1, succeeded: 1 });
    }
}

/// The program stops while the first host has not answered the handshake.
#[tokio::test]
async fn a_stop_loses_and_repeats_no_check() {
    let crawl = visited(Handshake::Stall).await;
    let cancel = Cancel::default();
    let soft = cancel.soft.clone();
    let run = crawler::run(crawl.config.clone(), crawl.store.clone(), cancel, &|_| ());
    let before = crawl.web.log().opened_count();
    let stop = async {
        crawl.web.log().wait_until(|log| log.opened_count() > before).await;
        soft.cancel();
    };
    let day = now().date_naive();
    let (ran, ()) = tokio::join!(run, stop);
    ran.unwrap();
    assert_eq!(connected(&crawl, 1).await.len(), 1);
    for (host, expected) in OWN_HOSTS.into_iter().zip([Some(HostCheckOutcome::TlsFailed), None, None]) {
        assert_eq!(outcome(&crawl, host).await, expected, "{host}");
    }
    crawl.pass().await;
    if now().date_naive() == day {
        assert_eq!(connected(&crawl, OWN_HOSTS.len()).await.len(), OWN_HOSTS.len(), "one connection each");
    }
    for host in &OWN_HOSTS[1..] {
        assert_eq!(outcome(&crawl, host).await, Some(HostCheckOutcome::Completed), "{host}");
    }
}

/// The first host asked for a delay that is longer than the pass waits.
#[tokio::test]
async fn a_pass_leaves_hosts_that_have_to_wait_to_the_next_one() {
    let crawl = visited(Handshake::Complete).await;
    let asked = ClockWrite {
        host: manifest::Host::parse(OWN_HOSTS[0]).unwrap(),
        address: None,
        next_ok_at: now() + TimeDelta::seconds(100),
        not_before: None,
        requests_add: 0,
        day: 0,
        progress: None,
        member: None,
        lease: None,
    };
    crawl.store.clocks_save(&[asked]).await.unwrap();
    let pass = tokio::time::timeout(Duration::from_mins(1), crawl.pass());
    pass.await.expect("it does not wait for the delay");
    assert_eq!(connected(&crawl, 2).await, OWN_HOSTS[1..], "the other hosts are checked");
    assert_eq!(outcome(&crawl, OWN_HOSTS[0]).await, None);
    let first = NamedHost { host: manifest::Host::parse(OWN_HOSTS[0]).unwrap(), is_own: true };
    let begun = crawl.store.host_checks_begin(&[first], now()).await.unwrap();
    assert_eq!(begun.len(), 1, "the next pass may check it on the same day");
}

/// A main host at which no server was reached neither permits nor forbids contacting its other hosts. It may be contacted itself, unless
/// the robots.txt of the other main host forbids it.
#[tokio::test]
async fn a_main_host_without_a_server_permits_no_other_host() {
    let endpoints = ["api.gone.example", "gone.example", "closed.example"];
    let site = Host::new("caller.example").robots(PERMITS);
    let web = Web::builder()
        .host(site.file("/agent.json", "application/json", manifest(&endpoints)))
        .host(Host::new("gone.example").refusing_connections())
        .host(Host::new("api.gone.example").robots(PERMITS))
        .host(Host::new("closed.example").refusing_connections())
        .host(Host::new("www.closed.example").robots("User-agent: *\nDisallow: /\n"))
        .start()
        .await
        .unwrap();
    let seeds = "caller.example\ngone.example\nclosed.example\nwww.closed.example";
    let mut crawl = Crawl::on(web, seeds).await;
    crawl.pass().await;
    crawl.config.endpoint_checks = EndpointChecks::Daily;
    crawl.web.log().clear();
    crawl.pass().await;
    for (host, expected) in [
        ("gone.example", HostCheckOutcome::ConnectFailed),
        ("api.gone.example", HostCheckOutcome::NotContacted),
        ("closed.example", HostCheckOutcome::RobotsDenied),
    ] {
        assert_eq!(outcome(&crawl, host).await, Some(expected), "{host}");
    }
    assert_eq!(crawl.web.log().hit_count(), 0);
    assert!(connected(&crawl, 0).await.iter().all(|name| !name.contains("api.gone")));
}
