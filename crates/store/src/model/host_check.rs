//! Checks of hosts that endpoints name.

use chrono::{DateTime, Utc};
use manifest::Host;
use policy::liveness::{HostCheckHistory, HostCheckOutcome};

/// The checks of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCheck {
    pub host: Host,
    /// What the last check found.
    pub outcome: HostCheckOutcome,
    /// When it ended.
    pub checked_at: DateTime<Utc>,
    pub history: HostCheckHistory,
}
