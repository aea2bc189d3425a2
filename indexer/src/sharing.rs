//! Reads from the store which capabilities several documents declare, and the declarations that do not lead.

use std::collections::BTreeSet;

use manifest::ManifestId;
use store::{Store, StoreError};

use crate::declarations::listed;
use crate::index::{Following, Shared};

/// Bytes of the declarations that are held while a batch of manifests is indexed.
const FOLLOWING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What these manifests share with others, ready to be indexed. Other manifests are held a few at a time.
pub(crate) async fn load(store: &Store, manifests: &[ManifestId]) -> Result<Shared, StoreError> {
    let capabilities = store.capabilities_shared_by(manifests).await?;
    let leading: BTreeSet<&ManifestId> = manifests.iter().collect();
    let led = capabilities
        .iter()
        .filter(|shared| shared.members.first().is_some_and(|leader| leading.contains(&leader.manifest)));
    let following = led.flat_map(|shared| listed(shared).iter().skip(1));
    let following: BTreeSet<ManifestId> = following.map(|member| member.manifest.clone()).collect();
    let following: Vec<ManifestId> = following.into_iter().collect();
    let mut shared = Shared::new(capabilities, FOLLOWING_BYTES_MAX);
    for batch in store.manifest_batches(&following).await? {
        for stored in store.manifests_load(&batch.ids).await? {
            shared.add(&stored, |capability| {
                let following = Following::of(&stored, capability);
                let bytes = following.bytes();
                (following, bytes)
            });
        }
    }
    Ok(shared)
}

/// Adds the manifests that lead capabilities of the listed ones: what these state is in the documents of those.
pub(crate) async fn add_leading(store: &Store, manifests: &mut Vec<ManifestId>) -> Result<(), StoreError> {
    let shared = store.capabilities_shared_by(manifests).await?;
    let leaders = shared.into_iter().filter_map(|shared| shared.members.into_iter().next());
    let leading: BTreeSet<ManifestId> = leaders.map(|leader| leader.manifest).collect();
    let known: BTreeSet<ManifestId> = manifests.iter().cloned().collect();
    manifests.extend(leading.difference(&known).cloned());
    Ok(())
}
