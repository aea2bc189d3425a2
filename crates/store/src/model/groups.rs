//! Workers of a fleet, and the address groups that they own: only the owner of a group sends requests to its addresses.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use policy::address::ADDRESS_GROUPS;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::worker::WorkerId;

/// One run of a worker in the fleet. A worker whose membership expired gets another when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(pub i64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The membership under which a request is sent. Writing the clock of the request renews it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    pub member: MemberId,
    /// When its ownership of groups expires.
    pub alive_until: DateTime<Utc>,
}

/// The share of the address groups that a worker takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// A full share: a worker that visits all due sites.
    Full,
    /// No share: a worker for a single site takes only groups without an owner.
    None,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub id: MemberId,
    pub name: WorkerId,
}

/// A set of address groups.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupSet(Arc<[u8]>);

impl GroupSet {
    /// All groups, for a worker without a fleet and for visits to a single site.
    pub fn all() -> Self {
        Self::of(|_| true)
    }

    /// The groups for which `holds` is true.
    pub fn of(holds: impl Fn(u16) -> bool) -> Self {
        Self((0..ADDRESS_GROUPS).map(|group| u8::from(holds(group))).collect())
    }

    pub fn contains(&self, group: u16) -> bool {
        self.0.get(usize::from(group)).is_some_and(|held| *held != 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().filter(|held| **held != 0).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One byte per group, the format of the SQL statements.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for GroupSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {ADDRESS_GROUPS} groups", self.len())
    }
}

/// A visit that is handed over to the worker that owns the next address.
#[derive(Debug, Clone, PartialEq)]
pub struct HandOver {
    /// When the other worker may lease the site.
    pub due_at: DateTime<Utc>,
    /// The crawler's serialised progress, if any.
    pub progress: Option<Value>,
}

/// The group of a site's address, and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteGroup {
    pub group: u16,
    pub owner: Option<WorkerId>,
}
