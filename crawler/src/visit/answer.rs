//! Sends the requests of one task until there is a final response. Handles redirects, under the robots.txt of their target, 304 responses,
//! and failures.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::LOCATION;
use manifest::model::{PolicyChoice, Served};
use manifest::{ManifestUrl, web};
use policy::freshness::{self, CacheRecord, NotModified};
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::usage::most_restrictive;
use policy::{ContentUsage, FetchOutcome, VisitEnd};
use store::ResourceState;

use super::context::{Interrupt, NO_MEMORY, Stop, unless_busy};
use super::fetched::{Document, Fetched};
use super::hold::read_within;
use super::judge::{FirstJudgement, Judged};
use super::links::{self, FollowUps};
use super::requester::{Exchange, Robots};
use super::task::{NamedBy, Role, Task, Validators};
use super::traffic::millis;
use super::{Visit, judge, seeds};
use crate::clock;
use crate::reading::{NoMemory, Reading};
use egress::{Body, Failure, Reply};
use runtime::OwnedDocument;

/// Reason for a document that this visit drops and a later visit reads.
pub(super) const TOO_MUCH: &str =
    "the documents of this site are together too large for one visit; a later visit reads this one";
/// Reason for a dropped document that is too large for any visit.
const TOO_LARGE: &str = "the document takes more memory than one visit may use";
/// Reason for a received document that is not kept.
const SEARCH_DENIED: &str =
    "the response denies the use of the document for search (Content-Usage or Content-Signal)";
/// Maximum number of characters of a Location that the site owner is shown.
const SHOWN_LOCATION_CHARS_MAX: usize = 200;
/// Time limit for reading a document after a stop signal. Nearly all documents are read within it, and so need not be requested again.
const READING_AFTER_STOP_MAX: Duration = Duration::from_secs(2);

impl Visit<'_> {
    /// Sends requests and follows redirects until there is a final response. `None` if the next redirect is to be followed later in the
    /// visit.
    pub(super) async fn answer(
        &mut self,
        task: &mut Task,
        known: Option<&ResourceState>,
    ) -> Result<Option<Fetched>, Interrupt> {
        let stored = known.and_then(|known| serde_json::from_value::<CacheRecord>(known.cache.clone()?).ok());
        loop {
            let (rule, usage) = match self.rule_for(task).await? {
                ControlFlow::Break(fetched) => return Ok(Some(*fetched)),
                ControlFlow::Continue(allowed) => allowed,
            };
            let conditions = conditions(task, known, stored.as_ref());
            let current = task.current().clone();
            self.progress.plan.current = Some(task.clone());
            let exchange = self.requester.get(&mut self.progress, &current, task.body, &conditions).await?;
            let Exchange { answer, at, took } = exchange;
            task.training = most_restrictive(task.training, usage.training);
            let headers = answer.as_ref().ok().map(|reply| &reply.head.headers);
            let stated = headers.map(ContentUsage::of_headers).unwrap_or_default();
            let too_long = headers.and_then(ContentUsage::too_long_in);
            let step = match answer {
                Err(failure) => ControlFlow::Break(Box::new(failed(task, &failure, at))),
                Ok(reply) => match (
                    FetchOutcome::of_response(reply.head.status.as_u16(), &reply.head.headers),
                    reply.head.status.as_u16(),
                ) {
                    (None, 304) => not_modified(task, &reply, stored.as_ref(), &conditions, at),
                    (None, 301 | 302 | 303 | 307 | 308) => self.redirected(task, &reply, at),
                    _ => ControlFlow::Break(Box::new(Box::pin(self.judged(task, reply, at)).await?)),
                },
            };
            if let ControlFlow::Break(fetched) = step {
                // Headers that a 304 response does not repeat keep their values.
                let kept = fetched.cache.as_ref().filter(|_| fetched.outcome == FetchOutcome::NotModified);
                let stated = kept.map_or(stated, |cache| cache.usage());
                let training = most_restrictive(task.training, stated.training);
                let mut fetched =
                    Fetched { robots_rule: Some(rule), duration_ms: millis(took), training, ..*fetched };
                self.reject_denied_search(&mut fetched, stated.search, too_long);
                return Ok(Some(fetched));
            }
            if self.is_followed_later(task, &current) {
                return Ok(None);
            }
        }
    }

    /// Drops a document if its headers or its own content signals deny its use for search.
    fn reject_denied_search(&mut self, fetched: &mut Fetched, stated: PolicyChoice, too_long: Option<&str>) {
        let by_document = fetched.manifest.as_deref().and_then(judge::denial_of_document);
        let reason = match (stated, too_long) {
            _ if !fetched.outcome.is_present() => return,
            (PolicyChoice::Deny, Some(name)) => {
                format!("{SEARCH_DENIED}: the header {name} is too long to be read, which is a denial")
            }
            (PolicyChoice::Deny, None) => SEARCH_DENIED.to_owned(),
            _ => match by_document {
                Some(reason) => reason.to_owned(),
                None => return,
            },
        };
        self.reject(fetched, FetchOutcome::RobotsDenied, reason);
    }

    /// Whether to follow a redirect from `before` later in the visit. This applies to a URL that users of the site or others name, if it
    /// redirects to another host and the visit requests known documents first (see `Plan::has_turns`): a failure at that host would end all
    /// requests to it. All other redirects are followed immediately.
    fn is_followed_later(&self, task: &Task, before: &ManifestUrl) -> bool {
        let (from, to) = (before.host(), task.current().host());
        let are_own = || self.own_hosts.contains(&from) && self.own_hosts.contains(&to);
        let may_end = task.named_by != NamedBy::Site && from != to;
        may_end && !self.progress.plan.has_turns() && !are_own()
    }

    /// Drops the document that was read last, and releases its memory.
    pub(super) fn reject(&mut self, fetched: &mut Fetched, outcome: FetchOutcome, reason: String) {
        if fetched.body.is_some() {
            self.requester.memory.drop_document();
        }
        fetched.reject(outcome, reason);
    }

    /// The robots.txt rule that allows the next URL and the preferences stated for it, or the result of a task that is not allowed.
    async fn rule_for(
        &mut self,
        task: &Task,
    ) -> Result<ControlFlow<Box<Fetched>, (String, ContentUsage)>, Interrupt> {
        let current = task.current();
        let host = current.host();
        let Robots::Verdict(verdict) = self.requester.robots(&mut self.progress, &host).await? else {
            let reason = Some(format!("the redirect leads to {host}, which does not exist"));
            let fetched = Fetched::unanswered(task, FetchOutcome::RedirectRefused, reason, clock::now());
            return Ok(ControlFlow::Break(Box::new(fetched)));
        };
        let decision = self.requester.decision(&verdict, current.path_and_query()).await?;
        let rule = decision.to_string();
        let Some(outcome) = decision.outcome() else {
            let usage = verdict.file().map(|file| file.usage(&current.path_and_query()));
            return Ok(ControlFlow::Continue((rule, usage.unwrap_or_default())));
        };
        let fetched = Fetched::unanswered(task, outcome, Some(rule.clone()), clock::now());
        Ok(ControlFlow::Break(Box::new(Fetched { robots_rule: Some(rule), ..fetched })))
    }

    /// Determines the outcome of a final response. Reader threads parse its document, or the links of its page.
    async fn judged(
        &mut self,
        task: &Task,
        mut reply: Reply,
        at: DateTime<Utc>,
    ) -> Result<Fetched, Interrupt> {
        let served = judge::served(task, &reply, at);
        let first_judgement = judge::first_judgement(task, &reply);
        self.requester.memory.begin_document(task.is_link());
        let judged = match (first_judgement, &mut reply.body) {
            (FirstJudgement::Judged(judged), Some(body)) if judged.outcome == FetchOutcome::Found => {
                self.hold_body(body).await?.unwrap_or(judged)
            }
            (FirstJudgement::Judged(judged), _) => judged,
            (FirstJudgement::Document, Some(body)) => match self.hold_body(body).await? {
                Some(too_large) => too_large,
                None => self.read_document(task, body, &served).await?,
            },
            (FirstJudgement::Document, None) => {
                Judged::of(FetchOutcome::ProtocolError, "the answer has no body")
            }
        };
        let page = match (judged.outcome, task.role) {
            (FetchOutcome::Html, Role::Page) => self.follow_ups_of_page(task, &reply).await?.map(Box::new),
            _ => None,
        };
        let judged = match (judged.outcome, &mut reply.body) {
            (FetchOutcome::Html, Some(body)) if task.url.path_and_query() == "/" => {
                self.read_page_entries(task, body, &served).await?.unwrap_or(judged)
            }
            _ => judged,
        };
        let is_kept = judged.outcome == FetchOutcome::Found;
        if !is_kept {
            self.requester.memory.drop_document();
        }
        let caches = is_kept || judged.outcome.is_absent();
        let cache = caches.then(|| {
            let record = CacheRecord::of(reply.head.status.as_u16(), &reply.head.headers, at);
            record.redirected_to(task.final_url().as_ref().map(ManifestUrl::as_str))
        });
        let fetched = answered(task, &reply, judged.outcome, at);
        let bytes = reply.body.map(|body| body.bytes).unwrap_or_default();
        let hash = is_kept.then(|| {
            let of_manifest = judged.manifest.as_ref().map(|manifest| manifest.content_hash.clone());
            of_manifest.unwrap_or_else(|| manifest::ContentHash::of(&bytes))
        });
        Ok(Fetched {
            reason: judged.reason,
            cache: cache.map(Box::new),
            hash,
            body: is_kept.then_some(Document(bytes)),
            served: is_kept.then(|| Box::new(served)),
            manifest: judged.manifest,
            page,
            ..fetched
        })
    }

    /// Reserves memory for the documents and robots.txt files of a resumed visit.
    pub(super) async fn hold_resumed(&mut self) -> Result<(), Interrupt> {
        let bytes = self.progress.traffic.robots_bytes();
        without_memory(self.tools.reader.memory.hold_robots(&mut self.requester.memory, bytes).await)?;
        for is_linked in [false, true] {
            let bytes = self.progress.findings.document_bytes(|fetched| fetched.is_link() == is_linked);
            self.requester.memory.begin_document(is_linked);
            let held = self.tools.reader.memory.hold_body(&mut self.requester.memory, bytes).await;
            without_memory(held)?;
        }
        self.hold_seeds().await
    }

    /// Reserves memory for links to other sites that were found since the last call. Those that do not fit are dropped.
    pub(super) async fn hold_seeds(&mut self) -> Result<(), Interrupt> {
        let bytes = seeds::held_bytes(&self.progress.findings.seeds);
        if bytes <= self.seeds_memory_bytes {
            return Ok(());
        }
        let held = self
            .tools
            .reader
            .memory
            .hold_links(&mut self.requester.memory, bytes - self.seeds_memory_bytes)
            .await;
        if without_memory(held)?.is_some() {
            self.progress.findings.seeds = Vec::new();
            return Ok(());
        }
        self.seeds_memory_bytes = bytes;
        Ok(())
    }

    /// Reserves memory for a body. Waits while other visits hold too much. If this visit has too little memory left, returns the result of
    /// the task.
    async fn hold_body(&mut self, body: &mut Body) -> Result<Option<Judged>, Interrupt> {
        let held = self.tools.reader.memory.hold_body(&mut self.requester.memory, body.bytes.len()).await;
        // these bytes now count towards the memory of the visit
        body.release_permit();
        without_memory(held)
    }

    /// Reads the document of a response. Its bytes are moved out of the body while it is read.
    async fn read_document(
        &mut self,
        task: &Task,
        body: &mut Body,
        served: &Served,
    ) -> Result<Judged, Interrupt> {
        let document = Arc::new(OwnedDocument {
            bytes: std::mem::take(&mut body.bytes),
            url: task.url.clone(),
            final_url: task.final_url(),
            discovery: task.discovery,
            served: Some(served.clone()),
            linked: Vec::new(),
            force: None,
        });
        let reading = self.read_within_memory(&document).await?;
        body.bytes =
            Arc::try_unwrap(document).map_or_else(|shared| shared.bytes.clone(), |owned| owned.bytes);
        Ok(match reading {
            Ok(Reading::Read { manifest, .. }) => judge::judge_manifest(&body.bytes, manifest),
            Ok(Reading::Quarantined(reason)) => Judged::of(FetchOutcome::Quarantined, reason),
            Err(too_large) => too_large,
        })
    }

    /// If the JSON-LD of a home page contains entries, reads them as the document at this URL. The bytes of the entries then replace those
    /// of the page.
    async fn read_page_entries(
        &mut self,
        task: &Task,
        body: &mut Body,
        served: &Served,
    ) -> Result<Option<Judged>, Interrupt> {
        let (bytes, site) = (body.bytes.clone(), self.site.name.clone());
        let entries = move || web::page_entries(&bytes, &site);
        let entries = self.tools.reader.run_unless_failed(&body.bytes, entries).await;
        let Some(entries) = unless_busy(entries)?.flatten() else { return Ok(None) };
        body.bytes = entries;
        match self.hold_body(body).await? {
            Some(too_large) => Ok(Some(too_large)),
            None => self.read_document(task, body, served).await.map(Some),
        }
    }

    /// Reads a document and reserves memory for its manifest. If the visit has too little memory left, returns the result of the task.
    pub(super) async fn read_within_memory(
        &mut self,
        document: &Arc<OwnedDocument>,
    ) -> Result<Result<Reading, Judged>, Interrupt> {
        let (reader, site) = (&self.tools.reader, &self.site.name);
        let read = || reader.read(site, Arc::clone(document));
        let bytes_of = |reading: &Reading| match reading {
            Reading::Read { memory_bytes, .. } => *memory_bytes,
            Reading::Quarantined(_) => 0,
        };
        let stop = self.requester.stop;
        let reading = read_within(&reader.memory, &mut self.requester.memory, read, bytes_of);
        let reading = tokio::select! {
            reading = reading => reading?,
            () = stopped_while_reading(stop) => return Err(Interrupt::End(VisitEnd::Interrupted)),
            () = stop.lost.cancelled() => return Err(Interrupt::LeaseLost),
        };
        match reading {
            Ok(reading) => Ok(Ok(reading)),
            Err(none) => refused(none).map(Err),
        }
    }

    /// The links of a page; none if they could not be read in time.
    async fn follow_ups_of_page(&self, task: &Task, reply: &Reply) -> Result<Option<FollowUps>, Interrupt> {
        let (from, url, head) = (task.url.clone(), task.current().clone(), reply.head.clone());
        let bytes = reply.body.as_ref().map(|body| body.bytes.clone()).unwrap_or_default();
        let shared = bytes.clone();
        let links = move || links::of_page((&from, &url), &head, &shared);
        unless_busy(self.tools.reader.run_unless_failed(&bytes, links).await)
    }

    fn redirected(&mut self, task: &mut Task, reply: &Reply, at: DateTime<Utc>) -> ControlFlow<Box<Fetched>> {
        let location = reply.head.text(&LOCATION);
        let (outcome, reason) = match decide(&task.chain(), location, Purpose::Resource) {
            RedirectDecision::Follow(next) => {
                task.hops.push(next);
                return ControlFlow::Continue(());
            }
            RedirectDecision::OtherSite(next) => {
                let reason = format!("redirects to {next}, which is another site");
                self.progress.findings.add_seeds(FollowUps::of_redirect(next, &task.url).seeds);
                (FetchOutcome::RedirectedAway, reason)
            }
            RedirectDecision::Refuse(refusal) => {
                let shown: String =
                    location.unwrap_or_default().chars().take(SHOWN_LOCATION_CHARS_MAX).collect();
                (refusal.outcome(), format!("the redirect to \"{shown}\" is not followed: {refusal}"))
            }
        };
        let fetched = answered(task, reply, outcome, at);
        ControlFlow::Break(Box::new(Fetched { reason: Some(reason), ..fetched }))
    }
}

/// Completes when the time limit for reading after a stop has passed. The attempt stays in the store, so the next visit reads the document
/// in a separate process.
async fn stopped_while_reading(stop: &Stop) {
    stop.soft.cancelled().await;
    tokio::time::sleep(READING_AFTER_STOP_MAX).await;
}

fn without_memory(held: Result<(), NoMemory>) -> Result<Option<Judged>, Interrupt> {
    held.err().map(refused).transpose()
}

/// If only the sum of the documents is too large, the document counts as not requested, because no single document is at fault.
fn refused(none: NoMemory) -> Result<Judged, Interrupt> {
    match none {
        NoMemory::InThisVisit => Ok(Judged::of(FetchOutcome::NotReached, TOO_MUCH)),
        NoMemory::InAnyVisit => Ok(Judged::of(FetchOutcome::TooLarge, TOO_LARGE)),
        NoMemory::Now => Err(Interrupt::busy(NO_MEMORY)),
    }
}

fn not_modified(
    task: &mut Task,
    reply: &Reply,
    stored: Option<&CacheRecord>,
    conditions: &HeaderMap,
    at: DateTime<Utc>,
) -> ControlFlow<Box<Fetched>> {
    let request = if conditions.is_empty() {
        freshness::RequestKind::Unconditional
    } else {
        freshness::RequestKind::Conditional
    };
    match freshness::on_not_modified(stored, request, &reply.head.headers, clock::now()) {
        NotModified::Valid(cache) => {
            let fetched = answered(task, reply, FetchOutcome::NotModified, at);
            ControlFlow::Break(Box::new(Fetched { cache: Some(Box::new(cache)), ..fetched }))
        }
        NotModified::Repeat(trouble) if task.validators == Validators::Omitted => {
            let reason = format!("the server answered 304 to an unconditional request ({trouble})");
            let fetched = Fetched::unanswered(task, FetchOutcome::ProtocolError, Some(reason), at);
            ControlFlow::Break(Box::new(fetched))
        }
        NotModified::Repeat(_) => {
            task.validators = Validators::Omitted;
            ControlFlow::Continue(())
        }
    }
}

/// The validators of a copy, as request headers. They are sent only to the URL that gave them, because another target of a redirect may use
/// equal validators for another document.
fn conditions(task: &Task, known: Option<&ResourceState>, stored: Option<&CacheRecord>) -> HeaderMap {
    let has_copy = known.is_some_and(|known| known.content_hash.is_some());
    let target = task.final_url();
    match stored.filter(|stored| stored.is_of(target.as_ref().map(ManifestUrl::as_str))) {
        Some(stored) if has_copy && task.validators == Validators::Sent => stored.conditional_headers(),
        _ => HeaderMap::new(),
    }
}

fn failed(task: &Task, failure: &Failure, at: DateTime<Utc>) -> Fetched {
    tracing::debug!(url = %task.current(), cause = ?failure.cause, reason = %failure, "request failed");
    let fetched = Fetched::unanswered(task, failure.cause.outcome(), Some(failure.reason.clone()), at);
    let head = failure.head.as_deref();
    Fetched {
        status: head.map(|head| head.status.as_u16()),
        headers: head.map(judge::shown_headers).unwrap_or_default(),
        ..fetched
    }
}

fn answered(task: &Task, reply: &Reply, outcome: FetchOutcome, at: DateTime<Utc>) -> Fetched {
    Fetched {
        status: Some(reply.head.status.as_u16()),
        headers: judge::shown_headers(&reply.head),
        address: reply.head.address.map(|address| address.ip()),
        bytes: reply.wire_bytes,
        ..Fetched::unanswered(task, outcome, None, at)
    }
}
