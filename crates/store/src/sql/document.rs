//! Documents: bytes as published, once for each content, compressed.

use manifest::ContentHash;

use super::Connection;
use crate::convert::to_i64;
use crate::fault::Outcome;
use crate::packed::PackedDocument;
use crate::prepare::PreparedDocument;

/// Stores a document. If bytes with the same hash but other content are stored, they are damaged and replaced.
///
/// The row is locked only if it is written. `ON CONFLICT DO UPDATE` would always lock it, and other visits that store the same document
/// would wait for this transaction to end.
pub(crate) async fn document_keep(
    connection: &mut Connection,
    hash: &ContentHash,
    document: &PreparedDocument,
    now_ms: i64,
) -> Outcome<()> {
    let inserted = sqlx::query(
        "INSERT INTO document (hash, body, bytes, first_seen_at_ms, body_hash) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (hash) DO NOTHING",
    )
    .bind(hash.as_str())
    .bind(document.body.as_slice())
    .bind(to_i64(document.bytes))
    .bind(now_ms)
    .bind(document.hash.as_str())
    .execute(&mut *connection)
    .await?
    .rows_affected();
    if inserted > 0 {
        return Ok(());
    }
    sqlx::query(
        "UPDATE document SET body = $2, bytes = $3, body_hash = $4
         WHERE hash = $1 AND (body <> $2 OR COALESCE(body_hash, '') <> $4)",
    )
    .bind(hash.as_str())
    .bind(document.body.as_slice())
    .bind(to_i64(document.bytes))
    .bind(document.hash.as_str())
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The bytes as published, and their hash.
pub(crate) async fn document_find(
    connection: &mut Connection,
    hash: &ContentHash,
) -> Outcome<Option<PackedDocument>> {
    let row: Option<(Vec<u8>, Option<String>)> =
        sqlx::query_as("SELECT body, body_hash FROM document WHERE hash = $1")
            .bind(hash.as_str())
            .fetch_optional(&mut *connection)
            .await?;
    Ok(row.map(|(body, body_hash)| PackedDocument { hash: hash.to_string(), body, body_hash }))
}

/// Removes the listed documents that are no longer referenced.
pub(crate) async fn documents_drop_unused(connection: &mut Connection, hashes: &str) -> Outcome<u64> {
    let dropped = sqlx::query(concat!(
        "DELETE FROM document WHERE hash IN ",
        list!(),
        " AND NOT EXISTS (SELECT 1 FROM manifest_version WHERE manifest_version.document_hash = document.hash)
         AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.document_hash = document.hash)"
    ))
    .bind(hashes)
    .execute(&mut *connection)
    .await?;
    Ok(dropped.rows_affected())
}
