//! Entries of other registries, and how far these have been read.

use async_recursion::async_recursion as boxed;
use chrono::{DateTime, Utc};
use manifest::{RegistryEntry, SiteName};

use super::Store;
use crate::StoreError;
use crate::convert::millis;
use crate::model::{RegistryPosition, RowsLeftOut, SiteListing};

impl Store {
    /// Saves a page of a registry: replaces the stored entries of its identifiers, removes those that are deleted, removes the rows with
    /// the URL of an entry without sites, and stores the position after it. A position after the last page also removes the entries that
    /// were last seen before [`RegistryPosition::read_whole_at`]. If one of them was about the site of its publisher, that time is not
    /// stored, so that the next reading is of all entries. Blocked and suspended sites get no rows. Returns how many rows were left out
    /// because of a limit.
    #[boxed]
    pub async fn registry_page_save(
        &self,
        registry: &str,
        entries: &[RegistryEntry],
        position: Option<&RegistryPosition>,
        now: DateTime<Utc>,
    ) -> Result<RowsLeftOut, StoreError> {
        writing!(
            self,
            "registry_page_save",
            registry_entry::registry_page_save(registry, entries, position, millis(now))
        )
    }

    /// How far a registry has been read; `None` before the first page.
    #[boxed]
    pub async fn registry_position(&self, registry: &str) -> Result<Option<RegistryPosition>, StoreError> {
        reading!(self, "registry_position", registry_entry::registry_position(registry))
    }

    /// The first entries about each site, by rank, registry and identifier.
    #[boxed]
    pub async fn site_listings(
        &self,
        sites: &[SiteName],
        max_of_site: u32,
    ) -> Result<Vec<SiteListing>, StoreError> {
        reading!(self, "site_listings", registry_entry::site_listings(sites, i64::from(max_of_site)))
    }
}
