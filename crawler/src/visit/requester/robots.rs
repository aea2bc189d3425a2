//! Provides the robots.txt of a host: the stored copy while it is valid, otherwise a new copy that is fetched before anything else.
//!
//! A redirect may lead to another host of the site, whose clock, Crawl-delay and budget then apply. The rules found there apply to the host
//! that was requested first (RFC 9309 §2.3.1.2). A redirect to another site is not followed: the robots.txt counts as unreachable, and the
//! other site becomes a seed. Files of more than 16 KiB are parsed on the reader threads. A visit keeps the files of all hosts, but the
//! parsed rules of only one host at a time.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use http::header::{HeaderMap, LOCATION};
use manifest::{Host, ManifestUrl, SiteScope, is_main_host};
use policy::plan::ROBOTS_PATH;
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::robots::{CopyUse, PRODUCT_TOKEN, RobotsCause, SHORT_BYTES_MAX};
use policy::schedule::REVISIT_EVERY_FLOOR;
use policy::{BodyKind, FetchOutcome, RobotsDecision, RobotsKind, RobotsResponse, RobotsVerdict};
use store::{HostOrigin, HostState, RobotsRecord, Seed, SiteState, StoreError};

use super::super::context::{Interrupt, NO_MEMORY, unless_busy};
use super::super::links::is_kept;
use super::super::progress::Progress;
use super::super::source_requests::SourceRequests;
use super::super::traffic::Traffic;
use super::records::{conditions_of, record_of, renewed, requested_again_at, restore};
use super::{Exchange, KnownRobots, ParsedRobots, Requester};
use crate::events::Event;
use crate::reading::{HeldMemory, NoMemory};
use crate::retry::retry_while_unavailable;
use crate::{clock, metrics};
use egress::{Cause, Head, Reply};

/// The result of fetching robots.txt.
pub(in super::super) enum Robots {
    Verdict(Arc<RobotsVerdict>),
    /// The name does not exist, so there is no verdict on robots.txt.
    NoName,
}

/// Whether a host may be contacted without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContactPermission {
    Granted,
    /// Its robots.txt does not permit agentdex to request the root of the host.
    Denied,
    /// No visit has read a robots.txt of the host or of the site.
    Unknown,
}

impl Requester<'_> {
    /// Sends requests for a source of seeds.
    pub(in super::super) fn for_source(self, source: Option<SourceRequests>) -> Self {
        Self { source, ..self }
    }

    /// The verdict for a host.
    pub(in super::super) async fn robots(
        &mut self,
        progress: &mut Progress,
        host: &Host,
    ) -> Result<Robots, Interrupt> {
        let is_checked = self.robots.get(host).is_some_and(|known| known.is_checked);
        if let Some(parsed) = self.parsed.as_ref().filter(|parsed| is_checked && parsed.host == *host) {
            return Ok(Robots::Verdict(Arc::clone(&parsed.verdict)));
        }
        let mut stored = self.stored_robots(&progress.traffic, host).await?;
        if let Some(record) = &mut stored {
            let mut is_current =
                copy_use(self.site, &progress.traffic, record, clock::now()) == CopyUse::Current;
            if is_current && self.source.is_some_and(|source| source.asks_again(record)) {
                is_current = false;
                // starts by hand do not lengthen the delay after which visits request it again
                record.failures_in_row = record.failures_in_row.saturating_sub(1);
            }
            if is_current && !is_checked {
                metrics::copy_used("robots");
            }
            let verdict = self.restored(record, is_current || is_checked).await?;
            if is_current || is_checked {
                return Ok(Robots::Verdict(verdict));
            }
        }
        Box::pin(self.fetch_robots(progress, host, stored)).await
    }

    /// The status with which a host answered the last request for its robots.txt.
    pub(in super::super) fn robots_status(&self, progress: &Progress, host: &Host) -> Option<u16> {
        let of_site = || self.site.hosts.iter().find(|state| state.host == *host)?.robots.as_ref()?.status;
        progress.traffic.robots.get(host).map_or_else(of_site, |record| record.status)
    }

    /// Records a request to a host that is not for its robots.txt. An expired copy may be used for this one request only.
    pub(super) fn end_use_after_delay(&mut self, traffic: &mut Traffic, host: &Host) {
        if traffic.robots_last.remove(host)
            && robots_use(self.site, traffic, host, clock::now()) == CopyUse::DenyOnly
            && let Some(known) = self.robots.get_mut(host)
        {
            known.is_checked = false;
        }
    }

    /// The record of a host's robots.txt from this visit or an earlier one, with the text of the file.
    async fn stored_robots(
        &self,
        traffic: &Traffic,
        host: &Host,
    ) -> Result<Option<RobotsRecord>, StoreError> {
        if let Some(record) = traffic.robots.get(host) {
            return Ok(Some(RobotsRecord::clone(record)));
        }
        let of_site = self.site.hosts.iter().find(|state| state.host == *host);
        let Some(mut record) = of_site.and_then(|state| state.robots.clone()) else { return Ok(None) };
        if record.kind == RobotsKind::Rules && record.body.is_none() {
            let store = &self.tools.store;
            let body = retry_while_unavailable("read robots.txt", || store.robots_body(host)).await?;
            let Some(body) = body else { return Ok(None) };
            record.body = Some(body.into());
        }
        Ok(Some(record))
    }

    /// Whether the stored robots.txt files permit contacting a host without a request. Those of the site's main hosts apply to a host
    /// without a file. A host at which no server was reached for its file may be contacted, unless a main host refuses it.
    pub(super) async fn contact_permission(
        &mut self,
        traffic: &Traffic,
        host: &Host,
    ) -> Result<ContactPermission, Interrupt> {
        let is_main = |state: &&HostState| is_main_host(&self.site.name, &state.host);
        let main_hosts = self.site.hosts.iter().filter(is_main).map(|state| state.host.clone());
        let hosts: Vec<Host> = std::iter::once(host.clone()).chain(main_hosts).collect();
        let mut permission = ContactPermission::Unknown;
        for (place, host) in hosts.into_iter().enumerate() {
            let Some(record) = self.stored_robots(traffic, &host).await? else { continue };
            let cause = record.cause.as_deref().and_then(RobotsCause::of_stored);
            if cause.is_some_and(RobotsCause::is_without_server) {
                if place == 0 {
                    permission = ContactPermission::Granted;
                }
                continue;
            }
            let verdict = self.restored(&record, false).await?;
            let decision = self.decision(&verdict, "/".to_owned()).await?;
            let is_allowed = decision.is_allowed();
            return Ok(if is_allowed { ContactPermission::Granted } else { ContactPermission::Denied });
        }
        Ok(permission)
    }

    /// Keeps the parsed rules of a host, and drops those of other hosts.
    fn adopt(&mut self, host: &Host, verdict: Arc<RobotsVerdict>, memory: HeldMemory, is_checked: bool) {
        let crawl_delay = verdict.crawl_delay().map(|delay| delay.wait);
        self.robots.insert(host.clone(), KnownRobots { is_checked, crawl_delay });
        self.parsed = Some(ParsedRobots { host: host.clone(), verdict, memory });
    }

    /// Applies the Crawl-delay of a host's stored robots.txt before this visit has checked it.
    pub(super) async fn apply_stored_crawl_delay(
        &mut self,
        traffic: &Traffic,
        host: &Host,
    ) -> Result<(), Interrupt> {
        if !self.robots.contains_key(host)
            && let Some(record) = self.stored_robots(traffic, host).await?
        {
            self.restored(&record, false).await?;
        }
        Ok(())
    }

    /// Parses the verdict of a stored record, and keeps it as the rules of the current host.
    async fn restored(
        &mut self,
        record: &RobotsRecord,
        is_checked: bool,
    ) -> Result<Arc<RobotsVerdict>, Interrupt> {
        let body = record.body.clone().unwrap_or_else(|| Arc::from([].as_slice()));
        let shared = record.clone();
        let (verdict, memory) = self.parse(&body, move || restore(&shared)).await?;
        let verdict = Arc::new(verdict);
        self.adopt(&record.host, Arc::clone(&verdict), memory, is_checked);
        Ok(verdict)
    }

    /// The verdict of a response.
    async fn judged_robots(
        &mut self,
        answer: RobotsResponse<'_>,
        body: Option<&Arc<[u8]>>,
    ) -> Result<(RobotsVerdict, HeldMemory), Interrupt> {
        match (answer, body) {
            (RobotsResponse::Answered { status, .. }, Some(body)) => {
                let shared = Arc::clone(body);
                let parse = move || {
                    let answer = RobotsResponse::Answered { status, body: Some(&shared) };
                    RobotsVerdict::of(answer, PRODUCT_TOKEN)
                };
                self.parse(body, parse).await
            }
            (answer, _) => Ok((RobotsVerdict::of(answer, PRODUCT_TOKEN), HeldMemory::default())),
        }
    }

    /// Parses a file, after releasing the memory of the last rules and reserving memory for the new ones. If a long file cannot be parsed
    /// in time, nothing is allowed.
    async fn parse(
        &mut self,
        body: &[u8],
        parse: impl FnOnce() -> RobotsVerdict + Send + 'static,
    ) -> Result<(RobotsVerdict, HeldMemory), Interrupt> {
        self.parsed = None;
        let (reader, mut memory) = (&self.tools.reader, HeldMemory::default());
        if reader.memory.hold_rules(&mut memory, body.len()).await.is_err() {
            return Err(Interrupt::busy(NO_MEMORY));
        }
        let parsed = if body.len() <= SHORT_BYTES_MAX {
            Some(parse())
        } else {
            unless_busy(reader.run_unless_failed(body, parse).await)?
        };
        Ok((parsed.unwrap_or(RobotsVerdict::Unreachable(RobotsCause::BodyNotRead)), memory))
    }

    /// Keeps the result of a robots.txt until the visit is saved. If the visit has no memory for the file, nothing is allowed.
    async fn keep_robots(
        &mut self,
        traffic: &mut Traffic,
        mut record: RobotsRecord,
    ) -> Result<HasMemory, Interrupt> {
        let bytes = record.body.as_ref().map_or(0, |body| body.len());
        let fits = match self.tools.reader.memory.hold_robots(&mut self.memory, bytes).await {
            Ok(()) => HasMemory::Yes,
            Err(NoMemory::Now) => return Err(Interrupt::busy(NO_MEMORY)),
            Err(NoMemory::InThisVisit | NoMemory::InAnyVisit) => {
                record.kind = RobotsKind::Unreachable;
                record.cause = Some(RobotsCause::BodyNotRead.as_str().to_owned());
                record.body = None;
                HasMemory::No
            }
        };
        traffic.robots_applied.remove(&record.host);
        traffic.robots.insert(record.host.clone(), Box::new(record));
        Ok(fits)
    }

    /// The decisions of a verdict on paths, with one work limit for all of them. Long work is done on the reader threads. If that fails,
    /// nothing is allowed.
    pub(in super::super) async fn decisions(
        &self,
        verdict: &Arc<RobotsVerdict>,
        paths: Vec<String>,
    ) -> Result<Vec<RobotsDecision>, Interrupt> {
        let (count, is_short) = (paths.len(), verdict.is_short_work(&paths));
        let decide = {
            let verdict = Arc::clone(verdict);
            move || verdict.decide_all(&paths)
        };
        let decided = unless_busy(self.tools.reader.run_unless_short(is_short, decide).await)?;
        Ok(decided.unwrap_or_else(|| vec![RobotsDecision::Unreachable(RobotsCause::BodyNotRead); count]))
    }

    /// The decision of a verdict on one path, in the same way.
    pub(in super::super) async fn decision(
        &self,
        verdict: &Arc<RobotsVerdict>,
        path: String,
    ) -> Result<RobotsDecision, Interrupt> {
        let decided = Box::pin(self.decisions(verdict, vec![path])).await?;
        Ok(decided.into_iter().next().unwrap_or(RobotsDecision::Unreachable(RobotsCause::BodyNotRead)))
    }

    async fn fetch_robots(
        &mut self,
        progress: &mut Progress,
        host: &Host,
        stored: Option<RobotsRecord>,
    ) -> Result<Robots, Interrupt> {
        let Ok(url) = ManifestUrl::on_host(host, ROBOTS_PATH) else { return Ok(Robots::NoName) };
        let mut chain = progress.traffic.robots_hops.remove(host).unwrap_or_else(|| vec![url]);
        let fetched = self.follow_robots(progress, host, &mut chain, stored).await;
        if fetched.is_err() {
            progress.traffic.robots_hops.insert(host.clone(), chain);
        }
        fetched
    }

    /// Requests the last URL of a chain of redirects, and follows its redirects.
    async fn follow_robots(
        &mut self,
        progress: &mut Progress,
        host: &Host,
        chain: &mut Vec<ManifestUrl>,
        stored: Option<RobotsRecord>,
    ) -> Result<Robots, Interrupt> {
        let kept = stored.as_ref().filter(|record| record.kind == RobotsKind::Rules && record.body.is_some());
        let (conditions, plain) = (kept.map(conditions_of).unwrap_or_default(), HeaderMap::new());
        let mut target = None;
        let ((mut record, verdict), memory) = loop {
            let Some(current) = chain.last().cloned() else { return Ok(Robots::NoName) };
            // validators are sent to the URL from which they were received, not to the target of its redirect
            let conditions = if chain.len() == 1 { &conditions } else { &plain };
            let Exchange { answer, .. } = self.get(progress, &current, BodyKind::Robots, conditions).await?;
            let Reply { head, body, .. } = match answer {
                Err(failure) if failure.cause == Cause::NameUnknown && chain.len() == 1 => {
                    return Ok(Robots::NoName);
                }
                Err(failure) => {
                    tracing::debug!(%host, reason = %failure, "robots.txt could not be requested");
                    // a connection that cannot be opened in time is not a timeout of the server
                    let is_unconnected = self.session.failed_to_connect(&failure);
                    let outcome = failure.cause.outcome();
                    let outcome = if is_unconnected { FetchOutcome::ConnectFailed } else { outcome };
                    let answer = RobotsResponse::Failed(outcome);
                    let verdict = RobotsVerdict::of(answer, PRODUCT_TOKEN);
                    break (record_of(host, verdict, None, stored.as_ref()), HeldMemory::default());
                }
                Ok(reply) => reply,
            };
            let body: Option<Arc<[u8]>> = body.map(|body| body.bytes.into());
            let answer = match step(chain, &head, body.as_deref(), kept, conditions) {
                Step::Confirmed(record) => {
                    if self.parsed.as_ref().is_none_or(|parsed| parsed.host != *host) {
                        self.restored(record, false).await?;
                    }
                    let Some(ParsedRobots { verdict, memory, .. }) = self.parsed.take() else {
                        return Err(Interrupt::LeaseLost);
                    };
                    break ((renewed(record, &verdict, &head), verdict), memory);
                }
                Step::Hop(next) => {
                    chain.push(next);
                    continue;
                }
                Step::OtherSite(next) => {
                    progress.findings.add_seeds(seed_of(&next, &current));
                    target = Some(next.host());
                    RobotsResponse::OtherSite
                }
                Step::Done(answer) => answer,
            };
            let (verdict, memory) = self.judged_robots(answer, body.as_ref()).await?;
            break (record_of(host, verdict, Some((&head, body)), stored.as_ref()), memory);
        };
        let asked_until = self.authorities.get(host).and_then(|authority| authority.clock.asked_until());
        record.expires_at = requested_again_at(&record, asked_until);
        let (kind, cause, use_until) = (record.kind, record.cause.as_deref(), record.expires_at);
        self.tools.events.write(Event::Robots { host, kind, cause, use_until });
        record.cause = target.map(|target| RobotsCause::redirect_to(target.as_str())).or(record.cause);
        if let Some(other) = chain.last().and_then(|read| file_of_other_host(host, read, &record)) {
            self.adopt(&other, Arc::clone(&verdict), HeldMemory::default(), true);
            progress.traffic.robots_last.insert(other.clone());
            self.keep_robots(&mut progress.traffic, RobotsRecord { host: other, ..record.clone() }).await?;
        }
        if chain.len() > 1 {
            (record.etag, record.last_modified) = (None, None);
        }
        let verdict = match self.keep_robots(&mut progress.traffic, record).await? {
            HasMemory::Yes => verdict,
            HasMemory::No => Arc::new(RobotsVerdict::Unreachable(RobotsCause::BodyNotRead)),
        };
        self.adopt(host, Arc::clone(&verdict), memory, true);
        progress.traffic.robots_last.insert(host.clone());
        Ok(Robots::Verdict(verdict))
    }
}

/// How the robots.txt of a host, from this visit or an earlier one, may be used at `now`.
pub(in super::super) fn robots_use(
    site: &SiteState,
    traffic: &Traffic,
    host: &Host,
    now: DateTime<Utc>,
) -> CopyUse {
    let of_visit = traffic.robots.get(host).map(|record| &**record);
    let of_site = || site.hosts.iter().find(|state| state.host == *host)?.robots.as_ref();
    of_visit.or_else(of_site).map_or(CopyUse::DenyOnly, |record| copy_use(site, traffic, record, now))
}

/// How a copy may be used at `now`. If the delay of its host is longer than the validity of the copy, the copy may be used for one more
/// request. This includes a long delay for which an earlier visit did not wait, because this visit sends the first request after it.
fn copy_use(site: &SiteState, traffic: &Traffic, record: &RobotsRecord, now: DateTime<Utc>) -> CopyUse {
    if !traffic.robots.contains_key(&record.host) && is_without_evidence(site, record, now) {
        return CopyUse::DenyOnly;
    }
    let state = site.hosts.iter().find(|state| state.host == record.host);
    let began_at = traffic.began_at.filter(|at| record.fetched_at < *at);
    let delay_ends_at =
        state.and_then(|state| state.next_ok_at).map(|at| began_at.map_or(at, |began| at.max(began)));
    match delay_ends_at.filter(|_| traffic.robots_last.contains(&record.host)) {
        Some(at) => CopyUse::after_delay((record.fetched_at, record.expires_at), at, now),
        None => CopyUse::at(record.expires_at, now),
    }
}

/// Whether the result of an earlier request for robots.txt is ignored, because no server was reached. Then the visit requests robots.txt
/// again. At main hosts and at hosts of the operator's list, this applies to every visit, because the schedule of visits already depends on
/// failures. At other hosts, it applies only to a requested visit, which begins less than a day after the last one. Other visits respect
/// the expiry of the result, because each host without a server would cost time.
pub(crate) fn is_without_evidence(site: &SiteState, record: &RobotsRecord, now: DateTime<Utc>) -> bool {
    let cause = record.cause.as_deref().and_then(RobotsCause::of_stored);
    let is_listed =
        || site.hosts.iter().any(|state| state.host == record.host && state.origin == HostOrigin::Listed);
    let is_requested = || {
        let is_of_last_visit = |at: DateTime<Utc>| record.fetched_at <= at;
        let is_soon = |at: DateTime<Utc>| (now - at).to_std().is_ok_and(|since| since < REVISIT_EVERY_FLOOR);
        site.last_visit_at.is_none_or(|at| is_soon(at) || !is_of_last_visit(at))
    };
    match cause {
        Some(RobotsCause::AddressRefused) => true,
        Some(cause) if cause.is_without_server() => {
            is_main_host(&site.name, &record.host) || is_listed() || is_requested()
        }
        _ => false,
    }
}

/// Whether a visit has memory for a file.
enum HasMemory {
    Yes,
    No,
}

/// The other host of the site to whose robots.txt a redirect led. That file need not be fetched again.
fn file_of_other_host(requested: &Host, read: &ManifestUrl, record: &RobotsRecord) -> Option<Host> {
    let other = read.host();
    let is_own_file = record.kind == RobotsKind::Rules && read.path_and_query() == ROBOTS_PATH;
    (is_own_file && other != *requested).then_some(other)
}

/// The meaning of one response in the chain of redirects to a robots.txt.
enum Step<'a> {
    /// The stored copy is still valid.
    Confirmed(&'a RobotsRecord),
    Hop(ManifestUrl),
    OtherSite(ManifestUrl),
    Done(RobotsResponse<'a>),
}

fn step<'a>(
    chain: &[ManifestUrl],
    head: &Head,
    body: Option<&'a [u8]>,
    kept: Option<&'a RobotsRecord>,
    conditions: &HeaderMap,
) -> Step<'a> {
    let (status, headers) = (head.status.as_u16(), &head.headers);
    match (RobotsResponse::answered(status, headers, body), kept) {
        (RobotsResponse::Answered { status: 304, .. }, Some(record)) if !conditions.is_empty() => {
            Step::Confirmed(record)
        }
        (RobotsResponse::Answered { status: 301 | 302 | 303 | 307 | 308, .. }, _) => {
            match decide(chain, head.text(&LOCATION), Purpose::Robots) {
                RedirectDecision::Follow(next) => Step::Hop(next),
                RedirectDecision::OtherSite(next) => Step::OtherSite(next),
                RedirectDecision::Refuse(refusal) => Step::Done(RobotsResponse::Redirect(refusal)),
            }
        }
        (answer, _) => Step::Done(answer),
    }
}

/// A seed for the site to which a robots.txt redirects. Contains only the host, because nothing indicates that the URL is a manifest.
fn seed_of(target: &ManifestUrl, from: &ManifestUrl) -> Vec<Seed> {
    let may_be_seed = is_kept(from) && SiteScope::Public.check_url(target).is_ok();
    may_be_seed.then(|| Seed::linked_host(target.host(), from.clone())).into_iter().collect()
}
