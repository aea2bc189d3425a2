//! A fresh database for each test.

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use futures::FutureExt;
use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};
use store::{Backend, DatabaseUrl, Store, StoreConfig};

/// Distinguishes the databases of one process.
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// A fresh database and the store on it.
#[derive(Clone)]
pub(crate) struct Db {
    pub(crate) store: Store,
    pub(crate) config: StoreConfig,
    /// Size of the empty database in bytes.
    pub(crate) bytes_when_empty: i64,
}

/// A column of the schema.
pub(crate) struct Column {
    pub(crate) table: String,
    pub(crate) name: String,
    pub(crate) kind: String,
}

impl Db {
    /// The columns of all tables, by table and name.
    pub(crate) async fn columns(&self) -> Result<Vec<Column>> {
        let columns = self
            .texts(match self.store.backend() {
                Backend::Postgres => {
                    "SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns
                     JOIN pg_class ON oid = to_regclass(quote_ident(table_name)) AND NOT relispartition
                     WHERE table_schema = 'public' ORDER BY 1"
                }
                Backend::Sqlite => {
                    "SELECT tables.name || ' ' || columns.name || ' ' || columns.type
                     FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS columns
                     WHERE tables.type = 'table' AND tables.name NOT LIKE 'sqlite_%' ORDER BY 1"
                }
            })
            .await?;
        let column = |text: String| {
            let mut parts = text.splitn(3, ' ').map(str::to_owned);
            Some(Column { table: parts.next()?, name: parts.next()?, kind: parts.next()? })
        };
        columns.into_iter().map(column).collect::<Option<_>>().context("columns")
    }

    /// Removes all tables. The store must be closed.
    pub(crate) async fn empty(&self) -> Result<()> {
        match &self.config.url {
            DatabaseUrl::Postgres(_) => {
                self.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await?;
            }
            DatabaseUrl::Sqlite(path) => {
                for suffix in ["", "-wal", "-shm"] {
                    let mut name = path.as_os_str().to_owned();
                    name.push(suffix);
                    // a connection that has just been closed removes its own files
                    match std::fs::remove_file(name) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(error.into());
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Migrates an empty database to an earlier schema.
    pub(crate) async fn migrate_to(&self, version: i64) -> Result<()> {
        let folder = match &self.config.url {
            DatabaseUrl::Postgres(_) => "postgres",
            DatabaseUrl::Sqlite(_) => "sqlite",
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations").join(folder);
        let mut migrator = Migrator::new(folder).await?;
        migrator.migrations.to_mut().retain(|migration| migration.version <= version);
        match &self.config.url {
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                migrator.run_direct(None, &mut connection, false).await?;
                connection.close().await?;
            }
            DatabaseUrl::Sqlite(path) => {
                let mut connection =
                    SqliteConnection::connect(&format!("sqlite:{}?mode=rwc", path.display())).await?;
                migrator.run_direct(None, &mut connection, false).await?;
                connection.close().await?;
            }
        }
        Ok(())
    }

    /// Size of all tables and indexes.
    pub(crate) async fn bytes(&self) -> Result<i64> {
        match &self.config.url {
            DatabaseUrl::Postgres(_) => {
                self.number(
                    "SELECT CAST(SUM(pg_total_relation_size(oid)) AS BIGINT) FROM pg_class
                     WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')",
                )
                .await
            }
            DatabaseUrl::Sqlite(_) => {
                self.number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").await
            }
        }
    }

    /// Frees the space of deleted rows, as vacuum does.
    pub(crate) async fn vacuum(&self) -> Result<()> {
        self.execute(match &self.config.url {
            DatabaseUrl::Postgres(_) => "VACUUM FULL",
            DatabaseUrl::Sqlite(_) => "VACUUM",
        })
        .await
    }

    /// Runs statements outside the store, as another program or a damaged disk would.
    pub(crate) async fn execute(&self, sql: &str) -> Result<()> {
        let statement = AssertSqlSafe(sql.to_owned());
        match &self.config.url {
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::raw_sql(statement).execute(&mut connection).await?;
                connection.close().await?;
            }
            DatabaseUrl::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await?;
                sqlx::raw_sql(statement).execute(&mut connection).await?;
                connection.close().await?;
            }
        }
        Ok(())
    }

    /// Reads texts outside the store.
    pub(crate) async fn texts(&self, sql: &str) -> Result<Vec<String>> {
        let statement = AssertSqlSafe(sql.to_owned());
        Ok(match &self.config.url {
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::query_scalar(statement).fetch_all(&mut connection).await?
            }
            DatabaseUrl::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await?;
                sqlx::query_scalar(statement).fetch_all(&mut connection).await?
            }
        })
    }

    /// Reads one number outside the store.
    pub(crate) async fn number(&self, sql: &str) -> Result<i64> {
        let statement = AssertSqlSafe(sql.to_owned());
        Ok(match &self.config.url {
            DatabaseUrl::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::query_scalar(statement).fetch_one(&mut connection).await?
            }
            DatabaseUrl::Sqlite(path) => {
                let mut connection = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await?;
                sqlx::query_scalar(statement).fetch_one(&mut connection).await?
            }
        })
    }
}

type Case<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// Runs a case on its own database, and removes the database even if the case fails.
pub(crate) async fn run<F>(open: F, case: impl FnOnce(Db) -> Case<'static>)
where
    F: AsyncFnOnce() -> Result<Option<Fresh>>,
{
    let fresh = open().await.expect("a fresh database");
    let Some(fresh) = fresh else {
        skipped();
        return;
    };
    let store = Store::open(&fresh.config).await.expect("an open store");
    let mut db = Db { store: store.clone(), config: fresh.config.clone(), bytes_when_empty: 0 };
    db.bytes_when_empty = db.bytes().await.expect("the size of an empty database");
    let outcome = AssertUnwindSafe(case(db)).catch_unwind().await;
    store.close().await;
    fresh.remove().await.expect("the database is removed");
    match outcome {
        Ok(result) => result.expect("the case passes"),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[expect(clippy::print_stdout, reason = "a run without PostgreSQL must report that tests are skipped")]
fn skipped() {
    let has_all = std::env::var_os("AGENTDEX_TEST_ALL").is_some();
    assert!(!has_all, "AGENTDEX_TEST_ALL is set, and AGENTDEX_TEST_POSTGRES is not");
    println!("skipped: AGENTDEX_TEST_POSTGRES is not set");
}

/// A database without a schema.
pub(crate) struct Fresh {
    config: StoreConfig,
    dir: Option<tempfile::TempDir>,
    admin: Option<(String, String)>,
}

impl Fresh {
    async fn remove(self) -> Result<()> {
        if let Some((admin, name)) = self.admin {
            let mut connection = PgConnection::connect(&admin).await?;
            let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        }
        if let Some(dir) = self.dir {
            dir.close()?;
        }
        Ok(())
    }
}

pub(crate) async fn sqlite() -> Result<Option<Fresh>> {
    let dir = tempfile::tempdir()?;
    let config = StoreConfig::new(DatabaseUrl::in_data_dir(dir.path()));
    Ok(Some(Fresh { config, dir: Some(dir), admin: None }))
}

pub(crate) async fn postgres() -> Result<Option<Fresh>> {
    #[expect(clippy::disallowed_methods, reason = "tests have no configuration module")]
    let Ok(admin) = std::env::var("AGENTDEX_TEST_POSTGRES") else { return Ok(None) };
    let number = DATABASES.fetch_add(1, Ordering::Relaxed);
    let name = format!("agentdex_test_{}_{number}", std::process::id());
    let mut connection = PgConnection::connect(&admin).await.context("AGENTDEX_TEST_POSTGRES")?;
    for statement in [
        format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        format!("CREATE DATABASE {name} TEMPLATE template0"),
    ] {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    }
    let (server, _) = admin.rsplit_once('/').context("a URL with a database")?;
    let url = DatabaseUrl::parse(&format!("{server}/{name}"))?;
    Ok(Some(Fresh { config: StoreConfig::new(url), dir: None, admin: Some((admin, name)) }))
}
