//! How many searches showed a site that has an owner, and its capabilities.

use manifest::{CapabilityId, SiteName};

/// The searches of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchCount {
    pub site: SiteName,
    /// Days since 1970-01-01 (UTC).
    pub day: i32,
    pub searches: u64,
}

/// The searches of one day that showed a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilitySearchCount {
    pub site: SiteName,
    /// Days since 1970-01-01 (UTC).
    pub day: i32,
    pub capability: CapabilityId,
    pub searches: u64,
}
