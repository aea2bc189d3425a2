//! Manifests, their versions, documents and semantic types.

use async_recursion::async_recursion as boxed;
use std::collections::HashMap;

use manifest::{CapabilityId, ContentHash, Format, Manifest, ManifestId, SiteName};

use super::Store;
use crate::StoreError;
use crate::model::{
    ManifestBatch, ManifestSize, NamespaceCount, SemanticTypeCount, SharedCapability, SiteManifestSize,
    StoredDeclaration, StoredManifest, VersionRecord,
};
use crate::packed::{PackedManifest, all_unpacked, unpacked};

impl Store {
    /// The current version of a manifest, even if the manifest was removed from the index.
    #[boxed]
    pub async fn manifest_find(&self, id: &ManifestId) -> Result<Option<StoredManifest>, StoreError> {
        let packed = reading!(self, "manifest_find", manifest::manifest_find(id))?;
        unpacked(packed, "manifest_find").await
    }

    /// Whether a manifest left the index because its site forbids it (robots.txt, its preferences on use, denials) or withdrew it (410).
    /// Neither its bytes nor its content may be shown. A manifest that was removed because it is missing is not withdrawn.
    #[boxed]
    pub async fn manifest_is_withdrawn(&self, id: &ManifestId) -> Result<bool, StoreError> {
        reading!(self, "manifest_is_withdrawn", manifest::manifest_is_withdrawn(id))
    }

    /// The listed manifests that are in the index, in the given order. The others must not be shown. `manifest_batches`
    /// bounds the memory.
    #[boxed]
    pub async fn manifests_load(&self, ids: &[ManifestId]) -> Result<Vec<StoredManifest>, StoreError> {
        all_unpacked(self.manifests_packed(ids).await?, "manifests_load").await
    }

    /// The listed manifests that are in the index, compressed, in the given order. For a caller that waits between manifests.
    #[boxed]
    pub async fn manifests_packed(&self, ids: &[ManifestId]) -> Result<Vec<PackedManifest>, StoreError> {
        let mut packed = reading!(self, "manifests_packed", manifest::manifests_load(ids))?;
        let places: HashMap<&str, usize> = ids.iter().map(ManifestId::as_str).zip(0..).collect();
        packed.sort_by_key(|packed| places.get(packed.id.as_str()).copied());
        Ok(packed)
    }

    /// The next manifests in the index, sorted by id: at most `max`, and at most 1 MiB of JSON or one larger
    /// manifest. Empty at the end.
    #[boxed]
    pub async fn manifests_page(
        &self,
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<StoredManifest>, StoreError> {
        let mut after = after.cloned();
        loop {
            let sizes = self.manifest_sizes_after(after.as_ref(), max).await?;
            let Some(batch) = ManifestBatch::of(sizes).into_iter().next() else {
                return Ok(Vec::new());
            };
            let page = self.manifests_load(&batch.ids).await?;
            if !page.is_empty() {
                return Ok(page);
            }
            // all manifests of the batch were removed from the index
            after = batch.ids.last().cloned();
        }
    }

    /// The sizes of manifests in the index, sorted by id.
    #[boxed]
    pub async fn manifest_sizes_after(
        &self,
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<ManifestSize>, StoreError> {
        let after = after.map_or("", ManifestId::as_str);
        reading!(self, "manifest_sizes_after", manifest_size::sizes_after(after, i64::from(max)))
    }

    /// The sizes of manifests in the index that have one of these formats, without those that only others name, sorted by id.
    #[boxed]
    pub async fn manifest_sizes_of_formats_after(
        &self,
        formats: &[Format],
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<ManifestSize>, StoreError> {
        let (after, max) = (after.map_or("", ManifestId::as_str), i64::from(max));
        reading!(
            self,
            "manifest_sizes_of_formats_after",
            manifest_size::sizes_of_formats_after(formats, after, max)
        )
    }

    /// The size of the current version of a manifest, even if the manifest was removed from the index.
    #[boxed]
    pub async fn manifest_size_find(&self, id: &ManifestId) -> Result<Option<ManifestSize>, StoreError> {
        reading!(self, "manifest_size_find", manifest_size::size_find(id))
    }

    /// The size of the indexed manifest with the leading declaration of the capability with this id.
    #[boxed]
    pub async fn manifest_size_of_capability(
        &self,
        id: &CapabilityId,
    ) -> Result<Option<ManifestSize>, StoreError> {
        reading!(self, "manifest_size_of_capability", manifest_size::size_of_capability(id))
    }

    /// The bytes of one version of a manifest.
    #[boxed]
    pub async fn version_bytes(
        &self,
        id: &ManifestId,
        hash: &ContentHash,
    ) -> Result<Option<u64>, StoreError> {
        reading!(self, "version_bytes", manifest_size::size_of_version(id, hash))
    }

    /// The sizes of the listed manifests that are in the index, in no particular order.
    #[boxed]
    pub async fn manifest_sizes(&self, ids: &[ManifestId]) -> Result<Vec<ManifestSize>, StoreError> {
        reading!(self, "manifest_sizes", manifest_size::sizes_of(ids))
    }

    /// The listed manifests that are in the index, each once, in the given order, in batches of at most 1 MiB of JSON or one
    /// larger manifest.
    #[boxed]
    pub async fn manifest_batches(&self, ids: &[ManifestId]) -> Result<Vec<ManifestBatch>, StoreError> {
        let mut sizes = self.manifest_sizes(ids).await?;
        let mut places: HashMap<&ManifestId, usize> = HashMap::with_capacity(ids.len());
        for (place, id) in ids.iter().enumerate() {
            places.entry(id).or_insert(place);
        }
        sizes.sort_by_key(|size| places.get(&size.id).copied());
        Ok(ManifestBatch::of(sizes))
    }

    /// The sizes of a site's manifests that are in the index: first those that the site publishes, last those that only others name.
    #[boxed]
    pub async fn manifest_sizes_of_site(&self, site: &SiteName) -> Result<Vec<SiteManifestSize>, StoreError> {
        let mut sizes = reading!(self, "manifest_sizes_of_site", manifest_size::sizes_of_site(site))?;
        SiteManifestSize::sort_by_trust(&mut sizes);
        Ok(sizes)
    }

    /// The indexed manifest with the leading declaration of the capability with this id.
    #[boxed]
    pub async fn manifest_of_capability(
        &self,
        id: &CapabilityId,
    ) -> Result<Option<StoredManifest>, StoreError> {
        let packed = reading!(self, "manifest_of_capability", manifest::manifest_of_capability(id))?;
        unpacked(packed, "manifest_of_capability").await
    }

    /// The capability that is served under an id, with its listed declarations. `None` if it has a single declaration and its own id.
    #[boxed]
    pub async fn capability_shared(&self, id: &CapabilityId) -> Result<Option<SharedCapability>, StoreError> {
        reading!(self, "capability_shared", declaration::capability_shared(id))
    }

    /// The capabilities of these manifests that have several declarations or the id of another one, with their listed declarations and the
    /// declarations in these manifests.
    #[boxed]
    pub async fn capabilities_shared_by(
        &self,
        manifests: &[ManifestId],
    ) -> Result<Vec<SharedCapability>, StoreError> {
        reading!(self, "capabilities_shared_by", declaration::capabilities_shared_by(manifests))
    }

    /// The requested declarations that are in the index and whose statements are stored, in no particular order. If a program of an earlier
    /// schema wrote a declaration of a site with several manifests, its statement is missing until the next visit; until then, it is read
    /// from its manifest.
    #[boxed]
    pub async fn declarations_load(
        &self,
        ids: &[CapabilityId],
    ) -> Result<Vec<StoredDeclaration>, StoreError> {
        let packed = reading!(self, "declarations_load", declaration::declarations_load(ids))?;
        all_unpacked(packed, "declarations_load").await
    }

    /// The sizes of the statements of the same declarations, in bytes.
    #[boxed]
    pub async fn declaration_sizes(
        &self,
        ids: &[CapabilityId],
    ) -> Result<Vec<(CapabilityId, u64)>, StoreError> {
        reading!(self, "declaration_sizes", declaration::declaration_sizes(ids))
    }

    /// The capabilities of a site that have several declarations or the id of another one.
    #[boxed]
    pub async fn capabilities_shared_of_site(
        &self,
        site: &SiteName,
    ) -> Result<Vec<SharedCapability>, StoreError> {
        reading!(self, "capabilities_shared_of_site", declaration::capabilities_shared_of_site(site))
    }

    /// A site's manifests that are in the index, sorted by URL.
    #[boxed]
    pub async fn manifests_of_site(&self, site: &SiteName) -> Result<Vec<StoredManifest>, StoreError> {
        let packed = reading!(self, "manifests_of_site", manifest::manifests_of_site(site))?;
        all_unpacked(packed, "manifests_of_site").await
    }

    /// The newest versions of a manifest, at most `max`, newest first.
    #[boxed]
    pub async fn manifest_versions(
        &self,
        id: &ManifestId,
        max: u32,
    ) -> Result<Vec<VersionRecord>, StoreError> {
        reading!(self, "manifest_versions", version::manifest_versions(id, i64::from(max)))
    }

    /// The newest version with this content, and its predecessor. Empty if there is no such version.
    #[boxed]
    pub async fn versions_until(
        &self,
        id: &ManifestId,
        hash: &ContentHash,
    ) -> Result<Vec<VersionRecord>, StoreError> {
        reading!(self, "versions_until", version::versions_until(id, hash))
    }

    /// One version of a manifest, as normalised when it was read.
    #[boxed]
    pub async fn version_find(
        &self,
        id: &ManifestId,
        hash: &ContentHash,
    ) -> Result<Option<Manifest>, StoreError> {
        let packed = reading!(self, "version_find", version::version_find(id, hash))?;
        unpacked(packed, "version_find").await
    }

    /// A document as published; `None` if it is not stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadRow`] where its hash differs.
    #[boxed]
    pub async fn document_find(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let packed = reading!(self, "document_find", document::document_find(hash))?;
        unpacked(packed, "document_find").await
    }

    /// The 5,000 most frequent semantic types in the index, most frequent first.
    #[boxed]
    pub async fn semantic_types(&self) -> Result<Vec<SemanticTypeCount>, StoreError> {
        scanning!(self, "semantic_types", capability::semantic_types())
    }

    /// The namespaces of the given types, with totals over these types, the largest first.
    #[boxed]
    pub async fn semantic_namespaces(
        &self,
        types: &[SemanticTypeCount],
    ) -> Result<Vec<NamespaceCount>, StoreError> {
        scanning!(self, "semantic_namespaces", capability::semantic_namespaces(types))
    }
}
