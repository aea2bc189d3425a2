//! Validation of a document: its dialect, its findings with line numbers, and what would be indexed. Nothing is stored or
//! fetched.

use indexer::{ExampleCheck, UnfoundExample};
use manifest::model::{Conformance, ConformanceLevel};
use manifest::{Detection, Discovery, Finding, Format, Manifest, ManifestId, ManifestUrl, NameError};
use runtime::{OwnedDocument, Share};
use serde::Serialize;
use utoipa::ToSchema;

use super::TEXT_IS;
use crate::document_readers::DocumentReader;
use crate::manifests::ManifestReader;
use crate::problem::Problem;

/// Stands in for the URL of a document that is sent without one. No site has this name, so the document is not compared with a serving
/// site.
const PLACEHOLDER_URL: &str = "https://document.invalid/";
/// Maximum number of findings that get their line and column: each costs a scan of the document.
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
    pub(crate) examples: ExampleRequests,
    text_is: &'static str,
    #[schema(value_type = Object)]
    pub(crate) manifest: Manifest,
}

/// What a search would find of the document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Indexed {
    pub(crate) capabilities: usize,
    pub(crate) invocable: usize,
}

/// Whether the example requests of the document find its capabilities by the other texts of these capabilities.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExampleRequests {
    /// Number of checked requests.
    pub(crate) checked: usize,
    /// Requests for which another capability of the document is found before the expected one.
    pub(crate) unfound: Vec<UnfoundRequest>,
}

/// An example request that does not find its capability first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnfoundRequest {
    pub(crate) example: String,
    /// The name of its capability.
    pub(crate) capability: String,
    /// Rank of the capability, from 1; null if it contains no word of the example.
    pub(crate) place: Option<usize>,
    /// The name of the capability that is found first.
    pub(crate) first: Option<String>,
}

impl From<ExampleCheck> for ExampleRequests {
    fn from(check: ExampleCheck) -> Self {
        let request = |UnfoundExample { example, capability, place, first }| UnfoundRequest {
            example,
            capability,
            place,
            first,
        };
        Self { checked: check.checked, unfound: check.unfound.into_iter().map(request).collect() }
    }
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

/// The URL of a document that is sent without one.
pub(crate) fn placeholder_url() -> Result<ManifestUrl, NameError> {
    ManifestUrl::parse(PLACEHOLDER_URL)
}

/// The manifest at a URL with its bytes, which count towards the limit of the client until the share is dropped.
pub(crate) struct Stored {
    pub(crate) manifest: Manifest,
    pub(crate) body: Vec<u8>,
    pub(crate) share: Share,
}

pub(crate) async fn stored(manifests: ManifestReader<'_>, url: &ManifestUrl) -> Result<Stored, Problem> {
    let found = manifests.find(&ManifestId::of(url)).await?;
    let found = found.ok_or_else(|| {
        Problem::not_found(format!(
            "the request has no document, and none of {url} is stored: send the document, or add its site"
        ))
    })?;
    // The permit ends here, because the pool that reads documents has its own limit.
    let (found, _permit) = found.into_parts();
    let (body, share) = manifests.document(&found).await?;
    Ok(Stored { manifest: found.manifest, body, share })
}

/// Reads a document. Blocking, see [`DocumentReader`].
pub(crate) fn read(
    reader: &DocumentReader,
    bytes: Vec<u8>,
    url: &ManifestUrl,
    force: Option<Format>,
) -> Result<ValidateAnswer, Problem> {
    let document = OwnedDocument {
        bytes,
        url: url.clone(),
        final_url: None,
        discovery: Discovery::Submitted,
        served: None,
        linked: Vec::new(),
        force,
    };
    let manifest = reader.read(&document)?;
    Ok(answer(manifest, Some(&document.bytes)))
}

/// The validation of a manifest; with the bytes of its document, each finding has its line.
pub(crate) fn answer(mut manifest: Manifest, bytes: Option<&[u8]>) -> ValidateAnswer {
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
        examples: indexer::check_examples(&manifest).into(),
        findings: placed(bytes, std::mem::take(&mut manifest.findings)),
        text_is: TEXT_IS,
        manifest,
    }
}

/// Sorts the findings, worst first, and adds line and column.
fn placed(bytes: Option<&[u8]>, mut findings: Vec<Finding>) -> Vec<PlacedFinding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let first = findings.get(..findings.len().min(PLACED_MAX)).unwrap_or_default();
    let mut places = bytes.map(|bytes| manifest::finding_positions(bytes, first)).unwrap_or_default();
    places.resize(findings.len(), None);
    let place = |(finding, found): (Finding, Option<(usize, usize)>)| PlacedFinding {
        finding,
        line: found.map(|(line, _)| line),
        column: found.map(|(_, column)| column),
    };
    findings.into_iter().zip(places).map(place).collect()
}
