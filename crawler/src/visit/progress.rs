//! The progress of a visit, as it is written to the store: enough to resume the visit in any process.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl};
use policy::claim::Claim;
use policy::{FetchOutcome, VisitEnd};
use serde::{Deserialize, Serialize};
use store::{PathSlots, SiteState};

use super::claim;
use super::findings::Findings;
use super::links::FollowUps;
use super::plan::Plan;
use super::seeds;
use super::task::{NamedBy, Role, Task};
use super::traffic::Traffic;

/// Bytes by which the written progress usually grows with an answer.
const WRITTEN_MORE_BYTES: usize = 768;
/// A visit that was interrupted longer ago than this starts over: what it saw may no longer be there.
const INTERRUPTED_AGE_MAX: TimeDelta = TimeDelta::days(1);
/// Documents, robots.txt files and seeds that are written again with each request, in bytes; nearly all are far smaller.
const KEPT_BODY_BYTES_MAX: usize = 256 * 1024;
/// Everything that is written again with each request, as JSON: those bytes as base64, and as much again for long URLs.
const WRITTEN_BYTES_MAX: usize = 3 * KEPT_BODY_BYTES_MAX;

/// Time after which a visit that still goes on requests the file of a claim again, if the check of the claim is open.
const CLAIM_FILE_AGAIN_AFTER: TimeDelta = TimeDelta::days(7);
/// Results of a visit between two requests for the file of a claim, a fifth of its requests. Anybody may request checks, which must
/// not take the place of everything else where a site asks for long delays.
const RESULTS_BETWEEN_CLAIM_FILES: usize = 4;

/// Documents and robots.txt files that the delays of one visit write: 1 MiB of them at 128 delays, the largest at eight.
const PARKED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Whether another visit was requested while this one was in progress or parked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisitRequest {
    #[default]
    None,
    /// It follows this one, since this one does not repeat its requests.
    DuringVisit,
}

impl VisitRequest {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How long a visit was parked for links of documents, for what others name, and at hosts of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitsForLinks {
    /// All of them together.
    pub(crate) time: Duration,
    /// How many of the longer ones were for links of the site's own documents at its own hosts.
    pub(crate) at_own_hosts: u32,
    /// Those at hosts that are not the site's own, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) at_hosts: BTreeMap<Host, Duration>,
}

impl WaitsForLinks {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The progress of a visit. In JSON its parts are one object.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) started_at: DateTime<Utc>,
    /// When it was last written while the visit went on.
    #[serde(default)]
    saved_at: Option<DateTime<Utc>>,
    /// When the site was due. It stays due until the visit ends.
    #[serde(default)]
    pub(crate) due_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "VisitRequest::is_none")]
    pub(crate) request: VisitRequest,
    /// The claim to the site, once it was checked and until that is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Claim>,
    /// How many TXT records of the claim there are, once the name servers answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim_records: Option<usize>,
    /// When the file of the claim was requested last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim_file_at: Option<DateTime<Utc>>,
    /// How many results the visit had when the file of the claim was requested last.
    #[serde(default)]
    pub(crate) results_at_claim_file: usize,
    /// How the visit ended, if only its documents have to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_as: Option<VisitEnd>,
    #[serde(default, skip_serializing_if = "WaitsForLinks::is_none")]
    pub(crate) waits_for_links: WaitsForLinks,
    /// When the delays end of hosts of others that were left after a request for their robots.txt alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest_from: Option<DateTime<Utc>>,
    /// The host whose response ended the whole visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Host>,
    /// Bytes of documents and robots.txt files that were written while the visit was parked, all times together.
    #[serde(default)]
    parked_bytes: usize,
    /// Length of the JSON that was written last.
    #[serde(skip)]
    written_bytes: usize,
    #[serde(flatten)]
    pub(crate) traffic: Traffic,
    #[serde(flatten)]
    pub(crate) plan: Plan,
    #[serde(flatten)]
    pub(crate) findings: Findings,
}

impl Progress {
    pub(crate) fn new(now: DateTime<Utc>, paths_checked: PathSlots) -> Self {
        Self {
            started_at: now,
            saved_at: None,
            due_at: None,
            request: VisitRequest::None,
            claim: None,
            claim_records: None,
            claim_file_at: None,
            results_at_claim_file: 0,
            ended_as: None,
            waits_for_links: WaitsForLinks::default(),
            rest_from: None,
            ended_at: None,
            parked_bytes: 0,
            written_bytes: 0,
            traffic: Traffic::default(),
            plan: Plan::default(),
            findings: Findings::new(paths_checked),
        }
    }

    /// The progress of a parked or interrupted visit; `None` if there is none, or another version wrote it. Its next request is
    /// that for the proof of a claim, if the visit has to look for one.
    pub(crate) fn resume(site: &SiteState, now: DateTime<Utc>) -> Option<Self> {
        let parked = site.parked.as_ref().map(|parked| &parked.progress).filter(|state| !state.is_null());
        let state = parked.or(site.interrupted.as_ref())?;
        let mut progress: Self = serde_json::from_value(state.clone())
            .inspect_err(|error| tracing::debug!(site.name = %site.name, %error, "the visit starts over"))
            .ok()?;
        let is_stale = now - progress.saved_at.unwrap_or(progress.started_at) > INTERRUPTED_AGE_MAX;
        if parked.is_none() && is_stale {
            return None;
        }
        // robots.txt also forbids known documents that were not in the plan
        let requested = progress.findings.fetched.iter();
        let requested = requested.filter(|fetched| fetched.outcome != FetchOutcome::RobotsDenied);
        progress.plan.resume(requested.map(|fetched| &fetched.url));
        let claim = claim::task(site, progress.started_at, now);
        progress
            .plan
            .add_next(claim.filter(|_| progress.may_request_claim_file(site, now)).into_iter().collect());
        Some(progress)
    }

    /// Whether the file of the claim may be requested now. Once it was, another request follows a later check or a week, and a number
    /// of other results. The check may still be open: while name servers fail, the file says nothing about a proof in a record.
    fn may_request_claim_file(&self, site: &SiteState, now: DateTime<Utc>) -> bool {
        let Some(at) = self.claim_file_at else { return true };
        let asked_at = site.claim.as_ref().and_then(|claim| claim.asked_at);
        let results = self.findings.fetched.len().saturating_sub(self.results_at_claim_file);
        let others_had_their_turn =
            results >= RESULTS_BETWEEN_CLAIM_FILES || self.plan.tasks().next().is_none();
        others_had_their_turn && (asked_at > Some(at) || now - at >= CLAIM_FILE_AGAIN_AFTER)
    }

    /// Notes whether another visit was requested since this one was written: its site is then due at another time than the one that was
    /// planned for the rest of this visit.
    pub(crate) fn compare_due_at(&mut self, site: &SiteState, due_at: DateTime<Utc>) {
        let planned = site.parked.as_ref().map(|parked| parked.resume_at).or(self.due_at);
        if planned.is_some_and(|planned| planned != due_at) {
            self.request = VisitRequest::DuringVisit;
        }
    }

    /// Takes the result of a check of the claim, to save it while the visit waits. A later check queries the records again.
    pub(crate) fn take_claim(&mut self) -> Option<Claim> {
        let claim = self.claim.take()?;
        self.claim_records = None;
        Some(claim)
    }

    /// The progress as JSON, to be written with a request. `None` if it is too large to be written with each of them.
    pub(crate) fn write_json(&mut self, now: DateTime<Utc>) -> Option<String> {
        if self.body_bytes() + seeds::written_bytes(&self.findings.seeds) > KEPT_BODY_BYTES_MAX {
            return None;
        }
        self.saved_at = Some(now);
        // thousands of these wait to be written, so their capacity is close to their length
        let mut state = Vec::with_capacity(self.written_bytes + WRITTEN_MORE_BYTES);
        serde_json::to_writer(&mut state, self).ok()?;
        if state.len() > WRITTEN_BYTES_MAX {
            return None;
        }
        self.written_bytes = state.len();
        String::from_utf8(state).ok()
    }

    /// Whether the visit may be parked once more. It ends instead where it would write large documents again and again.
    pub(crate) fn may_be_parked(&self) -> bool {
        let bytes = self.body_bytes();
        bytes <= KEPT_BODY_BYTES_MAX || self.parked_bytes.saturating_add(bytes) <= PARKED_BYTES_MAX
    }

    fn body_bytes(&self) -> usize {
        self.findings.document_bytes() + self.traffic.robots_bytes()
    }

    /// The progress as it is kept while the visit waits, without the largest documents and robots.txt files.
    ///
    /// # Errors
    ///
    /// Where it cannot be written as JSON.
    pub(crate) fn park(&mut self) -> serde_json::Result<serde_json::Value> {
        self.findings.drop_large_documents();
        self.traffic.drop_large_robots();
        self.parked_bytes = self.parked_bytes.saturating_add(self.body_bytes());
        serde_json::to_value(&*self)
    }

    /// Plans the requests that an answer leads to, and keeps its links to other sites. `named_by` says whose word the links are.
    /// A link causes no request for the documents `in_turns`, which visits request in turns. As parts they are requested, and read as
    /// manifests. One document has few requests at a host of others, for which `is_own` is false. Returns the tasks for which there was
    /// no room.
    pub(crate) fn follow(
        &mut self,
        follow_ups: FollowUps,
        named_by: NamedBy,
        in_turns: &HashSet<&ManifestUrl>,
        is_own: impl Fn(&Host) -> bool,
    ) -> Vec<Task> {
        let mut tasks: Vec<Task> =
            follow_ups.tasks.into_iter().map(|task| Task { named_by, ..task }).collect();
        for task in tasks.iter().filter(|task| task.role == Role::Manifest) {
            if self.findings.treat_part_as_manifest(task) {
                self.plan.put_next(task.clone());
            }
        }
        tasks.retain(|task| task.role != Role::Manifest || !in_turns.contains(&task.url));
        for task in tasks.iter_mut().filter(|task| in_turns.contains(&task.url)) {
            task.role = Role::Manifest;
        }
        self.findings.add_seeds(follow_ups.seeds);
        let beyond = self.plan.take_beyond_host(&mut tasks, is_own);
        let mut without_room = self.plan.add_next(tasks);
        without_room.extend(beyond);
        without_room
    }

    /// How the visit ended: completed if any host was, else as the first host did. Only the site's own hosts count, if any of
    /// them was requested.
    pub(crate) fn overall_end(&self, is_own: impl Fn(&Host) -> bool) -> VisitEnd {
        let (fetched, ended) = (&self.findings.fetched, &self.plan.ended);
        let hosts: BTreeSet<Host> = fetched.iter().map(|fetched| fetched.url.host()).collect();
        let any_own = hosts.iter().chain(ended.keys()).any(&is_own);
        let counts = |host: &Host| !any_own || is_own(host);
        if hosts.iter().any(|host| counts(host) && !ended.contains_key(host)) {
            let all_fresh = fetched.iter().all(|fetched| fetched.outcome == FetchOutcome::Fresh);
            let is_idle = all_fresh && self.traffic.requests == 0;
            return if is_idle { VisitEnd::NothingNew } else { VisitEnd::Completed };
        }
        let first = ended.iter().find(|(host, _)| counts(host));
        first.map_or(VisitEnd::NothingNew, |(_, end)| *end)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manifest::Discovery;
    use policy::{BodyKind, NextStep, RobotsKind};
    use store::{RobotsRecord, Seed};

    use super::super::fetched::{Document, Fetched};
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn begun() -> Progress {
        Progress::new(crate::clock::now(), PathSlots::default())
    }

    fn task(text: &str) -> Task {
        Task::new(ManifestUrl::parse(text).unwrap(), BodyKind::Manifest, Discovery::Root)
    }

    fn fetched(text: &str, outcome: FetchOutcome) -> Fetched {
        Fetched::unanswered(&task(text), outcome, None, crate::clock::now())
    }

    fn robots(host: &Host, bytes: usize) -> RobotsRecord {
        let now = crate::clock::now();
        RobotsRecord {
            host: host.clone(),
            kind: RobotsKind::Rules,
            cause: None,
            status: Some(200),
            body: Some(vec![b'#'; bytes].into()),
            fetched_at: now,
            expires_at: now,
            failures_in_row: 0,
            etag: None,
            last_modified: None,
        }
    }

    fn site(interrupted: Option<serde_json::Value>) -> SiteState {
        let name = manifest::SiteName::parse("a.example").unwrap();
        SiteState { interrupted, ..crate::dry_run::unknown(name) }
    }

    #[test]
    fn a_part_that_is_linked_as_a_manifest_is_read_as_both() {
        let mut progress = begun();
        let part = Task { role: Role::Part, ..task("https://a.example/tools.json") };
        let other = Task { role: Role::Part, ..task("https://a.example/other.json") };
        for task in [&part, &other] {
            let fetched = Fetched::unanswered(task, FetchOutcome::Found, None, crate::clock::now());
            progress.findings.fetched.push(fetched);
        }
        let linked = Task { role: Role::Manifest, ..part };
        progress.follow(
            FollowUps { tasks: vec![linked], seeds: Vec::new() },
            NamedBy::Site,
            &HashSet::new(),
            |_| true,
        );
        let roles: Vec<Role> = progress.findings.fetched.iter().map(|fetched| fetched.role).collect();
        assert_eq!(roles, [Role::Manifest, Role::Part]);
    }

    #[test]
    fn a_link_makes_a_manifest_of_no_part_with_more_standing_and_gets_no_more_itself() {
        let is_repeated = |part_of: NamedBy, linked_by: NamedBy| {
            let mut progress = begun();
            progress.plan.add(task("https://a.example/own"));
            let part = Task { role: Role::Part, named_by: part_of, ..task("https://a.example/part.json") };
            let now = crate::clock::now();
            progress.findings.fetched.push(Fetched::unanswered(&part, FetchOutcome::NotModified, None, now));
            progress.plan.resume(progress.findings.fetched.iter().map(|fetched| &fetched.url));
            let linked = Task { role: Role::Manifest, named_by: NamedBy::Site, ..part };
            progress.follow(
                FollowUps { tasks: vec![linked], seeds: Vec::new() },
                linked_by,
                &HashSet::new(),
                |_| true,
            );
            let is_manifest = progress.findings.fetched[0].role == Role::Manifest;
            let tasks: Vec<Task> = progress.plan.tasks().collect();
            assert_eq!(tasks.len(), 1 + usize::from(is_manifest), "{tasks:?}");
            let repeated = tasks.iter().position(|task| task.url.path() == "/part.json");
            let place = usize::from(linked_by != NamedBy::Site);
            assert_eq!(repeated, is_manifest.then_some(place), "nothing is before the site: {tasks:?}");
            assert!(repeated.is_none_or(|at| tasks[at].named_by == linked_by), "{tasks:?}");
            is_manifest
        };
        for (part_of, linked_by, expected) in [
            (NamedBy::Others, NamedBy::Others, true),
            (NamedBy::Others, NamedBy::Document, true),
            (NamedBy::Document, NamedBy::Document, true),
            (NamedBy::Document, NamedBy::Site, true),
            (NamedBy::Document, NamedBy::Others, false),
            (NamedBy::Site, NamedBy::Document, false),
            (NamedBy::Site, NamedBy::Others, false),
        ] {
            assert_eq!(is_repeated(part_of, linked_by), expected, "{part_of:?}, {linked_by:?}");
        }
    }

    #[test]
    fn writes_its_parts_as_one_object_and_reads_them_again() {
        let mut progress = begun();
        progress.traffic.requests = 3;
        progress.plan.add(task("https://a.example/1"));
        progress.findings.record(Some(2), fetched("https://a.example/2", FetchOutcome::NotFound));
        let written: serde_json::Value =
            serde_json::from_str(&progress.write_json(crate::clock::now()).unwrap()).unwrap();
        for key in
            ["started_at", "requests", "active", "robots", "queue", "rules", "fetched", "links", "phases"]
        {
            assert!(written.get(key).is_some(), "{key} in {written}");
        }
        let mut read = Progress::resume(&site(Some(written)), crate::clock::now()).unwrap();
        assert_eq!((read.traffic.requests, read.findings.fetched.len()), (3, 1));
        assert_eq!(read.findings.paths_checked, progress.findings.paths_checked);
        read.plan.add(task("https://a.example/2"));
        assert_eq!(read.plan.tasks().count(), 1, "a fetched URL is not planned again");
    }

    #[test]
    fn known_documents_that_robots_txt_forbids_take_no_place_of_a_resumed_visit() {
        let mut progress = begun();
        let denied =
            |number| fetched(&format!("https://a.example/d/{number}.json"), FetchOutcome::RobotsDenied);
        progress.findings.deny((0..200).map(denied).collect());
        progress.findings.deny((0..201).map(denied).collect());
        assert_eq!(progress.findings.fetched.len(), 201, "each once");
        let written = progress.write_json(crate::clock::now()).unwrap();
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        let mut read = Progress::resume(&site(Some(written)), crate::clock::now()).unwrap();
        read.plan.add(task("https://a.example/agent.json"));
        assert_eq!(read.plan.tasks().count(), 1);
    }

    #[test]
    fn starts_over_after_a_day_and_where_the_progress_cannot_be_read() {
        let now = crate::clock::now();
        let mut progress = begun();
        let written: serde_json::Value = serde_json::from_str(&progress.write_json(now).unwrap()).unwrap();
        assert!(Progress::resume(&site(Some(written.clone())), now + INTERRUPTED_AGE_MAX).is_some());
        let later = now + INTERRUPTED_AGE_MAX + TimeDelta::seconds(1);
        assert!(Progress::resume(&site(Some(written)), later).is_none());
        assert!(Progress::resume(&site(Some(serde_json::json!({ "queue": 7 }))), now).is_none());
        assert!(Progress::resume(&site(None), now).is_none());
    }

    #[test]
    fn a_parked_visit_carries_a_bounded_number_of_bytes() {
        let mut progress = begun();
        for mib in [1, 2, 9, 15, 4] {
            let body = Some(Document(vec![b'x'; mib * MIB]));
            let fetched = fetched(&format!("https://a.example/{mib}.json"), FetchOutcome::Found);
            progress.findings.record(None, Fetched { body, ..fetched });
        }
        for number in 0..20 {
            let host = Host::parse(&format!("h{number}.a.example")).unwrap();
            let record = robots(&host, 512 * 1024);
            progress.traffic.robots.insert(host, Box::new(record));
        }
        let parked = progress.park().unwrap();
        assert!(parked.to_string().len() < 30 * MIB);
        assert_eq!(progress.traffic.robots.len(), 8);
        assert_eq!(progress.findings.fetched.iter().filter(|fetched| fetched.body.is_some()).count(), 4);
    }

    #[test]
    fn a_visit_with_large_documents_is_parked_until_it_has_written_128_mib() {
        let parked = |mib: usize| {
            let mut progress = begun();
            let body = Some(Document(vec![b'x'; mib * MIB]));
            let fetched = fetched("https://a.example/1.json", FetchOutcome::Found);
            progress.findings.record(None, Fetched { body, ..fetched });
            let mut times = 0;
            while times < 200 && progress.may_be_parked() {
                progress.park().unwrap();
                times += 1;
            }
            times
        };
        assert_eq!((parked(16), parked(8), parked(0)), (8, 16, 200));
    }

    #[test]
    fn bounds_what_is_written_with_each_request() {
        let now = crate::clock::now();
        let from = Arc::new(ManifestUrl::parse("https://a.example/catalog.json").unwrap());
        let seeds = |count: usize| {
            let to = |number| ManifestUrl::parse(&format!("https://v{number}.example/agent.json")).unwrap();
            (0..count).map(|number| Seed::linked(to(number), Arc::clone(&from))).collect()
        };
        let mut progress = begun();
        progress.follow(
            FollowUps { tasks: Vec::new(), seeds: seeds(1_000) },
            NamedBy::Site,
            &HashSet::new(),
            |_| true,
        );
        assert!(progress.write_json(now).is_some_and(|state| state.len() < 64 * 1024));
        let mut many_links = progress.clone();
        many_links.follow(
            FollowUps { tasks: Vec::new(), seeds: seeds(20_000) },
            NamedBy::Site,
            &HashSet::new(),
            |_| true,
        );
        assert!(many_links.write_json(now).is_none(), "too many links");
        for number in 0..120 {
            let long = task(&format!("https://a.example/{number}?{}", "a".repeat(7_900)));
            assert_eq!(progress.plan.add_next(vec![long]), []);
        }
        assert!(progress.write_json(now).is_none(), "too many long URLs");
    }

    #[test]
    fn a_visit_ends_like_its_hosts() {
        let mut progress = begun();
        assert_eq!(progress.overall_end(|_| true), VisitEnd::NothingNew);
        progress.findings.record(None, fetched("https://a.example/1", FetchOutcome::Fresh));
        assert_eq!(progress.overall_end(|_| true), VisitEnd::NothingNew);
        progress.findings.record(None, fetched("https://a.example/2", FetchOutcome::NotFound));
        assert_eq!(progress.overall_end(|_| true), VisitEnd::Completed);
        assert!(
            progress
                .plan
                .apply(&task("https://a.example/3"), NextStep::Stop(VisitEnd::Blocked))
                .is_continue()
        );
        assert_eq!(progress.overall_end(|_| true), VisitEnd::Blocked);
    }

    #[test]
    fn hosts_named_by_others_decide_only_if_no_own_host_was_requested() {
        let is_own = |host: &Host| host.as_str() == "a.example";
        let mut progress = begun();
        progress.findings.record(None, fetched("https://b.a.example/1", FetchOutcome::NotFound));
        assert_eq!(progress.overall_end(is_own), VisitEnd::Completed);
        let own = task("https://a.example/1");
        assert!(progress.plan.apply(&own, NextStep::Stop(VisitEnd::DnsDead)).is_continue());
        assert_eq!(progress.overall_end(is_own), VisitEnd::DnsDead);
    }
}
