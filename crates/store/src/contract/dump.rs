//! Moving a database: out as lines of JSON, in again elsewhere.

use tokio::sync::mpsc;

use super::{Pools, Store};
use crate::fault::Outcome;
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Sends everything that is stored as lines of JSON, as it stood at one moment; returns how many rows there were.
    /// Leases and clocks of addresses stay behind.
    pub async fn export(&self, lines: &mpsc::Sender<String>) -> Result<u64, StoreError> {
        self.feed_sequence().await?;
        let outcome: Outcome<u64> = async {
            match &*self.0 {
                Pools::Postgres(pool) => {
                    let mut snapshot = pool.snapshot().await?;
                    postgres::sql::dump::export(&mut snapshot, lines).await
                }
                Pools::Sqlite(pool) => {
                    let mut snapshot = pool.snapshot().await?;
                    sqlite::sql::dump::export(&mut snapshot, lines).await
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during("export"))
    }

    /// Takes the lines of a dump into this database, which must be empty, in one transaction; returns how many rows there
    /// were.
    pub async fn import(&self, lines: &mut mpsc::Receiver<String>) -> Result<u64, StoreError> {
        let outcome: Outcome<u64> = async {
            match &*self.0 {
                Pools::Postgres(pool) => {
                    let mut transaction = pool.write().await?;
                    let rows = postgres::sql::dump::import(&mut transaction, lines).await?;
                    transaction.commit().await?;
                    Ok(rows)
                }
                Pools::Sqlite(pool) => {
                    let mut transaction = pool.write().await?;
                    let rows = sqlite::sql::dump::import(&mut transaction, lines).await?;
                    transaction.commit().await?;
                    Ok(rows)
                }
            }
        }
        .await;
        outcome.map_err(|fault| fault.during("import"))
    }
}
