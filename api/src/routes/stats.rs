//! `GET /stats`: the store in numbers, and how far the index is behind it.

use axum::extract::State;
use axum::response::Response;

use crate::answers::stats::StatsAnswer;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::response::{Caching, RequestContext};
use crate::state::App;
use crate::{clock, dashboard};

/// The store in numbers.
#[utoipa::path(get, path = "/stats", tag = "service",
    responses((status = 200, description = "The numbers", body = StatsAnswer)))]
pub(crate) async fn show(
    State(app): State<App>,
    context: RequestContext,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let answer = app.stats().await?;
    if context.wants_page() {
        return context.page(&dashboard::stats::page(&answer, clock::now()), Caching::Record);
    }
    context.json(&*answer, Caching::Record)
}
