//! The progress of a visit, as it is written to the store. It contains everything that is needed to resume the visit in any process.

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

/// Bytes by which the written progress usually grows with each response.
const WRITTEN_MORE_BYTES: usize = 768;
/// A visit that was interrupted longer ago than this starts over, because its results may be outdated.
const INTERRUPTED_AGE_MAX: TimeDelta = TimeDelta::days(1);
/// Maximum bytes of documents, robots.txt files and seeds that are written with each request; nearly all visits have far fewer.
const KEPT_BODY_BYTES_MAX: usize = 256 * 1024;
/// Maximum bytes of JSON that are written with each request: the bytes above as base64, and as much again for long URLs.
const WRITTEN_BYTES_MAX: usize = 3 * KEPT_BODY_BYTES_MAX;

/// Time after which a visit requests the file of a claim again, if it is still in progress and the check has no result.
const CLAIM_FILE_AGAIN_AFTER: TimeDelta = TimeDelta::days(7);
/// Minimum number of other results between two requests for the file of a claim, so that at most a fifth of the requests are for this file.
/// Anyone may request checks, and at a site with long delays they must not replace all other requests.
const RESULTS_BETWEEN_CLAIM_FILES: usize = 4;

/// Maximum total bytes of documents and robots.txt files that one visit writes when it is parked: for example 1 MiB at each of 128 delays,
/// or the largest documents at each of eight delays.
const PARKED_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Whether another visit was requested while this one was in progress or parked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VisitRequest {
    #[default]
    None,
    /// Yes. The other visit follows this one, which does not repeat its requests.
    DuringVisit,
}

impl VisitRequest {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// How long a visit was parked for links of documents, for URLs that others name, and at third-party hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WaitsForLinks {
    /// The total of these waits.
    pub(crate) time: Duration,
    /// The number of longer waits for links of the site's own documents at its own hosts.
    pub(crate) at_own_hosts: u32,
    /// The waits at hosts that are not the site's own, by host.
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
    /// When the progress was last written during the visit.
    #[serde(default)]
    saved_at: Option<DateTime<Utc>>,
    /// When the site was due. It stays due until the visit ends.
    #[serde(default)]
    pub(crate) due_at: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "VisitRequest::is_none")]
    pub(crate) request: VisitRequest,
    /// The result of a check of the claim, until it is saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim: Option<Claim>,
    /// Number of TXT records of the claim. `None` until the name servers have answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim_records: Option<usize>,
    /// When the file of the claim was last requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claim_file_at: Option<DateTime<Utc>>,
    /// Number of results that the visit had when the file of the claim was last requested.
    #[serde(default)]
    pub(crate) results_at_claim_file: usize,
    /// How the visit ended, if only its documents remain to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_as: Option<VisitEnd>,
    #[serde(default, skip_serializing_if = "WaitsForLinks::is_none")]
    pub(crate) waits_for_links: WaitsForLinks,
    /// Whether the linked documents together exceed the memory limit, so that this visit requests no more of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) links_exceed_memory: bool,
    /// End of the delays of third-party hosts that were skipped after only their robots.txt was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest_from: Option<DateTime<Utc>>,
    /// The host whose response ended the whole visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended_at: Option<Host>,
    /// Total bytes of documents and robots.txt files that were written when the visit was parked.
    #[serde(default)]
    parked_bytes: usize,
    /// Bytes of the JSON that was last written.
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
            links_exceed_memory: false,
            rest_from: None,
            ended_at: None,
            parked_bytes: 0,
            written_bytes: 0,
            traffic: Traffic::default(),
            plan: Plan::default(),
            findings: Findings::new(paths_checked),
        }
    }

    /// The progress of a parked or interrupted visit; `None` if there is none, or another version wrote it. If the visit must check a
    /// claim, the request for the proof is its next one.
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
        // leave out denials, because robots.txt may also deny known documents that were not in the plan
        let requested = progress.findings.fetched.iter();
        let requested = requested.filter(|fetched| fetched.outcome != FetchOutcome::RobotsDenied);
        progress.plan.resume(requested.map(|fetched| &fetched.url));
        let claim = claim::task(site, progress.started_at, now);
        progress
            .plan
            .add_next(claim.filter(|_| progress.may_request_claim_file(site, now)).into_iter().collect());
        Some(progress)
    }

    /// Whether the file of the claim may be requested now. Another request is allowed if a later check was requested or a week has passed,
    /// and if there were enough other results in between. The check may still be open after the first request, because a file without a
    /// proof is not a final result while the name servers fail.
    fn may_request_claim_file(&self, site: &SiteState, now: DateTime<Utc>) -> bool {
        let Some(at) = self.claim_file_at else { return true };
        let asked_at = site.claim.as_ref().and_then(|claim| claim.asked_at);
        let results = self.findings.fetched.len().saturating_sub(self.results_at_claim_file);
        let others_had_their_turn =
            results >= RESULTS_BETWEEN_CLAIM_FILES || self.plan.tasks().next().is_none();
        others_had_their_turn && (asked_at > Some(at) || now - at >= CLAIM_FILE_AGAIN_AFTER)
    }

    /// Records whether another visit was requested since this progress was written. In that case the site is due at a different time than
    /// planned for the rest of this visit.
    pub(crate) fn compare_due_at(&mut self, site: &SiteState, due_at: DateTime<Utc>) {
        let planned = site.parked.as_ref().map(|parked| parked.resume_at).or(self.due_at);
        if planned.is_some_and(|planned| planned != due_at) {
            self.request = VisitRequest::DuringVisit;
        }
    }

    /// Takes the result of a check of the claim, so that it can be saved while the visit waits. A later check queries the records again.
    pub(crate) fn take_claim(&mut self) -> Option<Claim> {
        let claim = self.claim.take()?;
        self.claim_records = None;
        Some(claim)
    }

    /// The progress as JSON, to be written with a request. `None` if it is too large to be written with each request.
    pub(crate) fn write_json(&mut self, now: DateTime<Utc>) -> Option<String> {
        if self.body_bytes() + seeds::written_bytes(&self.findings.seeds) > KEPT_BODY_BYTES_MAX {
            return None;
        }
        self.saved_at = Some(now);
        // thousands of these buffers wait to be written, so their capacity is kept close to their length
        let mut state = Vec::with_capacity(self.written_bytes + WRITTEN_MORE_BYTES);
        serde_json::to_writer(&mut state, self).ok()?;
        if state.len() > WRITTEN_BYTES_MAX {
            return None;
        }
        self.written_bytes = state.len();
        String::from_utf8(state).ok()
    }

    /// Whether the visit may be parked once more. It ends instead if it would write large documents too often.
    pub(crate) fn may_be_parked(&self) -> bool {
        let bytes = self.body_bytes();
        bytes <= KEPT_BODY_BYTES_MAX || self.parked_bytes.saturating_add(bytes) <= PARKED_BYTES_MAX
    }

    fn body_bytes(&self) -> usize {
        self.findings.document_bytes(|_| true) + self.traffic.robots_bytes()
    }

    /// The progress as it is stored while the visit is parked, without the largest documents and robots.txt files.
    ///
    /// # Errors
    ///
    /// If it cannot be written as JSON.
    pub(crate) fn park(&mut self) -> serde_json::Result<serde_json::Value> {
        self.findings.drop_large_documents();
        self.traffic.drop_large_robots();
        self.parked_bytes = self.parked_bytes.saturating_add(self.body_bytes());
        serde_json::to_value(&*self)
    }

    /// Plans the requests that result from a response, and keeps its links to other sites. `named_by` applies to the links. Links add no
    /// request for documents of `in_turns`, which visits request in turns, unless they are parts. One document causes only a few requests
    /// at a host for which `is_own` returns false. Returns the tasks beyond the limits.
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
        self.findings.add_seeds(follow_ups.seeds);
        let beyond = self.plan.take_beyond_host(&mut tasks, is_own);
        let mut without_room = self.plan.add_next(tasks);
        without_room.extend(beyond);
        without_room
    }

    /// How the visit ended: completed if any host was completed, otherwise like the first host. If any of the site's own hosts was
    /// requested, only these hosts count.
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
#[path = "progress_tests.rs"]
mod tests;
