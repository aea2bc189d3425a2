//! How many searches showed a site that has an owner, and each of its capabilities, for each day.

use serde::Serialize;

use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{RowRef, intact, json, to_i64, to_u64};
use crate::fault::Outcome;
use crate::model::{CapabilitySearchCount, SearchCount};

/// About how many capabilities of a site are counted on one day: more than an owner reads, and at most a few hundred kilobytes a site for
/// all days that are kept. A batch may exceed it.
const CAPABILITIES_OF_DAY_MAX: i64 = 100;

#[derive(Serialize)]
struct CountRow<'a> {
    site: &'a str,
    day: i32,
    searches: i64,
}

/// Adds counts. Counts for sites without an owner are dropped.
pub(crate) async fn search_counts_add(connection: &mut Connection, counts: &[SearchCount]) -> Outcome<()> {
    let mut rows: Vec<CountRow<'_>> = counts
        .iter()
        .map(|count| CountRow { site: count.site.as_str(), day: count.day, searches: to_i64(count.searches) })
        .collect();
    // concurrent batches lock rows in the same order
    rows.sort_unstable_by_key(|row| (row.site, row.day));
    sqlx::query(concat!(
        "INSERT INTO search_count (site, day, searches) SELECT site, day, searches FROM ",
        batch!(site TEXT, day INTEGER, searches BIGINT),
        " WHERE site IN (SELECT site_claim.site FROM site_claim WHERE site_claim.key_hash IS NOT NULL)
         ON CONFLICT (site, day) DO UPDATE SET searches = search_count.searches + excluded.searches"
    ))
    .bind(json(&rows, "batch of counts")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The counts of a site since a day, the latest day first.
pub(crate) async fn search_counts_of(
    connection: &mut Connection,
    site: &str,
    since: i32,
) -> Outcome<Vec<SearchCount>> {
    let rows = sqlx::query(
        "SELECT site, day, searches FROM search_count WHERE site = $1 AND day >= $2 ORDER BY day DESC",
    )
    .bind(site)
    .bind(since)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["search_count"], &rows), |(site, day, searches): (String, i32, i64)| {
        let site = RowRef::new("search_count", &site).parse("site", &site)?;
        Ok(SearchCount { site, day, searches: to_u64(searches) })
    }))
}

#[derive(Serialize)]
struct CapabilityRow<'a> {
    site: &'a str,
    day: i32,
    capability_id: &'a str,
    searches: i64,
}

/// Adds counts of capabilities. Counts for sites without an owner are dropped, as are those of further capabilities than a day of a site
/// has room for.
pub(crate) async fn capability_search_counts_add(
    connection: &mut Connection,
    counts: &[CapabilitySearchCount],
) -> Outcome<()> {
    let mut rows: Vec<CapabilityRow<'_>> = counts
        .iter()
        .map(|count| CapabilityRow {
            site: count.site.as_str(),
            day: count.day,
            capability_id: count.capability.as_str(),
            searches: to_i64(count.searches),
        })
        .collect();
    // concurrent batches lock rows in the same order
    rows.sort_unstable_by_key(|row| (row.site, row.day, row.capability_id));
    let mut of_day = (("", 0), 0);
    rows.retain(|row| {
        of_day =
            if of_day.0 == (row.site, row.day) { (of_day.0, of_day.1 + 1) } else { ((row.site, row.day), 1) };
        of_day.1 <= CAPABILITIES_OF_DAY_MAX
    });
    sqlx::query(concat!(
        "INSERT INTO capability_search_count (site, day, capability_id, searches)
         SELECT site, day, capability_id, searches FROM ",
        batch!(site TEXT, day INTEGER, capability_id TEXT, searches BIGINT),
        "
         WHERE site IN (SELECT site_claim.site FROM site_claim WHERE site_claim.key_hash IS NOT NULL)
           AND (EXISTS (SELECT 1 FROM capability_search_count AS old
                        WHERE old.site = batch.site AND old.day = batch.day AND old.capability_id = batch.capability_id)
                OR (SELECT COUNT(*) FROM (SELECT 1 FROM capability_search_count AS old
                                          WHERE old.site = batch.site AND old.day = batch.day LIMIT $2) AS known) < $2)
         ON CONFLICT (site, day, capability_id) DO UPDATE SET
             searches = capability_search_count.searches + excluded.searches"
    ))
    .bind(json(&rows, "batch of counts")?)
    .bind(CAPABILITIES_OF_DAY_MAX)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The counts of at most `max` capabilities of a site since a day: those with the highest sums first, and of each the latest day first.
pub(crate) async fn capability_search_counts_of(
    connection: &mut Connection,
    site: &str,
    since: i32,
    max: i64,
) -> Outcome<Vec<CapabilitySearchCount>> {
    let rows = sqlx::query(
        "SELECT counted.site, counted.day, counted.capability_id, counted.searches
         FROM (SELECT capability_id, CAST(SUM(searches) AS BIGINT) AS sum FROM capability_search_count
               WHERE site = $1 AND day >= $2 AND searches BETWEEN 0 AND 1000000000000
               GROUP BY capability_id ORDER BY sum DESC, capability_id LIMIT $3) AS frequent
         JOIN capability_search_count AS counted ON counted.capability_id = frequent.capability_id
         WHERE counted.site = $1 AND counted.day >= $2 AND counted.searches BETWEEN 0 AND 1000000000000
         ORDER BY frequent.sum DESC, counted.capability_id, counted.day DESC",
    )
    .bind(site)
    .bind(since)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(
        decode(&["capability_search_count"], &rows),
        |(site, day, id, searches): (String, i32, String, i64)| {
            let row = RowRef::new("capability_search_count", &id);
            let (site, capability) = (row.parse("site", &site)?, row.parse("capability_id", &id)?);
            Ok(CapabilitySearchCount { site, day, capability, searches: to_u64(searches) })
        },
    ))
}
