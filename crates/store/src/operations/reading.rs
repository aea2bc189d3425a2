//! Manifests, their versions, documents and semantic types.

use manifest::{CapabilityId, ContentHash, Manifest, ManifestId, SiteName};

use super::Store;
use crate::StoreError;
use crate::model::{NamespaceCount, SemanticTypeCount, StoredManifest, VersionRecord};

impl Store {
    /// The current version of a manifest, also of one that left the index.
    pub async fn manifest_find(&self, id: &ManifestId) -> Result<Option<StoredManifest>, StoreError> {
        reading!(self, "manifest_find", manifest::manifest_find(id))
    }

    /// Those of the manifests that are in the index. The others must not be shown.
    pub async fn manifests_load(&self, ids: &[ManifestId]) -> Result<Vec<StoredManifest>, StoreError> {
        reading!(self, "manifests_load", manifest::manifests_load(ids))
    }

    /// Manifests in the index, in the order of their ids.
    pub async fn manifests_page(
        &self,
        after: Option<&ManifestId>,
        max: u32,
    ) -> Result<Vec<StoredManifest>, StoreError> {
        let after = after.map_or("", ManifestId::as_str);
        reading!(self, "manifests_page", manifest::manifests_page(after, i64::from(max)))
    }

    /// The manifest in the index that declares a capability.
    pub async fn manifest_of_capability(
        &self,
        id: &CapabilityId,
    ) -> Result<Option<StoredManifest>, StoreError> {
        reading!(self, "manifest_of_capability", manifest::manifest_of_capability(id))
    }

    /// A site's manifests that are in the index, in the order of their URLs.
    pub async fn manifests_of_site(&self, site: &SiteName) -> Result<Vec<StoredManifest>, StoreError> {
        reading!(self, "manifests_of_site", manifest::manifests_of_site(site))
    }

    /// Every version of a manifest, newest first.
    pub async fn manifest_versions(&self, id: &ManifestId) -> Result<Vec<VersionRecord>, StoreError> {
        reading!(self, "manifest_versions", version::manifest_versions(id))
    }

    /// One version of a manifest, as normalised when it was read.
    pub async fn version_find(
        &self,
        id: &ManifestId,
        hash: &ContentHash,
    ) -> Result<Option<Manifest>, StoreError> {
        reading!(self, "version_find", version::version_find(id, hash))
    }

    /// A document as published; `None` where it is not stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadRow`] where its hash differs.
    pub async fn document_find(&self, hash: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        reading!(self, "document_find", document::document_find(hash))
    }

    /// The 5,000 most frequent semantic types in the index, most frequent first.
    pub async fn semantic_types(&self) -> Result<Vec<SemanticTypeCount>, StoreError> {
        reading!(self, "semantic_types", capability::semantic_types())
    }

    /// Those of the namespaces that are in the index, with their totals, the largest first.
    pub async fn semantic_namespaces(&self, namespaces: &[&str]) -> Result<Vec<NamespaceCount>, StoreError> {
        reading!(self, "semantic_namespaces", capability::semantic_namespaces(namespaces))
    }
}
