//! Known URLs, with their HTTP validators.

use std::borrow::Cow;

use manifest::{ContentHash, ManifestId, ManifestUrl};
use policy::freshness::Use;
use serde::Serialize;
use sqlx::QueryBuilder;

use super::rows::decode_by;
use super::state::OfSite;
use super::{Connection, Database, batch, document, push_names};
use crate::StoreError;
use crate::convert::{RowRef, json, millis, millis_of, names, text_of, to_i32, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::known::is_outdated;
use crate::model::seed::kept_source;
use crate::model::{Hint, ResourceState};
use crate::plan::Part;
use crate::prepare::PreparedDocument;

pub(crate) struct ResourceRow {
    id: String,
    url: String,
    in_index: i32,
    reader_version: Option<i64>,
    discovery: String,
    linked_from: Option<String>,
    outcome: Option<String>,
    status: Option<i32>,
    etag: Option<String>,
    last_modified: Option<String>,
    cache: Option<String>,
    fresh_until_ms: Option<i64>,
    content_hash: Option<String>,
    fetched_at_ms: Option<i64>,
    changed_at_ms: Option<i64>,
    misses_in_row: i32,
}

from_row!(ResourceRow {
    id,
    url,
    in_index,
    reader_version,
    discovery,
    linked_from,
    outcome,
    status,
    etag,
    last_modified,
    cache,
    fresh_until_ms,
    content_hash,
    fetched_at_ms,
    changed_at_ms,
    misses_in_row
});

pub(crate) enum KnownResource {
    Fetched(Box<ResourceState>),
    /// A URL that was seeded or linked but not fetched since, with its earlier consecutive misses.
    Hint(Hint, u32),
}

impl ResourceRow {
    /// Whether the document is a manifest in the index that an earlier version of the reader read.
    pub(super) fn is_outdated(&self) -> bool {
        self.in_index == 1 && is_outdated(self.reader_version)
    }
}

impl TryFrom<ResourceRow> for KnownResource {
    type Error = StoreError;

    fn try_from(row: ResourceRow) -> Result<Self, StoreError> {
        let at = RowRef::new("resource", &row.id);
        let url = at.parse("url", &row.url)?;
        let (Some(outcome), Some(fetched_at_ms)) = (row.outcome, row.fetched_at_ms) else {
            let linked_from = at.parse_of("linked_from", row.linked_from.as_ref())?;
            let discovery = at.parse("discovery", &row.discovery)?;
            let hint = Hint { url, linked_from, discovery };
            return Ok(Self::Hint(hint, to_u32(row.misses_in_row)));
        };
        let fetched_at = at.time("fetched_at_ms", fetched_at_ms)?;
        let fresh_until = at.time_of("fresh_until_ms", row.fresh_until_ms)?;
        Ok(Self::Fetched(Box::new(ResourceState {
            url,
            manifest_id: if row.in_index == 1 { Some(at.parse("id", &row.id)?) } else { None },
            discovery: at.parse("discovery", &row.discovery)?,
            linked_from: at.parse_of("linked_from", row.linked_from.as_ref())?,
            outcome: at.parse("outcome", &outcome)?,
            status: at.http_status("status", row.status)?,
            etag: row.etag,
            last_modified: row.last_modified,
            cache: row.cache.map(|cache| at.json("cache", cache.as_bytes())).transpose()?,
            // earlier versions stored times up to a year later
            fresh_until: fresh_until.map(|until| Use::Document.limit(fetched_at, until)),
            content_hash: at.parse_of("content_hash", row.content_hash.as_ref())?,
            fetched_at,
            changed_at: at.time_of("changed_at_ms", row.changed_at_ms)?,
            misses_in_row: to_u32(row.misses_in_row),
        })))
    }
}

macro_rules! select_resources {
    ($sites:expr) => {
        concat!(
            "SELECT resource.id, resource.site, resource.url,
                    CASE WHEN manifest.id IS NULL THEN 0 ELSE 1 END AS in_index,
                    CASE WHEN read_version = version THEN reader_version END AS reader_version,
                    discovery, linked_from, outcome, resource.status, etag, last_modified, cache, fresh_until_ms,
                    resource.content_hash, fetched_at_ms, resource.changed_at_ms, misses_in_row
             FROM resource LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
             WHERE resource.site IN ",
            $sites
        )
    };
}

/// The resources of a few sites, in no order.
pub(crate) async fn resources_known(
    connection: &mut Connection,
    sites: &[&str],
) -> Outcome<Vec<OfSite<ResourceRow>>> {
    if sites.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::<Database>::new(select_resources!("("));
    push_names(&mut query, sites).push(")");
    Ok(decode_by(&["resource"], "site", &query.build().fetch_all(&mut *connection).await?))
}

/// The resources of the listed sites, by URL.
pub(crate) async fn resources_of(
    connection: &mut Connection,
    sites: &str,
) -> Outcome<Vec<OfSite<ResourceRow>>> {
    let query = sqlx::query(select_resources!(concat!(list!(), " ORDER BY resource.url")));
    Ok(decode_by(&["resource"], "site", &query.bind(sites).fetch_all(&mut *connection).await?))
}

/// A resource in a batch.
#[derive(Serialize)]
struct SavedResource<'a> {
    id: ManifestId,
    url: &'a ManifestUrl,
    discovery: &'a str,
    linked_from: Option<&'a ManifestUrl>,
    outcome: &'a str,
    status: Option<u16>,
    etag: Option<Cow<'a, str>>,
    last_modified: Option<Cow<'a, str>>,
    cache: Option<String>,
    fresh_until_ms: Option<i64>,
    content_hash: Option<&'a str>,
    fetched_at_ms: i64,
    changed_at_ms: Option<i64>,
    misses_in_row: i32,
}

impl<'a> SavedResource<'a> {
    fn new(resource: &'a ResourceState) -> Result<Self, StoreError> {
        Ok(Self {
            id: ManifestId::of(&resource.url),
            url: &resource.url,
            discovery: resource.discovery.as_str(),
            linked_from: kept_source(resource.linked_from.as_ref()),
            outcome: resource.outcome.as_str(),
            status: resource.status,
            etag: text_of(resource.etag.as_ref()),
            last_modified: text_of(resource.last_modified.as_ref()),
            cache: resource.cache.as_ref().map(|cache| json(cache, "freshness policy")).transpose()?,
            fresh_until_ms: millis_of(resource.fresh_until),
            content_hash: resource.content_hash.as_ref().map(ContentHash::as_str),
            fetched_at_ms: millis(resource.fetched_at),
            changed_at_ms: millis_of(resource.changed_at),
            misses_in_row: to_i32(resource.misses_in_row),
        })
    }
}

/// Removes the sources of resources that no document links to any more.
pub(crate) async fn resources_unlink(connection: &mut Connection, ids: &[ManifestId]) -> Outcome<()> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!("UPDATE resource SET linked_from = NULL WHERE id IN ", list!()))
        .bind(names(ids.iter().map(ManifestId::as_str))?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Deletes resources that have no manifest and no document.
pub(crate) async fn resources_forget(connection: &mut Connection, ids: &[ManifestId]) -> Outcome<()> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(concat!("DELETE FROM resource WHERE document_hash IS NULL AND id IN ", list!()))
        .bind(names(ids.iter().map(ManifestId::as_str))?)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Writes resources of one site. A stored link source is kept if the new row has none.
pub(crate) async fn resources_save(
    connection: &mut Connection,
    site: &str,
    resources: &[ResourceState],
) -> Outcome<()> {
    if resources.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = resources.iter().map(SavedResource::new).collect::<Result<_, _>>()?;
    sqlx::query(concat!(
        "INSERT INTO resource (id, site, url, discovery, linked_from, outcome, status, etag, last_modified, cache,
                               fresh_until_ms, content_hash, fetched_at_ms, changed_at_ms, misses_in_row)
         SELECT id, $2, url, discovery, linked_from, outcome, status, etag, last_modified, cache,
                fresh_until_ms, content_hash, fetched_at_ms, changed_at_ms, misses_in_row FROM ",
        batch!(
            id TEXT, url TEXT, discovery TEXT, linked_from TEXT, outcome TEXT, status INTEGER, etag TEXT,
            last_modified TEXT, cache TEXT, fresh_until_ms BIGINT, content_hash TEXT, fetched_at_ms BIGINT,
            changed_at_ms BIGINT, misses_in_row INTEGER
        ),
        " WHERE true
         ON CONFLICT (id) DO UPDATE SET
             discovery = excluded.discovery, linked_from = COALESCE(excluded.linked_from, resource.linked_from),
             outcome = excluded.outcome, status = excluded.status, etag = excluded.etag,
             last_modified = excluded.last_modified, cache = excluded.cache, fresh_until_ms = excluded.fresh_until_ms,
             content_hash = excluded.content_hash, fetched_at_ms = excluded.fetched_at_ms,
             changed_at_ms = excluded.changed_at_ms, misses_in_row = excluded.misses_in_row"
    ))
    .bind(json(&rows, "batch of resources")?)
    .bind(site)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Stores the document of a part, if storing it is allowed, and deletes the one that it replaces.
pub(crate) async fn part_save(
    connection: &mut Connection,
    part: &Part<'_>,
    body: Option<&PreparedDocument>,
) -> Outcome<()> {
    let stored = match (&part.fetch.content_hash, body) {
        (Some(hash), Some(body)) => {
            document::document_keep(connection, hash, body, millis(part.fetch.at)).await?;
            Some(hash.as_str())
        }
        _ => None,
    };
    sqlx::query("UPDATE resource SET document_hash = $2 WHERE id = $1")
        .bind(part.id.as_str())
        .bind(stored)
        .execute(&mut *connection)
        .await?;
    if let Some(replaced) = &part.replaces {
        document::documents_drop_unused(connection, &names([replaced.as_str()])?).await?;
    }
    Ok(())
}
