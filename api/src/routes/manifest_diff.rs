//! `GET /manifests/{id}/diff`: what changed between two versions, and whether that breaks a caller.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use manifest::{ContentHash, Manifest, ManifestId};
use serde::Serialize;
use store::VersionRecord;
use utoipa::ToSchema;

use super::manifest::find;
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::client::Client;
use crate::diff::{Difference, difference};
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::{clock, dashboard};

/// A difference, with the versions that it lies between.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiffAnswer {
    #[schema(value_type = String)]
    pub(crate) id: ManifestId,
    pub(crate) from: VersionLine,
    pub(crate) to: VersionLine,
    #[serde(flatten)]
    pub(crate) difference: Difference,
    pub(crate) text_is: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionLine {
    #[schema(value_type = String)]
    pub(crate) hash: ContentHash,
    pub(crate) first_seen_at: DateTime<Utc>,
    /// As the document numbers itself.
    pub(crate) document_version: Option<String>,
}

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
    State(app): State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&["from", "to"])?;
    let stored = find(&app, client, &id).await?;
    let (id, site) = (stored.manifest.id.clone(), stored.manifest.url.site());
    // Who holds a permit never waits for another.
    drop(stored);
    let versions = app.store().manifest_versions(&id).await?;
    let to = match hash(&query, "to")? {
        Some(hash) => position(&versions, &hash, "to")?,
        None => 0,
    };
    let from = match hash(&query, "from")? {
        Some(hash) => position(&versions, &hash, "from")?,
        None if to + 1 < versions.len() => to + 1,
        None => to,
    };
    let (from, to) = (versions.get(from).cloned(), versions.get(to).cloned());
    let (Some(from), Some(to)) = (from, to) else {
        return Err(Problem::not_found(format!("no version of manifest {id} is kept")));
    };
    let compared = app.manifests(client).versions(&id, [&from.hash, &to.hash]).await?;
    let compared = compared.ok_or_else(|| Problem::not_found("one of the versions is not kept any more"))?;
    let answered = compared.work(move |[before, after]| {
        let answer = DiffAnswer {
            id,
            from: line(&from, &before),
            to: line(&to, &after),
            difference: difference(&before, &after),
            text_is: super::TEXT_IS,
        };
        if asked.wants_page() {
            let page = dashboard::diff::page(&answer, &site, &versions, clock::now());
            return asked.page(&page, Caching::Record);
        }
        asked.json(&answer, Caching::Record)
    });
    answered.await?
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

/// Where a version is in the list, which begins with the latest.
fn position(versions: &[VersionRecord], hash: &ContentHash, name: &str) -> Result<usize, Problem> {
    versions.iter().position(|version| version.hash == *hash).ok_or_else(|| {
        let detail = format!("this manifest has no version {}", hash.as_str());
        Problem::not_found(detail).with_parameter(name)
    })
}

fn line(record: &VersionRecord, manifest: &Manifest) -> VersionLine {
    VersionLine {
        hash: record.hash.clone(),
        first_seen_at: record.first_seen_at,
        document_version: manifest.document_version.clone(),
    }
}
