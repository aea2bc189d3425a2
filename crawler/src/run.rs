//! Runs a crawl: adds the seeds, then visits until nothing is due.

use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use manifest::SiteName;
use store::{
    Backend, BackgroundTask, Seed, Share, SiteGroup, Store, StoreError, TaskFailure, TaskMonitor, WorkerId,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{CrawlConfig, EndpointChecks, Mode};
use crate::daemon::DaemonContext;
use crate::database_lock::EndedHolder;
use crate::error::CrawlError;
use crate::events::{Event, Events};
use crate::groups::Groups;
use crate::retry::lasting_outage;
use crate::seeding::Seeding;
use crate::seeds::Reading;
use crate::seeds::SeedReport;
use crate::summary::Summary;
use crate::visit::Tools;
use crate::worker::{Cancel, Progress, Worker};
use crate::{clock, daemon, deliveries, endpoint_checks};

/// Maximum number of times of a schedule that are shown at the start.
const TIMES_SHOWN: usize = 3;

/// How long the database may be unavailable after a soft stop before everything that waits for it is dropped. The leases then expire.
const OUTAGE_AFTER_STOP_MAX: Duration = Duration::from_secs(5);

/// Adds the seeds and visits every site that is due.
#[boxed]
pub async fn run(
    config: CrawlConfig,
    store: Store,
    cancel: Cancel,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Summary, CrawlError> {
    let started = Instant::now();
    let config = config.locked()?;
    let events = open_events(&config)?;
    let mut summary = Summary::default();
    let crawl = crawl((&config, &events), store, cancel.clone(), (progress, &mut summary));
    let is_given_up = unless_stopped_in_outage(&cancel, crawl).await?.is_none();
    summary.interrupted |= is_given_up;
    summary.end(started.elapsed());
    events.write(Event::Stopped { sites_visited: summary.sites_visited, requests: summary.requests });
    Ok(summary)
}

/// Runs work until its end, or until an outage of the database lasts for [`OUTAGE_AFTER_STOP_MAX`] after a soft stop.
async fn unless_stopped_in_outage<T>(
    cancel: &Cancel,
    work: impl Future<Output = Result<T, CrawlError>>,
) -> Result<Option<T>, CrawlError> {
    let stopped_in_outage = async {
        cancel.soft.cancelled().await;
        lasting_outage(OUTAGE_AFTER_STOP_MAX).await;
    };
    tokio::select! {
        done = work => done.map(Some),
        () = stopped_in_outage => {
            tracing::info!("stopped while the database is unavailable: the leases of open visits expire");
            Ok(None)
        }
    }
}

#[boxed]
async fn crawl(
    (config, events): (&CrawlConfig, &Events),
    store: Store,
    cancel: Cancel,
    (progress, summary): (&(dyn Fn(Progress<'_>) + Sync), &mut Summary),
) -> Result<(), CrawlError> {
    forget_previous_holder(config, &store).await?;
    let tracker = TaskTracker::new();
    let groups = groups_of(config, &store, Share::Full);
    let tools = Tools::start(config, &store, (groups, events.clone()), &tracker).await?;
    let seeds_monitor = Arc::new(TaskMonitor::new(store.clone(), BackgroundTask::Seeds));
    let seeds_read_at = config.seeds_read_at.unwrap_or_else(clock::now);
    let reading_stop = cancel.soft.child_token();
    let seeding = Seeding::new(config.clone(), tools.clone(), Reading::First, reading_stop.clone());
    let (seeds, on_web) = read_first(config, seeding, &seeds_monitor, progress).await?;
    summary.seeds = seeds;
    begin(config, &tools, summary).await?;
    progress(Progress::Seeded { summary, mode: config.mode });
    let schedules_stop = cancel.soft.child_token();
    let deliveries = Arc::new(TaskMonitor::new(store, BackgroundTask::Deliveries));
    let (running, worker) = (Arc::clone(&deliveries), config.worker.clone());
    tracker.spawn(deliveries::run(tools.clone(), worker, running, schedules_stop.clone()));
    if config.mode.keeps_running() {
        if config.mode == Mode::Daemon && config.endpoint_checks == EndpointChecks::Daily {
            let (tools, stop) = (tools.clone(), schedules_stop.clone());
            tracker.spawn(endpoint_checks::run(tools, config.worker.clone(), stop));
        }
        let seeds_monitor = Arc::clone(&seeds_monitor);
        // a file that a pipe replaces later is a failure, like one that a directory replaces
        let repeated = config.for_reading_again();
        let context = DaemonContext { config: repeated, tools: tools.clone(), seeds_monitor };
        daemon::start_schedules(&context, &tracker, &schedules_stop);
        tracker.spawn(daemon::follow_seed_files(context, seeds_read_at, schedules_stop.clone()));
        for (task, schedule) in config.schedules.tasks().filter(|_| config.mode == Mode::Daemon) {
            let next = schedule.upcoming(clock::now(), TIMES_SHOWN);
            progress(Progress::Scheduled { task, next: &next });
        }
    }
    let reading = read_during_visits(on_web, (&seeds_monitor, events));
    let mut worker = Worker::new(config, tools, cancel, (progress, summary), &tracker);
    let (ran, read) = tokio::join!(visit(&mut worker, config.mode, reading_stop), reading);
    schedules_stop.cancel();
    worker.summary.has_earlier_requests = worker.summary.requests > worker.tools.activity.counts().requests;
    if ran.is_ok() {
        // deliver the changes that the last visits found
        deliveries::deliver_due(&worker.tools, &config.worker, &deliveries, &worker.cancel.soft).await;
    }
    if matches!(config.mode, Mode::Once { .. }) && ran.is_ok() && !worker.summary.interrupted {
        if config.endpoint_checks == EndpointChecks::Daily {
            let (tools, stop, wait) = (&worker.tools, &worker.cancel.soft, config.mode.park_wait());
            endpoint_checks::check_in_pass(tools, &config.worker, stop, wait).await?;
        }
        worker.tools.store.housekeeping(clock::now()).await?;
        worker.summary.next_due_at = worker.tools.store.next_due_at().await?;
    }
    if let Some(read) = read {
        worker.summary.seeds = read;
    }
    worker.end(&tracker).await;
    Ok(ran?)
}

/// Visits sites, and ends reading the sources of seeds when the visits end.
async fn visit(
    worker: &mut Worker<'_>,
    mode: Mode,
    reading_stop: CancellationToken,
) -> Result<(), StoreError> {
    let _stops_reading = reading_stop.drop_guard();
    let ran = worker.run(mode).await;
    if let Err(error) = &ran {
        tracing::error!(%error, "the crawl failed: the crawler exits");
    }
    ran
}

/// Reads the sources before the first visit, and returns what is read during the visits: the sources on the web, if there is something to
/// visit without them.
async fn read_first(
    config: &CrawlConfig,
    mut seeding: Seeding,
    monitor: &TaskMonitor,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(SeedReport, Option<Seeding>), CrawlError> {
    if config.seeds_read_at.is_some() || config.seeds.is_empty() {
        return Ok((SeedReport::default(), None));
    }
    seeding.read_local(progress).await?;
    if seeding.may_read_web_later().await? {
        return Ok((seeding.report(), Some(seeding)));
    }
    seeding.read_web(progress).await?;
    let read = seeding.finish().await;
    if let Err(error @ CrawlError::NoSource(_)) = &read {
        monitor.ended(Err(TaskFailure::advised(error)), clock::now()).await;
    }
    let seeds = read?;
    report_seeds(&seeds, monitor).await;
    Ok((seeds, None))
}

/// Reads the sources on the web. The daemon goes on if this fails.
async fn read_during_visits(
    seeding: Option<Seeding>,
    (monitor, events): (&TaskMonitor, &Events),
) -> Option<SeedReport> {
    let mut seeding = seeding?;
    let began = Instant::now();
    let is_stopped = seeding.stop();
    let read = match seeding.read_web(&|_| ()).await {
        Ok(()) => seeding.finish().await,
        Err(error) => Err(error),
    };
    if is_stopped.is_cancelled() {
        return None;
    }
    match daemon::seeds_result(&read, began) {
        Ok(report) => {
            events.write(Event::Seeded { read: report.read, rejected: report.rejected_count });
            tracing::info!(target: "crawler::progress", result = report.counts(), "sources of seeds on the web read");
            monitor.ended(Ok(()), clock::now()).await;
        }
        Err(failure) => monitor.ended(Err(failure), clock::now()).await,
    }
    read.ok()
}

/// Reports the sources that could not be read. Without sources, an earlier failure to read some remains known.
async fn report_seeds(seeds: &SeedReport, monitor: &TaskMonitor) {
    let failures = seeds.failures();
    if failures.is_some() || !seeds.sources.is_empty() {
        monitor
            .ended(failures.map_or(Ok(()), |failures| Err(TaskFailure::advised(failures))), clock::now())
            .await;
    }
}

/// Checks, after the seeds were added, that there is something to visit, and makes sites due for `--revisit`.
async fn begin(config: &CrawlConfig, tools: &Tools, summary: &Summary) -> Result<(), CrawlError> {
    let (read, rejected) = (summary.seeds.read, summary.seeds.rejected_count);
    tools.events.write(Event::Seeded { read, rejected });
    if config.seeds.is_empty() && tools.store.next_due_at().await?.is_none() {
        return Err(CrawlError::NoSites);
    }
    if let Some(older_than) = config.revisit_older_than {
        let now = clock::now();
        let visited_before = now - chrono::TimeDelta::from_std(older_than).unwrap_or(chrono::TimeDelta::MAX);
        tools.store.sites_revisit(visited_before, now).await?;
    }
    Ok(())
}

/// Releases the leases of a dead crawler in the embedded database.
async fn forget_previous_holder(config: &CrawlConfig, store: &Store) -> Result<(), CrawlError> {
    match config.lock.as_ref().and_then(|lock| lock.before.as_ref()) {
        Some(before) => forget(before, store).await,
        None => Ok(()),
    }
}

/// Releases the leases of a dead crawler in the embedded database, for a visit beside which a crawl may start.
async fn forget_ended_holder(config: &CrawlConfig, store: &Store) -> Result<(), CrawlError> {
    match config.locked_database.as_deref().and_then(EndedHolder::of) {
        Some(ended) => forget(&ended.worker, store).await,
        None => Ok(()),
    }
}

async fn forget(worker: &WorkerId, store: &Store) -> Result<(), CrawlError> {
    let freed = store.worker_forget(worker).await?;
    if freed > 0 {
        tracing::info!(%worker, sites = freed, "released the sites of a stopped crawler");
    }
    Ok(())
}

/// With an embedded database, this crawler owns every address. With a database server, other crawlers may own some.
fn groups_of(config: &CrawlConfig, store: &Store, share: Share) -> Groups {
    match store.backend() {
        Backend::Sqlite => Groups::unshared(),
        Backend::Postgres => Groups::shared(config.worker.clone(), share, config.lease),
    }
}

fn open_events(config: &CrawlConfig) -> Result<Events, CrawlError> {
    let Some(path) = &config.events else { return Ok(Events::default()) };
    Events::append(path).map_err(|source| CrawlError::Events { path: path.clone(), source })
}

/// Visits one site now, regardless of its planned time.
#[boxed]
pub async fn check(
    config: CrawlConfig,
    store: Store,
    cancel: Cancel,
    seed: Seed,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Summary, CrawlError> {
    let started = Instant::now();
    let mut summary = Summary::default();
    let visited = check_visit(&config, store, cancel.clone(), seed, (progress, &mut summary));
    let is_given_up = unless_stopped_in_outage(&cancel, visited).await?.is_none();
    summary.interrupted |= is_given_up;
    summary.end(started.elapsed());
    Ok(summary)
}

#[boxed]
async fn check_visit(
    config: &CrawlConfig,
    store: Store,
    cancel: Cancel,
    seed: Seed,
    (progress, summary): (&(dyn Fn(Progress<'_>) + Sync), &mut Summary),
) -> Result<(), CrawlError> {
    let site = seed.host.site();
    forget_ended_holder(config, &store).await?;
    store.seeds_add(&[Seed { revisit_now: true, ..seed }], clock::now()).await?;
    let groups = groups_of(config, &store, Share::None);
    if let Some(SiteGroup { group, owner: None }) = store.site_group(&site).await? {
        groups.take_unowned(&store, group).await?;
    }
    let tracker = TaskTracker::new();
    let tools = Tools::start(config, &store, (groups, open_events(config)?), &tracker).await?;
    let worker = Worker::new(config, tools, cancel, (progress, summary), &tracker);
    let mut worker = Worker { concurrency: 1, only: Some(vec![site]), ..worker };
    let ran = worker.run(Mode::Once { park_wait: config.mode.park_wait(), goes_on: false }).await;
    worker.end(&tracker).await;
    Ok(ran?)
}

/// The site of a domain or URL that was typed.
pub fn site_of(text: &str) -> Result<SiteName, manifest::NameError> {
    if text.contains("://") {
        manifest::ManifestUrl::parse(text).map(|url| url.site())
    } else {
        SiteName::parse(text)
    }
}
