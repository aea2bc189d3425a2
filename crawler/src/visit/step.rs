//! One task of a visit, from the copy that may still be fresh to the links of the answer.

use chrono::{DateTime, Utc};
use http::HeaderMap;
use http::header::LOCATION;
use manifest::Host;
use policy::freshness::{self, CacheRecord, NotModified};
use policy::redirect::{Purpose, RedirectDecision, decide};
use policy::{FetchOutcome, NextStep, RobotsVerdict, VisitEnd};
use store::{ResourceState, Seed};

use super::ask::{Exchange, end_of_failure, millis};
use super::fetched::{Document, Fetched};
use super::links::{self, Leads};
use super::robots::Robots;
use super::task::{Plainly, Role, Task};
use super::{Interrupt, Visit, judge};
use crate::clock;
use crate::egress::{Failure, Reply};

impl Visit<'_> {
    /// Does one task and says what comes next.
    pub(super) async fn step(&mut self, task: &mut Task) -> Result<NextStep, Interrupt> {
        let host = task.url.host();
        let known = self.site.resources.iter().find(|known| known.url == task.url).cloned();
        if let Some(known) = known.as_ref().filter(|known| is_fresh(known, task)) {
            return self.stay_with_copy(task, known).await;
        }
        let verdict = match self.robots(&host).await? {
            Robots::Verdict(verdict) => verdict,
            Robots::NoName => {
                let reason = Some("the name does not exist".to_owned());
                let fetched = Fetched::unanswered(task, FetchOutcome::DnsFailed, reason, clock::now());
                self.progress.record(task.slot, fetched);
                return Ok(NextStep::Stop(VisitEnd::DnsDead));
            }
        };
        if let NextStep::Stop(end) = self.greet(&host, &verdict, task) {
            return Ok(NextStep::Stop(end));
        }
        if task.role == Role::Part && known.as_ref().is_some_and(|known| known.outcome.is_present()) {
            self.prefer_plainly_without_copy(task, known.as_ref()).await?;
        }
        let fetched = self.answer(task, known.as_ref()).await?;
        self.conclude(task, fetched, known.as_ref()).await
    }

    /// At the first word with a host: whether robots.txt leaves anything to ask, and where its Agentmap lines lead.
    fn greet(&mut self, host: &Host, verdict: &RobotsVerdict, task: &Task) -> NextStep {
        if !self.greeted.insert(host.clone()) {
            return NextStep::Continue;
        }
        let queued = self.progress.queue.iter().filter(|queued| queued.url.host() == *host);
        let paths: Vec<String> =
            std::iter::once(task).chain(queued).map(|task| task.url.path_and_query()).collect();
        let rules = self.progress.rules.entry(host.clone()).or_default();
        let next = rules.observe_robots(verdict, paths.iter().map(String::as_str));
        match next {
            NextStep::Stop(_) => self.refuse_known(host, verdict),
            _ => {
                if let Some(file) = verdict.file() {
                    self.progress.follow(links::of_robots(&task.url, file));
                }
            }
        }
        next
    }

    /// What is known of a host that may no longer be asked.
    fn refuse_known(&mut self, host: &Host, verdict: &RobotsVerdict) {
        let now = clock::now();
        let known = self.site.resources.iter().filter(|known| known.url.host() == *host);
        let refused: Vec<Fetched> = known
            .filter_map(|known| {
                let decision = verdict.decide(&known.url.path_and_query());
                let task = Task {
                    linked_from: known.linked_from.clone(),
                    ..Task::new(known.url.clone(), policy::BodyKind::Manifest, known.discovery)
                };
                let fetched = Fetched::unanswered(&task, decision.outcome()?, None, now);
                Some(Fetched { robots_rule: Some(decision.to_string()), ..fetched })
            })
            .collect();
        self.progress.fetched.extend(refused);
    }

    /// A copy that is fresh is not asked for; its parts may be stale all the same.
    async fn stay_with_copy(&mut self, task: &Task, known: &ResourceState) -> Result<NextStep, Interrupt> {
        if known.outcome.is_present() {
            let until = known.fresh_until.map(|until| until.format("%Y-%m-%d %H:%M:%S UTC").to_string());
            let reason = Some(format!("fresh until {}", until.unwrap_or_default()));
            let fetched = Fetched::unanswered(task, FetchOutcome::Fresh, reason, clock::now());
            self.progress.record(task.slot, fetched);
            self.follow_known_parts(task).await?;
        }
        Ok(NextStep::Continue)
    }

    /// Asks, following redirects, until there is a final answer.
    async fn answer(&mut self, task: &mut Task, known: Option<&ResourceState>) -> Result<Fetched, Interrupt> {
        let stored = known.and_then(|known| serde_json::from_value::<CacheRecord>(known.cache.clone()?).ok());
        loop {
            let current = task.current().clone();
            let decision = match self.robots(&current.host()).await? {
                Robots::Verdict(verdict) => verdict.decide(&current.path_and_query()),
                Robots::NoName => {
                    let reason =
                        Some(format!("the redirect leads to {}, which does not exist", current.host()));
                    return Ok(Fetched::unanswered(
                        task,
                        FetchOutcome::RedirectRefused,
                        reason,
                        clock::now(),
                    ));
                }
            };
            if let Some(outcome) = decision.outcome() {
                let fetched = Fetched::unanswered(task, outcome, Some(decision.to_string()), clock::now());
                return Ok(Fetched { robots_rule: Some(decision.to_string()), ..fetched });
            }
            let conditions = conditions(task, known, stored.as_ref());
            let asked = if conditions.is_empty() {
                freshness::Asked::Plainly
            } else {
                freshness::Asked::WithValidators
            };
            let exchange = self.request(&current, task.body, &conditions).await?;
            let Exchange { answer, at, took } = exchange;
            let rule = Some(decision.to_string());
            let stamped = |fetched: Fetched| Fetched {
                robots_rule: rule.clone(),
                duration_ms: millis(took),
                ..fetched
            };
            let reply = match answer {
                Ok(reply) => reply,
                Err(failure) => return Ok(stamped(failed(task, &failure, at))),
            };
            match reply.head.status.as_u16() {
                304 => match freshness::on_not_modified(
                    stored.as_ref(),
                    asked,
                    &reply.head.headers,
                    clock::now(),
                ) {
                    NotModified::Stands(cache) => return Ok(stamped(confirmed(task, &reply, cache, at))),
                    NotModified::AskPlainly(trouble) if task.plainly == Plainly::Yes => {
                        let reason =
                            Some(format!("the server answered 304 to an unconditional request ({trouble})"));
                        return Ok(stamped(Fetched::unanswered(
                            task,
                            FetchOutcome::ProtocolError,
                            reason,
                            at,
                        )));
                    }
                    NotModified::AskPlainly(_) => task.plainly = Plainly::Yes,
                },
                301 | 302 | 303 | 307 | 308 => {
                    match decide(&task.chain(), reply.head.text(&LOCATION), Purpose::Resource) {
                        RedirectDecision::Follow(next) => task.hops.push(next),
                        RedirectDecision::OtherSite(next) => {
                            let reason = Some(format!("redirects to {next}, which is another site"));
                            let fetched = answered(task, &reply, FetchOutcome::RedirectedAway, at);
                            self.progress.follow(Leads {
                                tasks: Vec::new(),
                                seeds: vec![Seed::linked(next, task.url.clone())],
                            });
                            return Ok(stamped(Fetched { reason, ..fetched }));
                        }
                        RedirectDecision::Refuse(refusal) => {
                            let location = reply.head.text(&LOCATION).unwrap_or_default();
                            let shown: String = location.chars().take(200).collect();
                            let reason =
                                Some(format!("the redirect to \"{shown}\" is not followed: {refusal}"));
                            let fetched = answered(task, &reply, refusal.outcome(), at);
                            return Ok(stamped(Fetched { reason, ..fetched }));
                        }
                    }
                }
                _ => return Ok(stamped(judged(task, reply, at))),
            }
        }
    }

    /// Records what became of a task, follows where it leads, and lets the rules of ending decide.
    async fn conclude(
        &mut self,
        task: &Task,
        mut fetched: Fetched,
        known: Option<&ResourceState>,
    ) -> Result<NextStep, Interrupt> {
        let rules = self.progress.rules.entry(task.url.host()).or_default();
        let next = match task.role {
            Role::Canary => rules.observe_canary(fetched.outcome),
            // what a link leads to may well be a page
            _ if fetched.outcome == FetchOutcome::Html && task.slot.is_none() => NextStep::Continue,
            _ => rules.observe(fetched.outcome, task.body, fetched.hash.as_ref()),
        };
        if task.role == Role::Canary {
            return Ok(next);
        }
        if let Some(leads) = fetched.page.take() {
            self.progress.follow(leads);
        }
        if let Some(manifest) = &fetched.manifest {
            self.progress.follow(links::of_manifest(manifest));
        }
        let is_unchanged = fetched.outcome == FetchOutcome::NotModified;
        self.progress.record(task.slot, fetched);
        if is_unchanged && known.is_some() {
            self.follow_known_parts(task).await?;
        }
        Ok(next)
    }
}

fn is_fresh(known: &ResourceState, task: &Task) -> bool {
    task.plainly == Plainly::No && known.fresh_until.is_some_and(|until| clock::now() < until)
}

fn conditions(task: &Task, known: Option<&ResourceState>, stored: Option<&CacheRecord>) -> HeaderMap {
    let has_copy = known.is_some_and(|known| known.content_hash.is_some());
    match stored {
        Some(stored) if has_copy && task.plainly == Plainly::No => stored.conditional_headers(),
        _ => HeaderMap::new(),
    }
}

fn failed(task: &Task, failure: &Failure, at: DateTime<Utc>) -> Fetched {
    let end = end_of_failure(failure.cause);
    tracing::debug!(url = %task.current(), %end, reason = %failure, "request failed");
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
        bytes: reply.body.wire_bytes,
        ..Fetched::unanswered(task, outcome, None, at)
    }
}

fn confirmed(task: &Task, reply: &Reply, cache: CacheRecord, at: DateTime<Utc>) -> Fetched {
    Fetched { cache: Some(cache), ..answered(task, reply, FetchOutcome::NotModified, at) }
}

fn judged(task: &Task, reply: Reply, at: DateTime<Utc>) -> Fetched {
    let served = judge::served(task, &reply, at);
    let judged = judge::judge(task, &reply, &served);
    let leads_of_page = judged.outcome == FetchOutcome::Html && task.role == Role::Page;
    let is_kept = judged.outcome == FetchOutcome::Found;
    let caches = is_kept || judged.outcome.is_absent();
    let cache = caches.then(|| CacheRecord::of(reply.head.status.as_u16(), &reply.head.headers, at));
    let fetched = answered(task, &reply, judged.outcome, at);
    let page = leads_of_page.then(|| links::of_page(task.current(), &reply.head, &reply.body.bytes));
    let hash = is_kept.then(|| {
        let of_manifest = judged.manifest.as_ref().map(|manifest| manifest.content_hash.clone());
        of_manifest.unwrap_or_else(|| manifest::ContentHash::of(&reply.body.bytes))
    });
    Fetched {
        reason: judged.reason,
        cache,
        hash,
        body: is_kept.then(|| Document(reply.body.bytes)),
        served: is_kept.then_some(served),
        manifest: judged.manifest,
        page,
        ..fetched
    }
}
