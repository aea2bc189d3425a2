//! A cache of an answer that is counted from whole tables.
//!
//! Only one request at a time counts, and only for a limited time. The result is cached even if the client disconnects, so many requests
//! cause no more work than one. A slow answer is cached for several times as long as counting took.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::problem::Problem;

/// Timeout of an answer and of each of its statements: shorter than the deadline of a request.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(8);
/// An answer is cached for this many times as long as counting took, so that counting takes at most a tenth of the time.
const KEPT_TIMES: u32 = 10;
/// Maximum time for which a failure is cached, because the database may be available again.
const FAILURE_AGE_MAX: Duration = Duration::from_secs(30);

/// The last result, or the reason why there is none.
pub(crate) struct ScanCache<T>(Arc<Mutex<Option<Counted<T>>>>);

struct Counted<T> {
    made_at: Instant,
    took: Duration,
    answer: Result<Arc<T>, Problem>,
}

impl<T> Counted<T> {
    fn is_young(&self, kept_for: Duration) -> bool {
        let after_work = self.took.saturating_mul(KEPT_TIMES);
        let age_max = match &self.answer {
            _ if kept_for.is_zero() => Duration::ZERO,
            Ok(_) => kept_for.max(after_work),
            Err(_) => after_work.min(FAILURE_AGE_MAX),
        };
        self.made_at.elapsed() < age_max
    }
}

impl<T> Default for ScanCache<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + Sync + 'static> ScanCache<T> {
    /// Drops the answer, because a change must be visible immediately.
    pub(crate) async fn clear(&self) {
        *self.0.lock().await = None;
    }

    /// The cached answer, or a new one if it is too old; `kept_for` zero disables the cache.
    pub(crate) async fn get(
        &self,
        tasks: &TaskTracker,
        kept_for: Duration,
        count: impl Future<Output = Result<T, Problem>> + Send + 'static,
    ) -> Result<Arc<T>, Problem> {
        let mut kept = Arc::clone(&self.0).lock_owned().await;
        if let Some(counted) = kept.as_ref().filter(|counted| counted.is_young(kept_for)) {
            return counted.answer.clone();
        }
        let counted = tasks.spawn(async move {
            let began = Instant::now();
            let answer = tokio::time::timeout(TIME_MAX, count).await.unwrap_or_else(|_| Err(too_slow()));
            let answer = answer.map(Arc::new);
            *kept = Some(Counted { made_at: Instant::now(), took: began.elapsed(), answer: answer.clone() });
            answer
        });
        counted.await.map_err(|error| Problem::internal(&error))?
    }
}

fn too_slow() -> Problem {
    Problem::unavailable("counting takes too long at the moment; try again later")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use axum::http::StatusCode;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[derive(Default)]
    struct Counter {
        cache: ScanCache<u32>,
        tasks: TaskTracker,
        counts: Arc<AtomicU32>,
    }

    impl Counter {
        /// Returns the number of the count that produced the answer. Each count takes `takes`.
        async fn get(&self, kept_for: Duration, takes: Duration) -> Result<u32, Problem> {
            let counts = Arc::clone(&self.counts);
            let count = async move {
                let number = counts.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::time::sleep(takes).await;
                Ok(number)
            };
            self.cache.get(&self.tasks, kept_for, count).await.map(|number| *number)
        }
    }

    #[tokio::test]
    async fn clients_that_leave_cause_one_count() {
        let counter = Counter::default();
        for _ in 0..5 {
            let impatient = tokio::time::timeout(SECOND / 100, counter.get(SECOND, SECOND / 2)).await;
            assert!(impatient.is_err());
        }
        assert_eq!(counter.get(SECOND, SECOND).await.unwrap(), 1);
        assert_eq!(counter.counts.load(Ordering::Relaxed), 1);
        counter.cache.clear().await;
        assert_eq!(counter.get(SECOND, Duration::ZERO).await.unwrap(), 2);
        assert_eq!(counter.get(Duration::ZERO, Duration::ZERO).await.unwrap(), 3, "zero disables the cache");
    }

    #[tokio::test]
    async fn answer_that_takes_too_long_is_not_tried_again_at_once() {
        let counter = Counter::default();
        for _ in 0..3 {
            let refused = counter.get(SECOND, 60 * SECOND).await.unwrap_err();
            assert_eq!(refused.body().status, StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(counter.counts.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn answers_are_kept_for_ten_times_as_long_as_they_took() {
        let is_young = |answer: Result<u32, Problem>, took: Duration, age: Duration| {
            let made_at = Instant::now().checked_sub(age).unwrap();
            Counted { made_at, took, answer: answer.map(Arc::new) }.is_young(5 * SECOND)
        };
        for (took, age) in [(SECOND / 100, 4 * SECOND), (SECOND, 9 * SECOND), (8 * SECOND, 79 * SECOND)] {
            assert!(is_young(Ok(1), took, age) && !is_young(Ok(1), took, age + 2 * SECOND), "{took:?}");
        }
        for (took, age) in [(SECOND / 10, SECOND / 2), (8 * SECOND, 29 * SECOND)] {
            let refused = || Err(too_slow());
            assert!(
                is_young(refused(), took, age) && !is_young(refused(), took, age + 2 * SECOND),
                "{took:?}"
            );
        }
    }
}
