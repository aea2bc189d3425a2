//! Known documents of a site: which of them visits request again, and which of them one visit requests.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl};
use policy::schedule::HINT_INTERVAL;
use policy::{FetchOutcome, plan};
use store::{ResourceState, SiteState, is_main_host};

use super::own_hosts::OwnHosts;
use super::plan::LINKS_AT_OTHERS_MAX;
use super::room::Room;
use super::task::{NamedBy, Task, Turn, body_of_path};
use super::turns::{Chosen, Limits, Owned, Turns, in_shares};

/// A resource that was missing this often in a row is requested only if the path table or a new link names it.
const MISSES_MAX: u32 = 3;
/// Maximum number of known documents per visit of one owner ([`OwnHosts::owner_of`]).
pub(super) const KNOWN_OF_ONE_MAX: usize = 10;
/// Maximum number of known documents, still to be requested for the first time or to be downloaded in full, with which a visit begins.
pub(super) const KNOWN_WAITING_MAX: usize = 20;
/// Maximum number of known documents at paths of the table of the main hosts, with which each visit begins.
const KNOWN_USUAL_MAX: usize = 20;
/// In each visit of this number, URLs whose last request failed have their usual place: after everything else, a daily budget might never
/// leave a request for them. What was received once and is gone is requested again then: the document that links to it may never change,
/// and so never name it anew.
const AGAIN_EVERY: u32 = 8;
/// Shares of known documents in a turn, by who names them. A daily budget ends each visit to a large site, and no kind of document should
/// be left out in every visit.
const SHARES: [(NamedBy, usize); 3] = [(NamedBy::Document, 3), (NamedBy::Further, 1), (NamedBy::Others, 1)];

/// Known documents of one visit, in their order.
pub(super) struct KnownDocuments<'a> {
    /// Those that the site itself publishes.
    pub(super) published: Vec<&'a ResourceState>,
    /// All others, in turns of those to which these link, those to which those link, and those that only others name.
    pub(super) others: Vec<(NamedBy, &'a ResourceState)>,
}

/// The known documents that a visit requests. What users may have written takes no turn of what the site itself publishes.
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
        match own_hosts.word_on(&task) {
            NamedBy::Site => published.push(known),
            NamedBy::Document => linked.push(known),
            named_by => {
                let owner = turns.owner(&own_hosts.owner_of(&Task { named_by, ..task }));
                by_naming.entry(named_by).or_default().push((owner, known));
            }
        }
    }
    let mut next = |named_by| {
        let max = Room::of(named_by).known;
        let limits = Limits { max, of_one_owner: KNOWN_OF_ONE_MAX, at_one_host: LINKS_AT_OTHERS_MAX };
        turns.next(by_naming.remove(&named_by).unwrap_or_default(), limits)
    };
    let (further, of_others) = (next(NamedBy::Further), next(NamedBy::Others));
    let mut published = turns.merged(waiting_and_next(&turns, published));
    published.sort_by_cached_key(|known| own_hosts.links_away(&known.url));
    let mut linked = waiting_and_next(&turns, linked);
    // the delays of other hosts do not come first
    let place = |known: &&ResourceState| {
        let is_elsewhere = !is_main_host(site.name.as_str(), known.url.host().as_str());
        (is_elsewhere, own_hosts.links_away(&known.url))
    };
    linked.sure.sort_by_cached_key(place);
    linked.unsure.sort_by_cached_key(place);
    let (sure, unsure) = [linked, further, of_others].map(|of| (of.sure, of.unsure)).into_iter().unzip();
    let others = turns.merged(Chosen { sure: in_turns_of_all(sure), unsure: in_turns_of_all(unsure) });
    KnownDocuments { published, others }
}

/// Merges what is known beyond what the site itself publishes: those of each list in turn, by [`SHARES`].
fn in_turns_of_all(lists: Vec<Vec<&ResourceState>>) -> Vec<(NamedBy, &ResourceState)> {
    let mut lists = lists.into_iter();
    in_shares(SHARES.map(|(named_by, share)| {
        let list = lists.next().unwrap_or_default();
        (share, list.into_iter().map(|known| (named_by, known)).collect())
    }))
}

/// Those of the documents of the site that this visit requests. If they are more than there is room for, each visit requests those at usual
/// paths, some of those that wait for their first request or to be read whole, and the next ones of the rest.
fn waiting_and_next<'a>(turns: &Turns<'a>, documents: Vec<&'a ResourceState>) -> Chosen<&'a ResourceState> {
    let is_usual = |known: &&ResourceState| {
        let is_main = is_main_host(turns.site.name.as_str(), known.url.host().as_str());
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
    let room = Room::of(NamedBy::Site).known.saturating_sub(known.len());
    known.extend(turns.next_of_all(rest, room));
    turns.of_all(known, usize::MAX)
}

/// The known documents that visits request in turns. A link that no visit reached may be at a host that none has met.
fn requested_in_turns(site: &SiteState) -> impl Iterator<Item = &ResourceState> {
    let hosts: HashSet<&Host> = site.hosts.iter().map(|state| &state.host).collect();
    site.resources.iter().filter(move |known| {
        let may_be_requested = known.outcome == FetchOutcome::NotReached || hosts.contains(&known.url.host());
        may_be_requested && is_planned(site, known)
    })
}

/// Those that the site names.
pub(super) fn in_turns<'a>(
    site: &'a SiteState,
    own_hosts: &OwnHosts,
) -> impl Iterator<Item = &'a ResourceState> {
    requested_in_turns(site).filter(|known| own_hosts.names(&known.url))
}

/// The known documents whose next request comes after all others, since the last one failed: another failure may end the visit of their
/// host, or of what the same document links to there, or use up its time.
pub(super) fn retries(site: &SiteState) -> impl Iterator<Item = &ResourceState> {
    site.resources.iter().filter(|known| is_retry(site, known))
}

pub(super) fn is_retry(site: &SiteState, known: &ResourceState) -> bool {
    known.outcome.is_failure() && !site.visits.is_multiple_of(AGAIN_EVERY)
}

/// Whether visits request a known document again, unless it has no turn.
fn is_planned(site: &SiteState, known: &ResourceState) -> bool {
    !is_named_by_others(known) && is_asked_again(site, known)
}

/// Named, not found by looking: no row of the path table, and not linked by a document of any site.
pub(super) fn is_named_by_others(known: &ResourceState) -> bool {
    known.manifest_id.is_none()
        && matches!(known.discovery, Discovery::Submitted | Discovery::Listed)
        && plan::find(&known.url.path_and_query()).is_none()
}

/// Parts come with their manifest, unless a submission or another site names them too, and documents that have been missing for long are
/// skipped, but for every eighth visit. What another site linked to and was no manifest is a hint once more if that link counts again.
pub(super) fn is_asked_again(site: &SiteState, resource: &ResourceState) -> bool {
    let is_part =
        resource.linked_from.is_some() && resource.outcome.is_present() && !resource.is_named_as_manifest();
    let is_first_request = resource.outcome == FetchOutcome::NotReached;
    let is_looked_for = resource.content_hash.is_some() && site.visits.is_multiple_of(AGAIN_EVERY);
    let may_become_one = !is_part
        && !is_given_up(resource)
        && (is_first_request || !is_of_another_site(site, resource.linked_from.as_ref()));
    resource.manifest_id.is_some() || may_become_one || !is_part && is_looked_for
}

/// Whether a URL to which another site links, and which never led to a document, is requested again for this link: a few times in a row, a
/// day apart. The link is read anew only if its document changes.
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

/// Whether a document was missing too often in a row to be requested for what the store knows of it.
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
