//! What is known of a site, loaded for a whole batch with one query for each table.

use std::collections::HashMap;

use manifest::SiteName;
use serde_json::Value;

use super::resource::{Known, resources_of};
use super::robots::RobotsRow;
use super::{Connection, lease, rest};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{HostState, LeaseToken, ParkedVisit, PathSlots, SiteState};
use crate::pack::{Place, counted, json, millis, names, text};

#[derive(sqlx::FromRow)]
struct StateRow {
    name: String,
    status: String,
    visits: i32,
    changes: i32,
    first_visit_at_ms: Option<i64>,
    last_visit_at_ms: Option<i64>,
    last_end: Option<String>,
    failures_in_row: i32,
    negatives_in_row: i32,
    paths_checked: Option<Vec<u8>>,
    parked_until_ms: Option<i64>,
    parked_reason: Option<String>,
    parked_progress: Option<String>,
}

impl TryFrom<StateRow> for SiteState {
    type Error = StoreError;

    fn try_from(row: StateRow) -> Result<Self, StoreError> {
        let place = Place::new("site_state", &row.name);
        let progress = match row.parked_progress {
            Some(progress) => place.json("parked_progress", progress.as_bytes())?,
            None => Value::Null,
        };
        let (parked, broken_off) = match row.parked_until_ms {
            None => (None, Some(progress).filter(|progress| !progress.is_null())),
            Some(until_ms) => {
                let resume_at = place.time("parked_until_ms", until_ms)?;
                let reason = row.parked_reason.unwrap_or_default();
                (Some(ParkedVisit { resume_at, reason, progress }), None)
            }
        };
        let paths_checked = PathSlots::from_bytes(row.paths_checked.unwrap_or_default())
            .ok_or_else(|| place.damaged("paths_checked", "its length is not a multiple of three"))?;
        Ok(Self {
            name: place.parse("name", &row.name)?,
            status: place.parse("status", &row.status)?,
            hosts: Vec::new(),
            resources: Vec::new(),
            visits: counted(row.visits),
            changes: counted(row.changes),
            first_visit_at: place.time_of("first_visit_at_ms", row.first_visit_at_ms)?,
            last_visit_at: place.time_of("last_visit_at_ms", row.last_visit_at_ms)?,
            last_end: place.parse_of("last_end", row.last_end.as_ref())?,
            failures_in_row: counted(row.failures_in_row),
            negatives_in_row: counted(row.negatives_in_row),
            paths_checked,
            parked,
            broken_off,
            hints: Vec::new(),
            not_before: None,
        })
    }
}

#[derive(sqlx::FromRow)]
struct HostRow {
    site: String,
    seeded: i32,
    next_ok_at_ms: Option<i64>,
    not_before_ms: Option<i64>,
    requests_today: i32,
    requests_day: i32,
    #[sqlx(flatten)]
    robots: RobotsRow,
}

/// The states of the listed sites, by name.
pub(crate) async fn states_load(
    connection: &mut Connection,
    sites: &str,
) -> Outcome<HashMap<String, SiteState>> {
    let rows: Vec<StateRow> = sqlx::query_as(
        "SELECT name, status, visits, changes, first_visit_at_ms, last_visit_at_ms, last_end, failures_in_row,
                negatives_in_row, paths_checked, parked_until_ms, parked_reason, parked_progress
         FROM site_state WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    let mut states = HashMap::with_capacity(rows.len());
    for (name, packed) in rest::packed_of(connection, sites).await? {
        states.insert(name.clone(), rest::state_at_rest(&name, &packed)?);
    }
    for row in rows {
        states.insert(row.name.clone(), SiteState::try_from(row)?);
    }
    hosts_add(connection, sites, &mut states).await?;
    for row in resources_of(connection, sites).await? {
        let Some(state) = states.get_mut(&row.site) else { continue };
        match Known::try_from(row)? {
            Known::Fetched(resource) => state.resources.push(*resource),
            Known::Hint(hint) => state.hints.push(hint),
        }
    }
    Ok(states)
}

async fn hosts_add(
    connection: &mut Connection,
    sites: &str,
    states: &mut HashMap<String, SiteState>,
) -> Outcome<()> {
    let rows: Vec<HostRow> = sqlx::query_as(
        "SELECT host.host, host.site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day,
                kind, cause, status, body, fetched_at_ms, expires_at_ms, failures_in_row, etag, last_modified
         FROM host LEFT JOIN robots ON robots.host = host.host
         WHERE host.site IN (SELECT value ->> 0 FROM json_each($1))
         ORDER BY host.host",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    for row in rows {
        let Some(state) = states.get_mut(&row.site) else { continue };
        let name = row.robots.host.clone();
        let place = Place::new("host", &name);
        state.not_before = state.not_before.max(place.time_of("not_before_ms", row.not_before_ms)?);
        // A site at rest brings its hosts along; the row of one has its clock.
        let seeded = row.seeded == 1
            || state.hosts.iter().any(|known| known.seeded && known.host.as_str() == name.as_str());
        state.hosts.retain(|known| known.host.as_str() != name.as_str());
        state.hosts.push(HostState {
            host: place.parse("host", &name)?,
            seeded,
            robots: row.robots.into_record()?,
            next_ok_at: place.time_of("next_ok_at_ms", row.next_ok_at_ms)?,
            requests_today: counted(row.requests_today),
            requests_day: row.requests_day,
        });
    }
    Ok(())
}

/// Keeps a visit's progress and gives the lease back until the visit may go on.
pub(crate) async fn visit_park(
    connection: &mut Connection,
    token: &LeaseToken,
    parked: &ParkedVisit,
) -> Outcome<()> {
    let resume_at_ms = millis(parked.resume_at);
    lease::lease_end(connection, token, Some(resume_at_ms)).await?;
    rest::sites_wake(connection, &names([token.site.as_str()])?).await?;
    sqlx::query(
        "UPDATE site_state SET parked_until_ms = $2, parked_reason = $3, parked_progress = $4, next_visit_reason = $3
         WHERE name = $1",
    )
    .bind(token.site.as_str())
    .bind(resume_at_ms)
    .bind(text(&parked.reason))
    .bind(json(&parked.progress, "progress of a visit")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Parked visits by when they go on.
pub(crate) async fn parked_list(
    connection: &mut Connection,
    max: i64,
) -> Outcome<Vec<(SiteName, chrono::DateTime<chrono::Utc>, String)>> {
    let rows: Vec<(String, i64, Option<String>)> = sqlx::query_as(
        "SELECT name, parked_until_ms, parked_reason FROM site_state
         WHERE parked_until_ms IS NOT NULL ORDER BY parked_until_ms, name LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let mut parked = Vec::with_capacity(rows.len());
    for (name, until_ms, reason) in rows {
        let place = Place::new("site_state", &name);
        let resume_at = place.time("parked_until_ms", until_ms)?;
        parked.push((place.parse("name", &name)?, resume_at, reason.unwrap_or_default()));
    }
    Ok(parked)
}
