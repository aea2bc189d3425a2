//! One capability with every member of its declaration.

use indexer::{Hit, MergedCapability};
use manifest::{CapabilityId, SiteName};
use serde_json::{Map, Value};
use store::{Store, StoredManifest};

use super::declarations::SharedDeclarations;
use super::liveness::Liveness;
use super::record;
use super::search::{object_of, search_problem};
use crate::client::Client;
use crate::index::IndexHandle;
use crate::manifests::ManifestReader;
use crate::permitted::Permitted;
use crate::problem::Problem;

/// A capability with the manifest of its leading declaration.
pub(crate) struct FoundCapability {
    /// Id of the leading declaration.
    declaration: CapabilityId,
    shared: SharedDeclarations,
    stored: Permitted<StoredManifest>,
    /// The checks of the host that the endpoint of the leading declaration names; `None` if it was never checked.
    pub(crate) liveness: Option<Liveness>,
}

impl FoundCapability {
    /// The site of the manifest.
    pub(crate) fn site(&self) -> SiteName {
        self.stored.manifest.url.site()
    }

    /// Runs `work` on the manifest and the capability on the blocking pool.
    pub(crate) async fn work<R: Send + 'static>(
        self,
        work: impl FnOnce(&StoredManifest, &MergedCapability) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let Self { declaration, shared, stored, .. } = self;
        let worked = stored.work(move |stored| {
            let capability = record::capability_in(&stored, &declaration);
            let merged = capability.and_then(|capability| shared.merged(&stored, capability));
            work(&stored, &merged.ok_or_else(|| unknown(&declaration))?)
        });
        worked.await?
    }
}

/// The row of the index, with all declarations, but without the members that only search results have.
pub(crate) fn row(stored: &StoredManifest, merged: &MergedCapability) -> Result<Map<String, Value>, Problem> {
    let mut hit = Hit::of(stored, &merged.capability);
    hit.updated_at = merged.declarations.iter().map(|one| one.updated_at).fold(hit.updated_at, Ord::max);
    hit.declarations.clone_from(&merged.declarations);
    let mut row = object_of(&hit)?;
    row.retain(|name, _| name != "score" && name != "snippet");
    let contradictions = serde_json::to_value(&merged.contradictions);
    row.insert("contradictions".to_owned(), contradictions.map_err(|error| Problem::internal(&error))?);
    Ok(row)
}

/// The details that only the store has.
pub(crate) fn details(
    stored: &StoredManifest,
    merged: &MergedCapability,
) -> Result<Map<String, Value>, Problem> {
    object_of(&record::detail(stored, merged))
}

/// Details for a line of the export, with a lower limit on members that the manifest states once for all capabilities.
pub(crate) fn exported_details(
    stored: &StoredManifest,
    merged: &MergedCapability,
) -> Result<Map<String, Value>, Problem> {
    object_of(&record::exported_detail(stored, merged))
}

/// The capability with this id, or the merged capability to which the declaration with this id belongs.
pub(crate) async fn find(
    manifests: ManifestReader<'_>,
    id: CapabilityId,
) -> Result<FoundCapability, Problem> {
    let shared = manifests.store.capability_shared(&id).await?;
    let leading = shared.as_ref().and_then(|shared| shared.members.first());
    let declaration = leading.map_or_else(|| id.clone(), |leader| leader.id.clone());
    let shared = SharedDeclarations::following(manifests, shared.into_iter().collect()).await?;
    let stored = shared.beside(manifests).of_capability(&id).await?.ok_or_else(|| unknown(&id))?;
    let leading = record::capability_in(&stored, &declaration);
    let liveness = match leading.and_then(|capability| stored.manifest.endpoint_host(capability)) {
        Some(host) => manifests.store.host_check_find(&host).await?.map(Liveness::from),
        None => None,
    };
    Ok(FoundCapability { declaration, shared, stored, liveness })
}

/// Capabilities with a similar description; `None` if the capability of the id is not in the index.
pub(crate) async fn similar(
    store: &Store,
    index: &IndexHandle,
    client: Client,
    id: &CapabilityId,
    max: usize,
) -> Result<Option<Vec<Hit>>, Problem> {
    let shared = store.capability_shared(id).await?;
    let wanted = shared.map_or_else(|| id.clone(), |shared| shared.id);
    let found = index.run(client, move |searcher| searcher.similar(&wanted, max)).await?;
    let mut hits = found.map_err(|error| search_problem(&error))?;
    if let Some(hits) = &mut hits {
        hits.retain(|hit| !index.suppressed().has(&hit.site));
    }
    Ok(hits)
}

pub(crate) fn parse_id(text: &str) -> Result<CapabilityId, Problem> {
    CapabilityId::parse(text).map_err(|_| {
        Problem::bad_request(
            "the id of a capability is \"c\" and 16 characters, as in the member `id` of a search result",
        )
    })
}

fn unknown(id: &CapabilityId) -> Problem {
    Problem::not_found(format!("there is no capability {id}; it may have left the index"))
}
