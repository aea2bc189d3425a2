//! The row of a URL after a fetch.

use manifest::Discovery;
use policy::FetchOutcome;

use crate::known::KnownManifest;
use crate::model::{FetchRecord, ResourceState};

/// Whether new bytes of a manifest in the index were received only as a part of another manifest. The manifest was not read from these
/// bytes, so their validators must not be sent: a 304 would wrongly confirm the indexed version.
pub(crate) fn is_read_as_part(fetch: &FetchRecord, manifest: Option<&KnownManifest>) -> bool {
    let is_other =
        |manifest: &KnownManifest| manifest.in_index && fetch.content_hash.as_ref() != Some(&manifest.hash);
    fetch.outcome == FetchOutcome::Found && fetch.manifest.is_none() && manifest.is_some_and(is_other)
}

/// The resource after the fetch. A body that was read replaces the validators; any other response keeps them.
pub(crate) fn resource_after(
    fetch: &FetchRecord,
    before: Option<&ResourceState>,
    misses_in_row: u32,
) -> ResourceState {
    let is_new_body = fetch.outcome == FetchOutcome::Found;
    let hash_before = before.and_then(|before| before.content_hash.as_ref());
    let content_changed = fetch.outcome.is_present()
        && fetch.content_hash.as_ref().is_some_and(|hash| Some(hash) != hash_before);
    let changed_at =
        if content_changed { Some(fetch.at) } else { before.and_then(|before| before.changed_at) };
    // a part that was named as a manifest during the visit keeps this mark until a visit has requested it
    let is_named_since = before.is_some_and(ResourceState::is_named_as_manifest)
        && fetch.manifest.is_none()
        && fetch.discovery != Discovery::Submitted;
    let (discovery, status) =
        if is_named_since { (Discovery::Submitted, None) } else { (fetch.discovery, fetch.status) };
    // Documents that were not requested are unchanged, except for a manifest whose parts changed.
    if let (FetchOutcome::Fresh | FetchOutcome::NotReached | FetchOutcome::OverBudget, Some(before)) =
        (fetch.outcome, before)
    {
        let content_hash = if content_changed { &fetch.content_hash } else { &before.content_hash };
        return ResourceState {
            content_hash: content_hash.clone(),
            changed_at,
            // the site may now link to a document to which only other sites linked before
            discovery,
            linked_from: fetch.linked_from.clone(),
            ..before.clone()
        };
    }
    let (etag, last_modified, cache, hash) = before
        .filter(|_| !is_new_body)
        .map(|before| {
            let kept = before.clone();
            (kept.etag, kept.last_modified, kept.cache, kept.content_hash)
        })
        .unwrap_or_default();
    ResourceState {
        url: fetch.url.clone(),
        manifest_id: None,
        discovery,
        linked_from: fetch.linked_from.clone(),
        outcome: fetch.outcome,
        status,
        etag: fetch.etag.clone().or(etag),
        last_modified: fetch.last_modified.clone().or(last_modified),
        cache: fetch.cache.clone().or(cache),
        fresh_until: fetch.fresh_until,
        content_hash: fetch.content_hash.clone().or(hash),
        fetched_at: fetch.at,
        changed_at,
        misses_in_row,
    }
}
