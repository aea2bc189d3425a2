//! Saves visits. The transaction first ends their leases, so nothing is written for a visit whose lease was lost.
//!
//! Visits that end at the same time share one transaction, and each statement writes the rows of all of them, because round trip and
//! planning cost more than rows.

use std::collections::{BTreeMap, HashMap};

use manifest::declaration::Before;
use manifest::{Host, ManifestId};

use super::claim::claim_save;
use super::compaction::sites_expand;
use super::declaration::{declarations_before, declarations_regroup, statements_add};
use super::host::hosts_bound;
use super::lease::LeaseEnd;
use super::manifest::manifests_name;
use super::resource::{
    KnownResource, part_save, resources_forget, resources_known, resources_save, resources_unlink,
};
use super::state::{dead_hosts_remove, host_origins, robots_save};
use super::version::{
    bytes_in_index, index_count, manifest_remove, manifests_known, readings_confirm, version_add,
    version_touch,
};
use super::visit_save::{
    HeldVisit, VISITS_KEPT, visit_hosts_save, visit_robots_save, visit_states_save, visits_expand,
    visits_insert, visits_trim,
};
use super::{Connection, feed, lease, link, retention, seed};
use crate::StoreError;
use crate::convert::{RowRef, log_damaged, millis, names, to_u32};
use crate::fault::Outcome;
use crate::known::Known;
use crate::model::seed::Ranking;
use crate::model::{FeedChange, HostOrigin, LeaseToken, VisitSaved};
use crate::plan;
use crate::prepare::{self, VisitWrite};
use crate::rows::{HostRow, RobotsRow};

/// Stored bytes of a visit's new versions above which the old versions of its site are checked.
const UNCHECKED_BYTES_MAX: usize = 256 * 1024;
/// If a visit fetched more robots.txt files than this, the hosts of its site are counted, because the visit may have discovered new ones.
const UNCHECKED_HOSTS_MAX: usize = 4;
/// The old versions of a site are checked at least once in this many visits.
const VISITS_PER_CHECK: i32 = 64;

/// Saves the visits whose leases are held. For each other visit, returns the reason why it was not saved.
pub(crate) async fn visits_save(
    connection: &mut Connection,
    visits: &[VisitWrite<'_>],
    is_disk_nearly_full: bool,
) -> Outcome<Vec<Result<VisitSaved, StoreError>>> {
    let mut held = visits_hold(connection, visits, is_disk_nearly_full).await?;
    visit_hosts_save(connection, &held).await?;
    visit_robots_save(connection, &held).await?;
    for held in held.values_mut() {
        let site = &held.write.visit.site;
        let before = match &held.plan.regroups {
            Some(_) => declarations_before(connection, site).await?,
            None => Before::default(),
        };
        plan_apply(connection, held).await?;
        if let Some(naming) = &held.plan.regroups {
            statements_add(connection, held.plan.manifests_indexed()).await?;
            let at = held.write.visit.ended_at;
            let changes = declarations_regroup(connection, site, (&before, naming), at).await?;
            feed::feed_append(connection, site, &changes).await?;
        }
        if held.plan.regroups.is_some() || !held.plan.changes.is_empty() {
            held.index_counts = Some(index_count(connection, site).await?);
        }
    }
    let states = visit_states_save(connection, &held).await?;
    visits_insert(connection, &held).await?;
    visits_expand(connection, &held).await?;
    let first: Vec<&str> =
        states.iter().filter(|(_, (visits, _))| *visits == 1).map(|(site, _)| site.as_str()).collect();
    if !first.is_empty() {
        link::links_close(connection, &names(first)?).await?;
    }
    let mut links_refused = HashMap::new();
    for held in held.values() {
        let visit = held.write.visit;
        let site = visit.site.as_str();
        if let Some(claim) = &visit.claim {
            claim_save(connection, site, claim).await?;
        }
        if visit.robots.len() > UNCHECKED_HOSTS_MAX {
            hosts_bound(connection, site, millis(visit.ended_at)).await?;
        }
        dead_hosts_remove(connection, visit).await?;
        if states.get(site).is_some_and(|(visits, _)| i64::from(*visits) > VISITS_KEPT) {
            visits_trim(connection, visit).await?;
        }
        let is_large = held.new_bytes() > UNCHECKED_BYTES_MAX;
        if is_large || states.get(site).is_some_and(|(visits, _)| visits % VISITS_PER_CHECK == 0) {
            retention::versions_bound(connection, site).await?;
        }
        if !visit.new_seeds.is_empty() {
            let now_ms = millis(visit.ended_at);
            let times = (now_ms, now_ms);
            let added = seed::seeds_add(connection, &visit.new_seeds, Ranking::Raise, times).await?;
            links_refused.insert(site, added.refused);
        }
    }
    let mut saved = Vec::with_capacity(visits.len());
    for write in visits {
        let site = write.token.site.as_str();
        saved.push(match held.get(site).filter(|held| std::ptr::eq(held.write, write)) {
            Some(held) => Ok(VisitSaved {
                manifests_added: held.plan.count(FeedChange::Added),
                manifests_changed: held.plan.count(FeedChange::Changed),
                manifests_removed: held.plan.count(FeedChange::Removed),
                capabilities: to_u32(states.get(site).map_or(0, |(_, capabilities)| *capabilities)),
                links_refused: links_refused.get(site).copied().unwrap_or_default(),
            }),
            None => Err(lease::lease_lost(connection, write.token).await?),
        });
    }
    Ok(saved)
}

/// Ends a lease after requests that were not a visit. Their clocks have expanded the site.
pub(crate) async fn standalone_end(
    connection: &mut Connection,
    token: &LeaseToken,
    robots: &[(String, RobotsRow)],
) -> Outcome<()> {
    lease::lease_end(connection, token, None).await?;
    if robots.is_empty() {
        return Ok(());
    }
    let site = token.site.as_str();
    sites_expand(connection, &names([site])?).await?;
    let rows = robots.iter().map(|(host, robots)| (host.as_str(), (site, robots)));
    robots_save(connection, &rows.collect()).await
}

/// Ends the leases and plans the changes of each visit; visits whose leases were lost are omitted. Sorted by site, the order in which every
/// transaction locks rows.
async fn visits_hold<'a>(
    connection: &mut Connection,
    visits: &'a [VisitWrite<'a>],
    is_disk_nearly_full: bool,
) -> Outcome<BTreeMap<&'a str, HeldVisit<'a>>> {
    let end = |write: &'a VisitWrite<'a>| {
        let checked_at = write.visit.claim.as_ref().and_then(|claim| claim.checked_at);
        LeaseEnd {
            token: write.token,
            next_visit_at_ms: millis(write.visit.next_visit.at),
            claim_known_at_ms: millis(checked_at.unwrap_or(write.visit.started_at)),
        }
    };
    let mut ends: Vec<LeaseEnd<'_>> = visits.iter().map(end).collect();
    ends.sort_unstable_by_key(|end| (end.token.site.as_str(), end.token.fence));
    let mut ended = lease::leases_close(connection, &ends).await?;
    let expanded = ended.values().filter(|row| row.compacted.packed.is_none());
    let mut known = known_load(connection, expanded.map(|row| row.name.as_str()).collect()).await?;
    known_hosts_load(connection, visits, &mut known).await?;
    known_bytes_load(connection, visits, &mut known).await?;
    let mut held: BTreeMap<&str, HeldVisit<'_>> = BTreeMap::new();
    for write in visits {
        let site = write.token.site.as_str();
        if ended.get(site).is_none_or(|row| row.fence != write.token.fence) {
            continue;
        }
        // If there are two visits under one lease, the first is saved.
        let Some(row) = ended.remove(site) else { continue };
        let compacted = row.decode()?;
        let mut known = known.remove(site).unwrap_or_default();
        known.is_disk_nearly_full = is_disk_nearly_full;
        let hosts = compacted.iter().flat_map(|site| &site.hosts);
        known.hosts.extend(hosts.filter_map(|HostRow { host, seeded, .. }| host_origin(host, *seeded)));
        let stored_bytes = |id: &ManifestId| write.prepared.stored_bytes(id);
        let plan = plan::plan(write.visit, &known, &stored_bytes)?;
        let reports =
            (!plan.refused.is_empty()).then(|| prepare::reports(write.visit, &plan.refused)).transpose()?;
        held.insert(site, HeldVisit { write, compacted, index_counts: None, plan, reports });
    }
    Ok(held)
}

/// Stored rows of the sites; most sites have only their state.
async fn known_load(connection: &mut Connection, sites: Vec<&str>) -> Outcome<HashMap<String, Known>> {
    let mut known: HashMap<String, Known> = HashMap::new();
    for (site, row) in resources_known(connection, &sites).await? {
        let of_site = known.entry(site).or_default();
        match KnownResource::try_from(row?)? {
            KnownResource::Fetched(resource) => {
                of_site.resources.insert(ManifestId::of(&resource.url), *resource);
            }
            KnownResource::Hint(hint, misses_in_row) => {
                of_site.hints.insert(ManifestId::of(&hint.url), misses_in_row);
            }
        }
    }
    // Every manifest has a resource, so sites without resources have no manifests.
    for (site, known) in &mut known {
        known.manifests = manifests_known(connection, site).await?;
    }
    Ok(known)
}

/// Adds the hosts of the sites that have manifests, or whose visits found one.
async fn known_hosts_load(
    connection: &mut Connection,
    visits: &[VisitWrite<'_>],
    known: &mut HashMap<String, Known>,
) -> Outcome<()> {
    let is_wanted = |write: &&VisitWrite<'_>| {
        let of_site = known.get(write.token.site.as_str());
        write.visit.fetches.iter().any(|fetch| fetch.manifest.is_some())
            || of_site.is_some_and(|known| !known.manifests.is_empty())
    };
    let wanted: Vec<&str> = visits.iter().filter(is_wanted).map(|write| write.token.site.as_str()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    for (site, host, seeded) in host_origins(connection, &names(wanted)?).await? {
        known.entry(site).or_default().hosts.extend(host_origin(&host, seeded));
    }
    Ok(())
}

/// Adds the stored bytes of the sites whose visits read a document.
async fn known_bytes_load(
    connection: &mut Connection,
    visits: &[VisitWrite<'_>],
    known: &mut HashMap<String, Known>,
) -> Outcome<()> {
    for write in visits {
        let has_read =
            write.visit.fetches.iter().any(|fetch| fetch.body.is_some() || fetch.manifest.is_some());
        if let Some(of_site) = known.get_mut(write.token.site.as_str()).filter(|_| has_read) {
            of_site.bytes = bytes_in_index(connection, &write.token.site).await?;
        }
    }
    Ok(())
}

/// A damaged row counts as absent.
fn host_origin(host: &str, seeded: i32) -> Option<(Host, HostOrigin)> {
    let parsed = log_damaged(RowRef::new("host", host).parse("host", host))?;
    Some((parsed, HostOrigin::of_code(seeded)))
}

async fn plan_apply(connection: &mut Connection, held: &HeldVisit<'_>) -> Outcome<()> {
    let (visit, prepared, plan) = (held.write.visit, &held.write.prepared, &held.plan);
    resources_save(connection, visit.site.as_str(), &plan.resources).await?;
    resources_unlink(connection, &plan.unlinked).await?;
    resources_forget(connection, &plan.forgotten).await?;
    for part in &plan.parts {
        part_save(connection, part, prepared.document(&part.id)).await?;
    }
    for new in &plan.versions {
        version_add(connection, &visit.site, new, prepared).await?;
    }
    for touch in &plan.touches {
        version_touch(connection, &visit.site, touch, prepared).await?;
    }
    readings_confirm(connection, &plan.readings).await?;
    manifests_name(connection, &plan.named).await?;
    for (id, status) in &plan.removals {
        manifest_remove(connection, id, *status, millis(visit.ended_at)).await?;
    }
    feed::feed_append(connection, &visit.site, &plan.changes).await
}
