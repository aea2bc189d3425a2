//! `GET /assets/{name}`: embedded files, each under a name that carries its hash.

use axum::extract::Path;
use axum::response::Response;

use crate::answer::{Asked, Caching};
use crate::assets::{self, ICON};
use crate::problem::Problem;

pub(super) async fn show(asked: Asked, Path(name): Path<String>) -> Result<Response, Problem> {
    let asset = assets::find(&name).ok_or_else(|| Problem::not_found("there is no such file"))?;
    Ok(asked.bytes(asset.body.into(), asset.content_type, Caching::Immutable))
}

/// Where browsers look without being told.
pub(super) async fn icon(asked: Asked) -> Response {
    asked.bytes(ICON.body.into(), ICON.content_type, Caching::Record)
}
