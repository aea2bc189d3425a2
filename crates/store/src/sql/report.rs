//! Reports: saved within caps, listed, counted by site, dismissed, and deleted by age.

use super::rows::{Cursor, decode};
use super::{Connection, for_update};
use crate::StoreError;
use crate::convert::{Page, RowRef, millis, text, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{Report, ReportCap, ReportCaps, ReportFilter, ReportLine, ReportOutcome, ReportedSite};

/// Saves a report unless it is a duplicate or a cap is reached. If the total cap is reached, it replaces the latest report about the site
/// with the most reports, so that a flood of reports about some sites does not suppress reports about others. The lock on the row of the
/// site serialises reports about one site; concurrent reports about several sites may exceed the total cap by a few.
pub(crate) async fn report_save(
    connection: &mut Connection,
    report: &Report,
    caps: ReportCaps,
) -> Outcome<ReportOutcome> {
    let _: Vec<String> = sqlx::query_scalar(concat!("SELECT name FROM site WHERE name = $1", for_update!()))
        .bind(report.site.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let note = text(&report.note);
    let (same, of_site, of_all): (i64, i64, i64) = sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM report WHERE site = $1 AND reason = $2 AND note = $3
                     AND COALESCE(capability_id, '') = $4),
                (SELECT COUNT(*) FROM report WHERE site = $1),
                (SELECT COUNT(*) FROM report)",
    )
    .bind(report.site.as_str())
    .bind(report.reason.as_str())
    .bind(&*note)
    .bind(report.capability.as_ref().map_or("", manifest::CapabilityId::as_str))
    .fetch_one(&mut *connection)
    .await?;
    if same > 0 {
        return Ok(ReportOutcome::Duplicate);
    }
    if of_site >= i64::from(caps.of_site) {
        return Ok(ReportOutcome::Full(ReportCap::Site));
    }
    if of_all >= i64::from(caps.of_all) && !report_displace(connection, of_site).await? {
        return Ok(ReportOutcome::Full(ReportCap::All));
    }
    sqlx::query("INSERT INTO report (at_ms, site, capability_id, reason, note) VALUES ($1, $2, $3, $4, $5)")
        .bind(millis(report.at))
        .bind(report.site.as_str())
        .bind(report.capability.as_ref().map(manifest::CapabilityId::as_str))
        .bind(report.reason.as_str())
        .bind(&*note)
        .execute(&mut *connection)
        .await?;
    Ok(ReportOutcome::Saved)
}

/// Number of reports about a site that are never replaced. They are enough to inform the operator, and a flood of reports about other sites
/// cannot delete them.
const PROTECTED_PER_SITE: i64 = 10;

/// Deletes the latest report about the site with the most reports, if it has more than `of_site` and [`PROTECTED_PER_SITE`]. Returns
/// whether one was deleted.
async fn report_displace(connection: &mut Connection, of_site: i64) -> Outcome<bool> {
    let displaced = sqlx::query(
        "DELETE FROM report WHERE id =
             (SELECT MAX(id) FROM report GROUP BY site HAVING COUNT(*) > $1
              ORDER BY COUNT(*) DESC, MAX(id) DESC LIMIT 1)",
    )
    .bind(of_site.max(PROTECTED_PER_SITE))
    .execute(&mut *connection)
    .await?;
    Ok(displaced.rows_affected() > 0)
}

struct LineRow {
    id: i64,
    at_ms: i64,
    site: String,
    capability_id: Option<String>,
    reason: String,
    note: String,
}

from_row!(LineRow { id, at_ms, site, capability_id, reason, note });

impl TryFrom<LineRow> for ReportLine {
    type Error = StoreError;

    fn try_from(row: LineRow) -> Result<Self, StoreError> {
        let id = row.id.to_string();
        let at = RowRef::new("report", &id);
        let capability = row.capability_id.map(|id| at.parse("capability_id", &id)).transpose()?;
        let report = Report {
            at: at.time("at_ms", row.at_ms)?,
            site: at.parse("site", &row.site)?,
            capability,
            reason: at.parse("reason", &row.reason)?,
            note: row.note,
        };
        Ok(Self { id: row.id, report })
    }
}

/// Reports before an id, newest first.
pub(crate) async fn reports_page(
    connection: &mut Connection,
    filter: &ReportFilter,
    before: i64,
    max: i64,
) -> Outcome<Vec<ReportLine>> {
    let (mut page, mut cursor) = (Page::new(max), Cursor::after(before));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(
            "SELECT id, at_ms, site, capability_id, reason, note FROM report
             WHERE ($1 IS NULL OR id = $1) AND ($2 IS NULL OR site = $2) AND id < $3 ORDER BY id DESC LIMIT $4",
        )
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .bind(cursor.key)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        cursor.pass(&rows);
        page.add(decode::<LineRow>(&["report"], &rows), ReportLine::try_from);
    }
    Ok(page.values)
}

/// Sites with reports, the one with the most first.
pub(crate) async fn reports_by_site(connection: &mut Connection, max: i64) -> Outcome<Vec<ReportedSite>> {
    let rows = sqlx::query(
        "SELECT site, COUNT(*), MAX(at_ms),
                (SELECT COUNT(*) FROM suspension WHERE suspension.site = report.site)
         FROM report GROUP BY site ORDER BY COUNT(*) DESC, site LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let mut page = Page::new(max);
    page.add(
        decode(&["report"], &rows),
        |(site, reports, latest_at_ms, suspended): (String, i64, i64, i64)| {
            let at = RowRef::new("report", &site);
            Ok(ReportedSite {
                site: at.parse("site", &site)?,
                reports: to_u64(reports),
                latest_at: at.time("at_ms", latest_at_ms)?,
                is_suspended: suspended > 0,
            })
        },
    );
    Ok(page.values)
}

/// Deletes the reports that match the filter (all reports if it has no field). Returns their number.
pub(crate) async fn reports_dismiss(connection: &mut Connection, filter: &ReportFilter) -> Outcome<u64> {
    let gone = sqlx::query("DELETE FROM report WHERE ($1 IS NULL OR id = $1) AND ($2 IS NULL OR site = $2)")
        .bind(filter.id)
        .bind(filter.site.as_ref().map(manifest::SiteName::as_str))
        .execute(&mut *connection)
        .await?;
    Ok(gone.rows_affected())
}
