//! `GET /crawl`: the health of the crawl.

use axum::extract::State;
use axum::response::Response;

use crate::answers::crawl::CrawlAnswer;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::{Caching, RequestContext};
use crate::state::App;
use crate::{clock, dashboard};

/// The health of the crawl.
#[utoipa::path(
    get,
    path = "/crawl",
    tag = "service",
    responses((status = 200, description = "The queue, the last day by the hour, and who makes trouble", body = CrawlAnswer)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    context: RequestContext,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let answer = app.crawl().await?;
    if context.wants_page() {
        return context.page(&dashboard::crawl::page(&answer, clock::now()), Caching::Search);
    }
    context.json(&*answer, Caching::Search)
}
