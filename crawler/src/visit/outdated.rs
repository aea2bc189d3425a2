//! Manifests that an earlier version of the reader read: which of them a visit reads again, and how the readings differ.

use std::collections::{BTreeSet, HashSet};

use manifest::{Manifest, ManifestUrl};
use policy::FetchOutcome;
use store::StoreError;

use super::Visit;
use super::fetched::Fetched;
use super::findings::{Findings, is_outdated};
use super::links::{self, FollowUps};
use super::task::Role;

/// Maximum number of unchanged manifests that a visit reads again because an earlier version of the reader read them. If there are more,
/// each visit reads the next ones, so that manifests that cannot be read again do not keep the others from being read.
const OUTDATED_READ_MAX: usize = 20;

impl Visit<'_> {
    /// The unchanged manifests that this visit reads again because an earlier version of the reader read them.
    pub(super) fn outdated_in_turn(&self) -> HashSet<usize> {
        let is_outdated = |whole: &Fetched| {
            whole.role == Role::Manifest
                && whole.outcome.is_present()
                && whole.outcome != FetchOutcome::Found
                && is_outdated(self.site, &whole.url)
        };
        let fetched = self.progress.findings.fetched.iter().enumerate();
        let outdated: Vec<usize> =
            fetched.filter(|(_, whole)| is_outdated(whole)).map(|(index, _)| index).collect();
        let visits = usize::try_from(self.site.visits).unwrap_or_default();
        let first = visits.wrapping_mul(OUTDATED_READ_MAX).checked_rem(outdated.len()).unwrap_or_default();
        let count = outdated.len().min(OUTDATED_READ_MAX);
        outdated.iter().cycle().skip(first).take(count).copied().collect()
    }

    /// Compares a manifest with the one that an earlier version of the reader read. If the new one has other links, and the document was
    /// not received, the next visit requests it without conditions and follows them.
    pub(super) async fn compare_with_earlier_reading(&mut self, index: usize) -> Result<(), StoreError> {
        let is_read_again = |whole: &&Fetched| whole.manifest.is_some() && is_outdated(self.site, &whole.url);
        let whole = self.progress.findings.fetched.get(index).filter(is_read_again);
        let Some(url) = whole.map(|whole| whole.url.clone()) else { return Ok(()) };
        let Some(stored) = self.stored_manifest(&url).await? else { return Ok(()) };
        let Findings { fetched, sources, .. } = &mut self.progress.findings;
        let Some(whole) = fetched.get_mut(index) else { return Ok(()) };
        let Some(manifest) = whole.manifest.as_deref() else { return Ok(()) };
        let stored = Manifest { served: manifest.served.clone(), ..stored.manifest };
        whole.is_stored_reading = stored == *manifest;
        if whole.outcome != FetchOutcome::Found && linked_urls(&stored) != linked_urls(manifest) {
            sources.add_unfollowed(&url);
        }
        Ok(())
    }
}

/// The URLs of the documents and sites to which a manifest links, without its parts.
fn linked_urls(manifest: &Manifest) -> BTreeSet<ManifestUrl> {
    let FollowUps { tasks, seeds } = links::of_manifest(manifest);
    let documents = tasks.into_iter().filter(|task| task.role != Role::Part).map(|task| task.url);
    documents.chain(seeds.into_iter().filter_map(|seed| seed.url)).collect()
}
