//! Stop-watches.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Times of many runs of one kind of request.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    pub runs: usize,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// One after the other.
    pub per_second: f64,
}

/// Runs each request once, after a warm-up with the first of them.
pub fn each<T>(requests: &[T], mut run: impl FnMut(&T) -> anyhow::Result<()>) -> anyhow::Result<Times> {
    for request in requests.iter().take(20) {
        run(request)?;
    }
    let mut times = Vec::with_capacity(requests.len());
    for request in requests {
        let start = now();
        run(request)?;
        times.push(start.elapsed());
    }
    Ok(Times::of(times))
}

/// The lawful look at the clock of a benchmark.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub fn now() -> Instant {
    Instant::now()
}

impl Times {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of runs are small"
    )]
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let place = (share * times.len() as f64).ceil() as usize;
            let time = times.get(place.saturating_sub(1)).copied().unwrap_or_default();
            (time.as_secs_f64() * 1e6).round() / 1e3
        };
        let all: Duration = times.iter().sum();
        let per_second = (times.len() as f64 / all.as_secs_f64().max(1e-9)).round();
        Self { runs: times.len(), p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), per_second }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_runs_is_no_slower_than_its_percentile() {
        let times = Times::of((1..=100).rev().map(Duration::from_millis).collect());
        assert!((times.p50_ms - 50.0).abs() < 1e-6 && (times.p99_ms - 99.0).abs() < 1e-6);
        assert!((times.per_second - 20.0).abs() < 1.0);
    }
}
