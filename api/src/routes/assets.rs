//! `GET /assets/{name}`: embedded files, each under a name that contains its hash.

use axum::extract::Path;
use axum::response::Response;

use crate::assets::{self, ICON};
use crate::problem::Problem;
use crate::response::{Caching, HttpResult, RequestContext};

pub(crate) async fn show(context: RequestContext, Path(name): Path<String>) -> HttpResult {
    let asset = assets::find(&name).ok_or_else(|| Problem::not_found("there is no such file"))?;
    Ok(context.bytes(asset.body.into(), asset.content_type, Caching::Immutable))
}

/// The address that browsers request by default.
pub(crate) async fn icon(context: RequestContext) -> Response {
    context.bytes(ICON.body.into(), ICON.content_type, Caching::Record)
}
