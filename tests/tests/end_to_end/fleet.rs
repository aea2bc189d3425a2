//! A fleet on one PostgreSQL database: sites that share addresses, crawlers that are killed and restarted, and one that loses its
//! connection to the database.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agentdex_tests::audit;
use sqlx::{Connection as _, PgConnection};
use testweb::{Host, Web};
use tokio::time::Instant;

use crate::proxy::Proxy;
use crate::world::{Backend, World, kill};

const SITES_DEFAULT: usize = 300;
/// Each address is in its own network, and thus in its own address group.
const ADDRESSES: usize = 30;
/// Number of groups of sites whose hosts have addresses of several owners.
const SPREAD: usize = 8;
const CRAWLERS: usize = 4;
const CONCURRENCY: usize = 32;
/// Number of killed crawlers; the next one starts immediately.
const KILLS: usize = 5;
/// Longer than a lease: the other crawlers take over the sites of the disconnected one.
const CUT: Duration = Duration::from_secs(8);
const LEASE: Duration = Duration::from_secs(4);
/// Required gap between two requests to one address.
const ADDRESS_GAP: Duration = Duration::from_millis(500);
/// robots.txt and the allowed paths; twice as many if the worker of a visit is killed.
const REQUESTS_PER_SITE_MAX: usize = 8;
/// Additional time on a busy machine.
const GRACE: Duration = Duration::from_secs(40);
/// Step of a fixed pseudo-random sequence, so that failures are reproducible.
const STEP: usize = 7_919;
/// Allows a few paths of each site, so that each address is busy for a limited time.
pub(crate) const ROBOTS: &str = "User-agent: *\nAllow: /agent.json$\nAllow: /agents.json$\nDisallow: /\n";

/// Number of sites; `AGENTDEX_TEST_FLEET_SITES=5000` sets the full size.
#[expect(clippy::disallowed_methods, reason = "the setting for the full size of one test")]
fn sites() -> usize {
    let configured = std::env::var("AGENTDEX_TEST_FLEET_SITES").ok().and_then(|text| text.parse().ok());
    configured.unwrap_or(SITES_DEFAULT)
}

/// A host at an address that several hosts share.
pub(crate) fn host(name: &str, index: usize) -> Host {
    let network = u8::try_from(1 + index % ADDRESSES).expect("fewer addresses than networks");
    Host::new(name).at([127, 0, network, 1].into())
}

/// Sites whose hosts have addresses of several owners: two seeded ones, and one whose robots.txt is on another host.
fn spread_sites(index: usize) -> [Host; 4] {
    let robots = format!("https://www.apex{index}.test/robots.txt");
    [
        host(&format!("www.twin{index}.test"), index).robots(ROBOTS),
        host(&format!("api.twin{index}.test"), index + 11).robots(ROBOTS),
        host(&format!("apex{index}.test"), index + 5).redirect("/robots.txt", 301, &robots),
        host(&format!("www.apex{index}.test"), index + 18).robots(ROBOTS),
    ]
}

fn spawn(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Requires that the whole fleet is polite, including the rules for addresses, and that no site is lost or stays leased, and no row of a
/// worker remains in the database.
pub(crate) async fn a_fleet_survives_kills_and_a_lost_connection() {
    let single = sites();
    let sites = single + 2 * SPREAD;
    let site = |index| host(&format!("site{index}.test"), index).robots(ROBOTS);
    let spread = (0..SPREAD).flat_map(spread_sites);
    let web = Web::builder().hosts((0..single).map(site)).hosts(spread);
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_secs(1);
    let spread = (0..SPREAD).flat_map(|index| {
        [format!("www.twin{index}.test"), format!("api.twin{index}.test"), format!("apex{index}.test")]
    });
    world.write_seeds((0..single).map(|index| format!("site{index}.test")).chain(spread));
    let direct = world.database_url.clone().unwrap();
    let mut proxy = Proxy::before(&mut world, Duration::ZERO).await;

    let (concurrency, lease) = (CONCURRENCY.to_string(), format!("{}s", LEASE.as_secs()));
    // at full size, an address is busy for longer than the default wait of a pass
    let flags = ["--strict", "--concurrency", &concurrency, "--lease", &lease, "--park-wait", "30m"];
    let behind_proxy = world.crawler(&flags);
    world.database_url = Some(direct.clone());
    // each command writes files that the others read, so all commands are created before the first one starts
    let commands: Vec<Command> = (0..CRAWLERS - 1 + KILLS).map(|_| world.crawler(&flags)).collect();
    let mut waiting = commands.into_iter();
    let mut cut_off = spawn(behind_proxy);
    let mut fleet: Vec<Child> = waiting.by_ref().take(CRAWLERS - 1).map(spawn).collect();

    for (round, next) in waiting.enumerate() {
        let hits = (round + 1) * 2 * sites / KILLS;
        world.web.log().wait_until(|log| log.hit_count() >= hits).await;
        if round == 1 {
            proxy.cut().await;
            tokio::time::sleep(CUT).await;
            proxy.restore().await;
        }
        let victim = (round + 1) * STEP % fleet.len();
        kill(&mut fleet[victim]);
        world.kills += 1;
        fleet[victim] = spawn(next);
    }
    // the crawlers that take over its sites may repeat the last requests of the disconnected crawler
    world.kills += 1;
    let began = Instant::now();
    let ended = tokio::task::spawn_blocking(move || {
        fleet.iter_mut().chain([&mut cut_off]).all(|crawler| crawler.wait().unwrap().success())
    });
    assert!(ended.await.unwrap(), "a crawler failed");
    // the rest of the pass waits only for the busiest address and for the leases of killed crawlers
    let busy = ADDRESS_GAP * u32::try_from(REQUESTS_PER_SITE_MAX * sites.div_ceil(ADDRESSES)).unwrap();
    let took = began.elapsed();
    assert!(took < busy + 4 * LEASE + GRACE, "the pass took {took:?} after the last kill");

    let mut database = PgConnection::connect(&direct).await.unwrap();
    let rows = async |database: &mut PgConnection, sql: &'static str| -> i64 {
        sqlx::query_scalar(sql).fetch_one(database).await.unwrap()
    };
    let lost: Vec<String> = sqlx::query_scalar(LOST).fetch_all(&mut database).await.unwrap();
    assert!(lost.is_empty(), "sites were lost: {lost:#?}");
    let visited = rows(&mut database, "SELECT COUNT(*) FROM site_state WHERE visits >= 1").await;
    assert_eq!(visited, i64::try_from(sites).unwrap(), "seeds were lost");
    for left_behind in LEFT_BEHIND {
        assert_eq!(rows(&mut database, left_behind).await, 0, "{left_behind}");
    }
    let policy = audit::Policy {
        site_gap: Some(Duration::from_secs(1)),
        address_gap: Some(ADDRESS_GAP),
        site_in_flight_max: Some(2),
        address_in_flight_max: Some(1),
        authority_budget: Some(40),
        ..world.policy()
    };
    audit::check(&world.web.log().hits(), &policy).assert_clean();
}

/// Sites without a visit in the database.
const LOST: &str = "SELECT CAST(row_to_json(site) AS TEXT) || CAST(row_to_json(site_state) AS TEXT)
    FROM site LEFT JOIN site_state USING (name) WHERE COALESCE(visits, 0) = 0 ORDER BY name";

/// Counts that must be 0 after the last crawler.
const LEFT_BEHIND: [&str; 3] = [
    "SELECT COUNT(*) FROM site WHERE lease_owner IS NOT NULL",
    "SELECT COUNT(*) FROM worker",
    "SELECT COUNT(*) FROM group_owner",
];
