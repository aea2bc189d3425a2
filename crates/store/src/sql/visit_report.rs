//! The last visits of a site.

use super::Connection;
use super::rows::decode;
use crate::StoreError;
use crate::convert::{RowRef, intact, to_u32, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{NextVisit, Phases, VisitReport};

struct VisitRow {
    id: i64,
    started_at_ms: i64,
    ended_at_ms: i64,
    visit_end: String,
    next_visit_at_ms: i64,
    next_visit_reason: String,
    requests: i32,
    bytes_in: i64,
    dns_ms: i32,
    connect_ms: i32,
    tls_ms: i32,
    ttfb_ms: i32,
    body_ms: i32,
    fetches: Vec<u8>,
}

from_row!(VisitRow {
    id,
    started_at_ms,
    ended_at_ms,
    visit_end,
    next_visit_at_ms,
    next_visit_reason,
    requests,
    bytes_in,
    dns_ms,
    connect_ms,
    tls_ms,
    ttfb_ms,
    body_ms,
    fetches
});

impl TryFrom<VisitRow> for VisitReport {
    type Error = StoreError;

    fn try_from(row: VisitRow) -> Result<Self, StoreError> {
        let id = row.id.to_string();
        let at = RowRef::new("visit", &id);
        Ok(Self {
            id: row.id,
            started_at: at.time("started_at_ms", row.started_at_ms)?,
            ended_at: at.time("ended_at_ms", row.ended_at_ms)?,
            end: at.parse("visit_end", &row.visit_end)?,
            next_visit: NextVisit {
                at: at.time("next_visit_at_ms", row.next_visit_at_ms)?,
                reason: row.next_visit_reason,
            },
            requests: to_u32(row.requests),
            bytes_in: to_u64(row.bytes_in),
            phases: Phases {
                dns_ms: to_u32(row.dns_ms),
                connect_ms: to_u32(row.connect_ms),
                tls_ms: to_u32(row.tls_ms),
                ttfb_ms: to_u32(row.ttfb_ms),
                body_ms: to_u32(row.body_ms),
            },
            fetches: at.json("fetches", &at.bytes("fetches", &row.fetches)?)?,
        })
    }
}

/// The last visits of a site, newest first.
pub(crate) async fn visits_of_site(
    connection: &mut Connection,
    site: &str,
    max: i64,
) -> Outcome<Vec<VisitReport>> {
    let rows = sqlx::query(
        "SELECT id, started_at_ms, ended_at_ms, visit_end, next_visit_at_ms, next_visit_reason, requests, bytes_in,
                dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, fetches
         FROM visit WHERE site = $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(site)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode::<VisitRow>(&["visit"], &rows), VisitReport::try_from))
}
