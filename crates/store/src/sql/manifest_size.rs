//! Sizes of manifests, from the first bytes of their compressed models, so that they are known before the manifests are read.

use manifest::{CapabilityId, ContentHash, Format, ManifestId, ManifestUrl, SiteName};
use policy::naming::{named_by_url, publisher_by_url};

use super::Connection;
use super::manifest::leading_manifest;
use super::rows::{Cursor, decode};
use crate::StoreError;
use crate::convert::{Page, RowRef, intact, manifest_bytes, names};
use crate::fault::Outcome;
use crate::model::{ManifestSize, SiteManifestSize};

/// Selects ids and first bytes of models by a condition. The header of a frame has at most 18 bytes.
macro_rules! select_sizes {
    ($condition:expr) => {
        concat!(
            "SELECT m.id, SUBSTR(v.model, 1, 18) AS model
             FROM manifest m JOIN manifest_version v ON v.manifest_id = m.id AND v.version = m.version ",
            $condition
        )
    };
}

type SizeRow = (String, Vec<u8>);

/// Tables of the columns of [`SizeRow`].
const TABLES: [&str; 2] = ["manifest", "manifest_version"];

fn size((id, frame_start): SizeRow) -> Result<ManifestSize, StoreError> {
    let id = RowRef::new("manifest", &id).parse("id", &id)?;
    Ok(ManifestSize { id, bytes: manifest_bytes(&frame_start) })
}

/// Size of the current version, even of a manifest that was removed from the index.
pub(crate) async fn size_find(connection: &mut Connection, id: &ManifestId) -> Outcome<Option<ManifestSize>> {
    let row: Option<SizeRow> = sqlx::query_as(select_sizes!("WHERE m.id = $1"))
        .bind(id.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    Ok(row.map(size).transpose()?)
}

/// Size of one version; of the latest if several have the same content.
pub(crate) async fn size_of_version(
    connection: &mut Connection,
    id: &ManifestId,
    hash: &ContentHash,
) -> Outcome<Option<u64>> {
    let frame_start: Option<Vec<u8>> = sqlx::query_scalar(
        "SELECT SUBSTR(model, 1, 18) FROM manifest_version WHERE manifest_id = $1 AND content_hash = $2
         ORDER BY version DESC LIMIT 1",
    )
    .bind(id.as_str())
    .bind(hash.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(frame_start.map(|frame_start| manifest_bytes(&frame_start)))
}

/// Size of the indexed manifest that contains the leading declaration of a capability.
pub(crate) async fn size_of_capability(
    connection: &mut Connection,
    id: &CapabilityId,
) -> Outcome<Option<ManifestSize>> {
    let row: Option<SizeRow> = sqlx::query_as(select_sizes!(concat!(
        "WHERE m.removed_at_ms IS NULL AND m.id = ",
        leading_manifest!()
    )))
    .bind(id.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(row.map(size).transpose()?)
}

/// Sizes of the listed manifests that are in the index, in no order.
pub(crate) async fn sizes_of(connection: &mut Connection, ids: &[ManifestId]) -> Outcome<Vec<ManifestSize>> {
    let rows = sqlx::query(select_sizes!(concat!("WHERE m.removed_at_ms IS NULL AND m.id IN ", list!())))
        .bind(names(ids.iter().map(ManifestId::as_str))?)
        .fetch_all(&mut *connection)
        .await?;
    Ok(intact(decode(&TABLES, &rows), size))
}

type SiteSizeRow = (String, String, Option<String>, Option<String>, Vec<u8>);

fn site_size(
    (id, url, named_by, publisher, frame_start): SiteSizeRow,
) -> Result<SiteManifestSize, StoreError> {
    let at = RowRef::new("manifest", &id);
    let url: ManifestUrl = at.parse("url", &url)?;
    let named_by = at.parse_of("named_by", named_by.as_ref())?;
    let publisher = at.parse_of("publisher", publisher.as_ref())?;
    Ok(SiteManifestSize {
        id: at.parse("id", &id)?,
        bytes: manifest_bytes(&frame_start),
        named_by: named_by.unwrap_or_else(|| named_by_url(&url)),
        publisher: publisher.unwrap_or_else(|| publisher_by_url(&url)),
        url,
    })
}

/// Sizes of a site's manifests that are in the index, in no order.
pub(crate) async fn sizes_of_site(
    connection: &mut Connection,
    site: &SiteName,
) -> Outcome<Vec<SiteManifestSize>> {
    let rows = sqlx::query(
        "SELECT m.id, m.url, m.named_by, m.publisher, SUBSTR(v.model, 1, 18) AS model
         FROM manifest m JOIN manifest_version v ON v.manifest_id = m.id AND v.version = m.version
         WHERE m.removed_at_ms IS NULL AND m.site = $1",
    )
    .bind(site.as_str())
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&TABLES, &rows), site_size))
}

/// Sizes of manifests in the index, sorted by id.
pub(crate) async fn sizes_after(
    connection: &mut Connection,
    after: &str,
    max: i64,
) -> Outcome<Vec<ManifestSize>> {
    let (mut page, mut after) = (Page::new(max), Cursor::after(after.to_owned()));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(select_sizes!(
            "WHERE m.removed_at_ms IS NULL AND m.id > $1 ORDER BY m.id LIMIT $2 OFFSET $3"
        ))
        .bind(after.key.clone())
        .bind(wanted)
        .bind(after.skipped)
        .fetch_all(&mut *connection)
        .await?;
        after.pass(&rows);
        page.add(decode(&TABLES, &rows), size);
    }
    Ok(page.values)
}

/// Sizes of the manifests in the index that have one of these formats and that the site may name, sorted by id. Who names a manifest is
/// unknown if it was stored before the column was added.
pub(crate) async fn sizes_of_formats_after(
    connection: &mut Connection,
    formats: &[Format],
    after: &str,
    max: i64,
) -> Outcome<Vec<ManifestSize>> {
    let formats = names(formats.iter().map(|format| format.as_str()))?;
    let (mut page, mut after) = (Page::new(max), Cursor::after(after.to_owned()));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(select_sizes!(concat!(
            "WHERE m.removed_at_ms IS NULL AND m.id > $2 AND (m.named_by IS NULL OR m.named_by = 'site') AND m.format IN ",
            list!(),
            " ORDER BY m.id LIMIT $3 OFFSET $4"
        )))
        .bind(&formats)
        .bind(after.key.clone())
        .bind(wanted)
        .bind(after.skipped)
        .fetch_all(&mut *connection)
        .await?;
        after.pass(&rows);
        page.add(decode(&TABLES, &rows), size);
    }
    Ok(page.values)
}
