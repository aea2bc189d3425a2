//! What a visit knows of itself: enough to be parked and to go on anywhere.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl};
use policy::{FetchOutcome, PathClass, VisitEnd, VisitRules, plan};
use serde::{Deserialize, Serialize};
use store::{PathCheck, PathSlots, Phases, RobotsRecord, Seed, SiteState};

use super::fetched::Fetched;
use super::links::Leads;
use super::queue::Queue;
use super::task::Task;
use crate::seeds::fingerprint;

/// Tasks of a visit, those that links add included: the site's budget of a day.
const TASKS_MAX: usize = 120;
/// Answers for which room is made at a time.
const FETCHED_MORE: usize = 4;
/// By so much what is written down grows with an answer, as a rule.
const WRITTEN_MORE_BYTES: usize = 768;
/// Seeds that a visit may add: ten catalogs' worth.
const SEEDS_MAX: usize = 10_000;
/// A visit that was broken off longer ago begins anew: what it saw is no longer what is there.
const BROKEN_OFF_AGE_MAX: TimeDelta = TimeDelta::days(1);
/// Documents and robots.txt files that are written down again with each request; nearly all are far smaller.
const KEPT_BODY_BYTES_MAX: usize = 256 * 1024;

/// Addresses are used for this long by the next worker too: a name that leads elsewhere each time would never arrive.
const RESOLVED_AGE_MAX: TimeDelta = TimeDelta::minutes(10);

/// The addresses that names led to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Resolved {
    at: DateTime<Utc>,
    addresses: BTreeMap<Host, Vec<SocketAddr>>,
}

/// A visit's memory. What is in maps is boxed: a map has room for eleven hosts, and nearly every site has one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) started_at: DateTime<Utc>,
    /// When this was last written down while the visit went on.
    #[serde(default)]
    pub(crate) saved_at: Option<DateTime<Utc>>,
    /// Time spent on requests; waits for a turn are not the site's fault.
    pub(crate) active: Duration,
    pub(crate) queue: Queue,
    /// The task in hand, with the redirects that it has followed; it is asked again when the visit is broken off.
    #[serde(default)]
    pub(crate) current: Option<Task>,
    /// Fingerprints of every URL that is or was in the queue; known from the rest when the visit goes on elsewhere.
    #[serde(skip)]
    pub(crate) planned: HashSet<u64>,
    /// Size of what was written down last.
    #[serde(skip)]
    written_bytes: usize,
    pub(crate) rules: BTreeMap<Host, Box<VisitRules>>,
    pub(crate) ended: BTreeMap<Host, VisitEnd>,
    pub(crate) robots: BTreeMap<Host, Box<RobotsRecord>>,
    /// Redirects of robots.txt files that were followed before the visit went on elsewhere.
    #[serde(default)]
    pub(crate) robots_hops: BTreeMap<Host, Vec<ManifestUrl>>,
    /// When the site was due; it is until the visit has ended.
    #[serde(default)]
    pub(crate) due_at: Option<DateTime<Utc>>,
    /// No request to any host of the site before this.
    #[serde(default)]
    pub(crate) site_next_ok_at: Option<DateTime<Utc>>,
    /// Address group of the host that was asked first; the next visit will ask it first too.
    #[serde(default)]
    pub(crate) first_group: Option<u16>,
    /// Where names led for the worker that handed the visit over.
    #[serde(default)]
    pub(crate) resolved: Option<Resolved>,
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
            saved_at: None,
            active: Duration::ZERO,
            queue: Queue::default(),
            current: None,
            planned: HashSet::new(),
            written_bytes: 0,
            rules: BTreeMap::new(),
            ended: BTreeMap::new(),
            robots: BTreeMap::new(),
            robots_hops: BTreeMap::new(),
            due_at: None,
            site_next_ok_at: None,
            first_group: None,
            resolved: None,
            fetched: Vec::new(),
            seeds: Vec::new(),
            paths_checked,
            phases: Phases::default(),
            requests: 0,
            bytes_in: 0,
        }
    }

    /// What a visit left that was parked or broken off; `None` when there is none, or one of another version.
    pub(crate) fn resume(site: &SiteState, now: DateTime<Utc>) -> Option<Self> {
        let parked = site.parked.as_ref().map(|parked| &parked.progress).filter(|state| !state.is_null());
        let state = parked.or(site.interrupted.as_ref())?;
        let mut progress: Self = serde_json::from_value(state.clone())
            .inspect_err(|error| tracing::debug!(site.name = %site.name, %error, "the visit begins anew"))
            .ok()?;
        let is_stale = now - progress.saved_at.unwrap_or(progress.started_at) > BROKEN_OFF_AGE_MAX;
        if parked.is_none() && is_stale {
            return None;
        }
        if let Some(task) = progress.current.take() {
            progress.queue.push_front(task);
        }
        let queued = progress.queue.tasks().map(|task| fingerprint_of(&task.url));
        let asked = progress.fetched.iter().map(|fetched| fingerprint_of(&fetched.url));
        progress.planned = queued.chain(asked).collect();
        Some(progress)
    }

    /// Everything, as it is kept while the visit goes on; `None` while a large document is in hand, which would be written
    /// again with every request.
    pub(crate) fn write_down(&mut self, now: DateTime<Utc>) -> Option<String> {
        let documents = self.fetched.iter().filter_map(|fetched| fetched.body.as_ref().map(|body| &body.0));
        let robots = self.robots.values().filter_map(|record| record.body.as_ref());
        if documents.chain(robots).map(Vec::len).sum::<usize>() > KEPT_BODY_BYTES_MAX {
            return None;
        }
        self.saved_at = Some(now);
        // thousands of these wait to be written: little more room than they need
        let mut state = Vec::with_capacity(self.written_bytes + WRITTEN_MORE_BYTES);
        serde_json::to_writer(&mut state, self).ok()?;
        self.written_bytes = state.len();
        String::from_utf8(state).ok()
    }

    /// Keeps where names lead, for the next worker.
    pub(crate) fn keep_addresses(
        &mut self,
        addresses: impl Iterator<Item = (Host, Vec<SocketAddr>)>,
        now: DateTime<Utc>,
    ) {
        self.resolved = Some(Resolved { at: now, addresses: addresses.collect() });
    }

    /// Where a name led a while ago for another worker.
    pub(crate) fn addresses_of(&self, host: &Host, now: DateTime<Utc>) -> Option<&[SocketAddr]> {
        let resolved = self.resolved.as_ref().filter(|resolved| now - resolved.at < RESOLVED_AGE_MAX)?;
        resolved.addresses.get(host).map(Vec::as_slice)
    }

    /// Adds a task at the end, once.
    pub(crate) fn plan(&mut self, task: Task) {
        if self.planned.len() < TASKS_MAX && self.planned.insert(fingerprint_of(&task.url)) {
            self.queue.push_back(task);
        }
    }

    /// Adds what an answer leads to: its tasks come next, in their order.
    pub(crate) fn follow(&mut self, leads: Leads) {
        for task in leads.tasks.into_iter().rev() {
            if self.planned.len() < TASKS_MAX && self.planned.insert(fingerprint_of(&task.url)) {
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
        if self.fetched.len() == self.fetched.capacity() {
            // twice as many would be kept for nothing by each of thousands of visits
            self.fetched.reserve_exact(FETCHED_MORE);
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
}

fn fingerprint_of(url: &ManifestUrl) -> u64 {
    fingerprint(url.as_url().as_str())
}
