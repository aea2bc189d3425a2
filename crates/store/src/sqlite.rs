//! SQLite: the store of one machine.
//!
//! One connection writes, in transactions that take the write lock at once (`BEGIN IMMEDIATE`), so that a writer waits
//! for its turn instead of failing half way; a few others read beside it (write-ahead log). Other processes on the same
//! file take turns in the same way.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use log::LevelFilter;
use sqlx::migrate::Migrator;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection as _, Sqlite, Transaction};

use crate::StoreError;
use crate::config::StoreConfig;
use crate::fault::Outcome;
use crate::model::{SchemaState, Space};
use crate::pack::sized;
use crate::schema::Schema;

#[expect(clippy::duplicate_mod, reason = "the statements are written once and compiled for each back end")]
#[path = "sql/mod.rs"]
pub(crate) mod sql;

pub(crate) type Connection = sqlx::SqliteConnection;

/// There is one writer at a time, so the order of commits is the order of writing.
pub(crate) const SEQUENCED_BY_WRITER: bool = true;

/// The write lock suffices.
pub(crate) const SEQUENCER_LOCK: Option<&str> = None;

/// One writer at a time: nothing to pass over.
macro_rules! skip_locked {
    () => {
        ""
    };
}
pub(crate) use skip_locked;

/// The write lock is held.
macro_rules! for_update {
    () => {
        ""
    };
}
pub(crate) use for_update;

/// Bytes out of a batch of JSON.
macro_rules! unhex {
    ($digits:literal) => {
        concat!("unhex(", $digits, ")")
    };
}
pub(crate) use unhex;

/// The same where the statement is put together.
pub(crate) fn unhex_of(digits: &str) -> String {
    format!("unhex({digits})")
}

/// The database counts on by itself.
pub(crate) const AFTER_IMPORT: &[&str] = &[];

/// New sites and what they are asked with; one writer needs no faster way than a batch of JSON.
pub(crate) use sql::seed::sites_put_json as sites_put;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// How long a writer waits for another process; a visit's transaction takes milliseconds, a purge of a large site seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// The writer's cache in KiB: with less it writes pages out in the middle of a batch.
const WRITER_CACHE_KIB: u32 = 32 * 1024;
/// Pages of 4 KiB in the log before it is copied into the file. Clocks write the same pages again and again, and a page is
/// copied once however often it is in the log.
const LOG_PAGES: u32 = 8_000;
/// Readers beside the writer: reads are short, and more than the cores of a small machine gain nothing.
const READERS_MAX: u32 = 4;

#[derive(Debug)]
pub(crate) struct Pool {
    writer: SqlitePool,
    readers: SqlitePool,
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
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(BUSY_TIMEOUT)
            // A full disk ends a transaction by itself, which the driver does not notice: its ROLLBACK fails, and it
            // would refuse to begin another one for ever. Such a connection is replaced.
            .before_acquire(|connection, _| Box::pin(async move { Ok(!connection.is_in_transaction()) }))
            .connect_lazy_with(
                options
                    .clone()
                    .pragma("cache_size", format!("-{WRITER_CACHE_KIB}"))
                    .pragma("wal_autocheckpoint", LOG_PAGES.to_string()),
            );
        let readers = SqlitePoolOptions::new()
            .max_connections(config.connections_max.clamp(1, READERS_MAX))
            .acquire_timeout(BUSY_TIMEOUT)
            .connect_lazy_with(options.pragma("query_only", "1"));
        Ok(Self { writer, readers })
    }

    /// Creates and migrates the file. Processes that start together take turns by a lock on a file beside it: switching
    /// a new database to the write-ahead log does not wait for others by itself.
    async fn prepare(path: &Path, options: &SqliteConnectOptions) -> Result<(), StoreError> {
        let locked = {
            let path = path.to_owned();
            tokio::task::spawn_blocking(move || lock_beside(&path)).await
        };
        let lock = locked.map_err(|error| not_writable(path, &error))??;
        let mut connection = options.connect().await.map_err(|error| not_writable(path, &error))?;
        let schema = crate::schema::migrate(&mut connection, &MIGRATIONS).await?;
        if let Schema::Newer { known, .. } = schema {
            let contractions = sql::server::contractions_after(&mut connection, known).await;
            schema.serves(contractions.map_err(|fault| fault.during("contractions_after"))?)?;
        }
        connection.close().await.map_err(|error| not_writable(path, &error))?;
        drop(lock);
        Ok(())
    }

    /// The schema of a database, which stays as it is; a file that is not there has none.
    pub(crate) async fn schema(path: &Path) -> Result<SchemaState, StoreError> {
        let options = SqliteConnectOptions::new().filename(path).busy_timeout(BUSY_TIMEOUT);
        let known = crate::schema::known(&MIGRATIONS);
        if !path.exists() {
            return Ok(SchemaState { found: 0, known });
        }
        let mut connection = options.connect().await.map_err(|error| not_writable(path, &error))?;
        Ok(crate::schema::state(&mut connection, &MIGRATIONS).await)
    }

    pub(crate) async fn read(&self) -> Outcome<sqlx::pool::PoolConnection<Sqlite>> {
        Ok(self.readers.acquire().await?)
    }

    pub(crate) async fn write(&self) -> Outcome<Transaction<'static, Sqlite>> {
        Ok(self.writer.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// A transaction that sees the database as it stands now.
    pub(crate) async fn snapshot(&self) -> Outcome<Transaction<'static, Sqlite>> {
        Ok(self.readers.begin().await?)
    }

    pub(crate) async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

/// The whole file: how large it is, and what of it nothing takes.
pub(crate) async fn space(connection: &mut Connection) -> Outcome<Vec<Space>> {
    let (pages, free, bytes_a_page): (i64, i64, i64) =
        sqlx::query_as("SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size")
            .fetch_one(&mut *connection)
            .await?;
    Ok(vec![Space {
        name: "file".to_owned(),
        bytes: sized(pages * bytes_a_page),
        rows: None,
        dead_rows: None,
        free_bytes: Some(sized(free * bytes_a_page)),
        vacuumed_at: None,
    }])
}

fn not_writable(path: &Path, reason: &impl ToString) -> StoreError {
    StoreError::NotWritable { path: path.to_owned(), reason: reason.to_string() }
}

/// The lock ends when the file is closed, also when the process is killed.
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
