//! SQLite: the store of one machine.
//!
//! One connection writes. Its transactions take the write lock when they begin (`BEGIN IMMEDIATE`), so a writer waits for the lock instead
//! of failing in the middle; so do other processes that use the same file. A few connections read in parallel (write-ahead log). Lists of
//! sites and operations that read whole tables have separate connections. A reading statement is interrupted when its caller is dropped.

use std::fs::{File, OpenOptions};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use log::LevelFilter;
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection as _, Sqlite, Transaction};
use tokio::time::Instant;

use crate::StoreError;
use crate::config::{SCANS_MAX, SITE_LISTS_MAX, SQLITE_FILE, StoreConfig};
use crate::convert::to_u64;
use crate::disk;
use crate::fault::Outcome;
use crate::model::{SchemaState, Space};
use crate::schema::Schema;

#[expect(clippy::duplicate_mod, reason = "the statements are written once and compiled for each backend")]
#[path = "sql/mod.rs"]
pub(crate) mod sql;

/// With a single writer, a JSON batch is fast enough.
pub(crate) use sql::seed::sites_put_json as sites_put;

pub(crate) type Connection = sqlx::SqliteConnection;

/// There is one writer at a time, so changes commit in the order in which they are written.
pub(crate) const SEQUENCED_BY_WRITER: bool = true;

/// The write lock suffices.
pub(crate) const SEQUENCER_LOCK: Option<&str> = None;

/// There is one writer at a time, so no row is locked.
macro_rules! skip_locked {
    () => {
        ""
    };
}
pub(crate) use skip_locked;

/// The transaction holds the write lock.
macro_rules! for_update {
    () => {
        ""
    };
}
pub(crate) use for_update;

/// The rows of `$1`, a JSON array of objects, as a table of the named columns: `batch!(name TEXT, fence BIGINT)`. Values
/// keep the type that they have in JSON.
macro_rules! batch {
    ($column:ident $kind:ident $(, $more:ident $kinds:ident)* $(,)?) => {
        concat!(
            "(SELECT value ->> '", stringify!($column), "' AS ", stringify!($column),
            $(", value ->> '", stringify!($more), "' AS ", stringify!($more),)* " FROM json_each($1)) AS batch"
        )
    };
}
pub(crate) use batch;

/// Bytes from hexadecimal digits in a batch.
macro_rules! unhex {
    ($digits:literal) => {
        concat!("unhex(", $digits, ")")
    };
}
pub(crate) use unhex;

/// Bytes from hexadecimal digits, for statements that are built at run time.
pub(crate) fn unhex_of(digits: &str) -> String {
    format!("unhex({digits})")
}

/// Empty, because SQLite derives the next number from the largest one.
pub(crate) const AFTER_IMPORT: &[&str] = &[];

pub(crate) static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| crate::schema::migrator(include!(concat!(env!("OUT_DIR"), "/sqlite.rs"))));

/// How long a writer waits for the lock. Saving a visit takes milliseconds, purging a large site seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// Page cache of the writer. A smaller cache would spill pages in the middle of a batch.
const WRITER_CACHE_KIB: u32 = 32 * 1024;
/// Number of 4 KiB pages in the log before a checkpoint. Clocks write the same pages repeatedly, and a checkpoint copies each page only
/// once.
const LOG_PAGES: u32 = 8_000;
/// Maximum number of read connections. Reads are short, so more connections than a small machine has cores would not help.
const READERS_MAX: u32 = 4;
/// Number of instructions between two checks of the time limit: well below a millisecond.
const CHECK_INSTRUCTIONS: i32 = 1_000;

#[derive(Debug)]
pub(crate) struct Pool {
    path: PathBuf,
    was_nearly_full: AtomicBool,
    writer: SqlitePool,
    readers: SqlitePool,
    lists: SqlitePool,
    scans: SqlitePool,
    /// Reads the last position of the feed, which shows whether the database responds. No slow statement uses this connection.
    feed_heads: SqlitePool,
}

/// A connection whose statements are interrupted after a time limit, and when this value is dropped.
pub(crate) struct ReadConnection {
    connection: PoolConnection<Sqlite>,
    is_dropped: Arc<AtomicBool>,
}

impl ReadConnection {
    async fn acquire(pool: &SqlitePool, time_max: Option<Duration>) -> Outcome<Self> {
        let mut connection = pool.acquire().await?;
        let is_dropped = Arc::new(AtomicBool::new(false));
        let until = time_max.map(|time_max| Instant::now() + time_max);
        let dropped = Arc::clone(&is_dropped);
        let may_continue =
            move || !dropped.load(Ordering::Relaxed) && until.is_none_or(|until| Instant::now() < until);
        connection.lock_handle().await?.set_progress_handler(CHECK_INSTRUCTIONS, may_continue);
        Ok(Self { connection, is_dropped })
    }
}

impl Deref for ReadConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for ReadConnection {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

impl Drop for ReadConnection {
    fn drop(&mut self) {
        self.is_dropped.store(true, Ordering::Relaxed);
    }
}

/// Options of each pool. A connection is not tested before each use: a file has no server that could close it, and each test takes two
/// switches between threads, as a statement does.
fn pool_options() -> SqlitePoolOptions {
    SqlitePoolOptions::new().test_before_acquire(false).acquire_timeout(BUSY_TIMEOUT)
}

impl Pool {
    pub(crate) async fn open(path: &Path, config: &StoreConfig) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            .statement_cache_capacity(crate::config::STATEMENTS_PREPARED)
            .log_slow_statements(LevelFilter::Warn, config.slow_statement);
        Self::prepare(path, &options).await?;
        let writer = pool_options()
            .max_connections(1)
            // A full disk ends a transaction without the driver's knowledge: its ROLLBACK fails, and it never begins
            // another one. Such a connection is replaced.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_lazy_with(
                options
                    .clone()
                    .pragma("cache_size", format!("-{WRITER_CACHE_KIB}"))
                    .pragma("wal_autocheckpoint", LOG_PAGES.to_string()),
            );
        let reading = options.pragma("query_only", "1");
        let readers = pool_options()
            .max_connections(config.connections_max.clamp(1, READERS_MAX))
            .connect_lazy_with(reading.clone());
        let lists = pool_options().max_connections(SITE_LISTS_MAX).connect_lazy_with(reading.clone());
        let scans = pool_options().max_connections(SCANS_MAX).connect_lazy_with(reading.clone());
        let feed_heads = pool_options().max_connections(1).connect_lazy_with(reading);
        Ok(Self {
            path: path.to_owned(),
            was_nearly_full: AtomicBool::default(),
            writer,
            readers,
            lists,
            scans,
            feed_heads,
        })
    }

    /// Whether the disk has room for small changes only; logged when it begins.
    pub(crate) fn is_disk_nearly_full(&self) -> bool {
        let is_nearly_full = disk::is_nearly_full(&self.path);
        if !self.was_nearly_full.swap(is_nearly_full, Ordering::Relaxed) && is_nearly_full {
            tracing::warn!(
                "the disk of the database is nearly full: new documents are not stored until it has more free space"
            );
        }
        is_nearly_full
    }

    /// Creates and migrates the file, under a lock on a second file: switching a new database to the write-ahead log does
    /// not wait for other processes that start at the same time.
    async fn prepare(path: &Path, options: &SqliteConnectOptions) -> Result<(), StoreError> {
        let locked = {
            let path = path.to_owned();
            let prepare = move || {
                let lock = lock_beside(&path)?;
                create_for_owner(&path);
                Ok::<_, StoreError>(lock)
            };
            tokio::task::spawn_blocking(prepare).await
        };
        let lock = locked.map_err(|error| not_writable(path, &error))??;
        let mut connection = options.connect().await.map_err(|error| unusable(path, &error))?;
        let schema = crate::schema::migrate(&mut connection, &MIGRATIONS).await?;
        if let Schema::Newer { known, .. } = schema {
            let contractions = sql::server::contractions_after(&mut connection, known).await;
            schema.check(contractions.map_err(|fault| fault.during("contractions_after"))?)?;
        }
        connection.close().await.map_err(|error| unusable(path, &error))?;
        drop(lock);
        Ok(())
    }

    /// Reads the schema without migrating it; a missing file has none.
    pub(crate) async fn schema(path: &Path) -> Result<SchemaState, StoreError> {
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
        let known = crate::schema::known(&MIGRATIONS);
        if !path.exists() {
            return Ok(SchemaState { found: 0, known });
        }
        let mut connection = options.connect().await.map_err(|error| unusable(path, &error))?;
        // fails if the file cannot be read or is not a database; a database without tables passes
        let readable = sqlx::query("PRAGMA schema_version").fetch_one(&mut connection).await;
        readable.map_err(|error| unusable(path, &error))?;
        crate::schema::state(&mut connection, &MIGRATIONS).await
    }

    pub(crate) async fn read(&self) -> Outcome<ReadConnection> {
        ReadConnection::acquire(&self.readers, None).await
    }

    pub(crate) async fn list(&self, time_max: Option<Duration>) -> Outcome<ReadConnection> {
        ReadConnection::acquire(&self.lists, time_max).await
    }

    /// A connection for an operation that reads whole tables.
    pub(crate) async fn scan(&self, time_max: Option<Duration>) -> Outcome<ReadConnection> {
        ReadConnection::acquire(&self.scans, time_max).await
    }

    /// The connection for the last position of the feed.
    pub(crate) async fn feed_head(&self) -> Outcome<ReadConnection> {
        ReadConnection::acquire(&self.feed_heads, None).await
    }

    pub(crate) async fn write(&self) -> Outcome<Transaction<'static, Sqlite>> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// A transaction that reads from one snapshot.
    pub(crate) async fn snapshot(&self) -> Outcome<Transaction<'static, Sqlite>> {
        let mut transaction = self.readers.begin().await?;
        // the handler of the previous caller would interrupt this transaction
        transaction.lock_handle().await?.remove_progress_handler();
        Ok(transaction)
    }

    pub(crate) async fn close(&self) {
        self.feed_heads.close().await;
        self.scans.close().await;
        self.lists.close().await;
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// Size and free space of the file.
pub(crate) async fn space(connection: &mut Connection) -> Outcome<Vec<Space>> {
    let (pages, free, page_bytes): (i64, i64, i64) =
        sqlx::query_as("SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size")
            .fetch_one(&mut *connection)
            .await?;
    Ok(vec![Space {
        name: "file".to_owned(),
        bytes: to_u64(pages * page_bytes),
        rows: None,
        dead_rows: None,
        free_bytes: Some(to_u64(free * page_bytes)),
        vacuumed_at: None,
    }])
}

/// The first damage among the pages of the file.
pub(crate) async fn damage(connection: &mut Connection) -> Outcome<Option<String>> {
    let found: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut *connection).await?;
    Ok(Some(found).filter(|found| found != "ok"))
}

/// Why SQLite cannot use a file.
fn unusable(path: &Path, error: &sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    match code.as_deref() {
        Some(NOT_A_DATABASE) => StoreError::NotADatabase { path: path.to_owned() },
        Some(DAMAGED) => StoreError::Damaged { path: path.to_owned() },
        Some(code) if NO_SPACE.contains(&code) && !path.is_dir() => {
            StoreError::NoSpace { path: path.to_owned(), reason: error.to_string() }
        }
        _ => not_writable(path, error),
    }
}

/// The result code `SQLITE_CORRUPT`.
const DAMAGED: &str = "11";
/// The result code `SQLITE_NOTADB`.
const NOT_A_DATABASE: &str = "26";

/// The result codes `SQLITE_FULL`, `SQLITE_IOERR_SHMSIZE` and `SQLITE_IOERR_WRITE`: a file could not grow.
const NO_SPACE: [&str; 3] = ["13", "4874", "778"];

fn not_writable(path: &Path, reason: &impl ToString) -> StoreError {
    if path.is_dir() {
        return StoreError::FileIsDir { path: path.to_owned(), example: path.join(SQLITE_FILE) };
    }
    match path.parent().filter(|dir| dir.is_file()) {
        Some(dir) => StoreError::DirIsFile { dir: dir.to_owned() },
        None => StoreError::NotWritable { path: path.to_owned(), reason: reason.to_string() },
    }
}

/// The lock ends when the file is closed or the process ends.
fn lock_beside(path: &Path) -> Result<File, StoreError> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|error| not_writable(path, &error))?;
    }
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let file = File::create(PathBuf::from(lock_path)).map_err(|error| not_writable(path, &error))?;
    file.lock().map_err(|error| not_writable(path, &error))?;
    Ok(file)
}

/// Creates an empty database file that only its owner can read, because the database holds secrets of webhooks. SQLite gives the files of
/// the write-ahead log the mode of the database. A file that exists keeps its mode. If the file cannot be created, SQLite reports why.
fn create_for_owner(path: &Path) {
    drop(OpenOptions::new().write(true).create_new(true).mode(0o600).open(path));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DatabaseUrl;
    use crate::fault::Fault;

    /// A statement that never ends.
    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";
    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    async fn run(statement: &'static str, mut connection: ReadConnection) -> Outcome<i64> {
        Ok(sqlx::query_scalar(statement).fetch_one(&mut *connection).await?)
    }

    async fn pool(dir: &tempfile::TempDir) -> Pool {
        let url = DatabaseUrl::in_data_dir(dir.path());
        let DatabaseUrl::Sqlite(path) = &url else { unreachable!("a data directory has a file") };
        Pool::open(path, &StoreConfig::new(url.clone())).await.unwrap()
    }

    /// An index returns the rows in order, so a site with many listings costs as much as one with few.
    #[tokio::test]
    async fn the_listings_of_a_site_are_read_without_sorting() {
        let dir = tempfile::tempdir().unwrap();
        let mut connection = pool(&dir).await.read().await.unwrap();
        let explain = format!("EXPLAIN QUERY PLAN {}", sql::registry_entry::SITE_LISTINGS);
        let plan: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(explain)).fetch_all(&mut *connection).await.unwrap();
        let steps: Vec<&str> = plan.iter().map(|(.., step)| step.as_str()).collect();
        assert_eq!(steps, ["SEARCH registry_entry USING INDEX registry_entry_order (site=?)"]);
    }

    #[tokio::test]
    async fn statement_that_reads_ends_with_its_caller() {
        let dir = tempfile::tempdir().unwrap();
        let pool = pool(&dir).await;
        let abandoned = READERS_MAX.max(SITE_LISTS_MAX).max(SCANS_MAX);
        for _ in 0..abandoned {
            let at_once = futures::future::join3(
                async { run(ENDLESS, pool.read().await.unwrap()).await },
                async { run(ENDLESS, pool.list(None).await.unwrap()).await },
                async { run(ENDLESS, pool.scan(None).await.unwrap()).await },
            );
            assert!(tokio::time::timeout(Duration::from_millis(50), at_once).await.is_err());
        }
        // all connections can be used again
        let others = async {
            for _ in 0..abandoned {
                for connection in [pool.read().await, pool.list(None).await, pool.scan(None).await] {
                    assert_eq!(run("SELECT 1", connection.unwrap()).await.unwrap(), 1);
                }
            }
            let mut snapshot = pool.snapshot().await.unwrap();
            let many = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT COUNT(*) FROM n";
            let counted: i64 = sqlx::query_scalar(many).fetch_one(&mut *snapshot).await.unwrap();
            assert_eq!(counted, 100_000, "an earlier caller does not interrupt an export");
        };
        tokio::time::timeout(TEST_TIMEOUT, others).await.expect("statements end with their callers");
    }

    #[tokio::test]
    async fn lists_and_scans_end_after_their_time() {
        let dir = tempfile::tempdir().unwrap();
        let pool = pool(&dir).await;
        let short = Some(Duration::from_millis(20));
        for connection in [pool.list(short).await, pool.scan(short).await] {
            let ended = tokio::time::timeout(TEST_TIMEOUT, run(ENDLESS, connection.unwrap())).await;
            let fault: Fault = ended.expect("the statement was not interrupted").unwrap_err();
            let error = fault.during_limited("test");
            assert!(matches!(error, StoreError::Interrupted { .. }), "{error:?}");
        }
    }
}
