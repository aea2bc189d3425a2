//! How many sites are on a list. They are counted one by one, so that a count is kept for the longer the dearer it was.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::kept::Kept;

/// Lists whose counts are kept at once; a prefix may be anything.
const LISTS_MAX: usize = 1_000;
/// For each of these that it took, a count is kept for the configured time once more: one that takes a third of a second is made
/// every three minutes by default.
const DEAR: Duration = Duration::from_millis(10);
/// No count is older than this.
const AGE_MAX: Duration = Duration::from_mins(5);

/// A count, and what it cost.
struct Counted {
    total: u64,
    took: Duration,
}

/// The last count of each list.
#[derive(Default)]
pub(crate) struct Totals(Mutex<HashMap<String, Arc<Kept<Counted>>>>);

impl Totals {
    /// Lets go of every count, because a site is to disappear from them at once.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The kept count of a list where it is young enough for what it cost, else a new one; `kept_for` zero keeps none.
    pub(crate) async fn get<E>(
        &self,
        list: &str,
        kept_for: Duration,
        count: impl Future<Output = Result<u64, E>>,
    ) -> Result<u64, E> {
        let counted = async {
            let began = Instant::now();
            Ok(Counted { total: count.await?, took: began.elapsed() })
        };
        let is_young = |counted: &Counted, age: Duration| age < age_max(kept_for, counted.took);
        Ok(self.of(list).get_while(is_young, counted).await?.total)
    }

    fn of(&self, list: &str) -> Arc<Kept<Counted>> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.len() >= LISTS_MAX && !lists.contains_key(list) {
            lists.clear();
        }
        Arc::clone(lists.entry(list.to_owned()).or_default())
    }
}

fn age_max(kept_for: Duration, took: Duration) -> Duration {
    let times = u32::try_from(took.as_millis() / DEAR.as_millis()).unwrap_or(u32::MAX).saturating_add(1);
    kept_for.saturating_mul(times).min(AGE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn counted(totals: &Totals, list: &str, kept_for: Duration, total: u64) -> u64 {
        totals.get(list, kept_for, async { Ok::<_, ()>(total) }).await.unwrap()
    }

    #[test]
    fn a_count_is_kept_for_the_longer_the_dearer_it_was() {
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
    async fn each_list_has_a_count_until_all_are_forgotten() {
        let (totals, long) = (Totals::default(), Duration::from_mins(4));
        assert_eq!(counted(&totals, "one", long, 10).await, 10);
        assert_eq!(counted(&totals, "one", long, 11).await, 10);
        assert_eq!(counted(&totals, "two", long, 12).await, 12);
        assert_eq!(counted(&totals, "one", Duration::ZERO, 13).await, 13);
        totals.forget();
        assert_eq!(counted(&totals, "one", long, 14).await, 14);
        assert_eq!(totals.get("bad", long, async { Err("away") }).await, Err("away"));
    }

    #[tokio::test]
    async fn any_number_of_lists_takes_bounded_memory() {
        let totals = Totals::default();
        for list in 0..3 * LISTS_MAX {
            counted(&totals, &list.to_string(), Duration::ZERO, 1).await;
        }
        assert!(totals.0.lock().unwrap().len() <= LISTS_MAX);
    }
}
