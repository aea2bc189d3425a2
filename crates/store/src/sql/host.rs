//! Removes hosts that are no longer needed.

use manifest::HostOfSite;
use std::collections::HashSet;

use super::Connection;
use crate::convert::names;
use crate::fault::Outcome;
use crate::model::HostOrigin;

/// Maximum number of hosts of a site that only visits have discovered; the same as for links of other sites.
const HOSTS_MET_MAX: i64 = 1_000;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Removes hosts and their robots.txt.
pub(super) async fn hosts_remove(connection: &mut Connection, hosts: &str) -> Outcome<()> {
    for statement in [
        concat!("DELETE FROM host WHERE host IN ", list!()),
        concat!("DELETE FROM robots WHERE host IN ", list!()),
    ] {
        sqlx::query(statement).bind(hosts).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Hosts of this origin without an active clock, a request on this day or a valid robots.txt, each with its clock if it was ever requested.
/// The longest unused come first.
async fn hosts_unused(
    connection: &mut Connection,
    (site, origin): (&str, HostOrigin),
    now_ms: i64,
) -> Outcome<Vec<(String, Option<i64>)>> {
    let unused = sqlx::query_as(
        "SELECT host, next_ok_at_ms FROM host AS unused
         WHERE site = $1 AND seeded = $4 AND COALESCE(next_ok_at_ms, 0) <= $2 AND COALESCE(not_before_ms, 0) <= $2
           AND requests_day < $3
           AND NOT EXISTS (SELECT 1 FROM robots WHERE robots.host = unused.host AND expires_at_ms > $2)
         ORDER BY COALESCE(next_ok_at_ms, 0), host",
    )
    .bind(site)
    .bind(now_ms)
    .bind(i32::try_from(now_ms / DAY_MS).unwrap_or(i32::MAX))
    .bind(origin.code());
    Ok(unused.fetch_all(&mut *connection).await?)
}

/// Removes the longest unused hosts of a site that only visits have discovered, beyond [`HOSTS_MET_MAX`]. A host is kept while it has an
/// active clock, a request on this day, a valid robots.txt, or a known document.
pub(super) async fn hosts_bound(connection: &mut Connection, site: &str, now_ms: i64) -> Outcome<()> {
    let query = sqlx::query_scalar("SELECT COUNT(*) FROM host WHERE site = $1 AND seeded = $2");
    let count: i64 = query.bind(site).bind(HostOrigin::Met.code()).fetch_one(&mut *connection).await?;
    if count <= HOSTS_MET_MAX {
        return Ok(());
    }
    let unused = hosts_unused(connection, (site, HostOrigin::Met), now_ms).await?;
    let query = sqlx::query_scalar("SELECT url FROM resource WHERE site = $1").bind(site);
    let urls: Vec<String> = query.fetch_all(&mut *connection).await?;
    let with_documents = hosts_of_urls(&urls);
    let unused = unused.iter().map(|(host, _)| host.as_str()).filter(|host| !with_documents.contains(host));
    let removed = names(unused.take(usize::try_from(count - HOSTS_MET_MAX).unwrap_or_default()))?;
    hosts_remove(connection, &removed).await
}

fn hosts_of_urls(urls: &[String]) -> HashSet<&str> {
    urls.iter().filter_map(|url| url.split('/').nth(2)).collect()
}

/// Removes hosts that only others name, if the host limit of a site is reached: hosts that were requested before today and have no known
/// manifest and no unfetched URL. A host is kept while its clock or its robots.txt is still valid.
pub(super) async fn hosts_make_room(
    connection: &mut Connection,
    site: &str,
    needed: u64,
    now_ms: i64,
) -> Outcome<u64> {
    let named = hosts_unused(connection, (site, HostOrigin::Named), now_ms).await?;
    let urls: Vec<String> = sqlx::query_scalar(
        "SELECT resource.url FROM resource
         LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
         WHERE resource.site = $1 AND (outcome IS NULL OR manifest.id IS NOT NULL)",
    )
    .bind(site)
    .fetch_all(&mut *connection)
    .await?;
    let in_use = hosts_of_urls(&urls);
    let searched = named.iter().filter(|(_, next_ok_at_ms)| next_ok_at_ms.is_some());
    let unused = searched.map(|(host, _)| host.as_str());
    let unused = unused.filter(|host| !in_use.contains(host) && !HostOfSite { site, host }.is_main());
    let removed: Vec<&str> = unused.take(usize::try_from(needed).unwrap_or(usize::MAX)).collect();
    hosts_remove(connection, &names(removed.iter().copied())?).await?;
    Ok(removed.len() as u64)
}
