//! Feedback: which capability a client chose for a request.

use super::Store;
use crate::StoreError;
use crate::model::{Feedback, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair};
use async_recursion::async_recursion as boxed;

impl Store {
    /// The salt for hashing addresses on a day (days since 1970-01-01 UTC). Stores the candidate if there is none yet, and deletes salts of
    /// earlier days.
    #[boxed]
    pub async fn feedback_salt(&self, day: i64, candidate: &str) -> Result<String, StoreError> {
        writing!(self, "feedback_salt", feedback::feedback_salt(day, candidate))
    }

    /// Saves feedback, unless it is a duplicate or a cap is reached.
    #[boxed]
    pub async fn feedback_save(
        &self,
        feedback: &Feedback,
        caps: FeedbackCaps,
    ) -> Result<FeedbackOutcome, StoreError> {
        writing!(self, "feedback_save", feedback::feedback_save(feedback, caps))
    }

    /// Lines before an id, or the last ones, newest first.
    #[boxed]
    pub async fn feedback_page(
        &self,
        filter: &FeedbackFilter,
        before: Option<i64>,
        max: u32,
    ) -> Result<Vec<FeedbackLine>, StoreError> {
        let before = before.unwrap_or(i64::MAX);
        reading!(self, "feedback_page", feedback::feedback_page(filter, before, i64::from(max)))
    }

    /// Deletes lines, all of them with an empty filter; returns how many there were.
    #[boxed]
    pub async fn feedback_remove(&self, filter: &FeedbackFilter) -> Result<u64, StoreError> {
        writing!(self, "feedback_remove", feedback::feedback_remove(filter))
    }

    /// Pairs that at least `clients_min` clients chose, sorted by query, beginning after the given pair.
    #[boxed]
    pub async fn feedback_pairs(
        &self,
        after: Option<&FeedbackPair>,
        clients_min: u32,
        max: u32,
    ) -> Result<Vec<FeedbackPair>, StoreError> {
        let after = after.map_or(("", ""), |pair| (pair.query.as_str(), pair.capability.as_str()));
        let (least, max) = (i64::from(clients_min), i64::from(max));
        reading!(self, "feedback_pairs", feedback::feedback_pairs(after, least, max))
    }
}
