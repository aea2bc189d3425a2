//! Manages the remaining requests of a visit, and the hosts at which its requests have ended.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use manifest::{Discovery, Host, ManifestUrl};
use policy::plan::canary_path;
use policy::{BodyKind, NextStep, Seed, VisitEnd, VisitRules};
use serde::{Deserialize, Serialize};

use super::context::Scope;
use super::queue::Queue;
use super::room::{Counts, UrlLimits};
use super::task::{NamedBy, Role, Task, Turn};
use crate::seeds::fingerprint;

/// Maximum number of requests of a visit at one host that is not the site's own. It applies to each document that the site itself publishes
/// and to all other documents together, and separately to known and to new links. The limit exists because the documents of the host itself
/// share the daily budget of the host.
pub(super) const LINKS_AT_OTHERS_MAX: usize = 10;
/// Maximum number of links followed from one document. The next visit requests the document without validators and follows the next links.
const LINKS_FOLLOWED_MAX: usize = 50;

/// The part of a visit's progress that determines the next requests.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    queue: Queue,
    /// The number of completed turns of the queue, plus an offset that differs from visit to visit. `None` if this visit has no turns. Then
    /// it requests all known documents before new URLs, because new URLs may fail and end all requests to their host.
    #[serde(default)]
    turn: Option<usize>,
    /// The task in progress with the redirects that it has followed. It is requested again when the visit is interrupted.
    #[serde(default)]
    pub(crate) current: Option<Task>,
    /// Fingerprints of all URLs that are or were in the queue. Rebuilt when the visit is resumed.
    #[serde(skip)]
    planned: HashSet<u64>,
    /// Number of URLs that were ever queued, by the source that named them.
    #[serde(default, skip_serializing_if = "Counts::is_empty")]
    counts: Counts,
    /// How many links to a third-party host were followed, by fingerprint of host and source. The source is a document that the site itself
    /// publishes, or all other documents together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    at_others: BTreeMap<String, usize>,
    /// The rules for responses, by fingerprint of host and source ([`source_of`]). There are at most as many as tasks.
    rules: BTreeMap<String, Box<VisitRules>>,
    pub(crate) ended: BTreeMap<Host, VisitEnd>,
    /// Hosts that asked for a delay in response to a URL that the site itself does not name. No more such URLs are added at these hosts.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    limited: BTreeSet<Host>,
}

impl Plan {
    /// An empty plan for a visit after `visits` earlier ones. Every second visit has turns.
    pub(crate) fn after_visits(visits: u32) -> Self {
        let has_turns = !visits.is_multiple_of(2);
        Self { turn: has_turns.then(|| usize::try_from(visits / 2).unwrap_or_default()), ..Self::default() }
    }

    /// Adds a task after the others of its rank, unless its URL was already planned.
    pub(crate) fn add(&mut self, task: Task) {
        if self.is_new(&task, UrlLimits::of(task.named_by).begun) {
            self.queue.insert_last(task);
        }
    }

    /// Adds tasks of the site itself after its other tasks, unless their URLs were already planned.
    pub(crate) fn add_own(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            self.add(task);
        }
    }

    /// Adds the tasks of a response in their order, unless their URLs were already planned. Parts, and tasks that the site itself or only
    /// others named, are inserted before the others of their rank; links of the site's documents after them. Returns the tasks beyond the
    /// limits.
    pub(crate) fn add_next(&mut self, tasks: Vec<Task>) -> Vec<Task> {
        let (mut new, mut without_room) = (Vec::new(), Vec::new());
        for task in tasks {
            if self.planned.contains(&fingerprint_of(&task.url)) {
                self.queue.link(&task);
            } else if new.len() < LINKS_FOLLOWED_MAX && self.is_new(&task, UrlLimits::of(task.named_by).tasks)
            {
                new.push(task);
            } else {
                without_room.push(task);
            }
        }
        let is_last = |task: &Task| {
            task.role != Role::Part && matches!(task.named_by, NamedBy::Document | NamedBy::Further)
        };
        let (last, first): (Vec<Task>, Vec<Task>) = new.into_iter().partition(is_last);
        for task in last {
            self.queue.insert_last(task);
        }
        for task in first.into_iter().rev() {
            self.put_next(task);
        }
        without_room
    }

    /// Removes new links beyond [`LINKS_AT_OTHERS_MAX`] at a host that is neither the site's own nor that of their document, and returns
    /// them.
    pub(crate) fn take_beyond_host(
        &mut self,
        tasks: &mut Vec<Task>,
        is_own: impl Fn(&Host) -> bool,
    ) -> Vec<Task> {
        let is_beyond = |task: &mut Task| {
            let host = task.url.host();
            let is_at_others = task.linked_from.as_deref().is_some_and(|from| from.host() != host);
            if !is_at_others || is_own(&host) || self.planned.contains(&fingerprint_of(&task.url)) {
                return false;
            }
            let source = match task.named_by {
                NamedBy::Site | NamedBy::Document => source_of(task),
                NamedBy::Further | NamedBy::Others => format!("{:016x}", fingerprint(host.as_str())),
            };
            let followed = self.at_others.entry(source).or_default();
            *followed += 1;
            *followed > LINKS_AT_OTHERS_MAX
        };
        tasks.extract_if(.., is_beyond).collect()
    }

    /// Adds a task before the others of its rank, even if its URL was already requested.
    pub(crate) fn put_next(&mut self, task: Task) {
        self.queue.insert_first(task);
    }

    /// Adds a task after the others of its rank, even if its URL was already requested.
    pub(crate) fn put_last(&mut self, task: Task) {
        self.queue.insert_last(task);
    }

    /// Whether known documents and new URLs take turns in this visit.
    pub(crate) const fn has_turns(&self) -> bool {
        self.turn.is_some()
    }

    /// Marks the URL of a task as planned, and returns whether it is new and fewer than `max` tasks of the same [`NamedBy`] were planned.
    fn is_new(&mut self, task: &Task, max: usize) -> bool {
        if task.named_by != NamedBy::Site && self.limited.contains(&task.url.host()) {
            return false;
        }
        let is_new = self.counts.has_room(task, max) && self.planned.insert(fingerprint_of(&task.url));
        if is_new {
            self.counts.add(task);
        }
        is_new
    }

    /// Continues after an interruption; `fetched` are the URLs that were requested before it.
    pub(crate) fn resume<'a>(&mut self, fetched: impl Iterator<Item = &'a ManifestUrl>) {
        if let Some(task) = self.current.take() {
            self.put_back(task);
        }
        let queued: HashSet<u64> = self.queue.tasks().map(|task| fingerprint_of(&task.url)).collect();
        // hosts that have ended are left out, because documents that were never planned there also have results
        let fetched = fetched.filter(|url| !self.ended.contains_key(&url.host())).map(fingerprint_of);
        let planned = queued.into_iter().chain(fetched).collect();
        self.planned = planned;
        // progress of earlier versions has no counts
        if self.counts.is_empty() {
            self.queue.tasks().for_each(|task| self.counts.add(&task));
        }
    }

    /// The next task within the scope of the visit at a host that has not ended.
    pub(crate) fn next(&mut self, scope: &Scope) -> Option<Task> {
        if let Scope::Document(url) = scope {
            let is_within = |task: &Task| task.url == *url || task.role == Role::Part;
            self.queue = self.queue.tasks().filter(is_within).collect();
        }
        let Self { queue, turn, ended, .. } = self;
        std::iter::from_fn(|| queue.pop_next(turn)).find(|task| !ended.contains_key(&task.url.host()))
    }

    /// Puts a task that was interrupted back to the front of the queue.
    pub(crate) fn put_back(&mut self, task: Task) {
        self.queue.push_front(Task { turn: Turn::Begun, ..task });
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.queue.tasks()
    }

    /// The number of tasks that are not done, including the current one.
    pub(crate) fn left(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// The paths of the planned tasks at a host for which `is_counted` returns true.
    pub(crate) fn paths_at(&self, host: &Host, is_counted: impl Fn(NamedBy) -> bool) -> Vec<String> {
        self.queue.paths_at(host, is_counted)
    }

    /// The rules for the responses to a task at its host. Tasks of different sources are counted separately.
    pub(crate) fn rules(&mut self, task: &Task) -> &mut VisitRules {
        self.rules.entry(source_of(task)).or_default()
    }

    /// Ends the requests to one host, or breaks with the end of the visit if it applies to the whole site. If the response is not evidence
    /// about the site, only the tasks at the host that the same source named are dropped and returned. If the host itself cannot be
    /// reached, all tasks of the same [`NamedBy`] at the host are dropped. A host that asks for a delay gets no further requests for URLs
    /// that the site itself does not name. If the response was to a URL that the site names, the host gets no further requests at all.
    pub(crate) fn apply(&mut self, task: &Task, next: NextStep) -> ControlFlow<VisitEnd, Vec<Task>> {
        let host = task.url.host();
        let is_evidence = task.named_by == NamedBy::Site;
        match next {
            NextStep::Continue => {}
            NextStep::RequestCanary => {
                if let Some(canary) = canary(&host) {
                    let linked_from = task.linked_from.clone();
                    self.put_next(Task { named_by: task.named_by, linked_from, turn: Turn::Begun, ..canary });
                }
            }
            NextStep::Stop(VisitEnd::OptedOut) => return ControlFlow::Break(VisitEnd::OptedOut),
            NextStep::Stop(end) if !is_evidence => {
                // after a redirect, the host that failed may be another one
                let asked = task.current().host();
                let is_limited = end == VisitEnd::RateLimited;
                if is_limited {
                    self.limited.insert(asked.clone());
                }
                let is_of_host = task.hops.is_empty() && is_end_of_host(end);
                let is_dropped = |other: &Task| {
                    let is_same_naming = other.named_by == task.named_by && other.url.host() == host;
                    let is_of_limited =
                        is_limited && other.named_by != NamedBy::Site && other.url.host() == asked;
                    is_of_limited || is_same_naming && (is_of_host || other.linked_from == task.linked_from)
                };
                return ControlFlow::Continue(self.take(is_dropped));
            }
            NextStep::Stop(end) => self.end_host(host, end),
        }
        ControlFlow::Continue(Vec::new())
    }

    /// Drops the other tasks at one host. If the host has already ended, its first end is kept.
    pub(crate) fn end_host(&mut self, host: Host, end: VisitEnd) {
        self.ended.entry(host).or_insert(end);
    }

    /// Removes the tasks for which `is_kept` returns false, and returns them.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&Task) -> bool) -> Vec<Task> {
        let (kept, rest): (Vec<Task>, Vec<Task>) = self.queue.tasks().partition(is_kept);
        self.queue = kept.into_iter().collect();
        rest
    }

    /// Drops the tasks that have these URLs.
    pub(crate) fn drop_urls(&mut self, urls: &HashSet<&ManifestUrl>) {
        if !urls.is_empty() {
            self.queue = self.queue.tasks().filter(|task| !urls.contains(&task.url)).collect();
        }
    }

    /// Removes and returns the tasks that the site itself does not name and for which `is_taken` returns true.
    pub(crate) fn take(&mut self, is_taken: impl Fn(&Task) -> bool) -> Vec<Task> {
        self.queue.take(is_taken)
    }
}

/// Whether an end applies to every path of a host, because there is no connection or the budget is used up.
const fn is_end_of_host(end: VisitEnd) -> bool {
    matches!(
        end,
        VisitEnd::DnsFailed
            | VisitEnd::Unreachable
            | VisitEnd::TlsFailed
            | VisitEnd::AddressRefused
            | VisitEnd::OverBudget
    )
}

/// A fingerprint of the host of a task and of the source that named its URL: the site itself, a document, or all other sources with the
/// same [`NamedBy`]. It is short, because it is written with each request.
fn source_of(task: &Task) -> String {
    let from = task.linked_from.as_deref().filter(|_| task.named_by != NamedBy::Site);
    let from = from.map(ManifestUrl::as_str).unwrap_or_default();
    format!("{:016x}", fingerprint(&format!("{:?} {} {from}", task.named_by, task.url.host())))
}

/// The task that shows whether a host answers every path.
fn canary(host: &Host) -> Option<Task> {
    let path = canary_path(Seed::of(host.as_str()));
    let url = ManifestUrl::on_host(host, &path).ok()?;
    Some(Task { role: Role::Canary, ..Task::new(url, BodyKind::Other, Discovery::Root) })
}

fn fingerprint_of(url: &ManifestUrl) -> u64 {
    fingerprint(url.as_url().as_str())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
