//! Export and import of a database as lines of JSON.

use async_recursion::async_recursion as boxed;
use tokio::sync::mpsc;

use super::{Pools, Store};
use crate::dump::Header;
use crate::fault::Outcome;
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Checks the first line of a dump, so that no database is created for a file that is not a dump.
    ///
    /// # Errors
    ///
    /// If the line is missing or is not the header of a dump that this program can import.
    pub fn check_dump_header(first_line: Option<&str>) -> Result<(), StoreError> {
        let known = crate::schema::known(&sqlite::MIGRATIONS);
        Header::parse(first_line, known).map(drop).map_err(|reason| StoreError::BadDump { line: 1, reason })
    }

    /// Sends all stored data as lines of JSON, from one snapshot; returns the number of rows. Leases and clocks of addresses are left out.
    #[boxed]
    pub async fn export(&self, lines: &mpsc::Sender<String>) -> Result<u64, StoreError> {
        self.feed_sequence().await?;
        let outcome: Outcome<u64> = async {
            match &*self.pools {
                Pools::Postgres(pool) => {
                    postgres::sql::dump::export(&mut *pool.snapshot().await?, lines).await
                }
                Pools::Sqlite(pool) => sqlite::sql::dump::export(&mut *pool.snapshot().await?, lines).await,
            }
        }
        .await;
        outcome.map_err(|fault| fault.during("export"))
    }

    /// Imports the lines of a dump into this database, which must be empty, in one transaction; returns the number of rows.
    #[boxed]
    pub async fn import(&self, lines: &mut mpsc::Receiver<String>) -> Result<u64, StoreError> {
        // the lines can be read only once, so a conflict is not retried
        let outcome: Outcome<u64> = in_transaction!(self, dump::import(lines)).await;
        outcome.map_err(|fault| fault.during("import"))
    }
}
