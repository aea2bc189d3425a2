//! The change feed.

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{FeedEntry, FeedPage, FeedPosition};
use crate::pack::millis;
use crate::{StoreError, postgres, sqlite};

/// Batches of one call: a reader is not kept from reading by writers that never rest.
const SEQUENCE_BATCHES_MAX: u32 = 20;

impl Store {
    /// Entries after a position, in order and without holes but for damaged ones. Committed changes get their positions first.
    /// [`StoreError::FeedOutrun`] where the next entry was removed by age before the reader came for it; a position of 0
    /// asks for whatever is kept.
    pub async fn feed_read(
        &self,
        after: FeedPosition,
        entries_max: u32,
    ) -> Result<Vec<FeedEntry>, StoreError> {
        Ok(self.feed_page(after, entries_max).await?.entries)
    }

    /// The same, and how far the feed was read: for readers that come again, so that they read no damaged entry twice.
    pub async fn feed_page(&self, after: FeedPosition, entries_max: u32) -> Result<FeedPage, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_read", feed::feed_page(after, i64::from(entries_max)))
    }

    /// Entries of one site before a position, latest first; [`FeedPosition::END`] is behind the last.
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

    /// The position after which everything lies that happened at or after a time.
    pub async fn feed_position_at(&self, at: DateTime<Utc>) -> Result<FeedPosition, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_position_at", feed::feed_position_at(millis(at)))
    }

    /// Gives positions to the changes that are committed; returns how many there were. Readers do this by themselves.
    /// On a read-only replica it does nothing: there, readers see what readers of the primary sequenced.
    pub async fn feed_sequence(&self) -> Result<u64, StoreError> {
        let mut total = 0;
        for _ in 0..SEQUENCE_BATCHES_MAX {
            if !reading!(self, "feed_sequence", feed::feed_waits())? {
                break;
            }
            match writing!(self, "feed_sequence", feed::feed_sequence()) {
                Ok(0) => break,
                Ok(moved) => total += moved.unsigned_abs(),
                Err(error) if error.is_read_only() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(total)
    }

    /// Position of the last entry.
    pub async fn feed_head(&self) -> Result<FeedPosition, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "feed_head", feed::feed_head())
    }

    /// Random id of this feed, so that an index built from another database is noticed.
    pub async fn feed_id(&self) -> Result<String, StoreError> {
        reading!(self, "feed_id", feed::feed_id())
    }
}
