//! Keeps a number of visits going: leases sites, visits them, saves what came of it, until nothing is due or it is stopped.
//!
//! One loop owns everything; a visit is one task of a `JoinSet`. Leases are renewed while visits go on. Stopping is soft
//! first: visits end after the request under way and are parked; then hard: tasks are dropped and leases given back.

mod leases;
mod passing;
mod save;
mod writer;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::SiteName;
use store::{LeaseRequest, LeasedSite, StoreError, WorkerId};
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::leases::Held;
pub(crate) use self::passing::Passing;
use self::save::{Done, visit_and_save};
pub(crate) use self::writer::VisitWriter;
use crate::clock;
use crate::config::Mode;
use crate::daemon::ScheduledTask;
use crate::events::Event;
use crate::gather::Gatherer;
use crate::metrics;
use crate::summary::{ParkedSite, Summary};
use crate::visit::Tools;

/// Sites leased by one statement: a few milliseconds' work for a database.
const LEASE_BATCH_MAX: usize = 200;
/// A lease is renewed this many times before it would end: two renewals may fail.
const HEARTBEATS_PER_LEASE: u32 = 3;
/// How often the queue is looked at when nothing was due.
const IDLE_POLL: Duration = Duration::from_secs(1);
/// Where nobody else could have an address, nobody waits for a sign of life.
const BEAT_NEVER: Duration = Duration::from_hours(24);
/// Pause after the database did not answer.
const OUTAGE_PAUSE: Duration = Duration::from_secs(1);
/// How long visits may take to end after a soft stop: the longest request and its saving.
const DRAIN_MAX: Duration = Duration::from_secs(45);
/// How long a crawl may take to end after the first signal: the drain, the visits that are saved then, and the clocks.
pub const STOP_MAX: Duration = Duration::from_secs(75);
/// Parked visits of earlier runs that a pass takes over.
const PARKED_LISTED_MAX: u32 = 10_000;

/// How a crawl is stopped. Soft: visits end after the request that is under way, and are parked. Hard: everything is dropped,
/// and leases are given back.
pub use runtime::Shutdown as Cancel;

/// News of a crawl.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// Seeds are being added.
    Seeding { seeds_read: u64 },
    /// Seeds were read and added.
    Seeded(&'a Summary),
    /// The next times of something that is done by schedule.
    Scheduled { task: ScheduledTask, next: &'a [DateTime<Utc>] },
    /// A visit was saved.
    Visited { site: &'a SiteName, end: policy::VisitEnd, summary: &'a Summary, open: usize },
    /// A visit waits.
    Parked(&'a ParkedSite),
    /// Nothing is due; parked visits are waited for.
    Waiting { parked: usize, until: DateTime<Utc> },
    /// Nothing is due; other processes, perhaps dead ones, hold sites.
    Held { sites: u64, until: DateTime<Utc> },
    /// The database is away; nothing is lost.
    Outage(&'a StoreError),
}

/// A number of visits, kept going.
pub(crate) struct Fleet<'a, P> {
    pub(crate) tools: Tools,
    pub(crate) writer: VisitWriter,
    pub(crate) passing: Gatherer<Passing>,
    pub(crate) worker: WorkerId,
    pub(crate) concurrency: usize,
    /// How long a site is leased for.
    pub(crate) lease: Duration,
    pub(crate) cancel: Cancel,
    pub(crate) summary: Summary,
    pub(crate) progress: &'a P,
    /// Only these sites, where the operator named some.
    pub(crate) only: Option<Vec<SiteName>>,
}

/// Visits under way and visits that wait.
struct Work {
    running: JoinSet<Done>,
    held: Arc<Held>,
    parked: BTreeMap<SiteName, ParkedSite>,
    /// Sites that are due after this belong to the next pass.
    due_before: Option<DateTime<Utc>>,
    next_look_at: Instant,
    /// When the fleet is given the next sign of life.
    next_beat_at: Instant,
    /// Another process was seen to hold sites since the queue was last empty.
    others_held: bool,
}

impl<P: Fn(Progress<'_>)> Fleet<'_, P> {
    /// Works until nothing is due (once) or until it is stopped.
    pub(crate) async fn run(&mut self, mode: Mode) -> Result<(), StoreError> {
        let mut work = self.begin(mode).await?;
        let mut heartbeat = tokio::time::interval(self.lease / HEARTBEATS_PER_LEASE);
        let mut idle_since: Option<DateTime<Utc>> = None;
        while !self.cancel.soft.is_cancelled() {
            if Instant::now() >= work.next_beat_at {
                self.keep_addresses(&mut work).await;
            }
            let leased = self.lease(&mut work).await?;
            if leased > 0 {
                idle_since = None;
            }
            let is_idle = work.running.is_empty() && leased == 0;
            if is_idle {
                clock::settle();
            }
            if let (true, Mode::Once { park_wait }) = (is_idle, mode) {
                let idle_since = *idle_since.get_or_insert_with(clock::now);
                let until = idle_since + delta(park_wait);
                if !self.is_worth_waiting(&mut work, idle_since, until).await
                    && !self.finds_parked(&mut work, until).await
                {
                    break;
                }
            }
            let wake_at = work.wake_at();
            tokio::select! {
                Some(done) = work.running.join_next() => self.take(&mut work, done),
                _ = heartbeat.tick() => self.beat(&work).await,
                () = tokio::time::sleep_until(wake_at) => {}
                () = self.cancel.soft.cancelled() => {}
            }
        }
        self.summary.interrupted = self.cancel.soft.is_cancelled();
        self.drain(&mut work).await;
        self.summary.parked = work.parked.into_values().collect();
        Ok(())
    }

    /// Tells the fleet that this worker is alive, and takes or gives up addresses. Visits that wait at an address that was
    /// another worker's are ours to go on with.
    async fn keep_addresses(&self, work: &mut Work) {
        let (groups, store) = (&self.tools.groups, &self.tools.store);
        let beat = groups.beat(store).await;
        work.next_beat_at = Instant::now() + groups.beat_again_after().min(BEAT_NEVER);
        let parked = match beat {
            Ok(beat) if beat.gained => {
                // their sites are looked for at once
                work.next_look_at = Instant::now();
                self.parked().await
            }
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match parked {
            Ok(parked) => work.parked.extend(parked),
            Err(error) => tracing::warn!(%error, "the fleet was not told that this worker is alive"),
        }
    }

    /// Visits that wait, of this run and of others.
    async fn parked(&self) -> Result<BTreeMap<SiteName, ParkedSite>, StoreError> {
        let parked = self.tools.store.parked_list(PARKED_LISTED_MAX).await?;
        let is_wanted = |site: &SiteName| self.only.as_ref().is_none_or(|only| only.contains(site));
        let of_site = |(site, resume_at, reason): (SiteName, _, _)| {
            (site.clone(), ParkedSite { site, resume_at, reason })
        };
        Ok(parked.into_iter().filter(|(site, ..)| is_wanted(site)).map(of_site).collect())
    }

    /// Renews the leases, and tells how things stand.
    async fn beat(&self, work: &Work) {
        work.held.renew(&self.tools.store, self.lease).await;
        let oldest_due_at = self.tools.store.next_due_at().await.ok().flatten();
        metrics::state(work.running.len(), work.parked.len(), oldest_due_at, clock::now());
    }

    async fn begin(&self, mode: Mode) -> Result<Work, StoreError> {
        let now = clock::now();
        self.tools.groups.beat(&self.tools.store).await?;
        Ok(Work {
            running: JoinSet::new(),
            held: Arc::new(Held::default()),
            parked: self.parked().await?,
            due_before: matches!(mode, Mode::Once { .. }).then_some(now),
            next_look_at: Instant::now(),
            next_beat_at: Instant::now() + self.tools.groups.beat_again_after().min(BEAT_NEVER),
            others_held: false,
        })
    }

    /// Whether something will become due while a pass may wait: a parked visit, or a site that another process holds.
    /// A process that was killed holds its sites until their leases end, and this pass finishes its work.
    async fn is_worth_waiting(
        &self,
        work: &mut Work,
        idle_since: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> bool {
        let parked = work.parked_until(until);
        if parked > 0 {
            (self.progress)(Progress::Waiting { parked, until });
            return true;
        }
        // the queue is looked at every so often, and once more after the last lease has ended
        let leases_end_at = idle_since + delta(self.lease + 2 * IDLE_POLL);
        if self.only.is_some() {
            return false;
        }
        if clock::now() > leases_end_at {
            // what others held may have become free since the last look, which on a busy machine was long ago
            work.next_look_at = Instant::now();
            return std::mem::take(&mut work.others_held);
        }
        match self.tools.store.stats(clock::now()).await {
            // what others held is free now: one more look
            Ok(stats) if stats.sites_leased == 0 && !self.others_have_due(work).await => {
                work.next_look_at = Instant::now();
                std::mem::take(&mut work.others_held)
            }
            Ok(stats) => {
                work.others_held = true;
                let news = Progress::Held { sites: stats.sites_leased, until: leases_end_at };
                (self.progress)(news);
                true
            }
            Err(error) => error.is_transient(),
        }
    }

    /// Whether visits wait that this worker does not know of, until a time: they were another's, which has ended since.
    async fn finds_parked(&self, work: &mut Work, until: DateTime<Utc>) -> bool {
        match self.parked().await {
            Ok(parked) => {
                work.parked.extend(parked);
                work.parked_until(until) > 0
            }
            Err(error) => error.is_transient(),
        }
    }

    /// Whether sites of this pass are due that were not leased: those at addresses of other workers, perhaps dead ones.
    async fn others_have_due(&self, work: &Work) -> bool {
        if self.tools.groups.is_sole() {
            return false;
        }
        match self.tools.store.next_due_at().await {
            Ok(next) => next.is_some_and(|at| work.due_before.is_some_and(|due_before| at <= due_before)),
            Err(error) => error.is_transient(),
        }
    }

    /// Fills the free places; returns how many visits began.
    async fn lease(&self, work: &mut Work) -> Result<usize, StoreError> {
        let free = self.concurrency.saturating_sub(work.running.len()).min(LEASE_BATCH_MAX);
        // a batch is worth a statement; a single place is not, unless nothing else is going on
        let is_worth_it = free > 0
            && (free >= self.concurrency.min(LEASE_BATCH_MAX).div_ceil(4) || work.running.is_empty());
        let is_time = Instant::now() >= work.next_look_at || work.ready_parked().next().is_some();
        if !is_worth_it || !is_time {
            return Ok(0);
        }
        match self.lease_batch(work, free).await {
            Ok(leased) => {
                let count = leased.len();
                if count == 0 {
                    work.next_look_at = Instant::now() + IDLE_POLL;
                }
                for site in leased {
                    self.start(work, site);
                }
                Ok(count)
            }
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the queue cannot be read");
                (self.progress)(Progress::Outage(&error));
                work.next_look_at = Instant::now() + OUTAGE_PAUSE;
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }

    async fn lease_batch(&self, work: &mut Work, free: usize) -> Result<Vec<LeasedSite>, StoreError> {
        let now = clock::now();
        let request = LeaseRequest {
            worker: self.worker.clone(),
            sites_max: u32::try_from(free).unwrap_or(u32::MAX),
            duration: self.lease,
            due_before: now,
            only: None,
            groups: self.tools.groups.to_lease(),
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

    /// Takes visits up again that have waited. One that somebody else holds, perhaps a dead worker, or whose address is
    /// another's for now, is looked for again, unless it no longer waits.
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
            // of the others that wait the list may be too short
            let mut waiting = self.parked().await?;
            for site in ready {
                match waiting.remove(&site) {
                    // it was set aside
                    Some(parked) if parked.resume_at > again_at => drop(work.parked.insert(site, parked)),
                    Some(_) => {}
                    None => drop(work.parked.remove(&site)),
                }
            }
        }
        Ok(resumed)
    }

    fn start(&self, work: &mut Work, leased: LeasedSite) {
        let goes_on = leased.site.parked.is_some() || leased.site.broken_off.is_some();
        self.tools.events.tell(Event::VisitBegan { site: &leased.token.site, goes_on });
        work.parked.remove(&leased.token.site);
        let lost = work.held.add(&leased.token);
        let (tools, cancel) = (self.tools.clone(), self.cancel.clone());
        let writers = (self.writer.clone(), self.passing.clone());
        work.running.spawn(visit_and_save(tools, writers, Box::new(leased), cancel, lost));
    }

    fn take(&mut self, work: &mut Work, done: Result<Done, tokio::task::JoinError>) {
        let done = match done {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => return,
            Err(error) => {
                tracing::error!(%error, "a visit broke off");
                self.summary.failed += 1;
                return;
            }
        };
        work.held.remove(done.site());
        match done {
            Done::Saved { counted, saved } => {
                metrics::visit_saved(&counted, &saved);
                self.tools.events.tell(counted.as_event(&saved));
                self.summary.count(&counted, &saved);
                let open = work.running.len();
                let news =
                    Progress::Visited { site: &counted.site, end: counted.end, summary: &self.summary, open };
                (self.progress)(news);
            }
            Done::Parked(parked) => {
                let ParkedSite { site, resume_at, reason } = &parked;
                self.tools.events.tell(Event::VisitParked { site, until: *resume_at, reason });
                (self.progress)(Progress::Parked(&parked));
                work.parked.insert(parked.site.clone(), parked);
            }
            Done::HandedOver { site, group } => {
                metrics::visit_handed_over();
                self.tools.events.tell(Event::VisitHandedOver { site: &site, address_group: group });
            }
            Done::Dropped(site) => {
                tracing::info!(site.name = %site, "another worker goes on with the visit");
                metrics::lease_lost();
                self.tools.events.tell(Event::VisitDropped { site: &site });
            }
            Done::Failed { site, error } => {
                metrics::own_failure();
                self.tools.events.tell(Event::VisitFailed { site: &site, error: &error.to_string() });
                tracing::error!(site.name = %site, %error, "the visit failed");
                self.summary.failed += 1;
            }
        }
    }

    /// Waits for visits to end after a soft stop; a hard stop, or too long a wait, drops them.
    async fn drain(&mut self, work: &mut Work) {
        let deadline = Instant::now() + DRAIN_MAX;
        while !work.running.is_empty() {
            tokio::select! {
                Some(done) = work.running.join_next() => self.take(work, done),
                () = self.cancel.hard.cancelled() => break,
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        work.running.shutdown().await;
        self.tools.groups.leave();
        if let Err(error) = self.tools.store.worker_forget(&self.worker).await {
            tracing::warn!(%error, "leases end by themselves within three minutes");
        }
    }
}

impl Work {
    fn ready_parked(&self) -> impl Iterator<Item = &SiteName> {
        let now = clock::now();
        self.parked.values().filter(move |parked| parked.resume_at <= now).map(|parked| &parked.site)
    }

    /// How many visits wait for no longer than until then.
    fn parked_until(&self, until: DateTime<Utc>) -> usize {
        self.parked.values().filter(|parked| parked.resume_at <= until).count()
    }

    /// When to look at the queue again, if nothing happens before.
    fn wake_at(&self) -> Instant {
        let now = clock::now();
        let first_parked = self.parked.values().map(|parked| parked.resume_at).min();
        let until_parked = first_parked.map(|at| (at - now).to_std().unwrap_or_default());
        let at_parked = until_parked.map(|wait| Instant::now() + wait + Duration::from_millis(1));
        let look_at = self.next_look_at.max(Instant::now() + Duration::from_millis(10));
        at_parked.map_or(look_at, |at| at.min(look_at)).min(self.next_beat_at)
    }
}

fn delta(duration: Duration) -> TimeDelta {
    TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX)
}
