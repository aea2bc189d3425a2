//! Seeds: sites, hosts and hinted URLs, inserted in batches.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::DateTime;
use manifest::{Discovery, ManifestId, SiteName};
use policy::schedule::first_visit_at;

use super::link::{self, Asked, NamedBy};
use super::{Connection, block, rest, sites_put, unhex};
use crate::fault::Outcome;
use crate::model::seed::{AskedSite, PRIORITY_LINKED, PRIORITY_LISTED, Ranking};
use crate::model::{HostOrigin, Seed, SeedOrigin, SeedsAdded, is_main_host};
use crate::pack::{NEVER_MS, UNPLANNED_MS, hex, json, millis, names};
use crate::rest::{self as at_rest, SiteAtRest};

/// A link from another site makes a site due at most once in this time.
const HINT_INTERVAL_MS: i64 = 24 * 60 * 60 * 1_000;
/// What a batch asks of one site: its class, and its hosts, each with who names it.
#[derive(Default)]
struct AskedOf<'a> {
    priority: i32,
    hosts: BTreeMap<&'a str, NamedBy>,
    names_urls: bool,
}

/// Adds a batch. Known sites keep their schedule, unless the seed brings something new or asks for a visit now. A new
/// site of which only hosts are known rests in one row; a site at rest wakes where a seed brings more.
pub(crate) async fn seeds_add(
    connection: &mut Connection,
    seeds: &[Seed],
    ranking: Ranking,
    now_ms: i64,
) -> Outcome<SeedsAdded> {
    let sites: Vec<String> = seeds.iter().map(|seed| seed.host.site().as_str().to_owned()).collect();
    let blocked = block::blocked_among(connection, &names(sites.iter().map(String::as_str))?).await?;
    let mut open: Asked<'_> = seeds
        .iter()
        .zip(&sites)
        .filter(|(_, site)| !blocked.contains(*site))
        .map(|(seed, site)| (seed, site.as_str()))
        .collect();
    let blocked = seeds.len() - open.len();
    open.retain(|(seed, _)| !seed.is_too_long());
    let open = link::links_admit(connection, open).await?;
    let mut refused_hosts = HashSet::new();
    let (mut new_hosts, mut awake) =
        sites_insert(connection, &open, (ranking, now_ms), &mut refused_hosts).await?;
    link::hosts_admit(connection, &awake, &mut refused_hosts).await?;
    let has_room = |(seed, _): &(&Seed, &str)| !refused_hosts.contains(seed.host.as_str());
    awake.retain(has_room);
    new_hosts.extend(hosts_insert(connection, &awake).await?);
    let (awake, refused_urls) = link::hints_admit(connection, awake).await?;
    let mut new_urls = hints_insert(connection, &awake).await?;
    let refused_urls: HashSet<&str> =
        refused_urls.iter().filter_map(|(seed, _)| Some(seed.url.as_ref()?.as_str())).collect();
    let (mut due, mut hinted) = (Vec::new(), Vec::new());
    let mut sum = SeedsAdded { blocked: blocked as u64, ..SeedsAdded::default() };
    for (seed, site) in open.iter().filter(|seed| has_room(seed)) {
        let is_new_host = new_hosts.remove(seed.host.as_str());
        let is_new_url = seed.url.as_ref().is_some_and(|url| new_urls.remove(ManifestId::of(url).as_str()));
        let is_new = is_new_host || is_new_url;
        let is_refused = !is_new && seed.url.as_ref().is_some_and(|url| refused_urls.contains(url.as_str()));
        sum.added += u64::from(is_new);
        sum.known += u64::from(!is_new && !is_refused);
        match seed.origin {
            SeedOrigin::Linked { .. } if is_new => hinted.push(*site),
            SeedOrigin::File | SeedOrigin::Submitted if is_new => due.push(*site),
            _ => {}
        }
        if seed.revisit_now {
            due.push(site);
        }
    }
    sum.refused = seeds.len() as u64 - sum.added - sum.known - sum.blocked;
    if !hinted.is_empty() {
        due_once_a_day(connection, &names(hinted)?, now_ms).await?;
    }
    if !due.is_empty() {
        due_now(connection, &names(due)?, now_ms).await?;
    }
    Ok(sum)
}

/// Makes a site known without a visit; one that is known stays as it is.
pub(crate) async fn site_add_unplanned(
    connection: &mut Connection,
    site: &SiteName,
    now_ms: i64,
) -> Outcome<()> {
    // a pending site has a byte for each of its words
    let Some(packed) = SiteAtRest::pending([], now_ms).pack(site.as_str()) else { return Ok(()) };
    sqlx::query(
        "INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest) VALUES ($1, $2, $3, $4, 0)
         ON CONFLICT (name) DO NOTHING",
    )
    .bind(site.as_str())
    // no list ever named it, so that none forgets it
    .bind(PRIORITY_LINKED)
    .bind(UNPLANNED_MS)
    .bind(packed)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The class of a site that is asked for in two ways: what a list or a visitor says counts before what a link says.
fn first_class(one: i32, other: i32) -> i32 {
    match (one, other) {
        (PRIORITY_LINKED, class) | (class, PRIORITY_LINKED) => class,
        (one, other) => one.min(other),
    }
}

/// Class of the lease order, which is 0, 2, 3, 4, 5 and then 1.
const fn priority(seed: &Seed) -> i32 {
    match (&seed.origin, seed.rank) {
        (SeedOrigin::Submitted, _) => 0,
        (SeedOrigin::Linked { .. }, _) => PRIORITY_LINKED,
        (SeedOrigin::File, None | Some(0..=10_000)) => PRIORITY_LISTED,
        (SeedOrigin::File, Some(10_001..=100_000)) => 3,
        (SeedOrigin::File, Some(100_001..=1_000_000)) => 4,
        (SeedOrigin::File, Some(_)) => 5,
    }
}

/// Listed sites are visited in an order of their own, the others as they come.
fn due_at_ms(site: &str, priority: i32, now_ms: i64) -> i64 {
    let now = DateTime::from_timestamp_millis(now_ms).filter(|_| priority >= PRIORITY_LISTED);
    now.map_or(now_ms, |now| millis(first_visit_at(policy::Seed::of(site), now)))
}

/// Returns the hosts of the new sites, and the seeds whose sites have rows of their own. Rows go in sorted by key, so that
/// concurrent batches lock them in the same order; rows that stay as they are are not locked at all, since visits that
/// link to each other's sites are saved at the same time.
async fn sites_insert<'a>(
    connection: &mut Connection,
    open: &Asked<'a>,
    (ranking, now_ms): (Ranking, i64),
    refused_hosts: &mut HashSet<&'a str>,
) -> Outcome<(HashSet<String>, Asked<'a>)> {
    let mut asked: BTreeMap<&str, AskedOf<'a>> = BTreeMap::new();
    for (seed, site) in open {
        let class = priority(seed);
        let of_site = asked.entry(site).or_insert_with(|| AskedOf { priority: class, ..AskedOf::default() });
        of_site.priority = first_class(of_site.priority, class);
        let named_by = of_site.hosts.entry(seed.host.as_str()).or_default();
        *named_by = NamedBy::of(seed).max(*named_by);
        of_site.names_urls |= seed.url.is_some();
    }
    let listed =
        asked.iter().filter(|(_, of_site)| of_site.priority >= PRIORITY_LISTED).map(|(name, _)| *name);
    link::links_keep(connection, &names(listed)?).await?;
    let mut rows = Vec::with_capacity(asked.len());
    for (name, of_site) in &mut asked {
        if of_site.hosts.len() > 1 {
            let within = link::hosts_within(name, 0, &of_site.hosts, refused_hosts);
            of_site.hosts = within
                .into_iter()
                .filter_map(|host| of_site.hosts.get_key_value(host))
                .map(|(host, named_by)| (*host, *named_by))
                .collect();
        }
        let hosts = of_site.hosts.iter().map(|(host, named_by)| ((*host).to_owned(), named_by.origin()));
        let site = SiteAtRest::pending(hosts, now_ms);
        // A host that is new with its site is no news once more when the site wakes.
        if let Some(packed) = site.pack(name) {
            let priority = of_site.priority;
            rows.push(AskedSite {
                name,
                priority,
                next_visit_at_ms: due_at_ms(name, priority, now_ms),
                packed,
            });
        }
    }
    let new: HashSet<String> = sites_put(connection, &rows, ranking).await?.into_iter().collect();
    let known = asked.keys().filter(|name| !new.contains(**name)).copied();
    let resting = rest::packed_of(connection, &names(known)?).await?;
    let mut new_hosts = HashSet::new();
    let mut waking = Vec::new();
    let mut asleep: HashSet<&str> = HashSet::new();
    for (name, of_site) in &asked {
        let is_new = new.contains(*name);
        if is_new {
            new_hosts.extend(of_site.hosts.keys().map(|host| (*host).to_owned()));
        }
        let brings_more = match resting.get(*name).map(|packed| SiteAtRest::unpack(name, packed)) {
            Some(Ok(site)) => {
                let known: HashMap<&str, HostOrigin> =
                    site.hosts.iter().map(|host| (host.host.as_str(), host.origin)).collect();
                let is_known = |(host, named_by): (&&str, &NamedBy)| {
                    let least = if is_main_host(name, host) { HostOrigin::Named } else { named_by.origin() };
                    known.get(host).is_some_and(|known| *known >= least)
                };
                of_site.names_urls || !of_site.hosts.iter().all(is_known)
            }
            Some(Err(error)) => {
                tracing::error!(site.name = name, %error, "nothing is added to a site whose row is damaged");
                false
            }
            None => of_site.names_urls || !is_new,
        };
        if brings_more {
            waking.push(*name);
        } else {
            asleep.insert(*name);
        }
    }
    rest::sites_wake(connection, &names(waking)?).await?;
    let awake = open.iter().filter(|(_, site)| !asleep.contains(site)).copied().collect();
    Ok((new_hosts, awake))
}

/// Inserts the sites that are not known, and moves the others in the lease order; returns the new ones.
pub(crate) async fn sites_put_json(
    connection: &mut Connection,
    sites: &[AskedSite<'_>],
    ranking: Ranking,
) -> Outcome<Vec<String>> {
    let rows: Vec<_> = sites
        .iter()
        .map(|site| (site.name, site.priority, hex(&site.packed), site.next_visit_at_ms))
        .collect();
    let batch = json(&rows, "batch of sites")?;
    let new = sqlx::query_scalar(concat!(
        "INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest)
         SELECT value ->> 0, CAST(value ->> 1 AS INTEGER), CAST(value ->> 3 AS BIGINT), ",
        unhex!("value ->> 2"),
        ", 0 FROM json_each($1) WHERE true
         ON CONFLICT (name) DO NOTHING
         RETURNING name"
    ))
    .bind(&batch)
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE site SET priority = asked_priority
         FROM (SELECT value ->> 0 AS asked_name, CAST(value ->> 1 AS INTEGER) AS asked_priority FROM json_each($1))
              AS asked
         WHERE name = asked_name AND asked_priority <> 1
           AND (priority = 1 OR priority > asked_priority OR (priority >= $2 AND priority <> asked_priority))",
    )
    .bind(&batch)
    .bind(ranking.follows_from())
    .execute(&mut *connection)
    .await?;
    Ok(new)
}

/// Inserts hosts and raises the origin of known ones. Returns the hosts that no seed named before.
async fn hosts_insert(connection: &mut Connection, open: &[(&Seed, &str)]) -> Outcome<HashSet<String>> {
    let mut rows: BTreeMap<&str, (&str, HostOrigin)> = BTreeMap::new();
    for (seed, site) in open {
        let (_, known) = rows.entry(seed.host.as_str()).or_insert((site, HostOrigin::Met));
        *known = NamedBy::of(seed).origin().max(*known);
    }
    let rows: Vec<_> = rows.iter().map(|(host, (site, origin))| (host, site, origin.code())).collect();
    let batch = json(&rows, "batch of hosts")?;
    let mut new_hosts = HashSet::new();
    for statement in [
        "UPDATE host SET seeded = 1 WHERE seeded = 0 AND host IN (SELECT value ->> 0 FROM json_each($1))
         RETURNING host",
        "INSERT INTO host (host, site, seeded)
         SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS INTEGER) FROM json_each($1) WHERE true
         ON CONFLICT (host) DO NOTHING
         RETURNING host",
    ] {
        let rows: Vec<String> =
            sqlx::query_scalar(statement).bind(&batch).fetch_all(&mut *connection).await?;
        new_hosts.extend(rows);
    }
    // no news: a listed site is visited as before
    sqlx::query(
        "UPDATE host SET seeded = 2 WHERE seeded < 2
         AND host IN (SELECT value ->> 0 FROM json_each($1) WHERE CAST(value ->> 2 AS INTEGER) = 2)",
    )
    .bind(&batch)
    .execute(&mut *connection)
    .await?;
    Ok(new_hosts)
}

/// URLs that were seeded or linked wait as resources without an outcome.
async fn hints_insert(connection: &mut Connection, open: &[(&Seed, &str)]) -> Outcome<HashSet<String>> {
    let mut rows = BTreeMap::new();
    for (seed, site) in open {
        let Some(url) = &seed.url else { continue };
        let (discovery, linked_from) = match &seed.origin {
            SeedOrigin::Linked { from } => (Discovery::CatalogEntry, Some(from.as_str())),
            SeedOrigin::File => (Discovery::Listed, None),
            SeedOrigin::Submitted => (Discovery::Submitted, None),
        };
        let id = ManifestId::of(url);
        let row = (id.as_str().to_owned(), *site, url.as_str(), discovery.as_str(), linked_from);
        rows.entry(row.0.clone()).or_insert(row);
    }
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let inserted = sqlx::query_scalar(
        "INSERT INTO resource (id, site, url, discovery, linked_from)
         SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each($1) WHERE true
         ON CONFLICT (id) DO NOTHING
         RETURNING id",
    )
    .bind(json(&rows.into_values().collect::<Vec<_>>(), "batch of hints")?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(inserted.into_iter().collect())
}

async fn due_once_a_day(connection: &mut Connection, sites: &str, now_ms: i64) -> Outcome<()> {
    let hinted: Vec<String> = sqlx::query_scalar(
        "UPDATE site_state SET hinted_at_ms = $2
         WHERE name IN (SELECT value ->> 0 FROM json_each($1)) AND (hinted_at_ms IS NULL OR hinted_at_ms <= $3)
         RETURNING name",
    )
    .bind(sites)
    .bind(now_ms)
    .bind(now_ms - HINT_INTERVAL_MS)
    .fetch_all(&mut *connection)
    .await?;
    due_now(connection, &names(hinted.iter().map(String::as_str))?, now_ms).await
}

/// Moves visits forward, never back, and leaves blocked sites alone.
async fn due_now(connection: &mut Connection, sites: &str, now_ms: i64) -> Outcome<()> {
    sqlx::query(
        "UPDATE site SET next_visit_at_ms = $2
         WHERE name IN (SELECT value ->> 0 FROM json_each($1)) AND next_visit_at_ms > $2 AND next_visit_at_ms < $3",
    )
    .bind(sites)
    .bind(now_ms)
    .bind(NEVER_MS)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Makes sites due that were last visited before a time; parked visits keep theirs, blocked sites stay blocked.
pub(crate) async fn sites_revisit(
    connection: &mut Connection,
    visited_before_ms: i64,
    now_ms: i64,
) -> Outcome<u64> {
    let awake = sqlx::query(
        "UPDATE site SET next_visit_at_ms = $2
         WHERE next_visit_at_ms > $2 AND next_visit_at_ms < $3
         AND name IN (SELECT name FROM site_state WHERE last_visit_at_ms <= $1 AND parked_until_ms IS NULL)",
    )
    .bind(visited_before_ms)
    .bind(now_ms)
    .bind(NEVER_MS)
    .execute(&mut *connection)
    .await?;
    let at_rest = sqlx::query(
        "UPDATE site SET next_visit_at_ms = $2
         WHERE next_visit_at_ms > $2 AND next_visit_at_ms < $3 AND visits_at_rest > 0 AND packed IS NOT NULL
         AND substr(packed, 5, 4) <= $1",
    )
    .bind(at_rest::seconds_bytes(visited_before_ms).as_slice())
    .bind(now_ms)
    .bind(NEVER_MS)
    .execute(&mut *connection)
    .await?;
    Ok(awake.rows_affected() + at_rest.rows_affected())
}
