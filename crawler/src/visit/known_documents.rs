//! Selects the known documents of a site that visits request again, and those that one visit requests.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, is_main_host};
use policy::schedule::HINT_INTERVAL;
use policy::{FetchOutcome, plan};
use store::{ResourceState, SiteState};

use super::own_hosts::OwnHosts;
use super::plan::LINKS_AT_OTHERS_MAX;
use super::room::UrlLimits;
use super::task::{NamedBy, Task, Turn, body_of_path};
use super::turns::{Chosen, Limits, Owned, Turns, in_shares};

/// A resource that was missing this often in a row is requested only if the path table or a new link names it.
const MISSES_MAX: u32 = 3;
/// Maximum number of known documents of one owner ([`OwnHosts::owner_of`]) per visit.
pub(super) const KNOWN_OF_ONE_MAX: usize = 10;
/// Maximum number of known documents in the initial plan of a visit that no visit has requested yet or downloaded in full.
pub(super) const KNOWN_WAITING_MAX: usize = 20;
/// Maximum number of known documents in the initial plan of each visit that are at paths of the path table at the main hosts.
const KNOWN_USUAL_MAX: usize = 20;
/// In every `AGAIN_EVERY`th visit, URLs whose last request failed are requested in their normal order. Documents that are gone are
/// requested again too, because the document that links to them may never change, and so never name them again. Other visits request such
/// URLs last, and the daily budget may end each of these visits before it reaches them.
const AGAIN_EVERY: u32 = 8;
/// Shares of known documents in a turn, by who names them. A daily budget ends each visit to a large site, and no kind of document should
/// be left out in every visit.
const SHARES: [(NamedBy, usize); 3] = [(NamedBy::Document, 3), (NamedBy::Further, 1), (NamedBy::Others, 1)];

/// Known documents of one visit, in their order.
pub(super) struct KnownDocuments<'a> {
    /// Documents that the site itself publishes.
    pub(super) published: Vec<&'a ResourceState>,
    /// All other documents, in turns: documents to which published ones link, documents to which those link, and documents that only others
    /// name.
    pub(super) others: Vec<(NamedBy, &'a ResourceState)>,
}

/// The known documents that a visit requests. Documents that users may have written do not use turns of documents that the site itself
/// publishes.
pub(super) fn of_this_visit<'a>(
    site: &'a SiteState,
    own_hosts: &'a OwnHosts,
    now: DateTime<Utc>,
) -> KnownDocuments<'a> {
    let turns = Turns::of(site, own_hosts, now);
    let (mut published, mut linked) = (Vec::new(), Vec::new());
    let mut by_naming: BTreeMap<NamedBy, Vec<Owned<'a>>> = BTreeMap::new();
    for known in requested_in_turns(site) {
        let task = known_task(site, known);
        match own_hosts.named_by_for_task(&task) {
            NamedBy::Site => published.push(known),
            NamedBy::Document => linked.push(known),
            named_by => {
                let owner = turns.owner(&own_hosts.owner_of(&Task { named_by, ..task }));
                by_naming.entry(named_by).or_default().push((owner, known));
            }
        }
    }
    let mut next = |named_by| {
        let max = UrlLimits::of(named_by).known;
        let limits = Limits { max, of_one_owner: KNOWN_OF_ONE_MAX, at_one_host: LINKS_AT_OTHERS_MAX };
        turns.next(by_naming.remove(&named_by).unwrap_or_default(), limits)
    };
    let (further, of_others) = (next(NamedBy::Further), next(NamedBy::Others));
    let mut published = turns.merged(waiting_and_next(&turns, published));
    published.sort_by_cached_key(|known| own_hosts.links_away(&known.url));
    let mut linked = waiting_and_next(&turns, linked);
    // main hosts first, so that their requests do not wait for the delays of other hosts
    let sort_key = |known: &&ResourceState| {
        let is_elsewhere = !is_main_host(&site.name, &known.url.host());
        (is_elsewhere, own_hosts.links_away(&known.url))
    };
    linked.sure.sort_by_cached_key(sort_key);
    linked.unsure.sort_by_cached_key(sort_key);
    let (sure, unsure) = [linked, further, of_others].map(|of| (of.sure, of.unsure)).into_iter().unzip();
    let others = turns.merged(Chosen { sure: in_turns_of_all(sure), unsure: in_turns_of_all(unsure) });
    KnownDocuments { published, others }
}

/// Merges the lists of known documents that the site itself does not publish, in turns according to [`SHARES`].
fn in_turns_of_all(lists: Vec<Vec<&ResourceState>>) -> Vec<(NamedBy, &ResourceState)> {
    let mut lists = lists.into_iter();
    in_shares(SHARES.map(|(named_by, share)| {
        let list = lists.next().unwrap_or_default();
        (share, list.into_iter().map(|known| (named_by, known)).collect())
    }))
}

/// Selects the documents of the site that this visit requests. If there are more than the limit allows, each visit requests the documents
/// at usual paths, some of those that were not requested yet or not read in full, and the next ones of the rest.
fn waiting_and_next<'a>(turns: &Turns<'a>, documents: Vec<&'a ResourceState>) -> Chosen<&'a ResourceState> {
    let is_usual = |known: &&ResourceState| {
        let is_main = is_main_host(&turns.site.name, &known.url.host());
        is_main && plan::find(&known.url.path_and_query()).is_some()
    };
    let is_waiting = |known: &&ResourceState| {
        known.outcome == FetchOutcome::NotReached || known.outcome.is_present() && known.cache.is_none()
    };
    let (mut usual, others): (Vec<&ResourceState>, Vec<&ResourceState>) =
        documents.into_iter().partition(is_usual);
    let rest = usual.split_off(usual.len().min(KNOWN_USUAL_MAX)).into_iter().chain(others);
    let (waiting, rest): (Vec<&ResourceState>, Vec<&ResourceState>) = rest.partition(is_waiting);
    let mut known = usual;
    known.extend(turns.next_of_all(waiting, KNOWN_WAITING_MAX));
    let room = UrlLimits::of(NamedBy::Site).known.saturating_sub(known.len());
    known.extend(turns.next_of_all(rest, room));
    turns.of_all(known, usize::MAX)
}

/// The known documents that visits request in turns. A link that no visit has reached may be at a host that is not in the store.
fn requested_in_turns(site: &SiteState) -> impl Iterator<Item = &ResourceState> {
    let hosts: HashSet<&Host> = site.hosts.iter().map(|state| &state.host).collect();
    site.resources.iter().filter(move |known| {
        let may_be_requested = known.outcome == FetchOutcome::NotReached || hosts.contains(&known.url.host());
        may_be_requested && is_planned(site, known)
    })
}

/// The known documents that the site names and that visits request in turns.
pub(super) fn in_turns<'a>(
    site: &'a SiteState,
    own_hosts: &OwnHosts,
) -> impl Iterator<Item = &'a ResourceState> {
    requested_in_turns(site).filter(|known| own_hosts.names(&known.url))
}

/// The known documents that are requested after all others, because their last request failed. Another failure may use up the time of the
/// visit, or end all requests to the host, or those for other links of the same document to that host.
pub(super) fn retries(site: &SiteState) -> impl Iterator<Item = &ResourceState> {
    site.resources.iter().filter(|known| is_retry(site, known))
}

pub(super) fn is_retry(site: &SiteState, known: &ResourceState) -> bool {
    known.outcome.is_failure() && !site.visits.is_multiple_of(AGAIN_EVERY)
}

/// Whether visits request a known document again when its turn comes.
fn is_planned(site: &SiteState, known: &ResourceState) -> bool {
    !is_named_by_others(known) && is_requested_again(site, known)
}

/// Whether only a submission or a list names a URL: it is not in the path table, and no document links to it.
pub(super) fn is_named_by_others(known: &ResourceState) -> bool {
    known.manifest_id.is_none()
        && matches!(known.discovery, Discovery::Submitted | Discovery::Listed)
        && plan::find(&known.url.path_and_query()).is_none()
}

/// Whether visits request a document again. Parts are requested with their manifest, unless a submission or another site also names them.
/// Documents that were missing several times are requested only in every eighth visit. A URL that another site links to, and that was not a
/// manifest, is requested again only for a renewed link.
pub(super) fn is_requested_again(site: &SiteState, resource: &ResourceState) -> bool {
    let is_part =
        resource.linked_from.is_some() && resource.outcome.is_present() && !resource.is_named_as_manifest();
    let is_first_request = resource.outcome == FetchOutcome::NotReached;
    let is_looked_for = resource.content_hash.is_some() && site.visits.is_multiple_of(AGAIN_EVERY);
    let may_become_one = !is_part
        && !is_given_up(resource)
        && (is_first_request || !is_of_another_site(site, resource.linked_from.as_ref()));
    resource.manifest_id.is_some() || may_become_one || !is_part && is_looked_for
}

/// Whether a URL to which another site links, and which never led to a document, is requested again for this link: a few times in a row, at
/// intervals of a day. Otherwise the link would be used again only after its document has changed.
pub(super) fn is_linked_again(site: &SiteState, known: &ResourceState, now: DateTime<Utc>) -> bool {
    let was_requested = known.outcome != FetchOutcome::NotReached && !known.outcome.is_present();
    was_requested
        && known.manifest_id.is_none()
        && known.content_hash.is_none()
        && is_of_another_site(site, known.linked_from.as_ref())
        && !is_named_by_others(known)
        && !is_given_up(known)
        && now - known.fetched_at >= HINT_INTERVAL
}

/// Whether a document was missing so often in a row that it is not requested because of its stored state alone.
pub(super) const fn is_given_up(resource: &ResourceState) -> bool {
    resource.misses_in_row >= MISSES_MAX
}

pub(super) fn is_of_another_site(site: &SiteState, linked_from: Option<&ManifestUrl>) -> bool {
    linked_from.is_some_and(|from| from.site() != site.name)
}

/// The task for a known document.
pub(super) fn known_task(site: &SiteState, resource: &ResourceState) -> Task {
    let row = plan::find(&resource.url.path_and_query());
    Task {
        linked_from: resource.linked_from.clone().map(Box::new),
        slot: row.map(|row| row.slot),
        turn: if is_retry(site, resource) { Turn::Retry } else { Turn::Known },
        ..Task::new(resource.url.clone(), body_of_path(&resource.url), resource.discovery)
    }
}
