//! Statistics of the store, and when the next visit is due.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use policy::FetchOutcome;

use super::compaction::{SiteRow, compacted_columns};
use super::lease::LEASE_MAX_MS;
use super::rows::{Row, decode};
use super::{Connection, feed};
use crate::StoreError;
use crate::convert::{RowRef, UNPLANNED_MS, intact, log_damaged, to_u32, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{FailingSite, PathSlots, SlowSite, Stats};
use crate::rows::path_slots;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

struct QueueRow {
    sites: i64,
    due: i64,
    leased: i64,
    oldest_due_at_ms: Option<i64>,
}

from_row!(QueueRow { sites, due, leased, oldest_due_at_ms });

struct TotalsRow {
    parked: i64,
    visits: i64,
    last_visit_at_ms: Option<i64>,
    blocked: i64,
    manifests: i64,
    capabilities: i64,
    documents: i64,
    document_bytes: i64,
}

from_row!(TotalsRow {
    parked,
    visits,
    last_visit_at_ms,
    blocked,
    manifests,
    capabilities,
    documents,
    document_bytes
});

const QUEUE: &str = "
    SELECT COUNT(*) AS sites,
           COUNT(CASE WHEN next_visit_at_ms <= $1 AND (lease_until_ms <= $1 OR lease_until_ms > $2) THEN 1 END) AS due,
           COUNT(CASE WHEN lease_until_ms > $1 AND lease_until_ms <= $2 THEN 1 END) AS leased,
           CAST(MIN(CASE WHEN next_visit_at_ms <= $1 AND (lease_until_ms <= $1 OR lease_until_ms > $2)
                         THEN next_visit_at_ms END) AS BIGINT) AS oldest_due_at_ms
    FROM site";
/// Leaves out damaged numbers, which could overflow a sum or dominate it.
const TOTALS: &str = "
    SELECT (SELECT COUNT(*) FROM site_state JOIN site ON site.name = site_state.name
            WHERE parked_until_ms IS NOT NULL AND (lease_until_ms <= $1 OR lease_until_ms > $2)) AS parked,
           CAST(COALESCE(SUM(CASE WHEN visits BETWEEN 0 AND 2147483647 THEN visits END), 0) AS BIGINT) AS visits,
           CAST(MAX(CASE WHEN last_visit_at_ms < 9000000000000000 THEN last_visit_at_ms END) AS BIGINT) AS last_visit_at_ms,
           (SELECT COUNT(*) FROM block) AS blocked,
           (SELECT COUNT(*) FROM manifest WHERE removed_at_ms IS NULL) AS manifests,
           (SELECT COUNT(*) FROM capability)
               - (SELECT COUNT(*) FROM declaration WHERE place > 0 AND manifest_id IS NOT NULL) AS capabilities,
           (SELECT COUNT(*) FROM document) AS documents,
           (SELECT CAST(COALESCE(SUM(CASE WHEN bytes BETWEEN 0 AND 1000000000000 THEN bytes END), 0) AS BIGINT)
            FROM document) AS document_bytes
    FROM (SELECT visits, last_visit_at_ms FROM site_state
          UNION ALL
          SELECT visits_at_rest, compacted_last_visit_at_ms FROM site WHERE packed IS NOT NULL) AS state";
const BY_FORMAT: &str = "
    SELECT format, COUNT(*) FROM manifest WHERE removed_at_ms IS NULL GROUP BY format ORDER BY COUNT(*) DESC, format";
const BY_STATUS: &str = "
    SELECT status, COUNT(*)
    FROM (SELECT status FROM site_state
          UNION ALL SELECT COALESCE(compacted_status, '') FROM site WHERE packed IS NOT NULL) AS state
    GROUP BY status ORDER BY COUNT(*) DESC, status";
const BY_END: &str = "
    SELECT visit_end, COUNT(*) FROM visit WHERE ended_at_ms > $1 GROUP BY visit_end
    ORDER BY COUNT(*) DESC, visit_end";

/// Counts everything. Reads whole tables.
pub(crate) async fn stats(connection: &mut Connection, now_ms: i64) -> Outcome<Stats> {
    let at = RowRef::new("site", "all");
    let day_ago_ms = now_ms - DAY_MS;
    let lease_max_ms = now_ms + LEASE_MAX_MS;
    let queue: QueueRow =
        sqlx::query_as(QUEUE).bind(now_ms).bind(lease_max_ms).fetch_one(&mut *connection).await?;
    let totals: TotalsRow =
        sqlx::query_as(TOTALS).bind(now_ms).bind(lease_max_ms).fetch_one(&mut *connection).await?;
    let formats = sqlx::query(BY_FORMAT).fetch_all(&mut *connection).await?;
    let statuses = sqlx::query(BY_STATUS).fetch_all(&mut *connection).await?;
    let ends = sqlx::query(BY_END).bind(day_ago_ms).fetch_all(&mut *connection).await?;
    Ok(Stats {
        sites: to_u64(queue.sites),
        sites_due: to_u64(queue.due),
        sites_leased: to_u64(queue.leased),
        sites_parked: to_u64(totals.parked),
        sites_blocked: to_u64(totals.blocked),
        visits: to_u64(totals.visits),
        manifests: to_u64(totals.manifests),
        capabilities: to_u64(totals.capabilities),
        documents: to_u64(totals.documents),
        document_bytes: to_u64(totals.document_bytes),
        feed_head: feed::feed_head(connection).await?,
        manifests_by_format: counts(&formats, ("manifest", "format")),
        sites_by_status: counts(&statuses, ("site_state", "status")),
        ends_last_day: counts(&ends, ("visit", "visit_end")),
        outcomes_last_day: outcomes_count(connection, day_ago_ms).await?,
        oldest_due_at: queue.oldest_due_at_ms.map(|at_ms| at.nearest_time("next_visit_at_ms", at_ms)),
        last_visit_at: log_damaged(at.time_of("last_visit_at_ms", totals.last_visit_at_ms)).flatten(),
    })
}

fn counts<T>(rows: &[Row], (table, column): (&'static str, &'static str)) -> Vec<(T, u64)>
where
    T: std::str::FromStr,
    T::Err: ToString,
{
    let rows = decode(&[table], rows);
    intact(rows, |(slug, count): (String, i64)| {
        Ok((RowRef::new(table, &slug).parse(column, &slug)?, to_u64(count)))
    })
}

/// Sums up `visit.outcomes`. Most visits have equal counts, so the database groups them first.
async fn outcomes_count(connection: &mut Connection, since_ms: i64) -> Outcome<Vec<(FetchOutcome, u64)>> {
    let rows = sqlx::query("SELECT outcomes, COUNT(*) FROM visit WHERE ended_at_ms > $1 GROUP BY outcomes")
        .bind(since_ms)
        .fetch_all(&mut *connection)
        .await?;
    let mut totals: BTreeMap<FetchOutcome, u64> = BTreeMap::new();
    let read = |(outcomes, visits): (String, i64)| {
        let parsed = outcomes_parse(&RowRef::new("visit", &outcomes), &outcomes)?;
        let times = |(outcome, count)| (outcome, u64::from(count).saturating_mul(to_u64(visits)));
        Ok(parsed.into_iter().map(times).collect::<Vec<(FetchOutcome, u64)>>())
    };
    for (outcome, count) in intact(decode(&["visit"], &rows), read).into_iter().flatten() {
        *totals.entry(outcome).or_default() += count;
    }
    let mut totals: Vec<(FetchOutcome, u64)> = totals.into_iter().collect();
    totals.sort_by_key(|(outcome, count)| (Reverse(*count), *outcome));
    Ok(totals)
}

/// Reads `found=1,not_found=18`.
pub(super) fn outcomes_parse(
    at: &RowRef<'_>,
    outcomes: &str,
) -> Result<Vec<(FetchOutcome, u32)>, StoreError> {
    let count = |part: &str| {
        let (slug, count) = part.split_once('=').ok_or_else(|| at.damaged("outcomes", "a part without ="))?;
        Ok((at.parse("outcomes", slug)?, at.parse("outcomes", count)?))
    };
    outcomes.split(',').filter(|part| !part.is_empty()).map(count).collect()
}

type FailingRow = (String, i32, Option<String>);

/// Sites by failed visits in a row, most first. Leaves out blocked and suspended sites, which are not visited.
pub(crate) async fn sites_failing(connection: &mut Connection, max: i64) -> Outcome<Vec<FailingSite>> {
    let expanded = sqlx::query(
        "SELECT name, failures_in_row, last_end FROM site_state WHERE failures_in_row > 0
           AND status NOT IN ('opted_out', 'suspended')
         ORDER BY failures_in_row DESC, name LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let compacted = sqlx::query(concat!(
        "SELECT name, fence, next_visit_at_ms, ",
        compacted_columns!(),
        " FROM site WHERE compacted_failures > 0 ORDER BY compacted_failures DESC, name LIMIT $1"
    ))
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let mut rows: Vec<FailingRow> = intact(decode(&["site_state"], &expanded), Ok);
    let compacted =
        intact(decode(&["site"], &compacted), SiteRow::decode).into_iter().flatten().map(|site| site.state);
    rows.extend(compacted.map(|state| (state.name, state.failures_in_row, state.last_end)));
    rows.sort_unstable_by(|one, other| (Reverse(one.1), &one.0).cmp(&(Reverse(other.1), &other.0)));
    let mut failing = intact(rows.into_iter().map(Ok), |(name, failures, last_end)| {
        let at = RowRef::new("site_state", &name);
        Ok(FailingSite {
            site: at.parse("name", &name)?,
            failures_in_row: to_u32(failures),
            last_end: at.parse_of("last_end", last_end.as_ref())?,
        })
    });
    failing.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    Ok(failing)
}

/// Sites by average time to first byte in visits since a time, slowest first.
pub(crate) async fn sites_slowest(
    connection: &mut Connection,
    since_ms: i64,
    max: i64,
) -> Outcome<Vec<SlowSite>> {
    let rows = sqlx::query(
        "SELECT site, CAST(SUM(ttfb_ms) / SUM(requests) AS BIGINT) AS ms FROM visit
         WHERE ended_at_ms > $1 AND requests BETWEEN 1 AND 2147483647 AND ttfb_ms BETWEEN 0 AND 2147483647
         GROUP BY site ORDER BY ms DESC, site LIMIT $2",
    )
    .bind(since_ms)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["visit"], &rows), |(name, ms): (String, i64)| {
        let site = RowRef::new("visit", &name).parse("site", &name)?;
        Ok(SlowSite { site, first_byte_ms: u32::try_from(ms).unwrap_or(u32::MAX) })
    }))
}

/// The path slots of up to `max` sites that have manifests.
pub(crate) async fn paths_of_positives(connection: &mut Connection, max: i64) -> Outcome<Vec<PathSlots>> {
    let rows = sqlx::query(
        "SELECT name, paths_checked FROM site_state WHERE manifests > 0 AND paths_checked IS NOT NULL
         ORDER BY name LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["site_state"], &rows), |(name, slots): (String, Vec<u8>)| {
        path_slots(&RowRef::new("site_state", &name), Some(slots))
    }))
}

/// How many sites are due. Reads the whole table of sites.
pub(crate) async fn sites_due(connection: &mut Connection, now_ms: i64) -> Outcome<u64> {
    let due: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM site WHERE next_visit_at_ms <= $1")
        .bind(now_ms)
        .fetch_one(&mut *connection)
        .await?;
    Ok(to_u64(due))
}

/// The earliest planned visit of a site that is not leased, looked up by priority in the index of due sites.
pub(crate) async fn next_due_at(connection: &mut Connection) -> Outcome<Option<DateTime<Utc>>> {
    let at_ms: Option<i64> = sqlx::query_scalar(
        "SELECT CAST(MIN(earliest.at_ms) AS BIGINT) FROM (
             SELECT (SELECT next_visit_at_ms FROM site
                     WHERE priority = class.column1 AND lease_owner IS NULL AND next_visit_at_ms < $1
                     ORDER BY next_visit_at_ms LIMIT 1) AS at_ms
             FROM (VALUES (0), (1), (2), (3), (4), (5)) AS class
         ) AS earliest",
    )
    .bind(UNPLANNED_MS)
    .fetch_one(&mut *connection)
    .await?;
    // a site with a damaged time is due immediately, and leasing skips it
    Ok(at_ms.map(|at_ms| RowRef::new("site", "earliest").nearest_time("next_visit_at_ms", at_ms)))
}
