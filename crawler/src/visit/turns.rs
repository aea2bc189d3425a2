//! Which of many hosts and known documents are next: no number of them keeps the others from their turn.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Host, ManifestUrl};
use policy::{FetchOutcome, Seed, take_turns};
use store::{ResourceState, SiteState};

use super::WAIT_OF_EARLIER_VISIT_MAX;
use super::known_documents::is_retry;
use super::own_hosts::OwnHosts;

/// Documents that may yield nothing have the rest of each limit, and at least this part of it in addition. In visits that mix them with
/// the others, one of them is requested for each `PART_OF_UNSURE - 1` others.
const PART_OF_UNSURE: usize = 8;

/// The hosts of this visit. Names below a domain cost their owner nothing, so there may be any number of them; each visit
/// looks at the next ones.
pub(super) fn in_turn<T: Clone>(items: Vec<T>, max: usize, visits: u32) -> impl Iterator<Item = T> {
    in_turn_by(items, max, max, visits)
}

/// Up to `max` items. Each visit begins `step` items later, or a few more if their number and `step` have a common divisor, so that each
/// item is first in one of as many visits as there are items.
pub(super) fn in_turn_by<T: Clone>(
    items: Vec<T>,
    step: usize,
    max: usize,
    visits: u32,
) -> impl Iterator<Item = T> {
    let count = items.len();
    let stride =
        (step..=step.saturating_add(count)).find(|stride| are_coprime(*stride, count)).unwrap_or(step);
    let turn = usize::try_from(visits).unwrap_or_default().saturating_mul(stride);
    let first = turn.checked_rem(count).unwrap_or_default();
    items.into_iter().cycle().skip(first).take(count.min(max))
}

/// Whether two numbers have no common divisor but 1 (Euclid).
const fn are_coprime(mut a: usize, mut b: usize) -> bool {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

/// Merges lists: as many items of each in turn as it says.
pub(super) fn in_shares<T, const N: usize>(lists: [(usize, Vec<T>); N]) -> Vec<T> {
    let mut lists = lists.map(|(share, list)| (share, list.into_iter()));
    let mut merged = Vec::new();
    while lists.iter().any(|(_, list)| list.len() > 0) {
        for (share, list) in &mut lists {
            merged.extend(list.take(*share));
        }
    }
    merged
}

/// A known document, and whose turn it takes.
pub(super) type Owned<'a> = (Seed, &'a ResourceState);

/// How many known documents of a list a visit requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max: usize,
    pub(super) of_one_owner: usize,
    /// At one host that is not the site's own.
    pub(super) at_one_host: usize,
}

impl Limits {
    /// Limits on the number of all documents only, for lists without owners.
    pub(super) const fn of_all(max: usize) -> Self {
        Self { max, of_one_owner: usize::MAX, at_one_host: usize::MAX }
    }
}

/// Known documents in order.
#[derive(Debug)]
pub(super) struct Chosen<T> {
    /// Those in the index whose last request did not fail.
    pub(super) sure: Vec<T>,
    /// Those that may yield nothing: they never had a manifest, their last request failed, or their host asked for a delay that is not over.
    pub(super) unsure: Vec<T>,
}

/// The order in which a visit chooses and requests known documents. Every second visit continues where the last ones ended: the document
/// that was requested longest ago is first, whoever named it, so that the waiting time depends only on the number of documents. In the
/// other visits the owners take turns in a random order, so that an owner with many documents leaves time for the others. Documents in the
/// index come before URLs that may yield nothing. In every second visit and in every eighth visit, one such URL is requested for every
/// seven documents, in half of the visits by age before these seven; in the other visits, all of them come last. So failures, however many,
/// never take the turn of a manifest, and links that were left for a later visit are requested in the end.
pub(super) struct Turns<'a> {
    pub(super) site: &'a SiteState,
    pub(super) own_hosts: &'a OwnHosts,
    now: DateTime<Utc>,
    delayed: HashSet<&'a Host>,
}

/// How many documents were chosen.
#[derive(Default)]
struct Taken {
    of_owner: HashMap<Seed, usize>,
    at_host: HashMap<Host, usize>,
}

impl<'a> Turns<'a> {
    pub(super) fn of(site: &'a SiteState, own_hosts: &'a OwnHosts, now: DateTime<Utc>) -> Self {
        let is_delayed = |at: DateTime<Utc>| at - now > WAIT_OF_EARLIER_VISIT_MAX;
        let delayed = site
            .hosts
            .iter()
            .filter(|state| state.next_ok_at.is_some_and(is_delayed) && !own_hosts.contains(&state.host));
        Self { site, own_hosts, now, delayed: delayed.map(|state| &state.host).collect() }
    }

    /// Whose turn it is in this visit.
    pub(super) fn owner(&self, name: &str) -> Seed {
        Seed::of(name).with_counter(self.site.visits.into())
    }

    /// The documents of this visit.
    pub(super) fn next(&self, documents: Vec<Owned<'a>>, limits: Limits) -> Chosen<&'a ResourceState> {
        self.chosen(documents, limits, |known| self.is_sure(known))
    }

    fn chosen(
        &self,
        documents: Vec<Owned<'a>>,
        limits: Limits,
        is_sure: impl Fn(&ResourceState) -> bool,
    ) -> Chosen<&'a ResourceState> {
        let (sure, unsure): (Vec<Owned<'a>>, Vec<Owned<'a>>) =
            documents.into_iter().partition(|(_, known)| is_sure(known));
        let (sure, taken) = self.within(sure, limits, &Taken::default());
        let (unsure, _) = self.within(unsure, Limits { max: left(limits.max, sure.len()), ..limits }, &taken);
        Chosen { sure, unsure }
    }

    /// The same for documents that the site names, which have no owner, in one list.
    pub(super) fn next_of_all(
        &self,
        documents: Vec<&'a ResourceState>,
        max: usize,
    ) -> Vec<&'a ResourceState> {
        self.merged(self.of_all(documents, max))
    }

    /// The same in two lists. In the visits by age, links that no visit reached count as sure: otherwise a site with more documents than a
    /// visit has requests would be read only a few links at a time.
    pub(super) fn of_all(&self, documents: Vec<&'a ResourceState>, max: usize) -> Chosen<&'a ResourceState> {
        let owner = self.owner("");
        let documents = documents.into_iter().map(|known| (owner, known)).collect();
        self.chosen(documents, Limits::of_all(max), |known| {
            let is_left = || self.is_by_age() && known.outcome == FetchOutcome::NotReached;
            self.is_sure(known) || is_left() && !self.is_delayed(known)
        })
    }

    /// What was chosen in the order of this visit.
    pub(super) fn merged<T>(&self, chosen: Chosen<T>) -> Vec<T> {
        let Chosen { mut sure, unsure } = chosen;
        match self.site.visits % 8 {
            // what is in the index may use up the time or the memory of each visit; what failed or is gone has its place in the eighth
            1 | 5 => in_shares([(1, unsure), (PART_OF_UNSURE - 1, sure)]),
            0 | 3 | 7 => in_shares([(PART_OF_UNSURE - 1, sure), (1, unsure)]),
            _ => {
                sure.extend(unsure);
                sure
            }
        }
    }

    const fn is_by_age(&self) -> bool {
        !self.site.visits.is_multiple_of(2)
    }

    fn is_sure(&self, known: &ResourceState) -> bool {
        known.manifest_id.is_some() && !is_retry(self.site, known) && !self.is_delayed(known)
    }

    fn is_delayed(&self, known: &ResourceState) -> bool {
        !self.delayed.is_empty() && self.delayed.contains(&known.url.host())
    }

    /// The first of some documents within the limits, after those that were chosen `before`.
    fn within(
        &self,
        documents: Vec<Owned<'a>>,
        limits: Limits,
        before: &Taken,
    ) -> (Vec<&'a ResourceState>, Taken) {
        let mut taken = Taken::default();
        let has_room = |(owner, known): &Owned<'a>| {
            let host = known.url.host();
            let is_limited = limits.at_one_host < usize::MAX && !self.own_hosts.contains(&host);
            let of_owner = taken.of_owner.entry(*owner).or_default();
            let at_host = taken.at_host.entry(host.clone()).or_default();
            let before_of_owner = before.of_owner.get(owner).copied().unwrap_or_default();
            let before_at_host = before.at_host.get(&host).copied().unwrap_or_default();
            let has_room = *of_owner < left(limits.of_one_owner, before_of_owner)
                && (!is_limited || *at_host < left(limits.at_one_host, before_at_host));
            if has_room {
                *of_owner += 1;
                *at_host += 1;
            }
            has_room
        };
        let chosen = self.in_order(documents).into_iter().filter(has_room).take(limits.max);
        let chosen = chosen.map(|(_, known)| known).collect();
        (chosen, taken)
    }

    fn in_order(&self, mut documents: Vec<Owned<'a>>) -> Vec<Owned<'a>> {
        documents.sort_by_cached_key(|(_, known)| self.place_of(known));
        if self.is_by_age() {
            return documents;
        }
        take_turns(documents.into_iter().map(|(owner, known)| (owner, (owner, known))))
    }

    fn place_of(&self, known: &ResourceState) -> (bool, i64, ManifestUrl) {
        let is_fresh = known.fresh_until.is_some_and(|until| self.now < until);
        let place = if self.is_by_age() {
            known.fetched_at.timestamp_millis()
        } else {
            let chance = Seed::of(known.url.as_str()).with_counter(self.site.visits.into());
            i64::try_from(chance.below(u64::MAX >> 1)).unwrap_or_default()
        };
        (is_fresh, place, known.url.clone())
    }
}

/// What is left of a limit for what may yield nothing.
const fn left(max: usize, taken: usize) -> usize {
    let (left, least) = (max.saturating_sub(taken), max / PART_OF_UNSURE);
    if left > least { left } else { least }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
