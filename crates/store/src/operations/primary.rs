//! A read replica whose writes go to its primary.
//!
//! Reads never use the primary. It is opened by the first write, so that a replica starts and answers reads while the primary is
//! unreachable.

use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use tokio::sync::OnceCell;

use super::{Pools, Store};
use crate::StoreError;
use crate::config::StoreConfig;
use crate::fault::Outcome;

/// The server that accepts the writes of a replica.
#[derive(Debug)]
pub(super) struct Primary {
    config: StoreConfig,
    /// Opened, and checked to be the database of the replica.
    opened: OnceCell<Store>,
}

impl Primary {
    pub(super) async fn close(&self) {
        if let Some(store) = self.opened.get() {
            store.close().await;
        }
    }
}

impl Store {
    /// This database for reads, and its primary for writes. Positions of the feed are then assigned by readers of the primary alone.
    #[must_use]
    pub fn with_primary(self, config: StoreConfig) -> Self {
        Self { primary: Some(Arc::new(Primary { config, opened: OnceCell::new() })), ..self }
    }

    pub(super) const fn has_primary(&self) -> bool {
        self.primary.is_some()
    }

    /// The database that accepts writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::PrimaryOther`] where the primary is another database than this one; errors of opening it.
    pub(super) async fn writer(&self) -> Result<&Self, StoreError> {
        match &self.primary {
            Some(primary) => self.open_primary(primary).await,
            None => Ok(self),
        }
    }

    #[boxed]
    async fn open_primary<'p>(&self, primary: &'p Primary) -> Result<&'p Self, StoreError> {
        let open = || async {
            let store = Self::open(&primary.config).await?;
            if store.feed_id().await? == self.feed_id().await? {
                return Ok(store);
            }
            store.close().await;
            Err(StoreError::PrimaryOther { url: primary.config.url.to_string() })
        };
        primary.opened.get_or_try_init(open).await
    }

    /// Checks that this database answers, and that its primary does if it is a replica.
    #[boxed]
    pub async fn check_available(&self) -> Result<(), StoreError> {
        self.feed_head().await?;
        if self.has_primary() {
            self.writer().await?.feed_head().await?;
        }
        Ok(())
    }

    /// Whether the server refuses writes at the moment, as a streaming replica without a primary does.
    #[boxed]
    pub async fn is_read_only(&self) -> Result<bool, StoreError> {
        let writer = self.writer().await?;
        let outcome: Outcome<bool> = match &*writer.pools {
            Pools::Postgres(pool) => pool.is_read_only().await,
            Pools::Sqlite(_) => Ok(false),
        };
        outcome.map_err(|fault| fault.during("is_read_only"))
    }
}
