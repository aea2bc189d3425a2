//! robots.txt of an authority: the stored copy within its time, else asked for, before anything else is.
//!
//! A redirect may lead to another host of the site, whose clock, Crawl-delay and budget then count; what is found there
//! holds for the authority that was asked (RFC 9309 §2.3.1.2). One that leads to another site is not followed: this
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
use policy::robots::{CopyUse, PRODUCT_TOKEN, RobotsCause, StoredVerdict};
use policy::{BodyKind, RobotsAnswer, RobotsKind, RobotsVerdict};
use store::{RobotsRecord, Seed, SeedOrigin};

use super::ask::Exchange;
use super::links::Leads;
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
            return Ok(Robots::Verdict(self.adopt(host, restore(record))));
        }
        Box::pin(self.ask_robots(host, stored)).await
    }

    /// What robots.txt of a host came to in this visit or before it.
    pub(super) fn stored_robots(&self, host: &Host) -> Option<&RobotsRecord> {
        let of_visit = self.progress.robots.get(host).map(Box::as_ref);
        let of_site = || self.site.hosts.iter().find(|state| state.host == *host)?.robots.as_ref();
        of_visit.or_else(of_site)
    }

    fn adopt(&mut self, host: &Host, verdict: RobotsVerdict) -> Arc<RobotsVerdict> {
        let verdict = Arc::new(verdict);
        self.verdicts.insert(host.clone(), Arc::clone(&verdict));
        verdict
    }

    async fn ask_robots(&mut self, host: &Host, stored: Option<RobotsRecord>) -> Result<Robots, Interrupt> {
        let Ok(url) = ManifestUrl::on_host(host, ROBOTS_PATH) else { return Ok(Robots::NoName) };
        let kept = stored.as_ref().filter(|record| record.kind == RobotsKind::Rules && record.body.is_some());
        let (conditions, plain) = (kept.map(conditions_of).unwrap_or_default(), HeaderMap::new());
        let mut chain = self.progress.robots_hops.remove(host).unwrap_or_else(|| vec![url.clone()]);
        let mut current = chain.last().cloned().unwrap_or(url);
        let mut record = loop {
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
                    let answer = RobotsAnswer::Failed(failure.cause.outcome());
                    break record_of(host, answer, None, stored.as_ref());
                }
                Ok(reply) => reply,
            };
            let answer = match step(&chain, &reply, kept, conditions) {
                Step::Confirmed(record) => break renewed(record, &reply.head),
                Step::Hop(next) => {
                    chain.push(next.clone());
                    current = next;
                    continue;
                }
                Step::OtherSite(next) => {
                    self.progress.follow(seed_of(&next, &current));
                    RobotsAnswer::OtherSite
                }
                Step::Done(answer) => answer,
            };
            break record_of(host, answer, Some(&reply), stored.as_ref());
        };
        let verdict = restore(&record);
        let (kind, cause, use_until) = (record.kind, record.cause.as_deref(), record.expires_at);
        self.tools.events.tell(Event::Robots { host, kind, cause, use_until });
        if let Some(other) = file_of_other_host(host, &current, &record) {
            self.adopt(&other, restore(&record));
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
    Done(RobotsAnswer<'a>),
}

fn step<'a>(
    chain: &[ManifestUrl],
    reply: &'a Reply,
    kept: Option<&'a RobotsRecord>,
    conditions: &HeaderMap,
) -> Step<'a> {
    let (status, headers) = (reply.head.status.as_u16(), &reply.head.headers);
    let body = reply.body.as_ref().map(|body| body.bytes.as_slice());
    match (RobotsAnswer::answered(status, headers, body), kept) {
        (RobotsAnswer::Answered { status: 304, .. }, Some(record)) if !conditions.is_empty() => {
            Step::Confirmed(record)
        }
        (RobotsAnswer::Answered { status: 301 | 302 | 303 | 307 | 308, .. }, _) => {
            match decide(chain, reply.head.text(&LOCATION), Purpose::Robots) {
                RedirectDecision::Follow(next) => Step::Hop(next),
                RedirectDecision::OtherSite(next) => Step::OtherSite(next),
                RedirectDecision::Refuse(refusal) => Step::Done(RobotsAnswer::Redirect(refusal)),
            }
        }
        (answer, _) => Step::Done(answer),
    }
}

/// The site that a robots.txt led away to, by its host alone: nothing says that there is a manifest.
fn seed_of(target: &ManifestUrl, from: &ManifestUrl) -> Leads {
    let origin = SeedOrigin::Linked { from: from.clone() };
    let seed = Seed { host: target.host(), url: None, rank: None, origin, revisit_now: false };
    let may_be_site = SiteScope::Public.check_url(target).is_ok();
    Leads { tasks: Vec::new(), seeds: may_be_site.then_some(seed).into_iter().collect() }
}

fn record_of(
    host: &Host,
    answer: RobotsAnswer<'_>,
    reply: Option<&Reply>,
    before: Option<&RobotsRecord>,
) -> RobotsRecord {
    let now = clock::now();
    let walls_in_row = before.filter(|record| is_wall(record)).map_or(1, next_in_row);
    let verdict = RobotsVerdict::of(answer, PRODUCT_TOKEN).after_walls(walls_in_row);
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
    RobotsRecord {
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
    }
}

fn is_wall(record: &RobotsRecord) -> bool {
    record.cause.as_deref() == Some(RobotsCause::BotWall.as_str())
}

const fn next_in_row(before: &RobotsRecord) -> u32 {
    before.failures_in_row.saturating_add(1)
}

/// The verdict that a record stands for.
pub(crate) fn restore(record: &RobotsRecord) -> RobotsVerdict {
    let stored = StoredVerdict {
        kind: record.kind,
        cause: record.cause.as_deref().and_then(|cause| cause.parse().ok()),
        status: record.status,
        body: record.body.as_deref(),
    };
    RobotsVerdict::restore(stored, PRODUCT_TOKEN)
}

/// A copy that was confirmed by 304.
fn renewed(record: &RobotsRecord, head: &Head) -> RobotsRecord {
    let now = clock::now();
    let max_age = CacheRecord::of(200, &head.headers, now).stated_lifetime();
    let expires_at = restore(record).expires_at(now, max_age, 0);
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
