//! `GET /stats`: statistics of the store, and how far the index lags behind.

use crate::answers::stats::StatsAnswer;
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// Statistics of the store.
#[utoipa::path(get, path = "/stats", tag = "service",
    responses((status = 200, description = "The numbers", body = StatsAnswer)))]
pub(crate) async fn show(Request { app, client, context, query }: Request) -> HttpResult {
    query.known(&context, &[])?;
    let answer = app.stats().await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::stats::page(&answer, &here), Caching::Record)
        };
        return app.rendered(client, &context, render).await;
    }
    context.json(&*answer, Caching::Record)
}
