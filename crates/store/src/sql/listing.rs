//! Sites that a list names, and their leaving when it names them no longer.

use chrono::{DateTime, Utc};
use manifest::SiteName;

use super::{Connection, block, document, rest, version};
use crate::fault::Outcome;
use crate::model::seed::PRIORITY_LISTED;
use crate::pack::{NEVER_MS, Page, Place, names};

/// Why the feed says that a manifest of a site that is listed no longer left the index.
const REASON: &str = "unlisted";

/// Names of the sites that only a list asks for, in order; blocked ones keep their tombstone and are not told.
pub(crate) async fn sites_listed(
    connection: &mut Connection,
    after: &str,
    max: i64,
) -> Outcome<Vec<SiteName>> {
    let (mut page, mut after) = (Page::new(max), after.to_owned());
    while let Some(wanted) = page.wanted() {
        let rows: Vec<String> = sqlx::query_scalar(
            "SELECT name FROM site WHERE name > $1 AND priority >= $2 AND next_visit_at_ms < $3
               AND NOT EXISTS (SELECT 1 FROM site_link WHERE site_link.site = site.name)
             ORDER BY name LIMIT $4",
        )
        .bind(&after)
        .bind(PRIORITY_LISTED)
        .bind(NEVER_MS)
        .bind(wanted)
        .fetch_all(&mut *connection)
        .await?;
        if let Some(name) = rows.last() {
            after.clone_from(name);
        }
        page.add(rows, |name| Place::new("site", &name).parse("name", &name));
    }
    Ok(page.values)
}

/// Forgets sites whole, manifests and history included; whoever holds one has lost it. Returns how many there were.
pub(crate) async fn sites_unlist(
    connection: &mut Connection,
    sites: &[SiteName],
    now: DateTime<Utc>,
) -> Outcome<u64> {
    let listed = names(sites.iter().map(SiteName::as_str))?;
    let resting = rest::packed_of(connection, &listed).await?;
    for site in sites.iter().filter(|site| !resting.contains_key(site.as_str())) {
        block::removal_tell(connection, site, REASON, now).await?;
        let documents = version::documents_of_site(connection, site).await?;
        block::content_purge(connection, site).await?;
        document::documents_drop_unused(connection, &names(documents.iter().map(String::as_str))?).await?;
    }
    for forgotten in [
        "DELETE FROM host WHERE site IN (SELECT value ->> 0 FROM json_each($1))",
        "DELETE FROM site_state WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    ] {
        sqlx::query(forgotten).bind(&listed).execute(&mut *connection).await?;
    }
    let gone = sqlx::query("DELETE FROM site WHERE name IN (SELECT value ->> 0 FROM json_each($1))")
        .bind(&listed)
        .execute(&mut *connection)
        .await?;
    Ok(gone.rows_affected())
}
