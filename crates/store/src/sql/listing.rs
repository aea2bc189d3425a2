//! Sites that only a seed list names, and their removal when no list names them.

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::compaction::compacted_among;
use super::rows::{Cursor, decode};
use super::{Connection, block, document, version};
use crate::convert::{NEVER_MS, Page, RowRef, names};
use crate::fault::Outcome;
use crate::model::seed::PRIORITY_LISTED;

/// Reason of the feed entries.
const REASON: &str = "unlisted";

/// Names of the sites that only a list names, in order. Blocked sites are left out.
pub(crate) async fn sites_listed(
    connection: &mut Connection,
    after: &str,
    max: i64,
) -> Outcome<Vec<SiteName>> {
    let (mut page, mut after) = (Page::new(max), Cursor::after(after.to_owned()));
    while let Some(wanted) = page.wanted() {
        let rows = sqlx::query(
            "SELECT name FROM site WHERE name > $1 AND priority >= $2 AND next_visit_at_ms < $3
               AND NOT EXISTS (SELECT 1 FROM site_link WHERE site_link.site = site.name)
             ORDER BY name LIMIT $4 OFFSET $5",
        )
        .bind(after.key.clone())
        .bind(PRIORITY_LISTED)
        .bind(NEVER_MS)
        .bind(wanted)
        .bind(after.skipped)
        .fetch_all(&mut *connection)
        .await?;
        after.pass(&rows);
        page.add(decode(&["site"], &rows), |(name,): (String,)| {
            RowRef::new("site", &name).parse("name", &name)
        });
    }
    Ok(page.values)
}

/// Deletes sites with their manifests and history; their leases are lost. Returns how many there were.
pub(crate) async fn sites_unlist(
    connection: &mut Connection,
    sites: &[SiteName],
    now: DateTime<Utc>,
) -> Outcome<u64> {
    let listed = names(sites.iter().map(SiteName::as_str))?;
    let compacted = compacted_among(connection, &listed).await?;
    for site in sites.iter().filter(|site| !compacted.contains_key(site.as_str())) {
        block::feed_removal(connection, site, REASON, now).await?;
        let documents = version::documents_of_site(connection, site).await?;
        block::content_purge(connection, site).await?;
        document::documents_drop_unused(connection, &names(documents.iter().map(String::as_str))?).await?;
    }
    let mut deleted = 0;
    for delete in [
        concat!("DELETE FROM site_claim WHERE site IN ", list!()),
        concat!("DELETE FROM host WHERE site IN ", list!()),
        concat!("DELETE FROM site_state WHERE name IN ", list!()),
        concat!("DELETE FROM site WHERE name IN ", list!()),
    ] {
        deleted = sqlx::query(delete).bind(&listed).execute(&mut *connection).await?.rows_affected();
    }
    Ok(deleted)
}
