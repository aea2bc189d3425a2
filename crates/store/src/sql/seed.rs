//! Seeds: sites, hosts and hinted URLs, inserted in batches.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::DateTime;
use manifest::{Discovery, HostOfSite, ManifestId, SiteName};
use policy::schedule::{HINT_INTERVAL, first_visit_at};
use serde::Serialize;

use super::compaction::{compacted_among, sites_expand};
use super::hint::Unstored;
use super::link::{self, NamedBy, SiteSeed};
use super::renewal::urls_renew;
use super::{Connection, batch, block, hint, sites_put, unhex};
use crate::compaction::CompactedSite;
use crate::convert::{NEVER_MS, UNPLANNED_MS, hex, json, millis, names};
use crate::fault::Outcome;
use crate::model::seed::{
    NewSiteRow, PRIORITY_LINKED, PRIORITY_LISTED, PRIORITY_SUBMITTED, Ranking, priority_changes,
};
use crate::model::{HostOrigin, Seed, SeedOrigin, SeedsAdded};
use crate::rows::{OWNER_REQUESTED, OWNER_REQUESTED_NEXT};

/// The seeds of one site in a batch, combined.
#[derive(Default)]
struct SiteSeeds<'a> {
    priority: i32,
    hosts: BTreeMap<&'a str, NamedBy>,
    has_urls: bool,
    is_submitted: bool,
}

/// Adds a batch. A known site keeps its schedule, unless a seed adds a URL or host or requests a visit now. A new site with hosts only is
/// stored compacted; a compacted site is expanded if a seed adds other data. `due_at_ms` is when requested visits are due, now or later.
pub(crate) async fn seeds_add(
    connection: &mut Connection,
    seeds: &[Seed],
    ranking: Ranking,
    (now_ms, due_at_ms): (i64, i64),
) -> Outcome<SeedsAdded> {
    let sites: Vec<String> = seeds.iter().map(|seed| seed.host.site().as_str().to_owned()).collect();
    let blocked = block::blocked_among(connection, &names(sites.iter().map(String::as_str))?).await?;
    let mut open: Vec<SiteSeed<'_>> = seeds
        .iter()
        .zip(&sites)
        .filter(|(_, site)| !blocked.contains(*site))
        .map(|(seed, site)| (seed, site.as_str()))
        .collect();
    let blocked = seeds.len() - open.len();
    open.retain(|(seed, _)| !seed.is_too_long());
    let mut unstored = Unstored::of(&open);
    let open = link::links_admit(connection, open).await?;
    let open = link::linked_hosts_admit(connection, open).await?;
    let mut refused_hosts = HashSet::new();
    let (mut new_hosts, mut expanded) =
        sites_insert(connection, &open, (ranking, now_ms), &mut refused_hosts).await?;
    link::hosts_admit(connection, &expanded, &mut refused_hosts, now_ms).await?;
    let has_room = |(seed, _): &SiteSeed<'_>| !refused_hosts.contains(seed.host.as_str());
    expanded.retain(has_room);
    new_hosts.extend(hosts_insert(connection, &expanded).await?);
    let hints = hint::hints_admit(connection, expanded, now_ms).await?;
    hint::hints_replace(connection, &hints.replaced).await?;
    let mut new_urls = hints_insert(connection, &hints.seeds).await?;
    new_urls.extend(urls_renew(connection, hints.renewals).await?);
    let (mut due, mut hinted) = (Vec::new(), Vec::new());
    let mut total = SeedsAdded { blocked: blocked as u64, ..SeedsAdded::default() };
    for (seed, site) in open.iter().filter(|seed| has_room(seed)) {
        let is_new_host = new_hosts.remove(seed.host.as_str());
        let is_new_url = seed.url.as_ref().is_some_and(|url| new_urls.remove(ManifestId::of(url).as_str()));
        let is_new = is_new_host || is_new_url;
        let is_refused = !is_new && seed.url.as_ref().is_some_and(|url| hints.refused.contains(url.as_str()));
        total.added += u64::from(is_new);
        total.known += u64::from(!is_new && !is_refused);
        if !is_refused {
            unstored.remove(seed);
        }
        match seed.origin {
            SeedOrigin::Linked { .. } if is_new => hinted.push(*site),
            SeedOrigin::File | SeedOrigin::Collected | SeedOrigin::Submitted if is_new => due.push(*site),
            _ => {}
        }
        if seed.revisit_now {
            due.push(site);
        }
    }
    total.refused = seeds.len() as u64 - total.added - total.known - total.blocked;
    unstored.mark_links_left(connection, &hints.replaced).await?;
    if !hinted.is_empty() {
        due_once_a_day(connection, &names(hinted)?, now_ms).await?;
    }
    if !due.is_empty() {
        request_visits(connection, &names(due)?, (now_ms, due_at_ms)).await?;
    }
    Ok(total)
}

/// Adds a site without a planned visit; does not change a known site.
pub(crate) async fn site_add_unplanned(
    connection: &mut Connection,
    site: &SiteName,
    now_ms: i64,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest, compacted_status)
         VALUES ($1, $2, $3, $4, 0, 'pending')
         ON CONFLICT (name) DO NOTHING",
    )
    .bind(site.as_str())
    // not the priority of a listed site, so that `--follow-seeds` does not remove the site
    .bind(PRIORITY_LINKED)
    .bind(UNPLANNED_MS)
    .bind(CompactedSite::pending(site.as_str(), [], now_ms).encode())
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The priority of a site with several seeds: a list takes precedence over a submission, and both over a link. Anyone may submit a site, so
/// a submission must not change the position of a listed one.
fn first_priority(one: i32, other: i32) -> i32 {
    let order = |priority: i32| match priority {
        PRIORITY_LINKED => (2, priority),
        PRIORITY_SUBMITTED => (1, priority),
        _ => (0, priority),
    };
    if order(one) <= order(other) { one } else { other }
}

/// See the comment on `site.priority`.
const fn priority(seed: &Seed) -> i32 {
    match (&seed.origin, seed.rank) {
        (SeedOrigin::Submitted, _) => PRIORITY_SUBMITTED,
        (SeedOrigin::Linked { .. }, _) => PRIORITY_LINKED,
        (SeedOrigin::File | SeedOrigin::Collected, rank) => match rank {
            None | Some(0..=10_000) => PRIORITY_LISTED,
            Some(10_001..=100_000) => 3,
            Some(100_001..=1_000_000) => 4,
            Some(_) => 5,
        },
    }
}

/// The first visits of listed sites are spread over time; other sites are due immediately.
fn due_at_ms(site: &str, priority: i32, now_ms: i64) -> i64 {
    let now = DateTime::from_timestamp_millis(now_ms).filter(|_| priority >= PRIORITY_LISTED);
    now.map_or(now_ms, |now| millis(first_visit_at(policy::Seed::of(site), now)))
}

/// Returns the hosts of the new sites, and the seeds of sites that are not compacted. Rows are sorted by key, so concurrent batches lock
/// them in one order. Unchanged rows are not locked, because visits that link to each other's sites may be saved at the same time.
async fn sites_insert<'a>(
    connection: &mut Connection,
    open: &[SiteSeed<'a>],
    (ranking, now_ms): (Ranking, i64),
    refused_hosts: &mut HashSet<&'a str>,
) -> Outcome<(HashSet<String>, Vec<SiteSeed<'a>>)> {
    let mut by_site: BTreeMap<&str, SiteSeeds<'a>> = BTreeMap::new();
    for (seed, site) in open {
        let priority = priority(seed);
        let seeds = by_site.entry(site).or_insert_with(|| SiteSeeds { priority, ..SiteSeeds::default() });
        seeds.priority = first_priority(seeds.priority, priority);
        let named_by = seeds.hosts.entry(seed.host.as_str()).or_default();
        *named_by = NamedBy::of(seed).max(*named_by);
        seeds.has_urls |= seed.url.is_some();
        seeds.is_submitted |= matches!(seed.origin, SeedOrigin::Submitted);
    }
    let listed = by_site.iter().filter(|(_, seeds)| seeds.priority >= PRIORITY_LISTED);
    link::unlisted_keep(connection, &names(listed.map(|(name, _)| *name))?).await?;
    let submitted = by_site.iter().filter(|(_, seeds)| seeds.is_submitted);
    link::submitted_keep(connection, &names(submitted.map(|(name, _)| *name))?).await?;
    // The hosts of a known site are counted by `hosts_admit`, which does not refuse known hosts.
    let beyond = |seeds: &SiteSeeds<'a>| link::hosts_beyond_limits(0, &seeds.hosts);
    let row = |(name, seeds): (&&'a str, &SiteSeeds<'a>)| {
        let beyond = beyond(seeds);
        let admitted = seeds.hosts.iter().filter(|(host, _)| !beyond.contains(*host));
        let hosts = admitted.map(|(host, named_by)| (*host, named_by.origin()));
        let packed = CompactedSite::pending(name, hosts, now_ms).encode()?;
        let next_visit_at_ms = due_at_ms(name, seeds.priority, now_ms);
        Some(NewSiteRow { name, priority: seeds.priority, next_visit_at_ms, packed: hex(&packed) })
    };
    let rows: Vec<NewSiteRow<'_>> = by_site.iter().filter_map(row).collect();
    let new: HashSet<String> = sites_put(connection, &rows, ranking).await?.into_iter().collect();
    let known = by_site.keys().filter(|name| !new.contains(**name)).copied();
    let compacted = compacted_among(connection, &names(known)?).await?;
    let mut new_hosts = HashSet::new();
    let (mut expanding, mut still_compacted) = (Vec::new(), HashSet::new());
    for (name, seeds) in &by_site {
        let is_new = new.contains(*name);
        if is_new {
            let beyond = beyond(seeds);
            // these hosts must not count as new again when the site is expanded
            let admitted = seeds.hosts.keys().filter(|host| !beyond.contains(*host));
            new_hosts.extend(admitted.map(|host| (*host).to_owned()));
            link::log_hosts_refused(name, beyond.len());
            refused_hosts.extend(beyond);
        }
        let is_expanding = match compacted.get(*name) {
            Some(Ok(site)) => {
                let known = site.hosts.iter().map(|host| (host.host.as_str(), host.origin()));
                let known: HashMap<&str, HostOrigin> = known.collect();
                let is_known = |(host, named_by): (&&str, &NamedBy)| {
                    let of_site = HostOfSite { site: name, host };
                    let least = if of_site.is_main() { HostOrigin::Named } else { named_by.origin() };
                    known.get(host).is_some_and(|known| *known >= least)
                };
                seeds.has_urls || !seeds.hosts.iter().all(is_known)
            }
            Some(Err(error)) => {
                tracing::error!(site.name = name, %error, "seeds of a site with a damaged row are ignored");
                false
            }
            None => seeds.has_urls || !is_new,
        };
        if is_expanding {
            expanding.push(*name);
        } else {
            still_compacted.insert(*name);
        }
    }
    sites_expand(connection, &names(expanding)?).await?;
    let expanded = open.iter().filter(|(_, site)| !still_compacted.contains(site)).copied().collect();
    Ok((new_hosts, expanded))
}

/// Inserts the sites that are not known and updates the priority of the others; returns the new ones.
pub(crate) async fn sites_put_json(
    connection: &mut Connection,
    sites: &[NewSiteRow<'_>],
    ranking: Ranking,
) -> Outcome<Vec<String>> {
    let batch = json(&sites, "batch of sites")?;
    let new = sqlx::query_scalar(concat!(
        "INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest, compacted_status)
         SELECT name, priority, next_visit_at_ms, ",
        unhex!("packed"),
        ", 0, 'pending' FROM ",
        batch!(name TEXT, priority INTEGER, next_visit_at_ms BIGINT, packed TEXT),
        " WHERE true
         ON CONFLICT (name) DO NOTHING
         RETURNING name"
    ))
    .bind(&batch)
    .fetch_all(&mut *connection)
    .await?;
    sqlx::query(concat!(
        "UPDATE site SET priority = batch.priority FROM ",
        batch!(name TEXT, priority INTEGER),
        " WHERE site.name = batch.name AND ",
        priority_changes!("batch", "$2")
    ))
    .bind(&batch)
    .bind(ranking.follows_from())
    .execute(&mut *connection)
    .await?;
    Ok(new)
}

#[derive(Serialize)]
struct SeededHost<'a> {
    host: &'a str,
    site: &'a str,
    seeded: i32,
}

/// Inserts hosts and raises the origin of known ones. Returns the hosts that are new or were not seeded before.
async fn hosts_insert(connection: &mut Connection, open: &[SiteSeed<'_>]) -> Outcome<HashSet<String>> {
    let mut rows: BTreeMap<&str, SeededHost<'_>> = BTreeMap::new();
    for (seed, site) in open {
        let host = seed.host.as_str();
        let row = rows.entry(host).or_insert(SeededHost { host, site, seeded: HostOrigin::Met.code() });
        row.seeded = NamedBy::of(seed).origin().code().max(row.seeded);
    }
    let batch = json(&rows.into_values().collect::<Vec<_>>(), "batch of hosts")?;
    let mut new_hosts = HashSet::new();
    for statement in [
        concat!(
            "UPDATE host SET seeded = 1 WHERE seeded = 0 AND host IN (SELECT batch.host FROM ",
            batch!(host TEXT),
            ") RETURNING host"
        ),
        concat!(
            "INSERT INTO host (host, site, seeded) SELECT host, site, seeded FROM ",
            batch!(host TEXT, site TEXT, seeded INTEGER),
            " WHERE true ON CONFLICT (host) DO NOTHING RETURNING host"
        ),
    ] {
        let rows: Vec<String> =
            sqlx::query_scalar(statement).bind(&batch).fetch_all(&mut *connection).await?;
        new_hosts.extend(rows);
    }
    // these hosts do not count as new, so a list that names a known host does not make a visit due
    sqlx::query(concat!(
        "UPDATE host SET seeded = batch.seeded FROM ",
        batch!(host TEXT, seeded INTEGER),
        " WHERE host.host = batch.host AND batch.seeded >= 2 AND host.seeded < batch.seeded"
    ))
    .bind(&batch)
    .execute(&mut *connection)
    .await?;
    Ok(new_hosts)
}

#[derive(Serialize)]
struct HintRow<'a> {
    id: String,
    site: &'a str,
    url: &'a str,
    discovery: &'a str,
    linked_from: Option<&'a str>,
}

/// Inserts seeded and linked URLs as resources without an outcome; returns the ids of the new ones.
async fn hints_insert(connection: &mut Connection, open: &[SiteSeed<'_>]) -> Outcome<HashSet<String>> {
    let mut rows = BTreeMap::new();
    for (seed, site) in open {
        let Some(url) = &seed.url else { continue };
        let (discovery, linked_from) = match &seed.origin {
            SeedOrigin::Linked { from } => (Discovery::CatalogEntry, Some(from.as_str())),
            SeedOrigin::File => (Discovery::Listed, None),
            SeedOrigin::Collected | SeedOrigin::Submitted => (Discovery::Submitted, None),
        };
        let id = ManifestId::of(url).as_str().to_owned();
        let (url, discovery) = (url.as_str(), discovery.as_str());
        rows.entry(id.clone()).or_insert(HintRow { id, site, url, discovery, linked_from });
    }
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let inserted = sqlx::query_scalar(concat!(
        "INSERT INTO resource (id, site, url, discovery, linked_from)
         SELECT id, site, url, discovery, linked_from FROM ",
        batch!(id TEXT, site TEXT, url TEXT, discovery TEXT, linked_from TEXT),
        " WHERE true
         ON CONFLICT (id) DO NOTHING
         RETURNING id"
    ))
    .bind(json(&rows.into_values().collect::<Vec<_>>(), "batch of hints")?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(inserted.into_iter().collect())
}

async fn due_once_a_day(connection: &mut Connection, sites: &str, now_ms: i64) -> Outcome<()> {
    let hinted: Vec<String> = sqlx::query_scalar(concat!(
        "UPDATE site_state SET hinted_at_ms = $2 WHERE name IN ",
        list!(),
        " AND (hinted_at_ms IS NULL OR hinted_at_ms <= $3) RETURNING name"
    ))
    .bind(sites)
    .bind(now_ms)
    .bind(now_ms - HINT_INTERVAL.num_milliseconds())
    .fetch_all(&mut *connection)
    .await?;
    due_now(connection, &names(hinted.iter().map(String::as_str))?, now_ms).await
}

/// Moves visits forward, never back; blocked sites stay blocked.
async fn due_now(connection: &mut Connection, sites: &str, now_ms: i64) -> Outcome<()> {
    sqlx::query(concat!(
        "UPDATE site SET next_visit_at_ms = $2 WHERE name IN ",
        list!(),
        " AND next_visit_at_ms > $2 AND next_visit_at_ms < $3"
    ))
    .bind(sites)
    .bind(now_ms)
    .bind(NEVER_MS)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The reason of a visit that was requested.
const REQUESTED: &str = "a visit was requested";

/// Stores that the owner requests the next visit of a site: if one is in progress, the one after it.
pub(crate) async fn visit_request_of_owner(
    connection: &mut Connection,
    site: &str,
    now_ms: i64,
) -> Outcome<()> {
    sites_expand(connection, &names([site])?).await?;
    sqlx::query(
        "UPDATE site_state SET next_visit_reason = CASE
             WHEN parked_progress IS NOT NULL
               OR EXISTS (SELECT 1 FROM site WHERE site.name = site_state.name AND lease_until_ms > $2) THEN $4
             ELSE $3 END
         WHERE name = $1",
    )
    .bind(site)
    .bind(now_ms)
    .bind(OWNER_REQUESTED)
    .bind(OWNER_REQUESTED_NEXT)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Makes sites due at a time that may be later than now. A site that is being visited, or whose visit was interrupted, is visited again
/// afterwards: when the lease ends or the visit is resumed, the changed time shows that a visit was requested. An overdue interrupted visit
/// must keep its position in the queue, so its time changes by only one millisecond.
async fn request_visits(
    connection: &mut Connection,
    sites: &str,
    (now_ms, due_at_ms): (i64, i64),
) -> Outcome<()> {
    let requested: Vec<String> = sqlx::query_scalar(concat!(
        "UPDATE site SET next_visit_at_ms = CASE WHEN next_visit_at_ms <= $2 AND lease_until_ms <= $2
                                                 THEN next_visit_at_ms - 1 ELSE $4 END
         WHERE name IN ",
        list!(),
        " AND next_visit_at_ms < $3
          AND (next_visit_at_ms > $4 OR lease_until_ms > $2
            OR EXISTS (SELECT 1 FROM site_state WHERE site_state.name = site.name AND parked_progress IS NOT NULL))
         RETURNING name"
    ))
    .bind(sites)
    .bind(now_ms)
    .bind(NEVER_MS)
    .bind(due_at_ms)
    .fetch_all(&mut *connection)
    .await?;
    // an interrupted visit continues first
    sqlx::query(concat!(
        "UPDATE site_state SET next_visit_reason = $2
         WHERE parked_progress IS NULL AND COALESCE(next_visit_reason, '') NOT IN ($3, $4) AND name IN ",
        list!()
    ))
    .bind(names(requested.iter().map(String::as_str))?)
    .bind(REQUESTED)
    .bind(OWNER_REQUESTED)
    .bind(OWNER_REQUESTED_NEXT)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Makes sites due that were last visited before a time; parked visits and blocked sites do not change.
pub(crate) async fn sites_revisit(
    connection: &mut Connection,
    visited_before_ms: i64,
    now_ms: i64,
) -> Outcome<u64> {
    let mut due = 0;
    for statement in [
        "UPDATE site SET next_visit_at_ms = $2
         WHERE next_visit_at_ms > $2 AND next_visit_at_ms < $3
           AND name IN (SELECT name FROM site_state WHERE last_visit_at_ms <= $1 AND parked_until_ms IS NULL)",
        "UPDATE site SET next_visit_at_ms = $2
         WHERE next_visit_at_ms > $2 AND next_visit_at_ms < $3 AND compacted_last_visit_at_ms <= $1",
    ] {
        let updated = sqlx::query(statement).bind(visited_before_ms).bind(now_ms).bind(NEVER_MS);
        due += updated.execute(&mut *connection).await?.rows_affected();
    }
    Ok(due)
}
