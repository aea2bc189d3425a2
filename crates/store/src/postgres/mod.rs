//! PostgreSQL: the store of a fleet.

use std::sync::LazyLock;
use std::time::Duration;

use log::LevelFilter;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Postgres, Transaction};

use crate::StoreError;
use crate::config::{DatabaseUrl, SITE_LISTS_MAX, StoreConfig};
use crate::fault::Outcome;
use crate::model::SchemaState;
use crate::schema::Schema;

mod copy;
mod space;
#[expect(clippy::duplicate_mod, reason = "the statements are written once and compiled for each backend")]
#[path = "../sql/mod.rs"]
pub(crate) mod sql;

pub(crate) use copy::sites_put;
pub(crate) use space::space;

pub(crate) type Connection = sqlx::PgConnection;

/// Transactions commit in any order, so changes wait in `feed_pending` until an indexer or another reader of the feed gives them positions.
pub(crate) const SEQUENCED_BY_WRITER: bool = false;

/// Serialises sequencers until the transaction ends. The number is "agentdex" in ASCII.
pub(crate) const SEQUENCER_LOCK: Option<&str> = Some("SELECT pg_advisory_xact_lock(7018698644286825848)");

/// Skips rows that another worker is leasing.
macro_rules! skip_locked {
    () => {
        " FOR UPDATE SKIP LOCKED"
    };
}
pub(crate) use skip_locked;

macro_rules! for_update {
    () => {
        " FOR UPDATE"
    };
}
pub(crate) use for_update;

/// The rows of `$1`, a JSON array of objects, as a table of the named columns: `batch!(name TEXT, fence BIGINT)`.
macro_rules! batch {
    ($column:ident $kind:ident $(, $more:ident $kinds:ident)* $(,)?) => {
        concat!(
            "json_to_recordset(CAST($1 AS json)) AS batch (", stringify!($column), " ", stringify!($kind),
            $(", ", stringify!($more), " ", stringify!($kinds),)* ")"
        )
    };
}
pub(crate) use batch;

/// Bytes from hexadecimal digits in a batch.
macro_rules! unhex {
    ($digits:literal) => {
        concat!("decode(", $digits, ", 'hex')")
    };
}
pub(crate) use unhex;

/// Bytes from hexadecimal digits, for statements that are built at run time.
pub(crate) fn unhex_of(digits: &str) -> String {
    format!("decode({digits}, 'hex')")
}

/// Sets the sequences of the server to continue after the largest imported numbers.
pub(crate) const AFTER_IMPORT: &[&str] = &[
    "SELECT setval(pg_get_serial_sequence('feedback', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM feedback), false)",
    "SELECT setval(pg_get_serial_sequence('report', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM report), false)",
    "SELECT setval(pg_get_serial_sequence('visit', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM visit), false)",
];

static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| crate::schema::migrator(include!(concat!(env!("OUT_DIR"), "/postgres.rs"))));

/// Settings of the planner. Statements look up batches by key, and the planner does not know that batches are small, so by default it
/// hashes whole tables. Nested loops over an index cost the same for tables of any size. JIT compilation takes longer than any statement. A
/// lookup in `site` uses one of its 16 partitions, but the planner adds up the cost of all of them; with the default `random_page_cost`, it
/// would read the whole table.
const PLANNER: [(&str, &str); 4] =
    [("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("jit", "off"), ("random_page_cost", "1.1")];

/// Timeout for connecting, longer than any round trip.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// If no connection is free after this time, the database is reported as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the first connection. `shown` is the URL without the password.
async fn connect(options: &PgConnectOptions, shown: String) -> Result<Connection, StoreError> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, options.connect());
    let Ok(connected) = connecting.await else {
        let reason = format!("no response within {} s", CONNECT_TIMEOUT.as_secs());
        return Err(StoreError::Unreachable { url: shown, reason });
    };
    connected.map_err(|error| StoreError::of_connecting(shown, &error))
}

#[derive(Debug)]
pub(crate) struct Pool {
    connections: PgPool,
    /// Connections for lists of sites. If a caller is dropped, its connection is reused only after the server has ended the statement, so
    /// the separate pool keeps abandoned lists from blocking other operations.
    lists: PgPool,
}

impl Pool {
    pub(crate) async fn open(url: &str, config: &StoreConfig) -> Result<Self, StoreError> {
        let shown = DatabaseUrl::Postgres(url.to_owned()).to_string();
        let options: PgConnectOptions = url.parse().map_err(|error: sqlx::Error| StoreError::BadUrl {
            url: shown.clone(),
            reason: error.to_string(),
        })?;
        let options = options
            .application_name("agentdex")
            .options(PLANNER)
            .statement_cache_capacity(crate::config::STATEMENTS_PREPARED)
            .log_slow_statements(LevelFilter::Warn, config.slow_statement);
        // a program that starts while another one migrates waits for its lock, which does not count as a slow statement
        let migrating = options.clone().log_slow_statements(LevelFilter::Off, config.slow_statement);
        let mut connection = connect(&migrating, shown).await?;
        let schema = crate::schema::migrate(&mut connection, &MIGRATIONS).await?;
        if let Schema::Newer { known, .. } = schema {
            let contractions = sql::server::contractions_after(&mut connection, known).await;
            schema.check(contractions.map_err(|fault| fault.during("contractions_after"))?)?;
        }
        let connections = PgPoolOptions::new()
            .max_connections(config.connections_max.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // waits during an outage are reported by their callers
            .acquire_slow_level(LevelFilter::Debug)
            .connect_lazy_with(options.clone());
        let lists = PgPoolOptions::new()
            .max_connections(SITE_LISTS_MAX)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            // waits during an outage are reported by their callers
            .acquire_slow_level(LevelFilter::Debug)
            .connect_lazy_with(options);
        Ok(Self { connections, lists })
    }

    /// Reads the schema without migrating it.
    pub(crate) async fn schema(url: &str) -> Result<SchemaState, StoreError> {
        let shown = DatabaseUrl::Postgres(url.to_owned()).to_string();
        let options: PgConnectOptions =
            url.parse().map_err(|error| StoreError::of_connecting(shown.clone(), &error))?;
        let mut connection = connect(&options, shown).await?;
        crate::schema::state(&mut connection, &MIGRATIONS).await
    }

    pub(crate) async fn read(&self) -> Outcome<sqlx::pool::PoolConnection<Postgres>> {
        Ok(self.connections.acquire().await?)
    }

    /// A connection to read the last position of the feed. PostgreSQL uses the same pool as for other reads.
    pub(crate) async fn feed_head(&self) -> Outcome<sqlx::pool::PoolConnection<Postgres>> {
        self.read().await
    }

    pub(crate) async fn list(&self, time_max: Option<Duration>) -> Outcome<Transaction<'static, Postgres>> {
        Self::limited(&self.lists, time_max).await
    }

    /// Begins a transaction for an operation that reads whole tables.
    pub(crate) async fn scan(&self, time_max: Option<Duration>) -> Outcome<Transaction<'static, Postgres>> {
        Self::limited(&self.connections, time_max).await
    }

    /// A transaction whose statements are interrupted after this time.
    async fn limited(pool: &PgPool, time_max: Option<Duration>) -> Outcome<Transaction<'static, Postgres>> {
        let mut transaction = pool.begin().await?;
        if let Some(time_max) = time_max {
            // Zero would mean no limit.
            let millis = time_max.as_millis().max(1).to_string();
            sqlx::query("SELECT set_config('statement_timeout', $1, true)")
                .bind(millis)
                .execute(&mut *transaction)
                .await?;
        }
        Ok(transaction)
    }

    pub(crate) async fn write(&self) -> Outcome<Transaction<'static, Postgres>> {
        Ok(self.connections.begin().await?)
    }

    /// Whether transactions are read-only, as on a streaming replica until it is promoted.
    pub(crate) async fn is_read_only(&self) -> Outcome<bool> {
        let setting = "SELECT current_setting('transaction_read_only') = 'on'";
        Ok(sqlx::query_scalar(setting).fetch_one(&self.connections).await?)
    }

    /// A read-only transaction on one snapshot.
    pub(crate) async fn snapshot(&self) -> Outcome<Transaction<'static, Postgres>> {
        Ok(self.connections.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
    }

    pub(crate) async fn close(&self) {
        self.lists.close().await;
        self.connections.close().await;
    }
}
