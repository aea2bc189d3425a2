//! Leases and politeness clocks.

use async_recursion::async_recursion as boxed;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::Store;
use crate::StoreError;
use crate::model::{ClockOutcome, ClockWrite, LeaseRequest, LeaseToken, LeasedSite, ParkedVisit, WorkerId};

impl Store {
    /// Leases due sites by priority and planned time, with their stored state. A site is due when its visit is
    /// planned before `due_before`, it is not leased, and its owner has not opted out.
    #[boxed]
    pub async fn sites_lease(
        &self,
        request: &LeaseRequest,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeasedSite>, StoreError> {
        writing!(self, "sites_lease", lease::sites_lease(request, now))
    }

    /// Renews leases and returns those that are still held. The others are lost, and their visits must stop.
    #[boxed]
    pub async fn leases_renew(
        &self,
        tokens: &[LeaseToken],
        duration: Duration,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeaseToken>, StoreError> {
        let expires_at = now.checked_add_signed(TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX));
        let expires_at = expires_at.unwrap_or(DateTime::<Utc>::MAX_UTC);
        let renewed: Vec<LeaseToken> =
            tokens.iter().map(|token| LeaseToken { expires_at, ..token.clone() }).collect();
        writing!(self, "leases_renew", lease::leases_renew(&renewed))
    }

    /// Ends all leases of a worker; returns their number. Called when a worker stops, and when it starts with the name of a process that
    /// was killed.
    #[boxed]
    pub async fn worker_forget(&self, worker: &WorkerId) -> Result<u64, StoreError> {
        writing!(self, "worker_forget", group::worker_forget(worker))
    }

    /// Saves a visit's progress and ends the lease until the visit may resume.
    #[boxed]
    pub async fn visit_park(
        &self,
        token: &LeaseToken,
        parked: &ParkedVisit,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        tracing::debug!(site.name = %token.site, at = %now, resume_at = %parked.resume_at, "visit parked");
        writing!(self, "visit_park", lease::visit_park(token, parked))
    }

    /// Writes politeness clocks before the requests are sent. Clocks move forward, never back. Returns the outcomes in order. Leases and
    /// memberships that have not ended are renewed in the same transaction.
    #[boxed]
    pub async fn clocks_save(&self, writes: &[ClockWrite]) -> Result<Vec<ClockOutcome>, StoreError> {
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        writing!(self, "clocks_save", clock::clocks_save(writes))
    }

    /// When a request may next be sent to these addresses, after those of the owner and those for which others have reserved a time.
    /// Addresses without a clock are left out.
    #[boxed]
    pub async fn address_clocks(
        &self,
        addresses: &[IpAddr],
    ) -> Result<HashMap<IpAddr, DateTime<Utc>>, StoreError> {
        reading!(self, "address_clocks", address::address_clocks(addresses))
    }
}
