//! What is known of a site, loaded for a whole batch with one query for each table.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use manifest::SiteName;
use serde_json::Value;

use super::resource::{Known, resources_of};
use super::robots::RobotsRow;
use super::{Connection, lease, rest};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{HostOrigin, HostState, LeaseToken, ParkedVisit, PathSlots, SiteState};
use crate::pack::{Place, counted, json, millis, names, text, whole};

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

/// Sites by name, and what is wrong with those of which a row is damaged.
#[derive(Default)]
pub(crate) struct States {
    whole: HashMap<String, SiteState>,
    damaged: HashMap<String, StoreError>,
}

impl States {
    fn add(&mut self, name: &str, state: Result<SiteState, StoreError>) {
        match state {
            Ok(state) => drop(self.whole.insert(name.to_owned(), state)),
            Err(error) => self.damage(name, error),
        }
    }

    /// Does something with a site that is whole so far.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut SiteState) -> Result<(), StoreError>) {
        if let Some(Err(error)) = self.whole.get_mut(name).map(change) {
            self.damage(name, error);
        }
    }

    fn damage(&mut self, name: &str, error: StoreError) {
        self.whole.remove(name);
        self.damaged.insert(name.to_owned(), error);
    }

    /// Takes a site out.
    ///
    /// # Errors
    ///
    /// Where a row of it is damaged, or it has none.
    pub(crate) fn take(&mut self, name: &str) -> Result<SiteState, StoreError> {
        match (self.whole.remove(name), self.damaged.remove(name)) {
            (Some(state), _) => Ok(state),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Place::new("site", name).damaged("name", "site_state has no such row")),
        }
    }
}

/// The states of the listed sites, by name, each with at most so many hosts.
pub(crate) async fn states_load(
    connection: &mut Connection,
    sites: &str,
    hosts_max: Option<u32>,
) -> Outcome<States> {
    let rows: Vec<StateRow> = sqlx::query_as(
        "SELECT name, status, visits, changes, first_visit_at_ms, last_visit_at_ms, last_end, failures_in_row,
                negatives_in_row, paths_checked, parked_until_ms, parked_reason, parked_progress
         FROM site_state WHERE name IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    let mut states = States::default();
    for (name, packed) in rest::packed_of(connection, sites).await? {
        states.add(&name, rest::state_at_rest(&name, &packed));
    }
    for row in rows {
        let name = row.name.clone();
        states.add(&name, SiteState::try_from(row));
    }
    hosts_add(connection, sites, hosts_max, &mut states).await?;
    for row in resources_of(connection, sites).await? {
        let site = row.site.clone();
        states.change(&site, |state| {
            match Known::try_from(row)? {
                Known::Fetched(resource) => state.resources.push(*resource),
                Known::Hint(hint) => state.hints.push(hint),
            }
            Ok(())
        });
    }
    Ok(states)
}

impl HostRow {
    fn into_state(self, at_rest: Option<&HostState>) -> Result<HostState, StoreError> {
        let name = self.robots.host.clone();
        let place = Place::new("host", &name);
        Ok(HostState {
            host: place.parse("host", &name)?,
            origin: HostOrigin::of_code(self.seeded)
                .max(at_rest.map_or(HostOrigin::Met, |known| known.origin)),
            robots: self.robots.into_record()?,
            next_ok_at: place.time_of("next_ok_at_ms", self.next_ok_at_ms)?,
            requests_today: counted(self.requests_today),
            requests_day: self.requests_day,
        })
    }
}

async fn hosts_add(
    connection: &mut Connection,
    sites: &str,
    hosts_max: Option<u32>,
    states: &mut States,
) -> Outcome<()> {
    // the host that is called as the site, and those that were asked, come first where not all are wanted
    let rows: Vec<HostRow> = sqlx::query_as(
        "SELECT known.host, known.site, seeded, next_ok_at_ms, not_before_ms, requests_today, requests_day,
                kind, cause, status, body, fetched_at_ms, expires_at_ms, failures_in_row, etag, last_modified
         FROM (SELECT * FROM host WHERE site IN (SELECT value ->> 0 FROM json_each($1))
               ORDER BY CASE WHEN host = site THEN 0 WHEN next_ok_at_ms IS NOT NULL THEN 1 ELSE 2 END, host
               LIMIT $2) AS known
         LEFT JOIN robots ON robots.host = known.host
         ORDER BY known.host",
    )
    .bind(sites)
    .bind(hosts_max.map_or(i64::MAX, i64::from))
    .fetch_all(&mut *connection)
    .await?;
    // A site at rest brings its hosts along; the row of one has its clock.
    let mut at_rest: HashMap<String, BTreeMap<String, HostState>> = HashMap::new();
    for (name, state) in states.whole.iter_mut().filter(|(_, state)| !state.hosts.is_empty()) {
        let hosts = std::mem::take(&mut state.hosts).into_iter();
        at_rest.insert(name.clone(), hosts.map(|host| (host.host.as_str().to_owned(), host)).collect());
    }
    for row in rows {
        let site = row.site.clone();
        let known = at_rest.get_mut(&site).and_then(|hosts| hosts.remove(&row.robots.host));
        states.change(&site, |state| {
            let place = Place::new("host", &row.robots.host);
            state.not_before = state.not_before.max(place.time_of("not_before_ms", row.not_before_ms)?);
            state.hosts.push(row.into_state(known.as_ref())?);
            Ok(())
        });
    }
    for (site, hosts) in at_rest {
        states.change(&site, |state| {
            state.hosts.extend(hosts.into_values());
            state.hosts.sort_unstable_by(|one, other| one.host.cmp(&other.host));
            Ok(())
        });
    }
    Ok(())
}

/// How many hosts of a site have rows, and until when the latest of them asked for a pause.
pub(crate) async fn hosts_count(connection: &mut Connection, site: &str) -> Outcome<(i64, Option<i64>)> {
    let counted = sqlx::query_as("SELECT COUNT(*), MAX(not_before_ms) FROM host WHERE site = $1")
        .bind(site)
        .fetch_one(&mut *connection)
        .await?;
    Ok(counted)
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

/// Parked visits by when their sites are due: one that is set aside is due later than its visit would go on.
pub(crate) async fn parked_list(
    connection: &mut Connection,
    max: i64,
) -> Outcome<Vec<(SiteName, DateTime<Utc>, String)>> {
    let rows: Vec<(String, i64, Option<String>)> = sqlx::query_as(
        "SELECT parked.name, site.next_visit_at_ms, parked.parked_reason
         FROM (SELECT name, parked_until_ms, parked_reason FROM site_state
               WHERE parked_until_ms IS NOT NULL ORDER BY parked_until_ms, name LIMIT $1) AS parked
         JOIN site ON site.name = parked.name
         ORDER BY site.next_visit_at_ms, parked.name",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    Ok(whole(rows, |(name, due_at_ms, reason)| {
        let place = Place::new("site", &name);
        let due_at = place.time("next_visit_at_ms", due_at_ms)?;
        Ok((place.parse("name", &name)?, due_at, reason.unwrap_or_default()))
    }))
}
