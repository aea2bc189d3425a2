//! Detects a worker of the async runtime that is blocked by one task.
//!
//! A separate thread samples the runtime's counters once a second. If a worker is not parked and its busy time has not changed for
//! [`SAMPLES_MAX`] samples in a row, it has been polling one task all that time. The runtime updates the busy time whenever a worker has
//! polled a few tasks, and before it parks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use metrics::{counter, gauge};
use tokio::runtime::{Handle, RuntimeMetrics};

const STALLED_WORKERS: &str = "agentdex_runtime_stalled_workers";
const STALLS: &str = "agentdex_runtime_stalls_total";
/// Time between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Samples without progress after which a worker counts as blocked. Samples are counted, not time, so that a process that
/// was stopped and continued does not count as blocked.
const SAMPLES_MAX: u32 = 5;

/// Whether the runtime makes progress. Cheap to clone. The default value is never blocked.
#[derive(Debug, Clone, Default)]
pub struct RuntimeHealth(Arc<AtomicUsize>);

impl RuntimeHealth {
    /// Workers that are blocked now.
    pub fn stalled_workers(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The sampling thread. It ends when this is dropped.
#[derive(Debug)]
pub struct Watchdog {
    health: RuntimeHealth,
    _until_dropped: Sender<()>,
}

impl Watchdog {
    /// Starts to sample a runtime.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub fn start(runtime: Handle) -> io::Result<Self> {
        Self::every(SAMPLE_INTERVAL, runtime)
    }

    fn every(interval: Duration, runtime: Handle) -> io::Result<Self> {
        let health = RuntimeHealth::default();
        let (until_dropped, dropped) = channel();
        let reported = health.clone();
        let watching = move || watch(&runtime.metrics(), interval, &reported, &dropped);
        thread::Builder::new().name("watchdog".to_owned()).spawn(watching)?;
        Ok(Self { health, _until_dropped: until_dropped })
    }

    /// The result of the last sample.
    pub fn health(&self) -> RuntimeHealth {
        self.health.clone()
    }
}

/// The last sample of one worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WorkerSample {
    parks: u64,
    busy: Duration,
    /// Samples in a row without a change, of a worker that is not parked.
    unchanged: u32,
}

impl WorkerSample {
    /// `parks` counts both parking and waking, so that it is odd while the worker is parked.
    fn next(self, parks: u64, busy: Duration) -> Self {
        let is_parked = parks % 2 == 1;
        let is_same = !is_parked && self.parks == parks && self.busy == busy;
        Self { parks, busy, unchanged: if is_same { self.unchanged.saturating_add(1) } else { 0 } }
    }

    const fn is_stalled(self) -> bool {
        self.unchanged >= SAMPLES_MAX
    }
}

fn watch(runtime: &RuntimeMetrics, interval: Duration, health: &RuntimeHealth, dropped: &Receiver<()>) {
    gauge!(STALLED_WORKERS).set(0.0);
    counter!(STALLS).increment(0);
    let mut workers = vec![WorkerSample::default(); runtime.num_workers()];
    while dropped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        for (index, worker) in workers.iter_mut().enumerate() {
            let parks = runtime.worker_park_unpark_count(index);
            *worker = worker.next(parks, runtime.worker_total_busy_duration(index));
        }
        let stalled = workers.iter().filter(|worker| worker.is_stalled()).count();
        let before = health.0.swap(stalled, Ordering::Relaxed);
        report(before, stalled, workers.len());
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; there are few workers")]
fn report(before: usize, stalled: usize, workers: usize) {
    if before == stalled {
        return;
    }
    gauge!(STALLED_WORKERS).set(stalled as f64);
    if stalled > before {
        counter!(STALLS).increment((stalled - before) as u64);
        tracing::error!(stalled, workers, seconds = SAMPLES_MAX, "the async runtime is blocked");
    } else {
        tracing::warn!(stalled, workers, "the async runtime makes progress again");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tracing::field::Field;
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    #[test]
    fn a_worker_is_stalled_when_it_neither_parks_nor_finishes_a_task() {
        let busy = Duration::from_secs(1);
        let mut worker = WorkerSample::default().next(2, busy);
        for _ in 0..SAMPLES_MAX {
            assert!(!worker.is_stalled());
            worker = worker.next(2, busy);
        }
        assert!(worker.is_stalled());
        assert!(!worker.next(2, busy * 2).is_stalled(), "it polled other tasks");
        assert!(!worker.next(3, busy).is_stalled(), "it parked");
        let mut parked = WorkerSample::default();
        for _ in 0..10 * SAMPLES_MAX {
            parked = parked.next(3, busy);
            assert!(!parked.is_stalled(), "a parked worker waits for work");
        }
    }

    /// The level and the message of each event.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, event: &Event<'_>) {
            let mut line = event.metadata().level().to_string();
            event.record(&mut |field: &Field, value: &dyn std::fmt::Debug| {
                if field.name() == "message" {
                    line = format!("{line} {value:?}");
                }
            });
            self.0.lock().unwrap().push(line);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_blocked_runtime_is_reported_in_the_log_and_metrics() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        let lines = Lines::default();
        let changes = [(0, 0), (0, 1), (1, 1), (1, 0)];
        let seen = metrics::with_local_recorder(&recorder, || {
            tracing::subscriber::with_default(lines.clone(), || {
                changes.map(|(before, stalled)| {
                    report(before, stalled, 2);
                    let shown = recorder.handle().render();
                    let value = |name: &str| {
                        let line = shown.lines().find(|line| line.starts_with(name))?;
                        line.split_once(' ').map(|(_, value)| value.to_owned())
                    };
                    (value(STALLED_WORKERS), value(STALLS), lines.0.lock().unwrap().len())
                })
            })
        });
        let number = |number: &str| Some(number.to_owned());
        let expected = [
            (None, None, 0),
            (number("1"), number("1"), 1),
            (number("1"), number("1"), 1),
            (number("0"), number("1"), 2),
        ];
        assert_eq!(seen, expected);
        let expected = ["ERROR the async runtime is blocked", "WARN the async runtime makes progress again"];
        assert_eq!(*lines.0.lock().unwrap(), expected);
    }

    #[test]
    fn detects_a_blocking_task_and_its_end() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let interval = Duration::from_millis(20);
        let watchdog = Watchdog::every(interval, runtime.handle().clone()).unwrap();
        let health = watchdog.health();
        let wait_for = |stalled: usize| {
            let (_never, timer) = channel::<()>();
            for _ in 0..1_000 {
                if health.stalled_workers() == stalled {
                    return;
                }
                assert_eq!(timer.recv_timeout(interval), Err(RecvTimeoutError::Timeout));
            }
            panic!("{} workers are stalled, not {stalled}", health.stalled_workers());
        };
        let (release, waits) = channel::<()>();
        let tasks = tokio_util::task::TaskTracker::new();
        let blocking = tasks.spawn_on(async move { waits.recv().is_err() }, runtime.handle());
        wait_for(1);
        drop(release);
        wait_for(0);
        assert!(runtime.block_on(blocking).unwrap());
    }
}
