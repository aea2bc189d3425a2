//! The last visits of a site, as they are told.

use super::Connection;
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{NextVisit, Phases, VisitStory};
use crate::pack::{Place, counted, sized, whole};

#[derive(sqlx::FromRow)]
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

impl TryFrom<VisitRow> for VisitStory {
    type Error = StoreError;

    fn try_from(row: VisitRow) -> Result<Self, StoreError> {
        let id = row.id.to_string();
        let place = Place::new("visit", &id);
        Ok(Self {
            id: row.id,
            started_at: place.time("started_at_ms", row.started_at_ms)?,
            ended_at: place.time("ended_at_ms", row.ended_at_ms)?,
            end: place.parse("visit_end", &row.visit_end)?,
            next_visit: NextVisit {
                at: place.time("next_visit_at_ms", row.next_visit_at_ms)?,
                reason: row.next_visit_reason,
            },
            requests: counted(row.requests),
            bytes_in: sized(row.bytes_in),
            phases: Phases {
                dns_ms: counted(row.dns_ms),
                connect_ms: counted(row.connect_ms),
                tls_ms: counted(row.tls_ms),
                ttfb_ms: counted(row.ttfb_ms),
                body_ms: counted(row.body_ms),
            },
            fetches: place.json("fetches", &place.bytes("fetches", &row.fetches)?)?,
        })
    }
}

/// The last visits of a site, latest first.
pub(crate) async fn visits_of_site(
    connection: &mut Connection,
    site: &str,
    max: i64,
) -> Outcome<Vec<VisitStory>> {
    let rows: Vec<VisitRow> = sqlx::query_as(
        "SELECT id, started_at_ms, ended_at_ms, visit_end, next_visit_at_ms, next_visit_reason, requests, bytes_in,
                dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, fetches
         FROM visit WHERE site = $1 ORDER BY id DESC LIMIT $2",
    )
    .bind(site)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, VisitStory::try_from))
}
