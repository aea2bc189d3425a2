//! The states of sites, loaded for a whole batch with one query for each table.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use manifest::{Host, SiteName};

use super::Connection;
use super::claim::claims_of;
use super::compaction::compacted_among;
use super::lease::LEASE_MAX_MS;
use super::resource::{KnownResource, resources_of};
use super::rows::decode;
use super::state::{FirstHosts, RobotsBodies, hosts_of, states_of};
use crate::StoreError;
use crate::convert::{RowRef, intact, names};
use crate::fault::Outcome;
use crate::model::SiteState;
use crate::rows::HostRow;

/// Sites by name, each with its state or the error of a damaged row.
#[derive(Default)]
pub(crate) struct States(HashMap<String, Result<SiteState, StoreError>>);

impl States {
    /// Applies a row to a site that has no damaged row so far.
    fn change(&mut self, name: &str, change: impl FnOnce(&mut SiteState) -> Result<(), StoreError>) {
        let Some(state) = self.0.get_mut(name) else { return };
        if let Some(error) = state.as_mut().ok().and_then(|state| change(state).err()) {
            *state = Err(error);
        }
    }

    /// The hosts of the manifests of all sites.
    fn hosts_with_manifests(&self) -> Result<String, StoreError> {
        let resources =
            self.0.values().filter_map(|state| state.as_ref().ok()).flat_map(|state| &state.resources);
        let with_manifests = resources.filter(|resource| resource.manifest_id.is_some());
        let hosts: BTreeSet<Host> = with_manifests.map(|resource| resource.url.host()).collect();
        names(hosts.iter().map(Host::as_str))
    }

    /// Removes and returns a site.
    ///
    /// # Errors
    ///
    /// If a row of it is damaged, or it has none.
    pub(crate) fn take(&mut self, name: &str) -> Result<SiteState, StoreError> {
        let missing = || Err(RowRef::new("site", name).damaged("name", "site_state has no such row"));
        self.0.remove(name).unwrap_or_else(missing)
    }
}

/// The states of the listed sites, with up to `hosts_max` hosts that have rows, as ordered by [`hosts_of`].
pub(crate) async fn states_load(
    connection: &mut Connection,
    sites: &str,
    bodies: RobotsBodies,
    hosts_max: Option<u32>,
) -> Outcome<States> {
    let mut states = States::default();
    let mut hosts: HashMap<String, BTreeMap<String, HostRow>> = HashMap::new();
    for (name, site) in compacted_among(connection, sites).await? {
        let state = site.and_then(|site| {
            let by_name = site.hosts.into_iter().map(|host| (host.host.clone(), host));
            hosts.insert(name.clone(), by_name.collect());
            SiteState::try_from(site.state)
        });
        states.0.insert(name, state);
    }
    for (name, row) in states_of(connection, sites).await? {
        states.0.insert(name, row.and_then(SiteState::try_from));
    }
    resources_add(connection, sites, &mut states).await?;
    let first = match hosts_max {
        Some(max) => Some(FirstHosts { max, with_manifests: states.hosts_with_manifests()? }),
        None => None,
    };
    // a host of a compacted site has a row if its clock was written after the compaction
    for (site, row) in hosts_of(connection, sites, bodies, first).await? {
        let mut row = match row {
            Ok(row) => row,
            Err(error) => {
                states.change(&site, |_| Err(error));
                continue;
            }
        };
        let of_site = hosts.entry(site).or_default();
        if let Some(compacted) = of_site.get(&row.host) {
            row.merge_compacted(compacted);
        }
        of_site.insert(row.host.clone(), row);
    }
    for (site, hosts) in hosts {
        states.change(&site, |state| hosts.into_values().try_for_each(|host| host.add_to(state)));
    }
    for (site, claim) in claims_of(connection, sites).await? {
        states.change(&site, |state| {
            state.claim = Some(claim);
            Ok(())
        });
    }
    Ok(states)
}

async fn resources_add(connection: &mut Connection, sites: &str, states: &mut States) -> Outcome<()> {
    for (site, row) in resources_of(connection, sites).await? {
        states.change(&site, |state| {
            let row = row?;
            let is_outdated = row.is_outdated();
            match KnownResource::try_from(row)? {
                KnownResource::Fetched(resource) => {
                    state.outdated.extend(resource.manifest_id.clone().filter(|_| is_outdated));
                    state.resources.push(*resource);
                }
                KnownResource::Hint(hint, _) => state.hints.push(hint),
            }
            Ok(())
        });
    }
    Ok(())
}

/// Parked visits by when their sites are due: site, time, reason. A skipped site with a damaged row is due later than its parked visit. Leaves
/// out sites that are leased at `unleased_at_ms`; [`i64::MAX`] leaves out none.
pub(crate) async fn parked_list(
    connection: &mut Connection,
    unleased_at_ms: i64,
    max: i64,
) -> Outcome<Vec<(SiteName, DateTime<Utc>, String)>> {
    let rows = sqlx::query(
        "SELECT name, next_visit_at_ms, parked_reason
         FROM (SELECT site.name, site.next_visit_at_ms, site_state.parked_reason
               FROM site_state JOIN site ON site.name = site_state.name
               WHERE parked_until_ms IS NOT NULL AND (lease_until_ms <= $1 OR lease_until_ms > $2)
               ORDER BY parked_until_ms, site_state.name LIMIT $3) AS parked
         ORDER BY next_visit_at_ms, name",
    )
    .bind(unleased_at_ms)
    .bind(unleased_at_ms.saturating_add(LEASE_MAX_MS))
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode(&["site_state", "site"], &rows);
    Ok(intact(rows, |(name, due_at_ms, reason): (String, i64, Option<String>)| {
        let at = RowRef::new("site", &name);
        let due_at = at.time("next_visit_at_ms", due_at_ms)?;
        Ok((at.parse("name", &name)?, due_at, reason.unwrap_or_default()))
    }))
}
