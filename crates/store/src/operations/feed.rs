//! The change feed.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{FeedEntry, FeedPage, FeedPosition};

/// Maximum number of batches of one call, so that busy writers do not block a reader of the feed.
const SEQUENCE_BATCHES_MAX: u32 = 20;

impl Store {
    /// Entries after a position, in order and without gaps except damaged entries. First assigns positions to committed changes. Position 0
    /// returns all stored entries.
    ///
    /// # Errors
    ///
    /// [`StoreError::FeedOutrun`] where retention deleted the next entry.
    #[boxed]
    pub async fn feed_read(
        &self,
        after: FeedPosition,
        entries_max: u32,
    ) -> Result<Vec<FeedEntry>, StoreError> {
        Ok(self.feed_page(after, entries_max).await?.entries)
    }

    /// Entries of the feed after a position, with the position to read from next, so that indexers do not read damaged entries again.
    ///
    /// # Errors
    ///
    /// [`StoreError::FeedOutrun`] where retention deleted the next entry.
    #[boxed]
    pub async fn feed_page(&self, after: FeedPosition, entries_max: u32) -> Result<FeedPage, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_read", feed::feed_page(after, i64::from(entries_max)))
    }

    /// Entries of one site before a position, newest first.
    #[boxed]
    pub async fn feed_of_site(
        &self,
        site: &SiteName,
        before: FeedPosition,
        entries_max: u32,
    ) -> Result<Vec<FeedEntry>, StoreError> {
        self.feed_sequence().await?;
        let max = i64::from(entries_max);
        reading!(self, "feed_of_site", feed::feed_of_site(site.as_str(), before, max))
    }

    /// The position before the first entry at or after a time.
    #[boxed]
    pub async fn feed_position_at(&self, at: DateTime<Utc>) -> Result<FeedPosition, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_position_at", feed::feed_position_at(millis(at)))
    }

    /// Assigns positions to committed changes. Does nothing on a read-only replica, which has the positions that readers of the primary
    /// assigned: its reads do not depend on the primary.
    pub(crate) async fn feed_sequence(&self) -> Result<(), StoreError> {
        if self.has_primary() {
            return Ok(());
        }
        for _ in 0..SEQUENCE_BATCHES_MAX {
            if !reading!(self, "feed_sequence", from feed_head, feed::feed_waits())? {
                break;
            }
            match writing!(self, "feed_sequence", feed::feed_sequence()) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.is_read_only() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Position of the last entry.
    #[boxed]
    pub async fn feed_head(&self) -> Result<FeedPosition, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_head", from feed_head, feed::feed_head())
    }

    /// Random id of this feed. An index uses it to detect that it belongs to another database.
    #[boxed]
    pub async fn feed_id(&self) -> Result<String, StoreError> {
        reading!(self, "feed_id", feed::feed_id())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Pools, Store};
    use crate::model::FeedPosition;

    #[tokio::test]
    async fn the_head_is_read_while_all_readers_are_busy() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let Pools::Sqlite(pool) = &*store.pools else { unreachable!("a data directory has a file") };
        let mut busy = Vec::new();
        while let Ok(connection) = tokio::time::timeout(Duration::from_secs(1), pool.read()).await {
            busy.push(connection.unwrap());
        }
        assert!(!busy.is_empty());
        let head = tokio::time::timeout(Duration::from_secs(4), store.feed_head()).await;
        assert_eq!(head.expect("it does not wait for readers").unwrap(), FeedPosition(0));
    }
}
