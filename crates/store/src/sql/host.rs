//! Removes hosts that are not needed any more.

use std::collections::HashSet;

use super::Connection;
use crate::convert::names;
use crate::fault::Outcome;
use crate::model::is_main_host;

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

/// Removes hosts that only others name, where a site has no room for another link: those that were searched before today, and of
/// which no manifest and no unfetched URL is known. A host stays while a clock or a robots.txt of it counts.
pub(super) async fn hosts_make_room(
    connection: &mut Connection,
    site: &str,
    needed: u64,
    now_ms: i64,
) -> Outcome<u64> {
    let searched: Vec<String> = sqlx::query_scalar(
        "SELECT host FROM host AS named
         WHERE site = $1 AND seeded = 1 AND next_ok_at_ms <= $2 AND COALESCE(not_before_ms, 0) <= $2
           AND requests_day < $3
           AND NOT EXISTS (SELECT 1 FROM robots WHERE robots.host = named.host AND expires_at_ms > $2)
         ORDER BY next_ok_at_ms, host",
    )
    .bind(site)
    .bind(now_ms)
    .bind(i32::try_from(now_ms / DAY_MS).unwrap_or(i32::MAX))
    .fetch_all(&mut *connection)
    .await?;
    let urls: Vec<String> = sqlx::query_scalar(
        "SELECT resource.url FROM resource
         LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
         WHERE resource.site = $1 AND (outcome IS NULL OR manifest.id IS NOT NULL)",
    )
    .bind(site)
    .fetch_all(&mut *connection)
    .await?;
    let in_use: HashSet<&str> = urls.iter().filter_map(|url| url.split('/').nth(2)).collect();
    let unused = searched.iter().map(String::as_str);
    let unused = unused.filter(|host| !in_use.contains(host) && !is_main_host(site, host));
    let removed: Vec<&str> = unused.take(usize::try_from(needed).unwrap_or(usize::MAX)).collect();
    hosts_remove(connection, &names(removed.iter().copied())?).await?;
    Ok(removed.len() as u64)
}
