//! Compacts sites without content into their row of `site`, and expands them when they need rows again.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use sqlx::QueryBuilder;

use super::rows::decode_by;
use super::state::{
    RobotsBodies, RobotsByHost, hosts_of, hosts_save, robots_save, states_of, states_restore,
};
use super::{Connection, Database, batch, for_update, push_names, skip_locked, unhex};
use crate::StoreError;
use crate::compaction::{CompactedColumns, CompactedSite};
use crate::convert::{hex, json, log_damaged, names};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::rows::{HostClock, HostRow, RobotsRow};

/// The columns of [`CompactedColumns`].
macro_rules! compacted_columns {
    () => {
        "packed, visits_at_rest, compacted_status, compacted_failures, compacted_last_visit_at_ms"
    };
}
pub(super) use compacted_columns;

/// A row of `site` that may be compacted.
pub(super) struct SiteRow {
    pub(super) name: String,
    pub(super) fence: i64,
    pub(super) next_visit_at_ms: i64,
    pub(super) compacted: CompactedColumns,
}

from_row!(SiteRow { name, fence, next_visit_at_ms; compacted });

impl SiteRow {
    pub(super) fn decode(self) -> Result<Option<CompactedSite>, StoreError> {
        CompactedSite::decode(&self.name, self.compacted)
    }
}

/// The listed sites that are compacted, by name. Some may fail to decode.
pub(super) async fn compacted_among(
    connection: &mut Connection,
    sites: &str,
) -> Outcome<HashMap<String, Result<CompactedSite, StoreError>>> {
    let rows = sqlx::query(concat!(
        "SELECT name, fence, next_visit_at_ms, ",
        compacted_columns!(),
        " FROM site WHERE packed IS NOT NULL AND name IN ",
        list!()
    ))
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode_by::<SiteRow>(&["site"], "name", &rows);
    let decoded = rows.into_iter().map(|(name, row)| (name, row.and_then(SiteRow::decode)));
    Ok(decoded.filter_map(|(name, site)| Some((name, site.transpose()?))).collect())
}

/// Writes the rows of the listed sites that are compacted.
pub(crate) async fn sites_expand(connection: &mut Connection, sites: &str) -> Outcome<()> {
    let locked: Vec<String> = sqlx::query_scalar(concat!(
        "SELECT name FROM site WHERE packed IS NOT NULL AND name IN ",
        list!(),
        " ORDER BY name",
        for_update!()
    ))
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    if locked.is_empty() {
        return Ok(());
    }
    let locked = names(locked.iter().map(String::as_str))?;
    let compacted = compacted_among(connection, &locked).await?.into_values();
    // a damaged site stays compacted; leasing skips it
    let mut compacted: Vec<CompactedSite> = compacted.filter_map(log_damaged).collect();
    compacted.sort_unstable_by(|one, other| one.state.name.cmp(&other.state.name));
    let (states, hosts): (Vec<_>, Vec<_>) =
        compacted.into_iter().map(|site| (site.state, site.hosts)).unzip();
    states_restore(connection, &states).await?;
    let mut hosts: Vec<HostRow> = hosts.into_iter().flatten().collect();
    hosts.sort_unstable_by(|one, other| one.host.cmp(&other.host));
    hosts_save(connection, &hosts).await?;
    robots_save(connection, &robots_of(&hosts)).await?;
    let expanded: Vec<&str> = states.iter().map(|state| state.name.as_str()).collect();
    packed_clear(connection, &expanded).await
}

/// The robots.txt verdicts of these hosts.
pub(super) fn robots_of<'a>(hosts: impl IntoIterator<Item = &'a HostRow>) -> RobotsByHost<'a> {
    let known = hosts.into_iter().filter(|host| host.robots.kind.is_some());
    known.map(|host| (host.host.as_str(), (host.site.as_str(), &host.robots))).collect()
}

/// Marks sites as expanded; their rows are written.
pub(super) async fn packed_clear(connection: &mut Connection, sites: &[&str]) -> Outcome<()> {
    if sites.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::<Database>::new(
        "UPDATE site SET packed = NULL, visits_at_rest = NULL, compacted_status = NULL, compacted_failures = NULL,
                compacted_last_visit_at_ms = NULL
         WHERE name IN (",
    );
    push_names(&mut query, sites).push(")").build().execute(&mut *connection).await?;
    Ok(())
}

/// A site whose rows become columns.
#[derive(Serialize)]
struct Compacted {
    name: String,
    packed: String,
    visits: i32,
    status: String,
    failures: Option<i32>,
    last_visit_at_ms: Option<i64>,
}

/// Compacts up to `max` sites without content that were last visited before a time; returns how many.
pub(crate) async fn sites_compact(
    connection: &mut Connection,
    visited_before_ms: i64,
    now_ms: i64,
    max: i64,
) -> Outcome<u64> {
    let free: Vec<String> = sqlx::query_scalar(concat!(
        "SELECT name FROM site WHERE lease_owner IS NULL AND packed IS NULL AND name IN (
             SELECT name FROM site_state
             WHERE COALESCE(last_visit_at_ms, first_seen_at_ms) < $1 AND manifests = 0 AND parked_until_ms IS NULL
               AND parked_progress IS NULL AND status NOT IN ('opted_out', 'suspended')
               AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.site = site_state.name)
               AND NOT EXISTS (SELECT 1 FROM manifest WHERE manifest.site = site_state.name)
             LIMIT $2)
         ORDER BY name",
        skip_locked!()
    ))
    .bind(visited_before_ms)
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    if free.is_empty() {
        return Ok(0);
    }
    let mut rows = Vec::with_capacity(free.len());
    for site in rows_of(connection, &names(free.iter().map(String::as_str))?, now_ms).await? {
        let Some(packed) = site.encode() else { continue };
        rows.push(Compacted {
            packed: hex(&packed),
            visits: site.state.visits,
            failures: Some(site.state.failures_in_row).filter(|failures| *failures > 0),
            last_visit_at_ms: site.state.last_visit_at_ms,
            name: site.state.name,
            status: site.state.status,
        });
    }
    packed_write(connection, &rows).await?;
    Ok(rows.len() as u64)
}

/// The rows of sites, without the data that compaction drops.
async fn rows_of(connection: &mut Connection, sites: &str, now_ms: i64) -> Outcome<Vec<CompactedSite>> {
    let states = states_of(connection, sites).await?.into_iter();
    // A site with a damaged row is not changed.
    let states = states.filter_map(|(site, state)| Some((site, log_damaged(state)?)));
    let mut compacted: BTreeMap<String, CompactedSite> =
        states.map(|(site, state)| (site, CompactedSite { state, hosts: Vec::new() })).collect();
    for (site, host) in hosts_of(connection, sites, RobotsBodies::None, None).await? {
        let Some(mut host) = log_damaged(host) else {
            compacted.remove(&site);
            continue;
        };
        let is_ahead = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms > now_ms);
        if !is_ahead(host.clock.next_ok_at_ms) && !is_ahead(host.clock.not_before_ms) {
            host.clock = HostClock::default();
        }
        if !matches!(host.robots.kind.as_deref(), Some("denied" | "unreachable")) {
            host.robots = RobotsRow::default();
        }
        if let Some(site) = compacted.get_mut(&site) {
            site.hosts.push(host);
        }
    }
    Ok(compacted.into_values().collect())
}

async fn packed_write(connection: &mut Connection, rows: &[Compacted]) -> Outcome<()> {
    sqlx::query(concat!(
        "UPDATE site SET packed = ",
        unhex!("batch.packed"),
        ", visits_at_rest = visits, compacted_status = status, compacted_failures = failures,
             compacted_last_visit_at_ms = last_visit_at_ms
         FROM ",
        batch!(name TEXT, packed TEXT, visits INTEGER, status TEXT, failures INTEGER, last_visit_at_ms BIGINT),
        " WHERE site.name = batch.name"
    ))
    .bind(json(&rows, "batch of compacted sites")?)
    .execute(&mut *connection)
    .await?;
    let compacted = names(rows.iter().map(|row| row.name.as_str()))?;
    for delete in [
        concat!("DELETE FROM visit WHERE site IN ", list!()),
        concat!("DELETE FROM robots WHERE site IN ", list!()),
        concat!("DELETE FROM host WHERE site IN ", list!()),
        concat!("DELETE FROM site_state WHERE name IN ", list!()),
    ] {
        sqlx::query(delete).bind(&compacted).execute(&mut *connection).await?;
    }
    Ok(())
}
