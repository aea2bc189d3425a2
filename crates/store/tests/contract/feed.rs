//! The change feed is complete, ordered and free of duplicates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use manifest::SiteName;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use store::{DatabaseUrl, FeedEntry, FeedPosition, Store};

use crate::build::{found, later, start, visited};
use crate::harness::Db;

const WRITERS: u32 = 16;
/// Transactions of each writer; `AGENTDEX_TEST_FEED_TRANSACTIONS` sets another number.
const TRANSACTIONS_DEFAULT: u32 = 60;
/// A change of a manifest by one writer; the reason contains the writer and the number.
const INSERT: &str = "INSERT INTO feed_pending (at_ms, change, site, manifest_id, reason)
    VALUES (0, 'changed', 'sky.example', 'maaaaaaaaaaaaaaaa', ";

fn transactions() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "tests have no configuration module")]
    let asked = std::env::var("AGENTDEX_TEST_FEED_TRANSACTIONS");
    asked.ok().and_then(|number| number.parse().ok()).unwrap_or(TRANSACTIONS_DEFAULT)
}

/// Reads until the writers are done and the feed is drained, and checks that positions have no gaps.
async fn read_all(store: &Store, done: &AtomicBool) -> Result<Vec<FeedEntry>> {
    let mut seen: Vec<FeedEntry> = Vec::new();
    loop {
        let was_done = done.load(Ordering::SeqCst);
        let after = seen.last().map_or(FeedPosition(0), |entry| entry.position);
        let batch = store.feed_read(after, 100).await?;
        if batch.is_empty() && was_done {
            return Ok(seen);
        }
        for entry in batch {
            let expected = seen.last().map_or(1, |last| last.position.0 + 1);
            assert_eq!(entry.position.0, expected, "a gap or a repetition in the feed");
            seen.push(entry);
        }
        tokio::task::yield_now().await;
    }
}

/// A writer's connection to either backend.
enum Writer {
    Postgres(PgConnection),
    Sqlite(SqliteConnection),
}

impl Writer {
    async fn connect(url: &DatabaseUrl) -> Result<Self> {
        Ok(match url {
            DatabaseUrl::Postgres(url) => Self::Postgres(PgConnection::connect(url).await?),
            DatabaseUrl::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await?;
                let as_the_store = "PRAGMA busy_timeout = 30000; PRAGMA synchronous = NORMAL";
                sqlx::raw_sql(as_the_store).execute(&mut connection).await?;
                Self::Sqlite(connection)
            }
        })
    }

    /// Statements in one transaction, which stays open for a while if others may write in the meantime.
    async fn write(&mut self, statements: &str, pause_s: f64, end: &str) -> Result<()> {
        match self {
            Self::Postgres(connection) => {
                let script = format!("BEGIN; {statements} SELECT pg_sleep({pause_s}); {end}");
                sqlx::raw_sql(AssertSqlSafe(script)).execute(connection).await?;
            }
            Self::Sqlite(connection) => {
                let script = format!("BEGIN IMMEDIATE; {statements} {end}");
                sqlx::raw_sql(AssertSqlSafe(script)).execute(connection).await?;
            }
        }
        Ok(())
    }
}

/// A few statements in each transaction. One in ten is rolled back.
async fn write_slowly(url: &DatabaseUrl, writer: u32, transactions: u32) -> Result<u32> {
    let mut connection = Writer::connect(url).await?;
    let mut committed = 0;
    for number in 0..transactions {
        let mixed = (writer * 7919 + number * 104_729) % 97;
        let rows = 1 + mixed % 5;
        let end = if mixed.is_multiple_of(10) { "ROLLBACK" } else { "COMMIT" };
        let inserts: Vec<String> =
            (0..rows).map(|row| format!("{INSERT}'{writer}:{number}:{row}');")).collect();
        connection.write(&inserts.concat(), f64::from(mixed % 7) / 2_000.0, end).await?;
        committed += if end == "COMMIT" { rows } else { 0 };
    }
    Ok(committed)
}

pub(crate) async fn reads_every_change_of_concurrent_writers(db: Db) -> Result<()> {
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (store, done) = (db.store.clone(), Arc::clone(&done));
        readers.spawn(async move { read_all(&store, &done).await });
    }
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let url = db.config.url.clone();
        writers.spawn(async move { write_slowly(&url, writer, transactions()).await });
    }
    let mut committed = 0;
    while let Some(written) = writers.join_next().await {
        committed += written??;
    }
    done.store(true, Ordering::SeqCst);
    while let Some(seen) = readers.join_next().await {
        let seen = seen??;
        assert_eq!(seen.len(), committed as usize);
        // the changes of each writer keep their order
        let mut last = vec![None; WRITERS as usize];
        for entry in &seen {
            let parts: Vec<u32> =
                entry.reason.iter().flat_map(|reason| reason.split(':')).flat_map(str::parse).collect();
            let [writer, number, row] = parts.as_slice() else { anyhow::bail!("{entry:?}") };
            let Some(last) = last.get_mut(*writer as usize) else { anyhow::bail!("{entry:?}") };
            assert!(*last < Some((*number, *row)), "changes of writer {writer} out of order");
            *last = Some((*number, *row));
        }
    }
    assert_eq!(db.store.feed_head().await?, FeedPosition(i64::from(committed)));
    Ok(())
}

pub(crate) async fn feed_keeps_the_order_of_visits_of_many_workers(Db { store, .. }: Db) -> Result<()> {
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = tokio::task::JoinSet::new();
    {
        let (store, done) = (store.clone(), Arc::clone(&done));
        readers.spawn(async move { read_all(&store, &done).await });
    }
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WRITERS {
        let store = store.clone();
        workers.spawn(async move {
            let (name, at) = (format!("s{worker}.example"), format!("https://s{worker}.example/agent.json"));
            for round in 0..6 {
                let now = later(round);
                // all workers use the same text, so that documents collide
                visited(&store, &name, now, vec![found(&at, &format!("{round}"), &["book"], now)]).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(worked) = workers.join_next().await {
        worked??;
    }
    done.store(true, Ordering::SeqCst);
    let Some(seen) = readers.join_next().await else { anyhow::bail!("a reader") };
    let seen = seen??;
    assert_eq!(seen.len(), WRITERS as usize * 6);
    for worker in 0..WRITERS {
        let name = format!("s{worker}.example");
        let times: Vec<_> =
            seen.iter().filter(|entry| entry.site.as_str() == name).map(|entry| entry.at).collect();
        assert_eq!(times, (0..6).map(later).collect::<Vec<_>>());
    }
    assert_eq!(store.stats(start()).await?.documents, 6);
    Ok(())
}

pub(crate) async fn empty_feed_has_a_head_and_an_id(Db { store, .. }: Db) -> Result<()> {
    assert_eq!(store.feed_head().await?, FeedPosition(0));
    assert!(store.feed_read(FeedPosition(0), 10).await?.is_empty());
    assert!(store.feed_read(FeedPosition(77), 10).await?.is_empty());
    assert!(store.feed_id().await?.len() >= 32);
    Ok(())
}

pub(crate) async fn filters_changes_by_site_and_finds_the_position_of_a_time(
    Db { store, .. }: Db,
) -> Result<()> {
    for round in 0..4_i32 {
        for name in ["a.example", "b.example"] {
            let (at, now) = (format!("https://{name}/agent.json"), later(i64::from(round)));
            visited(&store, name, now, vec![found(&at, &format!("{round}"), &["book"], now)]).await?;
        }
    }
    let site = SiteName::parse("b.example")?;
    let all = store.feed_of_site(&site, FeedPosition::END, 100).await?;
    let positions: Vec<i64> = all.iter().map(|entry| entry.position.0).collect();
    assert_eq!(positions, [8, 6, 4, 2]);
    assert!(all.iter().all(|entry| entry.site == site));
    let page = store.feed_of_site(&site, FeedPosition(6), 1).await?;
    assert_eq!(page, all[2..3]);
    assert!(store.feed_of_site(&SiteName::parse("c.example")?, FeedPosition::END, 9).await?.is_empty());

    assert_eq!(store.feed_position_at(start()).await?, FeedPosition(0));
    assert_eq!(store.feed_position_at(later(2)).await?, FeedPosition(4));
    assert_eq!(store.feed_position_at(later(99)).await?, FeedPosition(8));
    Ok(())
}

pub(crate) async fn skips_damaged_entries_of_the_feed(db: Db) -> Result<()> {
    let store = &db.store;
    for round in 0..6_i32 {
        let (at, now) = ("https://a.example/agent.json", later(i64::from(round)));
        visited(store, "a.example", now, vec![found(at, &format!("{round}"), &["book"], now)]).await?;
    }
    store.feed_head().await?;
    db.execute("UPDATE feed SET manifest_id = 'zzz' WHERE position IN (2, 3, 6)").await?;
    let positions =
        |entries: Vec<FeedEntry>| -> Vec<i64> { entries.into_iter().map(|entry| entry.position.0).collect() };
    assert_eq!(positions(store.feed_read(FeedPosition(0), 100).await?), [1, 4, 5]);
    let page = store.feed_page(FeedPosition(0), 2).await?;
    assert_eq!((positions(page.entries), page.read_to), (vec![1, 4], FeedPosition(4)), "a full page");
    let page = store.feed_page(FeedPosition(5), 2).await?;
    assert_eq!((page.entries, page.read_to), (Vec::new(), FeedPosition(6)), "no entry follows");
    let of_site = store.feed_of_site(&SiteName::parse("a.example")?, FeedPosition::END, 2).await?;
    assert_eq!(positions(of_site), [5, 4]);
    Ok(())
}
