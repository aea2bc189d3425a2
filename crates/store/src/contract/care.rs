//! How the database is doing, for whoever looks after it.

use super::{Pools, Store};
use crate::config::{DatabaseUrl, StoreConfig};
use crate::fault::Outcome;
use crate::model::{SchemaState, Space};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// The schema of a database, which is not migrated by asking.
    pub async fn schema(config: &StoreConfig) -> Result<SchemaState, StoreError> {
        match &config.url {
            DatabaseUrl::Postgres(url) => postgres::Pool::schema(url).await,
            DatabaseUrl::Sqlite(path) => sqlite::Pool::schema(path).await,
        }
    }

    /// What takes how much space, the largest first.
    pub async fn space(&self) -> Result<Vec<Space>, StoreError> {
        let outcome: Outcome<Vec<Space>> = async {
            match &*self.0 {
                Pools::Postgres(pool) => postgres::space(&mut *pool.read().await?).await,
                Pools::Sqlite(pool) => sqlite::space(&mut *pool.read().await?).await,
            }
        }
        .await;
        outcome.map_err(|fault| fault.during("space"))
    }
}
