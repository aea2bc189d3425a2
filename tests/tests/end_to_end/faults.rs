//! Outages of the database during a crawl, all politeness scopes together, and signed requests.

use std::process::{Child, Stdio};
use std::time::Duration;

use agentdex_tests::audit;
use testweb::{Host, Web};

use crate::proxy::Proxy;
use crate::world::{Backend, World};

/// Duration of the outage; a minute with `tests/faults full`.
const OUTAGE_SECONDS_DEFAULT: u64 = 4;
/// Number of fail-overs, and the read-only time of each.
const FAIL_OVERS: usize = 3;
const READ_ONLY: Duration = Duration::from_secs(2);
/// Requests whose clocks were written before the outage may still start within this time.
pub(crate) const GRACE_US: u64 = 500_000;
pub(crate) const SITES: usize = 12;
/// A stop in an outage takes less than that: an operation waits 10 s for a connection, and the programs 5 s for the end of the outage.
const STOP_MAX: Duration = Duration::from_secs(40);
/// Minimum gap between two requests below a public suffix that the test accepts: half a second, minus the delay of a request on a busy
/// machine.
const SUFFIX_GAP_US: u64 = 400_000;

/// The log line about an outage.
pub(crate) const UNAVAILABLE: &str = "the database is unavailable";
/// The log line about a slow operation.
const WAITING: &str = "waiting for the database";

/// Waits until a crawler exits; it must have visited every site without a failure. Returns its log.
pub(crate) async fn visited_all(child: Child, sites: usize) -> String {
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{log}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = (&summary["sites_visited"], &summary["failed"]);
    assert_eq!(counts, (&sites.into(), &0.into()), "{summary}\n{log}");
    log
}

#[expect(clippy::disallowed_methods, reason = "the setting for the full size of one test")]
pub(crate) fn outage() -> Duration {
    let configured = std::env::var("AGENTDEX_TEST_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(configured.unwrap_or(OUTAGE_SECONDS_DEFAULT))
}

/// No request starts without its clock in the database, and the crawl continues automatically.
pub(crate) async fn an_outage_of_the_database_is_waited_out() {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name)));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_millis(150);
    world.write_seeds(&names);
    let mut proxy = Proxy::before(&mut world, Duration::ZERO).await;
    let child = world.crawler(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 4 * SITES).await;
    proxy.cut().await;
    let cut_us = world.web.log().now_us();
    tokio::time::sleep(outage()).await;
    let restored_us = world.web.log().now_us();
    proxy.restore().await;
    let log = visited_all(child, SITES).await;
    // an operation that waited for a connection and then succeeded was slow, and did not fail
    assert!(log.contains(UNAVAILABLE) || log.contains(WAITING), "{log}");
    let ends = ["the database answers again after", "the database answered after"];
    assert!(ends.iter().any(|end| log.contains(end)), "the end must be logged too: {log}");
    // lines of progress say what is waited for, too
    let warnings = || log.lines().filter(|line| line.contains("WARN"));
    let lines = [UNAVAILABLE, WAITING].map(|text| warnings().filter(|line| line.contains(text)).count());
    assert!(lines[0] <= 2 && lines[1] <= 2, "at most one line a minute of each kind: {log}");
    let during = world.web.log().hits().into_iter();
    let during: Vec<_> =
        during.filter(|hit| (cut_us + GRACE_US..restored_us).contains(&hit.started_us)).collect();
    assert!(during.is_empty(), "requests started during the outage of the database: {during:?}");
    world.assert_polite();
}

/// The open visits are given up: what they wait for does not end before the programs have to.
pub(crate) async fn a_stop_in_an_outage_of_the_database_ends_after_seconds() {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name)));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_millis(150);
    world.write_seeds(&names);
    let mut proxy = Proxy::before(&mut world, Duration::ZERO).await;
    let mut whole = world.crawling("agentdex", &["--listen", "127.0.0.1:0"]);
    let children = [&mut world.crawler(&["--daemon"]), &mut whole]
        .map(|command| command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    world.web.log().wait_until(|log| log.hit_count() >= 4 * SITES).await;
    proxy.cut().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    for child in &children {
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    }
    for child in children {
        let ended = tokio::task::spawn_blocking(|| child.wait_with_output());
        let output = tokio::time::timeout(STOP_MAX, ended).await.expect("the program did not stop in time");
        let output = output.unwrap().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !log.contains("ERROR"), "{log}");
    }
    world.assert_polite();
}

/// A daemon whose queue cannot be read at all logs the reason and exits with 1, so that its supervisor notices.
pub(crate) async fn a_daemon_exits_with_an_error_when_its_queue_cannot_be_read(backend: Backend) {
    let world = World::start(backend, Web::builder().hosts([Host::new("shop.test")])).await;
    world.write_seeds(["shop.test"]);
    let mut command = world.crawler(&["--daemon"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 4).await;
    world.execute("ALTER TABLE site RENAME TO unreadable").await;
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output());
    let output = tokio::time::timeout(crate::world::TIMEOUT, ended).await.expect("the daemon did not exit");
    let output = output.unwrap().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("ERROR the crawl failed") && log.contains("sites_lease failed"), "{log}");
}

/// An outage delays the clocks of the last requests. If the crawler is killed right after the outage, the gap after these requests is still
/// kept.
pub(crate) async fn an_outage_and_a_kill_do_not_shorten_gaps() {
    const FEW: usize = 3;
    let robots = "User-agent: *\nAllow: /agent.json$\nAllow: /agents.json$\nDisallow: /\n";
    let names: Vec<String> = (0..FEW).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name).robots(robots)));
    let mut world = World::start(Backend::Postgres, web).await;
    // longer than the restart of a killed crawler
    world.delay = Duration::from_secs(4);
    world.kills = 1;
    world.write_seeds(&names);
    let mut proxy = Proxy::before(&mut world, Duration::ZERO).await;
    let flags = ["--lease", "1s"];
    let mut child = world.crawler(&flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= FEW).await;
    proxy.cut().await;
    tokio::time::sleep(2 * world.delay).await;
    proxy.restore().await;
    world.web.log().wait_until(|log| log.hit_count() > FEW).await;
    crate::world::kill(&mut child);
    let summary = tokio::task::block_in_place(|| world.crawl(&flags));
    assert_eq!((&summary["parked"], &summary["failed"]), (&serde_json::json!([]), &0.into()), "{summary}");
    world.assert_polite();
}

/// A fail-over as seen by a client: every connection breaks, new ones reach a read-only server, and later ones a writable server. The
/// requirements are the same as for an outage.
pub(crate) async fn a_fail_over_of_the_database_is_waited_out() {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name)));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_millis(150);
    // Seeds with a path get every path of the table in their first visit.
    world.write_seeds(names.iter().map(|name| format!("https://{name}/agent.json")));
    let child = world.crawler(&[]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut read_only_us = Vec::new();
    for turn in 0..FAIL_OVERS {
        world.web.log().wait_until(|log| log.hit_count() >= (4 * turn + 4) * SITES).await;
        let database = world.database();
        database.refuse_writes().await.unwrap();
        database.break_connections().await.unwrap();
        let from_us = world.web.log().now_us();
        tokio::time::sleep(READ_ONLY).await;
        read_only_us.push(from_us + GRACE_US..world.web.log().now_us());
        let database = world.database();
        database.take_writes().await.unwrap();
        database.break_connections().await.unwrap();
    }
    let log = visited_all(child, SITES).await;
    assert!(log.contains(UNAVAILABLE), "{log}");
    let hits = world.web.log().hits();
    let during: Vec<_> =
        hits.iter().filter(|hit| read_only_us.iter().any(|time| time.contains(&hit.started_us))).collect();
    assert!(during.is_empty(), "requests started while the database was read-only: {during:?}");
    world.assert_polite();
}

/// Checks the limits of authority, site, private suffix and address together. `--strict` applies them to the operator's own networks too,
/// so the test can check them.
pub(crate) async fn respects_every_scope_at_once(backend: Backend) {
    let closed = "User-agent: *\nDisallow: /\n";
    let crowd = (0..6).map(|index| Host::new(&format!("neighbour{index}.test")).robots(closed));
    let names = ["alice.github.io", "bob.github.io", "carol.github.io"];
    let suffix =
        names.iter().zip(2..).map(|(name, last)| Host::new(name).robots(closed).at([127, 0, 0, last].into()));
    let double = ["www.double.test", "api.double.test"]
        .map(|name| Host::new(name).robots(closed).at([127, 0, 0, 9].into()));
    let open = Host::new("open.test")
        .robots("User-agent: *\nAllow: /agent.json$\nAllow: /agents.json$\nDisallow: /\n");
    let web = Web::builder().hosts(crowd).hosts(suffix).hosts(double).host(open.at([127, 0, 0, 10].into()));
    let mut world = World::start(backend, web).await;
    world.delay = Duration::from_secs(1);
    let seeds: Vec<String> = world.web.hosts().into_iter().map(|(name, _)| name).collect();
    world.write_seeds(&seeds);
    let summary = world.crawl(&["--strict"]);
    assert_eq!(
        (&summary["sites_visited"], &summary["parked"]),
        (&11.into(), &serde_json::json!([])),
        "{summary}"
    );
    let hits = world.web.log().hits();
    let policy = audit::Policy {
        site_gap: Some(Duration::from_secs(1)),
        address_gap: Some(Duration::from_millis(500)),
        site_in_flight_max: Some(2),
        address_in_flight_max: Some(1),
        suffix_gap: Some(Duration::from_millis(500)),
        suffix_in_flight_max: Some(4),
        authority_budget: Some(40),
        ..audit::Policy::with_delay(Duration::from_secs(1))
    };
    audit::check(&hits, &policy).assert_clean();
    let pages: Vec<u64> =
        hits.iter().filter(|hit| hit.host.ends_with(".github.io")).map(|hit| hit.started_us).collect();
    assert!(pages.len() == 3 && pages.windows(2).all(|pair| pair[1] - pair[0] >= SUFFIX_GAP_US), "{pages:?}");
}

/// The API serves the public key of the crawler's signatures.
pub(crate) async fn the_api_serves_the_key_of_a_signing_crawler(backend: Backend) {
    // the example key of RFC 9421, appendix B.1.4
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
    const DIRECTORY: &str = "/.well-known/http-message-signatures-directory";
    let world = World::start(backend, Web::builder().host(Host::new("shop.test"))).await;
    world.write_seeds(["shop.test"]);
    world.crawl(&[]);
    world.index();
    assert_eq!(world.api().await.get(DIRECTORY).await["status"], 404);
    std::fs::write(world.path("key.pem"), KEY).unwrap();
    let key = world.path("key.pem");
    let key = key.to_str().unwrap();
    let began_us = world.web.log().now_us();
    world.crawl(&["--revisit", "0s", "--signing-key", key, "--signature-agent", "https://crawler.example"]);
    let directory = world.api().await.get(DIRECTORY).await;
    let id = directory["keys"][0]["kid"].as_str().unwrap();
    let mut hits = world.web.log().hits();
    hits.retain(|hit| hit.started_us >= began_us);
    assert!(!hits.is_empty());
    for hit in hits {
        assert!(hit.request.signature_input.unwrap().contains(&format!("keyid=\"{id}\"")));
        assert_eq!(hit.request.signature_agent.as_deref(), Some("\"https://crawler.example\""));
    }
    world.assert_polite();
}
