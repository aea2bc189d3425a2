//! Links of other sites: who made which site known, and what they may add.
//!
//! Anybody may link to any number of names and URLs. Each limit has an owner: sites that nobody has visited yet count for the
//! site that links to them, hosts and URLs for the site that they lie on.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use manifest::ManifestId;

use super::Connection;
use crate::fault::Outcome;
use crate::model::{HostOrigin, Seed, SeedOrigin};
use crate::pack::{json, names, sized};

/// Sites that one site may have made known by links and nobody has visited yet: one visit's worth.
const OPEN_SITES_MAX: u64 = 10_000;
/// Hosts of a site up to which links, submissions and the operator's lists add more. Links leave room for submissions: a
/// document of another site cannot keep the owner out.
const HOSTS_LINKED_MAX: u64 = 1_000;
const HOSTS_SUBMITTED_MAX: u64 = 1_100;
const HOSTS_MAX: u64 = 10_000;
/// URLs of a site up to which links and submissions add more that nobody has fetched yet; a visit asks for a hundred.
const HINTS_LINKED_MAX: u64 = 900;
const HINTS_MAX: u64 = 1_000;

/// Seeds with their sites.
pub(super) type Asked<'a> = Vec<(&'a Seed, &'a str)>;

/// Leaves out links to unknown sites beyond those that the linking site may have open, and remembers who links to the rest.
pub(super) async fn links_admit<'a>(connection: &mut Connection, asked: Asked<'a>) -> Outcome<Asked<'a>> {
    let links = || asked.iter().filter_map(|(seed, site)| Some((*site, seed.origin.source()?.site())));
    let targets: BTreeSet<&str> = links().map(|(site, _)| site).collect();
    if targets.is_empty() {
        return Ok(asked);
    }
    let known = sites_known(connection, &names(targets.iter().copied())?).await?;
    let sources: BTreeSet<String> = links().map(|(_, source)| source.as_str().to_owned()).collect();
    let mut open = sites_open(connection, &names(sources.iter().map(String::as_str))?).await?;
    let mut rows: BTreeMap<&str, (String, i32)> = BTreeMap::new();
    let mut refused: BTreeMap<&str, String> = BTreeMap::new();
    for (site, source) in links() {
        if rows.contains_key(site) {
            continue;
        }
        let source = source.as_str();
        if known.contains(site) {
            rows.insert(site, (source.to_owned(), 0));
            continue;
        }
        let count = open.entry(source.to_owned()).or_default();
        if *count < OPEN_SITES_MAX {
            *count += 1;
            refused.remove(site);
            rows.insert(site, (source.to_owned(), 1));
        } else {
            refused.insert(site, source.to_owned());
        }
    }
    links_insert(connection, &rows).await?;
    let mut dropped: BTreeMap<&str, u64> = BTreeMap::new();
    for source in refused.values() {
        *dropped.entry(source).or_default() += 1;
    }
    for (source, sites) in dropped {
        tracing::warn!(
            site.name = source,
            sites,
            open_max = OPEN_SITES_MAX,
            "links to unknown sites are dropped"
        );
    }
    let is_refused = |seed: &Seed, site: &str| seed.origin.source().is_some() && refused.contains_key(site);
    Ok(asked.iter().filter(|(seed, site)| !is_refused(seed, site)).copied().collect())
}

async fn sites_known(connection: &mut Connection, sites: &str) -> Outcome<HashSet<String>> {
    let known: Vec<String> =
        sqlx::query_scalar("SELECT name FROM site WHERE name IN (SELECT value ->> 0 FROM json_each($1))")
            .bind(sites)
            .fetch_all(&mut *connection)
            .await?;
    Ok(known.into_iter().collect())
}

/// How many sites each of these has made known that nobody has visited.
async fn sites_open(connection: &mut Connection, sources: &str) -> Outcome<HashMap<String, u64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "SELECT linked_by, COUNT(*) FROM site_link
         WHERE is_open = 1 AND linked_by IN (SELECT value ->> 0 FROM json_each($1)) GROUP BY linked_by",
    )
    .bind(sources)
    .fetch_all(&mut *connection)
    .await?;
    Ok(rows.into_iter().map(|(source, count)| (source, sized(count))).collect())
}

async fn links_insert(connection: &mut Connection, rows: &BTreeMap<&str, (String, i32)>) -> Outcome<()> {
    let rows: Vec<_> = rows.iter().map(|(site, (source, is_open))| (site, source, is_open)).collect();
    sqlx::query(
        "INSERT INTO site_link (site, linked_by, is_open)
         SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS INTEGER) FROM json_each($1) WHERE true
         ON CONFLICT (site) DO NOTHING",
    )
    .bind(json(&rows, "batch of links")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Remembers of sites that a list is about to name that others ask for them: the class says so no longer.
pub(super) async fn links_keep(connection: &mut Connection, listed: &str) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO site_link (site, linked_by, is_open)
         SELECT name, '', 0 FROM site WHERE priority = 1 AND name IN (SELECT value ->> 0 FROM json_each($1))
         ORDER BY name
         ON CONFLICT (site) DO NOTHING",
    )
    .bind(listed)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The sites were visited.
pub(super) async fn links_close(connection: &mut Connection, sites: &str) -> Outcome<()> {
    sqlx::query(
        "UPDATE site_link SET is_open = 0
         WHERE is_open = 1 AND site IN (SELECT value ->> 0 FROM json_each($1))",
    )
    .bind(sites)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The first hosts of a new site, as many as it may have; the others come to `refused`.
pub(super) fn hosts_within<'a>(
    site: &str,
    count: u64,
    hosts: &BTreeMap<&'a str, NamedBy>,
    refused: &mut HashSet<&'a str>,
) -> Vec<&'a str> {
    let mut admitted = Vec::with_capacity(hosts.len());
    let mut total = count;
    for (host, named_by) in hosts {
        if total < named_by.hosts_max() {
            total += 1;
            admitted.push(*host);
        } else {
            refused.insert(host);
        }
    }
    let dropped = hosts.len() - admitted.len();
    if dropped > 0 {
        tracing::warn!(
            site.name = site,
            hosts = dropped,
            linked_max = HOSTS_LINKED_MAX,
            submitted_max = HOSTS_SUBMITTED_MAX,
            listed_max = HOSTS_MAX,
            "further hosts of a site are not added"
        );
    }
    admitted
}

/// Leaves out hosts that their sites have no room for; those that are known stay. They come to `refused`.
pub(super) async fn hosts_admit<'a>(
    connection: &mut Connection,
    asked: &Asked<'a>,
    refused: &mut HashSet<&'a str>,
) -> Outcome<()> {
    let hosts: BTreeSet<&str> = asked.iter().map(|(seed, _)| seed.host.as_str()).collect();
    let known: Vec<String> =
        sqlx::query_scalar("SELECT host FROM host WHERE host IN (SELECT value ->> 0 FROM json_each($1))")
            .bind(names(hosts)?)
            .fetch_all(&mut *connection)
            .await?;
    let known: HashSet<&str> = known.iter().map(String::as_str).collect();
    let mut new: BTreeMap<&str, BTreeMap<&str, NamedBy>> = BTreeMap::new();
    for (seed, site) in asked.iter().filter(|(seed, _)| !known.contains(seed.host.as_str())) {
        let named_by = new.entry(site).or_default().entry(seed.host.as_str()).or_default();
        *named_by = NamedBy::of(seed).max(*named_by);
    }
    if new.is_empty() {
        return Ok(());
    }
    let counts = counted(
        connection,
        "SELECT site, COUNT(*) FROM host WHERE site IN (SELECT value ->> 0 FROM json_each($1)) GROUP BY site",
        &names(new.keys().copied())?,
    )
    .await?;
    for (site, hosts) in &new {
        hosts_within(site, counts.get(*site).copied().unwrap_or_default(), hosts, refused);
    }
    Ok(())
}

/// Leaves out URLs that their sites have no room for. Those of the operator's lists stay.
pub(super) async fn hints_admit<'a>(
    connection: &mut Connection,
    asked: Asked<'a>,
) -> Outcome<(Asked<'a>, Asked<'a>)> {
    let sites: BTreeSet<&str> = asked
        .iter()
        .filter(|(seed, _)| seed.url.is_some() && !is_listed(seed))
        .map(|(_, site)| *site)
        .collect();
    if sites.is_empty() {
        return Ok((asked, Vec::new()));
    }
    let mut counts = counted(
        connection,
        "SELECT site, COUNT(*) FROM resource
         WHERE outcome IS NULL AND site IN (SELECT value ->> 0 FROM json_each($1)) GROUP BY site",
        &names(sites)?,
    )
    .await?;
    let ids: BTreeSet<ManifestId> =
        asked.iter().filter_map(|(seed, _)| seed.url.as_ref()).map(ManifestId::of).collect();
    let mut known: HashSet<String> =
        sqlx::query_scalar("SELECT id FROM resource WHERE id IN (SELECT value ->> 0 FROM json_each($1))")
            .bind(names(ids.iter().map(ManifestId::as_str))?)
            .fetch_all(&mut *connection)
            .await?
            .into_iter()
            .collect();
    let (mut admitted, mut refused) = (Vec::with_capacity(asked.len()), Vec::new());
    for (seed, site) in asked {
        if let Some(url) = seed.url.as_ref().filter(|_| !is_listed(seed)) {
            let count = counts.entry(site.to_owned()).or_default();
            let id = ManifestId::of(url);
            if !known.contains(id.as_str()) {
                let max = if seed.origin.source().is_some() { HINTS_LINKED_MAX } else { HINTS_MAX };
                if *count >= max {
                    refused.push((seed, site));
                    continue;
                }
                *count += 1;
                known.insert(id.as_str().to_owned());
            }
        }
        admitted.push((seed, site));
    }
    Ok((admitted, refused))
}

async fn counted(
    connection: &mut Connection,
    statement: &'static str,
    sites: &str,
) -> Outcome<HashMap<String, u64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(statement).bind(sites).fetch_all(&mut *connection).await?;
    Ok(rows.into_iter().map(|(site, count)| (site, sized(count))).collect())
}

/// Who names a host, the least trusted first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedBy {
    #[default]
    Link,
    Submission,
    List,
}

impl NamedBy {
    pub(super) const fn of(seed: &Seed) -> Self {
        match seed.origin {
            SeedOrigin::Linked { .. } => Self::Link,
            SeedOrigin::Submitted => Self::Submission,
            SeedOrigin::File => Self::List,
        }
    }

    /// How many hosts its site may have before the host is refused.
    const fn hosts_max(self) -> u64 {
        match self {
            Self::Link => HOSTS_LINKED_MAX,
            Self::Submission => HOSTS_SUBMITTED_MAX,
            Self::List => HOSTS_MAX,
        }
    }

    pub(super) const fn origin(self) -> HostOrigin {
        match self {
            Self::Link | Self::Submission => HostOrigin::Named,
            Self::List => HostOrigin::Listed,
        }
    }
}

/// Whether a seed is the operator's own.
fn is_listed(seed: &Seed) -> bool {
    matches!(seed.origin, SeedOrigin::File)
}
