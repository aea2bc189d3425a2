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

/// Tasks of a visit that the site names, including those that links add: the daily request budget of a site.
const TASKS_MAX: usize = 120;
/// Tasks of a visit that only others name. They are counted apart, so that none of the site's own is left out for them.
pub(super) const TASKS_OF_OTHERS_MAX: usize = 60;
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
    /// How many of them others named.
    #[serde(default)]
    of_others: usize,
    rules: BTreeMap<Host, Box<VisitRules>>,
    /// Those for responses to tasks that documents of the site named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rules_of_documents: BTreeMap<Host, Box<VisitRules>>,
    /// Those for responses to tasks that others named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    rules_of_others: BTreeMap<Host, Box<VisitRules>>,
    pub(crate) ended: BTreeMap<Host, VisitEnd>,
    /// Hosts that asked for a delay in response to what the site itself does not name: nothing more of that is added.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    limited: BTreeSet<Host>,
}

impl Plan {
    /// Adds a task at the end, once per URL.
    pub(crate) fn add(&mut self, task: Task) {
        if self.is_new(&task) {
            self.queue.push_back(task);
        }
    }

    /// Adds tasks of the site itself, after its other tasks, once per URL.
    pub(crate) fn add_own(&mut self, tasks: Vec<Task>) {
        for task in tasks {
            if self.is_new(&task) {
                self.queue.insert_before_others(task);
            }
        }
    }

    /// Adds tasks that a response leads to at the front in their order, once per URL. Those that only others named are first among
    /// the tasks of others. Returns whether there was room for all of them.
    pub(crate) fn add_next(&mut self, tasks: Vec<Task>) -> bool {
        let (mut new, mut has_room) = (Vec::new(), true);
        for task in tasks {
            if self.planned.contains(&fingerprint_of(&task.url)) {
                if task.named_by != NamedBy::Others && task.linked_from.is_some() {
                    self.queue.link(&task);
                }
            } else if new.len() < LINKS_FOLLOWED_MAX && self.is_new(&task) {
                new.push(task);
            } else {
                has_room = false;
            }
        }
        for task in new.into_iter().rev() {
            self.put_next(task);
        }
        has_room
    }

    /// Adds a task, also of a URL that was requested, in the place that its standing gives it.
    pub(crate) fn put_next(&mut self, task: Task) {
        match task.named_by {
            NamedBy::Site | NamedBy::Document => self.queue.push_front(task),
            NamedBy::Others => self.queue.insert_first_of_others(task),
        }
    }

    fn is_new(&mut self, task: &Task) -> bool {
        if task.named_by != NamedBy::Site && self.limited.contains(&task.url.host()) {
            return false;
        }
        let has_room = match (task.role, task.named_by) {
            // The file of a claim is one request, and is never left out: a claim has to end.
            (Role::Claim, _) => true,
            (_, NamedBy::Site | NamedBy::Document) => {
                self.planned.len().saturating_sub(self.of_others) < TASKS_MAX
            }
            (_, NamedBy::Others) => self.of_others < TASKS_OF_OTHERS_MAX,
        };
        let is_new = has_room && self.planned.insert(fingerprint_of(&task.url));
        self.of_others += usize::from(is_new && task.named_by == NamedBy::Others);
        is_new
    }

    /// Continues after an interruption; `fetched` are the URLs that were requested before it.
    pub(crate) fn resume<'a>(&mut self, fetched: impl Iterator<Item = &'a ManifestUrl>) {
        if let Some(task) = self.current.take() {
            self.queue.push_front(task);
        }
        let queued: HashSet<u64> = self.queue.tasks().map(|task| fingerprint_of(&task.url)).collect();
        self.planned = queued.into_iter().chain(fetched.map(fingerprint_of)).collect();
        let of_others = self.queue.tasks().filter(|task| task.named_by == NamedBy::Others).count();
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

    /// The paths that are planned at a host.
    pub(crate) fn paths_at(&self, host: &Host) -> Vec<String> {
        self.queue.paths_at(host)
    }

    /// The rules for the responses to a task at its host. What was named in different ways does not count together.
    pub(crate) fn rules(&mut self, task: &Task) -> &mut VisitRules {
        let rules = match task.named_by {
            NamedBy::Site => &mut self.rules,
            NamedBy::Document => &mut self.rules_of_documents,
            NamedBy::Others => &mut self.rules_of_others,
        };
        rules.entry(task.url.host()).or_default()
    }

    /// Ends one host, or breaks with the end of the visit where it applies to the whole site. After a response that is no evidence
    /// about the site, only the tasks that were named in the same way at the host are dropped ([`NamedBy`]), and returned. A host that asks
    /// for a delay gets no further request for what the site itself does not name.
    pub(crate) fn apply(&mut self, task: &Task, next: NextStep) -> ControlFlow<VisitEnd, Vec<Task>> {
        let host = task.url.host();
        let is_evidence = task.named_by == NamedBy::Site;
        match next {
            NextStep::Continue => {}
            NextStep::RequestCanary => {
                if let Some(canary) = canary(&host) {
                    self.put_next(Task { named_by: task.named_by, ..canary });
                }
            }
            NextStep::Stop(VisitEnd::OptedOut) => return ControlFlow::Break(VisitEnd::OptedOut),
            NextStep::Stop(_) if !is_evidence => {
                let is_limited = next == NextStep::Stop(VisitEnd::RateLimited);
                if is_limited {
                    self.limited.insert(host.clone());
                }
                let is_like = |other: &Task| other.named_by == task.named_by && !is_limited;
                let is_dropped = |other: &Task| {
                    other.url.host() == host
                        && (is_like(other) || is_limited && other.named_by != NamedBy::Site)
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

    /// Removes tasks that the site itself does not name, and returns them.
    pub(crate) fn take(&mut self, is_taken: impl Fn(&Task) -> bool) -> Vec<Task> {
        self.queue.take(is_taken)
    }
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
        for number in 0..2 * TASKS_MAX {
            plan.add(task(&format!("https://a.example/{number}")));
        }
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
        assert!(!plan.add_next(vec![by_others("https://t.a.example/more")]));
        assert!(plan.add_next(vec![task("https://a.example/linked")]));
        plan.add_own((1..2 * TASKS_MAX).map(|number| task(&format!("https://a.example/{number}"))).collect());
        assert!(!plan.add_next(vec![task("https://a.example/more")]));
        let urls = rest(plan);
        assert_eq!(
            (urls.len(), urls[0].as_str()),
            (TASKS_MAX + TASKS_OF_OTHERS_MAX, "https://a.example/linked")
        );
    }

    #[test]
    fn says_where_links_of_a_document_find_no_room() {
        let links = |numbers: std::ops::Range<usize>| {
            numbers.map(|number| task(&format!("https://a.example/{number:03}"))).collect::<Vec<_>>()
        };
        let mut plan = Plan::default();
        assert!(!plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)));
        assert!(plan.add_next(links(0..LINKS_FOLLOWED_MAX)), "they are planned");
        assert!(plan.add_next(links(0..LINKS_FOLLOWED_MAX + 1)), "the next visit has room for it");
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
            assert!(!plan.add_next(vec![by_document("https://a.example/more")]), "the next visit follows it");
            assert!(plan.add_next(vec![by_document("https://b.a.example/more")]));
            let left: Vec<String> = plan.tasks().map(|task| task.url.to_string()).collect();
            assert_eq!(left, ["https://b.a.example/more", own.url.as_str(), elsewhere.url.as_str()]);
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
            let mut plan = Plan::default();
            assert!(plan.apply(&task, NextStep::RequestCanary).is_continue());
            assert_eq!(plan.next(&Scope::Site).unwrap().named_by, task.named_by);
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
