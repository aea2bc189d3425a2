//! `GET /semantic-types`: the types of capabilities, as a tree with counts.

use crate::answers::semantic_types::SemanticTypesAnswer;
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// The semantic types in the index, the most frequent first; at most 5,000 of them.
#[utoipa::path(get, path = "/semantic-types", tag = "search",
    responses((status = 200, description = "Types with counts", body = SemanticTypesAnswer)))]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    query.known(&context, &[])?;
    let answer = app.semantic_types().await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::semantic_types::page(&answer, &here), Caching::Record)
        };
        return app.rendered(client, &context, render).await;
    }
    context.json(&*answer, Caching::Record)
}
