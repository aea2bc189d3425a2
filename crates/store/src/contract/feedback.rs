//! What people chose for a request.

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{Feedback, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// The salt that all processes hash addresses with on a day (days since 1970-01-01 UTC): the one that is there, else
    /// the candidate. Salts of earlier days are forgotten.
    pub async fn feedback_salt(&self, day: i64, candidate: &str) -> Result<String, StoreError> {
        writing!(self, "feedback_salt", feedback::feedback_salt(day, candidate))
    }

    /// Keeps what somebody chose, unless they have said it before or a cap is reached.
    pub async fn feedback_save(
        &self,
        said: &Feedback,
        caps: FeedbackCaps,
    ) -> Result<FeedbackOutcome, StoreError> {
        writing!(self, "feedback_save", feedback::feedback_save(said, caps))
    }

    /// Lines that arrived before the one of this id, or the last ones, the newest first.
    pub async fn feedback_page(
        &self,
        filter: &FeedbackFilter,
        before: Option<i64>,
        max: u32,
    ) -> Result<Vec<FeedbackLine>, StoreError> {
        let before = before.unwrap_or(i64::MAX);
        reading!(self, "feedback_page", feedback::feedback_page(filter, before, i64::from(max)))
    }

    /// Removes lines; an empty filter means all of them. Returns how many there were.
    pub async fn feedback_remove(&self, filter: &FeedbackFilter) -> Result<u64, StoreError> {
        writing!(self, "feedback_remove", feedback::feedback_remove(filter))
    }

    /// Requests with what at least `clients_min` clients chose for them, behind a pair, in the order of requests.
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
