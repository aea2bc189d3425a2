//! What other registries list about sites.

use chrono::{DateTime, Utc};
use manifest::SiteName;

/// Maximum number of stored rows of one registry. An entry has a row for each site that it names. The official MCP registry has about
/// thirty thousand servers.
pub const REGISTRY_ROWS_MAX: u32 = 200_000;

/// Maximum number of stored rows of one registry about one site, so that nobody fills a registry with entries about a site. Entries of
/// which the site is the publisher are kept first. An answer shows fifty rows of all registries.
pub const SITE_ROWS_MAX: u32 = 500;

/// How many rows of a page were not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsLeftOut {
    /// Because the registry has [`REGISTRY_ROWS_MAX`].
    pub of_registry: u64,
    /// Because the registry has [`SITE_ROWS_MAX`] about a site: rows of this page or earlier ones, of the last ranks.
    pub of_sites: u64,
}

/// An entry of a registry about a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteListing {
    pub site: SiteName,
    /// URL of the registry.
    pub registry: String,
    /// Name of the server or identifier of the agent, as the registry lists it.
    pub identifier: String,
    pub name: Option<String>,
    /// The listed endpoint or document.
    pub url: Option<String>,
    pub version: Option<String>,
    /// When the entry changed, according to the registry.
    pub updated_at: Option<DateTime<Utc>>,
    /// When a page of the registry last had it.
    pub seen_at: DateTime<Utc>,
    /// The site of the publisher that the identifier names. `None` too for entries that a program of an earlier schema stored.
    pub publisher: Option<SiteName>,
}

/// How far a registry has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryPosition {
    /// Latest change that the registry has stated in a reading that reached the end.
    pub changed_until: Option<DateTime<Utc>>,
    /// When the last reading of all entries that reached the end began; `None` if the next reading is of all entries.
    pub read_whole_at: Option<DateTime<Utc>>,
    /// A reading that has not reached the end.
    pub unfinished: Option<UnfinishedReading>,
}

/// A reading of a registry that continues with its next page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedReading {
    pub began_at: DateTime<Utc>,
    /// Token of the next page.
    pub next_page: String,
    /// Latest change that the registry has stated so far.
    pub latest: Option<DateTime<Utc>>,
    /// How often the next page has failed in a row.
    pub failures: u32,
    /// Number of entries of the next page, if pages of several sizes were requested: entries between these may be missing.
    pub page_entries: Option<u32>,
}
