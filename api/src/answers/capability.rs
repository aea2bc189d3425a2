//! One capability with everything that its declaration says.

use indexer::Hit;
use manifest::{Capability, CapabilityId};
use serde_json::{Map, Value};
use store::StoredManifest;

use super::record;
use super::search::{object_of, search_problem};
use crate::client::Client;
use crate::index::IndexHandle;
use crate::manifests::{ManifestReader, Permitted};
use crate::problem::Problem;

/// A capability with the manifest that declares it.
pub(crate) struct FoundCapability {
    id: CapabilityId,
    stored: Permitted<StoredManifest>,
}

impl FoundCapability {
    /// Runs `work` on the manifest and the capability on the blocking pool.
    pub(crate) async fn work<R: Send + 'static>(
        self,
        work: impl FnOnce(&StoredManifest, &Capability) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let Self { id, stored } = self;
        let worked = stored.work(move |stored| {
            let capability = record::capability_in(&stored, &id).ok_or_else(|| unknown(&id))?;
            work(&stored, capability)
        });
        worked.await?
    }
}

/// The row of the index without the members of a search result.
pub(crate) fn row(stored: &StoredManifest, capability: &Capability) -> Result<Map<String, Value>, Problem> {
    let mut row = object_of(&Hit::of(stored, capability))?;
    row.retain(|name, _| name != "score" && name != "snippet");
    Ok(row)
}

/// The details that only the store has.
pub(crate) fn details(
    stored: &StoredManifest,
    capability: &Capability,
) -> Result<Map<String, Value>, Problem> {
    object_of(&record::detail(stored, capability))
}

pub(crate) async fn find(
    manifests: ManifestReader<'_>,
    id: CapabilityId,
) -> Result<FoundCapability, Problem> {
    let stored = manifests.of_capability(&id).await?.ok_or_else(|| unknown(&id))?;
    Ok(FoundCapability { id, stored })
}

/// Capabilities with a similar description; `None` if the index does not have this one.
pub(crate) async fn similar(
    index: &IndexHandle,
    client: Client,
    id: &CapabilityId,
    max: usize,
) -> Result<Option<Vec<Hit>>, Problem> {
    let wanted = id.clone();
    let found = index.run(client, move |searcher| searcher.similar(&wanted, max)).await?;
    let mut hits = found.map_err(|error| search_problem(&error))?;
    if let Some(hits) = &mut hits {
        hits.retain(|hit| !index.suppressed().has(&hit.site));
    }
    Ok(hits)
}

pub(crate) fn parse_id(text: &str) -> Result<CapabilityId, Problem> {
    CapabilityId::parse(text).map_err(|_| {
        Problem::bad_request("the id of a capability is \"c\" and 16 characters, as in id of a result")
    })
}

fn unknown(id: &CapabilityId) -> Problem {
    Problem::not_found(format!("there is no capability {id}; it may have left the index"))
}
