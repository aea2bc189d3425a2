//! `GET /manifests/{id}/diff`: the changes between two versions, and whether they break a caller.

use axum::extract::Path;
use manifest::ContentHash;
use store::VersionRecord;

use super::manifest::find;
use crate::answers::version_diff::{DiffAnswer, compare};
use crate::dashboard;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

/// Compares two versions of a manifest.
#[utoipa::path(
    get,
    path = "/manifests/{id}/diff",
    tag = "manifests",
    params(
        ("id" = inline(crate::openapi::schemas::ManifestId), Path, description = "Id of a manifest"),
        ("from" = inline(Option<crate::openapi::schemas::ContentHash>), Query, description = "Hash of a version, as in /manifests/{id}/versions; the one before `to` unless given"),
        ("to" = inline(Option<crate::openapi::schemas::ContentHash>), Query, description = "Hash of a version; the latest unless given"),
    ),
    responses((status = 200, description = "The difference, capability by capability", body = DiffAnswer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    let query = query.known(&context, &["from", "to"])?;
    let stored = find(&app, client, &id).await?;
    let (id, site) = (stored.manifest.id.clone(), stored.manifest.url.site());
    // A client that holds a permit must not wait for another one.
    drop(stored);
    let here = app.page_context();
    let (from, to) = (hash(&query, "from")?, hash(&query, "to")?);
    let respond = move |answer: &DiffAnswer, versions: &[VersionRecord]| {
        if context.wants_page() {
            let page = dashboard::diff::page(answer, &site, versions, &here);
            return context.page(&page, Caching::Record);
        }
        context.json(answer, Caching::Record)
    };
    compare(&app.store, app.manifests(client), id, from, to, respond).await?
}

fn hash(query: &QueryPairs, name: &str) -> Result<Option<ContentHash>, Problem> {
    let parsed = query.one(name)?.map(ContentHash::parse).transpose();
    parsed.map_err(|_| {
        let detail = format!(
            "\"{name}\" is the hash of a version: 64 hexadecimal digits, as in /manifests/{{id}}/versions"
        );
        Problem::bad_request(detail).with_parameter(name)
    })
}
