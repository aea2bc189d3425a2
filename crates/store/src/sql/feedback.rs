//! Feedback: which capability a client chose for a request.

use sqlx::Row as _;

use super::rows::{Cursor, Row, decode};
use super::{Connection, for_update};
use crate::StoreError;
use crate::convert::{Page, RowRef, millis, text, to_i32, to_u32, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{
    Feedback, FeedbackCap, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair,
};

/// The stored salt of a day. Stores the candidate if there is none, and deletes salts of earlier days.
pub(crate) async fn feedback_salt(connection: &mut Connection, day: i64, candidate: &str) -> Outcome<String> {
    sqlx::query("INSERT INTO feedback_salt (day, salt) VALUES ($1, $2) ON CONFLICT (day) DO NOTHING")
        .bind(day)
        .bind(candidate)
        .execute(&mut *connection)
        .await?;
    sqlx::query("DELETE FROM feedback_salt WHERE day < $1").bind(day).execute(&mut *connection).await?;
    Ok(sqlx::query_scalar("SELECT salt FROM feedback_salt WHERE day = $1")
        .bind(day)
        .fetch_one(&mut *connection)
        .await?)
}

/// Saves a line unless it is a duplicate or a cap is reached. The lock on the salts serialises writers.
pub(crate) async fn feedback_save(
    connection: &mut Connection,
    feedback: &Feedback,
    caps: FeedbackCaps,
) -> Outcome<FeedbackOutcome> {
    let _: Vec<i64> =
        sqlx::query_scalar(concat!("SELECT day FROM feedback_salt ORDER BY day", for_update!()))
            .fetch_all(&mut *connection)
            .await?;
    let query = text(&feedback.query);
    let before: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM feedback WHERE client = $1 AND capability_id = $2 AND query = $3",
    )
    .bind(&feedback.client)
    .bind(feedback.capability.as_str())
    .bind(&*query)
    .fetch_one(&mut *connection)
    .await?;
    if before > 0 {
        return Ok(FeedbackOutcome::Duplicate);
    }
    if let Some(cap) = cap_reached(connection, feedback, caps).await? {
        return Ok(FeedbackOutcome::Full(cap));
    }
    sqlx::query(
        "INSERT INTO feedback (at_ms, query, capability_id, site, place, client) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(millis(feedback.at))
    .bind(&*query)
    .bind(feedback.capability.as_str())
    .bind(feedback.site.as_str())
    .bind(to_i32(feedback.place))
    .bind(&feedback.client)
    .execute(&mut *connection)
    .await?;
    Ok(FeedbackOutcome::Saved)
}

async fn cap_reached(
    connection: &mut Connection,
    feedback: &Feedback,
    caps: FeedbackCaps,
) -> Outcome<Option<FeedbackCap>> {
    let (of_client, of_client_for_site, of_site, of_all): (i64, i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM feedback WHERE client = $1),
                (SELECT COUNT(*) FROM feedback WHERE client = $1 AND site = $2),
                (SELECT COUNT(*) FROM feedback WHERE site = $2),
                (SELECT COUNT(*) FROM feedback)",
    )
    .bind(&feedback.client)
    .bind(feedback.site.as_str())
    .fetch_one(&mut *connection)
    .await?;
    let counts = [
        (of_client, caps.of_client, FeedbackCap::Client),
        (of_client_for_site, caps.of_client_for_site, FeedbackCap::ClientForSite),
        (of_site, caps.of_site, FeedbackCap::Site),
        (of_all, caps.of_all, FeedbackCap::All),
    ];
    Ok(counts.into_iter().find(|(count, max, _)| *count >= i64::from(*max)).map(|(.., cap)| cap))
}

/// The conditions of a [`FeedbackFilter`], bound as `$1` to `$4`.
macro_rules! matches_filter {
    () => {
        "($1 IS NULL OR id = $1) AND ($2 IS NULL OR site = $2) AND ($3 IS NULL OR client = $3)
         AND ($4 IS NULL OR capability_id = $4) "
    };
}

struct LineRow {
    id: i64,
    at_ms: i64,
    query: String,
    capability_id: String,
    site: String,
    place: i32,
    client: String,
}

from_row!(LineRow { id, at_ms, query, capability_id, site, place, client });

impl TryFrom<LineRow> for FeedbackLine {
    type Error = StoreError;

    fn try_from(row: LineRow) -> Result<Self, StoreError> {
        let id = row.id.to_string();
        let at = RowRef::new("feedback", &id);
        let feedback = Feedback {
            at: at.time("at_ms", row.at_ms)?,
            query: row.query,
            capability: at.parse("capability_id", &row.capability_id)?,
            site: at.parse("site", &row.site)?,
            place: to_u32(row.place),
            client: row.client,
        };
        Ok(Self { id: row.id, feedback })
    }
}

/// Lines before an id, newest first.
pub(crate) async fn feedback_page(
    connection: &mut Connection,
    filter: &FeedbackFilter,
    before: i64,
    max: i64,
) -> Outcome<Vec<FeedbackLine>> {
    let (mut page, mut before) = (Page::new(max), Cursor::after(before));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(concat!(
            "SELECT id, at_ms, query, capability_id, site, place, client FROM feedback WHERE ",
            matches_filter!(),
            "AND id < $5 ORDER BY id DESC LIMIT $6"
        ))
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .bind(filter.client.as_deref())
        .bind(filter.capability.as_ref().map(manifest::CapabilityId::as_str))
        .bind(before.key)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        before.pass(&rows);
        page.add(decode::<LineRow>(&["feedback"], &rows), FeedbackLine::try_from);
    }
    Ok(page.values)
}

/// Deletes lines; returns how many there were.
pub(crate) async fn feedback_remove(connection: &mut Connection, filter: &FeedbackFilter) -> Outcome<u64> {
    let gone = sqlx::query(concat!("DELETE FROM feedback WHERE ", matches_filter!()))
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .bind(filter.client.as_deref())
        .bind(filter.capability.as_ref().map(manifest::CapabilityId::as_str))
        .execute(&mut *connection)
        .await?;
    Ok(gone.rows_affected())
}

/// Pairs that at least `clients_min` clients chose, sorted, beginning after the given pair.
pub(crate) async fn feedback_pairs(
    connection: &mut Connection,
    after: (&str, &str),
    clients_min: i64,
    max: i64,
) -> Outcome<Vec<FeedbackPair>> {
    let (mut page, mut after) = (Page::new(max), (after.0.to_owned(), after.1.to_owned()));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(
            "SELECT query, capability_id, MIN(site), COUNT(DISTINCT client) FROM feedback
             WHERE (query, capability_id) > ($1, $2) GROUP BY query, capability_id HAVING COUNT(DISTINCT client) >= $3
             ORDER BY query, capability_id LIMIT $4",
        )
        .bind(&after.0)
        .bind(&after.1)
        .bind(clients_min)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        let readable = |row: &Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
        match rows.iter().rev().find_map(readable) {
            Some(last) => after = last,
            None => break,
        }
        let rows = decode(&["feedback"], &rows);
        page.add(rows, |(query, capability, site, clients): (String, String, String, i64)| {
            let at = RowRef::new("feedback", &capability);
            Ok(FeedbackPair {
                capability: at.parse("capability_id", &capability)?,
                site: at.parse("site", &site)?,
                query,
                clients: to_u64(clients),
            })
        });
    }
    Ok(page.values)
}
