//! The one place where the crawler reads the clock; everything below takes `now` as an argument.

use chrono::{DateTime, Utc};

/// The present.
#[expect(clippy::disallowed_methods, reason = "the edge of the program, where time comes in")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}
