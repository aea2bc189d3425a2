//! `GET /crawl`: the health of the crawl.

use crate::answers::crawl::CrawlAnswer;
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// The health of the crawl.
#[utoipa::path(
    get,
    path = "/crawl",
    tag = "service",
    responses((status = 200, description = "The queue, the last day by the hour, and the sites that fail", body = CrawlAnswer)),
)]
pub(crate) async fn show(Request { app, context, query, .. }: Request) -> HttpResult {
    query.only(&[])?;
    let answer = app.crawl().await?;
    if context.wants_page() {
        return context.page(&dashboard::crawl::page(&answer, &app.page_context()), Caching::Search);
    }
    context.json(&answer, Caching::Search)
}
