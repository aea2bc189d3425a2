//! The initial plan of a visit, in this order: the proof of a claim, known manifests that the site itself publishes, the paths that
//! `policy::plan` chooses, home pages, and then all other known documents in turns: those to which its manifests link, those to which these
//! link, and those that only others name. Hosts and URLs that only others name come after these, and URLs whose last request failed come
//! last.

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::{Discovery, Host, ManifestUrl, SiteName};
use policy::plan::{self, FullTableReason, LastCheck, PathPlan, Priors};
use policy::{BodyKind, FetchOutcome, HostKnowledge, PathClass, Seed, Status, take_turns};
use store::{Hint, HostOrigin, HostState, PathSlots, ResourceState, SiteState, is_main_host};

use super::claim;
use super::own_hosts::OwnHosts;
use super::plan::LINKS_AT_OTHERS_MAX;
use super::progress::Progress;
use super::room::Room;
use super::task::{Earlier, NamedBy, Role, Task, body_of_path};
use super::traffic::Traffic;
use super::turns::{in_turn, in_turn_by};

/// A resource that was missing this often in a row is requested only if the path table or a new link names it.
const MISSES_MAX: u32 = 3;

/// Maximum number of URLs without a manifest that other sites link to and that one visit requests. Each is requested once.
const LINKED_BY_OTHERS_MAX: usize = 10;

/// Maximum number of hosts of one site per visit: the daily budget of the site allows only a few requests to each.
const HOSTS_MAX: usize = 50;

/// Maximum number of hosts per visit that links or submissions name and that have no manifest. Hosts with manifests do not count; up to
/// [`HOSTS_MAX`] of them are requested in addition.
const HOSTS_NAMED_MAX: usize = 10;

/// Maximum number of known documents per visit of one host that only others name, or of one linking site.
const KNOWN_OF_ONE_MAX: usize = 10;
/// Maximum number of known documents, still to be requested for the first time or to be downloaded in full, with which a visit begins.
pub(super) const KNOWN_WAITING_MAX: usize = 20;
/// Maximum number of known documents at paths of the table of the main hosts, with which each visit begins.
const KNOWN_USUAL_MAX: usize = 20;
/// URLs whose last request failed are requested after everything else, except in every eighth visit: otherwise, a daily budget might never
/// leave a request for them.
const FAILED_IN_ORDER_EVERY: u32 = 8;
/// Shares of known documents in a turn, by who names them. A daily budget ends each visit to a large site, and no kind of document should
/// be left out in every visit.
const SHARES: [(NamedBy, usize); 3] = [(NamedBy::Document, 3), (NamedBy::Further, 1), (NamedBy::Others, 1)];
/// Stands for collected lists among the sites that name hosts in turn. No site has this name.
const COLLECTED: &str = "lists";

/// The plan at the beginning of a visit.
pub(crate) fn begin(site: &SiteState, own_hosts: &OwnHosts, priors: &Priors, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, site.paths_checked.clone());
    progress.traffic = Traffic::after_earlier_visits(site, |host| own_hosts.contains(host), now);
    if let Some(task) = claim::task(site, now, now) {
        progress.plan.add(task);
    }
    let turns = Turns { site, now };
    let known = known_of_site(turns, own_hosts);
    for task in of_site(turns, own_hosts, priors, &known) {
        progress.plan.add(Task { named_by: own_hosts.word_on(&task), ..task });
    }
    let is_of_others = |state: &&HostState| !own_hosts.contains(&state.host) && is_requested(site, state);
    let named: Vec<&HostState> = site.hosts.iter().filter(is_of_others).collect();
    let is_foreign = |known: &&ResourceState| {
        own_hosts.contains(&known.url.host()) && !own_hosts.names(&known.url) && is_planned(site, known)
    };
    let foreign: Vec<&ResourceState> = site.resources.iter().filter(is_foreign).collect();
    let (with_manifests, without): (Vec<&HostState>, Vec<&HostState>) =
        named.into_iter().partition(|state| has_manifests(site, &state.host));
    let with_manifests: Vec<&HostState> = in_turn(with_manifests, HOSTS_MAX, site.visits).collect();
    // known manifests are requested however many other names there are
    let manifests = known_of_others(turns, own_hosts, foreign, &with_manifests);
    for (named_by, known) in in_shares([known.linked, known.further, manifests]) {
        let task = known_task(site, known);
        let earlier = if task.earlier == Earlier::Failed { Earlier::Failed } else { Earlier::Known };
        progress.plan.add(Task { named_by, earlier, ..task });
    }
    let searched = with_manifests.iter().copied().chain(in_turn_of_linking_sites(site, without));
    let searched = searched.flat_map(|state| {
        let known = turns.next(known_at((site, own_hosts), &state.host), KNOWN_OF_ONE_MAX);
        known.into_iter().map(|known| known_task(site, known)).chain(rows_of(site, own_hosts, state, priors))
    });
    for task in named_by_others(site).chain(searched) {
        progress.plan.add(Task { named_by: NamedBy::Others, ..task });
    }
    progress
}

/// The tasks of the site itself: known documents, then paths of the table, at the main hosts first, whose requests do not wait for the
/// delays of other hosts. Home pages are last.
fn of_site(turns: Turns<'_>, own_hosts: &OwnHosts, priors: &Priors, known: &KnownOfSite<'_>) -> Vec<Task> {
    let site = turns.site;
    let is_main = |url: &ManifestUrl| is_main_host(site.name.as_str(), url.host().as_str());
    let KnownOfSite { published, linked, further } = known;
    let urls: HashSet<&ManifestUrl> =
        published.iter().chain(linked).chain(further).map(|known| &known.url).collect();
    let rows = own(site, own_hosts).flat_map(|state| rows_of(site, own_hosts, state, priors));
    let rows = rows.filter(|task| !urls.contains(&task.url));
    let rows = rows.take(Room::of(NamedBy::Site).begun.saturating_sub(published.len()));
    let (pages, rows): (Vec<Task>, Vec<Task>) = rows.partition(|task| task.role == Role::Page);
    let (main_rows, other_rows): (Vec<Task>, Vec<Task>) =
        rows.into_iter().partition(|task| is_main(&task.url));
    let known = published.iter().map(|known| known_task(site, known));
    let (main, others): (Vec<Task>, Vec<Task>) = known.partition(|task| is_main(&task.url));
    main.into_iter().chain(main_rows).chain(others).chain(other_rows).chain(pages).collect()
}

/// The known documents of one visit that the site names: documents that it publishes, documents to which these link, and documents to which
/// those link in turn.
struct KnownOfSite<'a> {
    published: Vec<&'a ResourceState>,
    linked: Vec<&'a ResourceState>,
    further: Vec<&'a ResourceState>,
}

/// The known documents that the site names. Documents that users may have written do not take the place of what the site itself publishes.
fn known_of_site<'a>(turns: Turns<'a>, own_hosts: &OwnHosts) -> KnownOfSite<'a> {
    let site = turns.site;
    let (mut published, mut linked, mut further) = (Vec::new(), Vec::new(), BTreeMap::new());
    for known in in_turns(site, own_hosts) {
        match own_hosts.word_on(&known_task(site, known)) {
            NamedBy::Site => published.push(known),
            NamedBy::Further => {
                let of_one: &mut Vec<&ResourceState> = further.entry(&known.linked_from).or_default();
                of_one.push(known);
            }
            NamedBy::Document | NamedBy::Others => linked.push(known),
        }
    }
    let further = further.into_iter().flat_map(|(from, documents)| {
        let from = from.as_ref().map(ManifestUrl::as_str).unwrap_or_default();
        let turn = Seed::of(from).with_counter(site.visits.into());
        let next = turns.next(documents, Room::of(NamedBy::Further).of_one);
        next.into_iter().map(move |known| (turn, known))
    });
    let mut at_others: HashMap<Host, usize> = HashMap::new();
    let further = take_turns(further).into_iter().filter(|known: &&ResourceState| {
        let host = known.url.host();
        own_hosts.contains(&host) || {
            let at_host = at_others.entry(host).or_default();
            *at_host += 1;
            *at_host <= LINKS_AT_OTHERS_MAX
        }
    });
    let further = further.take(Room::of(NamedBy::Further).known).collect();
    let mut published = of_this_visit(turns, published);
    published.sort_by_cached_key(|known| (own_hosts.links_away(&known.url), turns.place_of(known)));
    let mut linked = of_this_visit(turns, linked);
    linked.sort_by_cached_key(|known| {
        // do not begin with the delays of other hosts
        let is_elsewhere = !is_main_host(site.name.as_str(), known.url.host().as_str());
        (is_elsewhere, own_hosts.links_away(&known.url), turns.place_of(known))
    });
    KnownOfSite { published, linked, further }
}

/// Merges the lists of known documents that the site itself does not publish, taking from each in turn by [`SHARES`].
fn in_shares<T>(lists: [Vec<T>; 3]) -> Vec<(NamedBy, T)> {
    let mut lists = lists.map(Vec::into_iter);
    let mut merged = Vec::new();
    while lists.iter().any(|list| list.len() > 0) {
        for (list, (named_by, share)) in lists.iter_mut().zip(SHARES) {
            merged.extend(list.take(share).map(|item| (named_by, item)));
        }
    }
    merged
}

/// The order in which a visit chooses and requests known documents of one standing.
///
/// Each second visit begins with documents that were never requested, followed by those that were not requested for the longest time. So it
/// continues where a budget or a delay ended the last visit. The other visits request known documents in random order, and documents that
/// were never requested last. So neither new documents that all fail nor a large number of old ones keep a document from ever being
/// requested.
#[derive(Clone, Copy)]
struct Turns<'a> {
    site: &'a SiteState,
    now: DateTime<Utc>,
}

impl<'a> Turns<'a> {
    /// The first of some documents, up to `max`.
    fn next(self, mut known: Vec<&'a ResourceState>, max: usize) -> Vec<&'a ResourceState> {
        known.sort_by_cached_key(|known| self.place_of(known));
        known.truncate(max);
        known
    }

    fn place_of(self, known: &ResourceState) -> (bool, bool, i64, ManifestUrl) {
        let is_fresh = known.fresh_until.is_some_and(|until| self.now < until);
        let is_new = known.outcome == FetchOutcome::NotReached;
        let (is_later, place) = if self.site.visits.is_multiple_of(2) {
            let chance = Seed::of(known.url.as_str()).with_counter(self.site.visits.into());
            (is_new, i64::try_from(chance.below(u64::MAX >> 1)).unwrap_or_default())
        } else {
            (!is_new, known.fetched_at.timestamp_millis())
        };
        (is_fresh, is_later, place, known.url.clone())
    }
}

/// The known documents whose last request failed. They are requested after all others: another failure may end the requests to their host,
/// or to other links of the same document there, or use up their time.
pub(super) fn retries(site: &SiteState) -> impl Iterator<Item = &ResourceState> {
    site.resources.iter().filter(|known| is_retry(site, known))
}

fn is_retry(site: &SiteState, known: &ResourceState) -> bool {
    known.outcome.is_failure() && !site.visits.is_multiple_of(FAILED_IN_ORDER_EVERY)
}

/// Selects the known documents that this visit requests. If there are too many, it selects those at usual paths, some that were never
/// requested or must be downloaded in full, and the next ones of the rest.
fn of_this_visit<'a>(turns: Turns<'a>, documents: Vec<&'a ResourceState>) -> Vec<&'a ResourceState> {
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
    let waiting = turns.next(waiting, KNOWN_WAITING_MAX);
    let mut known: Vec<&ResourceState> = usual.into_iter().chain(waiting).collect();
    let room = Room::of(NamedBy::Site).known.saturating_sub(known.len());
    known.extend(turns.next(rest, room));
    known
}

/// The known documents that the site names and that visits request in turns, all of them.
pub(super) fn in_turns<'a>(
    site: &'a SiteState,
    own_hosts: &OwnHosts,
) -> impl Iterator<Item = &'a ResourceState> {
    let hosts: HashSet<&Host> = site.hosts.iter().map(|state| &state.host).collect();
    site.resources.iter().filter(move |known| {
        hosts.contains(&known.url.host()) && own_hosts.names(&known.url) && is_planned(site, known)
    })
}

/// The own hosts of this visit.
fn own<'a>(site: &'a SiteState, own: &OwnHosts) -> impl Iterator<Item = &'a HostState> {
    let own = site.hosts.iter().filter(|state| own.contains(&state.host));
    // The delays of other hosts do not come before the domain itself.
    let (main, others): (Vec<&HostState>, Vec<&HostState>) =
        own.partition(|state| is_main_host(site.name.as_str(), state.host.as_str()));
    main.into_iter().chain(in_turn(others, HOSTS_MAX, site.visits))
}

/// The known documents of this visit that only others name: `at_own_hosts`, and those of `hosts`. Each visit requests the next ones.
fn known_of_others<'a>(
    turns: Turns<'a>,
    own_hosts: &OwnHosts,
    at_own_hosts: Vec<&'a ResourceState>,
    hosts: &[&HostState],
) -> Vec<&'a ResourceState> {
    let mut by_owner: BTreeMap<String, Vec<&ResourceState>> = BTreeMap::new();
    for known in at_own_hosts {
        let linked_by = known.linked_from.as_ref().map(|from| from.site().to_string());
        by_owner.entry(linked_by.unwrap_or_default()).or_default().push(known);
    }
    for state in hosts {
        by_owner.insert(state.host.to_string(), known_at((turns.site, own_hosts), &state.host));
    }
    let next = by_owner.into_iter().flat_map(|(owner, known)| {
        let turn = Seed::of(&owner).with_counter(turns.site.visits.into());
        turns.next(known, KNOWN_OF_ONE_MAX).into_iter().map(move |known| (turn, known))
    });
    take_turns(next).into_iter().take(Room::of(NamedBy::Others).known).collect()
}

/// Whether there is anything to request at a host: the host is searched, or one of its documents was received.
fn is_requested(site: &SiteState, state: &HostState) -> bool {
    let is_received = |known: &ResourceState| {
        known.url.host() == state.host && (known.manifest_id.is_some() || known.content_hash.is_some())
    };
    state.is_seeded() || site.resources.iter().any(is_received)
}

/// The paths that a visit left for later, at the site's own hosts, now that there is a reason to request them. Includes paths that the
/// visit has already requested or planned.
pub(crate) fn remaining(
    site: &SiteState,
    own_hosts: &OwnHosts,
    priors: &Priors,
    reason: FullTableReason,
) -> Vec<Task> {
    let hosts = own(site, own_hosts).filter(|state| state.is_seeded());
    hosts
        .flat_map(|state| {
            let planned = plan_of((site, own_hosts), &state.host, Some(reason), priors).requested;
            planned.into_iter().filter_map(|row| Task::of_path(&state.host, row))
        })
        .collect()
}

/// The home pages of the main hosts.
pub(crate) fn home_pages(site: &SiteState, own_hosts: &OwnHosts) -> Vec<Task> {
    let is_searched =
        |state: &&HostState| is_main_host(site.name.as_str(), state.host.as_str()) && state.is_seeded();
    let row = plan::PATHS.iter().find(|row| row.body == BodyKind::Homepage);
    let hosts = own(site, own_hosts).filter(is_searched);
    hosts.filter_map(|state| Task::of_path(&state.host, row?)).collect()
}

/// How the next visit divides the path table at the site's first own host; `None` if it has none that is searched.
pub(crate) fn outlook(site: &SiteState, priors: &Priors) -> Option<PathPlan> {
    let own_hosts = OwnHosts::of(site);
    let state = site.hosts.iter().find(|state| own_hosts.contains(&state.host) && state.is_seeded())?;
    Some(plan_of((site, &own_hosts), &state.host, full_table(site, &own_hosts, &state.host), priors))
}

/// Hints, which may name hosts that were not seeded, and submitted or listed URLs that have not yielded a manifest. The sites that link to
/// such URLs take turns, and each visit begins with a different site.
fn named_by_others(site: &SiteState) -> impl Iterator<Item = Task> {
    let (linked, named): (Vec<&Hint>, Vec<&Hint>) =
        site.hints.iter().partition(|hint| is_of_another_site(site, hint.linked_from.as_ref()));
    let again = site
        .resources
        .iter()
        .filter(|known| is_named_by_others(known) && is_asked_again(site, known) && !is_settled(known));
    let again = again.map(|known| known_task(site, known));
    let turn = |hint: &Hint| {
        let from = hint.linked_from.as_ref().map(ManifestUrl::site);
        Seed::of(from.as_ref().map_or("", SiteName::as_str)).with_counter(site.visits.into())
    };
    let linked = take_turns(linked.into_iter().map(|hint| (turn(hint), hint)));
    let hints = named.into_iter().chain(linked.into_iter().take(LINKED_BY_OTHERS_MAX)).map(hint);
    hints.chain(again)
}

/// A submitted URL whose document is not a manifest, or is a copy of one, is requested once.
fn is_settled(known: &ResourceState) -> bool {
    known.discovery == Discovery::Submitted && known.outcome == FetchOutcome::NotAManifest
}

fn is_of_another_site(site: &SiteState, linked_from: Option<&ManifestUrl>) -> bool {
    linked_from.is_some_and(|from| from.site() != site.name)
}

/// Whether a URL was only named by others: it is not in the path table, and no document of any site links to it.
fn is_named_by_others(known: &ResourceState) -> bool {
    known.manifest_id.is_none()
        && matches!(known.discovery, Discovery::Submitted | Discovery::Listed)
        && plan::find(&known.url.path_and_query()).is_none()
}

/// Hosts that only others name and that have no manifest, up to [`HOSTS_NAMED_MAX`]. The sites that link to them take turns; the linking
/// site is known as long as a URL of the host is stored. Collected lists have one turn, and submissions share one with the rest. Each visit
/// searches the next hosts of each turn.
fn in_turn_of_linking_sites<'a>(site: &'a SiteState, hosts: Vec<&'a HostState>) -> Vec<&'a HostState> {
    let of_hints = site.hints.iter().map(|hint| (&hint.url, hint.linked_from.as_ref()));
    let of_resources = site.resources.iter().map(|known| (&known.url, known.linked_from.as_ref()));
    let linked = of_resources.chain(of_hints).filter(|(_, from)| is_of_another_site(site, *from));
    let sources: HashMap<Host, SiteName> =
        linked.filter_map(|(url, from)| Some((url.host(), from?.site()))).collect();
    let mut by_source: BTreeMap<&str, Vec<&HostState>> = BTreeMap::new();
    for state in hosts {
        let source = match sources.get(&state.host) {
            _ if state.origin == HostOrigin::Collected => COLLECTED,
            Some(site) => site.as_str(),
            None => "",
        };
        by_source.entry(source).or_default().push(state);
    }
    let share = HOSTS_NAMED_MAX.checked_div(by_source.len()).unwrap_or_default().max(1);
    let turns = by_source.into_iter().flat_map(|(source, hosts)| {
        let turn = Seed::of(source).with_counter(site.visits.into());
        in_turn_by(hosts, share, HOSTS_NAMED_MAX, site.visits).map(move |state| (turn, state))
    });
    take_turns(turns).into_iter().take(HOSTS_NAMED_MAX).collect()
}

/// A visit to one document.
pub(crate) fn only(url: &ManifestUrl, now: DateTime<Utc>) -> Progress {
    let mut progress = Progress::new(now, PathSlots::default());
    progress.plan.add(Task::new(url.clone(), body_of_path(url), Discovery::Submitted));
    progress
}

/// The known documents of a host that only others name and that are requested again. Documents that the site names are selected elsewhere.
fn known_at<'a>((site, own_hosts): (&'a SiteState, &OwnHosts), host: &Host) -> Vec<&'a ResourceState> {
    let is_theirs = |known: &&ResourceState| known.url.host() == *host && !own_hosts.names(&known.url);
    let known = site.resources.iter().filter(is_theirs);
    known.filter(|known| is_planned(site, known)).collect()
}

/// Whether visits request a known document again when it has its turn.
fn is_planned(site: &SiteState, known: &ResourceState) -> bool {
    !is_named_by_others(known) && is_asked_again(site, known)
}

/// A host that only a redirect led to is not searched.
fn rows_of(site: &SiteState, own_hosts: &OwnHosts, state: &HostState, priors: &Priors) -> Vec<Task> {
    if !state.is_seeded() {
        return Vec::new();
    }
    let reason = full_table(site, own_hosts, &state.host);
    let planned = plan_of((site, own_hosts), &state.host, reason, priors).requested;
    planned.into_iter().filter_map(|row| Task::of_path(&state.host, row)).collect()
}

fn plan_of(
    (site, own_hosts): (&SiteState, &OwnHosts),
    host: &Host,
    reason: Option<FullTableReason>,
    priors: &Priors,
) -> PathPlan {
    let last = |slot| {
        let check = site.paths_checked.get(slot)?;
        Some(LastCheck { class: PathClass::from_code(check.class)?, day: check.day })
    };
    plan::paths(standing(site, own_hosts, host), reason, priors, last)
}

/// The reason, known from the store, for which a visit requests every path that was never requested.
fn full_table(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> Option<FullTableReason> {
    // manifests that others name are evidence about the hosts that they name, not about the site
    let is_counted = |known: &&ResourceState| {
        own_hosts.names(&known.url) || !own_hosts.contains(host) && known.url.host() == *host
    };
    let is_named = |discovery: Discovery| matches!(discovery, Discovery::Submitted | Discovery::Listed);
    let mut hints = site.hints.iter().map(|hint| hint.discovery);
    let mut manifests = site.resources.iter().filter(|known| known.manifest_id.is_some()).filter(is_counted);
    match () {
        () if manifests.next().is_some() => Some(FullTableReason::ManifestKnown),
        () if hints.any(is_named) || site.resources.iter().any(|known| is_named(known.discovery)) => {
            Some(FullTableReason::UrlNamed)
        }
        () if site.is_submitted => Some(FullTableReason::Submitted),
        () => None,
    }
}

/// Whether a known document is requested again. Parts come with their manifest, unless a submission or another site names them too.
/// Documents that have been missing for long are skipped. A URL without a manifest is requested once for a link of another site.
fn is_asked_again(site: &SiteState, resource: &ResourceState) -> bool {
    let is_part =
        resource.linked_from.is_some() && resource.outcome.is_present() && !resource.is_named_as_manifest();
    let is_first_request = resource.outcome == FetchOutcome::NotReached;
    let may_become_one = !is_part
        && !is_given_up(resource)
        && (is_first_request || !is_of_another_site(site, resource.linked_from.as_ref()));
    resource.manifest_id.is_some() || may_become_one
}

/// Whether a document was missing too often in a row to be requested again without a new link.
pub(super) const fn is_given_up(resource: &ResourceState) -> bool {
    resource.misses_in_row >= MISSES_MAX
}

/// The task for a known document.
pub(super) fn known_task(site: &SiteState, resource: &ResourceState) -> Task {
    let row = plan::find(&resource.url.path_and_query());
    Task {
        linked_from: resource.linked_from.clone().map(Box::new),
        slot: row.map(|row| row.slot),
        earlier: if is_retry(site, resource) { Earlier::Failed } else { Earlier::Usual },
        ..Task::new(resource.url.clone(), body_of_path(&resource.url), resource.discovery)
    }
}

fn hint(Hint { url, linked_from, discovery }: &Hint) -> Task {
    let row = plan::find(&url.path_and_query());
    let role =
        if row.is_some_and(|row| row.body == BodyKind::Homepage) { Role::Page } else { Role::Manifest };
    Task {
        slot: row.map(|row| row.slot),
        role,
        linked_from: linked_from.clone().map(Box::new),
        earlier: if *discovery == Discovery::Listed { Earlier::Usual } else { Earlier::Untried },
        ..Task::new(url.clone(), body_of_path(url), *discovery)
    }
}

fn has_manifests(site: &SiteState, host: &Host) -> bool {
    manifests_at(site, host).next().is_some()
}

fn manifests_at<'a>(site: &'a SiteState, host: &'a Host) -> impl Iterator<Item = &'a ResourceState> {
    site.resources.iter().filter(|known| known.url.host() == *host && known.manifest_id.is_some())
}

fn standing(site: &SiteState, own_hosts: &OwnHosts, host: &Host) -> HostKnowledge {
    // documents that others name at an own host are no evidence about it
    let is_counted = |known: &&ResourceState| !own_hosts.contains(host) || own_hosts.names(&known.url);
    let mut manifests = manifests_at(site, host).filter(is_counted);
    match () {
        () if manifests.next().is_some() => HostKnowledge::Positive,
        () if site.status == Status::CatchAll => HostKnowledge::CatchAll,
        () if site.paths_checked.is_empty() => HostKnowledge::Unknown,
        () => HostKnowledge::Negative { visits: site.negatives_in_row },
    }
}

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
