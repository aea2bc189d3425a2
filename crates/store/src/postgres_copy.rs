//! Sites by `COPY`: ten times as many rows a second as an `INSERT` that carries them along.

use super::Connection;
use super::sql::seed::sites_put_json;
use crate::fault::Outcome;
use crate::model::seed::{AskedSite, Ranking};
use crate::pack::hex;

/// Below this the temporary table costs more than it saves: a visit that links to a few sites must not make one.
const ROWS_MIN: usize = 1_000;

/// Inserts the sites that are not known, and moves the others in the lease order; returns the new ones.
pub(crate) async fn sites_put(
    connection: &mut Connection,
    sites: &[AskedSite<'_>],
    ranking: Ranking,
) -> Outcome<Vec<String>> {
    if sites.len() < ROWS_MIN {
        return sites_put_json(connection, sites, ranking).await;
    }
    sqlx::query(
        "CREATE TEMPORARY TABLE asked_site (name TEXT COLLATE \"C\" NOT NULL, priority INTEGER NOT NULL,
             next_visit_at_ms BIGINT NOT NULL, packed BYTEA) ON COMMIT DROP",
    )
    .execute(&mut *connection)
    .await?;
    let mut copy = connection
        .copy_in_raw("COPY asked_site (name, priority, next_visit_at_ms, packed) FROM STDIN")
        .await?;
    copy.send(lines(sites)).await?;
    copy.finish().await?;
    let new = sqlx::query_scalar(
        "INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest)
         SELECT name, priority, next_visit_at_ms, packed, 0 FROM asked_site
         ON CONFLICT (name) DO NOTHING
         RETURNING name",
    )
    .fetch_all(&mut *connection)
    .await?;
    if new.len() < sites.len() {
        sqlx::query(
            "UPDATE site SET priority = asked_site.priority FROM asked_site
             WHERE site.name = asked_site.name AND asked_site.priority <> 1
                 AND (site.priority = 1 OR site.priority > asked_site.priority
                 OR (site.priority >= $1 AND site.priority <> asked_site.priority))",
        )
        .bind(ranking.follows_from())
        .execute(&mut *connection)
        .await?;
    }
    Ok(new)
}

/// COPY's text format. Names are ASCII without anything that it would want escaped; bytes begin with an escaped `\\x`.
fn lines(sites: &[AskedSite<'_>]) -> Vec<u8> {
    let line = |site: &AskedSite<'_>| {
        let AskedSite { name, priority, next_visit_at_ms, packed } = site;
        format!("{name}\t{priority}\t{next_visit_at_ms}\t\\\\x{}\n", hex(packed))
    };
    sites.iter().map(line).collect::<String>().into_bytes()
}
