//! Measures the times of requests, their throughput on all cores, and the memory of a process.

use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

/// Times of many runs of one kind of request.
#[derive(Debug, Clone, Serialize)]
pub struct Times {
    pub runs: usize,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    /// Runs per second, one after the other.
    pub per_second: f64,
}

/// Runs the requests one after the other in several rounds, after a warm-up with the first one. The fastest time of each
/// request counts.
pub fn each<T>(
    requests: &[T],
    rounds: usize,
    mut run: impl FnMut(&T) -> anyhow::Result<()>,
) -> anyhow::Result<Times> {
    for request in requests.iter().take(20) {
        run(request)?;
    }
    let mut times = vec![Duration::MAX; requests.len()];
    for _ in 0..rounds.max(1) {
        for (request, fastest) in requests.iter().zip(&mut times) {
            let start = now();
            run(request)?;
            *fastest = start.elapsed().min(*fastest);
        }
    }
    Ok(Times::of(times))
}

/// Runs the requests in turn on every core until the time is over; returns the runs per second.
pub fn in_parallel<T: Sync>(
    time: Duration,
    requests: &[T],
    run: impl Fn(&T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<f64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let start = now();
    let one = |core: usize| -> anyhow::Result<u32> {
        let mut runs = 0;
        for request in requests.iter().cycle().skip(core * requests.len() / cores) {
            if start.elapsed() >= time {
                break;
            }
            run(request)?;
            runs += 1;
        }
        Ok(runs)
    };
    let runs = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || one(core))).collect();
        let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|joined| joined.map_err(|_| anyhow::anyhow!("a thread of the benchmark panicked"))?)
            .sum::<anyhow::Result<u32>>()
    })?;
    Ok((f64::from(runs) / start.elapsed().as_secs_f64()).round())
}

/// Resident memory of a process, in KiB, with the mapped files.
pub fn resident_kib(pid: u32) -> anyhow::Result<u64> {
    memory_kib(pid, "VmRSS:")
}

/// Resident memory of a process, in KiB, without the mapped files, which the system can drop at any time.
pub fn anonymous_kib(pid: u32) -> anyhow::Result<u64> {
    memory_kib(pid, "RssAnon:")
}

fn memory_kib(pid: u32, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|text| text.parse().ok());
    number.with_context(|| format!("the status of the process has no {field}"))
}

/// The clock of a benchmark.
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
    fn uses_every_core_until_the_time_is_over() {
        let rate = in_parallel(Duration::from_millis(50), &[1, 2, 3], |_| {
            std::hint::black_box(());
            Ok(())
        });
        assert!(rate.unwrap() > 100.0);
        assert!(resident_kib(std::process::id()).unwrap() > anonymous_kib(std::process::id()).unwrap());
        assert!(in_parallel(Duration::from_secs(1), &[1], |_| anyhow::bail!("wrong")).is_err());
    }

    #[test]
    fn keeps_the_fastest_of_the_rounds() {
        let mut runs = 0;
        let times = each(&["a request"], 3, |_| {
            // the warm-up and the first round take longer than the others
            if runs < 2 {
                let until = now() + Duration::from_millis(20);
                while now() < until {}
            }
            runs += 1;
            Ok(())
        });
        let times = times.unwrap();
        assert_eq!((runs, times.runs), (4, 1));
        assert!(times.p50_ms < 20.0);
    }

    #[test]
    fn percentiles_bound_their_share_of_the_runs() {
        let times = Times::of((1..=100).rev().map(Duration::from_millis).collect());
        assert!((times.p50_ms - 50.0).abs() < 1e-6 && (times.p99_ms - 99.0).abs() < 1e-6);
        assert!((times.per_second - 20.0).abs() < 1.0);
    }
}
