//! Leases: which worker may visit a site, until when, and the fence that keeps a late one out.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use serde::{Deserialize, Serialize};

use super::groups::GroupSet;
use super::site::SiteState;

/// How long a lease lives by default: three times the interval at which workers renew.
pub const LEASE_DURATION_DEFAULT: Duration = Duration::from_mins(3);
/// Longest name of a worker that is kept.
const WORKER_ID_BYTES_MAX: usize = 200;

/// Names one crawler process in the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(String);

impl WorkerId {
    /// Takes a name; control characters are dropped and the length is capped.
    pub fn new(name: &str) -> Self {
        let mut kept = String::new();
        for character in name.chars().filter(|character| !character.is_control()) {
            if kept.len() + character.len_utf8() > WORKER_ID_BYTES_MAX {
                break;
            }
            kept.push(character);
        }
        Self(kept)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRequest {
    /// Who asks.
    pub worker: WorkerId,
    /// At most so many sites.
    pub sites_max: u32,
    /// How long the lease lives unless it is renewed.
    pub duration: Duration,
    /// Sites whose next visit is planned no later than this.
    pub due_before: DateTime<Utc>,
    /// Only these sites, when given.
    pub only: Option<Vec<SiteName>>,
    /// Only sites whose address is in one of these groups, or of which that is not known.
    pub groups: GroupSet,
}

impl LeaseRequest {
    /// Whatever is due now, for the default duration.
    pub fn due_now(worker: WorkerId, sites_max: u32, now: DateTime<Utc>) -> Self {
        let (duration, groups) = (LEASE_DURATION_DEFAULT, GroupSet::all());
        Self { worker, sites_max, duration, due_before: now, only: None, groups }
    }
}

/// The right to visit a site. Each lease of a site carries a higher fence than the one before.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseToken {
    /// The site.
    pub site: SiteName,
    /// Who holds it.
    pub worker: WorkerId,
    /// Counts the leases of this site.
    pub fence: i64,
    /// When it ends unless it is renewed.
    pub expires_at: DateTime<Utc>,
    /// Group of the address at which the site was found the last time. A visit that finds it elsewhere says so here, and
    /// it is kept when the lease is given back.
    pub address_group: Option<u16>,
}

/// A site with the right to visit it and everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedSite {
    /// The right.
    pub token: LeaseToken,
    /// What is known.
    pub site: SiteState,
    /// When the visit was planned.
    pub due_at: DateTime<Utc>,
}
