//! Writes clocks in batches. Each batch also reads whether a site has opted out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use store::{ClockOutcome, ClockWrite, LeaseToken, Membership, Store, StoreError};

use super::permit::later;
use crate::batcher::BatchWriter;
use crate::clock::{self, Moment};
use crate::groups::Lifetimes;

/// Maximum number of clocks written by one statement.
const BATCH_MAX: usize = 500;
/// Time allowed for writing a clock: twice that of the last one, within these bounds.
pub(super) const WRITE_TIME_MIN: Duration = Duration::from_millis(100);
pub(super) const WRITE_TIME_MAX: Duration = Duration::from_secs(5);

/// How long the last write of a clock took, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct WriteTime(AtomicU64);

impl WriteTime {
    pub(super) fn observe(&self, took: Duration) {
        self.0.store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The time to allow for the next one.
    pub(super) fn allowed(&self) -> Duration {
        let last = Duration::from_millis(self.0.load(Ordering::Relaxed));
        last.saturating_mul(2).clamp(WRITE_TIME_MIN, WRITE_TIME_MAX)
    }
}

/// Whether the request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clearance {
    /// The lease of the site and, in a fleet, the ownership of the address last for at least one lifetime from `since`, which was taken
    /// before the query. `reserved_at` is set if another worker uses the address at the planned time: the request may be sent then.
    Granted { since: Moment, reserved_at: Option<DateTime<Utc>> },
    /// Other workers use the address for too long.
    AddressTaken { until: DateTime<Utc> },
    /// The site owner opted out.
    OptedOut,
    /// Another worker visits the site now.
    LeaseLost,
    /// Another worker owns the address now.
    Moved,
}

/// Writes clocks.
#[derive(Clone)]
pub(super) struct ClockWriter {
    pub(super) store: Store,
    /// How long a lease, and a membership of the fleet, live after each clock that is written under them.
    pub(super) lifetimes: Lifetimes,
}

impl ClockWriter {
    /// The write with new expiry times of its lease and its membership. They are computed from the current time for each attempt, so that
    /// they are right after an outage.
    fn renewed(&self, write: &ClockWrite) -> ClockWrite {
        let (now, Lifetimes { lease, member }) = (clock::now(), self.lifetimes);
        let renewed = |membership: Membership| Membership { alive_until: later(now, member), ..membership };
        let held = |token: &LeaseToken| LeaseToken { expires_at: later(now, lease), ..token.clone() };
        ClockWrite {
            member: write.member.map(renewed),
            lease: write.lease.as_ref().map(held),
            ..write.clone()
        }
    }
}

impl BatchWriter for ClockWriter {
    type Row = ClockWrite;
    type Answer = Clearance;

    const ROW: &'static str = "clock";
    const OPERATION: &'static str = "write clocks";
    const BUSY_ROWS_MIN: usize = 8;
    /// Clocks are written even if nobody waits, because the next crawler needs them.
    const IS_CANCELLABLE: bool = false;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, writes: &[ClockWrite]) -> Result<Vec<Clearance>, StoreError> {
        let since = Moment::now();
        let renewed: Vec<ClockWrite> = writes.iter().map(|write| self.renewed(write)).collect();
        let outcomes = self.store.clocks_save(&renewed).await?;
        let mut sites: Vec<SiteName> = writes.iter().map(|write| write.host.site()).collect();
        sites.sort_unstable();
        sites.dedup();
        let opted_out = self.store.blocked_among(&sites).await?;
        let clearance = |(write, outcome): (&ClockWrite, ClockOutcome)| match outcome {
            _ if opted_out.contains(&write.host.site()) => Clearance::OptedOut,
            ClockOutcome::Saved => Clearance::Granted { since, reserved_at: None },
            ClockOutcome::Reserved { at } => Clearance::Granted { since, reserved_at: Some(at) },
            ClockOutcome::AddressTaken { until } => Clearance::AddressTaken { until },
            ClockOutcome::LeaseEnded => Clearance::LeaseLost,
            ClockOutcome::MembershipEnded => Clearance::Moved,
        };
        Ok(renewed.iter().zip(outcomes).map(clearance).collect())
    }
}
