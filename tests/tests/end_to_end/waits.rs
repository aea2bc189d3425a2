//! The database is there, but does not do what it is asked: it is slow, full, or held by another program. The crawler waits,
//! says so, and goes on by itself; no request leaves whose clock is not written.

use std::process::Stdio;
use std::time::Duration;

use sqlx::Connection as _;
use testweb::{Host, Web};

use crate::faults::{GRACE_US, SITES, WAITING, outage, visited_all};
use crate::proxy::Proxy;
use crate::world::{Backend, World};

/// What a statement takes on a slow line, there and back.
const SLOW: Duration = Duration::from_millis(120);
/// After this a program on the embedded database no longer waits in silence for another one.
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

/// Fails where a request left in a time; those whose clocks were written before it may still begin.
fn assert_silence(world: &World, from_us: u64, to_us: u64) {
    let hits = world.web.log().hits().into_iter();
    let during: Vec<_> = hits.filter(|hit| (from_us + GRACE_US..to_us).contains(&hit.started_us)).collect();
    assert!(during.is_empty(), "requests left while nothing could be written: {during:?}");
}

/// Every statement takes a fifth of a second on its way. Pass marks: the crawl ends well, and no lease is lost.
pub(crate) async fn a_slow_database_only_slows_the_crawl() {
    let (mut world, _) = shops(Backend::Postgres).await;
    let direct = world.database_url.clone();
    let _proxy = Proxy::before(&mut world, SLOW / 2).await;
    let mut command = world.crawler(&["--concurrency", "4", "--lease", "10s"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = visited_all(child, SITES).await;
    for lost in ["leases could not be renewed", "another worker resumes"] {
        assert!(!said.contains(lost), "{said}");
    }
    world.database_url = direct;
    let told = world.status();
    assert_eq!((&told["manifests"], &told["sites_leased"]), (&SITES.into(), &0.into()), "{told}");
    world.assert_polite();
}

/// The disk of the server is full, as its clients hear of it: every write of a clock or a visit is refused with that code.
/// Pass marks: silence, then every visit is saved, and none is saved twice or in part.
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
    let said = visited_all(child, SITES).await;
    assert!(said.contains(WAITING) && said.contains("the disk of the database is full"), "{said}");
    assert_silence(&world, full_us, freed_us);
    let told = world.status();
    assert_eq!((&told["visits"], &told["manifests"]), (&names.len().into(), &names.len().into()), "{told}");
    world.assert_polite();
}

/// Another program holds the write lock of the embedded database. It is waited for in silence at first, and with a word
/// after half a minute (`tests/faults full` waits that long).
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
    let said = visited_all(child, SITES).await;
    assert!(outage() <= BUSY || said.contains(WAITING), "{said}");
    assert_silence(&world, locked_us, freed_us);
    let told = world.status();
    assert_eq!((&told["visits"], &told["manifests"]), (&names.len().into(), &names.len().into()), "{told}");
    world.assert_polite();
}
