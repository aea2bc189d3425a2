//! `GET /capabilities/{id}/similar`: capabilities with similar descriptions.

use axum::extract::Path;
use manifest::CapabilityId;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answers::capability::{parse_id, similar};
use crate::answers::search::row;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

const LIMIT_DEFAULT: u32 = 10;
const LIMIT_MAX: u32 = 50;

/// The most similar first, in the rows of a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SimilarAnswer {
    #[schema(value_type = String)]
    id: CapabilityId,
    #[schema(value_type = Vec<crate::openapi::schemas::CapabilityRow>)]
    results: Vec<Map<String, Value>>,
}

/// Capabilities with descriptions similar to this one's.
#[utoipa::path(
    get,
    path = "/capabilities/{id}/similar",
    tag = "capabilities",
    params(
        ("id" = inline(crate::openapi::schemas::CapabilityId), Path, description = "Id of a capability"),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 10", minimum = 1, maximum = 50),
    ),
    responses((status = 200, description = "Similar capabilities", body = SimilarAnswer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&["limit"])?;
    let id = parse_id(&id)?;
    let limit = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let hits = similar(&app.store, &app.index, client, &id, limit).await?.ok_or_else(|| {
        Problem::not_found(format!("there is no capability {id} in the index; it may have been removed"))
    })?;
    let results = hits.iter().map(row).collect::<Result<_, _>>()?;
    context.json(&SimilarAnswer { id, results }, Caching::Search)
}
