//! Which worker of a fleet speaks to which addresses: workers, and the address groups that they own.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use policy::address::ADDRESS_GROUPS;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::WorkerId;

/// One run of a worker in the fleet. A worker that was given up for dead and comes back gets another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(pub i64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Under which membership a request is sent; its clock renews it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// Which.
    pub member: MemberId,
    /// Until when the others leave its groups to it from now on.
    pub alive_until: DateTime<Utc>,
}

/// Whether a worker takes its share of the address groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// As every worker that visits what is due.
    Full,
    /// None: it came for a single site, and takes only a group that nobody else should have.
    None,
}

/// A member of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Which run.
    pub id: MemberId,
    /// Of which worker.
    pub name: WorkerId,
}

/// A set of address groups.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupSet(Arc<[u8]>);

impl GroupSet {
    /// Every group: for whoever has the database alone, and for single sites.
    pub fn all() -> Self {
        Self::of(|_| true)
    }

    /// The groups of which `holds` is true.
    pub fn of(holds: impl Fn(u16) -> bool) -> Self {
        Self((0..ADDRESS_GROUPS).map(|group| u8::from(holds(group))).collect())
    }

    /// Whether a group is in the set.
    pub fn contains(&self, group: u16) -> bool {
        self.0.get(usize::from(group)).is_some_and(|held| *held != 0)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.iter().filter(|held| **held != 0).count()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One octet for each group, as the statements take it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for GroupSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {ADDRESS_GROUPS} groups", self.len())
    }
}

/// A visit that another worker goes on with, since its next address is that one's.
#[derive(Debug, Clone, PartialEq)]
pub struct HandOver {
    /// When the visit was due; it still is.
    pub due_at: DateTime<Utc>,
    /// What the visit has done, where that is worth keeping; the crawler's own serialised state.
    pub progress: Option<Value>,
}

/// The group of a site's address, and who owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteGroup {
    /// Its number.
    pub group: u16,
    /// Whose it is; none while nobody owns it.
    pub owner: Option<WorkerId>,
}
