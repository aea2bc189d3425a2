//! The request rate of a shared platform: additive increase, halved on errors or slow responses.
//!
//! Millions of sites share a few addresses. With the delay of an ordinary address, one crawl of them would take months. The rate starts at
//! the rate of an ordinary address, and increases only while the platform responds as fast as before.

use std::time::Duration;

use manifest::string_enum;
use serde::{Deserialize, Serialize};

/// Initial requests per thousand seconds: 2 per second, as for any address.
const RATE_START: u32 = 2_000;
/// 20 per second: fewer than a browser sends for one page with many resources.
const RATE_MAX: u32 = 20_000;
/// One request every two seconds. A lower rate would not help a platform that still fails.
const RATE_MIN: u32 = 500;
/// Increase after a good window.
const RATE_STEP: u32 = 1_000;
/// Responses in a window: enough for two percent to be significant.
const WINDOW_RESPONSES: usize = 100;
/// Percentage of 429 and 5xx responses in a window above which the rate is halved.
const FAILURE_PERCENT_MAX: usize = 2;
/// Maximum ratio of a window's 95th percentile to that of the best window.
const SLOWDOWN_MAX: u32 = 2;
/// Lower bound of the best window's 95th percentile, in milliseconds: faster responses come from caches and do not represent the others.
const BEST_MS_MIN: u32 = 100;
/// Each slow window raises the time of the best one by this fraction, so that the rate recovers if the platform has become permanently
/// slower.
const BEST_RISE_DIVISOR: u32 = 4;

/// One response of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// Any response except 429 and 5xx, and its duration.
    Success(Duration),
    /// 429 or 5xx.
    Failure,
}

string_enum! {
    /// The change of the rate.
    RateChange, "rate change" {
        /// The window is not full yet.
        Kept = "kept",
        /// A good window.
        Raised = "raised",
        /// Too many 429 and 5xx.
        HalvedByFailures = "halved_by_trouble",
        /// Responses take twice as long as in the best window.
        HalvedBySlowness = "halved_by_slowness",
    }
}

/// The rate of one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformRate {
    per_thousand_s: u32,
    latencies_ms: Vec<u32>,
    #[serde(rename = "troubles")]
    failures: usize,
    best_p95_ms: Option<u32>,
}

impl Default for PlatformRate {
    fn default() -> Self {
        Self { per_thousand_s: RATE_START, latencies_ms: Vec::new(), failures: 0, best_p95_ms: None }
    }
}

impl PlatformRate {
    /// The gap between two requests.
    pub fn gap(&self) -> Duration {
        Duration::from_secs(1_000).checked_div(self.per_thousand_s).unwrap_or(Duration::from_secs(2))
    }

    /// Records one response.
    pub fn observe(&mut self, sample: Sample) -> RateChange {
        match sample {
            Sample::Success(latency) => {
                self.latencies_ms.push(u32::try_from(latency.as_millis()).unwrap_or(u32::MAX));
            }
            Sample::Failure => self.failures += 1,
        }
        let responses = self.latencies_ms.len() + self.failures;
        if self.failures * 100 > FAILURE_PERCENT_MAX * WINDOW_RESPONSES {
            return self.halve(RateChange::HalvedByFailures);
        }
        if responses < WINDOW_RESPONSES {
            return RateChange::Kept;
        }
        let p95_ms = self.p95_ms();
        let best_ms = self.best_p95_ms.unwrap_or(p95_ms).max(BEST_MS_MIN);
        if p95_ms > best_ms.saturating_mul(SLOWDOWN_MAX) {
            self.best_p95_ms = Some(best_ms.saturating_add(best_ms / BEST_RISE_DIVISOR));
            return self.halve(RateChange::HalvedBySlowness);
        }
        self.best_p95_ms = Some(best_ms.min(p95_ms));
        self.begin_window(self.per_thousand_s.saturating_add(RATE_STEP));
        RateChange::Raised
    }

    fn p95_ms(&mut self) -> u32 {
        self.latencies_ms.sort_unstable();
        let rank = (self.latencies_ms.len() * 95).div_ceil(100).saturating_sub(1);
        self.latencies_ms.get(rank).copied().unwrap_or_default()
    }

    fn halve(&mut self, change: RateChange) -> RateChange {
        self.begin_window(self.per_thousand_s / 2);
        change
    }

    fn begin_window(&mut self, per_thousand_s: u32) {
        self.per_thousand_s = per_thousand_s.clamp(RATE_MIN, RATE_MAX);
        self.latencies_ms.clear();
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(rate: &mut PlatformRate, latency_ms: u64) -> RateChange {
        let samples =
            (0..WINDOW_RESPONSES).map(|_| rate.observe(Sample::Success(Duration::from_millis(latency_ms))));
        samples.last().unwrap()
    }

    #[test]
    fn successful_windows_raise_the_rate_to_its_limit() {
        let mut rate = PlatformRate::default();
        assert_eq!(rate.gap(), Duration::from_millis(500));
        assert_eq!(window(&mut rate, 100), RateChange::Raised);
        assert_eq!(rate.gap().as_millis(), 333);
        for _ in 0..40 {
            window(&mut rate, 100);
        }
        assert_eq!(rate.gap(), Duration::from_millis(50));
    }

    #[test]
    fn failures_halve_the_rate_before_the_window_is_full() {
        let mut rate = PlatformRate::default();
        window(&mut rate, 100);
        window(&mut rate, 100);
        let changes = [(); 3].map(|()| rate.observe(Sample::Failure));
        assert_eq!(changes, [RateChange::Kept, RateChange::Kept, RateChange::HalvedByFailures]);
        assert_eq!(rate.gap(), Duration::from_millis(500));
    }

    #[test]
    fn slow_responses_halve_the_rate() {
        let mut rate = PlatformRate::default();
        window(&mut rate, 100);
        assert_eq!(window(&mut rate, 199), RateChange::Raised);
        assert_eq!(window(&mut rate, 201), RateChange::HalvedBySlowness);
        assert_eq!(window(&mut rate, 100), RateChange::Raised);
    }

    #[test]
    fn one_fast_window_does_not_reduce_the_rate_permanently() {
        for (ordinary_ms, fast_ms) in [(300, 20), (1_500, 20), (1_500, 150)] {
            let mut rate = PlatformRate::default();
            for _ in 0..20 {
                window(&mut rate, ordinary_ms);
            }
            assert_eq!(rate.gap(), Duration::from_millis(50));
            assert_eq!(window(&mut rate, fast_ms), RateChange::Raised);
            assert_eq!(window(&mut rate, ordinary_ms), RateChange::HalvedBySlowness);
            for _ in 0..40 {
                window(&mut rate, ordinary_ms);
            }
            assert_eq!(rate.gap(), Duration::from_millis(50), "{ordinary_ms} ms after {fast_ms} ms");
        }
    }

    proptest! {
        #[test]
        fn the_gap_stays_between_its_limits(samples in proptest::collection::vec(proptest::option::of(0_u64..5_000), 0..1_000)) {
            let mut rate = PlatformRate::default();
            for sample in samples {
                rate.observe(sample.map_or(Sample::Failure, |ms| Sample::Success(Duration::from_millis(ms))));
                prop_assert!((Duration::from_millis(50)..=Duration::from_secs(2)).contains(&rate.gap()));
            }
        }
    }
}
