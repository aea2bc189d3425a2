//! The end of the first pass of a crawl that goes on. Sites that are added or become due in the meantime are visited during the pass, but the
//! pass does not wait for them.

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
    /// The visits that the pass waits for, once none of its sites waits for a visit.
    open: Option<HashSet<SiteName>>,
    next_query_at: Instant,
}

impl FirstPass {
    pub(super) fn new(began_at: DateTime<Utc>) -> Self {
        Self { began_at, open: None, next_query_at: Instant::now() }
    }

    /// Waits for a visit that was parked.
    pub(super) fn wait_for(&mut self, site: &SiteName) {
        if let Some(open) = &mut self.open {
            open.insert(site.clone());
        }
    }

    /// Whether no site of the pass waits for a visit, and all visits that were open then have ended.
    pub(super) async fn is_over(&mut self, store: &Store, held: &HeldLeases) -> Result<bool, StoreError> {
        if self.open.is_none() && Instant::now() >= self.next_query_at {
            self.next_query_at = Instant::now() + IDLE_POLL;
            match store.next_due_at().await {
                Ok(next) if next.is_none_or(|at| at > self.began_at) => self.open = Some(held.sites()),
                Ok(_) => {}
                Err(error) if error.is_transient() => self.next_query_at = Instant::now() + OUTAGE_DELAY,
                Err(error) => return Err(error),
            }
        }
        let Some(open) = &mut self.open else { return Ok(false) };
        let held = held.sites();
        open.retain(|site| held.contains(site));
        Ok(open.is_empty())
    }
}
