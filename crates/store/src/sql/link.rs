//! Limits on sites, hosts and URLs that links of other sites and lists may add.
//!
//! Any site can link to any number of names and URLs, so each limit has an owner: unvisited sites count towards the linking site, hosts and
//! URLs towards their own site.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use manifest::{HostOfSite, ManifestUrl, SiteName};
use serde::Serialize;

use super::host::hosts_make_room;
use super::{Connection, batch};
use crate::convert::{json, names, to_u64};
use crate::fault::Outcome;
use crate::model::{HostOrigin, Seed, SeedOrigin};

/// Maximum number of unvisited sites that are known through links of one site: as many as one visit may add.
const OPEN_SITES_MAX: u64 = 10_000;
/// Number of hosts of a site beyond which links, submissions and the operator's lists add no more. The limit for links is lower than for
/// submissions, so that links of other sites cannot prevent the site owner from submitting hosts.
const HOSTS_LINKED_MAX: u64 = 1_000;
const HOSTS_SUBMITTED_MAX: u64 = 1_100;
/// Maximum number of linked hosts that one site may name, in one batch and while their URLs are unfetched.
const HOSTS_OF_ONE_SITE_MAX: usize = 300;
const HOSTS_MAX: u64 = 10_000;
/// A seed and its site.
pub(super) type SiteSeed<'a> = (&'a Seed, &'a str);

/// A row of `site_link`.
#[derive(Serialize)]
struct LinkRow<'a> {
    site: &'a str,
    linked_by: &'a str,
    is_open: i32,
}

/// Removes links to unknown sites beyond [`OPEN_SITES_MAX`] of the linking site, and stores who links to the rest.
pub(super) async fn links_admit<'a>(
    connection: &mut Connection,
    seeds: Vec<SiteSeed<'a>>,
) -> Outcome<Vec<SiteSeed<'a>>> {
    let links: Vec<(&str, String)> = seeds
        .iter()
        .filter_map(|(seed, site)| Some((*site, seed.origin.source()?.site().as_str().to_owned())))
        .collect();
    if links.is_empty() {
        return Ok(seeds);
    }
    let targets: BTreeSet<&str> = links.iter().map(|(site, _)| *site).collect();
    let sources: BTreeSet<&str> = links.iter().map(|(_, source)| source.as_str()).collect();
    let known = sites_known(connection, &names(targets)?).await?;
    let mut open = sites_open(connection, &names(sources)?).await?;
    let mut rows: BTreeMap<&str, LinkRow<'_>> = BTreeMap::new();
    let mut refused: BTreeMap<&str, &str> = BTreeMap::new();
    for (site, linked_by) in &links {
        if rows.contains_key(site) {
            continue;
        }
        let is_open = i32::from(!known.contains(*site));
        if is_open == 1 {
            let count = open.entry(linked_by.clone()).or_default();
            if *count >= OPEN_SITES_MAX {
                refused.insert(site, linked_by);
                continue;
            }
            *count += 1;
            refused.remove(site);
        }
        rows.insert(site, LinkRow { site, linked_by, is_open });
    }
    links_insert(connection, &rows.into_values().collect::<Vec<_>>()).await?;
    log_refused(&refused);
    let is_refused =
        |(seed, site): &SiteSeed<'_>| seed.origin.source().is_some() && refused.contains_key(site);
    Ok(seeds.iter().filter(|seed| !is_refused(seed)).copied().collect())
}

fn log_refused(refused: &BTreeMap<&str, &str>) {
    let mut by_source: BTreeMap<&str, u64> = BTreeMap::new();
    for source in refused.values() {
        *by_source.entry(source).or_default() += 1;
    }
    for (source, sites) in by_source {
        tracing::warn!(
            site.name = source,
            sites,
            open_max = OPEN_SITES_MAX,
            "links to unknown sites are dropped"
        );
    }
}

async fn sites_known(connection: &mut Connection, sites: &str) -> Outcome<HashSet<String>> {
    let known = sqlx::query_scalar(concat!("SELECT name FROM site WHERE name IN ", list!()));
    Ok(known.bind(sites).fetch_all(&mut *connection).await?.into_iter().collect())
}

/// How many unvisited sites each of these has made known.
async fn sites_open(connection: &mut Connection, sources: &str) -> Outcome<HashMap<String, u64>> {
    let statement = concat!(
        "SELECT linked_by, COUNT(*) FROM site_link WHERE is_open = 1 AND linked_by IN ",
        list!(),
        " GROUP BY linked_by"
    );
    counts(connection, statement, sources).await
}

async fn links_insert(connection: &mut Connection, rows: &[LinkRow<'_>]) -> Outcome<()> {
    sqlx::query(concat!(
        "INSERT INTO site_link (site, linked_by, is_open) SELECT site, linked_by, is_open FROM ",
        batch!(site TEXT, linked_by TEXT, is_open INTEGER),
        " WHERE true ON CONFLICT (site) DO NOTHING"
    ))
    .bind(json(&rows, "batch of links")?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Selects known sites by their priority, and stores that not only a list names them.
macro_rules! keep_sites {
    ($priorities:literal) => {
        concat!(
            "INSERT INTO site_link (site, linked_by, is_open)
             SELECT name, '', 0 FROM site WHERE ",
            $priorities,
            " AND name IN ",
            list!(),
            " ORDER BY name
             ON CONFLICT (site) DO NOTHING"
        )
    };
}

/// For sites that a list is about to name, stores that other sites link to them or clients submitted them, because their priority will no
/// longer show it.
pub(super) async fn unlisted_keep(connection: &mut Connection, listed: &str) -> Outcome<()> {
    sqlx::query(keep_sites!("priority < 2")).bind(listed).execute(&mut *connection).await?;
    Ok(())
}

/// Stores that clients have submitted listed sites, because their priority does not show it.
pub(super) async fn submitted_keep(connection: &mut Connection, submitted: &str) -> Outcome<()> {
    sqlx::query(keep_sites!("priority >= 2")).bind(submitted).execute(&mut *connection).await?;
    Ok(())
}

/// Stores that sites were visited.
pub(super) async fn links_close(connection: &mut Connection, sites: &str) -> Outcome<()> {
    sqlx::query(concat!("UPDATE site_link SET is_open = 0 WHERE is_open = 1 AND site IN ", list!()))
        .bind(sites)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The hosts that exceed the limits of a site with `count` other hosts.
pub(super) fn hosts_beyond_limits<'a>(count: u64, hosts: &BTreeMap<&'a str, NamedBy>) -> HashSet<&'a str> {
    let mut count = count;
    let mut is_beyond = |named_by: NamedBy| {
        let is_beyond = count >= named_by.hosts_max();
        count += u64::from(!is_beyond);
        is_beyond
    };
    hosts.iter().filter(|(_, named_by)| is_beyond(**named_by)).map(|(host, _)| *host).collect()
}

pub(super) fn log_hosts_refused(site: &str, hosts: usize) {
    if hosts > 0 {
        tracing::warn!(
            site.name = site,
            hosts,
            linked_max = HOSTS_LINKED_MAX,
            submitted_max = HOSTS_SUBMITTED_MAX,
            listed_max = HOSTS_MAX,
            "the host limit of a site is reached: further hosts are not added"
        );
    }
}

/// Removes links to unknown hosts beyond the part of the linking site ([`HOSTS_OF_ONE_SITE_MAX`]).
pub(super) async fn linked_hosts_admit<'a>(
    connection: &mut Connection,
    seeds: Vec<SiteSeed<'a>>,
) -> Outcome<Vec<SiteSeed<'a>>> {
    let source_of = |(seed, site): &SiteSeed<'a>| {
        let of_site = HostOfSite { site, host: seed.host.as_str() };
        let from = seed.origin.source().filter(|_| !of_site.is_main())?;
        Some((*site, from.site()))
    };
    let mut linked: HashMap<&str, HashSet<&str>> = HashMap::new();
    for seed in &seeds {
        if let Some((site, _)) = source_of(seed) {
            linked.entry(site).or_default().insert(seed.0.host.as_str());
        }
    }
    if linked.is_empty() {
        return Ok(seeds);
    }
    let statement = concat!("SELECT site, COUNT(*) FROM host WHERE site IN ", list!(), " GROUP BY site");
    let known = counts(connection, statement, &names(linked.keys().copied())?).await?;
    let may_be_full = |site: &str, new: &HashSet<&str>| {
        known.get(site).copied().unwrap_or_default() + new.len() as u64 > HOSTS_OF_ONE_SITE_MAX as u64
    };
    linked.retain(|site, new| may_be_full(site, new));
    if linked.is_empty() {
        return Ok(seeds);
    }
    let known = hosts_known(connection, linked.values().flatten().copied()).await?;
    let mut by_source: HashMap<(String, SiteName), HashSet<String>> = HashMap::new();
    for hint in hints_linked(connection, linked.keys().copied()).await? {
        by_source.entry((hint.site, hint.from.site())).or_default().insert(hint.url.host().to_string());
    }
    let mut has_room = |seed: &SiteSeed<'a>| {
        let host = seed.0.host.as_str();
        let Some((site, source)) = source_of(seed) else { return true };
        if !linked.contains_key(site) || known.contains(host) {
            return true;
        }
        let hosts = by_source.entry((site.to_owned(), source)).or_default();
        if hosts.len() < HOSTS_OF_ONE_SITE_MAX {
            hosts.insert(host.to_owned());
        }
        hosts.contains(host)
    };
    Ok(seeds.into_iter().filter(|seed| has_room(seed)).collect())
}

/// The hosts among these that have rows.
async fn hosts_known(
    connection: &mut Connection,
    hosts: impl IntoIterator<Item = &str>,
) -> Outcome<HashSet<String>> {
    let known = sqlx::query_scalar(concat!("SELECT host FROM host WHERE host IN ", list!()));
    let hosts: BTreeSet<&str> = hosts.into_iter().collect();
    Ok(known.bind(names(hosts)?).fetch_all(&mut *connection).await?.into_iter().collect())
}

/// An unfetched URL to which another document links.
pub(super) struct LinkedHint {
    pub(super) site: String,
    pub(super) url: ManifestUrl,
    pub(super) from: ManifestUrl,
    /// No visit has requested it.
    pub(super) is_new: bool,
}

/// The linked hints of these sites, in no particular order.
pub(super) async fn hints_linked(
    connection: &mut Connection,
    sites: impl IntoIterator<Item = &str>,
) -> Outcome<Vec<LinkedHint>> {
    let rows = sqlx::query_as(concat!(
        "SELECT site, url, linked_from, CASE WHEN content_hash IS NULL AND misses_in_row = 0 THEN 1 ELSE 0 END
         FROM resource WHERE outcome IS NULL AND linked_from IS NOT NULL AND site IN ",
        list!()
    ));
    let rows: Vec<(String, String, String, i32)> =
        rows.bind(names(sites)?).fetch_all(&mut *connection).await?;
    let hint = |(site, url, from, is_new): (String, String, String, i32)| {
        let (url, from) = (ManifestUrl::parse(&url).ok()?, ManifestUrl::parse(&from).ok()?);
        Some(LinkedHint { site, url, from, is_new: is_new == 1 })
    };
    Ok(rows.into_iter().filter_map(hint).collect())
}

/// Adds to `refused` the unknown hosts beyond the limits of their sites.
pub(super) async fn hosts_admit<'a>(
    connection: &mut Connection,
    seeds: &[SiteSeed<'a>],
    refused: &mut HashSet<&'a str>,
    now_ms: i64,
) -> Outcome<()> {
    let hosts: BTreeSet<&str> = seeds.iter().map(|(seed, _)| seed.host.as_str()).collect();
    let known = hosts_known(connection, hosts).await?;
    let mut new: BTreeMap<&str, BTreeMap<&str, NamedBy>> = BTreeMap::new();
    for (seed, site) in seeds.iter().filter(|(seed, _)| !known.contains(seed.host.as_str())) {
        let named_by = new.entry(site).or_default().entry(seed.host.as_str()).or_default();
        *named_by = NamedBy::of(seed).max(*named_by);
    }
    if new.is_empty() {
        return Ok(());
    }
    let statement = concat!("SELECT site, COUNT(*) FROM host WHERE site IN ", list!(), " GROUP BY site");
    let counts = counts(connection, statement, &names(new.keys().copied())?).await?;
    for (site, hosts) in &new {
        let mut count = counts.get(*site).copied().unwrap_or_default();
        let missing = (count + hosts.len() as u64).saturating_sub(HOSTS_LINKED_MAX);
        if missing > 0 {
            count -= hosts_make_room(connection, site, missing, now_ms).await?;
        }
        let beyond = hosts_beyond_limits(count, hosts);
        log_hosts_refused(site, beyond.len());
        refused.extend(beyond);
    }
    Ok(())
}

/// Runs a statement that counts rows for each name of the list.
pub(super) async fn counts(
    connection: &mut Connection,
    statement: &'static str,
    listed: &str,
) -> Outcome<HashMap<String, u64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(statement).bind(listed).fetch_all(&mut *connection).await?;
    Ok(rows.into_iter().map(|(name, count)| (name, to_u64(count))).collect())
}

/// Who names a host, from the least to the most trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamedBy {
    #[default]
    Link,
    Submission,
    Collection,
    List,
}

impl NamedBy {
    pub(super) const fn of(seed: &Seed) -> Self {
        match seed.origin {
            SeedOrigin::Linked { .. } => Self::Link,
            SeedOrigin::Submitted => Self::Submission,
            SeedOrigin::Collected => Self::Collection,
            SeedOrigin::File => Self::List,
        }
    }

    /// Number of hosts of a site at which another host is refused.
    const fn hosts_max(self) -> u64 {
        match self {
            Self::Link => HOSTS_LINKED_MAX,
            Self::Submission => HOSTS_SUBMITTED_MAX,
            Self::Collection | Self::List => HOSTS_MAX,
        }
    }

    pub(super) const fn origin(self) -> HostOrigin {
        match self {
            Self::Link | Self::Submission => HostOrigin::Named,
            Self::Collection => HostOrigin::Collected,
            Self::List => HostOrigin::Listed,
        }
    }
}

/// Whether a seed is from a list that the operator wrote.
pub(super) fn is_listed(seed: &Seed) -> bool {
    matches!(seed.origin, SeedOrigin::File)
}
