//! Recent visits, the load of workers, and statistics of the index.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, TimeDelta, Utc};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{DialectUsage, LatestVisit, NewSite, VisitsOfInterval, WorkerLoad};

impl Store {
    /// Visits that ended since a time, by interval and end, earliest first. Intervals are counted from 1970-01-01. Only the last
    /// visits of each site are kept, so earlier intervals are incomplete.
    #[boxed]
    pub async fn visits_by_interval(
        &self,
        since: DateTime<Utc>,
        interval: TimeDelta,
    ) -> Result<Vec<VisitsOfInterval>, StoreError> {
        let interval_ms = interval.num_milliseconds().max(1);
        scanning!(self, "visits_by_interval", health::visits_by_interval(millis(since), interval_ms))
    }

    /// The latest visits of all sites, most recently saved first.
    #[boxed]
    pub async fn visits_latest(&self, max: u32) -> Result<Vec<LatestVisit>, StoreError> {
        reading!(self, "visits_latest", health::visits_latest(i64::from(max)))
    }

    /// Workers that hold leases or own address groups, the busiest first.
    #[boxed]
    pub async fn workers_list(&self, now: DateTime<Utc>, max: u32) -> Result<Vec<WorkerLoad>, StoreError> {
        scanning!(self, "workers_list", health::workers_list(millis(now), i64::from(max)))
    }

    /// How many sites publish each dialect and how well they conform, the most widely published first. Manifests that were
    /// last changed before schema 5 have no conformance. Reads the whole table of manifests: cache the result.
    #[boxed]
    pub async fn dialect_usage(&self) -> Result<Vec<DialectUsage>, StoreError> {
        scanning!(self, "dialect_usage", dialect::dialect_usage())
    }

    /// The newest sites in the index, newest first.
    #[boxed]
    pub async fn sites_newest(&self, max: u32) -> Result<Vec<NewSite>, StoreError> {
        scanning!(self, "sites_newest", dialect::sites_newest(i64::from(max)))
    }
}
