//! A cache of list totals. Counting takes time in proportion to the length of the list, so slow counts are cached longer. If counting a
//! list takes too long, that result is cached, too.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use tokio::time::Instant;

use crate::ttl_cache::TtlCache;

/// Capacity of each segment: lists that were requested once, and lists that were requested repeatedly. Needed because clients choose
/// prefixes.
const LISTS_MAX: NonZeroUsize = NonZeroUsize::new(500).expect("is not zero");
/// A count is cached for the configured time, plus the same time for each 10 ms that counting took. By default, a count that takes a third
/// of a second is repeated every three minutes.
const SLOW_STEP: Duration = Duration::from_millis(10);
/// Maximum age of a count.
const AGE_MAX: Duration = Duration::from_mins(5);

/// A count and its duration.
struct Counted {
    total: Option<u64>,
    took: Duration,
}

/// The last count of each list.
pub(crate) struct CountCache(Mutex<Lists>);

type Lists = RecentlyUsed<Arc<TtlCache<Counted>>>;

/// A least-recently-used cache in two segments: lists that are requested once never evict one that was requested
/// repeatedly.
struct RecentlyUsed<T> {
    once: LruCache<Box<str>, T>,
    again: LruCache<Box<str>, T>,
}

impl<T: Clone + Default> RecentlyUsed<T> {
    fn new() -> Self {
        Self { once: LruCache::new(LISTS_MAX), again: LruCache::new(LISTS_MAX) }
    }

    fn of(&mut self, list: &str) -> T {
        if let Some(known) = self.again.get(list) {
            return known.clone();
        }
        let known = self.once.pop(list);
        let lists = if known.is_some() { &mut self.again } else { &mut self.once };
        let value = known.unwrap_or_default();
        lists.put(list.into(), value.clone());
        value
    }
}

impl Default for CountCache {
    fn default() -> Self {
        Self(Mutex::new(RecentlyUsed::new()))
    }
}

impl CountCache {
    /// Drops every count, so that a blocked site disappears from them immediately.
    pub(crate) fn clear(&self) {
        *self.lists() = RecentlyUsed::new();
    }

    /// The cached count of a list. Counts again if the cached count is older than its duration allows; a `kept_for` of zero disables the
    /// cache.
    pub(crate) async fn get<E>(
        &self,
        list: &str,
        kept_for: Duration,
        count: impl Future<Output = Result<Option<u64>, E>>,
    ) -> Result<Option<u64>, E> {
        let counted = async {
            let began = Instant::now();
            Ok(Counted { total: count.await?, took: began.elapsed() })
        };
        let is_young = |counted: &Counted, age: Duration| age < age_max(kept_for, counted.took);
        let kept = self.lists().of(list);
        Ok(kept.get_while(is_young, counted).await?.total)
    }

    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age_max(kept_for: Duration, took: Duration) -> Duration {
    let times = u32::try_from(took.as_millis() / SLOW_STEP.as_millis()).unwrap_or(u32::MAX).saturating_add(1);
    kept_for.saturating_mul(times).min(AGE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn counted(totals: &CountCache, list: &str, kept_for: Duration, total: u64) -> u64 {
        totals.get(list, kept_for, async { Ok::<_, ()>(Some(total)) }).await.unwrap().unwrap()
    }

    #[test]
    fn slow_counts_are_cached_longer() {
        let five = Duration::from_secs(5);
        for (took_ms, age_s) in [(0, 5), (9, 5), (10, 10), (300, 155), (3_600_000, 300)] {
            assert_eq!(
                age_max(five, Duration::from_millis(took_ms)),
                Duration::from_secs(age_s),
                "{took_ms} ms"
            );
        }
        assert_eq!(age_max(Duration::ZERO, Duration::from_hours(1)), Duration::ZERO);
    }

    #[tokio::test]
    async fn each_list_has_its_own_count_until_cleared() {
        let (totals, long) = (CountCache::default(), Duration::from_mins(4));
        assert_eq!(counted(&totals, "one", long, 10).await, 10);
        assert_eq!(counted(&totals, "one", long, 11).await, 10);
        assert_eq!(counted(&totals, "two", long, 12).await, 12);
        assert_eq!(counted(&totals, "one", Duration::ZERO, 13).await, 13);
        totals.clear();
        assert_eq!(counted(&totals, "one", long, 14).await, 14);
        assert_eq!(totals.get("bad", long, async { Err("away") }).await, Err("away"));
    }

    #[tokio::test]
    async fn list_that_takes_too_long_to_count_has_no_total() {
        let (totals, long) = (CountCache::default(), Duration::from_mins(4));
        for total in [None, Some(10)] {
            let counted = totals.get("long", long, async { Ok::<_, ()>(total) }).await;
            assert_eq!(counted, Ok(None), "the failure is cached, so the list is not counted again");
        }
    }

    #[tokio::test]
    async fn cache_is_bounded_and_keeps_lists_that_are_requested_again() {
        let (totals, long) = (CountCache::default(), Duration::from_mins(4));
        for total in [10, 11] {
            assert_eq!(counted(&totals, "all", long, total).await, 10);
        }
        for list in 0..5 * LISTS_MAX.get() {
            counted(&totals, &list.to_string(), long, 1).await;
        }
        assert_eq!(counted(&totals, "all", long, 12).await, 10, "it was requested twice");
        assert_eq!(
            counted(&totals, "0", long, 13).await,
            13,
            "a list that was requested only once is evicted"
        );
        for list in 0..5 * LISTS_MAX.get() {
            for _ in 0..2 {
                counted(&totals, &list.to_string(), long, 1).await;
            }
        }
        assert_eq!(
            counted(&totals, "all", long, 14).await,
            14,
            "evicted by other lists that were requested repeatedly"
        );
        let lists = totals.lists();
        assert!(lists.once.len() <= LISTS_MAX.get() && lists.again.len() <= LISTS_MAX.get());
    }
}
