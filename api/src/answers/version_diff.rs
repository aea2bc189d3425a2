//! What changed between two stored versions of a manifest.

use chrono::{DateTime, Utc};
use manifest::{ContentHash, Manifest, ManifestId};
use serde::Serialize;
use store::{Store, VersionRecord};
use utoipa::ToSchema;

use super::TEXT_IS;
use super::diff::{Difference, difference};
use crate::manifests::ManifestReader;
use crate::problem::Problem;

/// The difference between two versions.
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
    /// The version that the document states for itself.
    pub(crate) document_version: Option<String>,
}

/// Compares two versions: the latest with the one before, unless named. Passes the difference and all versions to `respond`, off
/// the runtime. The permit for the memory of the two is held until `respond` returns.
pub(crate) async fn compare<R: Send + 'static>(
    store: &Store,
    manifests: ManifestReader<'_>,
    id: ManifestId,
    from: Option<ContentHash>,
    to: Option<ContentHash>,
    respond: impl FnOnce(&DiffAnswer, &[VersionRecord]) -> R + Send + 'static,
) -> Result<R, Problem> {
    let versions = store.manifest_versions(&id).await?;
    let to = to.map_or(Ok(0), |hash| position(&versions, &hash, "to"))?;
    let before = if to + 1 < versions.len() { to + 1 } else { to };
    let from = from.map_or(Ok(before), |hash| position(&versions, &hash, "from"))?;
    let (Some(from), Some(to)) = (versions.get(from).cloned(), versions.get(to).cloned()) else {
        return Err(Problem::not_found(format!("no version of manifest {id} is kept")));
    };
    let compared = manifests.versions(&id, [&from.hash, &to.hash]).await?;
    let compared = compared.ok_or_else(|| Problem::not_found("one of the versions is not kept any more"))?;
    let response = compared.work(move |[before, after]| {
        let (from, to) = (line(&from, &before), line(&to, &after));
        let answer = DiffAnswer { id, from, to, difference: difference(&before, &after), text_is: TEXT_IS };
        respond(&answer, &versions)
    });
    response.await
}

/// Index of a version in the list, which begins with the latest.
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
