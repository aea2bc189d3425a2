//! Runs a number of concurrent visits: leases sites, visits them and saves the results, until nothing is due or it is stopped.
//!
//! One loop owns all state, and each visit is a task of a `JoinSet`. The loop also renews the leases. After a soft stop, visits end after
//! the request in flight and are parked. After a hard stop, tasks are dropped and leases released.

mod first_pass;
mod hand_overs;
mod leases;
mod progress;
mod save;
mod waits;
mod writer;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::SiteName;
use store::{LeaseRequest, LeasedSite, OUTAGE, StoreError, WorkerId};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use self::first_pass::FirstPass;
use self::hand_overs::HandOverWriter;
use self::leases::HeldLeases;
use self::save::{Done, visit_and_save};
use self::writer::VisitWriter;
use crate::batcher::Batcher;
use crate::clock;
use crate::config::{CrawlConfig, Mode};
use crate::events::Event;
use crate::metrics;
use crate::summary::{ParkedSite, Summary};
use crate::visit::Tools;

/// Maximum number of sites leased by one statement, which takes a database a few milliseconds.
const LEASE_BATCH_MAX: usize = 200;
/// Number of renewals within the duration of a lease. Two may fail in a row.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// Interval of [`Progress::State`].
pub(crate) const STATE_EVERY: Duration = Duration::from_secs(1);
/// Poll interval of the queue when nothing was due.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// Heartbeat interval of a worker that shares no addresses and needs no heartbeat.
const NO_HEARTBEAT: Duration = Duration::from_hours(24);
/// Delay after an error of the database.
const OUTAGE_DELAY: Duration = Duration::from_secs(1);
/// Maximum time for visits to end after a soft stop: enough for nearly all requests and for saving their results. The longest request takes
/// 60 s.
const DRAIN_MAX: Duration = Duration::from_secs(45);
/// How long a crawl may take to end after the first signal: the drain, and then saving the visits and the clocks.
pub const STOP_MAX: Duration = Duration::from_secs(75);
/// Maximum number of parked visits of earlier runs that a pass takes over.
const PARKED_LISTED_MAX: u32 = 10_000;

/// How a crawl is stopped. After a soft stop, visits end after the request in flight and are parked. After a hard stop, all tasks are
/// dropped and leases are released.
pub use runtime::Shutdown as Cancel;

pub use self::progress::{CrawlState, Progress};

/// Runs concurrent visits.
pub(crate) struct Worker<'a> {
    pub(crate) tools: Tools,
    pub(crate) writer: VisitWriter,
    pub(crate) hand_overs: Batcher<HandOverWriter>,
    pub(crate) id: WorkerId,
    pub(crate) concurrency: usize,
    /// How long a site is leased for.
    pub(crate) lease: Duration,
    pub(crate) cancel: Cancel,
    pub(crate) summary: &'a mut Summary,
    pub(crate) progress: &'a (dyn Fn(Progress<'_>) + Sync),
    /// The sites to visit, if the operator named some; otherwise all.
    pub(crate) only: Option<Vec<SiteName>>,
}

/// Visits in progress and parked visits.
struct Work {
    running: JoinSet<Done>,
    held: HeldLeases,
    parked: BTreeMap<SiteName, ParkedSite>,
    /// Sites that become due after this time belong to the next pass.
    due_before: Option<DateTime<Utc>>,
    /// Of a crawl that goes on afterwards.
    first_pass: Option<FirstPass>,
    /// Whether no further site is leased, because the pass is over and only the open visits have to end.
    is_closing: bool,
    next_poll_at: Instant,
    /// When the leases are renewed again.
    next_renewal_at: Instant,
    /// When the next heartbeat is due.
    next_heartbeat_at: Instant,
    /// Whether another process held sites since the queue was last empty.
    others_hold_sites: bool,
    /// Counts the sites that are due, which may take long.
    count: JoinSet<Option<u64>>,
    sites_known: Option<u64>,
    next_state_at: Instant,
}

impl<'a> Worker<'a> {
    /// Starts the tasks that save visits. The summary counts each visit as soon as it is saved.
    pub(crate) fn new(
        config: &CrawlConfig,
        tools: Tools,
        cancel: Cancel,
        (progress, summary): (&'a (dyn Fn(Progress<'_>) + Sync), &'a mut Summary),
        tracker: &TaskTracker,
    ) -> Self {
        Self {
            writer: VisitWriter::start(tools.store.clone(), tracker),
            hand_overs: Batcher::start(&HandOverWriter(tools.store.clone()), tracker),
            tools,
            id: config.worker.clone(),
            concurrency: config.concurrency,
            lease: config.lease,
            cancel,
            summary,
            progress,
            only: None,
        }
    }

    /// Waits for the tasks of the crawl to end.
    pub(crate) async fn end(self, tracker: &TaskTracker) {
        drop(self);
        tracker.close();
        tracker.wait().await;
    }

    /// Works until nothing is due (once) or until it is stopped.
    pub(crate) async fn run(&mut self, mode: Mode) -> Result<(), StoreError> {
        let mut work = self.begin(mode).await?;
        let mut idle_since: Option<DateTime<Utc>> = None;
        while !self.cancel.soft.is_cancelled() {
            if Instant::now() >= work.next_heartbeat_at {
                self.update_groups(&mut work).await;
            }
            // renew the leases of this worker first, and take the time before that, so that none of them counts as expired
            let now = clock::now();
            let leased =
                if self.renew_leases(&mut work, now).await { self.lease(&mut work, now).await? } else { 0 };
            if leased > 0 && work.first_pass.as_mut().is_none_or(FirstPass::waits_anew) {
                idle_since = None;
            }
            let is_idle = work.running.is_empty() && leased == 0;
            if is_idle {
                clock::resync();
            }
            if work.is_closing && work.running.is_empty() {
                break;
            }
            let is_over = match &mut work.first_pass {
                _ if work.is_closing => false,
                Some(pass) if leased == 0 => {
                    is_idle || pass.is_over(&self.tools.store, &work.held, work.parked.keys()).await?
                }
                _ => is_idle,
            };
            if let (true, Mode::Once { park_wait, .. }) = (is_over, mode) {
                let idle_since = *idle_since.get_or_insert_with(clock::now);
                let until = idle_since + delta(park_wait);
                if !self.waits_for_sites(&mut work, idle_since, until).await
                    && !self.finds_new_parked(&mut work, until).await
                {
                    work.is_closing = true;
                    continue;
                }
            }
            let wake_at = work.wake_at();
            loop {
                tokio::select! {
                    Some(done) = work.running.join_next() => self.take(&mut work, done),
                    () = tokio::time::sleep_until(wake_at) => {}
                    () = self.cancel.soft.cancelled() => {}
                    () = tokio::time::sleep_until(work.next_state_at) => {
                        self.show_state(&mut work);
                        continue;
                    }
                }
                break;
            }
        }
        self.summary.interrupted = self.cancel.soft.is_cancelled();
        self.drain(&mut work).await;
        self.summary.parked = work.parked.into_values().collect();
        Ok(())
    }

    /// Sends a heartbeat, and takes or releases addresses. This worker may then resume parked visits at addresses that another worker owned
    /// before.
    async fn update_groups(&self, work: &mut Work) {
        let (groups, store) = (&self.tools.groups, &self.tools.store);
        let began = Instant::now();
        let heartbeat = groups.heartbeat(store).await;
        work.next_heartbeat_at = Instant::now() + groups.heartbeat_interval().min(NO_HEARTBEAT);
        let parked = match heartbeat {
            Ok(heartbeat) if heartbeat.gained => {
                // their sites are leased immediately
                work.next_poll_at = Instant::now();
                self.parked().await
            }
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match parked {
            Ok(parked) => work.parked.extend(parked),
            Err(error) if error.is_transient() => OUTAGE.failed("the heartbeat", error, began),
            Err(error) => tracing::warn!(%error, "the heartbeat failed"),
        }
    }

    /// Parked visits, of this run and of other runs.
    async fn parked(&self) -> Result<BTreeMap<SiteName, ParkedSite>, StoreError> {
        let parked = self.tools.store.parked_list(PARKED_LISTED_MAX).await?;
        let is_wanted = |site: &SiteName| self.only.as_ref().is_none_or(|only| only.contains(site));
        let of_site = |(site, resume_at, reason): (SiteName, _, _)| {
            (site.clone(), ParkedSite { site, resume_at, reason })
        };
        Ok(parked.into_iter().filter(|(site, ..)| is_wanted(site)).map(of_site).collect())
    }

    async fn begin(&self, mode: Mode) -> Result<Work, StoreError> {
        let now = clock::now();
        self.tools.groups.heartbeat(&self.tools.store).await?;
        let (store, mut count) = (self.tools.store.clone(), JoinSet::new());
        let sites_known = self.only.as_ref().map(|only| only.len() as u64);
        if sites_known.is_none() {
            count.spawn(async move { store.sites_due(now).await.ok() });
        }
        Ok(Work {
            count,
            sites_known,
            next_state_at: Instant::now() + STATE_EVERY,
            running: JoinSet::new(),
            held: HeldLeases::default(),
            parked: self.parked().await?,
            due_before: matches!(mode, Mode::Once { goes_on: false, .. }).then_some(now),
            first_pass: matches!(mode, Mode::Once { goes_on: true, .. }).then(|| FirstPass::new(now)),
            is_closing: false,
            next_poll_at: Instant::now(),
            next_renewal_at: Instant::now(),
            next_heartbeat_at: Instant::now() + self.tools.groups.heartbeat_interval().min(NO_HEARTBEAT),
            others_hold_sites: false,
        })
    }

    /// Starts visits in the free slots, and returns how many began.
    async fn lease(&self, work: &mut Work, now: DateTime<Utc>) -> Result<usize, StoreError> {
        let free = self.concurrency.saturating_sub(work.running.len()).min(LEASE_BATCH_MAX);
        // a single free slot is not worth a statement, unless nothing else runs
        let is_worth_it = free > 0
            && !work.is_closing
            && (free >= self.concurrency.min(LEASE_BATCH_MAX).div_ceil(4) || work.running.is_empty());
        let is_time = Instant::now() >= work.next_poll_at || work.ready_parked().next().is_some();
        if !is_worth_it || !is_time {
            return Ok(0);
        }
        let began = Instant::now();
        match self.lease_batch(work, free, now).await {
            Ok(leased) => {
                OUTAGE.answered();
                let count = leased.len();
                if count == 0 {
                    work.next_poll_at = Instant::now() + IDLE_POLL;
                }
                for site in leased {
                    self.start(work, site);
                }
                Ok(count)
            }
            Err(error) if error.is_transient() => {
                OUTAGE.failed("lease sites", error, began);
                work.next_poll_at = Instant::now() + OUTAGE_DELAY;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    async fn lease_batch(
        &self,
        work: &mut Work,
        free: usize,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeasedSite>, StoreError> {
        let request = LeaseRequest {
            worker: self.id.clone(),
            sites_max: u32::try_from(free).unwrap_or(u32::MAX),
            duration: self.lease,
            due_before: now,
            only: None,
            groups: self.tools.groups.leasable(),
        };
        let ready: Vec<SiteName> = work.ready_parked().take(free).cloned().collect();
        if !ready.is_empty() {
            let resumed = self.resume(work, ready, &request, now).await?;
            if !resumed.is_empty() {
                return Ok(resumed);
            }
        }
        let due_before = work.due_before.unwrap_or(now);
        self.tools
            .store
            .sites_lease(&LeaseRequest { due_before, only: self.only.clone(), ..request }, now)
            .await
    }

    /// Resumes parked visits that are due. If another worker, which may have ended, holds the site or owns its address, the visit is tried
    /// again later, unless it is no longer parked.
    async fn resume(
        &self,
        work: &mut Work,
        ready: Vec<SiteName>,
        request: &LeaseRequest,
        now: DateTime<Utc>,
    ) -> Result<Vec<LeasedSite>, StoreError> {
        let again_at = now + delta(self.lease / HEARTBEATS_PER_LEASE);
        for site in &ready {
            work.parked.entry(site.clone()).and_modify(|parked| parked.resume_at = again_at);
        }
        let only = LeaseRequest { only: Some(ready.clone()), ..request.clone() };
        let resumed = self.tools.store.sites_lease(&only, now).await?;
        if resumed.len() < ready.len() {
            // the list of parked visits is limited
            let mut waiting = self.parked().await?;
            for site in ready {
                match waiting.remove(&site) {
                    // the visit was postponed
                    Some(parked) if parked.resume_at > again_at => drop(work.parked.insert(site, parked)),
                    Some(_) => {}
                    None => drop(work.parked.remove(&site)),
                }
            }
        }
        Ok(resumed)
    }

    fn start(&self, work: &mut Work, mut leased: LeasedSite) {
        leased.site.is_checked |= self.only.is_some();
        let goes_on = leased.site.parked.is_some() || leased.site.interrupted.is_some();
        self.tools.events.write(Event::VisitBegan { site: &leased.token.site, goes_on });
        if let (Some(pass), true) = (&mut work.first_pass, leased.site.parked.is_some()) {
            pass.resume(&leased.token.site);
        }
        work.parked.remove(&leased.token.site);
        let held = work.held.add(&leased.token);
        let (tools, cancel) = (self.tools.clone(), self.cancel.clone());
        let writers = (self.writer.clone(), self.hand_overs.clone());
        work.running.spawn(visit_and_save(tools, writers, Box::new(leased), cancel, held));
    }

    fn take(&mut self, work: &mut Work, done: Result<Done, tokio::task::JoinError>) {
        let done = match done {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, "a visit panicked");
                self.summary.failed += 1;
                return;
            }
        };
        match done {
            Done::Saved { counted, saved } => {
                metrics::visit_saved(&counted, &saved);
                self.tools.events.write(counted.as_event(&saved));
                self.summary.count(&counted, &saved);
            }
            Done::Parked(parked) => {
                let ParkedSite { site, resume_at, reason } = &parked;
                self.tools.events.write(Event::VisitParked { site, until: *resume_at, reason });
                (self.progress)(Progress::Parked(&parked));
                work.parked.insert(parked.site.clone(), parked);
            }
            Done::HandedOver { site, group } => {
                metrics::visit_handed_over();
                self.tools.events.write(Event::VisitHandedOver { site: &site, address_group: group });
            }
            Done::Dropped(site) => {
                tracing::info!(site.name = %site, "the visit ended: its site was blocked, or another worker took it");
                self.summary.dropped += 1;
                metrics::lease_lost();
                self.tools.events.write(Event::VisitDropped { site: &site });
            }
            Done::Failed { site, error } => {
                metrics::own_failure();
                self.tools.events.write(Event::VisitFailed { site: &site, error: &error.to_string() });
                tracing::error!(site.name = %site, %error, "the visit failed");
                self.summary.failed += 1;
            }
        }
    }

    /// Waits for visits to end after a soft stop. Drops them after a hard stop or after [`DRAIN_MAX`].
    async fn drain(&mut self, work: &mut Work) {
        let deadline = Instant::now() + DRAIN_MAX;
        while !work.running.is_empty() {
            tokio::select! {
                Some(done) = work.running.join_next() => self.take(work, done),
                () = tokio::time::sleep_until(work.next_state_at) => self.show_state(work),
                () = self.cancel.hard.cancelled() => break,
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        work.running.shutdown().await;
        self.tools.groups.leave();
        if let Err(error) = self.tools.store.worker_forget(&self.id).await {
            tracing::warn!(%error, "the leases are left to expire");
        }
    }
}

impl Work {
    /// The time by which the sites of the pass were due.
    fn pass_began_at(&self) -> Option<DateTime<Utc>> {
        self.due_before.or_else(|| self.first_pass.as_ref().map(FirstPass::began_at))
    }

    fn ready_parked(&self) -> impl Iterator<Item = &SiteName> {
        let now = clock::now();
        self.parked.values().filter(move |parked| parked.resume_at <= now).map(|parked| &parked.site)
    }

    /// The number of parked visits that resume at `until` or before.
    fn parked_until(&self, until: DateTime<Utc>) -> usize {
        self.parked.values().filter(|parked| parked.resume_at <= until).count()
    }

    /// The latest time at which to poll the queue again.
    fn wake_at(&self) -> Instant {
        let now = clock::now();
        let parked = self.parked.values().filter(|_| !self.is_closing);
        let first_parked = parked.map(|parked| parked.resume_at).min();
        let until_parked = first_parked.map(|at| (at - now).to_std().unwrap_or_default());
        let at_parked = until_parked.map(|wait| Instant::now() + wait + Duration::from_millis(1));
        let poll_at = self.next_poll_at.max(Instant::now() + Duration::from_millis(10));
        let poll_at = at_parked.map_or(poll_at, |at| at.min(poll_at));
        poll_at.min(self.next_renewal_at).min(self.next_heartbeat_at)
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
