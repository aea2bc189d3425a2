//! PostgreSQL: the store of a fleet.

use std::time::Duration;

use log::LevelFilter;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Postgres, Transaction};

use crate::StoreError;
use crate::config::{DatabaseUrl, StoreConfig};
use crate::fault::Outcome;
use crate::model::SchemaState;
use crate::schema::Schema;

#[expect(clippy::duplicate_mod, reason = "the statements are written once and compiled for each back end")]
#[path = "sql/mod.rs"]
pub(crate) mod sql;

#[path = "postgres_copy.rs"]
mod copy;

pub(crate) use copy::sites_put;

#[path = "postgres_care.rs"]
mod care;

pub(crate) use care::space;

pub(crate) type Connection = sqlx::PgConnection;

/// Changes wait in `feed_pending` until a reader has them sequenced: transactions commit in any order here.
pub(crate) const SEQUENCED_BY_WRITER: bool = false;

/// Taken by whoever gives positions to committed changes, until its transaction ends. "agentdex" in ASCII.
pub(crate) const SEQUENCER_LOCK: Option<&str> = Some("SELECT pg_advisory_xact_lock(7018698644286825848)");

/// Rows that another worker is leasing at this moment are passed over.
macro_rules! skip_locked {
    () => {
        " FOR UPDATE SKIP LOCKED"
    };
}
pub(crate) use skip_locked;

/// Rows that are read to be changed.
macro_rules! for_update {
    () => {
        " FOR UPDATE"
    };
}
pub(crate) use for_update;

/// Bytes out of a batch of JSON.
macro_rules! unhex {
    ($digits:literal) => {
        concat!("decode(", $digits, ", 'hex')")
    };
}
pub(crate) use unhex;

/// The same where the statement is put together.
pub(crate) fn unhex_of(digits: &str) -> String {
    format!("decode({digits}, 'hex')")
}

/// Numbers that are given by the server go on behind those of the dump.
pub(crate) const AFTER_IMPORT: &[&str] = &[
    "SELECT setval(pg_get_serial_sequence('feedback', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM feedback), false)",
    "SELECT setval(pg_get_serial_sequence('visit', 'id'), (SELECT COALESCE(MAX(id), 0) + 1 FROM visit), false)",
];

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/postgres");

/// Statements look up batches by key, and the planner cannot know how few rows a batch has: left alone it reads and hashes
/// whole tables beside them. Nested loops over an index cost the same however large a table is. Compiling a statement
/// takes longer than any of them runs. A lookup in the table of sites goes to one of its parts, where the planner counts
/// all of them; at the cost that it sets for discs of old, sixteen times, reading everything would seem cheaper.
const PLANNER: [(&str, &str); 4] =
    [("enable_hashjoin", "off"), ("enable_mergejoin", "off"), ("jit", "off"), ("random_page_cost", "1.1")];

/// A server that does not answer within this is not there; longer than any round trip, shorter than patience.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a method waits for a free connection before it reports the database as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first connection. `shown` is the URL without the password.
async fn connect(options: &PgConnectOptions, shown: String) -> Result<Connection, StoreError> {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, options.connect());
    let Ok(connected) = connecting.await else {
        let reason = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
        return Err(StoreError::Unreachable { url: shown, reason });
    };
    connected.map_err(|error| StoreError::of_connecting(shown, &error))
}

#[derive(Debug)]
pub(crate) struct Pool(PgPool);

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
        let mut connection = connect(&options, shown).await?;
        let schema = crate::schema::migrate(&mut connection, &MIGRATIONS).await?;
        if let Schema::Newer { known, .. } = schema {
            let contractions = sql::server::contractions_after(&mut connection, known).await;
            schema.serves(contractions.map_err(|fault| fault.during("contractions_after"))?)?;
        }
        let pool = PgPoolOptions::new()
            .max_connections(config.connections_max.max(1))
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .connect_lazy_with(options);
        Ok(Self(pool))
    }

    /// The schema of a database, which stays as it is.
    pub(crate) async fn schema(url: &str) -> Result<SchemaState, StoreError> {
        let shown = DatabaseUrl::Postgres(url.to_owned()).to_string();
        let options: PgConnectOptions =
            url.parse().map_err(|error| StoreError::of_connecting(shown.clone(), &error))?;
        let mut connection = connect(&options, shown).await?;
        Ok(crate::schema::state(&mut connection, &MIGRATIONS).await)
    }

    pub(crate) async fn read(&self) -> Outcome<sqlx::pool::PoolConnection<Postgres>> {
        Ok(self.0.acquire().await?)
    }

    pub(crate) async fn write(&self) -> Outcome<Transaction<'static, Postgres>> {
        Ok(self.0.begin().await?)
    }

    /// A transaction that sees the database as it stands now, and writes nothing.
    pub(crate) async fn snapshot(&self) -> Outcome<Transaction<'static, Postgres>> {
        Ok(self.0.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
    }

    pub(crate) async fn close(&self) {
        self.0.close().await;
    }
}
