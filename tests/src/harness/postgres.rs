//! A PostgreSQL database for one test, on the server that `AGENTDEX_TEST_POSTGRES` names (a superuser's URL).

use std::hash::{BuildHasher, Hasher};

use anyhow::Context;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use url::Url;

/// The variable that names the server; `tests/run` sets it.
const SERVER_VARIABLE: &str = "AGENTDEX_TEST_POSTGRES";

/// A separate database for a test. Call [`TestDatabase::drop_database`] at the end; a failed test leaves it for inspection on
/// a server that is stopped after the test run.
pub struct TestDatabase {
    server: Url,
    name: String,
}

impl TestDatabase {
    /// Creates a database with a unique name.
    pub async fn create() -> anyhow::Result<Self> {
        let server = server()?;
        let name = format!("agentdex_test_{:016x}", random_number());
        let database = Self { server, name };
        let create = format!("CREATE DATABASE {}", database.name);
        database.on_server(create).await.context("cannot create a database for the test")?;
        Ok(database)
    }

    /// The database's URL, for `--database-url`.
    pub fn url(&self) -> String {
        let mut url = self.server.clone();
        url.set_path(&self.name);
        url.into()
    }

    /// Drops the database and its remaining connections.
    pub async fn drop_database(self) -> anyhow::Result<()> {
        self.on_server(format!("DROP DATABASE {} WITH (FORCE)", self.name)).await
    }

    /// Ends every connection to the database, as a crash of the server would.
    pub async fn break_connections(&self) -> anyhow::Result<()> {
        let end =
            format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", self.name);
        self.on_server(end).await
    }

    /// Makes all new connections read-only, as on a server that is no longer the primary.
    pub async fn refuse_writes(&self) -> anyhow::Result<()> {
        self.on_server(format!("ALTER DATABASE {} SET default_transaction_read_only = on", self.name)).await
    }

    /// Makes all new connections writable again.
    pub async fn take_writes(&self) -> anyhow::Result<()> {
        self.on_server(format!("ALTER DATABASE {} RESET default_transaction_read_only", self.name)).await
    }

    async fn on_server(&self, statement: String) -> anyhow::Result<()> {
        let options: PgConnectOptions =
            self.server.as_str().parse().context("cannot read the server's URL")?;
        let mut connection: PgConnection =
            options.connect().await.context("cannot reach the test PostgreSQL")?;
        connection.execute(AssertSqlSafe(statement)).await?;
        Ok(connection.close().await?)
    }
}

#[expect(clippy::disallowed_methods, reason = "the variable that tests/run sets")]
fn server() -> anyhow::Result<Url> {
    let url = std::env::var(SERVER_VARIABLE)
        .with_context(|| format!("{SERVER_VARIABLE} is not set: run the tests with tests/run"))?;
    Url::parse(&url).with_context(|| format!("{SERVER_VARIABLE} is no URL"))
}

/// The random hash keys of the standard library suffice for a unique name.
fn random_number() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}
