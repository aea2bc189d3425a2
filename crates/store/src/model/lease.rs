//! Leases: which worker may visit a site, when that right expires, and the fence that rejects a late worker.

use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use serde::{Deserialize, Serialize};

use super::groups::GroupSet;
use super::site::SiteState;
use super::worker::WorkerId;

/// Default duration of a lease: three times the renewal interval of workers.
pub const LEASE_DURATION_DEFAULT: Duration = Duration::from_mins(3);
/// Maximum duration of a lease. A stored lease that ends much later is damaged.
pub const LEASE_DURATION_MAX: Duration = Duration::from_hours(24);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    pub worker: WorkerId,
    pub sites_max: u32,
    pub duration: Duration,
    /// Leases sites whose next visit is planned no later than this.
    pub due_before: DateTime<Utc>,
    /// Leases only these sites.
    pub only: Option<Vec<SiteName>>,
    /// Leases only sites whose address is unknown or in one of these groups.
    pub groups: GroupSet,
}

impl LeaseRequest {
    /// Any site that is due now, for the default duration.
    pub fn due_now(worker: WorkerId, sites_max: u32, now: DateTime<Utc>) -> Self {
        let (duration, groups) = (LEASE_DURATION_DEFAULT, GroupSet::all());
        Self { worker, sites_max, duration, due_before: now, only: None, groups }
    }
}

/// The right to visit a site. Each lease of a site has a higher fence than the one before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken {
    pub site: SiteName,
    pub worker: WorkerId,
    /// Counts the leases of this site.
    pub fence: i64,
    pub expires_at: DateTime<Utc>,
    /// Group of the site's last known address. A visit updates it here, and the end of the lease stores it.
    pub address_group: Option<u16>,
    /// When the visit was planned. A different stored time at the end of the lease means that a visit was requested in the meantime.
    pub due_at: DateTime<Utc>,
}

/// A leased site with its stored state.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedSite {
    pub token: LeaseToken,
    pub site: SiteState,
}
