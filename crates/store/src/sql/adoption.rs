//! How widely and how well the dialects are used, and which sites are new.

use super::Connection;
use crate::fault::Outcome;
use crate::model::{Adoption, NewSite};
use crate::pack::{Place, sized, whole};

/// Newest manifests that are looked through for one new site: of a site that begins with several, one counts.
const MANIFESTS_PER_SITE: i64 = 8;

#[derive(sqlx::FromRow)]
struct AdoptionRow {
    format: String,
    sites: i64,
    manifests: i64,
    conforms: i64,
    minor: i64,
    major: i64,
}

/// The dialects in the index, the most widely published first.
pub(crate) async fn adoption(connection: &mut Connection) -> Outcome<Vec<Adoption>> {
    let rows: Vec<AdoptionRow> = sqlx::query_as(
        "SELECT format, COUNT(DISTINCT site) AS sites, COUNT(*) AS manifests,
                COUNT(CASE WHEN conformance = 'conforms' THEN 1 END) AS conforms,
                COUNT(CASE WHEN conformance = 'minor' THEN 1 END) AS minor,
                COUNT(CASE WHEN conformance IN ('major', 'unparseable') THEN 1 END) AS major
         FROM manifest WHERE removed_at_ms IS NULL
         GROUP BY format ORDER BY COUNT(DISTINCT site) DESC, COUNT(*) DESC, format",
    )
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, |row| {
        Ok(Adoption {
            format: Place::new("manifest", &row.format).parse("format", &row.format)?,
            sites: sized(row.sites),
            manifests: sized(row.manifests),
            conforms: sized(row.conforms),
            minor: sized(row.minor),
            major: sized(row.major),
        })
    }))
}

/// Sites whose first manifest in the index is the latest.
pub(crate) async fn sites_newest(connection: &mut Connection, max: i64) -> Outcome<Vec<NewSite>> {
    let rows: Vec<(String, i64, i32)> = sqlx::query_as(
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
    Ok(whole(rows, |(name, since_ms, capabilities)| {
        let place = Place::new("manifest", &name);
        Ok(NewSite {
            site: place.parse("site", &name)?,
            since: place.time("first_seen_at_ms", since_ms)?,
            capabilities: sized(i64::from(capabilities)),
        })
    }))
}
