//! Checks of hosts by a fleet: the gap of an address holds for the handshakes and the visits of all crawlers together.

use std::collections::BTreeSet;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testweb::{Host, Log, Web};

use crate::world::{Backend, TIMEOUT, World};

/// All sites are at one address, which one of the crawlers owns.
const SITES: usize = 12;
const CRAWLERS: usize = 3;
/// Required gap between two requests to one address.
const ADDRESS_GAP_US: u64 = 500_000;
const ROBOTS: &str = "User-agent: *\nAllow: /$\nAllow: /agent.json$\nDisallow: /\n";

/// A site that declares an endpoint at its own host.
fn site(index: usize) -> Host {
    let name = format!("site{index}.test");
    let manifest = format!(
        r#"{{"awp_version":"0.1","domain":"{name}","intent":"Call","actions":[
            {{"id":"call","description":"Call","method":"GET","endpoint":"https://{name}/x"}}]}}"#
    );
    Host::new(&name).at([127, 0, 1, 1].into()).robots(ROBOTS).file(
        "/agent.json",
        "application/json",
        manifest,
    )
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// When a connection was opened, or a further request was sent over it, in microseconds; with the host.
fn starts(log: &Log) -> Vec<(u64, String)> {
    let opened = log.connections().into_iter();
    let mut starts: Vec<(u64, String)> =
        opened.map(|one| (one.opened_us, one.host.unwrap_or_default())).collect();
    let mut connections = BTreeSet::new();
    let hits = log.hits().into_iter().filter(|hit| !connections.insert(hit.connection));
    starts.extend(hits.map(|hit| (hit.started_us, hit.host)));
    starts.sort_unstable();
    starts
}

/// Every crawler reads the same manifests at the same time, and visits are due as well.
pub(crate) async fn the_gap_of_an_address_holds_for_checks_and_visits_of_a_fleet() {
    let mut world = World::start(Backend::Postgres, Web::builder().hosts((0..SITES).map(site))).await;
    world.write_seeds((0..SITES).map(|index| format!("site{index}.test")));
    world.delay = Duration::from_secs(1);
    world.crawl(&[]);
    let log = world.web.log();
    let (began_us, hits_before) = (log.now_us(), log.hit_count());

    let flags = ["--daemon", "--strict", "--check-endpoints", "--revisit", "0s"];
    let commands: Vec<Command> = (0..CRAWLERS).map(|_| world.crawler(&flags)).collect();
    let fleet: Vec<Child> = commands.into_iter().map(spawn).collect();
    let log = world.web.log();
    let is_done = |log: &Log| {
        log.connections_without_request().len() >= SITES && log.hit_count() >= hits_before + SITES
    };
    let done = tokio::time::timeout(TIMEOUT, log.wait_until(is_done)).await;
    for mut crawler in fleet {
        let signalled = Command::new("kill").args(["-TERM", &crawler.id().to_string()]).status().unwrap();
        assert!(signalled.success(), "a crawler had already ended");
        let ended = tokio::task::spawn_blocking(move || crawler.wait().unwrap().success());
        assert!(ended.await.unwrap(), "a crawler failed");
    }
    done.expect("all hosts are checked and all sites are visited");
    let have_ended = |log: &Log| log.connections().len() as u64 == log.opened_count();
    tokio::time::timeout(TIMEOUT, log.wait_until(have_ended)).await.expect("all connections end");

    let checked: Vec<String> =
        log.connections_without_request().into_iter().filter_map(|one| one.host).collect();
    let hosts: BTreeSet<&String> = checked.iter().collect();
    assert_eq!((checked.len(), hosts.len()), (SITES, SITES), "each host is checked once: {checked:?}");
    let mut starts = starts(log);
    starts.retain(|(start_us, _)| *start_us >= began_us);
    let is_close = |pair: &&[(u64, String)]| pair[1].0 - pair[0].0 < ADDRESS_GAP_US;
    let close: Vec<&[(u64, String)]> = starts.windows(2).filter(is_close).collect();
    assert!(close.is_empty(), "{} of {} gaps are too short: {close:?}", close.len(), starts.len() - 1);
    world.assert_polite();
}
