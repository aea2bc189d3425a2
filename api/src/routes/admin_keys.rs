//! The API keys by name, with the numbers of their requests, for operators. `agentdex keys` creates and revokes keys.

use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::Admin;
use crate::reader_keys::ReaderUsage;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReadersAnswer {
    /// By name. The counts start with this process.
    readers: Vec<ReaderUsage>,
}

/// The API keys by name, with the requests that this process answered and refused.
#[utoipa::path(
    get,
    path = "/admin/keys",
    tag = "admin",
    responses((status = 200, description = "Every API key by name", body = ReadersAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn list(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&[])?;
    tracing::debug!(admin.name = admin.name, "reader keys listed");
    let readers = app.reader_keys.usage(&app.store).await?;
    context.json(&ReadersAnswer { readers }, Caching::Never)
}
