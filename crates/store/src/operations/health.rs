//! Recent visits, the load of workers, and what is in the index.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{DialectUsage, NewSite, VisitsOfHour, WorkerLoad};

impl Store {
    /// Visits that ended since a time, by hour and end, earliest first. Only the last visits of each site are kept, so earlier
    /// hours are incomplete.
    #[boxed]
    pub async fn visits_by_hour(&self, since: DateTime<Utc>) -> Result<Vec<VisitsOfHour>, StoreError> {
        scanning!(self, "visits_by_hour", health::visits_by_hour(millis(since)))
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
