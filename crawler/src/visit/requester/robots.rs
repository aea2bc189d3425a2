//! The robots.txt of a host: the stored copy while it is valid, else fetched before anything else.
//!
//! A redirect may lead to another host of the site, whose clock, Crawl-delay and budget then apply; what is found there holds
//! for the host that was requested first (RFC 9309 §2.3.1.2). A redirect to another site is not followed: this robots.txt is
//! unreachable, and the other site becomes a seed. Files of more than 16 KiB are parsed once, on the reader threads.

use std::sync::Arc;

use http::header::{HeaderMap, LOCATION};
use manifest::{Host, ManifestUrl, SiteScope};
use policy::plan::ROBOTS_PATH;
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::robots::{CopyUse, PRODUCT_TOKEN, RobotsCause, SHORT_BYTES_MAX};
use policy::{BodyKind, RobotsDecision, RobotsKind, RobotsResponse, RobotsVerdict};
use store::{RobotsRecord, Seed};

use super::super::context::{Interrupt, unless_busy};
use super::super::links::{FollowUps, is_kept};
use super::super::progress::Progress;
use super::super::traffic::Traffic;
use super::records::{conditions_of, record_of, renewed, restore};
use super::{Exchange, Requester};
use crate::egress::{Cause, Reply};
use crate::events::Event;
use crate::{clock, metrics};

/// The result of fetching robots.txt.
pub(in super::super) enum Robots {
    Verdict(Arc<RobotsVerdict>),
    /// The name does not exist, which says nothing about robots.txt.
    NoName,
}

impl Requester<'_> {
    /// The verdict for a host.
    pub(in super::super) async fn robots(
        &mut self,
        progress: &mut Progress,
        host: &Host,
    ) -> Result<Robots, Interrupt> {
        if let Some(verdict) = self.verdicts.get(host) {
            return Ok(Robots::Verdict(Arc::clone(verdict)));
        }
        let stored = self.stored_robots(&progress.traffic, host).cloned();
        let current =
            stored.as_ref().filter(|record| CopyUse::at(record.expires_at, clock::now()) == CopyUse::Current);
        if let Some(record) = current {
            metrics::copy_used("robots");
            let verdict = self.restored(record).await?;
            return Ok(Robots::Verdict(self.adopt(host, Arc::new(verdict))));
        }
        Box::pin(self.fetch_robots(progress, host, stored)).await
    }

    /// The record of a host's robots.txt, of this visit or an earlier one.
    fn stored_robots<'s>(&'s self, traffic: &'s Traffic, host: &Host) -> Option<&'s RobotsRecord> {
        let of_visit = traffic.robots.get(host).map(Box::as_ref);
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

    /// The verdict of a host's stored robots.txt, before this visit has checked it.
    pub(super) async fn verdict_before(
        &self,
        traffic: &Traffic,
        host: &Host,
    ) -> Result<Option<Arc<RobotsVerdict>>, Interrupt> {
        let record = self.stored_robots(traffic, host).filter(|_| !self.verdicts.contains_key(host));
        let Some(record) = record else { return Ok(None) };
        Ok(Some(Arc::new(self.restored(record).await?)))
    }

    /// The verdict of a stored record. A long file that cannot be parsed in time permits nothing.
    async fn restored(&self, record: &RobotsRecord) -> Result<RobotsVerdict, Interrupt> {
        let bytes = record.body.as_ref().map_or(0, Vec::len);
        if bytes <= SHORT_BYTES_MAX {
            return Ok(restore(record));
        }
        let long = record.clone();
        let parsed = unless_busy(self.tools.reader.run(move || restore(&long)).await)?;
        Ok(parsed.unwrap_or(RobotsVerdict::Unreachable(RobotsCause::BodyNotRead)))
    }

    /// The verdict of an answer. A long file that cannot be parsed in time permits nothing.
    async fn judged_robots(&self, answer: RobotsResponse<'_>) -> Result<RobotsVerdict, Interrupt> {
        let RobotsResponse::Answered { status, body: Some(body) } = answer else {
            return Ok(RobotsVerdict::of(answer, PRODUCT_TOKEN));
        };
        if body.len() <= SHORT_BYTES_MAX {
            return Ok(RobotsVerdict::of(answer, PRODUCT_TOKEN));
        }
        let body = body.to_vec();
        let parse = move || {
            let answer = RobotsResponse::Answered { status, body: Some(&body) };
            RobotsVerdict::of(answer, PRODUCT_TOKEN)
        };
        let parsed = unless_busy(self.tools.reader.run(parse).await)?;
        Ok(parsed.unwrap_or(RobotsVerdict::Unreachable(RobotsCause::BodyNotRead)))
    }

    /// The decisions of a verdict on paths, whose work is limited together. Long work is done on the reader threads; where that
    /// fails, nothing is permitted.
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

    /// The decision of a verdict on one path; likewise.
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
        let kept = stored.as_ref().filter(|record| record.kind == RobotsKind::Rules && record.body.is_some());
        let (conditions, plain) = (kept.map(conditions_of).unwrap_or_default(), HeaderMap::new());
        let mut chain = progress.traffic.robots_hops.remove(host).unwrap_or_else(|| vec![url.clone()]);
        let mut current = chain.last().cloned().unwrap_or(url);
        let (mut record, verdict) = loop {
            // validators go to the URL that gave them, and not where it redirects to
            let conditions = if chain.len() == 1 { &conditions } else { &plain };
            let Exchange { answer, .. } =
                match self.get(progress, &current, BodyKind::Robots, conditions).await {
                    Ok(exchange) => exchange,
                    Err(interrupt) => {
                        progress.traffic.robots_hops.insert(host.clone(), chain);
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
                        None => Arc::new(self.restored(record).await?),
                    };
                    break (renewed(record, &verdict, &reply.head), verdict);
                }
                Step::Hop(next) => {
                    chain.push(next.clone());
                    current = next;
                    continue;
                }
                Step::OtherSite(next) => {
                    progress.follow(seed_of(&next, &current));
                    RobotsResponse::OtherSite
                }
                Step::Done(answer) => answer,
            };
            let verdict = self.judged_robots(answer).await?;
            break record_of(host, verdict, Some(&reply), stored.as_ref());
        };
        let (kind, cause, use_until) = (record.kind, record.cause.as_deref(), record.expires_at);
        self.tools.events.write(Event::Robots { host, kind, cause, use_until });
        if let Some(other) = file_of_other_host(host, &current, &record) {
            self.adopt(&other, Arc::clone(&verdict));
            let copy = RobotsRecord { host: other.clone(), ..record.clone() };
            progress.traffic.robots.insert(other, Box::new(copy));
        }
        if chain.len() > 1 {
            (record.etag, record.last_modified) = (None, None);
        }
        progress.traffic.robots.insert(host.clone(), Box::new(record));
        Ok(Robots::Verdict(self.adopt(host, verdict)))
    }
}

/// The other host of the site whose own robots.txt a redirect led to, which need not be fetched again.
fn file_of_other_host(asked: &Host, read: &ManifestUrl, record: &RobotsRecord) -> Option<Host> {
    let other = read.host();
    let is_own_file = record.kind == RobotsKind::Rules && read.path_and_query() == ROBOTS_PATH;
    (is_own_file && other != *asked).then_some(other)
}

/// What an answer on the way to a robots.txt means.
enum Step<'a> {
    /// The stored copy is still valid.
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

/// The other site that a robots.txt redirects to, by its host alone: nothing says that it has a manifest.
fn seed_of(target: &ManifestUrl, from: &ManifestUrl) -> FollowUps {
    let may_be_seed = is_kept(from) && SiteScope::Public.check_url(target).is_ok();
    let seed = may_be_seed.then(|| Seed::linked_host(target.host(), from.clone()));
    FollowUps { tasks: Vec::new(), seeds: seed.into_iter().collect() }
}
