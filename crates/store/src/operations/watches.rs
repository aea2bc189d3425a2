//! Watches, and the messages to their receivers.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::webhook::{Message, WebhookSecret};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{
    DeliveryEnd, DeliveryLine, DueDelivery, FeedEntry, FeedPosition, NewChallenge, NewDelivery, NewWatch,
    ReceiverCaps, SearchWatch, Watch, WatchCaps, WatchOutcome, WatchWithChanges,
};

impl Store {
    /// Adds a watch with its challenge, unless a cap is reached. The watch delivers changes from now on.
    #[boxed]
    pub async fn watch_add(&self, watch: &NewWatch, caps: WatchCaps) -> Result<WatchOutcome, StoreError> {
        self.feed_sequence().await?;
        writing!(self, "watch_add", watch::watch_add(watch, caps))
    }

    /// Whether a site is the receiver of an active watch.
    #[boxed]
    pub async fn site_receives_messages(&self, site: &SiteName) -> Result<bool, StoreError> {
        reading!(self, "site_receives_messages", watch::site_receives(site))
    }

    #[boxed]
    pub async fn watch_find(&self, id: &str) -> Result<Option<Watch>, StoreError> {
        reading!(self, "watch_find", watch::watch_find(id))
    }

    /// Watches after an id, sorted by id. Ids are random.
    #[boxed]
    pub async fn watches_page(&self, after: Option<&str>, max: u32) -> Result<Vec<Watch>, StoreError> {
        reading!(self, "watches_page", watch::watches_page(after.unwrap_or_default(), i64::from(max)))
    }

    /// Active watches of searches without a waiting message that have not been compared with all changes up to a position, those that are
    /// furthest behind first.
    #[boxed]
    pub async fn watches_of_searches(
        &self,
        up_to: FeedPosition,
        max: u32,
    ) -> Result<Vec<SearchWatch>, StoreError> {
        reading!(self, "watches_of_searches", watch::watches_of_searches(up_to, i64::from(max)))
    }

    /// Moves a watch over changes that it does not deliver; false if another process has moved it.
    #[boxed]
    pub async fn watch_advance(
        &self,
        id: &str,
        from: FeedPosition,
        to: FeedPosition,
    ) -> Result<bool, StoreError> {
        writing!(self, "watch_advance", watch::watch_advance(id, from, to))
    }

    /// Deletes a watch with its messages; false if there is none.
    #[boxed]
    pub async fn watch_delete(&self, id: &str) -> Result<bool, StoreError> {
        writing!(self, "watch_delete", watch::watch_delete(id))
    }

    /// Replaces the secret of a watch. The previous secret also signs until `old_until`.
    #[boxed]
    pub async fn watch_rotate(
        &self,
        id: &str,
        secret: &WebhookSecret,
        old_until: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        writing!(self, "watch_rotate", watch::watch_rotate(id, secret, millis(old_until)))
    }

    /// Queues a new challenge in place of a waiting one, unless the watch is active. Returns whether it was queued.
    #[boxed]
    pub async fn watch_challenge(
        &self,
        id: &str,
        challenge: &NewChallenge,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        writing!(self, "watch_challenge", watch::watch_challenge(id, challenge, millis(now)))
    }

    /// The last messages of a watch that are waiting or were given up, newest first.
    #[boxed]
    pub async fn deliveries_of(&self, watch_id: &str, max: u32) -> Result<Vec<DeliveryLine>, StoreError> {
        reading!(self, "deliveries_of", delivery::deliveries_of(watch_id, i64::from(max)))
    }

    /// The watches of sites that opted out or are suspended, to be deleted. An active watch is listed only after its removals are
    /// delivered.
    #[boxed]
    pub async fn watches_ended(&self, max: u32) -> Result<Vec<String>, StoreError> {
        let max = i64::from(max);
        let seen = reading!(self, "watches_ended", watch::watches_ended(max))?;
        if seen.is_empty() {
            return Ok(seen);
        }
        // The removals of a visible block are committed, but they may not have positions yet.
        self.feed_sequence().await?;
        let mut ended = reading!(self, "watches_ended", watch::watches_ended(max))?;
        ended.retain(|id| seen.contains(id));
        Ok(ended)
    }

    /// Active watches without a waiting message that have changes which are not in a message yet.
    #[boxed]
    pub async fn watches_behind(&self, max: u32) -> Result<Vec<WatchWithChanges>, StoreError> {
        self.feed_sequence().await?;
        reading!(self, "watches_behind", watch::watches_behind(i64::from(max)))
    }

    /// Entries of one site after a position, oldest first.
    #[boxed]
    pub async fn feed_of_site_after(
        &self,
        site: &SiteName,
        after: FeedPosition,
        entries_max: u32,
    ) -> Result<Vec<FeedEntry>, StoreError> {
        let max = i64::from(entries_max);
        reading!(self, "feed_of_site_after", feed::feed_of_site_after(site.as_str(), after, max))
    }

    /// Stores a message and moves its watch to the last of its changes. False if another worker has moved it.
    #[boxed]
    pub async fn delivery_add(&self, delivery: &NewDelivery) -> Result<bool, StoreError> {
        writing!(self, "delivery_add", delivery::delivery_add(delivery))
    }

    /// Claims due messages of one kind for this worker. Each counts as an attempt, and another worker may send it after `until`.
    #[boxed]
    pub async fn deliveries_claim(
        &self,
        message: Message,
        now: DateTime<Utc>,
        until: DateTime<Utc>,
        max: u32,
    ) -> Result<Vec<DueDelivery>, StoreError> {
        // avoids the write lock while nothing is due
        if !reading!(self, "deliveries_claim", delivery::deliveries_wait(message, millis(now)))? {
            return Ok(Vec::new());
        }
        writing!(
            self,
            "deliveries_claim",
            delivery::deliveries_claim(message, millis(now), millis(until), i64::from(max))
        )
    }

    /// Counts a message to the receivers of a domain on a day (since 1970-01-01 UTC); false if a cap is reached.
    #[boxed]
    pub async fn receiver_count(
        &self,
        receiver: &SiteName,
        day: i32,
        message: Message,
        caps: ReceiverCaps,
    ) -> Result<bool, StoreError> {
        writing!(self, "receiver_count", delivery::receiver_count(receiver, day, message, caps))
    }

    /// Stores the result of an attempt, unless another worker has sent the message since.
    #[boxed]
    pub async fn delivery_end(
        &self,
        delivery: &DueDelivery,
        end: &DeliveryEnd,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "delivery_end", delivery::delivery_end(delivery, end, millis(now)))
    }
}
