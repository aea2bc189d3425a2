//! Processes come and go: killed at any moment, restarted one by one, fed by snapshots. Nothing is lost, nothing is doubled, no
//! request fails, and no site is asked too often.

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

/// Kills of each program; tests/run takes the default, `AGENTDEX_TEST_KILLS=100` the whole matrix.
const KILLS_DEFAULT: usize = 6;
/// Sites of the fleet's web, at the least.
const SITES: usize = 40;
/// Sites for each kill: a host is asked forty times a day at most, and a web whose hosts were all asked so often stands still.
const SITES_A_KILL: usize = 4;
/// How long a round may take until its first requests.
const PATIENCE: Duration = Duration::from_mins(1);
/// A log that does not grow for so long has everything in it.
const SETTLED_AFTER: Duration = Duration::from_millis(200);
/// A pass that asks nothing for so long has come to its end; a request waits 50 ms for its turn.
const OVER_AFTER: Duration = Duration::from_secs(10);
/// Clients that ask while replicas restart.
const CLIENTS: usize = 4;

#[expect(clippy::disallowed_methods, reason = "the one knob of this test")]
fn kills() -> usize {
    std::env::var("AGENTDEX_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS_DEFAULT)
}

fn sites() -> usize {
    SITES.max(SITES_A_KILL * kills())
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

/// Every site's manifest is there once, in the store, in the feed and in the index.
async fn assert_all_there_once(world: &World) {
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
    assert_eq!((added.len(), distinct.len()), (sites, sites), "lost or doubled in the feed: {changes}");
    let found = api.get("/search?format=awp&limit=1").await;
    assert_eq!(found["total"], 2 * sites, "two capabilities a site: {}", found["total"]);
}

/// The programs of one round: apart, or all in the front door.
fn programs(world: &World, round: usize) -> Vec<Child> {
    let flags = ["--lease", "1s", "--revisit", "0s"];
    if round.is_multiple_of(3) {
        let mut front_door = world.crawling("agentdex", &flags);
        front_door.args(["--listen", "127.0.0.1:0"]);
        return vec![quiet(front_door)];
    }
    let mut api = world.program("api");
    api.args(["--listen", "127.0.0.1:0"]);
    vec![quiet(world.crawler(&flags)), quiet(world.program("indexer")), quiet(api)]
}

/// What a killed program had sent reaches the server's log: read late, on a busy machine, it would look as if the next program
/// had asked too soon.
async fn settle(world: &World) {
    let mut seen = None;
    while seen != Some(world.requests()) {
        seen = Some(world.requests());
        tokio::time::sleep(SETTLED_AFTER).await;
    }
}

/// Waits for so many requests, or for the end of the pass: it goes on with visits that were killed, of which less may be left.
async fn reach(world: &World, began_at: usize, until: usize) {
    let more_than = async |seen: usize, patience: Duration| {
        let more = world.web.log().wait_until(|log| log.hit_count() > seen);
        tokio::time::timeout(patience, more).await.is_ok()
    };
    assert!(more_than(began_at, PATIENCE).await, "the crawl stands still");
    while world.requests() <= until && more_than(world.requests(), OVER_AFTER).await {}
}

/// Every program is killed at moments spread over its work, while manifests change; the next ones go on from there.
pub(crate) async fn kills_neither_lose_nor_duplicate_manifests(backend: Backend) {
    let mut world = shops(backend).await;
    world.delay = Duration::from_millis(50);
    let kills = kills();
    let mut newest = BTreeMap::new();
    for round in 1..=kills {
        let (shop, action) = (format!("shop{}.test", round % sites()), format!("book_flight_{round}"));
        world.web.set_file(&shop, "/agent.json", "application/json", airline(&action));
        newest.insert(shop, action);
        // counted before the start: a pass may be over before all of its programs run
        let began_at = world.requests();
        let mut running = programs(&world, round);
        reach(&world, began_at, began_at + 7 * round % 60).await;
        running.iter_mut().for_each(kill);
        world.kills += 1;
        settle(&world).await;
    }
    // the first one finishes visits that began before the last changes, the second one looks at everything anew
    for _ in 0..2 {
        world.crawl(&["--lease", "1s", "--revisit", "0s"]);
    }
    assert_all_there_once(&world).await;
    let api = world.api().await;
    for (shop, action) in newest {
        let found = api.search(&format!("site={shop}")).await;
        assert!(found.contains(&action), "{shop} declares {action}, and there is {found:?}");
    }
    world.assert_polite();
}

/// The next version has expanded the schema: programs of this one go on, as after a downgrade.
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
    assert_all_there_once(&world).await;
    assert!(world.api().await.search("site=shop0.test").await.contains(&"book_flight_later".to_owned()));
    world.assert_polite();
}

/// Asks replicas in turn, as a balancer would: one that refuses the connection is passed over, and everything else that is
/// not an answer is a failure.
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

    /// Waits until so many further requests were answered.
    async fn go_on(&self, requests: usize) {
        let until = self.answered.load(Ordering::Relaxed) + requests;
        let reached = async {
            while self.answered.load(Ordering::Relaxed) < until {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), reached).await.expect("nobody answers any more");
    }

    async fn assert_no_failure(self) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.clients.join_all().await.concat();
        assert!(failures.is_empty(), "{} requests failed: {:?}", failures.len(), failures.first());
    }
}

/// A connection that the kernel took and nobody accepted before the socket was closed: balancers ask the next replica then, as
/// they may for any GET without an answer (RFC 9110 §9.2.2).
fn was_not_taken(error: &reqwest::Error) -> bool {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let mut of_network = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    of_network.any(|cause| cause.kind() == std::io::ErrorKind::ConnectionReset)
}

#[expect(clippy::disallowed_methods, reason = "asks our own api on loopback")]
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
                    .map_err(|error| format!("{url}: cut short: {error:?}"));
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

/// Every process of a fleet is restarted in turn, and the index is built anew, under load.
pub(crate) async fn a_rolling_restart_fails_no_request(backend: Backend) {
    let world = shops(backend).await;
    world.crawl(&[]);
    let mut indexer = quiet(world.program("indexer"));
    let mut replicas = [world.api().await, world.api().await];
    let load = Load::on(&replicas.iter().map(|api| api.base().to_owned()).collect::<Vec<_>>());
    load.go_on(50).await;
    for turn in 0..4 {
        let replica = &mut replicas[turn % 2];
        replica.restart(&world).await;
        load.go_on(50).await;
    }
    kill(&mut indexer);
    let rebuilt = world.program("indexer").arg("rebuild").output().unwrap();
    assert!(rebuilt.status.success(), "{}", crate::world::said(&rebuilt));
    load.go_on(50).await;
    load.assert_no_failure().await;
    assert_all_there_once(&world).await;
}

/// Replicas without an indexer serve what one publishes, and take up what changes, under load.
pub(crate) async fn replicas_serve_published_snapshots(backend: Backend) {
    let world = shops(backend).await;
    world.crawl(&[]);
    let snapshots = world.path("snapshots");
    let published = |world: &World| {
        let done = world.program("indexer").args(["--once", "--publish"]).arg(&snapshots).output().unwrap();
        assert!(done.status.success(), "{}", crate::world::said(&done));
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
