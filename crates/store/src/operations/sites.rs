//! Blocks, lists and reports of sites, and statistics.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::{Host, SiteName};

use super::Store;
use crate::StoreError;
use crate::convert::{millis, names};
use crate::model::{
    BlockOutcome, FailingSite, PathSlots, SiteReport, SiteSummary, SitesRequest, SlowSite, Stats,
};

impl Store {
    /// Sites by failed visits in a row, most first.
    #[boxed]
    pub async fn sites_failing(&self, max: u32) -> Result<Vec<FailingSite>, StoreError> {
        scanning!(self, "sites_failing", stats::sites_failing(i64::from(max)))
    }

    /// Sites by average time to first byte in visits since a time, slowest first.
    #[boxed]
    pub async fn sites_slowest(&self, since: DateTime<Utc>, max: u32) -> Result<Vec<SlowSite>, StoreError> {
        scanning!(self, "sites_slowest", stats::sites_slowest(millis(since), i64::from(max)))
    }

    /// The path slots of up to `max` sites that have manifests.
    #[boxed]
    pub async fn paths_of_positives(&self, max: u32) -> Result<Vec<PathSlots>, StoreError> {
        reading!(self, "paths_of_positives", stats::paths_of_positives(i64::from(max)))
    }

    /// Blocks a site whose owner opted out: removes it from the index and purges its content.
    #[boxed]
    pub async fn site_block(
        &self,
        site: &SiteName,
        reason: &str,
        now: DateTime<Utc>,
    ) -> Result<BlockOutcome, StoreError> {
        writing!(self, "site_block", block::site_block(site, reason, now))
    }

    /// Lifts a block; the site is due immediately, unless it is suspended. False if there was none.
    #[boxed]
    pub async fn site_unblock(&self, site: &SiteName, now: DateTime<Utc>) -> Result<bool, StoreError> {
        writing!(self, "site_unblock", block::site_unblock(site, millis(now)))
    }

    /// The listed sites that are blocked or suspended, in the given order.
    #[boxed]
    pub async fn blocked_among(&self, sites: &[SiteName]) -> Result<Vec<SiteName>, StoreError> {
        let listed = names(sites.iter().map(SiteName::as_str))?;
        let blocked = reading!(self, "blocked_among", block::blocked_among(&listed))?;
        Ok(sites.iter().filter(|site| blocked.contains(site.as_str())).cloned().collect())
    }

    /// A page of sites sorted by name. A part of names and readability have no index, so their cost grows with the number of sites.
    ///
    /// # Errors
    ///
    /// [`StoreError::Interrupted`] after the time of the request.
    #[boxed]
    pub async fn sites_page(&self, request: &SitesRequest) -> Result<Vec<SiteSummary>, StoreError> {
        listing!(self, "sites_page", request.time_max, site_list::sites_page(request))
    }

    /// Number of sites on all pages of a list. Reads whole tables.
    ///
    /// # Errors
    ///
    /// [`StoreError::Interrupted`] after the time of the request.
    #[boxed]
    pub async fn sites_count(&self, request: &SitesRequest) -> Result<u64, StoreError> {
        listing!(self, "sites_count", request.time_max, site_list::sites_count(request))
    }

    /// Everything that is known about a site, with its last visits, but without the text of its robots.txt files.
    #[boxed]
    pub async fn site_report(
        &self,
        site: &SiteName,
        visits_max: u32,
    ) -> Result<Option<SiteReport>, StoreError> {
        reading!(self, "site_report", site_list::site_report(site, visits_max, None))
    }

    /// Like [`Self::site_report`], with at most `hosts_max` hosts: first the main hosts, then those of lists and those with manifests, then
    /// requested hosts. Contains the first 16 KiB of at most four robots.txt files.
    #[boxed]
    pub async fn site_report_brief(
        &self,
        site: &SiteName,
        visits_max: u32,
        hosts_max: u32,
    ) -> Result<Option<SiteReport>, StoreError> {
        reading!(self, "site_report", site_list::site_report(site, visits_max, Some(hosts_max)))
    }

    /// The robots.txt of a host, if there is one.
    #[boxed]
    pub async fn robots_body(&self, host: &Host) -> Result<Option<Vec<u8>>, StoreError> {
        reading!(self, "robots_body", state::robots_body(host.as_str()))
    }

    /// The site's line in lists.
    #[boxed]
    pub async fn site_summary(&self, site: &SiteName) -> Result<Option<SiteSummary>, StoreError> {
        reading!(self, "site_summary", site_list::site_summary(site))
    }

    /// Statistics of the store. Reads whole tables: cache the result.
    #[boxed]
    pub async fn stats(&self, now: DateTime<Utc>) -> Result<Stats, StoreError> {
        scanning!(self, "stats", stats::stats(millis(now)))
    }

    /// Number of due sites, including those that are being visited. Reads the whole table of sites.
    #[boxed]
    pub async fn sites_due(&self, now: DateTime<Utc>) -> Result<u64, StoreError> {
        scanning!(self, "sites_due", stats::sites_due(millis(now)))
    }

    /// The earliest planned visit of a site that is not leased.
    #[boxed]
    pub async fn next_due_at(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        reading!(self, "next_due_at", stats::next_due_at())
    }

    /// Parked visits, sorted by the time when their sites are due: site, time, reason as text.
    #[boxed]
    pub async fn parked_list(&self, max: u32) -> Result<Vec<(SiteName, DateTime<Utc>, String)>, StoreError> {
        reading!(self, "parked_list", site::parked_list(i64::MAX, i64::from(max)))
    }

    /// The same without the visits that a worker resumes.
    #[boxed]
    pub async fn parked_idle_list(
        &self,
        now: DateTime<Utc>,
        max: u32,
    ) -> Result<Vec<(SiteName, DateTime<Utc>, String)>, StoreError> {
        reading!(self, "parked_idle_list", site::parked_list(millis(now), i64::from(max)))
    }
}
