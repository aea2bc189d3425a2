//! The methods of [`Store`], one file for each concern. Each calls the same function of either backend.

use async_recursion::async_recursion as boxed;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{Backend, DatabaseUrl, StoreConfig};
use crate::{OUTAGE, StoreError, postgres, sqlite};

use self::primary::Primary;

/// Calls a function of `sql` with a connection for reading, or with one from another pool.
macro_rules! reading {
    ($store:expr, $operation:literal, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        reading!($store, $operation, from read, $module::$function($($argument),*))
    };
    ($store:expr, $operation:literal, from $pool:ident, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        use $crate::operations::Pools;
        let outcome: $crate::fault::Outcome<_> = async {
            match &*$store.pools {
                Pools::Postgres(pool) => {
                    $crate::postgres::sql::$module::$function(&mut *pool.$pool().await?, $($argument),*).await
                }
                Pools::Sqlite(pool) => {
                    $crate::sqlite::sql::$module::$function(&mut *pool.$pool().await?, $($argument),*).await
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during($operation))
    }};
}

/// Reads a list. The statement is interrupted after a time limit or when its caller is dropped.
macro_rules! listing {
    ($store:expr, $operation:literal, $time_max:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        use $crate::operations::Pools;
        let outcome: $crate::fault::Outcome<_> = async {
            match &*$store.pools {
                Pools::Postgres(pool) => {
                    $crate::postgres::sql::$module::$function(&mut *pool.list($time_max).await?, $($argument),*).await
                }
                Pools::Sqlite(pool) => {
                    $crate::sqlite::sql::$module::$function(&mut *pool.list($time_max).await?, $($argument),*).await
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during_limited($operation))
    }};
}

/// Reads whole tables, with the time limit of [`Store::with_scan_time_max`].
macro_rules! scanning {
    ($store:expr, $operation:literal, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        use $crate::operations::Pools;
        let time_max = $store.scan_time_max;
        let outcome: $crate::fault::Outcome<_> = async {
            match &*$store.pools {
                Pools::Postgres(pool) => {
                    $crate::postgres::sql::$module::$function(&mut *pool.scan(time_max).await?, $($argument),*).await
                }
                Pools::Sqlite(pool) => {
                    $crate::sqlite::sql::$module::$function(&mut *pool.scan(time_max).await?, $($argument),*).await
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during_limited($operation))
    }};
}

/// Calls a function of `sql` in one transaction, on the primary if this is its replica.
macro_rules! in_transaction {
    ($store:expr, $module:ident :: $function:ident ( $($argument:expr),* )) => {
        async {
            match &*$store.writer().await?.pools {
                $crate::operations::Pools::Postgres(pool) => {
                    let mut transaction = pool.write().await?;
                    let result =
                        $crate::postgres::sql::$module::$function(&mut transaction, $($argument),*).await?;
                    transaction.commit().await?;
                    Ok(result)
                }
                $crate::operations::Pools::Sqlite(pool) => {
                    let mut transaction = pool.write().await?;
                    let result =
                        $crate::sqlite::sql::$module::$function(&mut transaction, $($argument),*).await?;
                    transaction.commit().await?;
                    Ok(result)
                }
            }
        }
    };
}

/// Runs an operation in a transaction, and retries a conflict with another transaction.
macro_rules! writing {
    ($store:expr, $operation:literal, $module:ident :: $function:ident ( $($argument:expr),* )) => {{
        let mut attempts = 1;
        loop {
            let outcome: $crate::fault::Outcome<_> =
                in_transaction!($store, $module::$function($($argument),*)).await;
            match outcome {
                Err(fault) if fault.is_conflict() && attempts < $crate::operations::ATTEMPTS_MAX => {
                    tracing::debug!(operation = $operation, attempts, ?fault, "retrying the transaction");
                    attempts += 1;
                }
                outcome => break outcome.map_err(|fault| fault.during($operation)),
            }
        }
    }};
}

mod abuse;
mod claims;
mod dump;
mod feed;
mod feedback;
mod groups;
mod health;
mod host_checks;
mod leases;
mod maintenance;
mod primary;
mod read_attempts;
mod reader_keys;
mod reading;
mod registry_entries;
mod retention;
mod seeds;
mod sites;
mod suffixes;
mod tasks;
mod visits;
mod watches;

/// Maximum number of attempts before a conflict is reported. Deadlocks are rare because batches are sorted.
const ATTEMPTS_MAX: u32 = 4;

/// A database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pools: Arc<Pools>,
    /// Timeout of an operation that reads whole tables.
    scan_time_max: Option<Duration>,
    /// The server that accepts writes, if this is a read replica of it.
    primary: Option<Arc<Primary>>,
}

#[derive(Debug)]
enum Pools {
    Postgres(postgres::Pool),
    Sqlite(sqlite::Pool),
}

impl Store {
    /// Whether the disk of an embedded database has room for small changes only. The disk of a server is not known.
    fn is_disk_nearly_full(&self) -> bool {
        match &*self.pools {
            Pools::Postgres(_) => false,
            Pools::Sqlite(pool) => pool.is_disk_nearly_full(),
        }
    }

    /// Connects and migrates the schema. A lock allows several processes to start at the same time.
    #[boxed]
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        let pools = match &config.url {
            DatabaseUrl::Postgres(url) => Pools::Postgres(postgres::Pool::open(url, config).await?),
            DatabaseUrl::Sqlite(path) => Pools::Sqlite(sqlite::Pool::open(path, config).await?),
        };
        tracing::debug!(database = %config.url, "store opened");
        Ok(Self { pools: Arc::new(pools), scan_time_max: None, primary: None })
    }

    /// Opens the SQLite database of a data directory.
    #[boxed]
    pub async fn open_in_data_dir(dir: &Path) -> Result<Self, StoreError> {
        Self::open(&StoreConfig::new(DatabaseUrl::in_data_dir(dir))).await
    }

    /// This database for requests of clients: operations that read whole tables fail with [`StoreError::Interrupted`] after this time.
    #[must_use]
    pub fn with_scan_time_max(self, time_max: Duration) -> Self {
        Self { scan_time_max: Some(time_max), ..self }
    }

    pub fn backend(&self) -> Backend {
        match &*self.pools {
            Pools::Postgres(_) => Backend::Postgres,
            Pools::Sqlite(_) => Backend::Sqlite,
        }
    }

    /// Waits for running statements and closes every connection. In an outage, connections are left open, because statements may not end.
    #[boxed]
    pub async fn close(&self) {
        if OUTAGE.is_on() {
            return;
        }
        if let Some(primary) = &self.primary {
            primary.close().await;
        }
        match &*self.pools {
            Pools::Postgres(pool) => pool.close().await,
            Pools::Sqlite(pool) => pool.close().await,
        }
    }
}
