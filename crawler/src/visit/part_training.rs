//! Training preferences of the parts of a manifest, which apply to the whole.

use manifest::ManifestUrl;
use manifest::model::PolicyChoice;
use policy::freshness::CacheRecord;
use policy::usage::most_restrictive;
use store::{ResourceState, StoreError};

use super::Visit;

impl Visit<'_> {
    /// Applies the training preferences of parts to the manifest that contains them. For a part that was not requested, the preference of
    /// its last response applies. A document to which the manifest only links is not a part: it may belong to somebody else.
    pub(super) async fn restrict_training(
        &mut self,
        index: usize,
        url: &ManifestUrl,
        parts: &[usize],
    ) -> Result<(), StoreError> {
        let fetched = &self.progress.findings.fetched;
        let of_fetched = parts.iter().filter_map(|part| fetched.get(*part)).map(|part| part.training);
        let was_requested = |known: &ResourceState| {
            parts.iter().any(|part| fetched.get(*part).is_some_and(|part| part.url == known.url))
        };
        let of_known = self.site.resources.iter().filter(|known| {
            known.manifest_id.is_none() && known.linked_from.as_ref() == Some(url) && !was_requested(known)
        });
        let of_known = of_known.filter_map(|known| {
            let cache = serde_json::from_value::<CacheRecord>(known.cache.clone()?).ok()?;
            let training = cache.usage().training;
            (training != PolicyChoice::Unset).then_some((&known.url, training))
        });
        let of_known: Vec<_> = of_known.collect();
        let named = if of_known.is_empty() { Vec::new() } else { self.all_named_parts(index, url).await? };
        let of_known = of_known.iter().filter(|(url, _)| named.contains(url)).map(|(_, training)| *training);
        let strictest = of_fetched.chain(of_known).fold(PolicyChoice::Unset, most_restrictive);
        if let Some(whole) = self.progress.findings.fetched.get_mut(index) {
            whole.training = most_restrictive(whole.training, strictest);
        }
        Ok(())
    }
}
