//! Deletes by age: feed entries that every reader of the feed has read, and versions that are not current.

use super::{Connection, document, for_update};
use crate::convert::{RowRef, names};
use crate::fault::Outcome;
use crate::model::retention::FeedTrimmed;
use crate::model::{FeedPosition, FeedReader};

/// Maximum stored bytes of one site in versions that are not current.
const OLD_VERSIONS_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Rows of one transaction.
const BATCH: i64 = 5_000;

/// Registers a reader of the feed or updates its position.
pub(crate) async fn feed_reader_save(
    connection: &mut Connection,
    name: &str,
    position: FeedPosition,
    now_ms: i64,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO feed_reader (name, position, seen_at_ms) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET position = excluded.position, seen_at_ms = excluded.seen_at_ms",
    )
    .bind(name)
    .bind(position.0)
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Unregisters a reader of the feed. Returns whether there was one.
pub(crate) async fn feed_reader_forget(connection: &mut Connection, name: &str) -> Outcome<bool> {
    let gone =
        sqlx::query("DELETE FROM feed_reader WHERE name = $1").bind(name).execute(&mut *connection).await?;
    Ok(gone.rows_affected() > 0)
}

/// Every reader of the feed, the slowest first.
pub(crate) async fn feed_readers(connection: &mut Connection) -> Outcome<Vec<FeedReader>> {
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as("SELECT name, position, seen_at_ms FROM feed_reader ORDER BY position, name")
            .fetch_all(&mut *connection)
            .await?;
    // A damaged reader must not be left out, because retention keeps the entries that the slowest reader has not read.
    let reader = |(name, position, seen_at_ms): (String, i64, i64)| {
        let seen_at = RowRef::new("feed_reader", &name).nearest_time("seen_at_ms", seen_at_ms);
        FeedReader { name, position: FeedPosition(position), seen_at }
    };
    Ok(rows.into_iter().map(reader).collect())
}

/// Position of the first remaining entry.
pub(crate) async fn feed_first(connection: &mut Connection) -> Outcome<FeedPosition> {
    let first = sqlx::query_scalar("SELECT first_position FROM feed_state WHERE id = 1")
        .fetch_one(&mut *connection)
        .await?;
    Ok(FeedPosition(first))
}

/// Deletes a batch of entries that are older than a time and that every registered reader has read. The lock on the row of `feed_state`
/// serialises retention and sequencers.
pub(crate) async fn feed_trim(connection: &mut Connection, before_ms: i64) -> Outcome<FeedTrimmed> {
    let (first, last): (i64, i64) = sqlx::query_as(concat!(
        "SELECT first_position, last_position FROM feed_state WHERE id = 1",
        for_update!()
    ))
    .fetch_one(&mut *connection)
    .await?;
    // Deletion stops at the first recent entry, even if later entries are older.
    let batch_until = last.min(first.saturating_add(BATCH - 1));
    let recent: Option<i64> = sqlx::query_scalar(
        "SELECT MIN(position + 0) FROM feed WHERE position >= $1 AND position <= $2 AND at_ms >= $3",
    )
    .bind(first)
    .bind(batch_until)
    .bind(before_ms)
    .fetch_one(&mut *connection)
    .await?;
    let old_until = recent.map_or(batch_until, |position| position - 1);
    let slowest = feed_readers(connection).await?.into_iter().next();
    let read_until = slowest.as_ref().map_or(i64::MAX, |reader| reader.position.0);
    let until = old_until.min(read_until);
    let held_back_by = slowest.filter(|reader| reader.position.0 < old_until).map(|reader| reader.name);
    if until < first {
        return Ok(FeedTrimmed { entries: 0, held_back_by });
    }
    let gone = sqlx::query("DELETE FROM feed WHERE position >= $1 AND position <= $2")
        .bind(first)
        .bind(until)
        .execute(&mut *connection)
        .await?;
    sqlx::query("UPDATE feed_state SET first_position = $1 WHERE id = 1")
        .bind(until + 1)
        .execute(&mut *connection)
        .await?;
    Ok(FeedTrimmed { entries: gone.rows_affected(), held_back_by })
}

/// Deletes a batch of versions that are not current and were last seen before a time, with unused documents.
pub(crate) async fn versions_trim(connection: &mut Connection, before_ms: i64) -> Outcome<u64> {
    let gone: Vec<(String, Option<String>)> = sqlx::query_as(
        "DELETE FROM manifest_version WHERE (manifest_id, version) IN (
             SELECT manifest_id, manifest_version.version FROM manifest_version
             JOIN manifest ON manifest.id = manifest_version.manifest_id
             WHERE manifest_version.last_seen_at_ms < $1 AND manifest_version.version < manifest.version
             ORDER BY manifest_version.last_seen_at_ms LIMIT $2)
         RETURNING manifest_id, document_hash",
    )
    .bind(before_ms)
    .bind(BATCH)
    .fetch_all(&mut *connection)
    .await?;
    let documents = gone.iter().filter_map(|(_, document)| document.as_deref());
    document::documents_drop_unused(connection, &names(documents)?).await?;
    Ok(gone.len() as u64)
}

/// Deletes the oldest of a site's versions that are not in the index, until these versions and their documents take at most
/// [`OLD_VERSIONS_BYTES_MAX`], with unused documents: first those of documents that only others name, and last those of documents that the
/// site publishes. A manifest that left the index is deleted with its last version.
pub(crate) async fn versions_bound(connection: &mut Connection, site: &str) -> Outcome<()> {
    let gone: Vec<(String, Option<String>)> = sqlx::query_as(concat!(
        "DELETE FROM manifest_version WHERE (manifest_id, version) IN (
             SELECT manifest_id, version FROM (
                 SELECT kept.manifest_id, kept.version,
                        SUM(length(kept.model) + COALESCE(length(document.body), 0))
                            OVER (ORDER BY ",
        trust_rank!(),
        ", kept.last_seen_at_ms DESC, kept.version DESC, kept.manifest_id) AS bytes
                 FROM manifest
                 JOIN manifest_version kept ON kept.manifest_id = manifest.id
                 LEFT JOIN document ON document.hash = kept.document_hash
                 WHERE manifest.site = $1
                   AND (kept.version < manifest.version OR manifest.removed_at_ms IS NOT NULL)) AS old
             WHERE old.bytes > $2)
         RETURNING manifest_id, document_hash",
    ))
    .bind(site)
    .bind(OLD_VERSIONS_BYTES_MAX)
    .fetch_all(&mut *connection)
    .await?;
    if gone.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "DELETE FROM manifest WHERE site = $1 AND removed_at_ms IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM manifest_version WHERE manifest_version.manifest_id = manifest.id)",
    )
    .bind(site)
    .execute(&mut *connection)
    .await?;
    let documents = gone.iter().filter_map(|(_, document)| document.as_deref());
    document::documents_drop_unused(connection, &names(documents)?).await?;
    tracing::warn!(
        site.name = site,
        versions = gone.len(),
        bytes_max = OLD_VERSIONS_BYTES_MAX,
        "old versions of a site are deleted"
    );
    Ok(())
}
