//! The sites that rank lower as spam, for operators.

use indexer::SpamSite;
use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::Admin;
use crate::answers::search::search_problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpamAnswer {
    /// In the order of their names.
    #[schema(value_type = Vec<crate::openapi::spam::SpamSite>)]
    sites: Vec<SpamSite>,
}

/// The sites whose capabilities rank lower because they are spam, with the reasons.
#[utoipa::path(
    get,
    path = "/admin/spam",
    tag = "admin",
    params(
        ("limit" = Option<u32>, Query, description = "Maximum number of sites; the default is 100", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "Sites and reasons", body = SpamAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request, admin: Admin) -> HttpResult {
    query.only(&["limit"])?;
    let max = usize::try_from(query.limit(LIMIT_DEFAULT, LIMIT_MAX)?).unwrap_or(usize::MAX);
    let found = app.index.run(client, move |searcher| searcher.spam(max)).await?;
    let sites = found.map_err(|error| search_problem(&error))?;
    tracing::debug!(admin.name = admin.name, "spam sites read");
    context.json(&SpamAnswer { sites }, Caching::Never)
}
