//! Readers of the feed, and what is removed by age.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{FeedPosition, FeedReader, Retained, Retention};
use crate::pack::millis;
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Registers a reader of the feed, or says how far it has come: what it has not read is kept until it has.
    pub async fn feed_reader_save(
        &self,
        name: &str,
        position: FeedPosition,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "feed_reader_save", retention::feed_reader_save(name, position, millis(now)))
    }

    /// Lets retention pass a reader that will not come back; false where there is none of that name.
    pub async fn feed_reader_forget(&self, name: &str) -> Result<bool, StoreError> {
        writing!(self, "feed_reader_forget", retention::feed_reader_forget(name))
    }

    /// Every registered reader, the slowest first.
    pub async fn feed_readers(&self) -> Result<Vec<FeedReader>, StoreError> {
        reading!(self, "feed_readers", retention::feed_readers())
    }

    /// Position of the first entry that is kept.
    pub async fn feed_first(&self) -> Result<FeedPosition, StoreError> {
        reading!(self, "feed_first", retention::feed_first())
    }

    /// Removes what the settings let go of. The feed is never cut before a registered reader: the answer names the one that
    /// holds it back.
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
