//! Determines which of many hosts and known documents are next, so that each gets a turn, however many there are.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Host, ManifestUrl};
use policy::{FetchOutcome, Seed, take_turns};
use store::{ResourceState, SiteState};

use super::WAIT_OF_EARLIER_VISIT_MAX;
use super::known_documents::is_retry;
use super::own_hosts::OwnHosts;

/// The inverse of the share of documents that may yield nothing. They get what the other documents leave of each limit, but at least this
/// share in addition to the limit. In visits that mix them with the others, one of them is requested for every `PART_OF_UNSURE - 1` others.
const PART_OF_UNSURE: usize = 8;

/// The items of this visit. There may be any number of hosts, because names below a domain cost its owner nothing, so each visit uses the
/// next ones.
pub(super) fn in_turn<T: Clone>(items: Vec<T>, max: usize, visits: u32) -> impl Iterator<Item = T> {
    in_turn_by(items, max, max, visits)
}

/// Up to `max` items. Each visit begins `step` items later, or slightly more if the number of items and `step` have a common divisor. So
/// within as many visits as there are items, each item is first once.
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

/// Merges lists in turns. Each turn takes as many items of each list as its share says.
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

/// A known document, and the seed of the owner whose turns it takes.
pub(super) type Owned<'a> = (Seed, &'a ResourceState);

/// Limits on the known documents of a list that a visit requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max: usize,
    pub(super) of_one_owner: usize,
    /// Maximum number at one host that is not the site's own.
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
    /// Documents in the index whose last request did not fail.
    pub(super) sure: Vec<T>,
    /// Documents that may yield nothing: they never contained a manifest, their last request failed, or their host asked for a delay that
    /// is not over.
    pub(super) unsure: Vec<T>,
}

/// The order in which a visit chooses and requests known documents. Every second visit requests the document first that was requested
/// longest ago, whoever named it, so that the waiting time depends only on the number of documents. In the other visits, the owners take
/// turns in a random order, so that an owner with many documents does not use up the time of the others. Documents in the index come before
/// URLs that may yield nothing. In every second visit and in every eighth visit, one such URL is requested for every seven documents. In
/// half of the visits by age, it comes before these seven documents. In the other visits, all such URLs come last. So any number of
/// failures does not displace a manifest, and links that were left for a later visit are requested eventually.
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

    /// The seed of an owner, which determines the order of turns in this visit.
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

    /// The next documents that the site itself names, which have no owner, in one list.
    pub(super) fn next_of_all(
        &self,
        documents: Vec<&'a ResourceState>,
        max: usize,
    ) -> Vec<&'a ResourceState> {
        self.merged(self.of_all(documents, max))
    }

    /// The next documents that the site itself names, in two lists. In the visits by age, links that no visit has reached count as sure.
    /// Otherwise a site with more documents than a visit may request would be read only a few links at a time.
    pub(super) fn of_all(&self, documents: Vec<&'a ResourceState>, max: usize) -> Chosen<&'a ResourceState> {
        let owner = self.owner("");
        let documents = documents.into_iter().map(|known| (owner, known)).collect();
        self.chosen(documents, Limits::of_all(max), |known| {
            let is_left = || self.is_by_age() && known.outcome == FetchOutcome::NotReached;
            self.is_sure(known) || is_left() && !self.is_delayed(known)
        })
    }

    /// The chosen documents in the order of this visit.
    pub(super) fn merged<T>(&self, chosen: Chosen<T>) -> Vec<T> {
        let Chosen { mut sure, unsure } = chosen;
        match self.site.visits % 8 {
            // indexed documents may use up the time or the memory of every visit, so every eighth visit also requests documents that failed
            // or are gone
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

    /// The first of these documents within the limits, counting those that were chosen `before`.
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
        documents.sort_by_cached_key(|(_, known)| self.sort_key_of(known));
        if self.is_by_age() {
            return documents;
        }
        take_turns(documents.into_iter().map(|(owner, known)| (owner, (owner, known))))
    }

    fn sort_key_of(&self, known: &ResourceState) -> (bool, i64, ManifestUrl) {
        let is_fresh = known.fresh_until.is_some_and(|until| self.now < until);
        let order = if self.is_by_age() {
            known.fetched_at.timestamp_millis()
        } else {
            let chance = Seed::of(known.url.as_str()).with_counter(self.site.visits.into());
            i64::try_from(chance.below(u64::MAX >> 1)).unwrap_or_default()
        };
        (is_fresh, order, known.url.clone())
    }
}

/// The rest of a limit for documents that may yield nothing: at least an eighth of the limit.
const fn left(max: usize, taken: usize) -> usize {
    let (left, least) = (max.saturating_sub(taken), max / PART_OF_UNSURE);
    if left > least { left } else { least }
}

#[cfg(test)]
#[path = "turns_tests.rs"]
mod tests;
