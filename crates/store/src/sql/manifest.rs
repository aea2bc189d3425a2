//! The current versions of manifests, with their status.

use manifest::{CapabilityId, ManifestId, SiteName};
use serde::Serialize;

use super::rows::{decode, decode_row};
use super::{Connection, batch};
use crate::convert::{intact, json, names};
use crate::fault::Outcome;
use crate::packed::PackedManifest;
use crate::plan::StoredNaming;

/// Tables of the columns of [`PackedManifest`].
const TABLES: [&str; 2] = ["manifest", "manifest_version"];

/// Selects current versions by a condition.
macro_rules! select_manifests {
    ($condition:expr) => {
        concat!(
            "SELECT m.id, m.status, m.version, m.first_seen_at_ms, m.last_seen_at_ms, m.changed_at_ms, m.training,
                    m.named_by, m.publisher, v.model, v.document_hash
             FROM manifest m JOIN manifest_version v ON v.manifest_id = m.id AND v.version = m.version ",
            $condition
        )
    };
}

/// Id of the manifest with the leading declaration of the capability `$1`.
macro_rules! leading_manifest {
    () => {
        "COALESCE((SELECT manifest_id FROM declaration
                   WHERE capability_id = (SELECT capability_id FROM declaration WHERE id = $1) AND manifest_id IS NOT NULL
                   ORDER BY place LIMIT 1),
                  (SELECT manifest_id FROM capability WHERE id = $1))"
    };
}
pub(super) use leading_manifest;

/// The current version, even of a manifest that left the index.
pub(crate) async fn manifest_find(
    connection: &mut Connection,
    id: &ManifestId,
) -> Outcome<Option<PackedManifest>> {
    let row = sqlx::query(select_manifests!("WHERE m.id = $1"))
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    Ok(row.map(|row| decode_row(&TABLES, &row)).transpose()?)
}

/// Whether a manifest left the index because its site forbids it or withdrew it: it was removed for a denial or a 410, or this was the
/// result of the last request. A manifest that is in the index, or that only was missing, is not withdrawn.
pub(crate) async fn manifest_is_withdrawn(connection: &mut Connection, id: &ManifestId) -> Outcome<bool> {
    let found = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM manifest m LEFT JOIN resource r ON r.id = m.id
                        WHERE m.id = $1 AND m.removed_at_ms IS NOT NULL
                          AND (m.status IN ('denied', 'opted_out') OR r.outcome IN ('gone', 'robots_denied')))",
    );
    Ok(found.bind(id.as_str()).fetch_one(&mut *connection).await?)
}

/// The listed manifests that are in the index, in no order.
pub(crate) async fn manifests_load(
    connection: &mut Connection,
    ids: &[ManifestId],
) -> Outcome<Vec<PackedManifest>> {
    let rows = sqlx::query(select_manifests!(concat!("WHERE m.removed_at_ms IS NULL AND m.id IN ", list!())))
        .bind(names(ids.iter().map(ManifestId::as_str))?)
        .fetch_all(&mut *connection)
        .await?;
    Ok(intact(decode(&TABLES, &rows), Ok))
}

/// A site's manifests that are in the index, sorted by URL.
pub(crate) async fn manifests_of_site(
    connection: &mut Connection,
    site: &SiteName,
) -> Outcome<Vec<PackedManifest>> {
    let rows = sqlx::query(select_manifests!("WHERE m.removed_at_ms IS NULL AND m.site = $1 ORDER BY m.url"))
        .bind(site.as_str())
        .fetch_all(&mut *connection)
        .await?;
    Ok(intact(decode(&TABLES, &rows), Ok))
}

/// The indexed manifest with the leading declaration of the capability with this id.
pub(crate) async fn manifest_of_capability(
    connection: &mut Connection,
    id: &CapabilityId,
) -> Outcome<Option<PackedManifest>> {
    let row = sqlx::query(select_manifests!(concat!(
        "WHERE m.removed_at_ms IS NULL AND m.id = ",
        leading_manifest!()
    )))
    .bind(id.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(row.map(|row| decode_row(&TABLES, &row)).transpose()?)
}

#[derive(Serialize)]
struct NamedRow<'a> {
    id: &'a str,
    named_by: &'a str,
    publisher: &'a str,
}

/// Writes who names and publishes manifests whose content is unchanged. If a program of an earlier schema wrote the current version, the
/// version of its reader stays unknown.
pub(crate) async fn manifests_name(
    connection: &mut Connection,
    named: &[(ManifestId, StoredNaming)],
) -> Outcome<()> {
    if named.is_empty() {
        return Ok(());
    }
    let rows = named.iter().map(|(id, StoredNaming { named_by, publisher })| NamedRow {
        id: id.as_str(),
        named_by: named_by.as_str(),
        publisher: publisher.as_str(),
    });
    sqlx::query(concat!(
        "UPDATE manifest SET named_by = batch.named_by, publisher = batch.publisher, read_version = version,
                reader_version = CASE WHEN read_version = version THEN reader_version END FROM ",
        batch!(id TEXT, named_by TEXT, publisher TEXT),
        " WHERE manifest.id = batch.id"
    ))
    .bind(json(&rows.collect::<Vec<_>>(), "batch of manifests")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}
