//! `GET /sites/{domain}`: everything that is known of a site, as JSON or as a page.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;

use crate::answers::site::{SiteAnswer, site, site_of};
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::{Caching, RequestContext};
use crate::state::App;
use crate::{clock, dashboard};

/// The whole story of a site.
#[utoipa::path(
    get,
    path = "/sites/{domain}",
    tag = "sites",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "What was fetched and why, what was found, and when it is visited next", body = SiteAnswer)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    context: RequestContext,
    Extension(client): Extension<Client>,
    Path(domain): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let (answer, _permit) = site(app.manifests(client), &site_of(&domain)?).await?;
    if context.wants_page() {
        return context.page(&dashboard::site::page(&answer, app.base_url(), clock::now()), Caching::Record);
    }
    context.json(&answer, Caching::Record)
}
