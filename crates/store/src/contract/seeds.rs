//! Seeds.

use chrono::{DateTime, Utc};

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{Seed, SeedsAdded};
use crate::pack::millis;
use crate::{StoreError, postgres, sqlite};

/// Seeds of one transaction: a few hundred kilobytes of parameters, some tens of milliseconds.
const SEEDS_BATCH: usize = 5_000;

impl Store {
    /// Adds seeds in batches. The same seeds again change nothing; blocked sites stay blocked. When it fails half way,
    /// the batches before stay added, and adding everything again is safe.
    pub async fn seeds_add(&self, seeds: &[Seed], now: DateTime<Utc>) -> Result<SeedsAdded, StoreError> {
        let mut total = SeedsAdded::default();
        for batch in seeds.chunks(SEEDS_BATCH) {
            let added = writing!(self, "seeds_add", seed::seeds_add(batch, millis(now)))?;
            total.added += added.added;
            total.known += added.known;
            total.blocked += added.blocked;
        }
        Ok(total)
    }

    /// Makes sites due that were last visited before a time, however far away their next visit was planned; returns how
    /// many. Blocked sites and parked visits stay as they are.
    pub async fn sites_revisit(
        &self,
        visited_before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        writing!(self, "sites_revisit", seed::sites_revisit(millis(visited_before), millis(now)))
    }
}
