//! Benchmark of the store: seeds, leases, visits and the feed, on both backends. `tests/bench store` runs it, on the
//! server that `AGENTDEX_TEST_POSTGRES` names.
//!
//! `months SITES PASS_DAYS DAYS` simulates a crawl of several weeks on the server instead (`months.rs`).
//!
//! Prints one JSON object per backend. It also measures a hand-written transaction of the same rows as a visit's, and the size of a site
//! before its first visit and after a visit that found nothing.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a benchmark prints its numbers and panics on failure"
)]

mod by_hand;
mod months;
mod saving;
mod visits;

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use manifest::Host;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::{DatabaseUrl, HandOver, LeaseRequest, Seed, Store, StoreConfig, WorkerId};

use by_hand::Hand;
use months::Simulation;
use saving::Rates;
use visits::{Finding, next_visit_at, start, visit};

/// Sites leased by one statement.
const LEASE_BATCH: u32 = 500;
/// Concurrent workers.
const WORKERS: usize = 4;
/// Maximum time for leasing and releasing; it ends earlier if nothing is due.
const LEASING: Duration = Duration::from_secs(20);
/// Rows of the feed that are read.
const FEED_ROWS: u64 = 200_000;
/// Seeds added by one call, as many as the crawler reads at a time.
const SEED_BATCH: usize = 20_000;
/// All sites are marked as visited in this many batches. Vacuum runs between the batches, as in a crawl of several weeks.
const SLICES: usize = 20;

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn clock() -> Instant {
    Instant::now()
}

fn rate(count: u64, since: Instant) -> u64 {
    let micros = since.elapsed().as_micros().max(1);
    u64::try_from(u128::from(count) * 1_000_000 / micros).unwrap()
}

fn request(worker: usize, sites_max: u32) -> LeaseRequest {
    let due_before = start() + TimeDelta::days(60);
    LeaseRequest {
        due_before,
        ..LeaseRequest::due_now(WorkerId::new(&format!("worker{worker}")), sites_max, start())
    }
}

async fn seed(store: &Store, sites: usize) -> u64 {
    let names: Vec<Seed> = (0..sites)
        .map(|number| {
            Seed::of_host(
                Host::parse(&format!("site-{:x}.example", number * 2_654_435_761 % (1 << 40))).unwrap(),
            )
        })
        .collect();
    let began = clock();
    for batch in names.chunks(SEED_BATCH) {
        store.seeds_add(batch, start()).await.unwrap();
    }
    rate(sites as u64, began)
}

/// Sites leased and released per second, in batches.
async fn lease(store: &Store) -> u64 {
    let began = clock();
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let store = store.clone();
        workers.spawn(async move {
            let mut done = 0;
            while began.elapsed() < LEASING {
                let leased = store.sites_lease(&request(worker, LEASE_BATCH), start()).await.unwrap();
                if leased.is_empty() {
                    break;
                }
                let hand_over = || HandOver { due_at: next_visit_at(), progress: None };
                let ends: Vec<_> = leased.into_iter().map(|leased| (leased.token, hand_over())).collect();
                let ended = store.visits_hand_over(&ends).await.unwrap();
                assert_eq!(ended.len(), ends.len());
                done += ended.len() as u64;
            }
            done
        });
    }
    rate(workers.join_all().await.into_iter().sum(), began)
}

/// Rows of the feed that are sequenced and read per second.
async fn feed(store: &Store, hand: &mut Hand) -> u64 {
    let head = store.feed_head().await.unwrap();
    hand.run(format!(
        "INSERT INTO feed_pending (at_ms, change, site, manifest_id, reason)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {FEED_ROWS})
         SELECT 0, 'changed', 'sky.example', 'maaaaaaaaaaaaaaaa', NULL FROM number"
    ))
    .await;
    let began = clock();
    let mut position = head;
    let mut read = 0;
    while read < FEED_ROWS {
        let entries = store.feed_read(position, 1_000).await.unwrap();
        position = entries.last().unwrap().position;
        read += entries.len() as u64;
    }
    rate(read, began)
}

async fn bytes(store: &Store) -> u64 {
    store.space().await.unwrap().iter().map(|space| space.bytes).sum()
}

/// Bytes of a compacted site that was visited without content. The store compacts one site; the others get a copy
/// of its columns.
async fn bytes_in_vain(store: &Store, hand: &mut Hand, sites: usize) -> u64 {
    let leased = store.sites_lease(&request(0, 1), start()).await.unwrap();
    let site = &leased[0].token.site;
    store.visit_save(&leased[0].token, &visit(site, Finding::Nothing)).await.unwrap();
    assert_eq!(store.housekeeping(start() + TimeDelta::days(3)).await.unwrap().sites_compacted, 1);
    let slice = sites.div_ceil(SLICES);
    let mut after = String::new();
    loop {
        let upper = format!(
            "SELECT name FROM site WHERE name > '{after}' ORDER BY name LIMIT 1 OFFSET {}",
            slice - 1
        );
        let upper = hand.lines(upper).await.pop();
        let to = upper.as_deref().unwrap_or("z");
        hand.run(format!(
            "UPDATE site SET packed = compacted.packed, visits_at_rest = 1, fence = 1,
                    compacted_status = compacted.compacted_status,
                    compacted_last_visit_at_ms = compacted.compacted_last_visit_at_ms,
                    next_visit_at_ms = site.next_visit_at_ms + 1209600000
             FROM (SELECT packed, compacted_status, compacted_last_visit_at_ms FROM site WHERE name = '{site}') AS compacted
             WHERE site.name > '{after}' AND site.name <= '{to}' AND site.name <> '{site}'",
        ))
        .await;
        hand.vacuum().await;
        let Some(upper) = upper else { break };
        after = upper;
    }
    bytes(store).await / sites as u64
}

async fn measure(url: DatabaseUrl, sites: usize) {
    let store = Store::open(&StoreConfig::new(url.clone())).await.unwrap();
    let name = store.backend().as_str();
    let mut hand = Hand::open(&url).await;
    let seeds_per_s = seed(&store, sites).await;
    let bytes_per_seeded_site = bytes(&store).await / sites as u64;
    let known_seeds_per_s = seed(&store, sites / 10).await;
    let bytes_per_negative_site = bytes_in_vain(&store, &mut hand, sites).await;
    let in_vain = saving::measure(&store, &url, Finding::Nothing).await;
    let with_manifest = saving::measure(&store, &url, Finding::Manifest).await;
    let leased_and_completed_per_s = lease(&store).await;
    let feed_rows_per_s = feed(&store, &mut hand).await;
    println!(
        "{}",
        json!({
            "back_end": name, "sites": sites, "seeds_per_s": seeds_per_s, "known_seeds_per_s": known_seeds_per_s,
            "bytes_per_seeded_site": bytes_per_seeded_site, "bytes_per_negative_site": bytes_per_negative_site,
            "leased_and_completed_per_s": leased_and_completed_per_s, "visits_in_vain": rates_json(&in_vain),
            "visits_with_a_new_manifest": rates_json(&with_manifest), "feed_rows_per_s": feed_rows_per_s,
        })
    );
    store.close().await;
}

fn rates_json(rates: &Rates) -> serde_json::Value {
    let Rates { one_by_one, together, by_hand } = *rates;
    let share = |rate: f64| (rate / by_hand * 100.0).round() / 100.0;
    json!({
        "one_by_one_per_s": one_by_one.round(), "together_per_s": together.round(), "by_hand_per_s": by_hand.round(),
        "one_by_one_of_by_hand": share(one_by_one), "together_of_by_hand": share(together),
    })
}

/// Runs a benchmark with a temporary database on the server, and drops the database at the end.
async fn on_postgres<F: Future<Output = ()>>(run: impl FnOnce(DatabaseUrl) -> F) {
    #[expect(clippy::disallowed_methods, reason = "the caller of the benchmark chooses the server")]
    let server = std::env::var("AGENTDEX_TEST_POSTGRES").unwrap();
    let (host, _) = server.rsplit_once('/').unwrap();
    let name = format!("agentdex_bench_{}", std::process::id());
    let mut connection = PgConnection::connect(&server).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
    run(DatabaseUrl::parse(&format!("{host}/{name}")).unwrap()).await;
    let dropping = format!("DROP DATABASE {name} WITH (FORCE)");
    sqlx::raw_sql(AssertSqlSafe(dropping)).execute(&mut connection).await.unwrap();
}

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).map_or(default, |number| number.parse().expect("a number"))
    };
    if arguments.first().is_some_and(|first| first == "months") {
        let days = |at, default| u32::try_from(number(at, default)).unwrap();
        let simulation = Simulation { sites: number(1, 100_000), pass_days: days(2, 7), days: days(3, 37) };
        return on_postgres(|url| months::simulate(url, simulation)).await;
    }
    let (postgres_sites, sqlite_sites) = (number(0, 100_000), number(1, 100_000));
    if postgres_sites > 0 {
        on_postgres(|url| measure(url, postgres_sites)).await;
    }
    if sqlite_sites > 0 {
        let dir = tempfile::tempdir().unwrap();
        measure(DatabaseUrl::in_data_dir(dir.path()), sqlite_sites).await;
    }
}
