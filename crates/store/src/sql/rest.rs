//! Sites at rest: put to rest by housekeeping, woken when more is to be remembered of them.

use std::collections::HashMap;

use super::{Connection, for_update, skip_locked, unhex};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{HostOrigin, HostState, PathSlots, RobotsRecord, SiteState};
use crate::pack::{Place, counted, hex, json, names};
use crate::rest::{ClockAtRest, HostAtRest, RobotsAtRest, SiteAtRest};

/// Rows of everything that a site at rest has in its one column instead.
const EMPTIED: [&str; 4] = [
    "DELETE FROM visit WHERE site IN (SELECT value ->> 0 FROM json_each($1))",
    "DELETE FROM robots WHERE site IN (SELECT value ->> 0 FROM json_each($1))",
    "DELETE FROM host WHERE site IN (SELECT value ->> 0 FROM json_each($1))",
    "DELETE FROM site_state WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
];

/// Those of the sites that are at rest, with their packed bytes.
pub(crate) async fn packed_of(connection: &mut Connection, sites: &str) -> Outcome<HashMap<String, Vec<u8>>> {
    let rows: Vec<(String, Vec<u8>)> = sqlx::query_as(
        "SELECT name, packed FROM site
         WHERE name IN (SELECT value ->> 0 FROM json_each($1)) AND length(packed) > 0",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows.into_iter().collect())
}

/// Wakes those of the sites that are at rest: writes their rows out again.
pub(crate) async fn sites_wake(connection: &mut Connection, sites: &str) -> Outcome<()> {
    let packed: Vec<(String, Vec<u8>)> = sqlx::query_as(concat!(
        "SELECT name, packed FROM site
         WHERE name IN (SELECT value ->> 0 FROM json_each($1)) AND length(packed) > 0 ORDER BY name",
        for_update!()
    ))
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    if packed.is_empty() {
        return Ok(());
    }
    let mut resting = Vec::with_capacity(packed.len());
    for (name, bytes) in &packed {
        resting.push((name.as_str(), SiteAtRest::unpack(name, bytes)?));
    }
    states_write(connection, &resting).await?;
    hosts_write(connection, &resting).await?;
    robots_write(connection, &resting).await?;
    sqlx::query(
        "UPDATE site SET packed = NULL, visits_at_rest = NULL WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(names(resting.iter().map(|(name, _)| *name))?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn states_write(connection: &mut Connection, resting: &[(&str, SiteAtRest)]) -> Outcome<()> {
    let rows: Vec<_> = resting
        .iter()
        .map(|(name, site)| {
            (
                (name, &site.status, &site.last_end, &site.next_visit_reason, hex(&site.paths_checked)),
                (site.first_seen_at_ms, site.first_visit_at_ms, site.last_visit_at_ms, site.hinted_at_ms),
                (site.visits, site.changes, site.failures_in_row, site.negatives_in_row),
            )
        })
        .collect();
    sqlx::query(concat!(
        "INSERT INTO site_state (name, status, last_end, next_visit_reason, paths_checked,
                                 first_seen_at_ms, first_visit_at_ms, last_visit_at_ms, hinted_at_ms,
                                 visits, changes, failures_in_row, negatives_in_row)
         SELECT value -> 0 ->> 0, value -> 0 ->> 1, value -> 0 ->> 2, value -> 0 ->> 3, ",
        unhex!("value -> 0 ->> 4"),
        ",      CAST(value -> 1 ->> 0 AS BIGINT), CAST(value -> 1 ->> 1 AS BIGINT),
                CAST(value -> 1 ->> 2 AS BIGINT), CAST(value -> 1 ->> 3 AS BIGINT),
                CAST(value -> 2 ->> 0 AS INTEGER), CAST(value -> 2 ->> 1 AS INTEGER),
                CAST(value -> 2 ->> 2 AS INTEGER), CAST(value -> 2 ->> 3 AS INTEGER)
         FROM json_each($1) WHERE true
         ON CONFLICT (name) DO NOTHING"
    ))
    .bind(json(&rows, "batch of site states")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// A host may have a row already: its clock is written before a request, whether its site rests or not.
async fn hosts_write(connection: &mut Connection, resting: &[(&str, SiteAtRest)]) -> Outcome<()> {
    let mut rows = Vec::new();
    for (name, site) in resting {
        for host in &site.hosts {
            let clock = host.clock.clone().unwrap_or_default();
            let times = (clock.next_ok_at_ms, clock.not_before_ms);
            rows.push((
                &host.host,
                name,
                host.origin.code(),
                times,
                clock.requests_today,
                clock.requests_day,
            ));
        }
    }
    rows.sort_unstable();
    sqlx::query(
        "INSERT INTO host (host, site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day)
         SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS INTEGER), CAST(value -> 3 ->> 0 AS BIGINT),
                CAST(value -> 3 ->> 1 AS BIGINT), CAST(value ->> 4 AS INTEGER), CAST(value ->> 5 AS INTEGER)
         FROM json_each($1) WHERE true
         ON CONFLICT (host) DO UPDATE SET
             seeded = CASE WHEN excluded.seeded > host.seeded THEN excluded.seeded ELSE host.seeded END,
             not_before_ms = COALESCE(host.not_before_ms, excluded.not_before_ms)",
    )
    .bind(json(&rows, "batch of hosts")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

async fn robots_write(connection: &mut Connection, resting: &[(&str, SiteAtRest)]) -> Outcome<()> {
    let mut rows = Vec::new();
    for (name, site) in resting {
        for host in &site.hosts {
            let Some(robots) = &host.robots else { continue };
            let times = (robots.fetched_at_ms, robots.expires_at_ms);
            rows.push((
                &host.host,
                name,
                &robots.kind,
                &robots.cause,
                robots.status,
                times,
                robots.failures_in_row,
            ));
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO robots (host, site, kind, cause, status, fetched_at_ms, expires_at_ms, failures_in_row)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, CAST(value ->> 4 AS INTEGER),
                CAST(value -> 5 ->> 0 AS BIGINT), CAST(value -> 5 ->> 1 AS BIGINT), CAST(value ->> 6 AS INTEGER)
         FROM json_each($1) WHERE true
         ON CONFLICT (host) DO NOTHING",
    )
    .bind(json(&rows, "batch of robots records")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// What a site at rest looks like to a visit or to its owner.
pub(crate) fn state_at_rest(name: &str, packed: &[u8]) -> Result<SiteState, StoreError> {
    let site = SiteAtRest::unpack(name, packed)?;
    let place = Place::new("site", name);
    let mut hosts = Vec::with_capacity(site.hosts.len());
    let mut not_before = None;
    for host in &site.hosts {
        let clock = host.clock.clone().unwrap_or_default();
        not_before = not_before.max(place.time_of("packed", clock.not_before_ms)?);
        hosts.push(HostState {
            host: place.parse("packed", &host.host)?,
            origin: host.origin,
            robots: host
                .robots
                .as_ref()
                .map(|robots| robots_at_rest(&place, &host.host, robots))
                .transpose()?,
            next_ok_at: place.time_of("packed", clock.next_ok_at_ms)?,
            requests_today: counted(clock.requests_today),
            requests_day: clock.requests_day,
        });
    }
    let paths_checked = PathSlots::from_bytes(site.paths_checked)
        .ok_or_else(|| place.damaged("packed", "its paths are not whole slots"))?;
    Ok(SiteState {
        name: place.parse("name", name)?,
        status: place.parse("packed", &site.status)?,
        hosts,
        resources: Vec::new(),
        visits: counted(site.visits),
        changes: counted(site.changes),
        first_visit_at: place.time_of("packed", site.first_visit_at_ms)?,
        last_visit_at: place.time_of("packed", site.last_visit_at_ms)?,
        last_end: place.parse_of("packed", site.last_end.as_ref())?,
        failures_in_row: counted(site.failures_in_row),
        negatives_in_row: counted(site.negatives_in_row),
        paths_checked,
        parked: None,
        broken_off: None,
        hints: Vec::new(),
        not_before,
    })
}

fn robots_at_rest(place: &Place<'_>, host: &str, robots: &RobotsAtRest) -> Result<RobotsRecord, StoreError> {
    Ok(RobotsRecord {
        host: place.parse("packed", host)?,
        kind: place.parse("packed", &robots.kind)?,
        cause: robots.cause.clone(),
        status: place.http_status("packed", robots.status)?,
        body: None,
        fetched_at: place.time("packed", robots.fetched_at_ms)?,
        expires_at: place.time("packed", robots.expires_at_ms)?,
        failures_in_row: counted(robots.failures_in_row),
        etag: None,
        last_modified: None,
    })
}

#[derive(sqlx::FromRow)]
struct StateRow {
    name: String,
    status: String,
    last_end: Option<String>,
    next_visit_reason: Option<String>,
    first_seen_at_ms: i64,
    first_visit_at_ms: Option<i64>,
    last_visit_at_ms: Option<i64>,
    hinted_at_ms: Option<i64>,
    visits: i32,
    changes: i32,
    failures_in_row: i32,
    negatives_in_row: i32,
    paths_checked: Option<Vec<u8>>,
}

#[derive(sqlx::FromRow)]
struct HostRow {
    host: String,
    site: String,
    seeded: i32,
    next_ok_at_ms: Option<i64>,
    not_before_ms: Option<i64>,
    requests_today: i32,
    requests_day: i32,
    kind: Option<String>,
    cause: Option<String>,
    status: Option<i32>,
    fetched_at_ms: Option<i64>,
    expires_at_ms: Option<i64>,
    failures_in_row: Option<i32>,
}

impl HostRow {
    fn at_rest(self, now_ms: i64) -> HostAtRest {
        let is_ahead = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms > now_ms);
        let clock = ClockAtRest {
            next_ok_at_ms: self.next_ok_at_ms,
            not_before_ms: self.not_before_ms,
            requests_today: self.requests_today,
            requests_day: self.requests_day,
        };
        let clock =
            Some(clock).filter(|clock| is_ahead(clock.next_ok_at_ms) || is_ahead(clock.not_before_ms));
        let forbids = |kind: &String| kind == "denied" || kind == "unreachable";
        let robots = match (self.kind.filter(forbids), self.fetched_at_ms, self.expires_at_ms) {
            (Some(kind), Some(fetched_at_ms), Some(expires_at_ms)) => Some(RobotsAtRest {
                kind,
                cause: self.cause,
                status: self.status,
                fetched_at_ms,
                expires_at_ms,
                failures_in_row: self.failures_in_row.unwrap_or_default(),
            }),
            _ => None,
        };
        HostAtRest { host: self.host, origin: HostOrigin::of_code(self.seeded), clock, robots }
    }
}

/// Puts to rest up to `max` sites that were last visited before a time and have nothing; returns how many.
pub(crate) async fn sites_rest(
    connection: &mut Connection,
    visited_before_ms: i64,
    now_ms: i64,
    max: i64,
) -> Outcome<u64> {
    let free: Vec<String> = sqlx::query_scalar(concat!(
        "SELECT name FROM site WHERE lease_owner IS NULL AND packed IS NULL AND name IN (
             SELECT name FROM site_state
             WHERE COALESCE(last_visit_at_ms, first_seen_at_ms) < $1 AND manifests = 0 AND parked_until_ms IS NULL
               AND parked_progress IS NULL AND status <> 'opted_out'
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
    let listed = names(free.iter().map(String::as_str))?;
    let mut rows = Vec::with_capacity(free.len());
    for (name, site) in at_rest_load(connection, &listed, now_ms).await? {
        if let Some(packed) = site.pack(&name) {
            rows.push((name, hex(&packed), site.visits));
        }
    }
    sqlx::query(concat!(
        "UPDATE site SET visits_at_rest = rest_visits, packed = rest_packed
         FROM (SELECT value ->> 0 AS rest_name, ",
        unhex!("value ->> 1"),
        " AS rest_packed, CAST(value ->> 2 AS INTEGER) AS rest_visits FROM json_each($1)) AS rest
         WHERE name = rest_name"
    ))
    .bind(json(&rows, "batch of sites at rest")?)
    .execute(&mut *connection)
    .await?;
    let rested = names(rows.iter().map(|(name, ..)| name.as_str()))?;
    for emptied in EMPTIED {
        sqlx::query(emptied).bind(&rested).execute(&mut *connection).await?;
    }
    Ok(rows.len() as u64)
}

async fn at_rest_load(
    connection: &mut Connection,
    sites: &str,
    now_ms: i64,
) -> Outcome<HashMap<String, SiteAtRest>> {
    let states: Vec<StateRow> = sqlx::query_as(
        "SELECT name, status, last_end, next_visit_reason, first_seen_at_ms, first_visit_at_ms, last_visit_at_ms,
                hinted_at_ms, visits, changes, failures_in_row, negatives_in_row, paths_checked
         FROM site_state WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    let mut at_rest: HashMap<String, SiteAtRest> = states
        .into_iter()
        .map(|row| {
            let site = SiteAtRest {
                status: row.status,
                last_end: row.last_end,
                next_visit_reason: row.next_visit_reason,
                first_seen_at_ms: row.first_seen_at_ms,
                first_visit_at_ms: row.first_visit_at_ms,
                last_visit_at_ms: row.last_visit_at_ms,
                hinted_at_ms: row.hinted_at_ms,
                visits: row.visits,
                changes: row.changes,
                failures_in_row: row.failures_in_row,
                negatives_in_row: row.negatives_in_row,
                paths_checked: row.paths_checked.unwrap_or_default(),
                hosts: Vec::new(),
            };
            (row.name, site)
        })
        .collect();
    let hosts: Vec<HostRow> = sqlx::query_as(
        "SELECT host.host, host.site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day,
                kind, cause, status, fetched_at_ms, expires_at_ms, failures_in_row
         FROM host LEFT JOIN robots ON robots.host = host.host
         WHERE host.site IN (SELECT value ->> 0 FROM json_each($1))
         ORDER BY host.host",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    for row in hosts {
        if let Some(site) = at_rest.get_mut(&row.site) {
            site.hosts.push(row.at_rest(now_ms));
        }
    }
    Ok(at_rest)
}
