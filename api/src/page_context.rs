//! The data that every page needs in addition to its answer.

use chrono::{DateTime, Utc};

use crate::search_counts::SiteOwners;

#[derive(Debug, Clone)]
pub(crate) struct PageContext {
    /// Public address of this server, without a slash at the end.
    pub(crate) base: String,
    pub(crate) now: DateTime<Utc>,
    pub(crate) owners: SiteOwners,
    /// Where to reach the operator: an email address or an https address.
    pub(crate) contact: Option<String>,
}
