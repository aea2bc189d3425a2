//! Opt-out by the site owner (block) and suspension by the operator. Both remain when the content is purged, so that no seed adds the site
//! again. A site may have both; it is visited again when both are lifted.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Utc};
use manifest::SiteName;
use policy::Status;

use super::compaction::sites_expand;
use super::{Connection, document, feed, version};
use crate::convert::{NEVER_MS, RowRef, UNPLANNED_MS, json, millis, names, text};
use crate::fault::Outcome;
use crate::model::{BlockOutcome, BlockRecord, FeedChange, SuspensionOutcome, SuspensionRecord};
use crate::plan::Change;

/// Reason of the feed entries.
const REASON: &str = "opted_out";

/// Deletes all content of a site, and all data that could cause a request. Clocks and claims are kept. Watches of the site end after they have
/// delivered the removals ([`super::watch::watches_ended`]).
const PURGES: [&str; 18] = [
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
    "DELETE FROM search_count WHERE site = $1",
    "DELETE FROM capability_search_count WHERE site = $1",
    "DELETE FROM host_check WHERE site = $1",
    "DELETE FROM registry_entry WHERE site = $1",
    "DELETE FROM delivery WHERE watch_id IN (SELECT id FROM watch WHERE receiver_site = $1)",
    "DELETE FROM watch WHERE receiver_site = $1",
    "DELETE FROM receiver_day WHERE receiver_site = $1",
    "UPDATE site_link SET is_open = 0 WHERE site = $1",
];

/// Deletes the waiting messages of watched searches that have texts of a site. Their watches move back to the first change of such a message,
/// so that it is composed again without these texts.
const MESSAGE_PURGES: [&str; 2] = [
    "UPDATE watch SET position = COALESCE((SELECT MIN(first_position) - 1 FROM delivery
         WHERE watch_id = watch.id AND body LIKE '%\"site\":\"' || $1 || '\"%'), position)
     WHERE search IS NOT NULL",
    "DELETE FROM delivery WHERE body LIKE '%\"site\":\"' || $1 || '\"%'
         AND watch_id IN (SELECT id FROM watch WHERE search IS NOT NULL)",
];

/// Locks the watches of searches before [`MESSAGE_PURGES`]. A worker moves its watch before it stores a message ([`super::delivery::delivery_add`]).
/// A statement in PostgreSQL sees what was committed before it began: without the lock, the first purge would not see the message of a worker
/// for which it waits, and the second would delete it.
const WATCHES_LOCK: &str = "UPDATE watch SET position = position WHERE search IS NOT NULL";

/// Deletes what only a suspended site needs: its claim, with whose key the owner objects, reports, the objection, and the operator's note and
/// places, which may quote the site.
const OPT_OUT_PURGES: [&str; 3] = [
    "DELETE FROM site_claim WHERE site = $1",
    "DELETE FROM report WHERE site = $1",
    "UPDATE suspension SET note = '', places = NULL, objection = NULL, objected_at_ms = NULL, answer = NULL, answered_at_ms = NULL
     WHERE site = $1",
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
    let purge = Purge { status: Status::OptedOut, feed_reason: Cow::Borrowed(REASON) };
    let (manifests_removed, documents_removed) = site_purge(connection, site, &purge, now).await?;
    for purge in OPT_OUT_PURGES {
        sqlx::query(purge).bind(site.as_str()).execute(&mut *connection).await?;
    }
    Ok(BlockOutcome::Blocked { manifests_removed, documents_removed })
}

/// The new status of a site whose content is purged, and the reason for it in the feed.
struct Purge {
    status: Status,
    feed_reason: Cow<'static, str>,
}

/// Ends the lease of a site, removes its manifests from the index, and purges its content. Returns how many manifests and
/// documents were removed.
async fn site_purge(
    connection: &mut Connection,
    site: &SiteName,
    purge: &Purge,
    now: DateTime<Utc>,
) -> Outcome<(u32, u32)> {
    sites_expand(connection, &names([site.as_str()])?).await?;
    site_close(connection, site, purge.status, now).await?;
    let manifests_removed = feed_removal(connection, site, &purge.feed_reason, now).await?;
    let documents = version::documents_of_site(connection, site).await?;
    sqlx::query(WATCHES_LOCK).execute(&mut *connection).await?;
    for purge in MESSAGE_PURGES {
        sqlx::query(purge).bind(site.as_str()).execute(&mut *connection).await?;
    }
    content_purge(connection, site).await?;
    let listed = names(documents.iter().map(String::as_str))?;
    let dropped = document::documents_drop_unused(connection, &listed).await?;
    Ok((manifests_removed, u32::try_from(dropped).unwrap_or(u32::MAX)))
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

/// Deletes all content of a site, and all data that could cause a request.
pub(crate) async fn content_purge(connection: &mut Connection, site: &SiteName) -> Outcome<()> {
    for purge in PURGES {
        sqlx::query(purge).bind(site.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Removes the planned visit, and raises the fence so that a visit in progress is not saved. Adds the site if it is not known.
async fn site_close(
    connection: &mut Connection,
    site: &SiteName,
    status: Status,
    now: DateTime<Utc>,
) -> Outcome<()> {
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
    .bind(status.as_str())
    .bind(millis(now))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Lifts a block. False if there was none.
pub(crate) async fn site_unblock(connection: &mut Connection, site: &SiteName, now_ms: i64) -> Outcome<bool> {
    row_lift(connection, "DELETE FROM block WHERE site = $1", site, now_ms).await
}

/// Lifts a suspension. False if there was none.
pub(crate) async fn site_unsuspend(
    connection: &mut Connection,
    site: &SiteName,
    now_ms: i64,
) -> Outcome<bool> {
    row_lift(connection, "DELETE FROM suspension WHERE site = $1", site, now_ms).await
}

async fn row_lift(
    connection: &mut Connection,
    delete: &'static str,
    site: &SiteName,
    now_ms: i64,
) -> Outcome<bool> {
    let lifted = sqlx::query(delete).bind(site.as_str()).execute(&mut *connection).await?.rows_affected() > 0;
    if lifted {
        site_reopen(connection, site, now_ms).await?;
    }
    Ok(lifted)
}

/// Makes a site due after a block or a suspension was lifted, unless the other one still applies. A site that neither a seed nor a link
/// names has no host to visit and does not become due.
async fn site_reopen(connection: &mut Connection, site: &SiteName, now_ms: i64) -> Outcome<()> {
    let status = if block_find(connection, site.as_str()).await?.is_some() {
        Status::OptedOut
    } else if is_suspended(connection, site).await? {
        Status::Suspended
    } else {
        Status::Pending
    };
    let is_named: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM host WHERE site = $1 AND seeded > 0)")
            .bind(site.as_str())
            .fetch_one(&mut *connection)
            .await?;
    let next_visit_at_ms = match (status, is_named) {
        (Status::Pending, true) => now_ms,
        (Status::Pending, false) => UNPLANNED_MS,
        _ => NEVER_MS,
    };
    sqlx::query("UPDATE site SET next_visit_at_ms = $2 WHERE name = $1")
        .bind(site.as_str())
        .bind(next_visit_at_ms)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE site_state SET status = $2 WHERE name = $1")
        .bind(site.as_str())
        .bind(status.as_str())
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The listed sites that are blocked or suspended.
pub(crate) async fn blocked_among(connection: &mut Connection, sites: &str) -> Outcome<HashSet<String>> {
    let blocked = sqlx::query_scalar(concat!(
        "SELECT site FROM block WHERE site IN ",
        list!(),
        " UNION ALL SELECT site FROM suspension WHERE site IN ",
        list!()
    ))
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

/// Suspends a site: ends its lease, removes its manifests from the index, purges its content. Reports about it are kept, and the claim of its
/// owner, who may object.
pub(crate) async fn site_suspend(
    connection: &mut Connection,
    site: &SiteName,
    suspension: &SuspensionRecord,
) -> Outcome<SuspensionOutcome> {
    let places = (!suspension.places.is_empty()).then(|| json(&suspension.places, "places")).transpose()?;
    let inserted = sqlx::query(
        "INSERT INTO suspension (site, reason, note, suspended_at_ms, places) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (site) DO NOTHING",
    )
    .bind(site.as_str())
    .bind(suspension.reason.as_str())
    .bind(text(&suspension.note))
    .bind(millis(suspension.at))
    .bind(places)
    .execute(&mut *connection)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(SuspensionOutcome::AlreadySuspended);
    }
    let is_blocked = block_find(connection, site.as_str()).await?.is_some();
    let purge = Purge {
        status: if is_blocked { Status::OptedOut } else { Status::Suspended },
        // the feed contains the reason, so that consumers need no second request
        feed_reason: Cow::Owned(suspension.reason.feed_reason()),
    };
    let (manifests_removed, documents_removed) = site_purge(connection, site, &purge, suspension.at).await?;
    Ok(SuspensionOutcome::Suspended { manifests_removed, documents_removed })
}

async fn is_suspended(connection: &mut Connection, site: &SiteName) -> Outcome<bool> {
    let found = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM suspension WHERE site = $1)");
    Ok(found.bind(site.as_str()).fetch_one(&mut *connection).await?)
}
