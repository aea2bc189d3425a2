//! How fast the store is: seeds, leases, visits and the feed, on both back ends. `tests/bench store` runs it.
//!
//! Prints one JSON object a back end. The hand-written transaction writes the rows that a visit which found nothing writes,
//! with prepared statements and nothing else, on the same database.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its numbers and ends where it fails"
)]

use std::time::{Duration, Instant};

use agentdex_tests::harness::TestDatabase;
use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use serde_json::json;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use store::{
    DatabaseUrl, FeedPosition, FetchRecord, LeaseRequest, NextVisit, PathCheck, PathSlots, Phases,
    RobotsRecord, Seed, Store, StoreConfig, VisitRecord, WorkerId,
};

/// Sites leased by one statement.
const LEASE_BATCH: u32 = 500;
/// Workers at the same time.
const WORKERS: usize = 4;
/// How long leases are taken and given back.
const LEASING: Duration = Duration::from_secs(20);
/// Visits saved by each worker.
const VISITS: usize = 500;
/// Rows of the feed that are read.
const FEED_ROWS: u64 = 200_000;
const SEED_BATCH: usize = 20_000;

fn start() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn clock() -> Instant {
    Instant::now()
}

fn rate(count: u64, since: Instant) -> u64 {
    let micros = since.elapsed().as_micros().max(1);
    u64::try_from(u128::from(count) * 1_000_000 / micros).unwrap()
}

fn request(worker: usize, sites_max: u32) -> LeaseRequest {
    LeaseRequest::due_now(WorkerId::new(&format!("worker{worker}")), sites_max, start())
}

async fn seed(store: &Store, sites: usize) -> u64 {
    let began = clock();
    let names: Vec<Seed> = (0..sites)
        .map(|number| {
            Seed::of_host(
                Host::parse(&format!("site-{:x}.example", number * 2_654_435_761 % (1 << 40))).unwrap(),
            )
        })
        .collect();
    let began = if names.is_empty() { began } else { clock() };
    for batch in names.chunks(SEED_BATCH) {
        store.seeds_add(batch, start()).await.unwrap();
    }
    rate(sites as u64, began)
}

/// Sites leased and given back a second, in batches.
async fn lease(store: &Store) -> u64 {
    let began = clock();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let store = store.clone();
        workers.spawn(async move {
            let mut done = 0;
            while began.elapsed() < LEASING {
                let leased = store.sites_lease(&request(worker, LEASE_BATCH), start()).await.unwrap();
                let next = start() + TimeDelta::days(14);
                let ends: Vec<_> = leased.into_iter().map(|leased| (leased.token, Some(next))).collect();
                let ended = store.leases_end(&ends).await.unwrap();
                assert_eq!(ended.len(), ends.len());
                done += ended.len() as u64;
            }
            done
        });
    }
    rate(workers.join_all().await.into_iter().sum(), began)
}

fn fetch(site: &SiteName, path: usize) -> FetchRecord {
    FetchRecord {
        url: ManifestUrl::parse(&format!("https://{site}/.well-known/path-{path}.json")).unwrap(),
        final_url: None,
        discovery: Discovery::WellKnown,
        linked_from: None,
        outcome: FetchOutcome::NotFound,
        reason: None,
        robots_rule: None,
        status: Some(404),
        headers: vec![("content-type".into(), "text/html".into())],
        etag: None,
        last_modified: None,
        cache: None,
        fresh_until: None,
        content_hash: None,
        body: None,
        store_body: true,
        manifest: None,
        at: start(),
        duration_ms: 42,
        address: Some([192, 0, 2, 7].into()),
        bytes: 512,
    }
}

/// A visit that asked for twenty paths and found nothing.
fn visit(site: &SiteName) -> VisitRecord {
    let mut paths_checked = PathSlots::new();
    (0..20).for_each(|slot| paths_checked.set(slot, PathCheck { class: 4, day: 20_000 }));
    VisitRecord {
        site: site.clone(),
        started_at: start(),
        ended_at: start() + TimeDelta::seconds(30),
        end: VisitEnd::Completed,
        status: Status::Fresh,
        next_visit: NextVisit { at: start() + TimeDelta::days(14), reason: "nothing was found".into() },
        robots: vec![RobotsRecord {
            host: Host::parse(site.as_str()).unwrap(),
            kind: RobotsKind::NoFile,
            cause: None,
            status: Some(404),
            body: None,
            fetched_at: start(),
            expires_at: start() + TimeDelta::days(1),
            failures_in_row: 0,
            etag: None,
            last_modified: None,
        }],
        fetches: (0..20).map(|path| fetch(site, path)).collect(),
        changed_any: false,
        paths_checked,
        failures_in_row: 0,
        negatives_in_row: 1,
        new_seeds: Vec::new(),
        phases: Phases::default(),
        requests: 20,
        bytes_in: 10_240,
        crawler_version: "0.1.0".into(),
    }
}

/// Visits saved a second, one transaction each; the sites are leased beforehand.
async fn save(store: &Store) -> u64 {
    let mut leased = Vec::new();
    for worker in 0..WORKERS {
        leased.push(
            store.sites_lease(&request(worker, u32::try_from(VISITS).unwrap()), start()).await.unwrap(),
        );
    }
    let began = clock();
    let mut workers = tokio::task::JoinSet::new();
    for sites in leased {
        let store = store.clone();
        workers.spawn(async move {
            for leased in &sites {
                store.visit_save(&leased.token, &visit(&leased.token.site)).await.unwrap();
            }
            sites.len() as u64
        });
    }
    rate(workers.join_all().await.into_iter().sum(), began)
}

/// The rows of [`save`] by hand. `$body` makes the packed story as large as the store's.
macro_rules! by_hand {
    ($connection:expr, $worker:expr, $begin:literal) => {{
        for number in 0..VISITS {
            let name = format!("hand-{}-{number}.example", $worker);
            let mut transaction = $connection.begin_with($begin).await.unwrap();
            for statement in [
                "INSERT INTO site (name, priority, next_visit_at_ms) VALUES ($1, 2, 9000000000)",
                "INSERT INTO site_state (name, status, first_seen_at_ms, visits) VALUES ($1, 'fresh', 5, 1)",
                "INSERT INTO host (host, site, seeded) VALUES ($1, $1, 1)",
                "INSERT INTO robots (host, site, kind, status, fetched_at_ms, expires_at_ms, failures_in_row)
                 VALUES ($1, $1, 'no_file', 404, 5, 6, 0)",
                "UPDATE site SET lease_owner = NULL, lease_until_ms = 0, next_visit_at_ms = 9000000001 WHERE name = $1",
                "INSERT INTO visit (site, started_at_ms, ended_at_ms, visit_end, status, next_visit_at_ms,
                     next_visit_reason, requests, bytes_in, dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, outcomes,
                     crawler_version, fetches)
                 VALUES ($1, 5, 6, 'completed', 'fresh', 9000000001, 'nothing was found', 20, 10240, 0, 0, 0, 0, 0,
                     'not_found=20', '0.1.0', '012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789')",
            ] {
                sqlx::query(statement).bind(&name).execute(&mut *transaction).await.unwrap();
            }
            transaction.commit().await.unwrap();
        }
        VISITS as u64
    }};
}

async fn save_by_hand(url: &DatabaseUrl) -> u64 {
    let began = clock();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let url = url.clone();
        workers.spawn(async move {
            match &url {
                DatabaseUrl::Postgres(url) => {
                    let mut connection = PgConnection::connect(url).await.unwrap();
                    by_hand!(connection, worker, "BEGIN")
                }
                DatabaseUrl::Sqlite(path) => {
                    let url = format!("sqlite:{}", path.display());
                    let mut connection = SqliteConnection::connect(&url).await.unwrap();
                    sqlx::raw_sql("PRAGMA busy_timeout = 60000; PRAGMA synchronous = NORMAL")
                        .execute(&mut connection)
                        .await
                        .unwrap();
                    by_hand!(connection, worker, "BEGIN IMMEDIATE")
                }
            }
        });
    }
    rate(workers.join_all().await.into_iter().sum(), began)
}

/// Rows of the feed given their positions and read, a second.
async fn feed(store: &Store, url: &DatabaseUrl) -> u64 {
    let rows = "INSERT INTO feed_pending (at_ms, change, site, manifest_id, reason)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 200000)
         SELECT 0, 'changed', 'sky.example', 'maaaaaaaaaaaaaaaa', NULL FROM number";
    match url {
        DatabaseUrl::Postgres(url) => {
            sqlx::raw_sql(rows).execute(&mut PgConnection::connect(url).await.unwrap()).await.unwrap();
        }
        DatabaseUrl::Sqlite(path) => {
            let url = format!("sqlite:{}", path.display());
            sqlx::raw_sql(rows).execute(&mut SqliteConnection::connect(&url).await.unwrap()).await.unwrap();
        }
    }
    let began = clock();
    let mut position = FeedPosition(0);
    let mut read = 0;
    while read < FEED_ROWS {
        let entries = store.feed_read(position, 1_000).await.unwrap();
        position = entries.last().unwrap().position;
        read += entries.len() as u64;
    }
    rate(read, began)
}

async fn measure(url: DatabaseUrl, sites: usize) {
    let store = Store::open(&StoreConfig::new(url.clone())).await.unwrap();
    let name = store.backend().as_str();
    let seeds_per_s = seed(&store, sites).await;
    let space: u64 = store.space().await.unwrap().iter().map(|space| space.bytes).sum();
    let seeds_again_per_s = seed(&store, sites / 10).await;
    let leased_per_s = lease(&store).await;
    let visits_per_s = save(&store).await;
    let by_hand_per_s = save_by_hand(&url).await;
    let feed_per_s = feed(&store, &url).await;
    println!(
        "{}",
        json!({
            "back_end": name, "sites": sites, "seeds_per_s": seeds_per_s, "known_seeds_per_s": seeds_again_per_s,
            "bytes_per_seeded_site": space / sites as u64, "leased_and_completed_per_s": leased_per_s,
            "visits_saved_per_s": visits_per_s, "same_rows_by_hand_per_s": by_hand_per_s, "feed_rows_per_s": feed_per_s,
        })
    );
    store.close().await;
}

#[tokio::main]
async fn main() {
    let asked = |at| std::env::args().nth(at).and_then(|number| number.parse().ok());
    let (on_postgres, on_sqlite) = (asked(1).unwrap_or(100_000), asked(2).unwrap_or(100_000));
    if on_postgres > 0 {
        let database = TestDatabase::create().await.unwrap();
        measure(DatabaseUrl::parse(&database.url()).unwrap(), on_postgres).await;
        database.drop_database().await.unwrap();
    }
    if on_sqlite > 0 {
        let dir = tempfile::tempdir().unwrap();
        measure(DatabaseUrl::in_data_dir(dir.path()), on_sqlite).await;
    }
}
