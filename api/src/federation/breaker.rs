//! A circuit breaker: decides whether a peer is queried. A peer is skipped until the delay that it requested has passed, and for a time
//! after repeated failures.

use chrono::{DateTime, TimeDelta, Utc};

/// Failures in a row after which a peer is skipped. A late response is a failure, because it costs the client the whole time budget.
const FAILURES_MAX: u32 = 3;
/// How long it is skipped at first. The time doubles with each further failure.
const LEFT_OUT_MIN: TimeDelta = TimeDelta::seconds(30);
const LEFT_OUT_MAX: TimeDelta = TimeDelta::minutes(10);

/// The state of one peer.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Failures since the last answer.
    failures: u32,
    last_failure: Option<DateTime<Utc>>,
    /// The peer is skipped until this time after repeated failures.
    left_out_until: Option<DateTime<Utc>>,
    /// End of the delay that the peer requested (429, 503, Retry-After).
    waits_until: Option<DateTime<Utc>>,
}

/// Whether a peer is queried now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// It failed repeatedly.
    LeftOut,
    /// It requested a delay that has not passed.
    Waits,
}

impl Breaker {
    pub(super) fn admission(&self, now: DateTime<Utc>) -> Admission {
        let is_ahead = |until: Option<DateTime<Utc>>| until.is_some_and(|until| now < until);
        if is_ahead(self.waits_until) {
            Admission::Waits
        } else if is_ahead(self.left_out_until) {
            Admission::LeftOut
        } else {
            Admission::Admitted
        }
    }

    pub(super) fn answered(&mut self) {
        self.failures = 0;
        self.left_out_until = None;
    }

    /// Counts a failure at `now`, unless the request began before the last failure: concurrent requests fail for one reason.
    pub(super) fn failed(&mut self, began: DateTime<Utc>, now: DateTime<Utc>) {
        if self.last_failure.is_some_and(|last| began < last) {
            return;
        }
        self.last_failure = Some(now);
        self.failures = self.failures.saturating_add(1);
        let Some(beyond) = self.failures.checked_sub(FAILURES_MAX) else { return };
        let times = i32::try_from(1_u32.checked_shl(beyond).unwrap_or(u32::MAX)).unwrap_or(i32::MAX);
        let left_out = LEFT_OUT_MIN.checked_mul(times).map_or(LEFT_OUT_MAX, |time| time.min(LEFT_OUT_MAX));
        self.left_out_until = Some(now + left_out);
    }

    pub(super) fn wait_until(&mut self, until: DateTime<Utc>) {
        self.waits_until = self.waits_until.max(Some(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failures_skip_a_peer_for_increasing_times() {
        let start = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let mut breaker = Breaker::default();
        let mut now = start;
        for _ in 1..FAILURES_MAX {
            breaker.failed(now, now);
            assert_eq!(breaker.admission(now), Admission::Admitted);
        }
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            breaker.failed(now, now);
            let end = now + TimeDelta::seconds(seconds);
            assert_eq!(breaker.admission(end - TimeDelta::seconds(1)), Admission::LeftOut, "{seconds}");
            assert_eq!(breaker.admission(end), Admission::Admitted, "{seconds}");
            now = end;
        }
        for _ in 0..100 {
            breaker.failed(now, now);
        }
        assert_eq!(breaker.admission(now + LEFT_OUT_MAX), Admission::Admitted);
        breaker.answered();
        breaker.failed(now, now);
        assert_eq!(breaker.admission(now), Admission::Admitted, "an answer ends the count");
    }

    #[test]
    fn concurrent_failures_count_once() {
        let began = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let mut breaker = Breaker::default();
        for second in 1..=10 {
            breaker.failed(began, began + TimeDelta::seconds(second));
        }
        assert_eq!((breaker.failures, breaker.admission(began)), (1, Admission::Admitted));
    }

    #[test]
    fn the_delay_that_a_peer_requested_is_kept() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let mut breaker = Breaker::default();
        breaker.wait_until(now + TimeDelta::minutes(5));
        breaker.wait_until(now + TimeDelta::minutes(2));
        breaker.answered();
        assert_eq!(breaker.admission(now + TimeDelta::minutes(4)), Admission::Waits);
        assert_eq!(breaker.admission(now + TimeDelta::minutes(5)), Admission::Admitted);
    }
}
