//! Schemas of what is recorded about a site besides its manifests: its owner, its opt-out, and entries of other registries.

use utoipa::ToSchema;
use utoipa::openapi::Ref;
use utoipa::openapi::schema::{Array, ArrayBuilder};

/// The entries of other registries in a capability's record. The schema of an entry is that of `answers::listed_by`, by its name.
pub(super) fn listed_by() -> Array {
    let description = "Entries of other registries about the agent or server; only in `/capabilities/{id}`";
    ArrayBuilder::new().items(Ref::from_schema_name("ListedBy")).description(Some(description)).build()
}

/// The owner of a site, who proved control of its domain. This is no statement about the content of the site.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes answers::claim::OwnerMark")]
pub(crate) struct SiteOwner {
    /// Always true: without a proof there is no owner.
    verified: bool,
    /// `dns` for a TXT record, `file` for a file of the site.
    by: String,
    /// When the key of this owner became valid.
    since: chrono::DateTime<chrono::Utc>,
    /// When the proof was last found.
    last_proven_at: chrono::DateTime<chrono::Utc>,
    /// When a check first did not find the proof; the ownership ends two weeks later.
    missing_since: Option<chrono::DateTime<chrono::Utc>>,
}

/// What is stored of a site whose owner opted out.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes store::BlockRecord")]
pub(crate) struct Tombstone {
    reason: String,
    at: chrono::DateTime<chrono::Utc>,
}
