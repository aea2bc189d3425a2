//! One visit to one site: robots.txt first, then path after path, then one record of it all.
//!
//! The order, the waits and the ends are decided by `policy`; what remains here is asking in that order and keeping what
//! came back. A visit that has to wait long is parked with everything it knows, and goes on at the next path, in this
//! process or another.

mod answer;
mod ask;
mod fetched;
mod finish;
mod judge;
mod links;
mod parts;
mod prepare;
mod progress;
mod queue;
mod robots;
mod seeds;
mod standalone;
mod step;
mod task;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use manifest::{Host, ManifestUrl};
use policy::plan::Priors;
use policy::{NextStep, RobotsVerdict, Scope as Limit, VisitEnd};
use store::{
    HandOver, HostState, LeaseToken, LeasedSite, ParkedVisit, PathSlots, SiteState, Store, StoreError,
    VisitRecord,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::TextRecords;
use crate::egress::{Egress, Failure, Session};
use crate::events::Events;
use crate::groups::{Groups, Tenure};
use crate::pace::{AuthorityClock, Pace, SiteClock, Target};
use crate::priors::PathPriors;
use crate::reading::{Held, Reader};

pub(crate) use self::ask::Message;
use self::prepare::OwnHosts;
use self::progress::Progress;
pub(crate) use self::standalone::{StandaloneError, StandaloneRequests};
use self::task::{NamedBy, Role, Task};

/// What every visit of a process uses.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) egress: Egress,
    pub(crate) store: Store,
    pub(crate) pace: Pace,
    /// The addresses that this process speaks to.
    pub(crate) groups: Groups,
    pub(crate) events: Events,
    pub(crate) text_records: TextRecords,
    pub(crate) priors: PathPriors,
    pub(crate) reader: Reader,
}

/// How a visit is stopped from outside.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// After the request that is under way.
    pub(crate) soft: CancellationToken,
    /// Another worker has taken the site over.
    pub(crate) lost: CancellationToken,
}

/// A visit that is over, or waits.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// To be saved.
    Ended(Box<VisitRecord>),
    /// To be parked.
    Parked(Box<ParkedVisit>),
    /// Another worker goes on, whose address is next.
    HandedOver(Box<HandOver>),
    /// Nobody's business any more: the lease is lost.
    Dropped,
}

/// What a visit came to, and where the site was found.
#[derive(Debug)]
pub(crate) struct Visited {
    pub(crate) outcome: Outcome,
    /// The lease, with the group of the address.
    pub(crate) token: LeaseToken,
    /// Memory for the documents in the outcome, to be dropped when that is saved.
    pub(crate) held: Held,
}

/// Why a visit does not go on.
#[derive(Debug)]
enum Interrupt {
    Park {
        until: DateTime<Utc>,
        reason: String,
    },
    End(VisitEnd),
    /// The next address is another worker's.
    HandOver {
        group: u16,
    },
    Lost,
    Store(StoreError),
}

impl From<StoreError> for Interrupt {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost { .. } => Self::Lost,
            StoreError::Blocked { .. } => Self::End(VisitEnd::OptedOut),
            error => Self::Store(error),
        }
    }
}

/// An authority that was spoken to in this visit.
struct Authority {
    clock: AuthorityClock,
    target: Target,
    /// By which the address is ours, where it could be another worker's.
    tenure: Option<Tenure>,
    /// What its robots.txt said the last time, until it is looked at in this visit.
    copy: Option<Arc<RobotsVerdict>>,
}

/// A visit under way.
struct Visit<'a> {
    tools: &'a Tools,
    stop: &'a Stop,
    token: LeaseToken,
    site: SiteState,
    session: Session,
    progress: Progress,
    verdicts: HashMap<Host, Arc<RobotsVerdict>>,
    authorities: HashMap<Host, Authority>,
    site_clock: SiteClock,
    /// Hosts whose robots.txt was looked at in this visit.
    greeted: HashSet<Host>,
    /// When the progress was last written.
    written_at: Option<Instant>,
    scope: Scope,
    /// Memory for the large documents that were found.
    held: Held,
    /// How many bytes of that are for the sites that it found links to.
    seeds_held_bytes: usize,
    /// No request begins after this, where the lease of the site is not renewed.
    ends_at: Option<Instant>,
    /// The visit was begun by another worker, or the site was found in another group before: where it leads is kept.
    has_history: bool,
}

/// Whether a visit that waits until then for what others named had better end and be saved.
fn is_far(until: DateTime<Utc>) -> bool {
    until - clock::now() > WAIT_FOR_OTHERS_MAX
}

/// Longest wait for a URL that others named; beyond it the visit ends, and what it learned is saved.
const WAIT_FOR_OTHERS_MAX: chrono::TimeDelta = chrono::TimeDelta::hours(1);

/// The gap of the site as a whole after a request that another visit sent. When that was answered nobody wrote down; while
/// the clock of a host is ahead, it may have been just now.
fn site_rests_until(site: &SiteState, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let gap = chrono::TimeDelta::from_std(Limit::Site.limits().gap).unwrap_or_default();
    site.hosts.iter().filter_map(|host| host.next_ok_at).max().map(|at| at.min(now + gap))
}

/// The requests that all hosts together were sent on the last day on which any was, and that day. Those of earlier days count
/// for nothing.
fn requests_of_last_day(hosts: &[HostState]) -> (u32, i32) {
    let day = hosts.iter().map(|host| host.requests_day).max().unwrap_or_default();
    let of_day = hosts.iter().filter(|host| host.requests_day == day);
    (of_day.map(|host| host.requests_today).sum(), day)
}

/// What a visit would set out to ask for, robots.txt apart.
pub(crate) fn planned_urls(site: &SiteState, priors: &Priors, now: DateTime<Utc>) -> Vec<ManifestUrl> {
    let progress = Progress::resume(site, now).unwrap_or_else(|| prepare::begin(site, priors, now));
    progress.queue.tasks().map(|task| task.url).collect()
}

/// How much of a site a visit asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What is known, what is planned, and where it leads.
    Site,
    /// One document, and the parts that complete it.
    Document(ManifestUrl),
    /// Nothing of its own: requests that are no visit, under the record of the site.
    Standalone,
}

/// Visits a site, or goes on with a visit that was parked.
pub(crate) async fn visit(
    tools: &Tools,
    leased: Box<LeasedSite>,
    scope: Scope,
    stop: &Stop,
) -> Result<Visited, StoreError> {
    let session = match tools.egress.session(leased.token.site.clone()) {
        Ok(session) => session,
        Err(failure) => {
            let outcome = Outcome::Parked(Box::new(unable(&failure)));
            return Ok(Visited { outcome, token: leased.token, held: Held::default() });
        }
    };
    let mut visit = Visit::new(tools, stop, *leased, scope, session);
    let interrupt = match visit.work().await {
        Ok(end) => Interrupt::End(end),
        Err(interrupt) => interrupt,
    };
    let mut token = visit.token.clone();
    let held = std::mem::take(&mut visit.held);
    // what a visit does at its end has its state apart, since thousands wait in their midst
    let outcome = match interrupt {
        Interrupt::Store(error) => return Err(error),
        Interrupt::Lost => Outcome::Dropped,
        Interrupt::Park { until, reason } => Box::pin(visit.park(until, reason)).await,
        Interrupt::HandOver { group } => {
            token.address_group = Some(group);
            Box::pin(visit.hand_over()).await
        }
        Interrupt::End(VisitEnd::Interrupted) => {
            Box::pin(visit.park(clock::now(), "the crawler was stopped".to_owned())).await
        }
        Interrupt::End(end) => {
            token.address_group = visit.progress.first_group.or(token.address_group);
            Box::pin(visit.finish(end)).await?
        }
    };
    Ok(Visited { outcome, token, held })
}

/// No client could be built: a fault of this machine, tried again soon.
fn unable(failure: &Failure) -> ParkedVisit {
    let resume_at = clock::now() + chrono::TimeDelta::minutes(1);
    ParkedVisit { resume_at, reason: failure.reason.clone(), progress: serde_json::Value::Null }
}

impl<'a> Visit<'a> {
    fn new(tools: &'a Tools, stop: &'a Stop, leased: LeasedSite, scope: Scope, session: Session) -> Self {
        let LeasedSite { token, site, due_at } = leased;
        let now = clock::now();
        let resumed = Progress::resume(&site, now);
        let has_history = resumed.is_some() || token.address_group.is_some();
        let mut progress = resumed.unwrap_or_else(|| match &scope {
            Scope::Site => prepare::begin(&site, &tools.priors.now(), now),
            Scope::Document(url) => prepare::only(url, now),
            Scope::Standalone => Progress::new(now, PathSlots::default()),
        });
        progress.due_at.get_or_insert(due_at);
        Self { has_history, ..Self::with_progress(tools, stop, (token, site), scope, session, progress) }
    }

    /// Goes on with what was done so far.
    fn with_progress(
        tools: &'a Tools,
        stop: &'a Stop,
        (token, site): (LeaseToken, SiteState),
        scope: Scope,
        session: Session,
        progress: Progress,
    ) -> Self {
        let (requests, day) = requests_of_last_day(&site.hosts);
        let mut site_clock = SiteClock::new(requests, day, site.not_before);
        site_clock.next_ok_at = progress.site_next_ok_at.max(site_rests_until(&site, clock::now()));
        Self {
            tools,
            stop,
            token,
            site,
            session,
            progress,
            verdicts: HashMap::new(),
            authorities: HashMap::new(),
            site_clock,
            greeted: HashSet::new(),
            written_at: None,
            scope,
            held: Held::default(),
            seeds_held_bytes: 0,
            ends_at: None,
            has_history: false,
        }
    }

    /// Whether the lease was lost, or is about to end.
    fn has_lost_site(&self) -> bool {
        self.stop.lost.is_cancelled() || self.ends_at.is_some_and(|at| Instant::now() >= at)
    }

    /// The next task within the scope of the visit.
    fn next_task(&mut self) -> Option<Task> {
        if let Scope::Document(url) = &self.scope {
            let is_within = |task: &Task| task.url == *url || task.role == Role::Part;
            self.progress.queue = self.progress.queue.tasks().filter(is_within).collect();
        }
        self.progress.queue.pop_front()
    }

    /// Works through the queue.
    async fn work(&mut self) -> Result<VisitEnd, Interrupt> {
        self.hold_resumed().await?;
        while let Some(mut task) = self.next_task() {
            if self.progress.has_ended(&task.url.host()) {
                continue;
            }
            self.progress.current = Some(task.clone());
            let done = self.step(&mut task).await;
            self.progress.current = None;
            match done {
                Ok(next) => {
                    self.heed(&task, next)?;
                    self.hold_seeds().await?;
                }
                Err(Interrupt::Park { until, .. }) if task.named_by == NamedBy::Others && is_far(until) => {
                    self.progress.queue.drop_named_by_others(None);
                }
                Err(interrupt) => {
                    self.progress.queue.push_front(task);
                    return Err(interrupt);
                }
            }
            let rules = self.progress.rules.entry(task.url.host()).or_default();
            if let NextStep::Stop(end) = rules.observe_time(self.progress.active) {
                let is_of_others = task.named_by == NamedBy::Others;
                return Ok(if is_of_others { self.overall_end() } else { end });
            }
        }
        Ok(self.overall_end())
    }

    /// How the visit ended, as far as the site's own hosts say.
    fn overall_end(&self) -> VisitEnd {
        let own = OwnHosts::of(&self.site);
        self.progress.overall_end(|host| own.has(host))
    }

    /// Ends one host, or the whole visit where the site as a whole asked for quiet. After a URL that others named, only what
    /// others named is left out.
    fn heed(&mut self, task: &Task, next: NextStep) -> Result<(), Interrupt> {
        let host = &task.url.host();
        match next {
            NextStep::Continue => Ok(()),
            NextStep::Stop(end) if task.named_by == NamedBy::Others && end != VisitEnd::OptedOut => {
                let of_host = (end != VisitEnd::RateLimited).then_some(host);
                self.progress.queue.drop_named_by_others(of_host);
                Ok(())
            }
            NextStep::AskCanary => {
                if let Some(canary) = prepare::canary(host) {
                    self.progress.queue.push_front(Task { named_by: task.named_by, ..canary });
                }
                Ok(())
            }
            NextStep::Stop(end @ (VisitEnd::RateLimited | VisitEnd::OptedOut)) => Err(Interrupt::End(end)),
            NextStep::Stop(end) => {
                self.progress.end_host(host, end);
                Ok(())
            }
        }
    }

    async fn park(mut self, until: DateTime<Utc>, reason: String) -> Outcome {
        self.persist_clocks().await;
        self.progress.site_next_ok_at = self.site_clock.next_ok_at;
        match self.progress.park() {
            Ok(progress) => Outcome::Parked(Box::new(ParkedVisit { resume_at: until, reason, progress })),
            Err(error) => {
                tracing::error!(site.name = %self.token.site, %error, "progress cannot be kept");
                let progress = serde_json::Value::Null;
                Outcome::Parked(Box::new(ParkedVisit { resume_at: until, reason, progress }))
            }
        }
    }

    /// Leaves the visit to the worker whose address is next. What has been done goes along, and where names lead, so that
    /// a name that leads elsewhere each time it is asked for does not send the visit round; but a visit that has only
    /// learned where its site is leaves no trace of itself.
    async fn hand_over(mut self) -> Outcome {
        let due_at = self.progress.due_at.unwrap_or_else(clock::now);
        if self.progress.requests == 0 && !self.has_history {
            return Outcome::HandedOver(Box::new(HandOver { due_at, progress: None }));
        }
        self.persist_clocks().await;
        self.progress.site_next_ok_at = self.site_clock.next_ok_at;
        let current = self.progress.queue.tasks().next().map(|task| task.current().host());
        let hops = self.progress.robots_hops.values().filter_map(|chain| Some(chain.last()?.host()));
        let hosts: Vec<Host> = self.authorities.keys().cloned().chain(current).chain(hops).collect();
        let known = hosts.into_iter().map(|host| (host.clone(), self.session.pinned(&host)));
        let known: Vec<_> = known.filter(|(_, addresses)| !addresses.is_empty()).collect();
        self.progress.keep_addresses(known.into_iter(), clock::now());
        let progress = self.progress.park().inspect_err(
            |error| tracing::error!(site.name = %self.token.site, %error, "progress cannot be kept"),
        );
        Outcome::HandedOver(Box::new(HandOver { due_at, progress: progress.ok() }))
    }

    /// The clock that was written ahead counted from the request; the one that counts is later.
    async fn persist_clocks(&mut self) {
        for authority in self.authorities.values() {
            let saved = self.tools.pace.persist(&authority.target, &authority.clock, &self.site_clock).await;
            if let Err(error) = saved {
                tracing::warn!(site.name = %self.token.site, %error, "clocks could not be written");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::HostOrigin;

    use super::*;

    #[test]
    fn requests_of_earlier_days_do_not_count_for_the_budget_of_a_site() {
        let host = |name: &str, requests_today, requests_day| HostState {
            host: Host::parse(name).unwrap(),
            origin: HostOrigin::Listed,
            robots: None,
            next_ok_at: None,
            requests_today,
            requests_day,
        };
        let hosts =
            [host("a.example", 40, 20_000), host("b.a.example", 3, 20_001), host("c.a.example", 4, 20_001)];
        assert_eq!(requests_of_last_day(&hosts), (7, 20_001));
        assert_eq!(requests_of_last_day(&[]), (0, 0));
    }
}
