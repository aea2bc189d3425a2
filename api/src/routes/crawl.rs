//! `GET /crawl`: the health of the crawl.

use crate::answers::crawl::CrawlAnswer;
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// The health of the crawl.
#[utoipa::path(
    get,
    path = "/crawl",
    tag = "service",
    responses((status = 200, description = "The queue, the last day by the hour, and the sites that fail", body = CrawlAnswer)),
)]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.known(&context, &[])?;
    let answer = app.crawl().await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::crawl::page(&answer, &here), Caching::Search)
        };
        return app.rendered(client, &context, render).await;
    }
    context.json(&answer, Caching::Search)
}
