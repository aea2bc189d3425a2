//! One visit to one site: robots.txt first, then path after path, then one record of the results.
//!
//! `policy` decides the order of requests, the delays and when a visit ends. A [`requester`] sends the requests of the [`plan`], and
//! [`findings`] collect the results. A visit that has to wait long is parked with its [`progress`], and is resumed in this process or
//! another.

mod answer;
mod claim;
mod context;
mod fetched;
mod findings;
mod finish;
#[cfg(test)]
mod fixtures;
mod hold;
mod judge;
mod known_documents;
mod links;
mod outdated;
mod own_hosts;
mod part_training;
mod parts;
mod plan;
mod prepare;
mod progress;
mod queue;
mod requester;
mod room;
mod seeds;
mod source_requests;
mod sources;
mod standalone;
mod step;
mod task;
mod traffic;
mod turns;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl, is_main_host};
use policy::plan::{PathPlan, PlannedPath, Priors, ROBOTS_PATH};
use policy::robots::CopyUse;
use policy::{NextStep, VisitEnd};
use store::{
    HandOver, LeaseToken, LeasedSite, ParkedVisit, RobotsRecord, SiteState, StoreError, VisitRecord,
};

pub(crate) use self::context::{Scope, Stop, Tools};
pub(crate) use self::requester::{Message, check_outcome_of, is_without_evidence};
pub(crate) use self::standalone::{ASK_AGAIN, ASK_LATER, StandaloneError, StandaloneRequests};

use self::answer::TOO_MUCH;
use self::context::Interrupt;
use self::findings::LEFT;
use self::own_hosts::OwnHosts;
use self::progress::Progress;
use self::requester::Requester;
use self::room::{TIME_OF_ONE_MAX, UrlLimits};
use self::task::{NamedBy, Role, Task};
use crate::clock;
use crate::reading::HeldMemory;
use egress::Session;

/// Maximum wait of a visit that has found a new manifest; if it would have to wait longer, it ends and its findings are saved. Also the
/// maximum total wait for URLs that the site itself does not name or that are at third-party hosts; beyond it, such URLs are left for a
/// later visit.
const WAIT_UNSAVED_MAX: TimeDelta = TimeDelta::hours(1);
/// Number of further waits, beyond [`WAIT_UNSAVED_MAX`] in total, for links of the site's own documents at its own hosts. One of these
/// waits may exceed [`WAIT_UNSAVED_MAX`] only because of the Crawl-delay. Without this exception, these links would never be requested at a
/// site that asks for a delay of a day. Any other long wait would delay saving the site's own documents, and could be caused by users of
/// the site.
const WAITS_AT_OWN_HOSTS_MAX: u32 = 10;
/// Shorter waits at the site's own hosts are not counted.
const WAIT_AT_OWN_HOSTS_MIN: TimeDelta = TimeDelta::minutes(1);
/// Maximum wait for links at one host that is not the site's own, so that this host does not use up the time for other hosts.
const WAIT_AT_HOST_MAX: TimeDelta = TimeDelta::minutes(20);
/// Maximum wait for a third-party host whose delay is from before this visit.
const WAIT_OF_EARLIER_VISIT_MAX: TimeDelta = TimeDelta::minutes(1);

/// How a visit ended or was interrupted.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The visit ended and is to be saved.
    Ended(Box<VisitRecord>),
    /// The visit is to be parked and resumed later.
    Parked(Box<ParkedVisit>),
    /// The visit is to be resumed by the worker that owns the next address.
    HandedOver(Box<HandOver>),
    /// The lease is lost: nothing may be written.
    Dropped,
}

/// An outcome with the data that is needed to save it.
#[derive(Debug)]
pub(crate) struct Visited {
    pub(crate) outcome: Outcome,
    /// The lease, with the address group of the site.
    pub(crate) token: LeaseToken,
    /// Memory of the documents in the outcome, to be dropped when it is saved.
    pub(crate) memory: HeldMemory,
}

/// A visit in progress.
struct Visit<'a> {
    tools: &'a Tools,
    site: &'a SiteState,
    own_hosts: OwnHosts,
    /// Known documents that visits request in turns. A link to one of them does not add it to this visit.
    in_turns: HashSet<&'a ManifestUrl>,
    /// Known documents that are requested after all others.
    retries: HashSet<&'a ManifestUrl>,
    /// The stored manifest whose list of parts was read last, and these parts.
    parts_of_stored: Option<(ManifestUrl, Vec<ManifestUrl>)>,
    scope: Scope,
    requester: Requester<'a>,
    progress: Progress,
    /// The part of the held memory that belongs to links to other sites.
    seeds_memory_bytes: usize,
    /// Whether memory is held for the findings from before the visit was parked.
    is_resumed: bool,
    /// Whether another worker began the visit, or the site was in another address group at first. In that case, resolved addresses are
    /// kept.
    has_history: bool,
}

/// The URLs that a visit would plan, without robots.txt.
pub(crate) fn planned_urls(site: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Vec<ManifestUrl> {
    let progress =
        Progress::resume(site, now).unwrap_or_else(|| prepare::begin(site, &OwnHosts::of(site), priors, now));
    progress.plan.tasks().map(|task| task.url).collect()
}

/// The rest of a parked visit.
pub(crate) struct ParkedPlan {
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) requests: u32,
    /// The next request: a URL, or the robots.txt of its host.
    pub(crate) next: ManifestUrl,
    /// URLs that are still planned.
    pub(crate) left: usize,
}

/// The rest of a site's parked visit. `None` if no visit is parked, or if the visit has sent all requests and only has to be concluded.
pub(crate) fn parked_plan(site: &SiteState) -> Option<ParkedPlan> {
    let resume_at = site.parked.as_ref()?.resume_at;
    let progress = Progress::resume(site, resume_at)?;
    let left = progress.plan.tasks().count();
    let task = progress.plan.tasks().next()?;
    let host = task.current().host();
    let next = match requester::robots_use(site, &progress.traffic, &host, resume_at) {
        CopyUse::Current => task.current().clone(),
        CopyUse::DenyOnly => ManifestUrl::on_host(&host, ROBOTS_PATH).ok()?,
    };
    Some(ParkedPlan { started_at: progress.started_at, requests: progress.traffic.requests, next, left })
}

/// The robots.txt files that a parked visit has read. They are stored when the visit ends.
pub(crate) fn parked_robots(site: &SiteState) -> Vec<RobotsRecord> {
    let progress = site.parked.as_ref().and_then(|parked| Progress::resume(site, parked.resume_at));
    progress
        .into_iter()
        .flat_map(|progress| progress.traffic.robots.into_values())
        .map(|record| *record)
        .collect()
}

/// The paths that the next visit requests, and those that it leaves for later visits, if earlier visits have left some.
pub(crate) fn next_paths(site: &SiteState, priors: &Priors) -> Option<PathPlan> {
    let is_left = |row: &&PlannedPath| site.paths_checked.get(row.slot).is_none();
    if site.paths_checked.is_empty() {
        return None;
    }
    let mut plan = prepare::outlook(site, priors)?;
    plan.requested.retain(is_left);
    (plan.requested.len() + plan.left.len() > 0).then_some(plan)
}

/// Visits a site, or resumes a visit that was parked.
pub(crate) async fn visit(
    tools: &Tools,
    leased: Box<LeasedSite>,
    scope: Scope,
    stop: &Stop,
) -> Result<Visited, StoreError> {
    let session = tools.egress.session(leased.token.site.clone());
    let mut visit = Visit::new(tools, stop, &leased, scope, session);
    let interrupt = match visit.work().await {
        Ok(end) | Err(Interrupt::End(end)) if end != VisitEnd::Interrupted => {
            Box::pin(visit.prepare_end(end)).await
        }
        Ok(end) => Interrupt::End(end),
        Err(Interrupt::Park { until, .. }) if visit.is_saved_before_wait(until) => {
            let end = visit.overall_end();
            Box::pin(visit.prepare_end(end)).await
        }
        Err(interrupt) => interrupt,
    };
    let mut token = visit.requester.token.clone();
    let memory = std::mem::take(&mut visit.requester.memory);
    // the future that concludes a visit is boxed, because thousands of visits wait before this point and would reserve memory for it
    let interrupt = match interrupt {
        Interrupt::Park { .. } | Interrupt::HandOver { .. } | Interrupt::End(VisitEnd::Interrupted)
            if visit.is_resumed && !visit.progress.may_be_parked() =>
        {
            Interrupt::End(visit.overall_end())
        }
        interrupt => interrupt,
    };
    let outcome = match interrupt {
        Interrupt::Store(error) => return Err(error),
        Interrupt::LeaseLost => Outcome::Dropped,
        Interrupt::Park { until, reason } => Box::pin(visit.park(until, reason)).await,
        Interrupt::HandOver { group } => {
            token.address_group = Some(group);
            Box::pin(visit.hand_over()).await
        }
        Interrupt::End(VisitEnd::Interrupted) => {
            Box::pin(visit.park(clock::now(), "the crawler was stopped".to_owned())).await
        }
        Interrupt::End(end) => {
            token.address_group = visit.progress.traffic.first_group.or(token.address_group);
            Box::pin(visit.finish(end)).await
        }
    };
    Ok(Visited { outcome, token, memory })
}

impl<'a> Visit<'a> {
    fn new(tools: &'a Tools, stop: &'a Stop, leased: &'a LeasedSite, scope: Scope, session: Session) -> Self {
        let LeasedSite { token, site } = leased;
        let now = clock::now();
        let mut resumed = Progress::resume(site, now);
        if let Some(progress) = &mut resumed {
            progress.compare_due_at(site, token.due_at);
        }
        let has_history = resumed.is_some() || token.address_group.is_some();
        let own_hosts = OwnHosts::of(site);
        let mut progress = resumed.unwrap_or_else(|| match &scope {
            Scope::Site => prepare::begin(site, &own_hosts, &tools.priors.now(), now),
            Scope::Document(url) => prepare::only(url, now),
        });
        progress.due_at.get_or_insert(token.due_at);
        let requester = Requester::new(tools, stop, (token.clone(), site), session, &progress.traffic);
        Self {
            tools,
            site,
            in_turns: known_documents::in_turns(site, &own_hosts).map(|known| &known.url).collect(),
            retries: known_documents::retries(site).map(|known| &known.url).collect(),
            parts_of_stored: None,
            own_hosts,
            scope,
            requester,
            progress,
            seeds_memory_bytes: 0,
            is_resumed: false,
            has_history,
        }
    }

    /// Sends the requests of the plan.
    async fn work(&mut self) -> Result<VisitEnd, Interrupt> {
        self.hold_resumed().await?;
        self.is_resumed = true;
        if let Some(end) = self.progress.ended_as {
            return Ok(end);
        }
        Box::pin(self.check_claim_records()).await?;
        while let Some(mut task) = self.progress.plan.next(&self.scope) {
            self.progress.plan.current = Some(task.clone());
            let active_before = self.progress.traffic.active;
            let done = self.step(&mut task).await;
            self.progress.plan.current = None;
            let owner = self.own_hosts.owner_of(&task);
            self.progress.traffic.count_for_links((&task, &owner), active_before);
            match done {
                Ok(next) if self.is_delayed(&task, next) => {
                    self.progress.ended_at = Some(task.url.host());
                    return Ok(VisitEnd::RateLimited);
                }
                Ok(next) => match self.progress.plan.apply(&task, next) {
                    ControlFlow::Break(end) => {
                        self.progress.ended_at = Some(task.url.host());
                        return Ok(end);
                    }
                    ControlFlow::Continue(dropped) => {
                        self.progress.findings.leave(dropped, LEFT, (self.site, &self.own_hosts));
                        self.leave_at_failed_hosts(&task);
                        self.hold_seeds().await?;
                    }
                },
                Err(Interrupt::Park { until, .. }) if self.is_left(&task, until) => {
                    self.leave(task.clone(), until);
                }
                Err(interrupt) => {
                    if let Interrupt::Park { until, .. } = &interrupt {
                        self.count_wait(&task, *until);
                    }
                    self.progress.plan.put_back(task);
                    return Err(interrupt);
                }
            }
            if let NextStep::Stop(end) = self.observe_time(&task) {
                let is_evidence = task.named_by == NamedBy::Site;
                return Ok(if is_evidence { end } else { self.overall_end() });
            }
        }
        Ok(self.overall_end())
    }

    /// Whether a response to a URL that the site itself names delays the whole site, not only its host.
    fn is_delayed(&self, task: &Task, next: NextStep) -> bool {
        let is_limited = next == NextStep::Stop(VisitEnd::RateLimited) && task.named_by == NamedBy::Site;
        is_limited && self.requester.not_before() > Some(clock::now())
    }

    /// Leaves the links at hosts that failed, for example because their robots.txt could not be read.
    fn leave_at_failed_hosts(&mut self, task: &Task) {
        let Progress { plan, findings, .. } = &mut self.progress;
        let failed: HashSet<Host> =
            plan.ended.iter().filter(|(_, end)| end.is_failure()).map(|(host, _)| host.clone()).collect();
        let is_at_failed = |task: &Task| failed.contains(&task.url.host());
        let mut left = plan.take(is_at_failed);
        let is_recorded = || findings.fetched.iter().any(|fetched| fetched.url == task.url);
        if task.named_by != NamedBy::Site && is_at_failed(task) && !is_recorded() {
            left.push(task.clone());
        }
        findings.leave(left, LEFT, (self.site, &self.own_hosts));
    }

    /// Stops the visit when the time for URLs that the site itself names, including the parts of its manifests, is used up. When the time
    /// or the memory for all other URLs is used up, or the time of one owner, only those URLs and the ones that lead to more of them are
    /// left for a later visit.
    fn observe_time(&mut self, task: &Task) -> NextStep {
        let site = (self.site, &self.own_hosts);
        let Progress { plan, traffic, findings, links_exceed_memory, .. } = &mut self.progress;
        if *links_exceed_memory {
            findings.leave(plan.take(Task::is_link), TOO_MUCH, site);
        }
        let owner = self.own_hosts.owner_of(task);
        let has_owner = matches!(task.named_by, NamedBy::Further | NamedBy::Others);
        if has_owner && traffic.active_for_owner(task.named_by, &owner) >= TIME_OF_ONE_MAX {
            let is_of_owner = |other: &Task| {
                other.is_link() && other.named_by == task.named_by && self.own_hosts.owner_of(other) == owner
            };
            findings.leave(plan.take(is_of_owner), LEFT, site);
        }
        for named_by in UrlLimits::LINKS {
            if traffic.active_for.get(&named_by).is_some_and(|time| *time >= UrlLimits::of(named_by).time) {
                let is_of_same_kind = |task: &Task| task.is_link() && task.named_by == named_by;
                findings.leave(plan.take(is_of_same_kind), LEFT, site);
            }
        }
        plan.rules(task).observe_time(traffic.active.saturating_sub(traffic.active_for_links()))
    }

    /// Whether a task is left for a later visit, so that waiting for it does not delay the end of this visit. Applies to tasks that the
    /// site itself does not name, and to hosts other than the domain and its `www.` host, which may belong to customers. Such a task is
    /// left if the waits for all such tasks together become too long, or if the host asked for the delay in an earlier visit. A host
    /// without earlier requests has not asked for a delay.
    fn is_left(&self, task: &Task, until: DateTime<Utc>) -> bool {
        let host = task.current().host();
        let is_own = self.own_hosts.contains(&host);
        let is_asked = self.progress.traffic.robots.contains_key(&host);
        let known = self.site.hosts.iter().find(|known| known.host == host);
        let may_be_left = match task.named_by {
            NamedBy::Others => true,
            NamedBy::Site if is_own => !is_main_host(&self.site.name, &host),
            _ if is_own => true,
            _ => is_asked || known.is_some(),
        };
        let earlier = known.and_then(|known| known.next_ok_at).filter(|_| !is_own && !is_asked);
        let is_earlier = earlier.is_some_and(|at| at - clock::now() > WAIT_OF_EARLIER_VISIT_MAX);
        let wait = until - clock::now();
        let is_too_long = self.exceeds_waits(task, wait) && !self.waits_at_own_host(task, wait);
        self.scope == Scope::Site && may_be_left && (is_too_long || is_earlier)
    }

    /// Whether this wait would exceed the limit for all links together, or for links at one host that is not the site's own.
    fn exceeds_waits(&self, task: &Task, wait: TimeDelta) -> bool {
        let waits = &self.progress.waits_for_links;
        let exceeds = |max: TimeDelta, waited: Duration| {
            wait > max - TimeDelta::from_std(waited).unwrap_or(TimeDelta::MAX).min(max)
        };
        let host = task.current().host();
        let is_shared = task.is_link() && !self.own_hosts.contains(&host);
        let at_host = waits.at_hosts.get(&host).copied().unwrap_or_default();
        exceeds(WAIT_UNSAVED_MAX, waits.time) || is_shared && exceeds(WAIT_AT_HOST_MAX, at_host)
    }

    /// Whether the visit waits for a link of the site's own documents at its own hosts: if the wait is short, or if the site's robots.txt
    /// requires it.
    fn waits_at_own_host(&self, task: &Task, wait: TimeDelta) -> bool {
        let host = task.current().host();
        let crawl_delay = self.requester.crawl_delay(&host).unwrap_or_default();
        let is_by_robots = wait <= TimeDelta::from_std(crawl_delay * 2).unwrap_or(TimeDelta::MAX);
        self.is_link_at_own_host(task, &host)
            && self.progress.waits_for_links.at_own_hosts < WAITS_AT_OWN_HOSTS_MAX
            && (wait <= WAIT_UNSAVED_MAX || is_by_robots)
    }

    fn is_link_at_own_host(&self, task: &Task, host: &Host) -> bool {
        task.named_by == NamedBy::Document && self.own_hosts.contains(host)
    }

    /// Counts a wait for a task that the site itself does not name, or at a host that is not its own.
    fn count_wait(&mut self, task: &Task, until: DateTime<Utc>) {
        let host = task.current().host();
        let is_own = self.own_hosts.contains(&host);
        if task.named_by == NamedBy::Site && is_own {
            return;
        }
        let wait = until - clock::now();
        let is_turn = wait > WAIT_AT_OWN_HOSTS_MIN && self.is_link_at_own_host(task, &host);
        let wait = wait.to_std().unwrap_or_default();
        let waits = &mut self.progress.waits_for_links;
        waits.time = waits.time.saturating_add(wait);
        waits.at_own_hosts += u32::from(is_turn);
        if !is_own {
            let at_host = waits.at_hosts.entry(host).or_default();
            *at_host = at_host.saturating_add(wait);
        }
    }

    /// Leaves a task for a later visit, with all tasks that would wait until then at the same host. If only the robots.txt of this host was
    /// requested, the next visit is scheduled for the end of its delay.
    fn leave(&mut self, task: Task, until: DateTime<Utc>) {
        let host = task.current().host();
        let is_of_site = matches!(task.named_by, NamedBy::Site | NamedBy::Document);
        if is_of_site && self.progress.traffic.robots_last.contains(&host) {
            self.progress.rest_from = self.progress.rest_from.max(Some(until));
        }
        let left = self.progress.plan.take(|other| other.current().host() == host);
        let left = std::iter::once(task).chain(left).collect();
        self.progress.findings.leave(left, LEFT, (self.site, &self.own_hosts));
    }

    /// How the visit ended at the site's own hosts.
    fn overall_end(&self) -> VisitEnd {
        self.progress.overall_end(|host| self.own_hosts.contains(host))
    }

    /// Whether the visit ends instead of waiting this long, so that a new manifest is published. It does not end while it follows a
    /// redirect of the site, or while new parts of its manifests are planned. The next visit continues with the other paths and links.
    fn is_saved_before_wait(&mut self, until: DateTime<Utc>) -> bool {
        let is_redirected = |task: &Task| task.named_by == NamedBy::Site && !task.hops.is_empty();
        let Progress { plan, findings, .. } = &mut self.progress;
        if self.scope != Scope::Site
            || until - clock::now() <= WAIT_UNSAVED_MAX
            || !findings.has_new_manifest(self.site, &self.own_hosts)
            || plan.tasks().any(|task| is_redirected(&task))
        {
            return false;
        }
        let is_new_part = |task: &Task| {
            let is_part = task.role == Role::Part && task.named_by == NamedBy::Document;
            is_part && findings::known(self.site, &task.url).is_none()
        };
        let left = plan.keep(is_new_part);
        findings.leave(left, LEFT, (self.site, &self.own_hosts));
        plan.tasks().next().is_none()
    }

    async fn park(mut self, resume_at: DateTime<Utc>, reason: String) -> Outcome {
        let claim = self.progress.take_claim();
        let progress = self.save_progress().await.unwrap_or_default();
        Outcome::Parked(Box::new(ParkedVisit { resume_at, reason, progress, claim }))
    }

    /// Hands the visit over to the worker that owns the next address, with the progress and the resolved addresses. A visit that has only
    /// resolved its site has no progress to hand over.
    async fn hand_over(mut self) -> Outcome {
        let due_at = self.progress.due_at.unwrap_or_else(clock::now);
        if self.progress.traffic.requests == 0 && !self.has_history {
            return Outcome::HandedOver(Box::new(HandOver { due_at, progress: None }));
        }
        self.requester.keep_addresses(&mut self.progress);
        let progress = self.save_progress().await;
        Outcome::HandedOver(Box::new(HandOver { due_at, progress }))
    }

    /// Writes the clocks; returns the progress.
    async fn save_progress(&mut self) -> Option<serde_json::Value> {
        self.requester.save_clocks(&mut self.progress.traffic).await;
        let progress = self.progress.park().inspect_err(|error| {
            tracing::error!(site.name = %self.site.name, %error, "the progress of the visit is lost");
        });
        progress.ok()
    }
}

#[cfg(test)]
mod share_tests;
#[cfg(test)]
mod slow_tests;
