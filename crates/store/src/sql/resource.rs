//! URLs worth remembering, with their HTTP validators.

use manifest::ManifestId;
use sqlx::QueryBuilder;

use super::{Connection, Database, document, listed};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::seed::kept_source;
use crate::model::{Hint, ResourceState};
use crate::pack::{Place, count, counted, json, millis, millis_of, names, text_of};
use crate::packed::PackedBody;
use crate::plan::Part;

#[derive(sqlx::FromRow)]
pub(crate) struct ResourceRow {
    id: String,
    pub(crate) site: String,
    url: String,
    in_index: i32,
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

/// A resource that was fetched, or a URL that is only known of.
pub(crate) enum Known {
    Fetched(Box<ResourceState>),
    Hint(Hint),
}

impl TryFrom<ResourceRow> for Known {
    type Error = StoreError;

    fn try_from(row: ResourceRow) -> Result<Self, StoreError> {
        let place = Place::new("resource", &row.id);
        let url = place.parse("url", &row.url)?;
        let (Some(outcome), Some(fetched_at_ms)) = (row.outcome, row.fetched_at_ms) else {
            let linked_from = place.parse_of("linked_from", row.linked_from.as_ref())?;
            let discovery = place.parse("discovery", &row.discovery)?;
            return Ok(Self::Hint(Hint { url, linked_from, discovery }));
        };
        Ok(Self::Fetched(Box::new(ResourceState {
            url,
            manifest_id: if row.in_index == 1 { Some(place.parse("id", &row.id)?) } else { None },
            discovery: place.parse("discovery", &row.discovery)?,
            linked_from: place.parse_of("linked_from", row.linked_from.as_ref())?,
            outcome: place.parse("outcome", &outcome)?,
            status: place.http_status("status", row.status)?,
            etag: row.etag,
            last_modified: row.last_modified,
            cache: row.cache.map(|cache| place.json("cache", cache.as_bytes())).transpose()?,
            fresh_until: place.time_of("fresh_until_ms", row.fresh_until_ms)?,
            content_hash: place.parse_of("content_hash", row.content_hash.as_ref())?,
            fetched_at: place.time("fetched_at_ms", fetched_at_ms)?,
            changed_at: place.time_of("changed_at_ms", row.changed_at_ms)?,
            misses_in_row: counted(row.misses_in_row),
        })))
    }
}

/// A select of resources; what follows says of which sites.
macro_rules! select_resources {
    ($($rest:literal)?) => {
        concat!(
            "SELECT resource.id, resource.site, resource.url,
                    CASE WHEN manifest.id IS NULL THEN 0 ELSE 1 END AS in_index,
                    discovery, linked_from, outcome, resource.status, etag, last_modified, cache, fresh_until_ms,
                    resource.content_hash, fetched_at_ms, resource.changed_at_ms, misses_in_row
             FROM resource LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
             WHERE resource.site IN ("
            $(, $rest)?
        )
    };
}

/// Every resource of a few sites, in no order.
pub(crate) async fn resources_known(
    connection: &mut Connection,
    sites: &[&str],
) -> Outcome<Vec<ResourceRow>> {
    if sites.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::<Database>::new(select_resources!());
    listed(&mut query, sites).push(")");
    Ok(query.build_query_as().fetch_all(&mut *connection).await?)
}

/// Every resource of these sites.
pub(crate) async fn resources_of(connection: &mut Connection, sites: &str) -> Outcome<Vec<ResourceRow>> {
    let rows =
        sqlx::query_as(select_resources!("SELECT value ->> 0 FROM json_each($1)) ORDER BY resource.url"))
            .bind(sites)
            .fetch_all(&mut *connection)
            .await?;
    Ok(rows)
}

/// Writes resources of one site, in one statement. A link that was known stays known.
pub(crate) async fn resources_save(
    connection: &mut Connection,
    site: &str,
    resources: &[ResourceState],
) -> Outcome<()> {
    if resources.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::with_capacity(resources.len());
    for resource in resources {
        let cache = resource.cache.as_ref().map(|cache| json(cache, "freshness policy")).transpose()?;
        rows.push((
            (
                ManifestId::of(&resource.url),
                &resource.url,
                resource.discovery,
                kept_source(resource.linked_from.as_ref()),
            ),
            (resource.outcome, resource.status, text_of(resource.etag.as_ref())),
            (text_of(resource.last_modified.as_ref()), cache, millis_of(resource.fresh_until)),
            (&resource.content_hash, millis(resource.fetched_at), millis_of(resource.changed_at)),
            count(resource.misses_in_row),
        ));
    }
    sqlx::query(
        "INSERT INTO resource (id, site, url, discovery, linked_from, outcome, status, etag, last_modified, cache,
                               fresh_until_ms, content_hash, fetched_at_ms, changed_at_ms, misses_in_row)
         SELECT value -> 0 ->> 0, $2, value -> 0 ->> 1, value -> 0 ->> 2, value -> 0 ->> 3,
                value -> 1 ->> 0, CAST(value -> 1 ->> 1 AS INTEGER), value -> 1 ->> 2,
                value -> 2 ->> 0, value -> 2 ->> 1, CAST(value -> 2 ->> 2 AS BIGINT),
                value -> 3 ->> 0, CAST(value -> 3 ->> 1 AS BIGINT), CAST(value -> 3 ->> 2 AS BIGINT),
                CAST(value ->> 4 AS INTEGER)
         FROM json_each($1) WHERE true
         ON CONFLICT (id) DO UPDATE SET
             discovery = excluded.discovery, linked_from = COALESCE(excluded.linked_from, resource.linked_from),
             outcome = excluded.outcome, status = excluded.status, etag = excluded.etag,
             last_modified = excluded.last_modified, cache = excluded.cache, fresh_until_ms = excluded.fresh_until_ms,
             content_hash = excluded.content_hash, fetched_at_ms = excluded.fetched_at_ms,
             changed_at_ms = excluded.changed_at_ms, misses_in_row = excluded.misses_in_row",
    )
    .bind(json(&rows, "batch of resources")?)
    .bind(site)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Keeps the document of a part where that is allowed, and drops the one that it replaces.
pub(crate) async fn part_keep(
    connection: &mut Connection,
    part: &Part<'_>,
    body: Option<&PackedBody>,
) -> Outcome<()> {
    let kept = match (&part.fetch.content_hash, body) {
        (Some(hash), Some(body)) => {
            document::document_keep(connection, hash, body, millis(part.fetch.at)).await?;
            Some(hash.as_str())
        }
        _ => None,
    };
    sqlx::query("UPDATE resource SET document_hash = $2 WHERE id = $1")
        .bind(part.id.as_str())
        .bind(kept)
        .execute(&mut *connection)
        .await?;
    if let Some(replaced) = &part.replaces {
        document::documents_drop_unused(connection, &names([replaced.as_str()])?).await?;
    }
    Ok(())
}
