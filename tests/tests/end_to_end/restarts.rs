//! Kills at any time, rolling restarts and snapshots: nothing is lost or duplicated, no request fails, and the crawl stays polite.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use testweb::{Host, Web};
use tokio::task::JoinSet;

use crate::flow::airline;
use crate::world::{Api, Backend, World, kill};

/// Number of kills of each program; `AGENTDEX_TEST_KILLS=100` runs the whole matrix.
const KILLS_DEFAULT: usize = 6;
/// Minimum number of sites.
const SITES: usize = 40;
/// Number of sites for each kill: a host gets at most forty requests a day, after which the crawl would stop.
const SITES_PER_KILL: usize = 4;
/// Timeout for the first requests of a round.
const TIMEOUT: Duration = Duration::from_mins(1);
/// A request log that does not grow for this time is complete.
const SETTLED_AFTER: Duration = Duration::from_millis(200);
/// A pass without a request for this time has ended; requests are 50 ms apart.
const OVER_AFTER: Duration = Duration::from_secs(10);
/// Number of clients that search while replicas restart.
const CLIENTS: usize = 4;

#[expect(clippy::disallowed_methods, reason = "the only setting of this test")]
fn kills() -> usize {
    std::env::var("AGENTDEX_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT)
}

fn sites() -> usize {
    SITES.max(SITES_PER_KILL * kills())
}

async fn shops(backend: Backend) -> World {
    let names: Vec<String> = (0..sites()).map(|index| format!("shop{index}.test")).collect();
    let hosts = names
        .iter()
        .map(|name| Host::new(name).file("/agent.json", "application/json", airline("book_flight")));
    let world = World::start(backend, Web::builder().hosts(hosts)).await;
    world.write_seeds(&names);
    world
}

fn quiet(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Asserts that every manifest is exactly once in the store, in the feed and in the index.
async fn assert_complete_without_duplicates(world: &World) {
    world.index();
    let (api, sites) = (world.api().await, sites());
    let stats = api.get("/stats").await;
    assert_eq!(stats["manifests"], sites, "{stats}");
    let changes = api.get("/changes?limit=1000").await;
    let added: Vec<&str> = changes["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|change| change["change"] == "added")
        .map(|change| change["manifest_id"].as_str().unwrap_or_default())
        .collect();
    let distinct: BTreeSet<&&str> = added.iter().collect();
    assert_eq!((added.len(), distinct.len()), (sites, sites), "lost or duplicated in the feed: {changes}");
    let found = api.get("/search?format=awp&limit=1").await;
    assert_eq!(found["total"], 2 * sites, "each site has two capabilities: {}", found["total"]);
}

/// The programs of one round: separate programs, or all in `agentdex`.
fn programs(world: &World, round: usize) -> Vec<Child> {
    let flags = ["--lease", "1s", "--revisit", "0s"];
    if round.is_multiple_of(3) {
        let mut agentdex = world.crawling("agentdex", &flags);
        agentdex.args(["--listen", "127.0.0.1:0"]);
        return vec![quiet(agentdex)];
    }
    let mut api = world.program("api");
    api.args(["--listen", "127.0.0.1:0"]);
    vec![quiet(world.crawler(&flags)), quiet(world.program("indexer")), quiet(api)]
}

/// Waits until the requests of a killed program are logged. Otherwise, requests that a busy server reads late make the next program appear
/// impolite.
async fn settle(world: &World) {
    let mut seen = None;
    while seen != Some(world.requests()) {
        seen = Some(world.requests());
        tokio::time::sleep(SETTLED_AFTER).await;
    }
}

/// Waits for a number of requests or the end of the pass, which may need fewer for resumed visits.
async fn wait_for_requests(world: &World, began_at: usize, until: usize) {
    let more_than = async |seen: usize, timeout: Duration| {
        let more = world.web.log().wait_until(|log| log.hit_count() > seen);
        tokio::time::timeout(timeout, more).await.is_ok()
    };
    assert!(more_than(began_at, TIMEOUT).await, "the crawl made no progress");
    while world.requests() <= until && more_than(world.requests(), OVER_AFTER).await {}
}

/// Every program is killed at times spread over its work, while manifests change; the next programs continue.
pub(crate) async fn kills_neither_lose_nor_duplicate_manifests(backend: Backend) {
    let mut world = shops(backend).await;
    world.delay = Duration::from_millis(50);
    let kills = kills();
    let mut newest = BTreeMap::new();
    for round in 1..=kills {
        let (shop, action) = (format!("shop{}.test", round % sites()), format!("book_flight_{round}"));
        world.web.set_file(&shop, "/agent.json", "application/json", airline(&action));
        newest.insert(shop, action);
        // counted before the start, because a pass may end before all of its programs run
        let began_at = world.requests();
        let mut running = programs(&world, round);
        wait_for_requests(&world, began_at, began_at + 7 * round % 60).await;
        running.iter_mut().for_each(kill);
        world.kills += 1;
        settle(&world).await;
    }
    // the first pass finishes visits that began before the last changes; the second revisits everything
    for _ in 0..2 {
        world.crawl(&["--lease", "1s", "--revisit", "0s"]);
    }
    assert_complete_without_duplicates(&world).await;
    let api = world.api().await;
    for (shop, action) in newest {
        let found = api.search(&format!("site={shop}")).await;
        assert!(found.contains(&action), "{shop} declares {action}, but the search found {found:?}");
    }
    world.assert_polite();
}

/// Programs of this version work with the expanded schema of the next version, as after a downgrade.
pub(crate) async fn the_previous_version_works_with_an_expanded_schema(backend: Backend) {
    let world = shops(backend).await;
    world.crawl(&[]);
    world
        .execute(
            "ALTER TABLE site ADD COLUMN of_the_next_version TEXT;
             INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             SELECT 9999, 'next version', success, checksum, execution_time FROM _sqlx_migrations WHERE version = 1",
        )
        .await;
    world.web.set_file("shop0.test", "/agent.json", "application/json", airline("book_flight_later"));
    world.crawl(&["--revisit", "0s"]);
    assert_complete_without_duplicates(&world).await;
    assert!(world.api().await.search("site=shop0.test").await.contains(&"book_flight_later".to_owned()));
    world.assert_polite();
}

/// Sends requests to the replicas in turn, like a load balancer: it skips a replica that refuses the connection; any other error is a
/// failure.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: JoinSet<Vec<String>>,
}

impl Load {
    fn on(replicas: &[String]) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (stop, answered, replicas) = (Arc::clone(&stop), Arc::clone(&answered), replicas.to_vec());
            clients.spawn(async move {
                let mut failures = Vec::new();
                let mut turn = client;
                while !stop.load(Ordering::Relaxed) {
                    match ask(&replicas, turn).await {
                        Ok(()) => drop(answered.fetch_add(1, Ordering::Relaxed)),
                        Err(failure) => failures.push(failure),
                    }
                    turn += 1;
                }
                failures
            });
        }
        Self { stop, answered, clients }
    }

    /// Waits for this number of further responses.
    async fn wait_for_responses(&self, requests: usize) {
        let until = self.answered.load(Ordering::Relaxed) + requests;
        let reached = async {
            while self.answered.load(Ordering::Relaxed) < until {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), reached).await.expect("no replica responded");
    }

    async fn assert_no_failure(self) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.clients.join_all().await.concat();
        assert!(failures.is_empty(), "{} requests failed: {:?}", failures.len(), failures.first());
    }
}

/// Whether the kernel accepted the connection, but the program closed its socket without accepting it. Load balancers then try the next
/// replica, as RFC 9110 §9.2.2 allows for any GET without a response.
fn was_not_taken(error: &reqwest::Error) -> bool {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let mut of_network = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    of_network.any(|cause| cause.kind() == std::io::ErrorKind::ConnectionReset)
}

#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn ask(replicas: &[String], turn: usize) -> Result<(), String> {
    let mut last = String::new();
    for offset in 0..replicas.len() {
        let url = format!("{}/search?q=book+flight", replicas[(turn + offset) % replicas.len()]);
        match crate::world::client().get(&url).header("connection", "close").send().await {
            Ok(answer) if answer.status().is_success() => {
                return answer
                    .bytes()
                    .await
                    .map(drop)
                    .map_err(|error| format!("{url}: truncated: {error:?}"));
            }
            Ok(answer) => {
                let status = answer.status();
                return Err(format!("{url}: {status}: {}", answer.text().await.unwrap_or_default()));
            }
            Err(error) if error.is_connect() || was_not_taken(&error) => last = format!("{url}: {error:?}"),
            Err(error) => return Err(format!("{url}: {error:?}")),
        }
    }
    Err(last)
}

/// Restarts every process of a fleet in turn and rebuilds the index, under load.
pub(crate) async fn no_request_fails_during_a_rolling_restart(backend: Backend) {
    let world = shops(backend).await;
    world.crawl(&[]);
    let mut indexer = quiet(world.program("indexer"));
    let mut replicas = [world.api().await, world.api().await];
    let load = Load::on(&replicas.iter().map(|api| api.base().to_owned()).collect::<Vec<_>>());
    load.wait_for_responses(50).await;
    for turn in 0..4 {
        let replica = &mut replicas[turn % 2];
        replica.restart(&world).await;
        load.wait_for_responses(50).await;
    }
    kill(&mut indexer);
    let rebuilt = world.program("indexer").arg("rebuild").output().unwrap();
    assert!(rebuilt.status.success(), "{}", crate::world::text_of(&rebuilt));
    load.wait_for_responses(50).await;
    load.assert_no_failure().await;
    assert_complete_without_duplicates(&world).await;
}

/// Replicas without an indexer serve published snapshots and pick up changes, under load.
pub(crate) async fn replicas_serve_published_snapshots(backend: Backend) {
    let world = shops(backend).await;
    world.crawl(&[]);
    let snapshots = world.path("snapshots");
    let published = |world: &World| {
        let done = world.program("indexer").args(["--once", "--publish"]).arg(&snapshots).output().unwrap();
        assert!(done.status.success(), "{}", crate::world::text_of(&done));
    };
    published(&world);
    let replica = Api::start(&world, |command| {
        command.arg("--index-dir").arg(world.path("replica")).arg("--index-from").arg(&snapshots);
    });
    replica.wait_until_ready().await;
    let ready = replica.get("/readyz").await;
    assert_eq!(ready["index_changes_behind"], 0, "{ready}");
    assert!(ready["snapshot_published_at"].is_string(), "{ready}");

    let load = Load::on(&[replica.base().to_owned()]);
    world.web.set_file("shop0.test", "/agent.json", "application/json", airline("reserve_seat"));
    world.crawl(&["--revisit", "0s"]);
    published(&world);
    let arrived = async {
        while !replica.search("site=shop0.test").await.contains(&"reserve_seat".to_owned()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), arrived)
        .await
        .expect("the change did not reach the replica");
    load.assert_no_failure().await;
    let ready: Value = replica.get("/readyz").await;
    assert_eq!(ready["index_changes_behind"], 0, "{ready}");
}
