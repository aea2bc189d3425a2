//! `GET /capabilities/{id}/tool?as=`: a tool definition, compiled only from the declaration.
//!
//! The body is only the definition, so clients can pass it to a model's runtime unchanged. The header `x-agentdex-hash` contains its hash.

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, StatusCode};

use crate::answers::capability::{find, parse_id};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::tool_export::{self, ToolShape};

/// The hash of the definition, in hexadecimal.
const HASH: HeaderName = HeaderName::from_static("x-agentdex-hash");

/// A tool definition of a capability.
#[utoipa::path(
    get,
    path = "/capabilities/{id}/tool",
    tag = "capabilities",
    params(
        ("id" = inline(crate::openapi::schemas::CapabilityId), Path, description = "Id of a capability"),
        ("as" = inline(Option<crate::openapi::schemas::ToolShape>), Query, description = "The shape; mcp unless given"),
    ),
    responses(
        (status = 200, description = "The definition in the requested shape, its texts publisher-supplied and untrusted", body = Object,
         headers(("x-agentdex-hash" = String, description = "sha256 of the definition, in hexadecimal"))),
        (status = 422, description = "It cannot be called from its declaration alone; the detail says why",
         body = crate::problem::ProblemBody, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&["as"])?;
    let shape = query.one_closed("as")?.unwrap_or(ToolShape::Mcp);
    let found = find(app.manifests(client), parse_id(&id)?).await?;
    let response = found.work(move |stored, merged| {
        let compiled = tool_export::compile(stored.into(), &merged.capability, shape);
        let tool = compiled.map_err(|refused| {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("no tool definition: {refused}"))
        })?;
        let mut response = context.json(&tool.definition, Caching::Record)?;
        if let Ok(hash) = HeaderValue::from_str(&format!("sha256:{}", tool.hash)) {
            response.headers_mut().insert(HASH, hash);
        }
        Ok(response)
    });
    response.await
}
