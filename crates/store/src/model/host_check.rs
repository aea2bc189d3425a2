//! Checks of hosts that endpoints name.

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::liveness::{HostCheckHistory, HostCheckOutcome};

/// A host that an endpoint names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedHost {
    pub host: Host,
    /// Whether the publisher of the document may use the name of the host. Anybody can name the host of another site.
    pub is_own: bool,
}

/// The checks of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    pub host: Host,
    /// What the last check found.
    pub outcome: HostCheckOutcome,
    /// When the last check ended.
    pub checked_at: DateTime<Utc>,
    pub history: HostCheckHistory,
}
