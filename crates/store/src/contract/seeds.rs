//! Seeds.

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::seed::Ranking;
use crate::model::{Seed, SeedsAdded};
use crate::pack::millis;
use crate::{StoreError, postgres, sqlite};

/// Seeds of one transaction: a megabyte of parameters, some hundred milliseconds.
const SEEDS_BATCH: usize = 20_000;
/// Sites forgotten by one transaction.
const UNLIST_BATCH: usize = 200;

impl Store {
    /// Adds seeds in batches. The same seeds again change nothing; blocked sites stay blocked. When it fails half way,
    /// the batches before stay added, and adding everything again is safe.
    pub async fn seeds_add(&self, seeds: &[Seed], now: DateTime<Utc>) -> Result<SeedsAdded, StoreError> {
        self.seeds_put(seeds, Ranking::Raise, now).await
    }

    /// Adds seeds as [`Self::seeds_add`] does, and puts sites that were listed before where the list puts them now,
    /// also further back.
    pub async fn seeds_relist(&self, seeds: &[Seed], now: DateTime<Utc>) -> Result<SeedsAdded, StoreError> {
        self.seeds_put(seeds, Ranking::Follow, now).await
    }

    /// Makes a site known of which something else is asked than a visit, so that it can be leased and its clocks are kept. A
    /// site that is known stays as it is.
    pub async fn site_add_unplanned(&self, site: &SiteName, now: DateTime<Utc>) -> Result<(), StoreError> {
        writing!(self, "site_add_unplanned", seed::site_add_unplanned(site, millis(now)))
    }

    async fn seeds_put(
        &self,
        seeds: &[Seed],
        ranking: Ranking,
        now: DateTime<Utc>,
    ) -> Result<SeedsAdded, StoreError> {
        let mut total = SeedsAdded::default();
        for batch in seeds.chunks(SEEDS_BATCH) {
            let added = writing!(self, "seeds_add", seed::seeds_add(batch, ranking, millis(now)))?;
            total.added += added.added;
            total.known += added.known;
            total.blocked += added.blocked;
            total.refused += added.refused;
        }
        Ok(total)
    }

    /// Names of sites that only a list asks for, in order, after a name.
    pub async fn sites_listed(
        &self,
        after: Option<&SiteName>,
        max: u32,
    ) -> Result<Vec<SiteName>, StoreError> {
        let after = after.map_or("", SiteName::as_str);
        reading!(self, "sites_listed", listing::sites_listed(after, i64::from(max)))
    }

    /// Forgets sites that no list names any more, with their manifests and history; returns how many. A visit to one that
    /// is under way is lost.
    pub async fn sites_unlist(&self, sites: &[SiteName], now: DateTime<Utc>) -> Result<u64, StoreError> {
        let mut gone = 0;
        for batch in sites.chunks(UNLIST_BATCH) {
            gone += writing!(self, "sites_unlist", listing::sites_unlist(batch, now))?;
        }
        Ok(gone)
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
