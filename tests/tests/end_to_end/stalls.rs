//! Crawlers that are paused for longer than their leases, as on a machine that is suspended, swaps or is overloaded: their requests obey
//! the rules, and they send no request to sites that another worker has taken over.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::audit;
use testweb::{Host, Web};

use crate::faults::visited_all;
use crate::fleet::{ROBOTS, host};
use crate::world::{Backend, World};

/// Number of stalls of a crawler; `tests/faults full` sets `AGENTDEX_TEST_STALLS=10`.
const STALLS_DEFAULT: usize = 2;
const SITES: usize = 12;
/// Requests of a first visit to a site without manifests.
const REQUESTS_PER_SITE: usize = 10;
const LEASE: Duration = Duration::from_secs(1);
/// Longer than two leases, so that other workers take over the sites and send requests to them.
const STALL: Duration = Duration::from_secs(4);
/// Timeout of each wait for requests.
const REQUESTS_WAIT_MAX: Duration = Duration::from_mins(2);

#[expect(clippy::disallowed_methods, reason = "the setting for the full size of one test")]
fn stalls() -> usize {
    let configured = std::env::var("AGENTDEX_TEST_STALLS").ok().and_then(|text| text.parse().ok());
    configured.unwrap_or(STALLS_DEFAULT)
}

fn signal(child: &Child, name: &str) {
    let signalled = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(signalled.success(), "the crawler has exited");
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Stalls a crawler (SIGSTOP) at times spread over the requests of all sites.
async fn stall(world: &World, crawler: &Child, requests: usize) {
    for stall in 1..=stalls() {
        let hits = stall * requests / (stalls() + 2);
        let reached = world.web.log().wait_until(|log| log.hit_count() >= hits);
        let reached = tokio::time::timeout(REQUESTS_WAIT_MAX, reached).await;
        assert!(reached.is_ok(), "expected {hits} requests, received {}", world.web.log().hit_count());
        signal(crawler, "-STOP");
        tokio::time::sleep(STALL).await;
        signal(crawler, "-CONT");
    }
}

/// A single crawler continues its visits: it neither restarts a visit nor repeats a request.
pub(crate) async fn a_stalled_crawler_continues_its_visits(backend: Backend) {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name)));
    let mut world = World::start(backend, web).await;
    world.delay = Duration::from_millis(300);
    world.write_seeds(&names);
    let crawler = spawn(world.crawler(&["--lease", "1s"]));
    stall(&world, &crawler, SITES * REQUESTS_PER_SITE).await;
    visited_all(crawler, SITES).await;
    world.assert_polite();
}

/// The stalled worker sends no request to sites that another worker has taken over, and each site is saved once. The request before a stall
/// may be repeated, as after a kill.
pub(crate) async fn a_stalled_worker_sends_nothing_after_its_leases() {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let web = Web::builder().hosts(names.iter().map(|name| Host::new(name)));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_millis(300);
    world.write_seeds(&names);
    let requests = SITES * REQUESTS_PER_SITE;
    fleet_with_a_stalled_worker(&mut world, &[], SITES, requests).await;
    world.assert_polite();
}

/// Stops a worker (SIGSTOP) for longer than its membership, with limits for addresses, each of which has an owner.
pub(crate) async fn a_stalled_owner_sends_nothing_after_its_membership() {
    const SITES: usize = 48;
    /// robots.txt, and the only one of the two allowed paths that a first visit requests.
    const REQUESTS_PER_SITE: usize = 2;
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let hosts = names.iter().enumerate().map(|(index, name)| host(name, index).robots(ROBOTS));
    let mut world = World::start(Backend::Postgres, Web::builder().hosts(hosts)).await;
    world.delay = Duration::from_secs(1);
    world.write_seeds(&names);
    let requests = SITES * REQUESTS_PER_SITE;
    fleet_with_a_stalled_worker(&mut world, &["--strict", "--park-wait", "10m"], SITES, requests).await;
    let policy = audit::Policy {
        site_gap: Some(Duration::from_secs(1)),
        address_gap: Some(Duration::from_millis(500)),
        site_in_flight_max: Some(2),
        address_in_flight_max: Some(1),
        ..world.policy()
    };
    audit::check(&world.web.log().hits(), &policy).assert_clean();
}

async fn fleet_with_a_stalled_worker(world: &mut World, more: &[&str], sites: usize, requests: usize) {
    // each of the two takes half of the sites
    let (lease, half) = (format!("{}s", LEASE.as_secs()), sites.div_ceil(2).to_string());
    let flags = [&["--lease", &lease, "--concurrency", &half], more].concat();
    let commands = [world.crawler(&flags), world.crawler(&flags)];
    let [stalled, other] = commands.map(spawn);
    stall(world, &stalled, requests).await;
    world.kills += stalls();
    let summaries = [stalled, other].map(|child| async move {
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{log}");
        let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["failed"], 0, "{summary}\n{log}");
        summary["sites_visited"].as_u64().unwrap()
    });
    let [first, second] = summaries;
    let visited = tokio::join!(first, second);
    assert_eq!(
        visited.0 + visited.1,
        u64::try_from(sites).unwrap(),
        "each site must be saved once: {visited:?}"
    );
    assert!(visited.1 > 0, "the other worker visited no site");
}
