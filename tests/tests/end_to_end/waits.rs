//! A database that is slow, full, or locked by another program. The crawler waits, logs this, and continues automatically; no request
//! starts before its clock is written.

use std::process::Stdio;
use std::time::Duration;

use sqlx::Connection as _;
use testweb::{Host, Web};

use crate::faults::{GRACE_US, SITES, UNAVAILABLE, outage, visited_all};
use crate::proxy::Proxy;
use crate::world::{Backend, World};

/// Round-trip time of a statement on a slow connection.
const SLOW: Duration = Duration::from_millis(120);
/// A program logs after this time that it is waiting for the embedded database.
const BUSY: Duration = Duration::from_secs(30);

async fn shops(backend: Backend) -> (World, Vec<String>) {
    let names: Vec<String> = (0..SITES).map(|index| format!("shop{index}.test")).collect();
    let card = crate::flow::airline("book_flight");
    let hosts =
        names.iter().map(|name| Host::new(name).file("/agent.json", "application/json", card.clone()));
    let mut world = World::start(backend, Web::builder().hosts(hosts)).await;
    world.delay = Duration::from_millis(150);
    world.write_seeds(&names);
    (world, names)
}

/// Fails if a request started in a time range. Requests with earlier clocks may start within a grace period.
fn assert_no_requests(world: &World, from_us: u64, to_us: u64) {
    let hits = world.web.log().hits().into_iter();
    let during: Vec<_> = hits.filter(|hit| (from_us + GRACE_US..to_us).contains(&hit.started_us)).collect();
    assert!(during.is_empty(), "requests started while the database was not writable: {during:?}");
}

/// Delays every statement. Requires that the crawl succeeds and no lease is lost.
pub(crate) async fn a_slow_database_only_slows_the_crawl() {
    let (mut world, _) = shops(Backend::Postgres).await;
    let direct = world.database_url.clone();
    let _proxy = Proxy::before(&mut world, SLOW / 2).await;
    let mut command = world.crawler(&["--concurrency", "4", "--lease", "10s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let log = visited_all(child, SITES).await;
    for lost in ["leases could not be renewed", "another worker resumes"] {
        assert!(!log.contains(lost), "{log}");
    }
    world.database_url = direct;
    let status = world.status();
    assert_eq!((&status["manifests"], &status["sites_leased"]), (&SITES.into(), &0.into()), "{status}");
    world.assert_polite();
}

/// Simulates a full disk of the server: every write of a clock or a visit fails with that error code. Requires that no request starts
/// meanwhile, and that afterwards every visit is saved completely and exactly once.
pub(crate) async fn a_full_disk_of_the_server_is_waited_out() {
    let (world, names) = shops(Backend::Postgres).await;
    let mut command = world.crawler(&[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 4 * SITES).await;
    world
        .execute(
            "CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
             CREATE TRIGGER disk_full BEFORE INSERT ON host FOR EACH STATEMENT EXECUTE FUNCTION disk_full();
             CREATE TRIGGER disk_full BEFORE INSERT ON visit FOR EACH STATEMENT EXECUTE FUNCTION disk_full();",
        )
        .await;
    let full_us = world.web.log().now_us();
    tokio::time::sleep(outage()).await;
    let freed_us = world.web.log().now_us();
    world.execute("DROP TRIGGER disk_full ON host; DROP TRIGGER disk_full ON visit").await;
    let log = visited_all(child, SITES).await;
    assert!(log.contains(UNAVAILABLE) && log.contains("the disk of the database is full"), "{log}");
    assert_no_requests(&world, full_us, freed_us);
    let status = world.status();
    assert_eq!(
        (&status["visits"], &status["manifests"]),
        (&names.len().into(), &names.len().into()),
        "{status}"
    );
    world.assert_polite();
}

/// Another program holds the write lock of the embedded database. After half a minute, the crawler logs that it is waiting (only
/// `tests/faults full` waits that long).
pub(crate) async fn a_lock_of_another_program_is_waited_out() {
    let (world, names) = shops(Backend::Sqlite).await;
    let mut command = world.crawler(&[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.web.log().wait_until(|log| log.hit_count() >= 4 * SITES).await;
    let file = format!("sqlite:{}", world.path("data/agentdex.db").display());
    let mut other = sqlx::SqliteConnection::connect(&file).await.unwrap();
    sqlx::raw_sql("PRAGMA busy_timeout = 30000; BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let locked_us = world.web.log().now_us();
    tokio::time::sleep(outage()).await;
    let freed_us = world.web.log().now_us();
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let log = visited_all(child, SITES).await;
    assert!(outage() <= BUSY || log.contains(UNAVAILABLE), "{log}");
    assert_no_requests(&world, locked_us, freed_us);
    let status = world.status();
    assert_eq!(
        (&status["visits"], &status["manifests"]),
        (&names.len().into(), &names.len().into()),
        "{status}"
    );
    world.assert_polite();
}
