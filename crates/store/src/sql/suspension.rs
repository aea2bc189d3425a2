//! Suspended sites: why they are suspended, the objections of their owners, and the answers of the operator.

use super::Connection;
use super::rows::decode;
use crate::StoreError;
use crate::convert::{RowRef, intact, text};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{DatedText, SuspendedSite, SuspensionRecord};

struct Row {
    site: String,
    reason: String,
    note: String,
    suspended_at_ms: i64,
    places: Option<String>,
    objection: Option<String>,
    objected_at_ms: Option<i64>,
    answer: Option<String>,
    answered_at_ms: Option<i64>,
}

from_row!(Row {
    site,
    reason,
    note,
    suspended_at_ms,
    places,
    objection,
    objected_at_ms,
    answer,
    answered_at_ms
});

impl TryFrom<Row> for SuspendedSite {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let at = RowRef::new("suspension", &row.site);
        let dated = |column, text: Option<String>, at_ms| {
            let at = at.time_of(column, at_ms)?;
            Ok::<_, StoreError>(text.zip(at).map(|(text, at)| DatedText { text, at }))
        };
        let places = row.places.as_deref().map(serde_json::from_str::<Vec<String>>).transpose();
        Ok(Self {
            suspension: SuspensionRecord {
                reason: at.parse("reason", &row.reason)?,
                note: row.note,
                places: places.map_err(|error| at.damaged("places", &error))?.unwrap_or_default(),
                at: at.time("suspended_at_ms", row.suspended_at_ms)?,
            },
            objection: dated("objected_at_ms", row.objection, row.objected_at_ms)?,
            answer: dated("answered_at_ms", row.answer, row.answered_at_ms)?,
            site: at.parse("site", &row.site)?,
        })
    }
}

macro_rules! columns {
    () => {
        "SELECT site, reason, note, suspended_at_ms, places, objection, objected_at_ms, answer, answered_at_ms
         FROM suspension "
    };
}

/// The suspension of a site.
pub(crate) async fn suspension_find(
    connection: &mut Connection,
    site: &str,
) -> Outcome<Option<SuspensionRecord>> {
    Ok(suspended_site_find(connection, site).await?.map(|found| found.suspension))
}

/// The suspension of a site, with the objection of its owner.
pub(crate) async fn suspended_site_find(
    connection: &mut Connection,
    site: &str,
) -> Outcome<Option<SuspendedSite>> {
    let row: Option<Row> = sqlx::query_as(concat!(columns!(), "WHERE site = $1"))
        .bind(site)
        .fetch_optional(&mut *connection)
        .await?;
    Ok(row.map(SuspendedSite::try_from).transpose()?)
}

/// Suspended sites whose owners object: those without an answer first, in the order of their objections.
pub(crate) async fn objections_list(connection: &mut Connection, max: i64) -> Outcome<Vec<SuspendedSite>> {
    let rows = sqlx::query(concat!(
        columns!(),
        "WHERE objected_at_ms IS NOT NULL
         ORDER BY CASE WHEN answered_at_ms IS NULL THEN 0 ELSE 1 END, objected_at_ms, site LIMIT $1"
    ))
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode::<Row>(&["suspension"], &rows), SuspendedSite::try_from))
}

/// Stores the objection of an owner in place of an earlier one and the answer to it. False if the site is not suspended.
pub(crate) async fn objection_save(
    connection: &mut Connection,
    site: &str,
    objection: &str,
    now_ms: i64,
) -> Outcome<bool> {
    let saved = sqlx::query(
        "UPDATE suspension SET objection = $2, objected_at_ms = $3, answer = NULL, answered_at_ms = NULL
         WHERE site = $1",
    )
    .bind(site)
    .bind(text(objection))
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    Ok(saved.rows_affected() > 0)
}

/// Stores the answer of the operator to an objection. False if there is none.
pub(crate) async fn objection_answer(
    connection: &mut Connection,
    site: &str,
    answer: &str,
    now_ms: i64,
) -> Outcome<bool> {
    let saved = sqlx::query(
        "UPDATE suspension SET answer = $2, answered_at_ms = $3 WHERE site = $1 AND objected_at_ms IS NOT NULL",
    )
    .bind(site)
    .bind(text(answer))
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    Ok(saved.rows_affected() > 0)
}
