//! A cache of one expensive value with a time to live.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

/// The last value and its creation time. Requests wait while a new value is being created.
pub(crate) struct TtlCache<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for TtlCache<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> TtlCache<T> {
    /// The cached value if it is younger than `age`, else a new one; errors are not cached.
    pub(crate) async fn get<E>(
        &self,
        age: Duration,
        make: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        self.get_while(|_, old| old < age, make).await
    }

    /// The cached value if `is_good` accepts it at its age, else a new one; errors are not cached.
    pub(crate) async fn get_while<E>(
        &self,
        is_good: impl Fn(&T, Duration) -> bool,
        make: impl Future<Output = Result<T, E>>,
    ) -> Result<Arc<T>, E> {
        let mut kept = self.0.lock().await;
        if let Some((made_at, answer)) = &*kept
            && is_good(answer, made_at.elapsed())
        {
            return Ok(Arc::clone(answer));
        }
        let answer = Arc::new(make.await?);
        *kept = Some((Instant::now(), Arc::clone(&answer)));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn value_is_made_once_within_its_ttl() {
        let kept = TtlCache::default();
        let age = Duration::from_mins(1);
        assert_eq!(kept.get(age, async { Err::<u8, _>("not now") }).await, Err("not now"));
        for made in [1, 2] {
            assert_eq!(*kept.get(age, async { Ok::<u8, &str>(made) }).await.unwrap(), 1);
        }
        assert_eq!(*kept.get(Duration::ZERO, async { Ok::<u8, &str>(3) }).await.unwrap(), 3);
    }
}
