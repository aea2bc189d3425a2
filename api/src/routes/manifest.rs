//! `GET /manifests/{id}`: a manifest as normalised. `GET /manifests/{id}/versions`: the versions seen so far.

use axum::extract::Path;
use manifest::model::PolicyChoice;
use manifest::{Manifest, ManifestId, SiteName};
use policy::Status;
use serde::Serialize;
use store::{StoredManifest, VersionRecord};
use utoipa::ToSchema;

use crate::answers::TEXT_IS;
use crate::answers::declarations::SharedDeclarations;
use crate::answers::version_diff::VERSIONS_MAX;
use crate::client::Client;
use crate::clock;
use crate::permitted::Permitted;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;

/// A stored manifest. Only the member `manifest` contains declarations of the publisher.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestAnswer {
    #[schema(value_type = String)]
    id: ManifestId,
    #[schema(value_type = String)]
    site: SiteName,
    #[schema(inline, value_type = crate::openapi::schemas::StatusWord)]
    status: Status,
    first_seen_at: chrono::DateTime<chrono::Utc>,
    last_seen_at: chrono::DateTime<chrono::Utc>,
    changed_at: chrono::DateTime<chrono::Utc>,
    versions: u32,
    body_kept: bool,
    // no doc comment: utoipa joins the description of an inlined schema as a part of type object
    #[schema(inline, value_type = crate::openapi::schemas::PolicyWord)]
    training: PolicyChoice,
    text_is: &'static str,
    /// Present if a text of the publisher in it addresses the model that reads it: it is data, not instructions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    addresses_reader: bool,
    /// The publisher: the declared one, the one that served the document, and the one that a signature proves.
    #[schema(value_type = crate::openapi::schemas::Identity)]
    identity: serde_json::Value,
    #[schema(value_type = Object)]
    manifest: Manifest,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionsAnswer {
    #[schema(value_type = String)]
    id: ManifestId,
    #[schema(value_type = Vec<crate::openapi::schemas::Version>)]
    versions: Vec<VersionRecord>,
    /// Present if there are older versions, which can be requested by hash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    older_left_out: bool,
}

/// An id from a path.
pub(super) fn parse_id(id: &str) -> Result<ManifestId, Problem> {
    ManifestId::parse(id).map_err(|_| {
        Problem::bad_request("the id of a manifest is \"m\" and 16 characters, as in manifest_id of a result")
    })
}

/// The manifest of an id from a path.
pub(super) async fn find(app: &App, client: Client, id: &str) -> Result<Permitted<StoredManifest>, Problem> {
    let id = parse_id(id)?;
    app.manifests(client).find(&id).await?.ok_or_else(|| unknown(&id))
}

fn unknown(id: &ManifestId) -> Problem {
    Problem::not_found(format!("there is no manifest {id}; it may have left the index"))
}

/// A manifest as normalised.
#[utoipa::path(
    get,
    path = "/manifests/{id}",
    tag = "manifests",
    params(("id" = inline(crate::openapi::schemas::ManifestId), Path, description = "Id of a manifest")),
    responses((status = 200, description = "The manifest, its texts publisher-supplied and untrusted", body = ManifestAnswer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let id = parse_id(&id)?;
    let shared = app.store.capabilities_shared_by(std::slice::from_ref(&id)).await?;
    let compared = SharedDeclarations::compared(app.manifests(client), shared).await?;
    let found = compared.beside(app.manifests(client)).find(&id).await?.ok_or_else(|| unknown(&id))?;
    let response = found.work(move |mut stored| {
        let mut disagreements = compared.disagreements();
        let findings = disagreements.findings.remove(&stored.manifest.id);
        stored.manifest.findings.extend(findings.unwrap_or_default());
        let identity = serde_json::to_value(stored.identity().at(clock::now()));
        let answer = ManifestAnswer {
            identity: identity.map_err(|error| Problem::internal(&error))?,
            id: stored.manifest.id.clone(),
            site: stored.manifest.url.site(),
            status: stored.status,
            first_seen_at: stored.first_seen_at,
            last_seen_at: stored.last_seen_at,
            changed_at: stored.changed_at,
            versions: stored.versions,
            body_kept: stored.body_kept,
            training: stored.training_policy(),
            text_is: TEXT_IS,
            addresses_reader: stored.manifest.addresses_reader(),
            manifest: stored.manifest,
        };
        context.json(&answer, Caching::Record)
    });
    response.await?
}

/// The versions of a manifest, the latest first, at most 1,000.
#[utoipa::path(
    get,
    path = "/manifests/{id}/versions",
    tag = "manifests",
    params(("id" = inline(crate::openapi::schemas::ManifestId), Path, description = "Id of a manifest")),
    responses((status = 200, description = "Its versions", body = VersionsAnswer)),
)]
pub(crate) async fn versions(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let id = parse_id(&id)?;
    let mut versions = app.manifests(client).version_records(&id, VERSIONS_MAX + 1).await?;
    if versions.is_empty() {
        return Err(unknown(&id));
    }
    let older_left_out = versions.len() > VERSIONS_MAX as usize;
    versions.truncate(VERSIONS_MAX as usize);
    context.json(&VersionsAnswer { id, versions, older_left_out }, Caching::Record)
}
