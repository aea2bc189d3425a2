//! The only module that reads the clock; decisions take `now` as an argument.
//!
//! The system clock is read once and continued by the monotonic clock, so that a step of the system clock (NTP, an
//! operator, wrong daylight saving time) neither shortens nor lengthens a delay. [`resync`] applies steps; it
//! is called only while nothing is in progress.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// The time of the system clock at an instant of the monotonic one.
static ANCHOR: Mutex<Option<(DateTime<Utc>, Instant)>> = Mutex::new(None);
#[cfg(test)]
thread_local! {
    /// How far a test has set the clock of its thread ahead.
    static AHEAD: std::cell::Cell<TimeDelta> = const { std::cell::Cell::new(TimeDelta::zero()) };
}
/// Smaller differences are drift, which is not logged.
const STEP_MIN: TimeDelta = TimeDelta::seconds(2);

/// The current time.
pub(crate) fn now() -> DateTime<Utc> {
    let mut anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    let (wall, since) = *anchor.get_or_insert_with(|| (system(), Instant::now()));
    let now = counted_on(wall, since, Instant::now());
    #[cfg(test)]
    let now = now + AHEAD.get();
    now
}

/// Sets the clock of this thread ahead, for visits that take days.
#[cfg(test)]
pub(crate) fn advance(by: TimeDelta) {
    AHEAD.set(AHEAD.get() + by);
}

/// Adopts the time of the system clock. Nothing may be waiting for a delay.
pub(crate) fn resync() {
    let before = now();
    let after = system();
    *ANCHOR.lock().unwrap_or_else(PoisonError::into_inner) = Some((after, Instant::now()));
    if (after - before).abs() > STEP_MIN {
        tracing::warn!(step_s = (after - before).num_seconds(), "the system clock was set");
    }
}

/// Sleeps until `at` and one millisecond more, since the clock is finer than the timer.
pub(crate) async fn sleep_until(at: DateTime<Utc>) {
    let wait = (at - now()).to_std().unwrap_or_default();
    tokio::time::sleep(wait + Duration::from_millis(1)).await;
}

fn counted_on(wall: DateTime<Utc>, since: Instant, instant: Instant) -> DateTime<Utc> {
    let elapsed = TimeDelta::from_std(instant.saturating_duration_since(since)).unwrap_or(TimeDelta::MAX);
    wall.checked_add_signed(elapsed).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn system() -> DateTime<Utc> {
    Utc::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_monotonic_after_the_anchor() {
        let (wall, since) = (DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000), Instant::now());
        let at = |seconds| counted_on(wall, since, since + Duration::from_secs(seconds));
        assert_eq!(at(90) - wall, TimeDelta::seconds(90));
        assert_eq!(counted_on(wall, since + Duration::from_secs(5), since), wall);
        let first = now();
        assert!(now() >= first);
    }
}
