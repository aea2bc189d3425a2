//! How many sites publish each dialect and how well they conform, and which sites are new.

use super::Connection;
use super::rows::decode;
use crate::convert::{RowRef, intact, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{DialectUsage, NewSite};

/// Rows read for each new site, because a site may start with several manifests but is listed once.
const MANIFESTS_PER_SITE: i64 = 8;

struct UsageRow {
    format: String,
    sites: i64,
    manifests: i64,
    conforms: i64,
    minor: i64,
    major: i64,
}

from_row!(UsageRow { format, sites, manifests, conforms, minor, major });

/// The dialects in the index, the most widely published first.
pub(crate) async fn dialect_usage(connection: &mut Connection) -> Outcome<Vec<DialectUsage>> {
    let rows = sqlx::query(
        "SELECT format, COUNT(DISTINCT site) AS sites, COUNT(*) AS manifests,
                COUNT(CASE WHEN conformance = 'conforms' THEN 1 END) AS conforms,
                COUNT(CASE WHEN conformance = 'minor' THEN 1 END) AS minor,
                COUNT(CASE WHEN conformance IN ('major', 'unparseable') THEN 1 END) AS major
         FROM manifest WHERE removed_at_ms IS NULL
         GROUP BY format ORDER BY COUNT(DISTINCT site) DESC, COUNT(*) DESC, format",
    )
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["manifest"], &rows), |row: UsageRow| {
        Ok(DialectUsage {
            format: RowRef::new("manifest", &row.format).parse("format", &row.format)?,
            sites: to_u64(row.sites),
            manifests: to_u64(row.manifests),
            conforms: to_u64(row.conforms),
            minor: to_u64(row.minor),
            major: to_u64(row.major),
        })
    }))
}

/// Sites by their first manifest in the index, newest first.
pub(crate) async fn sites_newest(connection: &mut Connection, max: i64) -> Outcome<Vec<NewSite>> {
    let rows = sqlx::query(
        "SELECT newest.site, newest.first_seen_at_ms, state.capabilities
         FROM (SELECT id, site, first_seen_at_ms FROM manifest WHERE removed_at_ms IS NULL
               ORDER BY first_seen_at_ms DESC, id LIMIT $1) newest
         JOIN site_state state ON state.name = newest.site
         WHERE NOT EXISTS (
             SELECT 1 FROM manifest earlier
             WHERE earlier.site = newest.site AND earlier.removed_at_ms IS NULL
               AND (earlier.first_seen_at_ms < newest.first_seen_at_ms
                    OR (earlier.first_seen_at_ms = newest.first_seen_at_ms AND earlier.id < newest.id)))
         ORDER BY newest.first_seen_at_ms DESC, newest.site LIMIT $2",
    )
    .bind(max.saturating_mul(MANIFESTS_PER_SITE))
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode(&["manifest", "site_state"], &rows);
    Ok(intact(rows, |(name, since_ms, capabilities): (String, i64, i32)| {
        let at = RowRef::new("manifest", &name);
        Ok(NewSite {
            site: at.parse("site", &name)?,
            since: at.time("first_seen_at_ms", since_ms)?,
            capabilities: to_u64(i64::from(capabilities)),
        })
    }))
}
