//! How many searches showed a capability of a site that has an owner, for each day.

use serde::Serialize;

use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{RowRef, intact, json, to_i64, to_u64};
use crate::fault::Outcome;
use crate::model::SearchCount;

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
