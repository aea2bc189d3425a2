//! The methods of [`Store`], one file for each concern. Each hands its arguments to the same statement on either back
//! end; a write is one transaction, begun again a few times where two transactions got into each other's way.

use std::path::Path;
use std::sync::Arc;

use crate::config::{Backend, DatabaseUrl, StoreConfig};
use crate::{StoreError, postgres, sqlite};

/// Reads with a connection of its own.
macro_rules! reading {
    ($store:expr, $operation:literal, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let outcome: Outcome<_> = async {
            match &*$store.0 {
                Pools::Postgres(pool) => {
                    let mut connection = pool.read().await?;
                    postgres::sql::$module::$function(&mut connection, $($argument),*).await
                }
                Pools::Sqlite(pool) => {
                    let mut connection = pool.read().await?;
                    sqlite::sql::$module::$function(&mut connection, $($argument),*).await
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during($operation))
    }};
}

/// Writes in one transaction.
macro_rules! writing {
    ($store:expr, $operation:literal, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let mut attempts = 1;
        loop {
            let outcome: Outcome<_> = async {
                match &*$store.0 {
                    Pools::Postgres(pool) => {
                        let mut transaction = pool.write().await?;
                        let done = postgres::sql::$module::$function(&mut transaction, $($argument),*).await?;
                        transaction.commit().await?;
                        Ok(done)
                    }
                    Pools::Sqlite(pool) => {
                        let mut transaction = pool.write().await?;
                        let done = sqlite::sql::$module::$function(&mut transaction, $($argument),*).await?;
                        transaction.commit().await?;
                        Ok(done)
                    }
                }
            }
            .await;
            match outcome {
                Err(fault) if fault.is_conflict() && attempts < ATTEMPTS_MAX => {
                    tracing::debug!(operation = $operation, attempts, ?fault, "transaction begins again");
                    attempts += 1;
                }
                outcome => break outcome.map_err(|fault| fault.during($operation)),
            }
        }
    }};
}

mod care;
mod dump;
mod feed;
mod feedback;
mod groups;
mod health;
mod leases;
mod read_attempts;
mod reading;
mod retention;
mod seeds;
mod sites;
mod suffixes;
mod visits;

/// How often a transaction is begun before its conflict is reported: deadlocks are rare, since batches are sorted.
const ATTEMPTS_MAX: u32 = 4;

/// The database. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Store(Arc<Pools>);

#[derive(Debug)]
enum Pools {
    Postgres(postgres::Pool),
    Sqlite(sqlite::Pool),
}

impl Store {
    /// Connects, and brings the schema up to date under a lock, so that several processes may start at once.
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let pools = match &config.url {
            DatabaseUrl::Postgres(url) => Pools::Postgres(postgres::Pool::open(url, config).await?),
            DatabaseUrl::Sqlite(path) => Pools::Sqlite(sqlite::Pool::open(path, config).await?),
        };
        tracing::debug!(database = %config.url, "store opened");
        Ok(Self(Arc::new(pools)))
    }

    /// Opens the embedded database of a data directory.
    pub async fn open_in_data_dir(dir: &Path) -> Result<Self, StoreError> {
        Self::open(&StoreConfig::new(DatabaseUrl::in_data_dir(dir))).await
    }

    /// Which database serves.
    pub fn backend(&self) -> Backend {
        match &*self.0 {
            Pools::Postgres(_) => Backend::Postgres,
            Pools::Sqlite(_) => Backend::Sqlite,
        }
    }

    /// Waits for statements under way and closes every connection.
    pub async fn close(&self) {
        match &*self.0 {
            Pools::Postgres(pool) => pool.close().await,
            Pools::Sqlite(pool) => pool.close().await,
        }
    }
}
