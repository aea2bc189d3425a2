//! Leases and politeness clocks.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::SiteName;

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{
    ClockWrite, Housekeeping, LeaseRequest, LeaseToken, LeasedSite, MemberId, ParkedVisit, WorkerId,
};
use crate::pack::{millis, until_ms};
use crate::{StoreError, postgres, sqlite};

/// How long a site with nothing keeps the story of its last visits: long enough to be looked at on the day after.
const REST_AFTER: TimeDelta = TimeDelta::days(2);
/// Sites put to rest by one transaction: some tens of milliseconds.
const REST_BATCH: i64 = 500;

impl Store {
    /// Leases due sites, by priority and then by planned time, with everything that is known of them. A site is due
    /// when its visit is planned no later than asked, nobody holds it, and its owner has not opted out.
    pub async fn sites_lease(
        &self,
        request: &LeaseRequest,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeasedSite>, StoreError> {
        writing!(self, "sites_lease", lease::sites_lease(request, millis(now)))
    }

    /// Renews leases; those that are not returned are lost, and their visits must stop.
    pub async fn leases_renew(
        &self,
        tokens: &[LeaseToken],
        duration: Duration,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeaseToken>, StoreError> {
        let until_ms = until_ms(now, duration);
        writing!(self, "leases_renew", lease::leases_renew(tokens, until_ms))
    }

    /// Gives a lease back without a visit: the site is due as before, and progress is kept.
    pub async fn lease_release(&self, token: &LeaseToken, now: DateTime<Utc>) -> Result<(), StoreError> {
        tracing::debug!(site.name = %token.site, at = %now, "lease released");
        writing!(self, "lease_release", lease::lease_end(token, None))
    }

    /// Gives leases back in one statement, each with the time of its next visit where it is given one; returns the sites that
    /// were still held.
    pub async fn leases_end(
        &self,
        ends: &[(LeaseToken, Option<DateTime<Utc>>)],
    ) -> Result<Vec<SiteName>, StoreError> {
        writing!(self, "leases_end", lease::leases_end(ends))
    }

    /// Gives back everything that a worker holds; returns how many sites that were. For a worker that stops, and for one that
    /// starts again under the name of a process that was killed.
    pub async fn worker_forget(&self, worker: &WorkerId) -> Result<u64, StoreError> {
        writing!(self, "worker_forget", lease::worker_forget(worker))
    }

    /// Keeps a visit's progress and gives the lease back until the visit may go on.
    pub async fn visit_park(
        &self,
        token: &LeaseToken,
        parked: &ParkedVisit,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        tracing::debug!(site.name = %token.site, at = %now, resume_at = %parked.resume_at, "visit parked");
        writing!(self, "visit_park", site::visit_park(token, parked))
    }

    /// Writes politeness clocks, in one batch, before the requests are sent. Clocks move forward, never back. Returns the
    /// memberships among those of the clocks that have ended: nothing was written for these, and their requests may not
    /// be sent. The others are renewed.
    pub async fn clocks_save(&self, writes: &[ClockWrite]) -> Result<HashSet<MemberId>, StoreError> {
        if writes.is_empty() {
            return Ok(HashSet::new());
        }
        writing!(self, "clocks_save", clock::clocks_save(writes))
    }

    /// Removes what nothing needs any more: clocks of addresses that have long been free, what visits had done that
    /// were broken off days ago, and the rows of sites on which nothing was found, but for one.
    pub async fn housekeeping(&self, now: DateTime<Utc>) -> Result<Housekeeping, StoreError> {
        let mut kept = writing!(self, "housekeeping", clock::housekeeping(millis(now)))?;
        let visited_before = now - REST_AFTER;
        loop {
            let (before_ms, now_ms) = (millis(visited_before), millis(now));
            let rested = writing!(self, "sites_rest", rest::sites_rest(before_ms, now_ms, REST_BATCH))?;
            kept.sites_rested += rested;
            if rested == 0 {
                return Ok(kept);
            }
        }
    }

    /// The clocks of these addresses, where there are any.
    pub async fn address_clocks(
        &self,
        addresses: &[IpAddr],
    ) -> Result<HashMap<IpAddr, DateTime<Utc>>, StoreError> {
        reading!(self, "address_clocks", clock::address_clocks(addresses))
    }
}
