//! The store in numbers, and when there is next something to do.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use policy::{FetchOutcome, Status};

use super::{Connection, feed};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{FailingSite, PathSlots, SlowSite, Stats};
use crate::pack::{Place, UNPLANNED_MS, counted, logged, sized, whole};
use crate::rest::{self as at_rest, SiteAtRest};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(sqlx::FromRow)]
struct QueueRow {
    sites: i64,
    due: i64,
    leased: i64,
    oldest_due_at_ms: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct StateRow {
    parked: i64,
    visits: i64,
    last_visit_at_ms: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct ContentRow {
    blocked: i64,
    manifests: i64,
    capabilities: i64,
    documents: i64,
    document_bytes: i64,
}

/// Counts everything. Reads whole tables, so callers keep the answer for some seconds.
pub(crate) async fn stats(connection: &mut Connection, now_ms: i64) -> Outcome<Stats> {
    let place = Place::new("site", "all");
    let queue = queue_count(connection, now_ms).await?;
    let state: StateRow = sqlx::query_as(
        "SELECT COUNT(parked_until_ms) AS parked, CAST(COALESCE(SUM(visits), 0) AS BIGINT) AS visits,
                MAX(last_visit_at_ms) AS last_visit_at_ms
         FROM site_state",
    )
    .fetch_one(&mut *connection)
    .await?;
    let content: ContentRow = sqlx::query_as(
        "SELECT (SELECT COUNT(*) FROM block) AS blocked,
                (SELECT COUNT(*) FROM manifest WHERE removed_at_ms IS NULL) AS manifests,
                (SELECT COUNT(*) FROM capability) AS capabilities,
                (SELECT COUNT(*) FROM document) AS documents,
                (SELECT CAST(COALESCE(SUM(CASE WHEN bytes BETWEEN 0 AND 1000000000000 THEN bytes END), 0) AS BIGINT)
                 FROM document) AS document_bytes",
    )
    .fetch_one(&mut *connection)
    .await?;
    let at_rest = at_rest_count(connection).await?;
    let formats = sqlx::query_as(
        "SELECT format, COUNT(*) FROM manifest WHERE removed_at_ms IS NULL AND $1 > 0
         GROUP BY format ORDER BY COUNT(*) DESC, format",
    );
    let statuses = sqlx::query_as(
        "SELECT status, COUNT(*) FROM site_state WHERE $1 > 0 GROUP BY status ORDER BY COUNT(*) DESC, status",
    );
    let ends = sqlx::query_as(
        "SELECT visit_end, COUNT(*) FROM visit WHERE ended_at_ms > $1 GROUP BY visit_end
         ORDER BY COUNT(*) DESC, visit_end",
    );
    let day_ago_ms = now_ms - DAY_MS;
    Ok(Stats {
        sites: sized(queue.sites),
        sites_due: sized(queue.due),
        sites_leased: sized(queue.leased),
        sites_parked: sized(state.parked),
        sites_blocked: sized(content.blocked),
        visits: sized(state.visits + at_rest.visits),
        manifests: sized(content.manifests),
        capabilities: sized(content.capabilities),
        documents: sized(content.documents),
        document_bytes: sized(content.document_bytes),
        feed_head: feed::feed_head(connection).await?,
        manifests_by_format: words(
            formats.bind(1_i64).fetch_all(&mut *connection).await?,
            ("manifest", "format"),
        ),
        sites_by_status: at_rest
            .add_to(words(statuses.bind(1_i64).fetch_all(&mut *connection).await?, ("site_state", "status"))),
        ends_last_day: words(
            ends.bind(day_ago_ms).fetch_all(&mut *connection).await?,
            ("visit", "visit_end"),
        ),
        outcomes_last_day: outcomes_count(connection, day_ago_ms).await?,
        oldest_due_at: queue.oldest_due_at_ms.map(|at_ms| place.nearest_time("next_visit_at_ms", at_ms)),
        last_visit_at: logged(
            place.time_of("last_visit_at_ms", state.last_visit_at_ms.max(at_rest.last_visit_at_ms)),
        )
        .flatten(),
    })
}

/// Sites at rest, in numbers.
struct AtRest {
    visits: i64,
    last_visit_at_ms: Option<i64>,
    by_status: Vec<(Vec<u8>, i64)>,
}

impl AtRest {
    /// Adds them to the sites with rows of their own, the most frequent status first.
    fn add_to(&self, awake: Vec<(Status, u64)>) -> Vec<(Status, u64)> {
        let mut counts: BTreeMap<Status, u64> = awake.into_iter().collect();
        let at_rest = whole(&self.by_status, |(code, count)| {
            let place = Place::new("site", "at rest");
            let word = at_rest::status_of_code(code)
                .ok_or_else(|| place.damaged("packed", "a status that this program does not know"))?;
            Ok((place.parse("packed", word)?, sized(*count)))
        });
        for (status, count) in at_rest {
            *counts.entry(status).or_default() += count;
        }
        let mut counts: Vec<(Status, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(status, count)| (std::cmp::Reverse(*count), status.as_str()));
        counts
    }
}

async fn at_rest_count(connection: &mut Connection) -> Outcome<AtRest> {
    let visits = sqlx::query_scalar("SELECT CAST(COALESCE(SUM(visits_at_rest), 0) AS BIGINT) FROM site")
        .fetch_one(&mut *connection)
        .await?;
    let by_status = sqlx::query_as(
        "SELECT substr(packed, 2, 1), COUNT(*) FROM site WHERE packed IS NOT NULL GROUP BY substr(packed, 2, 1)",
    )
    .fetch_all(&mut *connection)
    .await?;
    let last: Option<(String, Vec<u8>)> = sqlx::query_as(
        "SELECT name, packed FROM site WHERE visits_at_rest > 0 ORDER BY substr(packed, 5, 4) DESC LIMIT 1",
    )
    .fetch_optional(&mut *connection)
    .await?;
    let last = last.and_then(|(name, packed)| logged(SiteAtRest::unpack(&name, &packed)));
    let last_visit_at_ms = last.and_then(|site| site.last_visit_at_ms);
    Ok(AtRest { visits, last_visit_at_ms, by_status })
}

async fn queue_count(connection: &mut Connection, now_ms: i64) -> Outcome<QueueRow> {
    let row = sqlx::query_as(
        "SELECT COUNT(*) AS sites,
                COUNT(CASE WHEN next_visit_at_ms <= $1 AND lease_until_ms <= $1 THEN 1 END) AS due,
                COUNT(CASE WHEN lease_until_ms > $1 THEN 1 END) AS leased,
                MIN(CASE WHEN next_visit_at_ms <= $1 AND lease_until_ms <= $1 THEN next_visit_at_ms END)
                    AS oldest_due_at_ms
         FROM site",
    )
    .bind(now_ms)
    .fetch_one(&mut *connection)
    .await?;
    Ok(row)
}

fn words<T>(rows: Vec<(String, i64)>, (table, column): (&'static str, &'static str)) -> Vec<(T, u64)>
where
    T: std::str::FromStr,
    T::Err: ToString,
{
    whole(rows, |(word, count)| Ok((Place::new(table, &word).parse(column, &word)?, sized(count))))
}

/// Most visits come to the same counts, so the database groups them before they are taken apart here.
async fn outcomes_count(connection: &mut Connection, since_ms: i64) -> Outcome<Vec<(FetchOutcome, u64)>> {
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT outcomes, COUNT(*) FROM visit WHERE ended_at_ms > $1 GROUP BY outcomes")
            .bind(since_ms)
            .fetch_all(&mut *connection)
            .await?;
    let mut totals: BTreeMap<FetchOutcome, u64> = BTreeMap::new();
    let read = |(outcomes, visits): (String, i64)| {
        let place = Place::new("visit", &outcomes);
        let parts = outcomes.split(',').filter(|part| !part.is_empty());
        let count = |part: &str| -> Result<(FetchOutcome, u64), StoreError> {
            let (word, count) =
                part.split_once('=').ok_or_else(|| place.damaged("outcomes", "a part without ="))?;
            let count: u32 = place.parse("outcomes", count)?;
            Ok((place.parse("outcomes", word)?, u64::from(count).saturating_mul(sized(visits))))
        };
        parts.map(count).collect::<Result<Vec<_>, _>>()
    };
    for (outcome, count) in whole(rows, read).into_iter().flatten() {
        *totals.entry(outcome).or_default() += count;
    }
    let mut totals: Vec<(FetchOutcome, u64)> = totals.into_iter().collect();
    totals.sort_by_key(|(outcome, count)| (std::cmp::Reverse(*count), *outcome));
    Ok(totals)
}

/// Sites that failed most often in a row.
pub(crate) async fn sites_failing(connection: &mut Connection, max: i64) -> Outcome<Vec<FailingSite>> {
    let rows: Vec<(String, i32, Option<String>)> = sqlx::query_as(
        "SELECT name, failures_in_row, last_end FROM site_state WHERE failures_in_row > 0
         ORDER BY failures_in_row DESC, name LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let mut failing = whole(rows, |(name, failures, last_end)| {
        let place = Place::new("site_state", &name);
        Ok(FailingSite {
            site: place.parse("name", &name)?,
            failures_in_row: counted(failures),
            last_end: place.parse_of("last_end", last_end.as_ref())?,
        })
    });
    failing_at_rest_add(connection, max, &mut failing).await?;
    Ok(failing)
}

async fn failing_at_rest_add(
    connection: &mut Connection,
    max: i64,
    failing: &mut Vec<FailingSite>,
) -> Outcome<()> {
    let rows: Vec<(String, Vec<u8>)> = sqlx::query_as(
        "SELECT name, packed FROM site WHERE visits_at_rest > 0 AND substr(packed, 3, 2) > $1
         ORDER BY substr(packed, 3, 2) DESC, name LIMIT $2",
    )
    .bind([0_u8, 0].as_slice())
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    failing.extend(whole(rows, |(name, packed)| {
        let site = SiteAtRest::unpack(&name, &packed)?;
        let place = Place::new("site", &name);
        Ok(FailingSite {
            site: place.parse("name", &name)?,
            failures_in_row: counted(site.failures_in_row),
            last_end: place.parse_of("packed", site.last_end.as_ref())?,
        })
    }));
    failing.sort_by(|one, other| (other.failures_in_row, &one.site).cmp(&(one.failures_in_row, &other.site)));
    failing.truncate(usize::try_from(max).unwrap_or(usize::MAX));
    Ok(())
}

/// Sites that took longest to a first byte, a request, in visits since a time.
pub(crate) async fn sites_slowest(
    connection: &mut Connection,
    since_ms: i64,
    max: i64,
) -> Outcome<Vec<SlowSite>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT site, CAST(SUM(ttfb_ms) / SUM(requests) AS BIGINT) AS ms FROM visit
         WHERE ended_at_ms > $1 AND requests > 0 GROUP BY site ORDER BY ms DESC, site LIMIT $2",
    )
    .bind(since_ms)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, |(name, ms)| {
        let site = Place::new("visit", &name).parse("site", &name)?;
        Ok(SlowSite { site, first_byte_ms: u32::try_from(ms).unwrap_or(u32::MAX) })
    }))
}

/// What each path came to at sites that have manifests, of so many sites.
pub(crate) async fn paths_of_positives(connection: &mut Connection, max: i64) -> Outcome<Vec<PathSlots>> {
    let rows: Vec<(String, Vec<u8>)> = sqlx::query_as(
        "SELECT name, paths_checked FROM site_state WHERE manifests > 0 AND paths_checked IS NOT NULL
         ORDER BY name LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, |(name, bytes)| {
        let damaged = || {
            Place::new("site_state", &name).damaged("paths_checked", "its length is not a multiple of three")
        };
        PathSlots::from_bytes(bytes).ok_or_else(damaged)
    }))
}

/// The earliest planned visit of a site that nobody holds, looked up class by class in the index of due sites.
pub(crate) async fn next_due_at(connection: &mut Connection) -> Outcome<Option<DateTime<Utc>>> {
    let at_ms: Option<i64> = sqlx::query_scalar(
        "SELECT MIN(earliest.at_ms) FROM (
             SELECT (SELECT next_visit_at_ms FROM site
                     WHERE priority = class.column1 AND lease_owner IS NULL AND next_visit_at_ms < $1
                     ORDER BY next_visit_at_ms LIMIT 1) AS at_ms
             FROM (VALUES (0), (1), (2), (3), (4), (5)) AS class
         ) AS earliest",
    )
    .bind(UNPLANNED_MS)
    .fetch_one(&mut *connection)
    .await?;
    // A site with a damaged time is due at once: its lease sets it aside.
    Ok(at_ms.map(|at_ms| Place::new("site", "earliest").nearest_time("next_visit_at_ms", at_ms)))
}
