//! The rules for requests for sources of seeds.

use chrono::{DateTime, Utc};
use policy::RobotsKind;
use store::RobotsRecord;

/// The rules for requests for sources of seeds, which the operator names and reads at a start or by a schedule. A 503 without Retry-After
/// delays nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceRequests {
    /// A robots.txt that could not be read before this time is requested again.
    pub(super) robots_failures_before: Option<DateTime<Utc>>,
}

impl SourceRequests {
    /// Whether a robots.txt is requested again although its last result has not expired.
    pub(super) fn asks_again(self, record: &RobotsRecord) -> bool {
        let is_before = self.robots_failures_before.is_some_and(|at| record.fetched_at < at);
        record.kind == RobotsKind::Unreachable && is_before
    }
}
