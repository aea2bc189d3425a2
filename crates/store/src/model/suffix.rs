//! Turns at suffixes below which strangers live (`github.io`): one clock for every worker.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// What is asked for before a request to a host below such a suffix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnRequest {
    /// The suffix, in ASCII.
    pub suffix: String,
    /// The request leaves no sooner.
    pub from: DateTime<Utc>,
    /// A turn later than this is not taken.
    pub latest: DateTime<Utc>,
    /// From one turn to the next.
    pub gap: Duration,
    /// Turns that may be taken and not ended.
    pub open_max: u32,
    /// How long after its time a turn counts as ended where nobody said so: longer than any request takes.
    pub life: Duration,
}

/// The right to send one request at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuffixTurn {
    /// By which it is ended.
    pub number: i64,
    /// When the request leaves.
    pub at: DateTime<Utc>,
}

/// What asking for a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnAnswer {
    /// It is written down, whatever becomes of who asked.
    Taken(SuffixTurn),
    /// As many as may be are open.
    Full,
    /// The next one would be later than asked for.
    Late {
        /// When it would be.
        until: DateTime<Utc>,
    },
}
