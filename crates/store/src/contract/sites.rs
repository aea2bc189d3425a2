//! Blocks, and sites as they are listed and told.

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{
    BlockOutcome, FailingSite, PathSlots, SiteStory, SiteSummary, SitesRequest, SlowSite, Stats,
};
use crate::pack::{millis, names};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Sites that failed most often in a row.
    pub async fn sites_failing(&self, max: u32) -> Result<Vec<FailingSite>, StoreError> {
        reading!(self, "sites_failing", stats::sites_failing(i64::from(max)))
    }

    /// Sites that took longest to answer, in visits since a time.
    pub async fn sites_slowest(&self, since: DateTime<Utc>, max: u32) -> Result<Vec<SlowSite>, StoreError> {
        reading!(self, "sites_slowest", stats::sites_slowest(millis(since), i64::from(max)))
    }

    /// What each path of the path table came to at sites that have manifests, of so many sites.
    pub async fn paths_of_positives(&self, max: u32) -> Result<Vec<PathSlots>, StoreError> {
        reading!(self, "paths_of_positives", stats::paths_of_positives(i64::from(max)))
    }

    /// Blocks a site whose owner opted out: purges its content, takes it out of the index, and leaves a tombstone.
    pub async fn site_block(
        &self,
        site: &SiteName,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<BlockOutcome, StoreError> {
        writing!(self, "site_block", block::site_block(site, reason, now))
    }

    /// Lifts a block; the site is due at once. False where there was none.
    pub async fn site_unblock(&self, site: &SiteName, now: DateTime<Utc>) -> Result<bool, StoreError> {
        writing!(self, "site_unblock", block::site_unblock(site, millis(now)))
    }

    /// Those of the sites that are blocked, in the order given.
    pub async fn blocked_among(&self, sites: &[SiteName]) -> Result<Vec<SiteName>, StoreError> {
        let listed = names(sites.iter().map(SiteName::as_str))?;
        let blocked = reading!(self, "blocked_among", block::blocked_among(&listed))?;
        Ok(sites.iter().filter(|site| blocked.contains(site.as_str())).cloned().collect())
    }

    /// A page of sites in the order of their names.
    pub async fn sites_page(&self, request: &SitesRequest) -> Result<Vec<SiteSummary>, StoreError> {
        reading!(self, "sites_page", site_list::sites_page(request))
    }

    /// How many sites there are on all pages of a list. Whole tables are read for it.
    pub async fn sites_count(&self, request: &SitesRequest) -> Result<u64, StoreError> {
        reading!(self, "sites_count", site_list::sites_count(request))
    }

    /// Everything that is known of a site, with its last visits.
    pub async fn site_story(
        &self,
        site: &SiteName,
        visits_max: u32,
    ) -> Result<Option<SiteStory>, StoreError> {
        reading!(self, "site_story", site_list::site_story(site, visits_max, None))
    }

    /// The same with at most so many hosts: that called as the site first, then those that were asked.
    pub async fn site_story_brief(
        &self,
        site: &SiteName,
        visits_max: u32,
        hosts_max: u32,
    ) -> Result<Option<SiteStory>, StoreError> {
        reading!(self, "site_story", site_list::site_story(site, visits_max, Some(hosts_max)))
    }

    /// A site in one line; nothing is read but its own row.
    pub async fn site_summary(&self, site: &SiteName) -> Result<Option<SiteSummary>, StoreError> {
        reading!(self, "site_summary", site_list::site_summary(site))
    }

    /// The store in numbers. Reads whole tables: callers keep the answer for some seconds.
    pub async fn stats(&self, now: DateTime<Utc>) -> Result<Stats, StoreError> {
        reading!(self, "stats", stats::stats(millis(now)))
    }

    /// When the earliest visit is planned of a site that nobody holds.
    pub async fn next_due_at(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        reading!(self, "next_due_at", stats::next_due_at())
    }

    /// Parked visits by when they go on: site, time, reason in words.
    pub async fn parked_list(&self, max: u32) -> Result<Vec<(SiteName, DateTime<Utc>, String)>, StoreError> {
        reading!(self, "parked_list", site::parked_list(i64::from(max)))
    }
}
