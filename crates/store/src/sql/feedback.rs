//! What people chose for a request: kept under caps, told to the operator, removed when the operator says so.

use chrono::DateTime;
use chrono::Utc;

use super::{Connection, for_update};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{
    Feedback, FeedbackCap, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair,
};
use crate::pack::{Page, Place, count, counted, millis, sized, text};

/// The salt of a day: the one that is there, else the candidate. Salts of earlier days are forgotten.
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

/// Keeps a line unless it was said before or a cap is reached. One writer at a time, by the lock on the rows of the salts.
pub(crate) async fn feedback_save(
    connection: &mut Connection,
    said: &Feedback,
    caps: FeedbackCaps,
) -> Outcome<FeedbackOutcome> {
    let _: Vec<i64> =
        sqlx::query_scalar(concat!("SELECT day FROM feedback_salt ORDER BY day", for_update!()))
            .fetch_all(&mut *connection)
            .await?;
    let query = text(&said.query);
    let before: i64 = sqlx::query_scalar(
        "SELECT COUNT(*) FROM feedback WHERE client = $1 AND capability_id = $2 AND query = $3",
    )
    .bind(&said.client)
    .bind(said.capability.as_str())
    .bind(&*query)
    .fetch_one(&mut *connection)
    .await?;
    if before > 0 {
        return Ok(FeedbackOutcome::SaidBefore);
    }
    if let Some(cap) = cap_reached(connection, said, caps).await? {
        return Ok(FeedbackOutcome::Full(cap));
    }
    sqlx::query(
        "INSERT INTO feedback (at_ms, query, capability_id, site, place, client) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(millis(said.at))
    .bind(&*query)
    .bind(said.capability.as_str())
    .bind(said.site.as_str())
    .bind(count(said.place))
    .bind(&said.client)
    .execute(&mut *connection)
    .await?;
    Ok(FeedbackOutcome::Kept)
}

async fn cap_reached(
    connection: &mut Connection,
    said: &Feedback,
    caps: FeedbackCaps,
) -> Outcome<Option<FeedbackCap>> {
    let (of_client, of_client_for_site, of_site, of_all): (i64, i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM feedback WHERE client = $1),
                (SELECT COUNT(*) FROM feedback WHERE client = $1 AND site = $2),
                (SELECT COUNT(*) FROM feedback WHERE site = $2),
                (SELECT COUNT(*) FROM feedback)",
    )
    .bind(&said.client)
    .bind(said.site.as_str())
    .fetch_one(&mut *connection)
    .await?;
    let kept = [
        (of_client, caps.of_client, FeedbackCap::Client),
        (of_client_for_site, caps.of_client_for_site, FeedbackCap::ClientForSite),
        (of_site, caps.of_site, FeedbackCap::Site),
        (of_all, caps.of_all, FeedbackCap::All),
    ];
    Ok(kept.into_iter().find(|(kept, most, _)| *kept >= i64::from(*most)).map(|(_, _, cap)| cap))
}

/// Conditions of a filter.
macro_rules! meant {
    () => {
        "($1 IS NULL OR id = $1) AND ($2 IS NULL OR site = $2) AND ($3 IS NULL OR client = $3)
         AND ($4 IS NULL OR capability_id = $4) "
    };
}

/// A line as it is read back: id, time, query, capability, site, place, client.
type LineRow = (i64, i64, String, String, String, i32, String);

/// Lines before an id, the newest first.
pub(crate) async fn feedback_page(
    connection: &mut Connection,
    filter: &FeedbackFilter,
    before: i64,
    max: i64,
) -> Outcome<Vec<FeedbackLine>> {
    let (mut page, mut before) = (Page::new(max), before);
    while let Some(wanted) = page.wanted() {
        let rows: Vec<LineRow> = sqlx::query_as(concat!(
            "SELECT id, at_ms, query, capability_id, site, place, client FROM feedback WHERE ",
            meant!(),
            "AND id < $5 ORDER BY id DESC LIMIT $6"
        ))
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .bind(filter.client.as_deref())
        .bind(filter.capability.as_ref().map(manifest::CapabilityId::as_str))
        .bind(before)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        before = rows.last().map_or(before, |(id, ..)| *id);
        page.add(rows, line);
    }
    Ok(page.values)
}

fn line((id, at_ms, query, capability, site, place, client): LineRow) -> Result<FeedbackLine, StoreError> {
    let name = id.to_string();
    let row = Place::new("feedback", &name);
    let at: DateTime<Utc> = row.time("at_ms", at_ms)?;
    let feedback = Feedback {
        at,
        query,
        capability: row.parse("capability_id", &capability)?,
        site: row.parse("site", &site)?,
        place: counted(place),
        client,
    };
    Ok(FeedbackLine { id, feedback })
}

/// Removes lines; returns how many there were.
pub(crate) async fn feedback_remove(connection: &mut Connection, filter: &FeedbackFilter) -> Outcome<u64> {
    let gone = sqlx::query(concat!("DELETE FROM feedback WHERE ", meant!()))
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .bind(filter.client.as_deref())
        .bind(filter.capability.as_ref().map(manifest::CapabilityId::as_str))
        .execute(&mut *connection)
        .await?;
    Ok(gone.rows_affected())
}

/// Pairs behind a pair, in the order of requests and capabilities, that so many clients have in common.
pub(crate) async fn feedback_pairs(
    connection: &mut Connection,
    after: (&str, &str),
    clients_min: i64,
    max: i64,
) -> Outcome<Vec<FeedbackPair>> {
    let (mut page, mut after) = (Page::new(max), (after.0.to_owned(), after.1.to_owned()));
    while let Some(wanted) = page.wanted() {
        let rows: Vec<(String, String, String, i64)> = sqlx::query_as(
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
        if let Some((query, capability, ..)) = rows.last() {
            after = (query.clone(), capability.clone());
        }
        page.add(rows, |(query, capability, site, clients)| {
            let row = Place::new("feedback", &capability);
            Ok(FeedbackPair {
                capability: row.parse("capability_id", &capability)?,
                site: row.parse("site", &site)?,
                query,
                clients: sized(clients),
            })
        });
    }
    Ok(page.values)
}
