//! robots.txt of an authority: the stored copy within its time, else asked for, before anything else is.
//!
//! A redirect may lead to another host of the site, whose clock, Crawl-delay and budget then count; what is found there
//! holds for the authority that was asked (RFC 9309 §2.3.1.2). Files of more than 16 KiB are parsed on the threads for
//! reading, once each. One that leads to another site is not followed: this
//! robots.txt is unreachable, and the other site a seed. What was decided is kept with its cause, so that the next visit
//! and the site owner know.

use std::sync::Arc;

use http::header::{
    ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use manifest::{Host, ManifestUrl, SiteScope};
use policy::freshness::CacheRecord;
use policy::plan::ROBOTS_PATH;
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::robots::{CopyUse, PRODUCT_TOKEN, RobotsCause, SHORT_BYTES_MAX, StoredVerdict};
use policy::{BodyKind, RobotsDecision, RobotsFile, RobotsKind, RobotsResponse, RobotsVerdict};
use store::{RobotsRecord, Seed};

use super::ask::Exchange;
use super::links::{Leads, is_kept};
use super::{Interrupt, Visit};
use crate::egress::{Cause, Head, Reply};
use crate::events::Event;
use crate::{clock, metrics};

/// What asking for robots.txt came to.
pub(super) enum Robots {
    Verdict(Arc<RobotsVerdict>),
    /// The name does not exist; that says nothing about robots.txt.
    NoName,
}

impl Visit<'_> {
    /// The verdict for an authority.
    pub(super) async fn robots(&mut self, host: &Host) -> Result<Robots, Interrupt> {
        if let Some(verdict) = self.verdicts.get(host) {
            return Ok(Robots::Verdict(Arc::clone(verdict)));
        }
        let stored = self.stored_robots(host).cloned();
        let current =
            stored.as_ref().filter(|record| CopyUse::at(record.expires_at, clock::now()) == CopyUse::Current);
        if let Some(record) = current {
            metrics::copy_used("robots");
            let verdict = self.restored(record).await;
            return Ok(Robots::Verdict(self.adopt(host, Arc::new(verdict))));
        }
        Box::pin(self.ask_robots(host, stored)).await
    }

    /// What robots.txt of a host came to in this visit or before it.
    pub(super) fn stored_robots(&self, host: &Host) -> Option<&RobotsRecord> {
        let of_visit = self.progress.robots.get(host).map(Box::as_ref);
        let of_site = || self.site.hosts.iter().find(|state| state.host == *host)?.robots.as_ref();
        of_visit.or_else(of_site)
    }

    fn adopt(&mut self, host: &Host, verdict: Arc<RobotsVerdict>) -> Arc<RobotsVerdict> {
        self.verdicts.insert(host.clone(), Arc::clone(&verdict));
        if let Some(authority) = self.authorities.get_mut(host) {
            authority.copy = None;
        }
        verdict
    }

    /// The verdict of a host's robots.txt before it is looked at in this visit: what it said the last time, parsed once.
    pub(super) async fn verdict_before(&self, host: &Host) -> Option<Arc<RobotsVerdict>> {
        if self.verdicts.contains_key(host) {
            return None;
        }
        let record = self.stored_robots(host)?;
        Some(Arc::new(self.restored(record).await))
    }

    /// The verdict that a record stands for. A long file that cannot be parsed in time permits nothing.
    async fn restored(&self, record: &RobotsRecord) -> RobotsVerdict {
        let bytes = record.body.as_ref().map_or(0, Vec::len);
        if bytes <= SHORT_BYTES_MAX {
            return restore(record);
        }
        let long = record.clone();
        let parsed = self.tools.reader.run(move || restore(&long)).await;
        parsed.unwrap_or_else(|_| RobotsVerdict::Unreachable(RobotsCause::BodyNotRead))
    }

    /// The verdict of an answer; likewise.
    async fn judged_robots(&self, answer: RobotsResponse<'_>) -> RobotsVerdict {
        let RobotsResponse::Answered { status, body: Some(body) } = answer else {
            return RobotsVerdict::of(answer, PRODUCT_TOKEN);
        };
        if body.len() <= SHORT_BYTES_MAX {
            return RobotsVerdict::of(answer, PRODUCT_TOKEN);
        }
        let body = body.to_vec();
        let parse = move || {
            let answer = RobotsResponse::Answered { status, body: Some(&body) };
            RobotsVerdict::of(answer, PRODUCT_TOKEN)
        };
        let parsed = self.tools.reader.run(parse).await;
        parsed.unwrap_or(RobotsVerdict::Unreachable(RobotsCause::BodyNotRead))
    }

    /// What a verdict says of paths. Those of a file with many rules are compared on the threads for reading; where that takes too
    /// long, nothing is permitted.
    pub(super) async fn decisions(
        &self,
        verdict: &Arc<RobotsVerdict>,
        paths: Vec<String>,
    ) -> Vec<RobotsDecision> {
        let count = paths.len();
        let decide = {
            let verdict = Arc::clone(verdict);
            move || paths.iter().map(|path| verdict.decide(path)).collect()
        };
        let decided = self.tools.reader.run_over(comparison_bytes(verdict), decide).await;
        decided.unwrap_or_else(|_| vec![RobotsDecision::Unreachable(RobotsCause::BodyNotRead); count])
    }

    /// What a verdict says of one path; likewise.
    pub(super) async fn decision(&self, verdict: &Arc<RobotsVerdict>, path: String) -> RobotsDecision {
        if comparison_bytes(verdict) <= SHORT_BYTES_MAX {
            return verdict.decide(&path);
        }
        let decided = Box::pin(self.decisions(verdict, vec![path])).await;
        decided.into_iter().next().unwrap_or(RobotsDecision::Unreachable(RobotsCause::BodyNotRead))
    }

    async fn ask_robots(&mut self, host: &Host, stored: Option<RobotsRecord>) -> Result<Robots, Interrupt> {
        let Ok(url) = ManifestUrl::on_host(host, ROBOTS_PATH) else { return Ok(Robots::NoName) };
        let kept = stored.as_ref().filter(|record| record.kind == RobotsKind::Rules && record.body.is_some());
        let (conditions, plain) = (kept.map(conditions_of).unwrap_or_default(), HeaderMap::new());
        let mut chain = self.progress.robots_hops.remove(host).unwrap_or_else(|| vec![url.clone()]);
        let mut current = chain.last().cloned().unwrap_or(url);
        let (mut record, verdict) = loop {
            // validators go to the URL that gave them, and not where it redirects to
            let conditions = if chain.len() == 1 { &conditions } else { &plain };
            let Exchange { answer, .. } = match self.request(&current, BodyKind::Robots, conditions).await {
                Ok(exchange) => exchange,
                Err(interrupt) => {
                    self.progress.robots_hops.insert(host.clone(), chain);
                    return Err(interrupt);
                }
            };
            let reply = match answer {
                Err(failure) if failure.cause == Cause::NameUnknown && chain.len() == 1 => {
                    return Ok(Robots::NoName);
                }
                Err(failure) => {
                    tracing::debug!(%host, reason = %failure, "robots.txt could not be asked for");
                    let answer = RobotsResponse::Failed(failure.cause.outcome());
                    let verdict = RobotsVerdict::of(answer, PRODUCT_TOKEN);
                    break record_of(host, verdict, None, stored.as_ref());
                }
                Ok(reply) => reply,
            };
            let answer = match step(&chain, &reply, kept, conditions) {
                Step::Confirmed(record) => {
                    let verdict = match self.authorities.get_mut(host).and_then(|known| known.copy.take()) {
                        Some(verdict) => verdict,
                        None => Arc::new(self.restored(record).await),
                    };
                    break (renewed(record, &verdict, &reply.head), verdict);
                }
                Step::Hop(next) => {
                    chain.push(next.clone());
                    current = next;
                    continue;
                }
                Step::OtherSite(next) => {
                    self.progress.follow(seed_of(&next, &current));
                    RobotsResponse::OtherSite
                }
                Step::Done(answer) => answer,
            };
            let verdict = self.judged_robots(answer).await;
            break record_of(host, verdict, Some(&reply), stored.as_ref());
        };
        let (kind, cause, use_until) = (record.kind, record.cause.as_deref(), record.expires_at);
        self.tools.events.tell(Event::Robots { host, kind, cause, use_until });
        if let Some(other) = file_of_other_host(host, &current, &record) {
            self.adopt(&other, Arc::clone(&verdict));
            let copy = RobotsRecord { host: other.clone(), ..record.clone() };
            self.progress.robots.insert(other, Box::new(copy));
        }
        if chain.len() > 1 {
            (record.etag, record.last_modified) = (None, None);
        }
        self.progress.robots.insert(host.clone(), Box::new(record));
        Ok(Robots::Verdict(self.adopt(host, verdict)))
    }
}

/// The other host of the site whose own robots.txt a redirect led to: it need not be asked for once more.
fn file_of_other_host(asked: &Host, read: &ManifestUrl, record: &RobotsRecord) -> Option<Host> {
    let other = read.host();
    let is_own_file = record.kind == RobotsKind::Rules && read.path_and_query() == ROBOTS_PATH;
    (is_own_file && other != *asked).then_some(other)
}

/// What an answer on the way to a robots.txt means.
enum Step<'a> {
    /// The copy that is kept still stands.
    Confirmed(&'a RobotsRecord),
    Hop(ManifestUrl),
    OtherSite(ManifestUrl),
    Done(RobotsResponse<'a>),
}

fn step<'a>(
    chain: &[ManifestUrl],
    reply: &'a Reply,
    kept: Option<&'a RobotsRecord>,
    conditions: &HeaderMap,
) -> Step<'a> {
    let (status, headers) = (reply.head.status.as_u16(), &reply.head.headers);
    let body = reply.body.as_ref().map(|body| body.bytes.as_slice());
    match (RobotsResponse::answered(status, headers, body), kept) {
        (RobotsResponse::Answered { status: 304, .. }, Some(record)) if !conditions.is_empty() => {
            Step::Confirmed(record)
        }
        (RobotsResponse::Answered { status: 301 | 302 | 303 | 307 | 308, .. }, _) => {
            match decide(chain, reply.head.text(&LOCATION), Purpose::Robots) {
                RedirectDecision::Follow(next) => Step::Hop(next),
                RedirectDecision::OtherSite(next) => Step::OtherSite(next),
                RedirectDecision::Refuse(refusal) => Step::Done(RobotsResponse::Redirect(refusal)),
            }
        }
        (answer, _) => Step::Done(answer),
    }
}

/// The site that a robots.txt led away to, by its host alone: nothing says that there is a manifest.
fn seed_of(target: &ManifestUrl, from: &ManifestUrl) -> Leads {
    let may_be_seed = is_kept(from) && SiteScope::Public.check_url(target).is_ok();
    let seed = may_be_seed.then(|| Seed::linked_host(target.host(), from.clone()));
    Leads { tasks: Vec::new(), seeds: seed.into_iter().collect() }
}

/// What is kept of an answer, and the verdict with what was known before.
fn record_of(
    host: &Host,
    verdict: RobotsVerdict,
    reply: Option<&Reply>,
    before: Option<&RobotsRecord>,
) -> (RobotsRecord, Arc<RobotsVerdict>) {
    let now = clock::now();
    let walls_in_row = before.filter(|record| is_wall(record)).map_or(1, next_in_row);
    let verdict = verdict.after_bot_walls(walls_in_row);
    let failures_in_row = match (verdict.cause(), verdict.kind()) {
        // walls have a row of their own
        (Some(RobotsCause::BotWall), _) => walls_in_row,
        (_, RobotsKind::Unreachable) => before.map_or(1, next_in_row),
        _ => 0,
    };
    let head = reply.map(|reply| &reply.head);
    let max_age =
        head.and_then(|head| CacheRecord::of(head.status.as_u16(), &head.headers, now).stated_lifetime());
    let is_rules = verdict.kind() == RobotsKind::Rules;
    let validator =
        |name: &HeaderName| head.filter(|_| is_rules).and_then(|head| head.headers.get(name)).map(to_latin1);
    let record = RobotsRecord {
        host: host.clone(),
        kind: verdict.kind(),
        cause: verdict.cause().map(|cause| cause.as_str().to_owned()),
        status: head.map(|head| head.status.as_u16()),
        body: reply.filter(|_| is_rules).and_then(|reply| Some(reply.body.as_ref()?.bytes.clone())),
        fetched_at: now,
        expires_at: verdict.expires_at(now, max_age, failures_in_row),
        failures_in_row,
        etag: validator(&ETAG),
        last_modified: validator(&LAST_MODIFIED),
    };
    (record, Arc::new(verdict))
}

fn comparison_bytes(verdict: &RobotsVerdict) -> usize {
    verdict.file().map_or(0, RobotsFile::pattern_bytes)
}

fn is_wall(record: &RobotsRecord) -> bool {
    record.cause.as_deref() == Some(RobotsCause::BotWall.as_str())
}

const fn next_in_row(before: &RobotsRecord) -> u32 {
    before.failures_in_row.saturating_add(1)
}

/// The verdict that a record stands for.
fn restore(record: &RobotsRecord) -> RobotsVerdict {
    let stored = StoredVerdict {
        kind: record.kind,
        cause: record.cause.as_deref().and_then(|cause| cause.parse().ok()),
        status: record.status,
        body: record.body.as_deref(),
    };
    RobotsVerdict::restore(stored, PRODUCT_TOKEN)
}

/// A copy that was confirmed by 304.
fn renewed(record: &RobotsRecord, verdict: &RobotsVerdict, head: &Head) -> RobotsRecord {
    let now = clock::now();
    let max_age = CacheRecord::of(200, &head.headers, now).stated_lifetime();
    let expires_at = verdict.expires_at(now, max_age, 0);
    RobotsRecord { fetched_at: now, expires_at, failures_in_row: 0, ..record.clone() }
}

fn conditions_of(record: &RobotsRecord) -> HeaderMap {
    let given = [(IF_NONE_MATCH, &record.etag), (IF_MODIFIED_SINCE, &record.last_modified)];
    given.into_iter().filter_map(|(name, text)| Some((name, from_latin1(text.as_ref()?)?))).collect()
}

/// Every octet of a header value as one character, so that validators go back byte for byte.
fn to_latin1(value: &HeaderValue) -> String {
    value.as_bytes().iter().map(|octet| char::from(*octet)).collect()
}

fn from_latin1(text: &str) -> Option<HeaderValue> {
    let octets: Option<Vec<u8>> = text.chars().map(|character| u8::try_from(character).ok()).collect();
    HeaderValue::from_bytes(&octets?).ok()
}
