//! The queue of a visit. Tasks are in the order of their ranks, and ranks may take turns. Most tasks are rows of the path table, so they
//! are stored as row numbers: thousands of waiting visits hold queues, and write them with nearly every request.

use std::collections::VecDeque;

use manifest::{Discovery, Host};
use policy::plan::{PATHS, PlannedPath};
use serde::{Deserialize, Serialize};

use super::own_hosts::is_of_document;
use super::task::{NamedBy, RANK_OF_KNOWN, Role, TURNS, Task, Validators};

/// Tasks in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Queue(VecDeque<Segment>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Segment {
    /// Consecutive tasks for paths of one host, as rows of the path table.
    Rows(Host, VecDeque<u8>),
    Task(Box<Task>),
}

impl Queue {
    fn push_back(&mut self, task: Task) {
        let host = task.url.host();
        match (row_of(&task, &host), self.0.back_mut()) {
            (Some(row), Some(Segment::Rows(same, slots))) if *same == host => slots.push_back(row.slot),
            (row, _) => self.0.push_back(Segment::of(row, host, task)),
        }
    }

    /// Adds a task after the others of its rank.
    pub(crate) fn insert_last(&mut self, task: Task) {
        let rank = task.rank();
        let after = self.0.split_off(self.first_where(|other| other > rank));
        self.push_back(task);
        self.0.extend(after);
    }

    /// Adds a task before the others of its rank.
    pub(crate) fn insert_first(&mut self, task: Task) {
        let rank = task.rank();
        let mut from = Self(self.0.split_off(self.first_where(|other| other >= rank)));
        from.push_front(task);
        self.0.append(&mut from.0);
    }

    fn first_where(&self, is_at: impl Fn(u8) -> bool) -> usize {
        self.0.iter().position(|segment| is_at(segment.rank())).unwrap_or(self.0.len())
    }

    pub(crate) fn push_front(&mut self, task: Task) {
        let host = task.url.host();
        match (row_of(&task, &host), self.0.front_mut()) {
            (Some(row), Some(Segment::Rows(same, slots))) if *same == host => slots.push_front(row.slot),
            (row, _) => self.0.push_front(Segment::of(row, host, task)),
        }
    }

    /// Removes and returns the next task: the first one of the site itself or of a part, otherwise the first one of the rank whose turn it
    /// is, otherwise the first one in the queue. `turn` is the number of completed turns, or `None` without turns.
    pub(crate) fn pop_next(&mut self, turn: &mut Option<usize>) -> Option<Task> {
        if self.0.front()?.rank() >= RANK_OF_KNOWN
            && let Some(turn) = turn
        {
            let is_at = |rank: u8| self.0.iter().position(|segment| segment.rank() == rank);
            let mut turns = TURNS.iter().cycle().enumerate().skip(*turn % TURNS.len()).take(TURNS.len());
            let next = turns.find_map(|(number, rank)| Some((number, is_at(*rank)?)));
            if let Some((number, place)) = next {
                *turn = number + 1;
                let segment = self.0.remove(place)?;
                self.0.push_front(segment);
            }
        }
        self.pop_front()
    }

    fn pop_front(&mut self) -> Option<Task> {
        loop {
            match self.0.pop_front()? {
                Segment::Task(task) => return Some(*task),
                Segment::Rows(host, mut slots) => {
                    // skip rows that only the table of another version contains
                    let next = std::iter::from_fn(|| slots.pop_front()).find_map(|slot| task_of(&host, slot));
                    if !slots.is_empty() {
                        self.0.push_front(Segment::Rows(host, slots));
                    }
                    if next.is_some() {
                        return next;
                    }
                }
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        let length = |segment: &Segment| match segment {
            Segment::Rows(_, slots) => slots.len(),
            Segment::Task(_) => 1,
        };
        self.0.iter().map(length).sum()
    }

    /// All tasks, with those for paths rebuilt from their rows.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.0.iter().flat_map(|segment| match segment {
            Segment::Rows(host, slots) => slots.iter().filter_map(|slot| task_of(host, *slot)).collect(),
            Segment::Task(task) => vec![Task::clone(task)],
        })
    }

    /// Removes and returns the tasks that the site itself does not name and for which `is_taken` returns true.
    pub(crate) fn take(&mut self, is_taken: impl Fn(&Task) -> bool) -> Vec<Task> {
        let mut taken = Vec::new();
        for segment in std::mem::take(&mut self.0) {
            match segment {
                Segment::Task(task) if task.named_by != NamedBy::Site && is_taken(&task) => taken.push(*task),
                kept => self.0.push_back(kept),
            }
        }
        taken
    }

    /// Records a link to a queued URL. A part is also read as a manifest if a source with at least the same precedence links to it as one.
    /// If a document of the site links to a URL that others named, the site may name it now; if the robots.txt, the DNS records or the home
    /// page of an own host link to a URL that a document names, the site publishes it. The task keeps its position and its restrictions
    /// until the next visit. A URL of the operator's list stays listed, unless an own host publishes it.
    pub(crate) fn link(&mut self, linked: &Task) {
        for segment in &mut self.0 {
            let Segment::Task(task) = segment else { continue };
            if task.url != linked.url {
                continue;
            }
            if task.role == Role::Part && linked.role == Role::Manifest && linked.named_by <= task.named_by {
                task.role = Role::Manifest;
            }
            let is_of_site = linked.named_by != NamedBy::Others && linked.linked_from.is_some();
            let is_listed = task.discovery == Discovery::Listed;
            let is_published = linked.named_by == NamedBy::Site
                && (is_listed || is_of_document(task.discovery))
                && !is_of_document(linked.discovery);
            let is_better = task.named_by == NamedBy::Others && !is_listed || is_published;
            if is_of_site && is_better {
                task.discovery = linked.discovery;
                task.linked_from.clone_from(&linked.linked_from);
            }
        }
    }

    /// The paths of the planned tasks at a host for which `is_counted` returns true.
    pub(crate) fn paths_at(&self, host: &Host, is_counted: impl Fn(NamedBy) -> bool) -> Vec<String> {
        let mut paths = Vec::new();
        for segment in &self.0 {
            match segment {
                Segment::Rows(of, slots) if of == host && is_counted(NamedBy::Site) => {
                    paths.extend(slots.iter().filter_map(|slot| Some(row(*slot)?.path.to_owned())));
                }
                Segment::Task(task) if task.url.host() == *host && is_counted(task.named_by) => {
                    paths.push(task.url.path_and_query());
                }
                _ => {}
            }
        }
        paths
    }
}

impl FromIterator<Task> for Queue {
    fn from_iter<T: IntoIterator<Item = Task>>(tasks: T) -> Self {
        let mut queue = Self::default();
        tasks.into_iter().for_each(|task| queue.push_back(task));
        queue
    }
}

impl Segment {
    /// The rank of the tasks of a segment. Rows have the rank of the site's own tasks.
    fn rank(&self) -> u8 {
        match self {
            Self::Rows(..) => 0,
            Self::Task(task) => task.rank(),
        }
    }

    fn of(row: Option<&PlannedPath>, host: Host, task: Task) -> Self {
        match row {
            Some(row) => Self::Rows(host, VecDeque::from([row.slot])),
            None => Self::Task(Box::new(task)),
        }
    }
}

fn task_of(host: &Host, slot: u8) -> Option<Task> {
    Task::of_path(host, row(slot)?)
}

fn row(slot: u8) -> Option<&'static PlannedPath> {
    PATHS.iter().find(|row| row.slot == slot)
}

/// The row from which a task can be rebuilt completely, if there is one.
fn row_of(task: &Task, host: &Host) -> Option<&'static PlannedPath> {
    let row = row(task.slot?)?;
    let Task {
        url,
        hops,
        body,
        discovery,
        linked_from,
        slot: _,
        role,
        validators,
        named_by,
        training,
        turn: _, // the turn does not matter for tasks of the site itself
    } = task;
    let path = url.as_url().as_str().strip_prefix("https://")?.strip_prefix(host.as_str())?;
    let is_plain = hops.is_empty()
        && linked_from.is_none()
        && training.is_unset()
        && (*validators, *named_by) == (Validators::Sent, NamedBy::Site);
    let is_row = path == row.path && *body == row.body && (*discovery, *role) == Task::manner_of(row);
    (is_plain && is_row).then_some(row)
}

#[cfg(test)]
mod tests {
    use manifest::ManifestUrl;
    use policy::BodyKind;

    use super::*;

    fn planned(host: &str) -> impl Iterator<Item = Task> {
        let host = Host::parse(host).unwrap();
        PATHS.iter().map(move |row| Task::of_path(&host, row).unwrap())
    }

    #[test]
    fn serializes_planned_paths_as_row_numbers() {
        let linked = ManifestUrl::parse("https://a.example/tools.json").unwrap();
        let mut special = planned("a.example").next().unwrap();
        special.validators = Validators::Omitted;
        let mut redirected = planned("b.example").nth(2).unwrap();
        redirected.hops.push(linked.clone());
        let tasks: Vec<Task> = planned("a.example")
            .chain([Task::new(linked, BodyKind::Manifest, Discovery::Submitted), special])
            .chain(planned("b.example"))
            .chain([redirected])
            .collect();
        let queue: Queue = tasks.iter().cloned().collect();
        let text = serde_json::to_string(&queue).unwrap();
        let mut read = serde_json::from_str::<Queue>(&text).unwrap();
        assert_eq!(read, queue);
        assert_eq!(read.tasks().collect::<Vec<_>>(), tasks);
        assert_eq!(std::iter::from_fn(|| read.pop_front()).collect::<Vec<_>>(), tasks);
        let rows: Queue = planned("a.example").collect();
        let text = serde_json::to_string(&rows).unwrap();
        assert!(text.len() < 100, "{} bytes: {text}", text.len());
    }

    #[test]
    fn keeps_the_order_of_tasks_at_both_ends() {
        let tasks: Vec<Task> = planned("a.example").chain(planned("b.example")).collect();
        let mut queue = Queue::default();
        for task in tasks.iter().rev().cloned() {
            queue.push_front(task);
        }
        assert_eq!(queue, tasks.iter().cloned().collect());
        assert_eq!(queue.len(), tasks.len());
        let asked_again = queue.pop_front().unwrap();
        queue.push_front(asked_again);
        assert_eq!(queue.tasks().collect::<Vec<_>>(), tasks);
        let others = Task { named_by: NamedBy::Others, ..planned("b.example").next().unwrap() };
        queue.insert_last(others.clone());
        let paths =
            |is_counted: fn(NamedBy) -> bool| queue.paths_at(&Host::parse("b.example").unwrap(), is_counted);
        let rows: Vec<String> = planned("b.example").map(|task| task.url.path_and_query()).collect();
        assert_eq!(paths(|named_by| named_by == NamedBy::Site), rows);
        assert_eq!(paths(|named_by| named_by == NamedBy::Others), [others.url.path_and_query()]);
    }

    #[test]
    fn returns_tasks_in_the_order_of_their_ranks() {
        let task = |path: &str, named_by, role| {
            let url = ManifestUrl::parse(&format!("https://a.example/{path}")).unwrap();
            Task { role, named_by, ..Task::new(url, BodyKind::Manifest, Discovery::CatalogEntry) }
        };
        let ranked = |number| {
            [
                task(&format!("own/{number}"), NamedBy::Site, Role::Manifest),
                task(&format!("part/{number}"), NamedBy::Document, Role::Part),
                task(&format!("linked/{number}"), NamedBy::Document, Role::Manifest),
                task(&format!("theirs/{number}"), NamedBy::Others, Role::Manifest),
            ]
        };
        let mut queue = Queue::default();
        ranked(1).into_iter().rev().for_each(|task| queue.insert_last(task));
        for task in ranked(2) {
            queue.insert_last(task);
        }
        ranked(0).into_iter().rev().for_each(|task| queue.insert_first(task));
        planned("a.example").for_each(|row| queue.insert_last(row));
        let mut expected: Vec<Task> = Vec::new();
        for rank in 0..4 {
            expected.extend((0..3).map(|number| ranked(number)[rank].clone()));
            if rank == 0 {
                expected.extend(planned("a.example"));
            }
        }
        assert_eq!(queue.tasks().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn skips_unknown_row_numbers() {
        let mut queue: Queue =
            serde_json::from_str(r#"[["a.example", [255, 254]], ["b.example", []]]"#).unwrap();
        assert_eq!(queue.pop_front(), None);
    }

    /// Earlier versions wrote whole tasks.
    #[test]
    fn a_queued_part_becomes_a_manifest_for_a_link_of_at_least_its_precedence() {
        let at = |role, named_by| {
            let url = ManifestUrl::parse("https://a.example/tools.json").unwrap();
            Task { role, named_by, ..Task::new(url, BodyKind::Manifest, Discovery::Pointer) }
        };
        for (linked_by, expected) in [
            (NamedBy::Site, Role::Manifest),
            (NamedBy::Document, Role::Manifest),
            (NamedBy::Others, Role::Part),
        ] {
            let mut queue: Queue = [at(Role::Part, NamedBy::Document)].into_iter().collect();
            queue.link(&at(Role::Manifest, linked_by));
            assert_eq!(queue.tasks().next().unwrap().role, expected, "{linked_by:?}");
        }
    }

    /// The order of the sources does not matter: a link of the site's own page counts more than a list of the operator or a catalog.
    #[test]
    fn a_url_that_the_home_page_links_to_counts_as_linked_by_the_site() {
        let url = || ManifestUrl::parse("https://a.example/tools.json").unwrap();
        let from =
            |path: &str| Some(Box::new(ManifestUrl::parse(&format!("https://a.example{path}")).unwrap()));
        let task = |discovery, named_by, linked_from| Task {
            linked_from,
            named_by,
            ..Task::new(url(), BodyKind::Manifest, discovery)
        };
        let home = || task(Discovery::HtmlLink, NamedBy::Site, from("/"));
        let catalog = || task(Discovery::CatalogEntry, NamedBy::Document, from("/.well-known/ard.json"));
        let listed = || task(Discovery::Listed, NamedBy::Site, None);
        let stranger = || task(Discovery::HtmlLink, NamedBy::Others, None);
        let submitted = || task(Discovery::Submitted, NamedBy::Others, None);
        for (queued, linked, expected) in [
            (catalog(), home(), Discovery::HtmlLink),
            (home(), catalog(), Discovery::HtmlLink),
            (listed(), home(), Discovery::HtmlLink),
            (listed(), catalog(), Discovery::Listed),
            (listed(), stranger(), Discovery::Listed),
            (submitted(), catalog(), Discovery::CatalogEntry),
            (submitted(), home(), Discovery::HtmlLink),
            (catalog(), stranger(), Discovery::CatalogEntry),
        ] {
            let named_by = queued.named_by;
            let (was, by) = (queued.discovery, linked.discovery);
            let mut queue: Queue = [queued].into_iter().collect();
            queue.link(&linked);
            let kept = queue.pop_front().unwrap();
            assert_eq!(kept.discovery, expected, "{was:?}, linked by {by:?}");
            assert_eq!(kept.named_by, named_by, "its restrictions stay until the next visit");
            let source = match expected {
                Discovery::HtmlLink => from("/"),
                Discovery::CatalogEntry => from("/.well-known/ard.json"),
                _ => None,
            };
            assert_eq!(kept.linked_from, source, "{was:?}, linked by {by:?}");
        }
    }

    #[test]
    fn reads_tasks_of_earlier_versions() {
        let queue: Vec<Task> = planned("a.example").collect();
        let text = serde_json::to_string(&queue).unwrap();
        assert_eq!(serde_json::from_str::<Queue>(&text).unwrap().tasks().collect::<Vec<_>>(), queue);
    }
}
