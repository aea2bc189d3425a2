//! Visits are saved in one transaction that begins by giving their leases back: whoever lost one writes nothing.
//!
//! Several visits take one transaction where they end together. Each statement then carries the rows of all of them, since
//! a statement's way to the server and its planning cost more than its rows.

use std::collections::{BTreeMap, HashMap};

use manifest::ManifestId;

use super::resource::{Known as KnownResource, part_keep, resources_known, resources_save};
use super::version::{InIndex, index_count, manifest_remove, manifests_known, version_add, version_touch};
use super::visit_rows::{
    Verdict, hosts_save, robots_put, robots_save, sites_unpack, states_save, visits_insert, visits_trim,
};
use super::{Connection, block, feed, lease, link, rest, retention, seed};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::seed::Ranking;
use crate::model::{FeedChange, LeaseToken, RobotsRecord, VisitSaved};
use crate::pack::{counted, millis, names};
use crate::packed::Saving;
use crate::plan::{self, Known, Plan};
use crate::rest::SiteAtRest;

/// Visits of a site that are kept; older ones are dropped when a new one is saved.
pub(crate) const VISITS_KEPT: i64 = 50;

/// Stored bytes of the new versions of a visit above which the old versions of its site are looked at, and the number of
/// visits after which they are looked at in any case.
const NEW_BYTES_MAX: usize = 256 * 1024;
const VISITS_PER_LOOK: i32 = 64;

/// A visit whose lease was held until now, and what it changes.
pub(crate) struct Held<'a> {
    pub(crate) saving: &'a Saving<'a>,
    /// What the site was while nobody visited it, where it had but one row.
    pub(crate) at_rest: Option<SiteAtRest>,
    pub(crate) in_index: Option<InIndex>,
    plan: Plan<'a>,
}

impl Held<'_> {
    /// What the new versions of the visit take as they are stored.
    fn new_bytes(&self) -> usize {
        self.plan.versions.iter().map(|new| self.saving.packed.stored_bytes(&new.manifest.id)).sum()
    }
}

/// Saves visits whole, those whose leases are still held; the others get their reason.
pub(crate) async fn visits_save(
    connection: &mut Connection,
    visits: &[Saving<'_>],
) -> Outcome<Vec<Result<VisitSaved, StoreError>>> {
    let mut held = visits_hold(connection, visits).await?;
    hosts_save(connection, &held).await?;
    robots_save(connection, &held).await?;
    for held in held.values_mut() {
        plan_apply(connection, held).await?;
        if !held.plan.changes.is_empty() {
            held.in_index = Some(index_count(connection, &held.saving.visit.site).await?);
        }
    }
    let states = states_save(connection, &held).await?;
    visits_insert(connection, &held).await?;
    sites_unpack(connection, &held).await?;
    let mut links_refused = HashMap::new();
    let first = states.iter().filter(|(_, (visits, _))| *visits == 1).map(|(site, _)| site.as_str());
    let first: Vec<&str> = first.collect();
    if !first.is_empty() {
        link::links_close(connection, &names(first)?).await?;
    }
    for held in held.values() {
        let visit = held.saving.visit;
        let site = visit.site.as_str();
        if states.get(site).is_some_and(|(visits, _)| i64::from(*visits) > VISITS_KEPT) {
            visits_trim(connection, visit).await?;
        }
        let is_large = held.new_bytes() > NEW_BYTES_MAX;
        if is_large || states.get(site).is_some_and(|(visits, _)| visits % VISITS_PER_LOOK == 0) {
            retention::versions_bound(connection, site).await?;
        }
        if !visit.new_seeds.is_empty() {
            let added =
                seed::seeds_add(connection, &visit.new_seeds, Ranking::Raise, millis(visit.ended_at)).await?;
            links_refused.insert(site, added.refused);
        }
    }
    let mut saved = Vec::with_capacity(visits.len());
    for saving in visits {
        let site = saving.token.site.as_str();
        saved.push(match held.get(site).filter(|held| std::ptr::eq(held.saving, saving)) {
            Some(held) => Ok(VisitSaved {
                manifests_added: held.plan.count(FeedChange::Added),
                manifests_changed: held.plan.count(FeedChange::Changed),
                manifests_removed: held.plan.count(FeedChange::Removed),
                capabilities: counted(states.get(site).map_or(0, |(_, capabilities)| *capabilities)),
                links_refused: links_refused.get(site).copied().unwrap_or_default(),
            }),
            None => Err(reason_lost(connection, saving.token).await?),
        });
    }
    Ok(saved)
}

/// Gives a lease back after requests that were no visit. Their clocks have woken the site, which has rows by now.
pub(crate) async fn standalone_end(
    connection: &mut Connection,
    token: &LeaseToken,
    robots: &[RobotsRecord],
    bodies: &[Option<Vec<u8>>],
) -> Outcome<()> {
    lease::lease_end(connection, token, None).await?;
    if robots.is_empty() {
        return Ok(());
    }
    rest::sites_wake(connection, &names([token.site.as_str()])?).await?;
    let site = token.site.as_str();
    let rows = robots
        .iter()
        .zip(bodies)
        .map(|(record, body)| (record.host.as_str(), (site, Verdict::Read(record, body.as_deref()))));
    robots_put(connection, &rows.collect()).await
}

async fn reason_lost(connection: &mut Connection, token: &LeaseToken) -> Outcome<StoreError> {
    let blocked = block::block_find(connection, token.site.as_str()).await?.is_some();
    let site = token.site.clone();
    Ok(if blocked { StoreError::Blocked { site } } else { StoreError::LeaseLost { site } })
}

/// Ends the leases, and decides what each visit changes; those that were lost meanwhile are left out. By site, which is the
/// order in which everybody locks rows.
async fn visits_hold<'a>(
    connection: &mut Connection,
    visits: &'a [Saving<'a>],
) -> Outcome<BTreeMap<&'a str, Held<'a>>> {
    let mut ends: Vec<(&LeaseToken, i64)> =
        visits.iter().map(|saving| (saving.token, millis(saving.visit.next_visit.at))).collect();
    ends.sort_unstable_by_key(|(token, _)| (token.site.as_str(), token.fence));
    let ended = lease::leases_close(connection, &ends).await?;
    let is_awake = |packed: &Option<Vec<u8>>| packed.as_ref().is_none_or(Vec::is_empty);
    let awake = ended.iter().filter(|(_, (_, packed))| is_awake(packed));
    let mut known = known_load(connection, awake.map(|(name, _)| name.as_str()).collect()).await?;
    let mut held: BTreeMap<&str, Held<'_>> = BTreeMap::new();
    for saving in visits {
        let site = saving.token.site.as_str();
        let Some((_, packed)) = ended.get(site).filter(|(fence, _)| *fence == saving.token.fence) else {
            continue;
        };
        if held.contains_key(site) {
            continue;
        }
        let at_rest = packed.as_ref().filter(|packed| !packed.is_empty());
        let plan = plan::plan(saving.visit, &known.remove(site).unwrap_or_default())?;
        let at_rest = at_rest.map(|packed| SiteAtRest::unpack(site, packed)).transpose()?;
        held.insert(site, Held { saving, at_rest, in_index: None, plan });
    }
    Ok(held)
}

/// What is known of the sites that have rows; most have none but their state.
async fn known_load(connection: &mut Connection, sites: Vec<&str>) -> Outcome<HashMap<String, Known>> {
    let mut known: HashMap<String, Known> = HashMap::new();
    for row in resources_known(connection, &sites).await? {
        let of_site = known.entry(row.site.clone()).or_default();
        match KnownResource::try_from(row)? {
            KnownResource::Fetched(resource) => {
                of_site.resources.insert(ManifestId::of(&resource.url), *resource);
            }
            KnownResource::Hint(hint) => of_site.hints.push(ManifestId::of(&hint.url)),
        }
    }
    // A manifest has a resource, so that nothing is asked about sites without any.
    for (site, known) in &mut known {
        known.manifests = manifests_known(connection, site).await?;
    }
    Ok(known)
}

async fn plan_apply(connection: &mut Connection, held: &Held<'_>) -> Outcome<()> {
    let (visit, packed, plan) = (held.saving.visit, &held.saving.packed, &held.plan);
    resources_save(connection, visit.site.as_str(), &plan.resources).await?;
    for part in &plan.parts {
        part_keep(connection, part, packed.body(&part.id)).await?;
    }
    for new in &plan.versions {
        version_add(connection, &visit.site, new, packed).await?;
    }
    for touch in &plan.touches {
        version_touch(connection, &visit.site, touch, packed).await?;
    }
    for (id, status) in &plan.removals {
        manifest_remove(connection, id, *status, millis(visit.ended_at)).await?;
    }
    feed::feed_append(connection, &visit.site, &plan.changes).await
}
