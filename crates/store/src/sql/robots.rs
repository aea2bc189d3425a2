//! What robots.txt of a host came to.

use manifest::SiteName;

use super::Connection;
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::RobotsRecord;
use crate::pack::{Place, count, counted, millis, text, text_of};

/// Columns of `robots` as they are joined to a host.
#[derive(sqlx::FromRow)]
pub(crate) struct RobotsRow {
    pub(crate) host: String,
    kind: Option<String>,
    cause: Option<String>,
    status: Option<i32>,
    body: Option<Vec<u8>>,
    fetched_at_ms: Option<i64>,
    expires_at_ms: Option<i64>,
    failures_in_row: Option<i32>,
    etag: Option<String>,
    last_modified: Option<String>,
}

impl RobotsRow {
    /// `None` where robots.txt was never asked for.
    pub(crate) fn into_record(self) -> Result<Option<RobotsRecord>, StoreError> {
        let place = Place::new("robots", &self.host);
        let (Some(kind), Some(fetched_at_ms), Some(expires_at_ms)) =
            (self.kind, self.fetched_at_ms, self.expires_at_ms)
        else {
            return Ok(None);
        };
        Ok(Some(RobotsRecord {
            host: place.parse("host", &self.host)?,
            kind: place.parse("kind", &kind)?,
            cause: self.cause,
            status: place.http_status("status", self.status)?,
            body: self.body.map(|body| place.bytes("body", &body)).transpose()?,
            fetched_at: place.time("fetched_at_ms", fetched_at_ms)?,
            expires_at: place.time("expires_at_ms", expires_at_ms)?,
            failures_in_row: counted(self.failures_in_row.unwrap_or_default()),
            etag: self.etag,
            last_modified: self.last_modified,
        }))
    }
}

/// Replaces what is known of a host's robots.txt; `body` is the record's, compressed.
pub(crate) async fn robots_save(
    connection: &mut Connection,
    site: &SiteName,
    robots: &RobotsRecord,
    body: Option<&[u8]>,
) -> Outcome<()> {
    sqlx::query("INSERT INTO host (host, site, seeded) VALUES ($1, $2, 0) ON CONFLICT (host) DO NOTHING")
        .bind(robots.host.as_str())
        .bind(site.as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query(
        "INSERT INTO robots (host, site, kind, cause, status, body, fetched_at_ms, expires_at_ms, failures_in_row,
                             etag, last_modified)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (host) DO UPDATE SET
             kind = excluded.kind, cause = excluded.cause, status = excluded.status, body = excluded.body,
             fetched_at_ms = excluded.fetched_at_ms, expires_at_ms = excluded.expires_at_ms,
             failures_in_row = excluded.failures_in_row, etag = excluded.etag, last_modified = excluded.last_modified",
    )
    .bind(robots.host.as_str())
    .bind(site.as_str())
    .bind(robots.kind.as_str())
    .bind(robots.cause.as_deref().map(text))
    .bind(robots.status.map(i32::from))
    .bind(body)
    .bind(millis(robots.fetched_at))
    .bind(millis(robots.expires_at))
    .bind(count(robots.failures_in_row))
    .bind(text_of(robots.etag.as_ref()))
    .bind(text_of(robots.last_modified.as_ref()))
    .execute(&mut *connection)
    .await?;
    Ok(())
}
