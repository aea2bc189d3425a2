//! The end of the first pass of a crawl that goes on. Sites that are added or become due in the meantime are visited during the pass. At its
//! end, the pass waits for their open visits, but not for those that have not begun or are parked.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use store::{Store, StoreError};
use tokio::time::Instant;

use super::leases::HeldLeases;
use super::{IDLE_POLL, OUTAGE_DELAY};

pub(super) struct FirstPass {
    /// Sites that were due by then belong to the pass.
    began_at: DateTime<Utc>,
    /// The sites with open and parked visits when no site of the pass waited for its first request any more.
    last: Option<HashSet<SiteName>>,
    /// Those of them with open visits.
    open: HashSet<SiteName>,
    /// Whether a parked visit of them was resumed.
    has_resumed: bool,
    next_query_at: Instant,
}

impl FirstPass {
    pub(super) fn new(began_at: DateTime<Utc>) -> Self {
        Self { began_at, last: None, open: HashSet::new(), has_resumed: false, next_query_at: Instant::now() }
    }

    pub(super) const fn began_at(&self) -> DateTime<Utc> {
        self.began_at
    }

    /// Waits for a parked visit that is resumed, if it belongs to the last ones.
    pub(super) fn resume(&mut self, site: &SiteName) {
        if self.last.as_ref().is_some_and(|last| last.contains(site)) {
            self.open.insert(site.clone());
            self.has_resumed = true;
        }
    }

    /// Whether the pass waits for parked visits from the beginning again, because visits began: at its end, only those of the last sites count.
    pub(super) fn waits_anew(&mut self) -> bool {
        std::mem::take(&mut self.has_resumed) || self.last.is_none()
    }

    /// Whether no site of the pass waits for its first request, and no visit of the last sites is open.
    pub(super) async fn is_over<'s>(
        &mut self,
        store: &Store,
        held: &HeldLeases,
        parked: impl Iterator<Item = &'s SiteName>,
    ) -> Result<bool, StoreError> {
        if self.last.is_none() && Instant::now() >= self.next_query_at {
            self.next_query_at = Instant::now() + IDLE_POLL;
            match store.next_due_at().await {
                Ok(next) if next.is_none_or(|at| at > self.began_at) => {
                    self.open = held.sites();
                    let mut last = self.open.clone();
                    last.extend(parked.cloned());
                    self.last = Some(last);
                }
                Ok(_) => {}
                Err(error) if error.is_transient() => self.next_query_at = Instant::now() + OUTAGE_DELAY,
                Err(error) => return Err(error),
            }
        }
        let held = held.sites();
        self.open.retain(|site| held.contains(site));
        Ok(self.last.is_some() && self.open.is_empty())
    }
}
