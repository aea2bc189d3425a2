//! The states of sites, loaded for a whole batch with one query for each table.

use std::collections::HashMap;

use manifest::SiteName;

use super::compaction::compacted_among;
use super::resource::{KnownResource, resources_of};
use super::state::{hosts_of, states_of};
use super::{Connection, convert};
use crate::convert::RowRef;
use crate::fault::Outcome;
use crate::model::SiteState;

/// The states of the listed sites, by name.
pub(crate) async fn states_load(
    connection: &mut Connection,
    sites: &str,
) -> Outcome<HashMap<String, SiteState>> {
    let mut states = HashMap::new();
    for (name, site) in compacted_among(connection, sites).await? {
        states.insert(name, site.into_site_state()?);
    }
    for row in states_of(connection, sites).await? {
        states.insert(row.name.clone(), SiteState::try_from(row)?);
    }
    for row in hosts_of(connection, sites, true).await? {
        if let Some(state) = states.get_mut(&row.site) {
            row.add_to(state)?;
        }
    }
    for row in resources_of(connection, sites).await? {
        let Some(state) = states.get_mut(&row.site) else { continue };
        match KnownResource::try_from(row)? {
            KnownResource::Fetched(resource) => state.resources.push(*resource),
            KnownResource::Hint(url) => state.hints.push(url),
        }
    }
    Ok(states)
}

/// Parked visits, the next to resume first: site, time, reason.
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
    convert(rows, |(name, until_ms, reason)| {
        let at = RowRef::new("site_state", &name);
        let resume_at = at.time("parked_until_ms", until_ms)?;
        Ok((at.parse("name", &name)?, resume_at, reason.unwrap_or_default()))
    })
}
