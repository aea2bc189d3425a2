//! The registry of Agentic Resource Discovery 0.91 (github.com/ards-project/ard-spec): `POST /search`, `POST /explore`,
//! `GET /agents`, `GET /agents/{identifier}`, and every known site as a catalog.
//!
//! Exact where the standard is exact: member names, closed objects, error words. Every capability is a catalog entry, and
//! so is every manifest; an identifier that its publisher did not give is minted and marked. Scores state relevance
//! only. No request goes to another registry: `referrals` names those that catalogs on the web declare, `auto` and `none`
//! answer from this index.

mod agents;
mod catalog;
mod explore;
mod expression;
mod filter;
mod lookup;
mod search;
mod terms;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

use crate::catalog_entry::CatalogEntry;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(search::answer))
        .routes(routes!(explore::answer))
        .routes(routes!(agents::list))
        .routes(routes!(lookup::show))
        .routes(routes!(catalog::show))
        .routes(routes!(catalog::show_by_new_name))
}
