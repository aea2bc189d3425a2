//! The change feed, without gaps under concurrent writers.
//!
//! Writers insert changes into `feed_pending` in their own transactions, without a position. One sequencer at a time moves committed
//! changes into `feed` and takes positions from a one-row counter, so each position belongs to a row that is visible to others. Changes of
//! one manifest keep their order, because a transaction locks the row of the site until it ends. With a database whose write transactions
//! cannot overlap, the writer sequences its own changes.

use std::borrow::Cow;

use manifest::SiteName;
use serde::Serialize;

use super::rows::{Cursor, decode, decode_row};
use super::{Connection, SEQUENCED_BY_WRITER, SEQUENCER_LOCK, batch, retention};
use crate::StoreError;
use crate::convert::{Page, RowRef, intact, json, log_damaged, millis, text_of, to_i64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{FeedEntry, FeedPage, FeedPosition};
use crate::plan::Change;

/// Rows of one transaction: enough to keep up with thousands of changes a second.
const SEQUENCE_BATCH: i64 = 5_000;

/// A row of `feed`, or of `feed_pending`, whose position is its id.
#[derive(Serialize)]
struct FeedRow {
    position: i64,
    at_ms: i64,
    change: String,
    site: String,
    manifest_id: String,
    reason: Option<String>,
}

from_row!(FeedRow { position, at_ms, change, site, manifest_id, reason });

impl TryFrom<FeedRow> for FeedEntry {
    type Error = StoreError;

    fn try_from(row: FeedRow) -> Result<Self, StoreError> {
        let id = row.position.to_string();
        let at = RowRef::new("feed", &id);
        Ok(Self {
            position: FeedPosition(row.position),
            at: at.time("at_ms", row.at_ms)?,
            change: at.parse("change", &row.change)?,
            site: at.parse("site", &row.site)?,
            manifest_id: at.parse("manifest_id", &row.manifest_id)?,
            reason: row.reason,
        })
    }
}

#[derive(Serialize)]
struct ChangeRow<'a> {
    at_ms: i64,
    change: &'a str,
    manifest_id: &'a str,
    reason: Option<Cow<'a, str>>,
}

impl<'a> From<&'a Change> for ChangeRow<'a> {
    fn from(change: &'a Change) -> Self {
        Self {
            at_ms: millis(change.at),
            change: change.what.as_str(),
            manifest_id: change.manifest_id.as_str(),
            reason: text_of(change.reason.as_ref()),
        }
    }
}

/// Adds changes of a site to the feed, in the writer's transaction.
pub(crate) async fn feed_append(
    connection: &mut Connection,
    site: &SiteName,
    changes: &[Change],
) -> Outcome<()> {
    if changes.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!(
        "INSERT INTO feed_pending (at_ms, change, site, manifest_id, reason)
         SELECT at_ms, change, $2, manifest_id, reason FROM ",
        batch!(at_ms BIGINT, change TEXT, manifest_id TEXT, reason TEXT)
    ))
    .bind(json(&changes.iter().map(ChangeRow::from).collect::<Vec<_>>(), "batch of changes")?)
    .bind(site.as_str())
    .execute(&mut *connection)
    .await?;
    if SEQUENCED_BY_WRITER {
        feed_sequence(connection).await?;
    }
    Ok(())
}

/// Whether committed changes wait for their positions.
pub(crate) async fn feed_waits(connection: &mut Connection) -> Outcome<bool> {
    let waiting: Option<i64> = sqlx::query_scalar("SELECT id FROM feed_pending ORDER BY id LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    Ok(waiting.is_some())
}

/// Assigns positions to a batch of committed changes; returns their number. Waits for other sequencers. If the number is less than
/// [`SEQUENCE_BATCH`], all changes that were committed before the call have positions afterwards.
pub(crate) async fn feed_sequence(connection: &mut Connection) -> Outcome<i64> {
    if let Some(lock) = SEQUENCER_LOCK {
        sqlx::query(lock).execute(&mut *connection).await?;
    }
    let rows = sqlx::query(
        "DELETE FROM feed_pending WHERE id IN (SELECT id FROM feed_pending ORDER BY id LIMIT $1)
         RETURNING id AS position, at_ms, change, site, manifest_id, reason",
    )
    .bind(SEQUENCE_BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let mut moved: Vec<FeedRow> = intact(decode(&["feed_pending"], &rows), Ok);
    if moved.is_empty() {
        return Ok(0);
    }
    moved.sort_unstable_by_key(|row| row.position);
    let count = i64::try_from(moved.len()).unwrap_or(SEQUENCE_BATCH);
    let last: i64 = sqlx::query_scalar(
        "UPDATE feed_state SET last_position = last_position + $1 WHERE id = 1 RETURNING last_position",
    )
    .bind(count)
    .fetch_one(&mut *connection)
    .await?;
    for (row, position) in moved.iter_mut().zip(last - count + 1..) {
        row.position = position;
    }
    sqlx::query(concat!(
        "INSERT INTO feed (position, at_ms, change, site, manifest_id, reason)
         SELECT position, at_ms, change, site, manifest_id, reason FROM ",
        batch!(
            position BIGINT, at_ms BIGINT, change TEXT, site TEXT, manifest_id TEXT, reason TEXT
        )
    ))
    .bind(json(&moved, "batch of feed entries")?)
    .execute(&mut *connection)
    .await?;
    Ok(count)
}

/// Entries after a position, in order.
pub(crate) async fn feed_page(
    connection: &mut Connection,
    after: FeedPosition,
    max: i64,
) -> Outcome<FeedPage> {
    let (mut page, mut read_to) = (Page::new(max), Cursor::after(after.0));
    while let Some(wanted) = page.wanted() {
        // a damaged position beyond the last one would end the feed for its readers
        let rows = sqlx::query(
            "SELECT position, at_ms, change, site, manifest_id, reason FROM feed
             WHERE position > $1 AND position <= (SELECT last_position FROM feed_state WHERE id = 1)
             ORDER BY position LIMIT $2",
        )
        .bind(read_to.key)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        let after = read_to.key;
        read_to.pass(&rows);
        let is_first_gone = rows.is_empty() || read_to.key - after > to_i64(rows.len() as u64);
        if after > 0 && is_first_gone {
            let first = retention::feed_first(connection).await?;
            if first.0 > after.saturating_add(1) {
                return Err(StoreError::FeedOutrun { after: FeedPosition(after), first }.into());
            }
        }
        page.add(decode::<FeedRow>(&["feed"], &rows), FeedEntry::try_from);
    }
    Ok(FeedPage { entries: page.values, read_to: FeedPosition(read_to.key) })
}

/// Entries of one site before a position, latest first.
pub(crate) async fn feed_of_site(
    connection: &mut Connection,
    site: &str,
    before: FeedPosition,
    max: i64,
) -> Outcome<Vec<FeedEntry>> {
    let (mut page, mut before) = (Page::new(max), Cursor::after(before.0));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(
            "SELECT position, at_ms, change, site, manifest_id, reason FROM feed
             WHERE site = $1 AND position < $2 ORDER BY position DESC LIMIT $3",
        )
        .bind(site)
        .bind(before.key)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        before.pass(&rows);
        page.add(decode::<FeedRow>(&["feed"], &rows), FeedEntry::try_from);
    }
    Ok(page.values)
}

/// Entries of one site after a position, oldest first.
pub(crate) async fn feed_of_site_after(
    connection: &mut Connection,
    site: &str,
    after: FeedPosition,
    max: i64,
) -> Outcome<Vec<FeedEntry>> {
    let (mut page, mut after) = (Page::new(max), Cursor::after(after.0));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(
            "SELECT position, at_ms, change, site, manifest_id, reason FROM feed
             WHERE site = $1 AND position > $2 AND position <= (SELECT last_position FROM feed_state WHERE id = 1)
             ORDER BY position LIMIT $3",
        )
        .bind(site)
        .bind(after.key)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        after.pass(&rows);
        page.add(decode::<FeedRow>(&["feed"], &rows), FeedEntry::try_from);
    }
    Ok(page.values)
}

/// The position before the first entry at or after a time; the last position if there is none.
pub(crate) async fn feed_position_at(connection: &mut Connection, at_ms: i64) -> Outcome<FeedPosition> {
    let oldest = sqlx::query("SELECT position, at_ms FROM feed WHERE position > 0 ORDER BY position LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    let oldest: Option<(i64, i64)> = oldest.and_then(|row| log_damaged(decode_row(&["feed"], &row)));
    if let Some((position, _)) = oldest.filter(|(_, oldest_ms)| *oldest_ms >= at_ms) {
        return Ok(FeedPosition(position - 1));
    }
    // The expression prevents the planner from scanning the index of positions from the oldest entry.
    let first: Option<i64> =
        sqlx::query_scalar("SELECT MIN(position + 0) FROM feed WHERE at_ms >= $1 AND position > 0")
            .bind(at_ms)
            .fetch_one(&mut *connection)
            .await?;
    match first {
        Some(first) => Ok(FeedPosition(first - 1)),
        None => feed_head(connection).await,
    }
}

/// Position of the last entry.
pub(crate) async fn feed_head(connection: &mut Connection) -> Outcome<FeedPosition> {
    let head = sqlx::query_scalar("SELECT last_position FROM feed_state WHERE id = 1")
        .fetch_one(&mut *connection)
        .await?;
    Ok(FeedPosition(head))
}

/// The random id of this feed.
pub(crate) async fn feed_id(connection: &mut Connection) -> Outcome<String> {
    Ok(sqlx::query_scalar("SELECT feed_id FROM feed_state WHERE id = 1").fetch_one(&mut *connection).await?)
}
