//! Claims to sites, their owners, and the secret of this instance's tokens.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::claim::{Claim, Owner};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{CapabilitySearchCount, SearchCount};

impl Store {
    /// The claim to a site with its owner, if there is one.
    #[boxed]
    pub async fn claim_find(&self, site: &SiteName) -> Result<Option<Claim>, StoreError> {
        reading!(self, "claim_find", claim::claim_find(site.as_str()))
    }

    /// Stores that a check of a claim was requested, unless one was requested after `earlier_max`. Returns whether it was stored.
    #[boxed]
    pub async fn claim_ask(
        &self,
        site: &SiteName,
        now: DateTime<Utc>,
        earlier_max: DateTime<Utc>,
    ) -> Result<bool, StoreError> {
        writing!(self, "claim_ask", claim::claim_ask(site.as_str(), millis(now), millis(earlier_max)))
    }

    /// Stores that the owner of a known site requests its next visit, which then requests every path that was not requested on the same
    /// day. Call it before the visit is requested with [`Store::seeds_add`].
    #[boxed]
    pub async fn visit_request_of_owner(
        &self,
        site: &SiteName,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        writing!(self, "visit_request_of_owner", seed::visit_request_of_owner(site.as_str(), millis(now)))
    }

    /// Up to `max` sites that have owners.
    #[boxed]
    pub async fn sites_owned(&self, max: u32) -> Result<Vec<(SiteName, Owner)>, StoreError> {
        reading!(self, "sites_owned", claim::sites_owned(i64::from(max)))
    }

    /// Adds counts of searches. Counts for sites without an owner are dropped.
    #[boxed]
    pub async fn search_counts_add(&self, counts: &[SearchCount]) -> Result<(), StoreError> {
        writing!(self, "search_counts_add", search_count::search_counts_add(counts))
    }

    /// The counts of a site since a day (days since 1970-01-01 UTC), the latest day first.
    #[boxed]
    pub async fn search_counts_of(
        &self,
        site: &SiteName,
        since: i32,
    ) -> Result<Vec<SearchCount>, StoreError> {
        reading!(self, "search_counts_of", search_count::search_counts_of(site.as_str(), since))
    }

    /// Adds counts of the searches that showed capabilities. Counts for sites without an owner are dropped, as are those of further
    /// capabilities than a day of a site has room for.
    #[boxed]
    pub async fn capability_search_counts_add(
        &self,
        counts: &[CapabilitySearchCount],
    ) -> Result<(), StoreError> {
        writing!(self, "capability_search_counts_add", search_count::capability_search_counts_add(counts))
    }

    /// The counts of at most `max` capabilities of a site since a day (days since 1970-01-01 UTC): those with the highest sums first, and of
    /// each the latest day first.
    #[boxed]
    pub async fn capability_search_counts_of(
        &self,
        site: &SiteName,
        since: i32,
        max: u32,
    ) -> Result<Vec<CapabilitySearchCount>, StoreError> {
        reading!(
            self,
            "capability_search_counts_of",
            search_count::capability_search_counts_of(site.as_str(), since, i64::from(max))
        )
    }

    /// The secret of this instance's tokens; `None` before the first token was issued.
    #[boxed]
    pub async fn claim_secret_find(&self) -> Result<Option<String>, StoreError> {
        reading!(self, "claim_secret_find", claim::claim_secret_find())
    }

    /// The secret of this instance's tokens. Stores the candidate if there is none yet.
    #[boxed]
    pub async fn claim_secret_keep(&self, candidate: &str) -> Result<String, StoreError> {
        writing!(self, "claim_secret_keep", claim::claim_secret_keep(candidate))
    }
}
