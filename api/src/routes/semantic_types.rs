//! `GET /semantic-types`: what kinds of capabilities there are, with counts.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use store::SemanticTypeCount;
use utoipa::ToSchema;

use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::dashboard;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SemanticTypesAnswer {
    #[schema(value_type = Vec<crate::openapi::schemas::SemanticTypeCount>)]
    pub(crate) semantic_types: Vec<SemanticTypeCount>,
    pub(crate) total: usize,
}

/// Every semantic type in the index, the most frequent first.
#[utoipa::path(get, path = "/semantic-types", tag = "search",
    responses((status = 200, description = "Types with counts", body = SemanticTypesAnswer)))]
pub(crate) async fn list(
    State(app): State<App>,
    asked: Asked,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let semantic_types = app.store().semantic_types().await?;
    let answer = SemanticTypesAnswer { total: semantic_types.len(), semantic_types };
    if asked.wants_page() {
        return asked.page(&dashboard::semantic_types::page(&answer), Caching::Record);
    }
    asked.json(&answer, Caching::Record)
}
