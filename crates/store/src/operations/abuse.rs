//! Suspensions of sites, and reports about sites.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{
    Report, ReportCaps, ReportFilter, ReportLine, ReportOutcome, ReportedSite, SuspendedSite,
    SuspensionOutcome, SuspensionRecord,
};

impl Store {
    /// Suspends a site: removes it from the index and purges its content, as a block does.
    #[boxed]
    pub async fn site_suspend(
        &self,
        site: &SiteName,
        suspension: &SuspensionRecord,
    ) -> Result<SuspensionOutcome, StoreError> {
        writing!(self, "site_suspend", block::site_suspend(site, suspension))
    }

    /// Lifts a suspension; the site is due immediately, unless its owner opted out. False if there was none.
    #[boxed]
    pub async fn site_unsuspend(&self, site: &SiteName, now: DateTime<Utc>) -> Result<bool, StoreError> {
        writing!(self, "site_unsuspend", block::site_unsuspend(site, millis(now)))
    }

    /// The suspension of a site, if there is one.
    #[boxed]
    pub async fn suspension_find(&self, site: &SiteName) -> Result<Option<SuspensionRecord>, StoreError> {
        reading!(self, "suspension_find", suspension::suspension_find(site.as_str()))
    }

    /// The suspension of a site, with the objection of its owner.
    #[boxed]
    pub async fn suspended_site_find(&self, site: &SiteName) -> Result<Option<SuspendedSite>, StoreError> {
        reading!(self, "suspended_site_find", suspension::suspended_site_find(site.as_str()))
    }

    /// Suspended sites whose owners object, those without an answer first.
    #[boxed]
    pub async fn objections_list(&self, max: u32) -> Result<Vec<SuspendedSite>, StoreError> {
        reading!(self, "objections_list", suspension::objections_list(i64::from(max)))
    }

    /// Stores the objection of an owner in place of an earlier one and the answer to it. False if the site is not suspended.
    #[boxed]
    pub async fn objection_save(
        &self,
        site: &SiteName,
        objection: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let now_ms = millis(now);
        writing!(self, "objection_save", suspension::objection_save(site.as_str(), objection, now_ms))
    }

    /// Stores the answer of the operator to an objection. False if there is none.
    #[boxed]
    pub async fn objection_answer(
        &self,
        site: &SiteName,
        answer: &str,
        now: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        let now_ms = millis(now);
        writing!(self, "objection_answer", suspension::objection_answer(site.as_str(), answer, now_ms))
    }

    /// Saves a report, unless it is a duplicate or a cap is reached.
    #[boxed]
    pub async fn report_save(&self, report: &Report, caps: ReportCaps) -> Result<ReportOutcome, StoreError> {
        writing!(self, "report_save", report::report_save(report, caps))
    }

    /// Reports before an id, or the last ones, newest first.
    #[boxed]
    pub async fn reports_page(
        &self,
        filter: &ReportFilter,
        before: Option<i64>,
        max: u32,
    ) -> Result<Vec<ReportLine>, StoreError> {
        let before = before.unwrap_or(i64::MAX);
        reading!(self, "reports_page", report::reports_page(filter, before, i64::from(max)))
    }

    /// Sites with reports, the one with the most first.
    #[boxed]
    pub async fn reports_by_site(&self, max: u32) -> Result<Vec<ReportedSite>, StoreError> {
        reading!(self, "reports_by_site", report::reports_by_site(i64::from(max)))
    }

    /// Deletes reports, all of them with an empty filter; returns how many there were.
    #[boxed]
    pub async fn reports_dismiss(&self, filter: &ReportFilter) -> Result<u64, StoreError> {
        writing!(self, "reports_dismiss", report::reports_dismiss(filter))
    }
}
