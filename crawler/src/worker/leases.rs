//! Renews the leases of this process. If a lease cannot be renewed, its visit ends.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use store::{LeaseToken, OUTAGE, Store, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{HEARTBEATS_PER_LEASE, OUTAGE_DELAY, Work, Worker};
use crate::{clock, metrics};

/// Identifies a lease by site and fence: a site has two leases for a while if this process leases it again after the first has expired.
type Key = (SiteName, i64);

/// Held leases, with the tokens that notify their visits when they are lost.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldLeases(Arc<Mutex<HashMap<Key, (LeaseToken, CancellationToken)>>>);

/// A lease that a visit holds. Dropping this ends its renewal, however the visit ends.
#[derive(Debug)]
pub(super) struct HeldLease {
    /// Cancelled when the lease is lost.
    pub(super) lost: CancellationToken,
    key: Key,
    held: HeldLeases,
}

impl HeldLeases {
    pub(super) fn add(&self, token: &LeaseToken) -> HeldLease {
        let (key, lost) = (key_of(token), CancellationToken::new());
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(key.clone(), (token.clone(), lost.clone()));
        HeldLease { lost, key, held: self.clone() }
    }

    /// The sites with held leases.
    pub(super) fn sites(&self) -> HashSet<SiteName> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.keys().map(|(site, _)| site.clone()).collect()
    }

    /// Renews all held leases, and ends the visits whose leases are lost. While the database is unavailable, visits continue, but each of
    /// their requests waits until its clock is written, which renews its lease.
    pub(super) async fn renew(
        &self,
        store: &Store,
        lease: Duration,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        let tokens: Vec<LeaseToken> = {
            let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            held.values().map(|(token, _)| token.clone()).collect()
        };
        if tokens.is_empty() {
            return Ok(());
        }
        let renewed: HashSet<Key> =
            store.leases_renew(&tokens, lease, now).await?.iter().map(key_of).collect();
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in tokens.iter().map(key_of).filter(|key| !renewed.contains(key)) {
            if let Some((_, lost)) = held.get(&key) {
                lost.cancel();
            }
        }
        Ok(())
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.held.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}

fn key_of(token: &LeaseToken) -> Key {
    (token.site.clone(), token.fence)
}

impl Worker<'_> {
    /// Renews the leases when it is time, and updates the metrics. Returns whether no lease of this process has expired at `now`:
    /// a process that was stalled would otherwise lease the sites that its visits still hold.
    pub(super) async fn renew_leases(&self, work: &mut Work, now: DateTime<Utc>) -> bool {
        if Instant::now() < work.next_renewal_at {
            return true;
        }
        work.next_renewal_at = Instant::now() + self.lease / HEARTBEATS_PER_LEASE;
        let began = Instant::now();
        if let Err(error) = work.held.renew(&self.tools.store, self.lease, now).await {
            if error.is_transient() {
                OUTAGE.failed("renew leases", error, began);
                work.next_renewal_at = Instant::now() + OUTAGE_DELAY.min(self.lease / HEARTBEATS_PER_LEASE);
                return false;
            }
            tracing::warn!(%error, "leases could not be renewed");
        }
        let oldest_due_at = self.tools.store.next_due_at().await.ok().flatten();
        metrics::state(work.running.len(), work.parked.len(), oldest_due_at, clock::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use manifest::Host;
    use store::{GroupSet, LeaseRequest, Seed, WorkerId};

    use super::*;
    use crate::clock;

    const LEASE: Duration = Duration::from_mins(1);

    async fn lease(store: &Store, now: DateTime<Utc>) -> LeaseToken {
        let request = LeaseRequest {
            worker: WorkerId::new("w"),
            sites_max: 1,
            duration: LEASE,
            due_before: DateTime::<Utc>::MAX_UTC,
            only: None,
            groups: GroupSet::all(),
        };
        store.sites_lease(&request, now).await.unwrap().remove(0).token
    }

    /// A process that stalled for longer than a lease leases its own site again.
    #[tokio::test]
    async fn a_second_lease_of_a_site_ends_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_in_data_dir(dir.path()).await.unwrap();
        let now = clock::now();
        store.seeds_add(&[Seed::of_host(Host::parse("a.example").unwrap())], now).await.unwrap();
        let held = HeldLeases::default();
        let first = held.add(&lease(&store, now).await);
        held.renew(&store, LEASE, now).await.unwrap();
        assert!(!first.lost.is_cancelled());
        let later = now + TimeDelta::minutes(2);
        let second = held.add(&lease(&store, later).await);
        held.renew(&store, LEASE, later).await.unwrap();
        assert_eq!((first.lost.is_cancelled(), second.lost.is_cancelled()), (true, false));
        drop(first);
        // the second lease is still renewed
        let last = later + TimeDelta::minutes(3);
        held.renew(&store, LEASE, last).await.unwrap();
        assert!(!second.lost.is_cancelled());
        assert_eq!(store.stats(last).await.unwrap().sites_leased, 1);
    }
}
