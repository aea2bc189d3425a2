//! The registry of Agentic Resource Discovery 0.91 (github.com/ards-project/ard-spec): `POST /search`, `POST /explore`, `GET /agents`, `GET
//! /agents/{identifier}`, and every known site as a catalog.
//!
//! Exact where the standard is exact: member names, closed objects, error words. Every capability is a catalog entry, and so is every
//! manifest that its own site names. If the publisher gives no identifier, one is minted and marked as minted. Scores state relevance only.
//! `auto` also queries the peers that the operator configured, `referrals` lists registries that catalogs on the web declare, and `none`
//! searches only this index. Lookups, facets and lists use only this index.

mod agents;
mod catalog;
mod explore;
mod expression;
mod federated;
mod filter;
mod lookup;
mod search;
mod terms;

use indexer::{FacetKey, Filters};
use manifest::NamedBy;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::catalog_entry::CatalogEntry;
use crate::json_text::ObjectText;
use crate::manifests::Kept;
use crate::problem::Problem;
use crate::state::App;

/// Excludes documents that only other sites name: their publisher is not known, but an identifier begins with the domain of the publisher.
fn of_sites(filters: Filters) -> Result<Filters, Problem> {
    filters.with(FacetKey::NamedBy, [NamedBy::Site.as_str()]).map_err(|error| Problem::internal(&error))
}

/// The entries of a page so far, as text.
#[derive(Default)]
struct PageEntries {
    entries: Vec<ObjectText>,
    bytes: usize,
    failed: Option<Problem>,
}

impl PageEntries {
    fn add(&mut self, entry: &CatalogEntry) {
        match ObjectText::of(entry) {
            Ok(entry) => {
                self.bytes += entry.len();
                self.entries.push(entry);
            }
            Err(problem) => self.failed = Some(problem),
        }
    }

    fn into_entries(self) -> Result<Vec<ObjectText>, Problem> {
        self.failed.map_or(Ok(self.entries), Err)
    }
}

impl Kept for PageEntries {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(search::answer))
        .routes(routes!(explore::answer))
        .routes(routes!(agents::list))
        .routes(routes!(lookup::show))
        .routes(routes!(catalog::show))
        .routes(routes!(catalog::show_by_new_name))
}
