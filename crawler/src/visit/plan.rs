//! The remaining requests of a visit, and the hosts that it has finished.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use manifest::{Discovery, Host, ManifestUrl};
use policy::plan::canary_path;
use policy::{BodyKind, NextStep, Seed, VisitEnd, VisitRules};
use serde::{Deserialize, Serialize};

use super::context::Scope;
use super::queue::Queue;
use super::task::{NamedBy, Role, Task};
use crate::seeds::fingerprint;

/// Tasks of a visit that the site itself names, with the parts of its manifests, and as many others to which its documents link: the daily
/// request budget of a site.
const TASKS_MAX: usize = 120;
/// Those of each that may be known or in the path table. A quarter stays for links that no visit followed.
pub(super) const TASKS_BEGUN_MAX: usize = TASKS_MAX / 4 * 3;
/// Known documents of the site that wait for their first request, or to be read whole, with which a visit begins.
pub(super) const KNOWN_WAITING_MAX: usize = 20;
/// Tasks of a visit that only others name. They are counted apart, so that none of the site's own is left out for them.
pub(super) const TASKS_OF_OTHERS_MAX: usize = 60;
/// Tasks of a visit to which documents link that were reached by a link. They are counted apart, so that none of the site's own documents
/// is left out for them: users of the site may have written these links.
pub(super) const TASKS_FURTHER_MAX: usize = 60;
/// Those of them to which one document links.
pub(super) const FURTHER_OF_ONE_MAX: usize = 10;
/// Requests of a visit at one host of others for links of one document: its own documents, which share the daily budget of the host,
/// have their turn too.
const LINKS_AT_OTHERS_MAX: usize = 10;
/// Links followed from one document. The document is requested whole in the next visit, which follows others.
const LINKS_FOLLOWED_MAX: usize = 50;

/// The part of a visit's progress that determines the next requests.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    queue: Queue,
    /// The task in progress with the redirects that it has followed. It is requested again when the visit is interrupted.
    #[serde(default)]
    pub(crate) current: Option<Task>,
    /// Fingerprints of every URL that is or was in the queue; rebuilt when the visit is resumed.
    #[serde(skip)]
    planned: HashSet<u64>,
    /// How many of them documents of the site named.
    #[serde(default)]
    of_documents: usize,
    /// How many further ones each document named, by fingerprint of its URL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    further: BTreeMap<String, usize>,
    /// How many of them others named.
    #[serde(default)]
    of_others: usize,
    /// How many links were followed at a host of others, by fingerprint of host and source ([`source_of`]).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    at_others: BTreeMap<String, usize>,
    rules: BTreeMap<Host, Box<VisitRules>>,
    /// Those for responses to tasks that something else than the site itself named, by fingerprint of host and source
    /// ([`source_of`]). They are at most as many as the tasks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rules_of_links: BTreeMap<String, Box<VisitRules>>,
    pub(crate) ended: BTreeMap<Host, VisitEnd>,
    /// Hosts that asked for a delay in response to what the site itself does not name: nothing more of that is added.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    limited: BTreeSet<Host>,
}

impl Plan {
    /// Adds a task after those of its rank, once per URL.
    pub(crate) fn add(&mut self, task: Task) {
        if self.is_new(&task, TASKS_BEGUN_MAX) {
            self.queue.insert_last(task);
        }
    }

    /// Adds tasks of the site itself, after its other tasks, once per URL.
    pub(crate) fn add_own(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            self.add(task);
        }
    }

    /// Adds tasks that a response leads to in their order, once per URL: those that the site itself or only others named are first of their
    /// rank, and links of its documents last. Returns those for which there was no room.
    pub(crate) fn add_next(&mut self, tasks: Vec<Task>) -> Vec<Task> {
        let (mut new, mut without_room) = (Vec::new(), Vec::new());
        for task in tasks {
            if self.planned.contains(&fingerprint_of(&task.url)) {
                self.queue.link(&task);
            } else if new.len() < LINKS_FOLLOWED_MAX && self.is_new(&task, TASKS_MAX) {
                new.push(task);
            } else {
                without_room.push(task);
            }
        }
        let is_last = |task: &Task| matches!(task.named_by, NamedBy::Document | NamedBy::Further);
        let (last, first): (Vec<Task>, Vec<Task>) = new.into_iter().partition(is_last);
        for task in last {
            self.queue.insert_last(task);
        }
        for task in first.into_iter().rev() {
            self.put_next(task);
        }
        without_room
    }

    /// Removes new links beyond [`LINKS_AT_OTHERS_MAX`] of one document at a host that is neither the site's own nor that of the document,
    /// and returns them.
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
            let followed = self.at_others.entry(source_of(task)).or_default();
            *followed += 1;
            *followed > LINKS_AT_OTHERS_MAX
        };
        tasks.extract_if(.., is_beyond).collect()
    }

    /// Adds a task, also of a URL that was requested, before those of its rank.
    pub(crate) fn put_next(&mut self, task: Task) {
        self.queue.insert_first(task);
    }

    /// Plans the URL of a task if it is new and there is room for it: up to `max` of the site itself with the parts of its manifests, and
    /// as many links of its documents.
    fn is_new(&mut self, task: &Task, max: usize) -> bool {
        if task.named_by != NamedBy::Site && self.limited.contains(&task.url.host()) {
            return false;
        }
        let is_new = self.has_room(task, max) && self.planned.insert(fingerprint_of(&task.url));
        if is_new {
            self.count(task);
        }
        is_new
    }

    fn has_room(&self, task: &Task, max: usize) -> bool {
        let further: usize = self.further.values().sum();
        match (task.role, task.named_by) {
            // The file of a claim is one request, and is never left out: a claim has to end.
            (Role::Claim, _) => true,
            (_, NamedBy::Site) | (Role::Part, NamedBy::Document) => {
                self.planned.len().saturating_sub(self.of_documents + further + self.of_others) < max
            }
            (_, NamedBy::Document) => self.of_documents < max,
            (_, NamedBy::Further) => {
                let of_one = self.further.get(&linked_from(task)).copied().unwrap_or_default();
                further < TASKS_FURTHER_MAX && of_one < FURTHER_OF_ONE_MAX
            }
            (_, NamedBy::Others) => self.of_others < TASKS_OF_OTHERS_MAX,
        }
    }

    fn count(&mut self, task: &Task) {
        match (task.role, task.named_by) {
            (_, NamedBy::Site) | (Role::Part, NamedBy::Document) => {}
            (_, NamedBy::Document) => self.of_documents += 1,
            (_, NamedBy::Further) => *self.further.entry(linked_from(task)).or_default() += 1,
            (_, NamedBy::Others) => self.of_others += 1,
        }
    }

    /// Continues after an interruption; `fetched` are the URLs that were requested before it.
    pub(crate) fn resume<'a>(&mut self, fetched: impl Iterator<Item = &'a ManifestUrl>) {
        if let Some(task) = self.current.take() {
            self.queue.push_front(task);
        }
        let queued: HashSet<u64> = self.queue.tasks().map(|task| fingerprint_of(&task.url)).collect();
        // at a host that has ended, also known documents have a result that were not in the plan
        let fetched = fetched.filter(|url| !self.ended.contains_key(&url.host())).map(fingerprint_of);
        let planned = queued.into_iter().chain(fetched).collect();
        self.planned = planned;
        // progress of earlier versions has no such counts
        let queued = |is_counted: fn(&Task) -> bool| self.queue.tasks().filter(is_counted).count();
        let of_documents = queued(|task| task.named_by == NamedBy::Document && task.role != Role::Part);
        let of_others = queued(|task| task.named_by == NamedBy::Others);
        self.of_documents = self.of_documents.max(of_documents);
        self.of_others = self.of_others.max(of_others);
    }

    /// The next task within the scope of the visit at a host that has not ended.
    pub(crate) fn next(&mut self, scope: &Scope) -> Option<Task> {
        if let Scope::Document(url) = scope {
            let is_within = |task: &Task| task.url == *url || task.role == Role::Part;
            self.queue = self.queue.tasks().filter(is_within).collect();
        }
        std::iter::from_fn(|| self.queue.pop_front()).find(|task| !self.ended.contains_key(&task.url.host()))
    }

    /// Puts back a task that was interrupted.
    pub(crate) fn put_back(&mut self, task: Task) {
        self.queue.push_front(task);
    }

    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.queue.tasks()
    }

    /// Tasks that are not done, the current one included.
    pub(crate) fn left(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// The paths that are planned at a host, for tasks of such standing.
    pub(crate) fn paths_at(&self, host: &Host, is_counted: impl Fn(NamedBy) -> bool) -> Vec<String> {
        self.queue.paths_at(host, is_counted)
    }

    /// The rules for the responses to a task at its host. What different sources name does not count together.
    pub(crate) fn rules(&mut self, task: &Task) -> &mut VisitRules {
        match task.named_by {
            NamedBy::Site => self.rules.entry(task.url.host()).or_default(),
            _ => self.rules_of_links.entry(source_of(task)).or_default(),
        }
    }

    /// Ends one host, or breaks with the end of the visit where it applies to the whole site. After a response that is no evidence
    /// about the site, only the tasks that the same source named at the host are dropped, and returned. If the host itself cannot be
    /// reached, those are dropped that others like this source named ([`NamedBy`]). A host that asks
    /// for a delay gets no further request for what the site itself does not name.
    pub(crate) fn apply(&mut self, task: &Task, next: NextStep) -> ControlFlow<VisitEnd, Vec<Task>> {
        let host = task.url.host();
        let is_evidence = task.named_by == NamedBy::Site;
        match next {
            NextStep::Continue => {}
            NextStep::RequestCanary => {
                if let Some(canary) = canary(&host) {
                    let linked_from = task.linked_from.clone();
                    self.put_next(Task { named_by: task.named_by, linked_from, ..canary });
                }
            }
            NextStep::Stop(VisitEnd::OptedOut) => return ControlFlow::Break(VisitEnd::OptedOut),
            NextStep::Stop(end) if !is_evidence => {
                // a redirect may lead to another host, which fails
                let asked = task.current().host();
                let is_limited = end == VisitEnd::RateLimited;
                if is_limited {
                    self.limited.insert(asked.clone());
                }
                let is_of_host = task.hops.is_empty() && is_end_of_host(end);
                let is_dropped = |other: &Task| {
                    let is_alike = other.named_by == task.named_by && other.url.host() == host;
                    let is_of_limited =
                        is_limited && other.named_by != NamedBy::Site && other.url.host() == asked;
                    is_of_limited || is_alike && (is_of_host || other.linked_from == task.linked_from)
                };
                return ControlFlow::Continue(self.take(is_dropped));
            }
            NextStep::Stop(VisitEnd::RateLimited) => return ControlFlow::Break(VisitEnd::RateLimited),
            NextStep::Stop(end) => self.end_host(host, end),
        }
        ControlFlow::Continue(Vec::new())
    }

    /// Drops the rest of what is planned at one host. The first end of a host counts.
    pub(crate) fn end_host(&mut self, host: Host, end: VisitEnd) {
        self.ended.entry(host).or_insert(end);
    }

    /// Removes all tasks but these, and returns them.
    pub(crate) fn keep(&mut self, is_kept: impl Fn(&Task) -> bool) -> Vec<Task> {
        let (kept, rest): (Vec<Task>, Vec<Task>) = self.queue.tasks().partition(is_kept);
        self.queue = kept.into_iter().collect();
        rest
    }

    /// Drops what is planned at these URLs.
    pub(crate) fn drop_urls(&mut self, urls: &HashSet<&ManifestUrl>) {
        if !urls.is_empty() {
            self.queue = self.queue.tasks().filter(|task| !urls.contains(&task.url)).collect();
        }
    }

    /// Removes tasks that the site itself does not name, and returns them.
    pub(crate) fn take(&mut self, is_taken: impl Fn(&Task) -> bool) -> Vec<Task> {
        self.queue.take(is_taken)
    }
}

/// Whether such an end is the same for every path of a host: no connection, or no budget.
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

/// A fingerprint of what links to the URL of a task. It is short, since it is written with each request.
fn linked_from(task: &Task) -> String {
    let from = task.linked_from.as_deref().map(ManifestUrl::as_str).unwrap_or_default();
    format!("{:016x}", fingerprint(from))
}

/// A fingerprint of the host of a task and of what named its URL: a document, or whatever else is named alike. It is short, since it
/// is written with each request.
fn source_of(task: &Task) -> String {
    let from = task.linked_from.as_deref().map(ManifestUrl::as_str).unwrap_or_default();
    format!("{:016x}", fingerprint(&format!("{:?} {} {from}", task.named_by, task.url.host())))
}

/// The task that finds out whether a host answers every path.
fn canary(host: &Host) -> Option<Task> {
    let path = canary_path(Seed::of(host.as_str()));
    let url = ManifestUrl::on_host(host, &path).ok()?;
    Some(Task { role: Role::Canary, ..Task::new(url, BodyKind::Other, Discovery::Root) })
}

fn fingerprint_of(url: &ManifestUrl) -> u64 {
    fingerprint(url.as_url().as_str())
}

#[cfg(test)]
mod tests {
    use policy::FetchOutcome;

    use super::*;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn task(text: &str) -> Task {
        Task::new(url(text), BodyKind::Manifest, Discovery::Root)
    }

    fn by_others(text: &str) -> Task {
        Task { named_by: NamedBy::Others, ..task(text) }
    }

    fn by_document(text: &str) -> Task {
        Task { named_by: NamedBy::Document, ..task(text) }
    }

    fn rest(mut plan: Plan) -> Vec<String> {
        std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.url.to_string()).collect()
    }

    #[test]
    fn plans_each_url_once_and_links_first() {
        let mut plan = Plan::default();
        plan.add(task("https://a.example/1"));
        plan.add(task("https://a.example/2"));
        plan.add_next(vec![
            task("https://a.example/3"),
            task("https://a.example/2"),
            task("https://a.example/4"),
        ]);
        let urls = [3, 4, 1, 2].map(|number| format!("https://a.example/{number}"));
        assert_eq!(rest(plan), urls);
    }

    #[test]
    fn plans_at_most_the_daily_budget_of_a_site() {
        let mut plan = Plan::default();
        let tasks = |path: &str| {
            let numbered = (0..TASKS_MAX).map(|number| task(&format!("https://a.example/{path}/{number}")));
            numbered.collect::<Vec<_>>()
        };
        for task in tasks("known") {
            plan.add(task);
        }
        plan.add_own(tasks("row"));
        assert_eq!(plan.tasks().count(), TASKS_BEGUN_MAX);
        assert_eq!(plan.add_next(tasks("new")).len(), TASKS_BEGUN_MAX, "a quarter is for new links");
        assert_eq!(rest(plan).len(), TASKS_MAX);
    }

    #[test]
    fn tasks_of_others_leave_room_for_those_of_the_site() {
        let mut plan = Plan::default();
        for number in 0..200 {
            plan.add(by_others(&format!("https://t.a.example/{number}")));
        }
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        plan.resume([].iter());
        let more = by_others("https://t.a.example/more");
        assert_eq!(plan.add_next(vec![more.clone()]), [more]);
        assert_eq!(plan.add_next(vec![task("https://a.example/linked")]), []);
        let own = |number| task(&format!("https://a.example/{number}"));
        plan.add_own((1..2 * TASKS_MAX).map(own).collect());
        let linked: Vec<Task> = (TASKS_BEGUN_MAX..TASKS_MAX).map(own).collect();
        assert_eq!(plan.add_next(linked), []);
        let more = task("https://a.example/more");
        assert_eq!(plan.add_next(vec![more.clone()]), [more]);
        let urls = rest(plan);
        assert_eq!((urls.len(), urls[0].as_str()), (TASKS_MAX + TASKS_OF_OTHERS_MAX, "https://a.example/90"));
    }

    #[test]
    fn links_leave_room_for_what_the_site_itself_names_and_further_links_for_those() {
        let linked = |named_by, from: &str, role, path: String| Task {
            named_by,
            role,
            linked_from: Some(Box::new(url(&format!("https://a.example/{from}")))),
            ..task(&format!("https://a.example/{path}"))
        };
        let of_upload = |upload: &str, count| {
            let paths = (0..count).map(|number| format!("{upload}/{number}"));
            paths.map(|path| linked(NamedBy::Further, upload, Role::Manifest, path)).collect::<Vec<_>>()
        };
        let mut plan = Plan::default();
        for number in 0..20 {
            let without_room = plan.add_next(of_upload(&format!("u/{number}"), 200)).len();
            let followed =
                if number < TASKS_FURTHER_MAX / FURTHER_OF_ONE_MAX { FURTHER_OF_ONE_MAX } else { 0 };
            assert_eq!(without_room, 200 - followed, "upload {number}");
        }
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        plan.resume([].iter());
        assert_eq!(plan.add_next(of_upload("u/20", 1)).len(), 1, "also after an interruption");
        let link = |number| linked(NamedBy::Document, "agents.json", Role::Manifest, format!("x/{number}"));
        for begin in (0..TASKS_MAX).step_by(LINKS_FOLLOWED_MAX) {
            let links = (begin..TASKS_MAX.min(begin + LINKS_FOLLOWED_MAX)).map(link).collect();
            assert_eq!(plan.add_next(links), [], "links from {begin}");
        }
        assert_eq!(plan.add_next(vec![link(TASKS_MAX)]).len(), 1);
        let part = linked(NamedBy::Document, "agent.json", Role::Part, "openapi.json".to_owned());
        assert_eq!(plan.add_next(vec![part]), []);
        plan.add_own(
            (1..TASKS_BEGUN_MAX).map(|number| task(&format!("https://a.example/{number}"))).collect(),
        );
        let ranks: Vec<u8> = std::iter::from_fn(|| plan.next(&Scope::Site)).map(|task| task.rank()).collect();
        let count = |rank: u8| ranks.iter().map(|of| usize::from(*of == rank)).sum::<usize>();
        assert_eq!([0, 1, 2, 3].map(count), [TASKS_BEGUN_MAX - 1, 1, TASKS_MAX, TASKS_FURTHER_MAX]);
        assert!(ranks.is_sorted(), "{ranks:?}");
    }

    #[test]
    fn one_document_has_ten_requests_at_a_host_of_others() {
        let is_own = |host: &Host| host.as_str() == "a.example";
        let links = |from: &str, named_by, at: &str, numbers: std::ops::Range<usize>| {
            let linked = numbers.map(|number| Task {
                named_by,
                linked_from: Some(Box::new(url(from))),
                ..task(&format!("https://{at}/{number:03}"))
            });
            linked.collect::<Vec<_>>()
        };
        let (catalog, card) = ("https://a.example/agents.json", "https://t1.a.example/card.json");
        for (from, named_by, at, expected) in [
            (catalog, NamedBy::Document, "t1.a.example", LINKS_AT_OTHERS_MAX),
            (card, NamedBy::Further, "t2.a.example", LINKS_AT_OTHERS_MAX),
            (card, NamedBy::Others, "t2.a.example", LINKS_AT_OTHERS_MAX),
            (card, NamedBy::Others, "t1.a.example", 30),
            (catalog, NamedBy::Document, "a.example", 30),
        ] {
            let mut plan = Plan::default();
            let mut tasks = links(from, named_by, at, 0..30);
            let beyond = plan.take_beyond_host(&mut tasks, is_own);
            assert_eq!([tasks.len(), beyond.len()], [expected, 30 - expected], "{from} to {at}");
            plan.add_next(tasks.clone());
            let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
            plan.resume([].iter());
            assert_eq!(plan.take_beyond_host(&mut tasks, is_own), [], "they are planned");
            let mut more = links(from, named_by, at, 40..41);
            assert_eq!(plan.take_beyond_host(&mut more, is_own).is_empty(), expected == 30, "{from} to {at}");
            let mut of_another = links("https://a.example/x.json", named_by, at, 50..51);
            assert_eq!(plan.take_beyond_host(&mut of_another, is_own), []);
        }
    }

    #[test]
    fn results_without_a_request_at_a_host_that_has_ended_take_no_room_after_an_interruption() {
        let mut plan = Plan::default();
        plan.end_host(Host::parse("b.a.example").unwrap(), VisitEnd::RobotsDenied);
        let denied: Vec<ManifestUrl> =
            (0..TASKS_MAX).map(|number| url(&format!("https://b.a.example/{number}"))).collect();
        plan.resume(denied.iter());
        assert_eq!(plan.add_next(vec![task("https://a.example/linked")]), []);
    }

    #[test]
    fn says_where_links_of_a_document_find_no_room() {
        let links = |numbers: std::ops::Range<usize>| {
            numbers.map(|number| task(&format!("https://a.example/{number:03}"))).collect::<Vec<_>>()
        };
        let mut plan = Plan::default();
        let last = links(LINKS_FOLLOWED_MAX..LINKS_FOLLOWED_MAX + 1);
        assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)), last);
        assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX)), [], "they are planned");
        assert_eq!(plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)), [], "the next visit has room for it");
        assert_eq!(rest(plan).len(), LINKS_FOLLOWED_MAX + 1);
    }

    #[test]
    fn a_link_of_the_site_leaves_a_url_of_the_operators_list_as_it_is() {
        let mut plan = Plan::default();
        let listed = Task { discovery: Discovery::Listed, ..by_others("https://a.example/x.json") };
        plan.add(listed.clone());
        plan.add_next(vec![Task {
            discovery: Discovery::CatalogEntry,
            linked_from: Some(Box::new(url("https://a.example/agent.json"))),
            ..task("https://a.example/x.json")
        }]);
        assert_eq!(plan.tasks().collect::<Vec<_>>(), [listed]);
    }

    #[test]
    fn resumes_with_the_interrupted_task_and_does_not_repeat_fetched_urls() {
        let mut plan = Plan::default();
        plan.add(task("https://a.example/1"));
        plan.add(task("https://a.example/2"));
        plan.current = plan.next(&Scope::Site);
        let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        plan.resume([url("https://a.example/0")].iter());
        plan.add(task("https://a.example/0"));
        assert_eq!(rest(plan), ["https://a.example/1", "https://a.example/2"]);
    }

    #[test]
    fn skips_hosts_that_have_ended() {
        let mut plan = Plan::default();
        for text in ["https://a.example/1", "https://a.example/2", "https://b.a.example/1"] {
            plan.add(task(text));
        }
        let first = plan.next(&Scope::Site).unwrap();
        assert!(plan.apply(&first, NextStep::Stop(VisitEnd::Blocked)).is_continue());
        assert_eq!(rest(plan), ["https://b.a.example/1"]);
    }

    #[test]
    fn ends_the_visit_when_the_site_asks_for_a_delay_or_opts_out() {
        let task = task("https://a.example/1");
        for end in [VisitEnd::RateLimited, VisitEnd::OptedOut] {
            assert_eq!(Plan::default().apply(&task, NextStep::Stop(end)), ControlFlow::Break(end));
        }
    }

    #[test]
    fn failures_of_what_the_site_itself_does_not_name_drop_what_was_named_in_the_same_way_at_the_host() {
        let urls = ["own", "linked", "theirs"].map(|path| format!("https://a.example/{path}"));
        let elsewhere = ["linked", "theirs"].map(|path| format!("https://b.a.example/{path}"));
        let [own, linked, theirs] = &urls;
        let tasks = || {
            [
                task(own),
                by_document(linked),
                by_document(&elsewhere[0]),
                by_others(theirs),
                by_others(&elsewhere[1]),
            ]
        };
        for (failed, dropped) in [
            (by_document("https://a.example/failed"), by_document(linked)),
            (by_others("https://a.example/failed"), by_others(theirs)),
        ] {
            for end in [VisitEnd::Blocked, VisitEnd::ServerErrors, VisitEnd::CatchAll] {
                let mut plan = Plan::default();
                for task in tasks() {
                    plan.add(task);
                }
                let applied = plan.apply(&failed, NextStep::Stop(end));
                assert_eq!(applied, ControlFlow::Continue(vec![dropped.clone()]), "{end}");
                let kept: Vec<Task> = tasks().into_iter().filter(|task| *task != dropped).collect();
                assert_eq!(plan.tasks().collect::<Vec<_>>(), kept, "{end}");
                assert!(plan.ended.is_empty(), "{end}");
            }
            let opted_out = Plan::default().apply(&failed, NextStep::Stop(VisitEnd::OptedOut));
            assert_eq!(opted_out, ControlFlow::Break(VisitEnd::OptedOut));
        }
    }

    #[test]
    fn failing_links_of_one_document_skip_no_links_of_another() {
        let from = |document: &str, task: Task| Task {
            linked_from: Some(Box::new(url(&format!("https://a.example/{document}")))),
            ..task
        };
        let at = |path: &str| format!("https://a.example/{path}");
        for named in [by_document as fn(&str) -> Task, by_others] {
            let upload = from("u/upload.json", named(&at("upload")));
            let catalog = from("agents.json", named(&at("catalog")));
            let fail = |plan: &mut Plan, task: &Task| {
                plan.rules(task).observe(FetchOutcome::ServerError, task.body, None)
            };
            let mut plan = Plan::default();
            assert_eq!([fail(&mut plan, &upload), fail(&mut plan, &catalog)], [NextStep::Continue; 2]);
            assert_eq!(fail(&mut plan, &upload), NextStep::Stop(VisitEnd::ServerErrors));
            let dropped_after = |end: VisitEnd, failed: &Task| {
                let mut plan = Plan::default();
                plan.add(upload.clone());
                plan.add(catalog.clone());
                match plan.apply(failed, NextStep::Stop(end)) {
                    ControlFlow::Continue(dropped) => dropped,
                    ControlFlow::Break(end) => panic!("{end}"),
                }
            };
            let failed = from("u/upload.json", named(&at("failed")));
            for end in [VisitEnd::Blocked, VisitEnd::ServerErrors, VisitEnd::CatchAll] {
                assert_eq!(dropped_after(end, &failed), std::slice::from_ref(&upload), "{end}");
            }
            let both = [upload.clone(), catalog.clone()];
            assert_eq!(dropped_after(VisitEnd::Unreachable, &failed), both, "no link reaches the host");
            let elsewhere = Task { hops: vec![url("https://t.a.example/x")], ..failed };
            let dropped = dropped_after(VisitEnd::Unreachable, &elsewhere);
            assert_eq!(dropped, std::slice::from_ref(&upload), "the target of a redirect");
        }
    }

    #[test]
    fn a_host_that_asks_for_a_delay_is_left_except_for_what_the_site_itself_names() {
        let own = task("https://a.example/own");
        let [linked, theirs] =
            [by_document("https://a.example/linked"), by_others("https://a.example/theirs")];
        let elsewhere = by_others("https://b.a.example/theirs");
        for failed in [by_document("https://a.example/failed"), by_others("https://a.example/failed")] {
            let mut plan = Plan::default();
            for task in [&own, &linked, &theirs, &elsewhere] {
                plan.add(task.clone());
            }
            let applied = plan.apply(&failed, NextStep::Stop(VisitEnd::RateLimited));
            assert_eq!(applied, ControlFlow::Continue(vec![linked.clone(), theirs.clone()]));
            let mut plan: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
            let more = by_document("https://a.example/more");
            assert_eq!(plan.add_next(vec![more.clone()]), [more], "the next visit follows it");
            assert_eq!(plan.add_next(vec![by_document("https://b.a.example/more")]), []);
            let left: Vec<String> = plan.tasks().map(|task| task.url.to_string()).collect();
            assert_eq!(left, [own.url.as_str(), "https://b.a.example/more", elsewhere.url.as_str()]);
        }
    }

    #[test]
    fn links_of_what_others_named_are_first_among_the_tasks_of_others() {
        let mut plan = Plan::default();
        for task in [task("https://a.example/own"), by_others("https://a.example/theirs")] {
            plan.add(task);
        }
        let linked = |text: &str| Task {
            discovery: Discovery::CatalogEntry,
            linked_from: Some(Box::new(url("https://a.example/u/upload.json"))),
            ..by_others(text)
        };
        let links = ["https://a.example/1", "https://a.example/theirs", "https://a.example/2"];
        plan.add_next(links.map(linked).into());
        let tasks: Vec<Task> = plan.tasks().collect();
        assert_eq!(tasks[3], by_others("https://a.example/theirs"), "their link changes nothing");
        let urls = ["own", "1", "2", "theirs"].map(|path| format!("https://a.example/{path}"));
        assert_eq!(rest(plan), urls);
    }

    #[test]
    fn responses_to_urls_that_were_named_in_different_ways_are_counted_by_themselves() {
        let (own, theirs) = (task("https://a.example/own"), by_others("https://a.example/theirs"));
        let linked = by_document("https://a.example/linked");
        let mut plan = Plan::default();
        let mut fail = |task: &Task| plan.rules(task).observe(FetchOutcome::ServerError, task.body, None);
        assert_eq!([fail(&theirs), fail(&linked), fail(&own)], [NextStep::Continue; 3]);
        assert_eq!(fail(&own), NextStep::Stop(VisitEnd::ServerErrors));
        let mut read: Plan = serde_json::from_value(serde_json::to_value(&plan).unwrap()).unwrap();
        let failed = read.rules(&theirs).observe(FetchOutcome::ServerError, theirs.body, None);
        assert_eq!(failed, NextStep::Stop(VisitEnd::ServerErrors), "also after an interruption");
        let failed = read.rules(&linked).observe(FetchOutcome::ServerError, linked.body, None);
        assert_eq!(failed, NextStep::Stop(VisitEnd::ServerErrors), "likewise");
    }

    #[test]
    fn a_link_of_the_site_is_recorded_at_a_queued_url_that_others_named() {
        let mut plan = Plan::default();
        plan.add(task("https://a.example/own"));
        plan.add(by_others("https://a.example/theirs"));
        let linked = |task: Task| Task {
            discovery: Discovery::CatalogEntry,
            linked_from: Some(Box::new(url("https://a.example/agent.json"))),
            ..task
        };
        plan.add_next(
            ["https://a.example/own", "https://a.example/theirs"].map(|text| linked(task(text))).into(),
        );
        let tasks: Vec<Task> = std::iter::from_fn(|| plan.next(&Scope::Site)).collect();
        let theirs = linked(by_others("https://a.example/theirs"));
        assert_eq!(tasks, [task("https://a.example/own"), theirs], "in its place");
    }

    #[test]
    fn adds_the_canary_path_to_the_plan() {
        let mut plan = Plan::default();
        assert!(plan.apply(&task("https://a.example/1"), NextStep::RequestCanary).is_continue());
        let canary = plan.next(&Scope::Site).unwrap();
        assert!(canary.url.path().starts_with("/.well-known/agentdex-canary-"), "{}", canary.url);
        assert_eq!((canary.role, canary.named_by), (Role::Canary, NamedBy::Site));
        for task in [by_document("https://b.a.example/1"), by_others("https://b.a.example/1")] {
            let task = Task { linked_from: Some(Box::new(url("https://a.example/agents.json"))), ..task };
            let mut plan = Plan::default();
            assert!(plan.apply(&task, NextStep::RequestCanary).is_continue());
            let canary = plan.next(&Scope::Site).unwrap();
            assert_eq!((canary.named_by, canary.linked_from), (task.named_by, task.linked_from));
        }
    }

    #[test]
    fn a_visit_to_one_document_requests_it_and_its_parts() {
        let mut plan = Plan::default();
        plan.add(task("https://a.example/1"));
        plan.add(task("https://a.example/2"));
        plan.add(Task { role: Role::Part, ..task("https://a.example/part") });
        let scope = Scope::Document(url("https://a.example/2"));
        let urls: Vec<String> =
            std::iter::from_fn(|| plan.next(&scope)).map(|task| task.url.to_string()).collect();
        assert_eq!(urls, ["https://a.example/2", "https://a.example/part"]);
    }
}
