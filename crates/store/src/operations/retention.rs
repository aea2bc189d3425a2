//! Readers of the feed, and deletion by age.

use async_recursion::async_recursion as boxed;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{FeedPosition, FeedReader, Retained, Retention};

impl Store {
    /// Registers a reader of the feed or updates its position. Entries after the position are kept.
    #[boxed]
    pub async fn feed_reader_save(
        &self,
        name: &str,
        position: FeedPosition,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "feed_reader_save", retention::feed_reader_save(name, position, millis(now)))
    }

    /// Unregisters a reader of the feed. Returns whether there was one.
    #[boxed]
    pub async fn feed_reader_forget(&self, name: &str) -> Result<bool, StoreError> {
        writing!(self, "feed_reader_forget", retention::feed_reader_forget(name))
    }

    /// Every registered reader of the feed, the slowest first.
    #[boxed]
    pub async fn feed_readers(&self) -> Result<Vec<FeedReader>, StoreError> {
        reading!(self, "feed_readers", retention::feed_readers())
    }

    /// Position of the first remaining entry.
    #[boxed]
    pub async fn feed_first(&self) -> Result<FeedPosition, StoreError> {
        reading!(self, "feed_first", retention::feed_first())
    }

    /// Deletes data that is older than the settings allow. Entries that a registered reader of the feed has not read are kept; the result
    /// names it.
    #[boxed]
    pub async fn retain(&self, retention: &Retention, now: DateTime<Utc>) -> Result<Retained, StoreError> {
        let before = |age: Duration| millis(now - TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX));
        let mut retained = Retained::default();
        if let Some(age) = retention.feed {
            self.feed_sequence().await?;
            loop {
                let trimmed = writing!(self, "feed_trim", retention::feed_trim(before(age)))?;
                retained.feed_entries += trimmed.entries;
                retained.feed_held_back_by = trimmed.held_back_by;
                if trimmed.entries == 0 {
                    break;
                }
            }
        }
        if let Some(age) = retention.versions {
            loop {
                let versions = writing!(self, "versions_trim", retention::versions_trim(before(age)))?;
                retained.versions += versions;
                if versions == 0 {
                    break;
                }
            }
        }
        Ok(retained)
    }
}
