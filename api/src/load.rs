//! Distinguishes bursts from overload, based on the number of requests in progress and the recent throughput.
//!
//! Requests in progress divided by throughput is the expected latency of the next request (Little's law). A short queue spike is a burst
//! and drains. A standing queue delays every client without serving more requests, so requests are rejected until the queue is short, as
//! `CoDel` does in routers (RFC 8289). After that, bursts are rejected until a second has passed without overload, because retries would
//! otherwise fill the queue again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Requests that may always be in progress: a few slow requests are not an overload.
const STANDING_MIN: f64 = 32.0;
const BURST_MIN: f64 = 128.0;
/// Maximum expected latency in seconds, for a standing queue and for a burst. `tests/bench api` measures that 99 of
/// 100 requests are then answered within 100 ms.
const STANDING_S: f64 = 0.05;
const BURST_S: f64 = 0.08;
/// A queue that stays long for more than this time is not a burst.
const BURST: Duration = Duration::from_millis(100);
/// Time without overload after which a burst is accepted again.
const CALM: Duration = Duration::from_secs(1);
/// Window of the throughput.
const WINDOW: Duration = Duration::from_millis(250);

/// The requests in progress in this process.
#[derive(Debug, Clone)]
pub(crate) struct Load(Arc<Mutex<State>>);

#[derive(Debug, Clone, Copy)]
struct State {
    in_progress: u32,
    /// Responses per second over the last windows.
    per_second: f64,
    window_since: Instant,
    answered: u32,
    /// Since when the queue has been longer than the limit for a standing queue.
    long_since: Option<Instant>,
    /// When a request was last rejected as overload.
    overload_at: Option<Instant>,
}

/// A request in progress.
#[derive(Debug)]
pub(crate) struct InFlightRequest(Load);

impl State {
    fn ended(&mut self, now: Instant) {
        self.in_progress = self.in_progress.saturating_sub(1);
        self.answered = self.answered.saturating_add(1);
        let elapsed = now.duration_since(self.window_since);
        if elapsed >= WINDOW {
            let recent = f64::from(self.answered) / elapsed.as_secs_f64();
            self.per_second = f64::midpoint(self.per_second, recent);
            (self.window_since, self.answered) = (now, 0);
        }
    }

    fn is_overload(&mut self, now: Instant) -> bool {
        let in_progress = f64::from(self.in_progress);
        if in_progress < (self.per_second * STANDING_S).max(STANDING_MIN) {
            self.long_since = None;
            return false;
        }
        let stays = now.duration_since(*self.long_since.get_or_insert(now)) > BURST;
        let was_calm = self.overload_at.is_none_or(|at| now.duration_since(at) > CALM);
        let is_overload = stays || !was_calm || in_progress >= (self.per_second * BURST_S).max(BURST_MIN);
        if is_overload {
            self.overload_at = Some(now);
        }
        is_overload
    }
}

impl Load {
    pub(crate) fn new(now: Instant) -> Self {
        let state = State {
            in_progress: 0,
            per_second: 0.0,
            window_since: now,
            answered: 0,
            long_since: None,
            overload_at: None,
        };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Counts a request until its response is dropped.
    pub(crate) fn begin(&self) -> InFlightRequest {
        self.state().in_progress += 1;
        InFlightRequest(self.clone())
    }

    /// Whether one more request would only delay others.
    pub(crate) fn is_overload(&self, now: Instant) -> bool {
        self.state().is_overload(now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.state().ended(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(in_progress: u32, per_second: f64, now: Instant) -> State {
        State { in_progress, per_second, window_since: now, answered: 0, long_since: None, overload_at: None }
    }

    #[test]
    fn burst_is_served_and_a_standing_queue_is_overload() {
        let start = Instant::now();
        let later = start + BURST * 2;
        let mut fast = state(300, 5_000.0, start);
        assert!(!fast.is_overload(start), "60 ms, as a short spike");
        assert!(fast.is_overload(later), "60 ms, as a standing queue");
        fast.in_progress = 249;
        assert!(!fast.is_overload(later), "50 ms is permitted as a standing queue");
        let mut fast = state(400, 5_000.0, start);
        assert!(fast.is_overload(start), "80 ms is too long from the beginning");
        let mut slow = state(31, 10.0, start);
        assert!(!slow.is_overload(start) && !slow.is_overload(later), "a few requests are not an overload");
        slow.in_progress = 127;
        assert!(!slow.is_overload(later), "a burst on an idle process is not an overload");
    }

    #[test]
    fn burst_after_overload_waits_for_one_calm_second() {
        let start = Instant::now();
        let mut state = state(400, 5_000.0, start);
        assert!(state.is_overload(start), "80 ms");
        state.in_progress = 100;
        assert!(!state.is_overload(start + CALM / 4), "20 ms");
        state.in_progress = 300;
        assert!(state.is_overload(start + CALM / 2), "60 ms, soon after overload");
        state.in_progress = 100;
        assert!(!state.is_overload(start + CALM), "20 ms");
        state.in_progress = 300;
        assert!(!state.is_overload(start + CALM * 2), "60 ms, a second and more after the last overload");
    }

    #[test]
    fn throughput_follows_the_last_windows() {
        let start = Instant::now();
        let mut state = state(1_000, 0.0, start);
        for window in 1..=8 {
            for _ in 0..249 {
                state.ended(start + WINDOW * window - WINDOW / 2);
            }
            state.ended(start + WINDOW * window);
        }
        assert!((990.0..=1_000.0).contains(&state.per_second), "{}", state.per_second);
        state.ended(start + WINDOW * 100);
        assert!(state.per_second < 600.0, "{}", state.per_second);
    }

    #[tokio::test]
    async fn request_counts_until_it_is_answered() {
        let load = Load::new(Instant::now());
        let some: Vec<_> = (0..200).map(|_| load.begin()).collect();
        assert!(load.is_overload(Instant::now()));
        drop(some);
        assert!(!load.is_overload(Instant::now()));
    }
}
