//! The servers of `GET /v0.1/servers` that are no longer listed, so that mirrors delete them: their manifests were removed, or no longer count
//! as published by their site.
//!
//! Both are read from the change feed. A server is left out if its manifest is listed again, if another manifest declares its
//! name and version now, or if its data was deleted, as after an opt-out. A request reads a limited number of entries and manifests.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use axum::http::StatusCode;
use manifest::ManifestId;
use policy::naming::may_speak;
use store::{FeedChange, FeedEntry, FeedPosition};
use tokio::time::Instant;

use super::mcp_server_filter::ServerFilter;
use super::mcp_server_names::{name, version};
use super::mcp_server_versions::versions_declared;
use super::mcp_servers::{ServerEntry, describes_server};
use crate::client::Client;
use crate::problem::Problem;
use crate::state::App;

/// Entries of the feed read with one statement, and maximum number of statements of one request.
const ENTRIES: u32 = 1_000;
const PAGES_MAX: u32 = 10;
/// Maximum number of removed manifests that one request reads.
const READ_MAX: usize = 100;
/// A request that has read removed manifests for this long ends its page, so that the next one continues.
const TIME_MAX: Duration = Duration::from_secs(2);

/// The next `max` removed servers after a position of the feed, and the position of the next page.
pub(super) async fn tombstones(
    app: &App,
    client: Client,
    filter: &ServerFilter,
    from: FeedPosition,
    max: usize,
) -> Result<(Vec<ServerEntry>, Option<FeedPosition>), Problem> {
    let (head, first) = (app.store.feed_head().await?, app.store.feed_first().await?);
    let mut after = from.max(FeedPosition(first.0 - 1));
    let mut found = Vec::new();
    let (mut read, mut listed) = (0, HashSet::new());
    let began = Instant::now();
    for _ in 0..PAGES_MAX {
        if after >= head {
            return Ok((found, None));
        }
        let page = app.store.feed_page(after, ENTRIES).await?;
        let endings = || page.entries.iter().filter(|entry| may_end_listing(entry));
        // a manifest that was removed, added and removed again is listed with the last reason and time
        let last: HashMap<&ManifestId, FeedPosition> =
            endings().map(|entry| (&entry.manifest_id, entry.position)).collect();
        for entry in endings().filter(|entry| last.get(&entry.manifest_id) == Some(&entry.position)) {
            if found.len() >= max || read == READ_MAX || (read > 0 && began.elapsed() >= TIME_MAX) {
                return Ok((found, Some(FeedPosition(entry.position.0 - 1))));
            }
            if !listed.insert(entry.manifest_id.clone()) {
                continue;
            }
            read += 1;
            found.extend(tombstone(app, client, filter, entry).await?);
        }
        if page.read_to == after {
            return Ok((found, None));
        }
        after = page.read_to;
    }
    Ok((found, (after < head).then_some(after)))
}

/// Whether a server may no longer be listed after a change. After a change of the publisher, the manifest decides.
fn may_end_listing(entry: &FeedEntry) -> bool {
    let is_of_others = |reason: &str| reason == "named_by_others" || reason.starts_with("published_by_");
    match entry.change {
        FeedChange::Removed => true,
        FeedChange::StatusChanged => entry.reason.as_deref().is_some_and(is_of_others),
        _ => false,
    }
}

async fn tombstone(
    app: &App,
    client: Client,
    filter: &ServerFilter,
    entry: &FeedEntry,
) -> Result<Option<ServerEntry>, Problem> {
    let manifests = app.manifests(client);
    let is_in_index = !app.store.manifest_sizes(std::slice::from_ref(&entry.manifest_id)).await?.is_empty();
    let Some(stored) = manifests.find_for_tombstone(&entry.manifest_id).await? else { return Ok(None) };
    let counts = may_speak(stored.named_by, stored.publisher);
    let was_listed = counts || entry.change == FeedChange::StatusChanged;
    let is_listed = counts && is_in_index;
    if is_listed || !was_listed || !describes_server(&stored.manifest) || !filter.names(&stored) {
        return Ok(None);
    }
    let (name, version) = (name(&stored).0, version(&stored.manifest).0);
    let removed = ServerEntry::removed(&stored, entry);
    drop(stored);
    let declared = match versions_declared(app, client, &name).await {
        Ok(declared) => declared,
        Err(problem) if problem.body().status == StatusCode::NOT_FOUND => Vec::new(),
        Err(problem) => return Err(problem),
    };
    if declared.contains(&version) || filter.wants_latest() && !declared.is_empty() {
        return Ok(None);
    }
    Ok(removed.map(|removed| removed.with_latest(declared.is_empty())))
}
