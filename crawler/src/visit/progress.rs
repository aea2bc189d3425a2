//! What a visit knows of itself: enough to be parked and to go on anywhere.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::{Host, ManifestUrl};
use policy::{FetchOutcome, PathClass, VisitEnd, VisitRules, plan};
use serde::{Deserialize, Serialize};
use store::{PathCheck, PathSlots, Phases, RobotsRecord, Seed, SiteState};

use super::fetched::Fetched;
use super::links::Leads;
use super::task::Task;

/// Tasks of a visit, those that links add included: the site's budget of a day.
const TASKS_MAX: usize = 120;
/// Seeds that a visit may add: ten catalogs' worth.
const SEEDS_MAX: usize = 10_000;

/// A visit's memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) started_at: DateTime<Utc>,
    /// Time spent on requests; waits for a turn are not the site's fault.
    pub(crate) active: Duration,
    pub(crate) queue: VecDeque<Task>,
    /// Every URL that is or was in the queue.
    pub(crate) planned: HashSet<ManifestUrl>,
    pub(crate) rules: BTreeMap<Host, VisitRules>,
    pub(crate) ended: BTreeMap<Host, VisitEnd>,
    pub(crate) robots: BTreeMap<Host, RobotsRecord>,
    pub(crate) fetched: Vec<Fetched>,
    pub(crate) seeds: Vec<Seed>,
    pub(crate) paths_checked: PathSlots,
    pub(crate) phases: Phases,
    pub(crate) requests: u32,
    pub(crate) bytes_in: u64,
}

impl Progress {
    pub(crate) fn new(now: DateTime<Utc>, paths_checked: PathSlots) -> Self {
        Self {
            started_at: now,
            active: Duration::ZERO,
            queue: VecDeque::new(),
            planned: HashSet::new(),
            rules: BTreeMap::new(),
            ended: BTreeMap::new(),
            robots: BTreeMap::new(),
            fetched: Vec::new(),
            seeds: Vec::new(),
            paths_checked,
            phases: Phases::default(),
            requests: 0,
            bytes_in: 0,
        }
    }

    /// What a parked visit left; `None` when there is none, or one of another version.
    pub(crate) fn resume(site: &SiteState) -> Option<Self> {
        let parked = site.parked.as_ref().filter(|parked| !parked.progress.is_null())?;
        match serde_json::from_value(parked.progress.clone()) {
            Ok(progress) => Some(progress),
            Err(error) => {
                tracing::debug!(site.name = %site.name, %error, "the parked visit begins anew");
                None
            }
        }
    }

    /// Adds a task at the end, once.
    pub(crate) fn plan(&mut self, task: Task) {
        if self.planned.len() < TASKS_MAX && self.planned.insert(task.url.clone()) {
            self.queue.push_back(task);
        }
    }

    /// Adds what an answer leads to: its tasks come next, in their order.
    pub(crate) fn follow(&mut self, leads: Leads) {
        for task in leads.tasks.into_iter().rev() {
            if self.planned.len() < TASKS_MAX && self.planned.insert(task.url.clone()) {
                self.queue.push_front(task);
            }
        }
        let room = SEEDS_MAX.saturating_sub(self.seeds.len());
        self.seeds.extend(leads.seeds.into_iter().take(room));
    }

    pub(crate) fn has_ended(&self, host: &Host) -> bool {
        self.ended.contains_key(host)
    }

    pub(crate) fn end_host(&mut self, host: &Host, end: VisitEnd) {
        self.ended.entry(host.clone()).or_insert(end);
    }

    /// Keeps what became of a task.
    pub(crate) fn record(&mut self, slot: Option<u8>, fetched: Fetched) {
        if let (Some(slot), Some(class)) = (slot, PathClass::of(fetched.outcome)) {
            let day = plan::day_number(fetched.at);
            self.paths_checked.set(slot, PathCheck { class: class.code(), day });
        }
        self.fetched.push(fetched);
    }

    /// How the visit ended: completed if any host was, else as the first host did.
    pub(crate) fn overall_end(&self) -> VisitEnd {
        let hosts_asked = self.fetched.iter().map(|fetched| fetched.url.host());
        if hosts_asked.into_iter().any(|host| !self.has_ended(&host)) {
            let all_fresh = self.fetched.iter().all(|fetched| fetched.outcome == FetchOutcome::Fresh);
            return if all_fresh && self.requests == 0 { VisitEnd::NothingNew } else { VisitEnd::Completed };
        }
        self.ended.values().next().copied().unwrap_or(VisitEnd::NothingNew)
    }

    /// Manifests are read again from their bodies when the visit goes on.
    pub(crate) fn forget_manifests(&mut self) {
        for fetched in &mut self.fetched {
            fetched.manifest = None;
        }
    }
}
