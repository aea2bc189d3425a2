//! Reads from the store which capabilities several documents declare, and their further declarations.

use std::collections::BTreeSet;

use manifest::ManifestId;
use store::{Store, StoreError};

use crate::index::{Following, Shared};

/// Maximum number of bytes of the declarations that are held while a batch of manifests is indexed.
const FOLLOWING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The shared capabilities of these manifests, ready to be indexed. Each declaration is read together with the manifest of the leading one,
/// so the work for all manifests is linear in the number of declarations.
pub(crate) async fn load(store: &Store, manifests: &[ManifestId]) -> Result<Shared, StoreError> {
    let capabilities = store.capabilities_shared_by(manifests).await?;
    let mut shared = Shared::new(capabilities, FOLLOWING_BYTES_MAX);
    let read = |stored| {
        let following = Following::of(stored);
        let bytes = following.bytes();
        (following, bytes)
    };
    shared.load_led_by(store, manifests, read).await?;
    Ok(shared)
}

/// Adds the manifests with the leading declarations of capabilities in the listed manifests, because their index documents contain facts of
/// the listed ones.
pub(crate) async fn add_leading(store: &Store, manifests: &mut Vec<ManifestId>) -> Result<(), StoreError> {
    let shared = store.capabilities_shared_by(manifests).await?;
    let leaders = shared.into_iter().filter_map(|shared| shared.members.into_iter().next());
    let leading: BTreeSet<ManifestId> = leaders.map(|leader| leader.manifest).collect();
    let known: BTreeSet<ManifestId> = manifests.iter().cloned().collect();
    manifests.extend(leading.difference(&known).cloned());
    Ok(())
}
