//! How many searches showed a capability of a site that has an owner.

use manifest::SiteName;

/// The searches of one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchCount {
    pub site: SiteName,
    /// Days since 1970-01-01 (UTC).
    pub day: i32,
    pub searches: u64,
}
