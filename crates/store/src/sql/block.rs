//! Opt-out: a block stays when the content is purged, so that no seed adds the site again.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::Status;

use super::compaction::sites_expand;
use super::{Connection, document, feed, version};
use crate::convert::{NEVER_MS, RowRef, millis, names, text};
use crate::fault::Outcome;
use crate::model::{BlockOutcome, BlockRecord, FeedChange};
use crate::plan::Change;

/// Reason of the feed entries.
const REASON: &str = "opted_out";

/// Everything of a site that is content or could cause a request; clocks stay.
const PURGES: [&str; 13] = [
    "DELETE FROM capability_type WHERE manifest_id IN (SELECT id FROM manifest WHERE site = $1)",
    "DELETE FROM capability WHERE manifest_id IN (SELECT id FROM manifest WHERE site = $1)",
    "DELETE FROM declaration WHERE site = $1",
    "DELETE FROM manifest_version WHERE manifest_id IN (SELECT id FROM manifest WHERE site = $1)",
    "DELETE FROM manifest WHERE site = $1",
    "DELETE FROM resource WHERE site = $1",
    "DELETE FROM robots WHERE site = $1",
    "DELETE FROM visit WHERE site = $1",
    "DELETE FROM feedback WHERE site = $1",
    "DELETE FROM read_attempt WHERE site = $1",
    "DELETE FROM site_claim WHERE site = $1",
    "DELETE FROM search_count WHERE site = $1",
    "UPDATE site_link SET is_open = 0 WHERE site = $1",
];

/// Blocks a site: ends its lease, removes its manifests from the index, purges its content.
pub(crate) async fn site_block(
    connection: &mut Connection,
    site: &SiteName,
    reason: &str,
    now: DateTime<Utc>,
) -> Outcome<BlockOutcome> {
    let inserted = sqlx::query(
        "INSERT INTO block (site, reason, blocked_at_ms) VALUES ($1, $2, $3) ON CONFLICT (site) DO NOTHING",
    )
    .bind(site.as_str())
    .bind(text(reason))
    .bind(millis(now))
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(BlockOutcome::AlreadyBlocked);
    }
    sites_expand(connection, &names([site.as_str()])?).await?;
    site_close(connection, site, now).await?;
    let manifests_removed = feed_removal(connection, site, REASON, now).await?;
    let documents = version::documents_of_site(connection, site).await?;
    content_purge(connection, site).await?;
    let listed = names(documents.iter().map(String::as_str))?;
    let dropped = document::documents_drop_unused(connection, &listed).await?;
    Ok(BlockOutcome::Blocked {
        manifests_removed,
        documents_removed: u32::try_from(dropped).unwrap_or(u32::MAX),
    })
}

/// Adds the removal of every manifest of a site to the feed; returns how many there were.
pub(crate) async fn feed_removal(
    connection: &mut Connection,
    site: &SiteName,
    reason: &str,
    now: DateTime<Utc>,
) -> Outcome<u32> {
    let removed: Vec<Change> = version::manifests_known(connection, site.as_str())
        .await?
        .into_iter()
        .filter(|(_, manifest)| manifest.in_index)
        .map(|(manifest_id, _)| Change {
            what: FeedChange::Removed,
            manifest_id,
            at: now,
            reason: Some(reason.to_owned()),
        })
        .collect();
    feed::feed_append(connection, site, &removed).await?;
    Ok(u32::try_from(removed.len()).unwrap_or(u32::MAX))
}

/// Deletes everything of a site that is content or could cause a request.
pub(crate) async fn content_purge(connection: &mut Connection, site: &SiteName) -> Outcome<()> {
    for purge in PURGES {
        sqlx::query(purge).bind(site.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Plans no visit, and raises the fence so that a visit under way is not saved. Adds the site if it is not known.
async fn site_close(connection: &mut Connection, site: &SiteName, now: DateTime<Utc>) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO site (name, priority, next_visit_at_ms) VALUES ($1, 2, $2)
         ON CONFLICT (name) DO UPDATE SET
             next_visit_at_ms = excluded.next_visit_at_ms, lease_owner = NULL, lease_until_ms = 0,
             fence = site.fence + 1",
    )
    .bind(site.as_str())
    .bind(NEVER_MS)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO site_state (name, status, first_seen_at_ms) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET
             status = excluded.status, paths_checked = NULL, parked_until_ms = NULL, parked_reason = NULL,
             parked_progress = NULL, next_visit_reason = NULL, manifests = 0, capabilities = 0, formats = ''",
    )
    .bind(site.as_str())
    .bind(Status::OptedOut.as_str())
    .bind(millis(now))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Lifts a block; the site is due at once. False where there was none.
pub(crate) async fn site_unblock(connection: &mut Connection, site: &SiteName, now_ms: i64) -> Outcome<bool> {
    let lifted = sqlx::query("DELETE FROM block WHERE site = $1")
        .bind(site.as_str())
        .execute(&mut *connection)
        .await?;
    if lifted.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query("UPDATE site SET next_visit_at_ms = $2 WHERE name = $1")
        .bind(site.as_str())
        .bind(now_ms)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE site_state SET status = $2 WHERE name = $1")
        .bind(site.as_str())
        .bind(Status::Pending.as_str())
        .execute(&mut *connection)
        .await?;
    Ok(true)
}

/// Those of the listed sites that are blocked.
pub(crate) async fn blocked_among(connection: &mut Connection, sites: &str) -> Outcome<HashSet<String>> {
    let blocked = sqlx::query_scalar(concat!("SELECT site FROM block WHERE site IN ", list!()))
        .bind(sites)
        .fetch_all(&mut *connection)
        .await?;
    Ok(blocked.into_iter().collect())
}

/// The block of a site.
pub(crate) async fn block_find(connection: &mut Connection, site: &str) -> Outcome<Option<BlockRecord>> {
    let row: Option<(String, i64)> =
        sqlx::query_as("SELECT reason, blocked_at_ms FROM block WHERE site = $1")
            .bind(site)
            .fetch_optional(&mut *connection)
            .await?;
    let Some((reason, blocked_at_ms)) = row else { return Ok(None) };
    let at = RowRef::new("block", site).time("blocked_at_ms", blocked_at_ms)?;
    Ok(Some(BlockRecord { reason, at }))
}
