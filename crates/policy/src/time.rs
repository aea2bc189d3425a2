//! Saturating arithmetic on times, so that a hostile header cannot overflow a date.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

pub(crate) const HOUR: Duration = Duration::from_hours(1);
pub(crate) const DAY: Duration = Duration::from_hours(24);

/// `now` plus `wait`, or the latest representable time.
pub(crate) fn later(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(wait)
        .ok()
        .and_then(|wait| now.checked_add_signed(wait))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// The time from `now` until `at`. Zero if `at` has passed.
pub(crate) fn until(now: DateTime<Utc>, at: DateTime<Utc>) -> Duration {
    (at - now).to_std().unwrap_or_default()
}
