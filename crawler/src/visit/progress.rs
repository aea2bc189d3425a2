//! What a visit knows of itself: enough to be parked and to go on anywhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};
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
use super::seeds;
use super::task::Task;
use crate::seeds::fingerprint;

/// Tasks of a visit, those that links add included: the site's budget of a day.
const TASKS_MAX: usize = 120;
/// Answers for which room is made at a time.
const FETCHED_MORE: usize = 4;
/// By so much what is written down grows with an answer, as a rule.
const WRITTEN_MORE_BYTES: usize = 768;
/// A visit that was broken off longer ago begins anew: what it saw is no longer what is there.
const BROKEN_OFF_AGE_MAX: TimeDelta = TimeDelta::days(1);
/// Documents, robots.txt files and seeds that are written down again with each request; nearly all are far smaller.
const KEPT_BODY_BYTES_MAX: usize = 256 * 1024;
/// Everything that is written down again with each request, as JSON: those bytes as base64, and as much again for long URLs.
const WRITTEN_BYTES_MAX: usize = 3 * KEPT_BODY_BYTES_MAX;
/// Documents that go along with a visit that is parked or handed over, in bytes: one of the largest. All of them are written
/// with each delay that parks the visit.
const PARKED_DOCUMENT_BYTES_MAX: usize = manifest::DOCUMENT_BYTES_MAX;
/// The same for robots.txt files.
const PARKED_ROBOTS_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Why a document is not kept that was too large to go along.
const TOO_LARGE_TO_PARK: &str =
    "the visit had to wait, and carries at most 16 MiB of documents from one request to the next";

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
    /// By another name than before they shared the URL of their document: what was written then is passed over.
    #[serde(default, rename = "links", with = "super::seeds")]
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
        let state = parked.or(site.broken_off.as_ref())?;
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

    /// Everything, as it is kept while the visit goes on; `None` while it is much, such as a large document, which would be
    /// written again with every request.
    pub(crate) fn write_down(&mut self, now: DateTime<Utc>) -> Option<String> {
        let documents = self.fetched.iter().filter_map(|fetched| fetched.body.as_ref().map(|body| &body.0));
        let robots = self.robots.values().filter_map(|record| record.body.as_ref());
        let bodies: usize = documents.chain(robots).map(Vec::len).sum();
        if bodies + seeds::written_bytes(&self.seeds) > KEPT_BODY_BYTES_MAX {
            return None;
        }
        self.saved_at = Some(now);
        // thousands of these wait to be written: little more room than they need
        let mut state = Vec::with_capacity(self.written_bytes + WRITTEN_MORE_BYTES);
        serde_json::to_writer(&mut state, self).ok()?;
        if state.len() > WRITTEN_BYTES_MAX {
            return None;
        }
        self.written_bytes = state.len();
        String::from_utf8(state).ok()
    }

    /// Everything, as it is kept while the visit waits. The largest documents are left out beyond
    /// [`PARKED_DOCUMENT_BYTES_MAX`], and the largest robots.txt files, which are fetched again, beyond
    /// [`PARKED_ROBOTS_BYTES_MAX`].
    ///
    /// # Errors
    ///
    /// Where it cannot be written as JSON.
    pub(crate) fn park(&mut self) -> serde_json::Result<serde_json::Value> {
        let length = |fetched: &Fetched| fetched.body.as_ref().map_or(0, |body| body.0.len());
        let mut bytes: usize = self.fetched.iter().map(length).sum();
        while bytes > PARKED_DOCUMENT_BYTES_MAX
            && let Some(largest) = self.fetched.iter_mut().max_by_key(|fetched| length(fetched))
        {
            bytes -= length(largest);
            largest.forget_document();
            largest.outcome = FetchOutcome::TooLarge;
            largest.reason = Some(TOO_LARGE_TO_PARK.to_owned());
        }
        let length = |record: &RobotsRecord| record.body.as_ref().map_or(0, Vec::len);
        let mut bytes: usize = self.robots.values().map(|record| length(record)).sum();
        while bytes > PARKED_ROBOTS_BYTES_MAX
            && let Some(host) =
                self.robots.iter().max_by_key(|(_, record)| length(record)).map(|(host, _)| host.clone())
            && let Some(record) = self.robots.remove(&host)
        {
            bytes -= length(&record);
        }
        serde_json::to_value(&*self)
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
        seeds::add(&mut self.seeds, leads.seeds);
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

    /// How the visit ended: completed if any host was, else as the first host did. Only the site's own hosts count, if any
    /// of them was asked.
    pub(crate) fn overall_end(&self, is_own: impl Fn(&Host) -> bool) -> VisitEnd {
        let hosts: BTreeSet<Host> = self.fetched.iter().map(|fetched| fetched.url.host()).collect();
        let is_own_asked = hosts.iter().chain(self.ended.keys()).any(&is_own);
        let counts = |host: &Host| !is_own_asked || is_own(host);
        if hosts.iter().any(|host| counts(host) && !self.has_ended(host)) {
            let all_fresh = self.fetched.iter().all(|fetched| fetched.outcome == FetchOutcome::Fresh);
            return if all_fresh && self.requests == 0 { VisitEnd::NothingNew } else { VisitEnd::Completed };
        }
        let ended = self.ended.iter().find(|(host, _)| counts(host));
        ended.map_or(VisitEnd::NothingNew, |(_, end)| *end)
    }
}

fn fingerprint_of(url: &ManifestUrl) -> u64 {
    fingerprint(url.as_url().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use manifest::Discovery;
    use policy::{BodyKind, RobotsKind};

    const MIB: usize = 1024 * 1024;

    #[test]
    fn a_parked_visit_carries_a_bounded_number_of_bytes() {
        let now = crate::clock::now();
        let mut progress = Progress::new(now, PathSlots::default());
        for mib in [1, 2, 9, 15, 4] {
            let url = ManifestUrl::parse(&format!("https://a.example/{mib}.json")).unwrap();
            let task = Task::new(url, BodyKind::Manifest, Discovery::Root);
            let body = Some(super::super::fetched::Document(vec![b'x'; mib * MIB]));
            let fetched = Fetched::unanswered(&task, FetchOutcome::Found, None, now);
            progress.record(None, Fetched { body, ..fetched });
        }
        for number in 0..20 {
            let host = Host::parse(&format!("h{number}.a.example")).unwrap();
            let record = RobotsRecord {
                host: host.clone(),
                kind: RobotsKind::Rules,
                cause: None,
                status: Some(200),
                body: Some(vec![b'#'; 512 * 1024]),
                fetched_at: now,
                expires_at: now,
                failures_in_row: 0,
                etag: None,
                last_modified: None,
            };
            progress.robots.insert(host, Box::new(record));
        }
        let parked = progress.park().unwrap();
        assert!(parked.to_string().len() < 30 * MIB);
        assert_eq!(progress.robots.len(), 8);
        let kept: Vec<_> = progress.fetched.iter().map(|fetched| fetched.body.is_some()).collect();
        assert_eq!(kept, [true, true, true, false, true], "the largest is left out");
        let left_out = &progress.fetched[3];
        assert_eq!((left_out.outcome, left_out.hash.is_none()), (FetchOutcome::TooLarge, true));
        assert!(left_out.reason.as_deref().is_some_and(|reason| reason.contains("at most 16 MiB")));
    }

    fn leads(from: &ManifestUrl, numbers: std::ops::Range<usize>, path: &str) -> Leads {
        let from = std::sync::Arc::new(from.clone());
        let to = |number| ManifestUrl::parse(&format!("https://v{number}.example/{path}")).unwrap();
        let seeds = numbers.map(|number| Seed::linked(to(number), std::sync::Arc::clone(&from))).collect();
        Leads { tasks: Vec::new(), seeds }
    }

    #[test]
    fn links_of_a_visit_are_bounded_in_number_and_bytes() {
        let now = crate::clock::now();
        let long = "a".repeat(2_000);
        let from = ManifestUrl::parse(&format!("https://a.example/{long}")).unwrap();
        let (mut short_links, mut long_links) =
            (Progress::new(now, PathSlots::default()), Progress::new(now, PathSlots::default()));
        for catalog in 0..20 {
            let numbers = catalog * 1_000..(catalog + 1) * 1_000;
            short_links.follow(leads(&from, numbers.clone(), "agent.json"));
            long_links.follow(leads(&from, numbers, &long));
        }
        assert_eq!(short_links.seeds.len(), seeds::SEEDS_MAX);
        assert!((400..600).contains(&long_links.seeds.len()), "{}", long_links.seeds.len());
        for mut progress in [short_links, long_links] {
            let parked = progress.park().unwrap();
            let written = parked.to_string();
            assert!(written.len() < MIB + 64 * 1024, "{}", written.len());
            assert!(written.matches(&from.to_string()).count() <= 1, "written once for all of its links");
            let read: Progress = serde_json::from_value(parked).unwrap();
            assert_eq!(read.seeds, progress.seeds);
            assert!(seeds::held_bytes(&progress.seeds) < 4 * MIB);
            assert_eq!(progress.write_down(now), None, "too much to be written with each request");
        }
    }

    #[test]
    fn what_is_written_with_each_request_is_bounded() {
        let now = crate::clock::now();
        let from = ManifestUrl::parse("https://a.example/catalog.json").unwrap();
        let mut progress = Progress::new(now, PathSlots::default());
        progress.follow(leads(&from, 0..1_000, "agent.json"));
        assert!(progress.write_down(now).is_some_and(|state| state.len() < 64 * 1024));
        for number in 0..TASKS_MAX {
            let url =
                ManifestUrl::parse(&format!("https://a.example/{number}?{}", "a".repeat(7_900))).unwrap();
            progress.plan(Task::new(url, BodyKind::Manifest, Discovery::Root));
        }
        assert_eq!(progress.write_down(now), None, "a queue of long URLs is too much as well");
    }
}
