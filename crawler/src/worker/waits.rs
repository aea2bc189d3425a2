//! What a pass waits for before it ends: parked visits, and sites that other processes hold.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::progress::Progress;
use super::{IDLE_POLL, Work, Worker, delta};
use crate::clock;

impl Worker<'_> {
    /// Whether a parked visit, or a site of another process, becomes due while the pass may wait.
    /// The sites of a killed process are held until their leases end; this pass then visits them.
    pub(super) async fn waits_for_sites(
        &self,
        work: &mut Work,
        idle_since: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> bool {
        let parked = work.parked_until(until);
        if let Some(next_at) =
            work.parked.values().map(|parked| parked.resume_at).min().filter(|_| parked > 0)
        {
            (self.progress)(Progress::Waiting { parked, next_at, until });
            return true;
        }
        // the queue is polled, and once more after the last lease has ended
        let leases_end_at = idle_since + delta(self.lease + 2 * IDLE_POLL);
        if self.only.is_some() {
            return false;
        }
        if clock::now() > leases_end_at {
            // sites of other processes may have become free since the last poll, which may be long ago on a busy machine
            work.next_poll_at = Instant::now();
            return std::mem::take(&mut work.others_hold_sites);
        }
        match self.tools.store.stats(clock::now()).await {
            // sites of other processes are free now, so poll once more
            Ok(stats)
                if stats.sites_leased <= work.running.len() as u64 && !self.others_have_due(work).await =>
            {
                work.next_poll_at = Instant::now();
                std::mem::take(&mut work.others_hold_sites)
            }
            Ok(stats) => {
                work.others_hold_sites = true;
                let update = Progress::Held { sites: stats.sites_leased, until: leases_end_at };
                (self.progress)(update);
                true
            }
            Err(error) => error.is_transient(),
        }
    }

    /// Whether there are parked visits that this worker does not know, such as those of a worker that has ended.
    pub(super) async fn finds_new_parked(&self, work: &mut Work, until: DateTime<Utc>) -> bool {
        match self.parked().await {
            Ok(parked) => {
                work.parked.extend(parked);
                work.parked_until(until) > 0
            }
            Err(error) => error.is_transient(),
        }
    }

    /// Whether sites of this pass are due and not leased. They belong to other workers, which may have ended.
    async fn others_have_due(&self, work: &Work) -> bool {
        if self.tools.groups.is_unshared() {
            return false;
        }
        match self.tools.store.next_due_at().await {
            Ok(next) => next.is_some_and(|at| work.pass_began_at().is_some_and(|began_at| at <= began_at)),
            Err(error) => error.is_transient(),
        }
    }
}
