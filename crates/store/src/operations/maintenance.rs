//! Schema, disk space and housekeeping.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, TimeDelta, Utc};

use super::{Pools, Store};
use crate::config::{DatabaseUrl, StoreConfig};
use crate::convert::millis;
use crate::fault::Outcome;
use crate::model::{Housekeeping, SchemaState, Space};
use crate::{StoreError, postgres, sqlite};

/// How long a site without content keeps the reports of its last visits.
const COMPACT_AFTER: TimeDelta = TimeDelta::days(2);
/// Sites per transaction, which takes tens of milliseconds.
const COMPACT_BATCH: i64 = 500;

impl Store {
    /// Reads the schema of a database without migrating it.
    #[boxed]
    pub async fn schema(config: &StoreConfig) -> Result<SchemaState, StoreError> {
        match &config.url {
            DatabaseUrl::Postgres(url) => postgres::Pool::schema(url).await,
            DatabaseUrl::Sqlite(path) => sqlite::Pool::schema(path).await,
        }
    }

    /// The schema of a database that has tables of agentdex, for programs that only read. Creates nothing.
    ///
    /// # Errors
    ///
    /// An error with [`StoreError::is_missing`] if there is no such database.
    #[boxed]
    pub async fn existing_schema(config: &StoreConfig) -> Result<SchemaState, StoreError> {
        if let DatabaseUrl::Sqlite(path) = &config.url {
            let absolute = || std::path::absolute(path).unwrap_or_else(|_| path.clone());
            match path.try_exists() {
                Ok(true) => {}
                Ok(false) => return Err(StoreError::Missing { path: absolute() }),
                Err(_) if path.parent().is_some_and(std::path::Path::is_file) => {
                    let dir = path.parent().unwrap_or(path).to_owned();
                    return Err(StoreError::DirIsFile { dir });
                }
                Err(error) => {
                    return Err(StoreError::NotSearchable { path: absolute(), reason: error.to_string() });
                }
            }
        }
        let schema = Self::schema(config).await?;
        if schema.found == 0 {
            return Err(StoreError::WithoutTables { url: config.url.to_string() });
        }
        Ok(schema)
    }

    /// Disk space by table, the largest first.
    #[boxed]
    pub async fn space(&self) -> Result<Vec<Space>, StoreError> {
        let outcome: Outcome<Vec<Space>> = async {
            match &*self.pools {
                Pools::Postgres(pool) => postgres::space(&mut *pool.read().await?).await,
                Pools::Sqlite(pool) => sqlite::space(&mut *pool.read().await?).await,
            }
        }
        .await;
        outcome.map_err(|fault| fault.during("space"))
    }

    /// The first damage that a check of all pages of a file finds. `None` for a server, which checks its pages itself.
    ///
    /// # Errors
    ///
    /// [`StoreError::Interrupted`] if the check takes longer than `time_max`.
    #[boxed]
    pub async fn damage(&self, time_max: Duration) -> Result<Option<String>, StoreError> {
        let Pools::Sqlite(pool) = &*self.pools else { return Ok(None) };
        let outcome: Outcome<Option<String>> =
            async { sqlite::damage(&mut *pool.scan(Some(time_max)).await?).await }.await;
        outcome.map_err(|fault| fault.during_limited("checking the file"))
    }

    /// Deletes expired clocks of addresses, the progress of visits that were interrupted days ago, old messages of watches that were
    /// given up, and checks of hosts that are no longer checked. Compacts sites without content.
    #[boxed]
    pub async fn housekeeping(&self, now: DateTime<Utc>) -> Result<Housekeeping, StoreError> {
        let mut done = writing!(self, "housekeeping", clock::housekeeping(millis(now)))?;
        writing!(self, "watches_trim", watch::watches_trim(millis(now)))?;
        let (before_ms, now_ms) = (millis(now - COMPACT_AFTER), millis(now));
        loop {
            let compacted =
                writing!(self, "sites_compact", compaction::sites_compact(before_ms, now_ms, COMPACT_BATCH))?;
            done.sites_compacted += compacted;
            if compacted == 0 {
                return Ok(done);
            }
        }
    }

    /// Whether the database answers.
    #[boxed]
    pub async fn ping(&self) -> Result<(), StoreError> {
        reading!(self, "ping", feed::feed_head()).map(drop)
    }

    /// The database's clock, to the second; `None` if its text cannot be parsed. Leases and request clocks use the workers' clocks.
    #[boxed]
    pub async fn server_time(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        reading!(self, "server_time", server::server_time())
    }
}
