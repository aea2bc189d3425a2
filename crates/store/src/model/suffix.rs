//! Rate limits for public suffixes such as `github.io`, shared by all workers.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// A request for a permit to send one HTTP request to a host below a suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuffixPermitRequest {
    /// The suffix in ASCII (punycode).
    pub suffix: String,
    /// The earliest time to send.
    pub from: DateTime<Utc>,
    /// The latest time to send; no permit is taken for a later one.
    pub latest: DateTime<Utc>,
    /// Minimum interval between two permits.
    pub gap: Duration,
    /// Maximum number of open permits.
    pub open_max: u32,
    /// An unreleased permit expires this long after its time. Must be longer than any request takes.
    pub life: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuffixPermit {
    /// Identifies the permit for its release.
    pub number: i64,
    /// When the request may be sent.
    pub at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SuffixPermitOutcome {
    /// The permit is stored, even if the worker is killed.
    Taken(SuffixPermit),
    /// `open_max` permits are open.
    Full,
    /// The next permit would be later than `latest`.
    Late { until: DateTime<Utc> },
}
