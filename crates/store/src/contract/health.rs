//! What the crawl has been doing lately.

use chrono::{DateTime, Utc};

use super::{Pools, Store};
use crate::fault::Outcome;
use crate::model::{Adoption, NewSite, VisitsOfHour, WorkerLoad};
use crate::pack::millis;
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Visits that ended since a time, by the hour of their end and by how they ended, the earliest first. Of each site
    /// only the last visits are kept, so hours long ago tell less than happened.
    pub async fn visits_by_hour(&self, since: DateTime<Utc>) -> Result<Vec<VisitsOfHour>, StoreError> {
        reading!(self, "visits_by_hour", health::visits_by_hour(millis(since)))
    }

    /// Workers that hold sites or own address groups now, the busiest first.
    pub async fn workers_list(&self, now: DateTime<Utc>, max: u32) -> Result<Vec<WorkerLoad>, StoreError> {
        reading!(self, "workers_list", health::workers_list(millis(now), i64::from(max)))
    }

    /// How widely and how well each dialect is used in the index, the most widely used first. A manifest that was last
    /// changed before its conformance was kept is counted without a verdict. Reads the whole table of manifests, so
    /// callers keep the answer for some seconds.
    pub async fn adoption(&self) -> Result<Vec<Adoption>, StoreError> {
        reading!(self, "adoption", adoption::adoption())
    }

    /// The sites that came into the index last, the newest first.
    pub async fn sites_newest(&self, max: u32) -> Result<Vec<NewSite>, StoreError> {
        reading!(self, "sites_newest", adoption::sites_newest(i64::from(max)))
    }
}
