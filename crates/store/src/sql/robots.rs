//! What robots.txt of a host came to.

use crate::StoreError;
use crate::model::RobotsRecord;
use crate::pack::{Place, counted};

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
