//! Permits for one request: its slot at the address and, below a public suffix, its reservation in the database.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use policy::delay::{Pace as Decision, Scope};
use tokio::sync::mpsc;

use super::limiter::Slot;
use crate::clock;

/// A request that is sent later than this after its reserved time would be too close to the next request.
pub(super) const LATE_MAX: TimeDelta = TimeDelta::milliseconds(50);

/// Permission for one request. Dropping it frees its scopes.
#[derive(Debug)]
pub(crate) struct Permit {
    pub(super) address: Slot,
    pub(super) suffix: Option<SuffixPermit>,
}

/// The part of a permit that is shared by the whole fleet.
#[derive(Debug)]
pub(super) struct SuffixPermit {
    pub(super) slot: Slot,
    pub(super) reservation: Reservation,
}

/// A reserved time at a public suffix; released when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    pub(super) suffix: String,
    /// When the request is sent.
    pub(super) at: DateTime<Utc>,
    pub(super) number: i64,
    pub(super) released: mpsc::UnboundedSender<i64>,
}

/// The result of a request for a permit.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart by its receiver, and nearly always a permit")]
pub(crate) enum PermitAnswer {
    Granted(Permit),
    /// Try again after this.
    Wait {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// The wait is too long to keep a connection open.
    Park {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// Too many visits wait for the same address; this one gets a later slot.
    Crowded {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// The day's budget is spent.
    OverBudget {
        until: DateTime<Utc>,
        scope: Scope,
    },
}

impl PermitAnswer {
    /// The answer for a decision not to send now.
    pub(super) const fn refused(decision: Decision, now: DateTime<Utc>) -> Self {
        match decision {
            Decision::Park { until, scope } => Self::Park { until, scope },
            Decision::OverBudget { until, scope } => Self::OverBudget { until, scope },
            Decision::Wait { until, scope } => Self::Wait { until, scope },
            Decision::Busy { scope } => Self::Wait { until: now, scope },
            Decision::Go => Self::Wait { until: now, scope: Scope::Node },
        }
    }
}

impl Reservation {
    /// Whether the reserved time is now or in the future, with a tolerance of [`LATE_MAX`].
    pub(super) fn is_in_time(&self) -> bool {
        is_in_time(self.at)
    }

    /// Whether the reserved time is more than `lead` away.
    pub(super) fn is_later_than(&self, lead: Duration) -> bool {
        later(clock::now(), lead) < self.at
    }

    /// Sleeps until `lead` before the reserved time.
    pub(super) async fn wait(&self, lead: Duration) {
        wait_until(self.at, lead).await;
    }
}

/// Whether a reserved time is now or in the future, with a tolerance of [`LATE_MAX`].
pub(super) fn is_in_time(at: DateTime<Utc>) -> bool {
    clock::now() <= at + LATE_MAX
}

/// Sleeps until `lead` before a reserved time.
pub(super) async fn wait_until(at: DateTime<Utc>, lead: Duration) {
    let until = at - TimeDelta::from_std(lead).unwrap_or_default();
    tokio::time::sleep((until - clock::now()).to_std().unwrap_or_default()).await;
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.released.send(self.number).is_err() {
            tracing::debug!(suffix = self.suffix, "a suffix permit is left to expire");
        }
    }
}

pub(super) fn later(now: DateTime<Utc>, wait: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(wait)
        .ok()
        .and_then(|wait| now.checked_add_signed(wait))
        .unwrap_or(DateTime::<Utc>::MAX_UTC)
}
