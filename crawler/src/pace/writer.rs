//! Writes clocks in batches, and asks in the same breath whether a site has opted out. A gap of a second hides the moment for
//! which a batch gathers; a quiet crawler waits for nothing.

use std::time::Duration;

use chrono::TimeDelta;
use manifest::SiteName;
use store::{ClockWrite, Membership, Store, StoreError};

use crate::clock;
use crate::gather::Batches;

/// Clocks written by one statement.
const BATCH_MAX: usize = 500;

/// Whether the request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleared {
    Go,
    /// The owner asked to be left out.
    OptedOut,
    /// The address is another worker's now.
    Moved,
}

/// Writes clocks.
#[derive(Clone)]
pub(super) struct ClockWriter {
    pub(super) store: Store,
    /// How long a membership of the fleet lives from each clock on that is written under it.
    pub(super) life: Duration,
}

impl Batches for ClockWriter {
    type Row = ClockWrite;
    type Answer = Cleared;

    const ROW: &'static str = "clock";
    const WAITS: &'static str = "requests to be sent";
    const BUSY: usize = 8;
    /// Whoever crawls next keeps to them.
    const MAY_BE_GIVEN_UP: bool = false;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, writes: &[ClockWrite]) -> Result<Vec<Cleared>, StoreError> {
        // after an outage a membership is renewed from now on, not from before it
        let alive_until = clock::now() + TimeDelta::from_std(self.life).unwrap_or(TimeDelta::MAX);
        let renewed = |membership: Membership| Membership { alive_until, ..membership };
        let renewed: Vec<ClockWrite> = writes
            .iter()
            .map(|write| ClockWrite { member: write.member.map(renewed), ..write.clone() })
            .collect();
        let moved = self.store.clocks_save(&renewed).await?;
        let mut sites: Vec<SiteName> = writes.iter().map(|write| write.host.site()).collect();
        sites.sort_unstable();
        sites.dedup();
        let opted_out = self.store.blocked_among(&sites).await?;
        let cleared = |write: &ClockWrite| {
            if opted_out.contains(&write.host.site()) {
                Cleared::OptedOut
            } else if write.member.is_some_and(|membership| moved.contains(&membership.member)) {
                Cleared::Moved
            } else {
                Cleared::Go
            }
        };
        Ok(writes.iter().map(cleared).collect())
    }
}
