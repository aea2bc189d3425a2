//! `GET /sites/{domain}`: everything that is known about a site, as JSON or as a page.

use axum::extract::Path;

use crate::answers::site::{SiteAnswer, site, site_of};
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Everything that is known about a site.
#[utoipa::path(
    get,
    path = "/sites/{domain}",
    tag = "sites",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "What was fetched and why, what was found, and when it is visited next", body = SiteAnswer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.known(&context, &[])?;
    let here = app.page_context();
    let respond = move |answer: &SiteAnswer| {
        if context.wants_page() {
            return context.page(&dashboard::site::page(answer, &here), Caching::Record);
        }
        context.json(answer, Caching::Record)
    };
    let contact = app.config.contact.clone();
    site(app.manifests(client), &site_of(&domain)?, contact, respond).await?
}
