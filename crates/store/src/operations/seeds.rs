//! Seeds and seed lists.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::seed::Ranking;
use crate::model::{Seed, SeedsAdded};

/// Seeds per transaction, which takes about a hundred milliseconds.
const SEEDS_BATCH: usize = 20_000;
/// Sites of one transaction.
const UNLIST_BATCH: usize = 200;

impl Store {
    /// Adds seeds in batches. Known seeds change nothing, and blocked sites stay blocked. After an error, the earlier batches remain, and
    /// it is safe to add all seeds again.
    #[boxed]
    pub async fn seeds_add(&self, seeds: &[Seed], now: DateTime<Utc>) -> Result<SeedsAdded, StoreError> {
        self.seeds_put(seeds, Ranking::Raise, (now, now)).await
    }

    /// Adds seeds in batches. If a new seed requests a visit of a known site, the visit is due at `due_at`.
    #[boxed]
    pub async fn seeds_add_due_at(
        &self,
        seeds: &[Seed],
        now: DateTime<Utc>,
        due_at: DateTime<Utc>,
    ) -> Result<SeedsAdded, StoreError> {
        self.seeds_put(seeds, Ranking::Raise, (now, due_at)).await
    }

    /// Adds seeds in batches, and sets listed sites to the priority of their new rank, even if it is lower.
    #[boxed]
    pub async fn seeds_relist(&self, seeds: &[Seed], now: DateTime<Utc>) -> Result<SeedsAdded, StoreError> {
        self.seeds_put(seeds, Ranking::Follow, (now, now)).await
    }

    /// Adds a site without planning a visit, so that it can be leased and has clocks. A known site is not changed.
    #[boxed]
    pub async fn site_add_unplanned(&self, site: &SiteName, now: DateTime<Utc>) -> Result<(), StoreError> {
        writing!(self, "site_add_unplanned", seed::site_add_unplanned(site, millis(now)))
    }

    async fn seeds_put(
        &self,
        seeds: &[Seed],
        ranking: Ranking,
        (now, due_at): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<SeedsAdded, StoreError> {
        let mut total = SeedsAdded::default();
        for batch in seeds.chunks(SEEDS_BATCH) {
            let times = (millis(now), millis(due_at));
            let added = writing!(self, "seeds_add", seed::seeds_add(batch, ranking, times))?;
            total.added += added.added;
            total.known += added.known;
            total.blocked += added.blocked;
            total.refused += added.refused;
        }
        Ok(total)
    }

    /// Names of sites that are known only from lists, in order, after a name.
    #[boxed]
    pub async fn sites_listed(
        &self,
        after: Option<&SiteName>,
        max: u32,
    ) -> Result<Vec<SiteName>, StoreError> {
        let after = after.map_or("", SiteName::as_str);
        reading!(self, "sites_listed", listing::sites_listed(after, i64::from(max)))
    }

    /// Deletes sites that no list names, with their manifests and history; returns how many there were. A visit in progress is
    /// not saved.
    #[boxed]
    pub async fn sites_unlist(&self, sites: &[SiteName], now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut gone = 0;
        for batch in sites.chunks(UNLIST_BATCH) {
            gone += writing!(self, "sites_unlist", listing::sites_unlist(batch, now))?;
        }
        Ok(gone)
    }

    /// Makes sites due that were last visited before a time; returns how many. Blocked sites and parked visits do not change.
    #[boxed]
    pub async fn sites_revisit(
        &self,
        visited_before: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> Result<u64, StoreError> {
        writing!(self, "sites_revisit", seed::sites_revisit(millis(visited_before), millis(now)))
    }
}
