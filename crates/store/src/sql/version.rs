//! Versions of manifests: written by visits, read as history.

use std::collections::{BTreeMap, HashMap};

use manifest::model::PolicyChoice;
use manifest::{ContentHash, Manifest, ManifestId, READER_VERSION, SiteName};
use policy::Status;

use super::Connection;
use super::capability::{capabilities_add, capabilities_remove};
use super::document::{document_keep, documents_drop_unused};
use super::rows::{Row, decode};
use crate::convert::{RowRef, intact, log_damaged, millis, millis_of, names, to_i32, to_u32, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::known::KnownManifest;
use crate::model::VersionRecord;
use crate::packed::PackedVersion;
use crate::plan::{NewVersion, Touch};
use crate::prepare::{PreparedDocument, PreparedManifest, PreparedVisit};

struct KnownRow {
    id: String,
    content_hash: String,
    status: String,
    training: Option<String>,
    named_by: Option<String>,
    publisher: Option<String>,
    reader_version: Option<i64>,
    version: i32,
    removed_at_ms: Option<i64>,
    has_statements: Option<i32>,
    shares: Option<i32>,
}

from_row!(KnownRow {
    id,
    content_hash,
    status,
    training,
    named_by,
    publisher,
    reader_version,
    version,
    removed_at_ms,
    has_statements,
    shares
});

/// A site's manifests, including those that left the index.
pub(crate) async fn manifests_known(
    connection: &mut Connection,
    site: &str,
) -> Outcome<BTreeMap<ManifestId, KnownManifest>> {
    let rows = sqlx::query(
        "SELECT id, content_hash, status, training, named_by, version, removed_at_ms,
                CASE WHEN read_version = version THEN publisher END AS publisher,
                CASE WHEN read_version = version THEN reader_version END AS reader_version,
                (SELECT CASE WHEN fullness IS NULL OR statement IS NULL THEN 0 ELSE 1 END FROM capability
                 WHERE manifest_id = manifest.id LIMIT 1) AS has_statements,
                (SELECT 1 FROM declaration WHERE manifest_id = manifest.id LIMIT 1) AS shares
         FROM manifest WHERE site = $1",
    )
    .bind(site)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode(&["manifest"], &rows);
    let known = intact(rows, |row: KnownRow| {
        let at = RowRef::new("manifest", &row.id);
        let manifest_id = at.parse("id", &row.id)?;
        let manifest = KnownManifest {
            // A damaged value counts as different from the result of the visit, so it is replaced.
            hash: log_damaged(at.parse("content_hash", &row.content_hash))
                .unwrap_or_else(|| ContentHash::of(b"")),
            status: log_damaged(at.parse("status", &row.status)).unwrap_or(Status::Stale),
            training: log_damaged(at.parse_of("training", row.training.as_ref()))
                .flatten()
                .unwrap_or_default(),
            named_by: log_damaged(at.parse_of("named_by", row.named_by.as_ref())).flatten(),
            publisher: log_damaged(at.parse_of("publisher", row.publisher.as_ref())).flatten(),
            reader_version: row.reader_version,
            version: row.version,
            in_index: row.removed_at_ms.is_none(),
            lacks_statements: row.has_statements == Some(0),
            shares_capabilities: row.shares.is_some(),
        };
        Ok((manifest_id, manifest))
    });
    Ok(known.into_iter().collect())
}

/// Stored bytes of a site's indexed manifests and of the documents that complete them, by id. Models and bodies are added up.
pub(crate) async fn bytes_in_index(
    connection: &mut Connection,
    site: &SiteName,
) -> Outcome<HashMap<ManifestId, u64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT manifest.id, CAST(length(kept.model) AS BIGINT) + COALESCE(CAST(length(document.body) AS BIGINT), 0)
         FROM manifest
         JOIN manifest_version kept ON kept.manifest_id = manifest.id AND kept.version = manifest.version
         LEFT JOIN document ON document.hash = kept.document_hash
         WHERE manifest.site = $1 AND manifest.removed_at_ms IS NULL
         UNION ALL
         SELECT resource.id, CAST(length(document.body) AS BIGINT)
         FROM resource JOIN document ON document.hash = resource.document_hash
         WHERE resource.site = $1",
    )
    .bind(site.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let mut bytes: HashMap<ManifestId, u64> = HashMap::new();
    for (id, length) in rows {
        if let Some(id) = log_damaged(RowRef::new("manifest", &id).parse("id", &id)) {
            *bytes.entry(id).or_default() += to_u64(length);
        }
    }
    Ok(bytes)
}

/// Writes a new version and makes it the current one.
pub(crate) async fn version_add(
    connection: &mut Connection,
    site: &SiteName,
    new: &NewVersion<'_>,
    prepared: &PreparedVisit,
) -> Outcome<()> {
    let Some(rows) = prepared.manifest(&new.manifest.id) else { return Ok(()) };
    let at_ms = millis(new.fetch.at);
    let body = prepared.document(&new.manifest.id);
    if let Some(body) = body {
        document_keep(connection, &new.manifest.content_hash, body, at_ms).await?;
    }
    sqlx::query(
        "INSERT INTO manifest (id, site, url, format, status, version, content_hash, capabilities,
                               first_seen_at_ms, last_seen_at_ms, changed_at_ms, conformance, training,
                               named_by, publisher, reader_version, read_version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $9, $10, $11, $12, $13, $14, $6)
         ON CONFLICT (id) DO UPDATE SET
             format = excluded.format, status = excluded.status, version = excluded.version,
             content_hash = excluded.content_hash, capabilities = excluded.capabilities,
             last_seen_at_ms = excluded.last_seen_at_ms, changed_at_ms = excluded.changed_at_ms,
             conformance = excluded.conformance, training = excluded.training,
             named_by = excluded.named_by, publisher = excluded.publisher,
             reader_version = excluded.reader_version, read_version = excluded.read_version, removed_at_ms = NULL",
    )
    .bind(new.manifest.id.as_str())
    .bind(site.as_str())
    .bind(new.manifest.url.as_str())
    .bind(new.manifest.format().as_str())
    .bind(new.status.as_str())
    .bind(new.version)
    .bind(new.manifest.content_hash.as_str())
    .bind(to_i32(new.manifest.capabilities.len()))
    .bind(at_ms)
    .bind(new.manifest.level().as_str())
    .bind(training_text(new.training))
    .bind(new.naming.named_by.as_str())
    .bind(new.naming.publisher.as_str())
    .bind(i64::from(READER_VERSION))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO manifest_version (manifest_id, version, content_hash, document_hash, model, capabilities,
                                       findings, first_seen_at_ms, last_seen_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)",
    )
    .bind(new.manifest.id.as_str())
    .bind(new.version)
    .bind(new.manifest.content_hash.as_str())
    .bind(body.map(|_| new.manifest.content_hash.as_str()))
    .bind(rows.model.as_slice())
    .bind(to_i32(new.manifest.capabilities.len()))
    .bind(to_i32(new.manifest.findings.len()))
    .bind(at_ms)
    .execute(&mut *connection)
    .await?;
    if new.version > 1 {
        capabilities_remove(connection, &new.manifest.id).await?;
    }
    capabilities_add(connection, &new.manifest.id, site.as_str(), &rows.capabilities).await
}

/// `None` (SQL null) for a choice that is not stated.
fn training_text(training: PolicyChoice) -> Option<&'static str> {
    (!training.is_unset()).then(|| training.as_str())
}

/// Updates the status of an unchanged manifest, and when it was confirmed.
pub(crate) async fn version_touch(
    connection: &mut Connection,
    site: &SiteName,
    touch: &Touch<'_>,
    prepared: &PreparedVisit,
) -> Outcome<()> {
    let seen_at_ms = millis_of(touch.seen_at);
    sqlx::query(
        "UPDATE manifest SET status = $2, last_seen_at_ms = COALESCE(CAST($3 AS BIGINT), last_seen_at_ms),
                changed_at_ms = CASE WHEN removed_at_ms IS NULL THEN changed_at_ms
                                     ELSE COALESCE(CAST($3 AS BIGINT), changed_at_ms) END,
                training = $4, removed_at_ms = NULL WHERE id = $1",
    )
    .bind(touch.id.as_str())
    .bind(touch.status.as_str())
    .bind(seen_at_ms)
    .bind(training_text(touch.training))
    .execute(&mut *connection)
    .await?;
    if let Some(seen_at_ms) = seen_at_ms {
        sqlx::query(
            "UPDATE manifest_version SET last_seen_at_ms = $3 WHERE manifest_id = $1 AND version = $2",
        )
        .bind(touch.id.as_str())
        .bind(touch.version)
        .bind(seen_at_ms)
        .execute(&mut *connection)
        .await?;
    }
    let Some(rows) = prepared.manifest(&touch.id) else { return Ok(()) };
    if let Some(manifest) = touch.read_again {
        reading_replace(connection, touch, manifest, rows).await?;
    }
    if touch.read_again.is_some() || touch.returned.is_some() {
        capabilities_add(connection, &touch.id, site.as_str(), &rows.capabilities).await?;
    }
    if let Some(fetch) = touch.reread {
        document_update(connection, touch, rows, prepared.document(&touch.id), millis(fetch.at)).await?;
    }
    Ok(())
}

/// Records that this version of the reader has read the current versions of manifests.
pub(crate) async fn readings_confirm(connection: &mut Connection, ids: &[ManifestId]) -> Outcome<()> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!(
        "UPDATE manifest SET reader_version = $2, read_version = version,
                publisher = CASE WHEN read_version = version THEN publisher END
         WHERE id IN ",
        list!()
    ))
    .bind(names(ids.iter().map(ManifestId::as_str))?)
    .bind(i64::from(READER_VERSION))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Replaces what an earlier version of the reader read, without the capabilities.
async fn reading_replace(
    connection: &mut Connection,
    touch: &Touch<'_>,
    manifest: &Manifest,
    rows: &PreparedManifest,
) -> Outcome<()> {
    sqlx::query("UPDATE manifest SET format = $2, capabilities = $3, conformance = $4 WHERE id = $1")
        .bind(touch.id.as_str())
        .bind(manifest.format().as_str())
        .bind(to_i32(manifest.capabilities.len()))
        .bind(manifest.level().as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "UPDATE manifest_version SET model = $3, capabilities = $4, findings = $5
         WHERE manifest_id = $1 AND version = $2",
    )
    .bind(touch.id.as_str())
    .bind(touch.version)
    .bind(rows.model.as_slice())
    .bind(to_i32(manifest.capabilities.len()))
    .bind(to_i32(manifest.findings.len()))
    .execute(&mut *connection)
    .await?;
    capabilities_remove(connection, &touch.id).await
}

/// Stores or deletes the document as its publisher now allows.
async fn document_update(
    connection: &mut Connection,
    touch: &Touch<'_>,
    rows: &PreparedManifest,
    body: Option<&PreparedDocument>,
    at_ms: i64,
) -> Outcome<()> {
    let hash = &rows.hash;
    if !rows.may_keep {
        document_reference(connection, touch, None).await?;
        documents_drop_unused(connection, &names([hash.as_str()])?).await?;
    } else if let Some(body) = body {
        document_keep(connection, hash, body, at_ms).await?;
        document_reference(connection, touch, Some(hash)).await?;
    }
    Ok(())
}

async fn document_reference(
    connection: &mut Connection,
    touch: &Touch<'_>,
    hash: Option<&ContentHash>,
) -> Outcome<()> {
    sqlx::query("UPDATE manifest_version SET document_hash = $3 WHERE manifest_id = $1 AND version = $2")
        .bind(touch.id.as_str())
        .bind(touch.version)
        .bind(hash.map(ContentHash::as_str))
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Removes a manifest from the index; its versions are kept.
pub(crate) async fn manifest_remove(
    connection: &mut Connection,
    id: &ManifestId,
    status: Status,
    at_ms: i64,
) -> Outcome<()> {
    sqlx::query("UPDATE manifest SET status = $2, removed_at_ms = $3 WHERE id = $1")
        .bind(id.as_str())
        .bind(status.as_str())
        .bind(at_ms)
        .execute(&mut *connection)
        .await?;
    capabilities_remove(connection, id).await
}

/// Counts and formats of a site's manifests in the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexCounts {
    pub(crate) manifests: i32,
    pub(crate) capabilities: i32,
    pub(crate) formats: String,
}

/// Counts the manifests and capabilities of a site in the index. Several declarations of one capability count once.
pub(crate) async fn index_count(connection: &mut Connection, site: &SiteName) -> Outcome<IndexCounts> {
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT format, COUNT(*), CAST(SUM(capabilities) AS BIGINT) FROM manifest
         WHERE site = $1 AND removed_at_ms IS NULL GROUP BY format ORDER BY format",
    )
    .bind(site.as_str())
    .fetch_all(&mut *connection)
    .await?;
    let capabilities = rows.iter().map(|(.., capabilities)| capabilities).sum::<i64>();
    let following: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM declaration WHERE site = $1 AND place > 0 AND manifest_id IS NOT NULL",
    )
    .bind(site.as_str())
    .fetch_one(&mut *connection)
    .await?;
    let formats: Vec<&str> = rows.iter().map(|(format, ..)| format.as_str()).collect();
    Ok(IndexCounts {
        manifests: to_i32(rows.iter().map(|(_, manifests, _)| manifests).sum::<i64>()),
        capabilities: to_i32(capabilities - following),
        formats: formats.join(","),
    })
}

type HistoryRow = (String, i64, i64, i32, i32);

/// The latest versions of a manifest, latest first.
pub(crate) async fn manifest_versions(
    connection: &mut Connection,
    id: &ManifestId,
    max: i64,
) -> Outcome<Vec<VersionRecord>> {
    let rows = sqlx::query(
        "SELECT content_hash, first_seen_at_ms, last_seen_at_ms, capabilities, findings
         FROM manifest_version WHERE manifest_id = $1 ORDER BY version DESC LIMIT $2",
    )
    .bind(id.as_str())
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(records(id, &rows))
}

/// The latest version with this content, and the one before it.
pub(crate) async fn versions_until(
    connection: &mut Connection,
    id: &ManifestId,
    hash: &ContentHash,
) -> Outcome<Vec<VersionRecord>> {
    let rows = sqlx::query(
        "SELECT content_hash, first_seen_at_ms, last_seen_at_ms, capabilities, findings
         FROM manifest_version
         WHERE manifest_id = $1 AND version <= (SELECT MAX(version) FROM manifest_version
                                                WHERE manifest_id = $1 AND content_hash = $2)
         ORDER BY version DESC LIMIT 2",
    )
    .bind(id.as_str())
    .bind(hash.as_str())
    .fetch_all(&mut *connection)
    .await?;
    Ok(records(id, &rows))
}

fn records(id: &ManifestId, rows: &[Row]) -> Vec<VersionRecord> {
    let at = RowRef::new("manifest_version", id.as_str());
    let rows = decode(&["manifest_version"], rows);
    intact(rows, |(hash, first_seen_at_ms, last_seen_at_ms, capabilities, findings): HistoryRow| {
        Ok(VersionRecord {
            hash: at.parse("content_hash", &hash)?,
            first_seen_at: at.time("first_seen_at_ms", first_seen_at_ms)?,
            last_seen_at: at.time("last_seen_at_ms", last_seen_at_ms)?,
            capabilities: to_u32(capabilities),
            findings: to_u32(findings),
        })
    })
}

/// The normalised manifest of the latest version with this content.
pub(crate) async fn version_find(
    connection: &mut Connection,
    id: &ManifestId,
    hash: &ContentHash,
) -> Outcome<Option<PackedVersion>> {
    let model: Option<Vec<u8>> = sqlx::query_scalar(
        "SELECT model FROM manifest_version WHERE manifest_id = $1 AND content_hash = $2
         ORDER BY version DESC LIMIT 1",
    )
    .bind(id.as_str())
    .bind(hash.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(model.map(|model| PackedVersion { manifest_id: id.to_string(), model }))
}

/// Hashes of the documents that a site's versions and resources refer to, sorted.
pub(crate) async fn documents_of_site(connection: &mut Connection, site: &SiteName) -> Outcome<Vec<String>> {
    let hashes = sqlx::query_scalar(
        "SELECT document_hash FROM manifest_version
         WHERE document_hash IS NOT NULL AND manifest_id IN (SELECT id FROM manifest WHERE site = $1)
         UNION SELECT document_hash FROM resource WHERE document_hash IS NOT NULL AND site = $1
         ORDER BY document_hash",
    )
    .bind(site.as_str())
    .fetch_all(&mut *connection)
    .await?;
    Ok(hashes)
}
