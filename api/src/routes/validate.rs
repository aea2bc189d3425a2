//! `POST /validate`: reads the document in the body as the crawler would, and says what it is, what is wrong with it,
//! where, how to fix that, and what would be indexed. Nothing is stored and nothing is fetched: without a body, it is the
//! stored document of the given address, as the crawler read it.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use manifest::model::{Conformance, ConformanceLevel};
use manifest::{
    Detection, Discovery, Document, Finding, Format, Manifest, ManifestId, ManifestUrl, NameError,
};
use serde::Serialize;
use utoipa::ToSchema;

use super::raw::not_kept;
use super::{TEXT_IS, validator};
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use runtime::Share;

/// The URL of a document that is sent without one; the name is reserved and cannot be visited (RFC 6761 §6.4).
const NOWHERE: &str = "https://document.invalid/";
/// Findings that get their line and column: each costs a scan of the document.
const PLACED_MAX: usize = 100;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ValidateAnswer {
    #[schema(inline, value_type = crate::openapi::schemas::FormatWord)]
    pub(crate) format: Format,
    #[schema(value_type = String)]
    pub(crate) level: ConformanceLevel,
    pub(crate) indexed: Indexed,
    #[schema(value_type = Object)]
    pub(crate) detection: Detection,
    #[schema(value_type = Vec<Object>)]
    pub(crate) conformance: Vec<Conformance>,
    pub(crate) findings: Vec<PlacedFinding>,
    text_is: &'static str,
    #[schema(value_type = Object)]
    pub(crate) manifest: Manifest,
}

/// What a search would find of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Indexed {
    pub(crate) capabilities: usize,
    pub(crate) invocable: usize,
}

/// A finding with the line and column that its pointer leads to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlacedFinding {
    #[serde(flatten)]
    #[schema(value_type = crate::openapi::schemas::Finding)]
    pub(crate) finding: Finding,
    pub(crate) line: Option<usize>,
    column: Option<usize>,
}

/// Reads a document as the crawler would, and says what it is and what is wrong with it.
#[utoipa::path(
    post,
    path = "/validate",
    tag = "site owners",
    params(
        ("url" = Option<String>, Query, description = "Where the document lies; without a body, the stored document of this address is read", max_length = 1024),
        ("as" = inline(Option<crate::openapi::schemas::FormatWord>), Query, description = "Read it as this format, whatever it looks like"),
    ),
    request_body(content = Option<Vec<u8>>, content_type = "application/octet-stream", description = "The document, at most 4 MiB; nothing of it is kept"),
    responses((status = 200, description = "Dialect, findings, and what would be indexed", body = ValidateAnswer)),
)]
pub(crate) async fn check(
    State(app): State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    query: QueryPairs,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    query.only(&["url", "as"])?;
    if validator::is_form(&headers, &body) {
        return validator::submitted(&app, client, &asked, &body).await;
    }
    let url: Option<ManifestUrl> = query.one_parsed("url")?;
    let force = query.one_closed("as")?;
    let answer = match url {
        Some(url) if body.is_empty() => {
            let Stored { manifest, body, _share } = stored(&app, client, &url).await?;
            app.validation()
                .run(client, move || {
                    if force.is_some() { read(&body, &url, force) } else { answer_of(manifest, &body) }
                })
                .await?
        }
        url => {
            let url = url.map_or_else(nowhere, Ok).map_err(|error| Problem::internal(&error))?;
            app.validation().run(client, move || read(&body, &url, force)).await?
        }
    };
    asked.json(&answer, Caching::Never)
}

/// The URL of a document that is sent without one.
pub(super) fn nowhere() -> Result<ManifestUrl, NameError> {
    ManifestUrl::parse(NOWHERE)
}

/// The manifest of an address with its bytes, which count for the client as long as this lives.
pub(super) struct Stored {
    pub(super) manifest: Manifest,
    pub(super) body: Vec<u8>,
    pub(super) _share: Share,
}

pub(super) async fn stored(app: &App, client: Client, url: &ManifestUrl) -> Result<Stored, Problem> {
    let manifests = app.manifests(client);
    let found = manifests.find(&ManifestId::of(url)).await?;
    let found = found.ok_or_else(|| {
        Problem::not_found(format!("no document of {url} is stored; send it in the body, or submit its site"))
    })?;
    // The permit ends here: how many documents are read or wait for that is bounded by the pool that reads them.
    let (found, _permit) = found.into_parts();
    if !found.body_kept {
        return Err(not_kept());
    }
    let (body, share) = manifests.document(&found.manifest).await?.ok_or_else(not_kept)?;
    Ok(Stored { manifest: found.manifest, body, _share: share })
}

pub(super) fn read(bytes: &[u8], url: &ManifestUrl, force: Option<Format>) -> ValidateAnswer {
    let document = Document {
        bytes,
        url,
        final_url: None,
        discovery: Discovery::Submitted,
        served: None,
        linked: &[],
        force,
    };
    answer_of(manifest::read(&document), bytes)
}

fn answer_of(mut manifest: Manifest, bytes: &[u8]) -> ValidateAnswer {
    let is_indexable = manifest.format().is_indexable();
    let invocable = manifest.capabilities.iter().filter(|capability| capability.is_invocable()).count();
    ValidateAnswer {
        format: manifest.format(),
        level: manifest.level(),
        indexed: Indexed {
            capabilities: if is_indexable { manifest.capabilities.len() } else { 0 },
            invocable: if is_indexable { invocable } else { 0 },
        },
        detection: manifest.detection.clone(),
        conformance: manifest.conformance.clone(),
        findings: placed(bytes, std::mem::take(&mut manifest.findings)),
        text_is: TEXT_IS,
        manifest,
    }
}

/// The worst first, each with its place.
fn placed(bytes: &[u8], mut findings: Vec<Finding>) -> Vec<PlacedFinding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let mut places = manifest::finding_positions(
        bytes,
        findings.get(..findings.len().min(PLACED_MAX)).unwrap_or_default(),
    );
    places.resize(findings.len(), None);
    let place = |(finding, found): (Finding, Option<(usize, usize)>)| PlacedFinding {
        finding,
        line: found.map(|(line, _)| line),
        column: found.map(|(_, column)| column),
    };
    findings.into_iter().zip(places).map(place).collect()
}
