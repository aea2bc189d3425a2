//! The current versions of manifests, with their status.

use manifest::{CapabilityId, Manifest, ManifestId, NamedBy, SiteName};
use policy::naming::named_by_url;
use serde::Serialize;

use super::rows::{decode, decode_row};
use super::{Connection, batch};
use crate::StoreError;
use crate::convert::{RowRef, decompressed_bytes, intact, json, names, off_runtime, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::StoredManifest;

struct ManifestRow {
    id: String,
    status: String,
    version: i32,
    first_seen_at_ms: i64,
    last_seen_at_ms: i64,
    changed_at_ms: i64,
    training: Option<String>,
    named_by: Option<String>,
    model: Vec<u8>,
    document_hash: Option<String>,
}

from_row!(ManifestRow {
    id,
    status,
    version,
    first_seen_at_ms,
    last_seen_at_ms,
    changed_at_ms,
    training,
    named_by,
    model,
    document_hash
});

impl TryFrom<ManifestRow> for StoredManifest {
    type Error = StoreError;

    fn try_from(row: ManifestRow) -> Result<Self, StoreError> {
        let at = RowRef::new("manifest", &row.id);
        let version = RowRef::new("manifest_version", &row.id);
        let manifest: Manifest = version.json("model", &version.bytes("model", &row.model)?)?;
        if manifest.id.as_str() != row.id {
            return Err(version.damaged("model", &format!("it is the model of {}", manifest.id)));
        }
        let named_by = at.parse_of("named_by", row.named_by.as_ref())?;
        Ok(Self {
            named_by: named_by.unwrap_or_else(|| named_by_url(&manifest.url)),
            manifest,
            training: at.parse_of("training", row.training.as_ref())?.unwrap_or_default(),
            status: at.parse("status", &row.status)?,
            first_seen_at: at.time("first_seen_at_ms", row.first_seen_at_ms)?,
            last_seen_at: at.time("last_seen_at_ms", row.last_seen_at_ms)?,
            changed_at: at.time("changed_at_ms", row.changed_at_ms)?,
            versions: to_u32(row.version),
            body_kept: row.document_hash.is_some(),
        })
    }
}

/// Tables of the columns of [`ManifestRow`].
const TABLES: [&str; 2] = ["manifest", "manifest_version"];

impl ManifestRow {
    /// Bytes of its model before compression, on which the time to read it depends.
    fn model_bytes(&self) -> u64 {
        decompressed_bytes(&self.model).unwrap_or(u64::MAX)
    }
}

/// Reads one manifest.
async fn stored(row: Option<Result<ManifestRow, StoreError>>) -> Outcome<Option<StoredManifest>> {
    let Some(row) = row.transpose()? else { return Ok(None) };
    let read = off_runtime(row.model_bytes(), move || StoredManifest::try_from(row)).await;
    Ok(Some(read?))
}

/// Reads those manifests that are intact.
async fn all_stored(rows: Vec<Result<ManifestRow, StoreError>>) -> Vec<StoredManifest> {
    let sizes = rows.iter().flatten().map(ManifestRow::model_bytes);
    let bytes = sizes.fold(0_u64, u64::saturating_add);
    off_runtime(bytes, move || intact(rows, StoredManifest::try_from)).await
}

/// Selects current versions by a condition.
macro_rules! select_manifests {
    ($condition:expr) => {
        concat!(
            "SELECT m.id, m.status, m.version, m.first_seen_at_ms, m.last_seen_at_ms, m.changed_at_ms, m.training,
                    m.named_by, v.model, v.document_hash
             FROM manifest m JOIN manifest_version v ON v.manifest_id = m.id AND v.version = m.version ",
            $condition
        )
    };
}

/// The manifest of the declaration that leads the capability of the id `$1`.
macro_rules! leading_manifest {
    () => {
        "COALESCE((SELECT manifest_id FROM declaration
                   WHERE capability_id = (SELECT capability_id FROM declaration WHERE id = $1) AND manifest_id IS NOT NULL
                   ORDER BY place LIMIT 1),
                  (SELECT manifest_id FROM capability WHERE id = $1))"
    };
}
pub(super) use leading_manifest;

/// The current version, also of a manifest that left the index.
pub(crate) async fn manifest_find(
    connection: &mut Connection,
    id: &ManifestId,
) -> Outcome<Option<StoredManifest>> {
    let row = sqlx::query(select_manifests!("WHERE m.id = $1"))
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    stored(row.map(|row| decode_row(&TABLES, &row))).await
}

/// The listed manifests that are in the index, in no order.
pub(crate) async fn manifests_load(
    connection: &mut Connection,
    ids: &[ManifestId],
) -> Outcome<Vec<StoredManifest>> {
    let rows = sqlx::query(select_manifests!(concat!("WHERE m.removed_at_ms IS NULL AND m.id IN ", list!())))
        .bind(names(ids.iter().map(ManifestId::as_str))?)
        .fetch_all(&mut *connection)
        .await?;
    Ok(all_stored(decode(&TABLES, &rows)).await)
}

/// A site's manifests that are in the index, in the order of their URLs.
pub(crate) async fn manifests_of_site(
    connection: &mut Connection,
    site: &SiteName,
) -> Outcome<Vec<StoredManifest>> {
    let rows = sqlx::query(select_manifests!("WHERE m.removed_at_ms IS NULL AND m.site = $1 ORDER BY m.url"))
        .bind(site.as_str())
        .fetch_all(&mut *connection)
        .await?;
    Ok(all_stored(decode(&TABLES, &rows)).await)
}

/// The manifest in the index of the declaration that leads the capability of an id.
pub(crate) async fn manifest_of_capability(
    connection: &mut Connection,
    id: &CapabilityId,
) -> Outcome<Option<StoredManifest>> {
    let row = sqlx::query(select_manifests!(concat!(
        "WHERE m.removed_at_ms IS NULL AND m.id = ",
        leading_manifest!()
    )))
    .bind(id.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    stored(row.map(|row| decode_row(&TABLES, &row))).await
}

#[derive(Serialize)]
struct NamedRow<'a> {
    id: &'a str,
    named_by: &'a str,
}

/// Writes who names manifests whose content is unchanged.
pub(crate) async fn manifests_name(
    connection: &mut Connection,
    named: &[(ManifestId, NamedBy)],
) -> Outcome<()> {
    if named.is_empty() {
        return Ok(());
    }
    let rows = named.iter().map(|(id, named_by)| NamedRow { id: id.as_str(), named_by: named_by.as_str() });
    sqlx::query(concat!(
        "UPDATE manifest SET named_by = batch.named_by FROM ",
        batch!(id TEXT, named_by TEXT),
        " WHERE manifest.id = batch.id"
    ))
    .bind(json(&rows.collect::<Vec<_>>(), "batch of manifests")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}
