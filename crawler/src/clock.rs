//! The only module that reads the clock; decisions take `now` as an argument.
//!
//! The system clock is read once and continued by the monotonic clock, so that a step of the system clock (NTP, an operator, wrong daylight
//! saving time) neither shortens nor lengthens a delay. [`resync`] applies steps; it is called only while nothing is in progress. The
//! monotonic clock does not advance while the machine is suspended. This time is taken from the uptime of the system, which is read when
//! the two clocks differ.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

/// The time of the system clock at an instant of the monotonic one.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    wall: DateTime<Utc>,
    since: Instant,
    /// Uptime of the machine at `since`, including the time that it was suspended. `None` if the system does not provide it.
    uptime: Option<Duration>,
    /// How far the system clock was ahead of the monotonic clock when the uptime was last read.
    ahead: TimeDelta,
}

static ANCHOR: Mutex<Option<Anchor>> = Mutex::new(None);
#[cfg(test)]
thread_local! {
    /// How far a test has set the clock of its thread ahead.
    static AHEAD: std::cell::Cell<TimeDelta> = const { std::cell::Cell::new(TimeDelta::zero()) };
}
/// Smaller differences are drift.
const STEP_MIN: TimeDelta = TimeDelta::seconds(2);

/// The current time.
pub(crate) fn now() -> DateTime<Utc> {
    let mut anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    let anchor = anchor.get_or_insert_with(Anchor::now);
    let now = anchor.read(Instant::now(), system(), uptime);
    #[cfg(test)]
    let now = now + AHEAD.get();
    now
}

/// Sets the clock of this thread ahead, for visits that take days.
#[cfg(test)]
pub(crate) fn advance(by: TimeDelta) {
    AHEAD.set(AHEAD.get() + by);
}

/// Adopts the time of the system clock. The caller ensures that nothing waits for a delay.
pub(crate) fn resync() {
    let before = now();
    let after = Anchor::now();
    *ANCHOR.lock().unwrap_or_else(PoisonError::into_inner) = Some(after);
    if (after.wall - before).abs() > STEP_MIN {
        tracing::warn!(step_s = (after.wall - before).num_seconds(), "the system clock was changed");
    }
}

/// Sleeps until one millisecond after `at`, because the resolution of the timer is lower than that of the clock.
pub(crate) async fn sleep_until(at: DateTime<Utc>) {
    let wait = (at - now()).to_std().unwrap_or_default();
    tokio::time::sleep(wait + Duration::from_millis(1)).await;
}

/// A time by two clocks, because either may show less time than has passed: this module's clock while a virtual machine is paused, and the
/// system clock if it is set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    own: DateTime<Utc>,
    system: DateTime<Utc>,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { own: now(), system: system() }
    }

    /// The larger of the times that have passed by the two clocks.
    pub(crate) fn elapsed(self) -> Duration {
        self.until(Self::now())
    }

    fn until(self, later: Self) -> Duration {
        (later.own - self.own).max(later.system - self.system).to_std().unwrap_or_default()
    }
}

impl Anchor {
    fn now() -> Self {
        Self { wall: system(), since: Instant::now(), uptime: uptime(), ahead: TimeDelta::zero() }
    }

    /// The time at an instant. The uptime is read when the system clock and the monotonic clock have diverged: after the system clock was
    /// changed, or after the machine was suspended.
    fn read(
        &mut self,
        instant: Instant,
        system: DateTime<Utc>,
        uptime: impl FnOnce() -> Option<Duration>,
    ) -> DateTime<Utc> {
        let ahead = system - self.counted_on(instant);
        if (ahead - self.ahead).abs() <= STEP_MIN {
            return self.counted_on(instant);
        }
        self.ahead = ahead;
        let elapsed = instant.saturating_duration_since(self.since);
        let suspended = uptime()
            .zip(self.uptime)
            .and_then(|(uptime, before)| TimeDelta::from_std(uptime.checked_sub(before + elapsed)?).ok());
        if let Some(suspended) = suspended.filter(|suspended| *suspended > STEP_MIN) {
            tracing::warn!(suspended_s = suspended.num_seconds(), "the machine was suspended");
            self.wall = self.wall.checked_add_signed(suspended).unwrap_or(DateTime::<Utc>::MAX_UTC);
            self.uptime = self.uptime.map(|before| before + suspended.to_std().unwrap_or_default());
            self.ahead -= suspended;
        }
        self.counted_on(instant)
    }

    fn counted_on(&self, instant: Instant) -> DateTime<Utc> {
        let elapsed = TimeDelta::from_std(instant.saturating_duration_since(self.since));
        self.wall.checked_add_signed(elapsed.unwrap_or(TimeDelta::MAX)).unwrap_or(DateTime::<Utc>::MAX_UTC)
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn system() -> DateTime<Utc> {
    Utc::now()
}

/// Time since the start of the machine, to ten milliseconds, including the time that it was suspended (`CLOCK_BOOTTIME`).
fn uptime() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    Duration::try_from_secs_f64(text.split_whitespace().next()?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPTIME: Duration = Duration::from_hours(5);

    fn anchor() -> Anchor {
        let wall = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        Anchor { wall, since: Instant::now(), uptime: Some(UPTIME), ahead: TimeDelta::zero() }
    }

    #[test]
    fn time_is_monotonic_after_the_anchor() {
        let anchor = anchor();
        let at = |seconds| anchor.counted_on(anchor.since + Duration::from_secs(seconds));
        assert_eq!(at(90) - anchor.wall, TimeDelta::seconds(90));
        let later = Anchor { since: anchor.since + Duration::from_secs(5), ..anchor };
        assert_eq!(later.counted_on(anchor.since), anchor.wall);
        let first = now();
        assert!(now() >= first);
        assert!(uptime().is_some_and(|uptime| uptime > Duration::ZERO));
    }

    /// A step of the system clock is ignored. A suspension counts, because the uptime shows it.
    #[test]
    fn includes_the_time_that_the_machine_was_suspended() {
        let mut anchor = anchor();
        let (began, since) = (anchor.wall, anchor.since);
        let mut read = |monotonic: u64, system: i64, uptime: Option<u64>| {
            let uptime = || uptime.map(|seconds| UPTIME + Duration::from_secs(seconds));
            let system = began + TimeDelta::seconds(system);
            (anchor.read(since + Duration::from_secs(monotonic), system, uptime) - began).num_seconds()
        };
        assert_eq!(read(10, 11, None), 10, "drift");
        assert_eq!(read(20, 3_620, Some(20)), 20, "the system clock was set forward");
        assert_eq!(read(30, 30, Some(30)), 30, "and back");
        assert_eq!(read(40, 640, Some(640)), 640, "suspended for ten minutes");
        assert_eq!(read(50, 650, None), 650, "the suspension counts once");
        assert_eq!(read(60, 1_260, Some(1_260)), 1_260, "and again");
        assert_eq!(read(70, 5_270, None), 1_270, "without an uptime a step does not count");
    }

    #[test]
    fn uses_the_larger_of_two_elapsed_times() {
        let own = anchor().wall;
        let at = |own_s, system_s| Moment {
            own: own + TimeDelta::seconds(own_s),
            system: own + TimeDelta::seconds(system_s),
        };
        let seconds = Duration::from_secs;
        assert_eq!(at(0, 0).until(at(7, 7)), seconds(7));
        assert_eq!(at(0, 0).until(at(1, 60)), seconds(60), "a virtual machine was paused");
        assert_eq!(at(0, 0).until(at(9, -3_600)), seconds(9), "the system clock was set back");
        assert_eq!(at(5, 5).until(at(5, 4)), seconds(0));
    }
}
