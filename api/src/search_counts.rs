//! Counts, for each day, the searches that showed a site that has an owner, and each of its capabilities.
//!
//! A search adds to counts in memory, which are written every minute, so that searches never write to the database. Only the count of a
//! search is stored: no query, no client, no time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{CapabilityId, SiteName};
use store::{CapabilitySearchCount, SearchCount, Store, StoreError};

use crate::answers::claim::OwnerMark;
use crate::clock;

/// How often counts are written and new owners are noticed.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_mins(1);
/// Maximum number of sites whose searches are counted: their names take a few megabytes.
const SITES_MAX: u32 = 100_000;
/// Maximum number of counts in memory while the database cannot be written: one day of all counted sites.
const COUNTS_MAX: usize = 100_000;
/// Maximum number of counts of capabilities in memory: about 20 MB.
const CAPABILITY_COUNTS_MAX: usize = 100_000;
/// Maximum number of capabilities of a site that are counted in memory for one day, as in the database. So searches for one site take no room
/// of others.
const CAPABILITIES_OF_DAY_MAX: usize = 100;
const SECONDS_A_DAY: i64 = 24 * 60 * 60;

/// The sites that have owners, as of the last minute or two. Clones share the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct SiteOwners(Arc<HashMap<SiteName, OwnerMark>>);

impl SiteOwners {
    /// The owner of a site, who proved control of its domain.
    pub(crate) fn of(&self, site: &SiteName) -> Option<OwnerMark> {
        self.0.get(site).copied()
    }
}

/// The sites with owners, and the counts that have not been written yet.
#[derive(Default)]
pub(crate) struct SearchCounts {
    owned: RwLock<SiteOwners>,
    counts: Mutex<BTreeMap<(SiteName, i32), u64>>,
    capability_counts: Mutex<CapabilityCounts>,
}

/// The counts of the capabilities of sites and days.
#[derive(Default)]
struct CapabilityCounts {
    of_days: BTreeMap<(SiteName, i32), BTreeMap<CapabilityId, u64>>,
    /// Number of counts of all sites and days.
    counts: usize,
}

impl CapabilityCounts {
    /// Adds to a count. New capabilities are dropped when there are too many, of this site and day or in all.
    fn add(&mut self, site: &SiteName, day: i32, capability: &CapabilityId, searches: u64) {
        let (key, free) = ((site.clone(), day), CAPABILITY_COUNTS_MAX - self.counts);
        if free == 0 && !self.of_days.contains_key(&key) {
            return;
        }
        let of_day = self.of_days.entry(key).or_default();
        let before = of_day.len();
        add_bounded(of_day, capability.clone(), searches, CAPABILITIES_OF_DAY_MAX.min(before + free));
        self.counts += of_day.len() - before;
    }

    fn into_counts(self) -> impl Iterator<Item = CapabilitySearchCount> {
        self.of_days.into_iter().flat_map(|((site, day), of_day)| {
            of_day.into_iter().map(move |(capability, searches)| {
                let site = site.clone();
                CapabilitySearchCount { site, day, capability, searches }
            })
        })
    }
}

impl SearchCounts {
    /// Counts one search that showed these capabilities of sites; each site and each capability counts once.
    pub(crate) fn count<'a>(
        &self,
        shown: impl IntoIterator<Item = (&'a SiteName, &'a CapabilityId)>,
        now: DateTime<Utc>,
    ) {
        let owned = self.owners();
        if owned.0.is_empty() {
            return;
        }
        let shown = shown.into_iter().filter(|(site, _)| owned.of(site).is_some());
        let capabilities: HashSet<(&SiteName, &CapabilityId)> = shown.collect();
        let sites: HashSet<&SiteName> = capabilities.iter().map(|(site, _)| *site).collect();
        for site in sites {
            self.add(site, day_of(now), 1);
        }
        for (site, capability) in capabilities {
            self.add_capability(site, day_of(now), capability, 1);
        }
    }

    pub(crate) fn owners(&self) -> SiteOwners {
        self.owned.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, site: &SiteName, day: i32, searches: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        add_bounded(&mut counts, (site.clone(), day), searches, COUNTS_MAX);
    }

    fn add_capability(&self, site: &SiteName, day: i32, capability: &CapabilityId, searches: u64) {
        let mut counts = self.capability_counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.add(site, day, capability, searches);
    }

    /// Updates the list of sites with owners, and then writes the counts, which a read-only replica refuses. Counts that cannot be
    /// written are kept for the next attempt.
    pub(crate) async fn write(&self, store: &Store) -> Result<(), StoreError> {
        let now = clock::now();
        let owned = store.sites_owned(SITES_MAX).await?.into_iter().filter(|(_, owner)| owner.counts_at(now));
        let owned = owned.map(|(site, owner)| (site, OwnerMark::from(&owner))).collect();
        *self.owned.write().unwrap_or_else(PoisonError::into_inner) = SiteOwners(Arc::new(owned));
        let counted = std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let counts: Vec<SearchCount> =
            counted.into_iter().map(|((site, day), searches)| SearchCount { site, day, searches }).collect();
        if !counts.is_empty()
            && let Err(error) = store.search_counts_add(&counts).await
        {
            for count in &counts {
                self.add(&count.site, count.day, count.searches);
            }
            return Err(error);
        }
        self.write_capabilities(store).await
    }

    async fn write_capabilities(&self, store: &Store) -> Result<(), StoreError> {
        let counted =
            std::mem::take(&mut *self.capability_counts.lock().unwrap_or_else(PoisonError::into_inner));
        let counts: Vec<CapabilitySearchCount> = counted.into_counts().collect();
        if !counts.is_empty()
            && let Err(error) = store.capability_search_counts_add(&counts).await
        {
            for count in &counts {
                self.add_capability(&count.site, count.day, &count.capability, count.searches);
            }
            return Err(error);
        }
        Ok(())
    }
}

/// Adds to a count. New keys are dropped when there are `max` keys.
fn add_bounded<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K, searches: u64, max: usize) {
    if counts.len() < max || counts.contains_key(&key) {
        let count = counts.entry(key).or_default();
        *count = count.saturating_add(searches);
    }
}

/// Days since 1970-01-01 UTC.
pub(crate) fn day_of(at: DateTime<Utc>) -> i32 {
    i32::try_from(at.timestamp().div_euclid(SECONDS_A_DAY)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> SiteName {
        SiteName::parse(name).unwrap()
    }

    fn mark(at: DateTime<Utc>) -> OwnerMark {
        let by = policy::claim::Proof::Dns;
        OwnerMark { verified: true, by, since: at, last_proven_at: at, missing_since: None }
    }

    #[test]
    fn counts_each_owned_site_once_for_a_search() {
        let counts = SearchCounts::default();
        let (owned, other) = (site("owned.example"), site("other.example"));
        let now = DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
        let (book, pay) = (CapabilityId::of_key("book"), CapabilityId::of_key("pay"));
        counts.count([(&owned, &book)], now);
        assert!(counts.counts.lock().unwrap().is_empty(), "a site without an owner is not counted");
        assert_eq!(counts.capability_counts.lock().unwrap().counts, 0);
        *counts.owned.write().unwrap() = SiteOwners(Arc::new(HashMap::from([(owned.clone(), mark(now))])));
        counts.count([(&owned, &book), (&other, &book), (&owned, &pay), (&owned, &pay)], now);
        counts.count([(&owned, &book)], now);
        counts.count([(&owned, &book)], now + chrono::TimeDelta::days(1));
        let counted: Vec<_> = counts.counts.lock().unwrap().clone().into_iter().collect();
        assert_eq!(counted, [((owned.clone(), 20_000), 2), ((owned.clone(), 20_001), 1)]);
        let of_days = counts.capability_counts.lock().unwrap().of_days.clone();
        let expected = [
            ((owned.clone(), 20_000), BTreeMap::from([(book.clone(), 2), (pay, 1)])),
            ((owned, 20_001), BTreeMap::from([(book, 1)])),
        ];
        assert_eq!(of_days, BTreeMap::from(expected));
    }

    #[test]
    fn searches_for_one_site_take_no_room_of_the_counts_of_others() {
        let mut counts = CapabilityCounts::default();
        let capability = |number: usize| CapabilityId::of_key(&number.to_string());
        for number in 0..CAPABILITIES_OF_DAY_MAX + 50 {
            counts.add(&site("large.example"), 20_000, &capability(number), 1);
        }
        counts.add(&site("large.example"), 20_000, &capability(0), 1);
        counts.add(&site("small.example"), 20_000, &capability(0), 1);
        assert_eq!(counts.counts, CAPABILITIES_OF_DAY_MAX + 1);
        let large = &counts.of_days[&(site("large.example"), 20_000)];
        assert_eq!((large.len(), large.get(&capability(0))), (CAPABILITIES_OF_DAY_MAX, Some(&2)));
        for number in 0..CAPABILITY_COUNTS_MAX {
            counts.add(&site(&format!("s{number}.example")), 20_000, &capability(0), 1);
        }
        assert_eq!(counts.counts, CAPABILITY_COUNTS_MAX);
        assert_eq!(counts.into_counts().count(), CAPABILITY_COUNTS_MAX);
    }

    #[test]
    fn counts_in_memory_are_bounded() {
        let counts = SearchCounts::default();
        for day in 0..i32::try_from(COUNTS_MAX).unwrap() {
            counts.add(&site("owned.example"), day, 1);
        }
        counts.add(&site("another.example"), 0, 1);
        counts.add(&site("owned.example"), 0, 1);
        let counted = counts.counts.lock().unwrap();
        assert_eq!((counted.len(), counted.get(&(site("owned.example"), 0))), (COUNTS_MAX, Some(&2)));
    }
}
