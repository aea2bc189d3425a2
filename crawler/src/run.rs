//! A whole crawl: seeds into the store, then visits until nothing is due.

use manifest::SiteName;
use policy::VisitEnd;
use store::{Backend, Seed, Share, SiteGroup, Store};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::config::{CrawlConfig, Mode};
use crate::daemon::Around;
use crate::egress::Egress;
use crate::error::CrawlError;
use crate::events::{Event, Events};
use crate::fleet::{Cancel, Fleet, Passing, Progress, VisitWriter};
use crate::gather::Gatherer;
use crate::groups::Groups;
use crate::pace::Pace;
use crate::priors::PathPriors;
use crate::reading::Reader;
use crate::seeding::seed;
use crate::sole::SoleCrawler;
use crate::summary::Summary;
use crate::visit::Tools;
use crate::{clock, daemon, groups};

/// Times of a schedule that are shown at the start.
const TIMES_SHOWN: usize = 3;

/// Adds the seeds and visits every site that is due.
pub async fn run(
    config: CrawlConfig,
    store: Store,
    cancel: Cancel,
    progress: impl Fn(Progress<'_>),
) -> Result<Summary, CrawlError> {
    let started = Instant::now();
    let egress = Egress::new(config.egress.clone())?;
    let _sole = alone(&config, &store).await?;
    let events = open_events(&config)?;
    let priors = PathPriors::default();
    priors.re_estimate(&store).await?;
    let tracker = TaskTracker::new();
    let pace = Pace::start(store.clone(), config.delay, config.rate, groups::life(config.lease), &tracker);
    let groups = groups_of(&config, &store, Share::Full);
    let (events_of_visits, text_records) = (events.clone(), config.text_records);
    let reader = Reader::start(store.clone(), config.reader.clone(), &tracker);
    let tools = Tools { egress, store, pace, groups, events: events_of_visits, text_records, priors, reader };
    let mut summary =
        Summary { seeds: seed(&config, &tools, &cancel.soft, &progress).await?, ..Summary::default() };
    begin(&config, &tools, &summary).await?;
    progress(Progress::Seeded(&summary));
    if config.mode == Mode::Daemon {
        let around = Around { config: config.clone(), tools: tools.clone() };
        tracker.spawn(daemon::follow(around, cancel.soft.clone()));
        for (task, schedule) in config.schedules.tasks() {
            let next = schedule.upcoming(clock::now(), TIMES_SHOWN);
            progress(Progress::Scheduled { task, next: &next });
        }
    }
    let mut fleet = Fleet {
        writer: VisitWriter::start(tools.store.clone(), &tracker),
        passing: Gatherer::start(&Passing(tools.store.clone()), &tracker),
        tools,
        worker: config.worker,
        concurrency: config.concurrency,
        lease: config.lease,
        cancel,
        summary,
        progress: &progress,
        only: None,
    };
    let ran = fleet.run(config.mode).await;
    summary = fleet.summary;
    if matches!(config.mode, Mode::Once { .. }) && ran.is_ok() && !summary.interrupted {
        fleet.tools.store.housekeeping(clock::now()).await?;
    }
    drop((fleet.tools, fleet.writer, fleet.passing));
    tracker.close();
    tracker.wait().await;
    ran?;
    summary.end(started.elapsed());
    events.tell(Event::Stopped { sites_visited: summary.sites_visited, requests: summary.requests });
    Ok(summary)
}

/// After the seeds: is there anything to visit, and what is due beside what was planned.
async fn begin(config: &CrawlConfig, tools: &Tools, summary: &Summary) -> Result<(), CrawlError> {
    let (read, rejected) = (summary.seeds.read, summary.seeds.rejected_count);
    tools.events.tell(Event::Seeded { read, rejected });
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

/// On an embedded database: takes the right to crawl on it, and gives back what a dead crawler held there.
async fn alone(config: &CrawlConfig, store: &Store) -> Result<Option<SoleCrawler>, CrawlError> {
    let Some(database) = &config.sole_on else { return Ok(None) };
    let sole = SoleCrawler::take(database, &config.worker)?;
    if let Some(before) = &sole.before {
        let freed = store.worker_forget(before).await?;
        if freed > 0 {
            tracing::info!(worker = %before, sites = freed, "going on with what a stopped crawler held");
        }
    }
    Ok(Some(sole))
}

/// On an embedded database every address is ours; on a server there may be others.
fn groups_of(config: &CrawlConfig, store: &Store, share: Share) -> Groups {
    match store.backend() {
        Backend::Sqlite => Groups::sole(),
        Backend::Postgres => Groups::of_fleet(config.worker.clone(), share, config.lease),
    }
}

fn open_events(config: &CrawlConfig) -> Result<Events, CrawlError> {
    let Some(path) = &config.events else { return Ok(Events::default()) };
    Events::append(path).map_err(|source| CrawlError::Events { path: path.clone(), source })
}

/// Visits one site now, whatever was planned; returns how the visit ended, if it did.
pub async fn check(
    config: CrawlConfig,
    store: Store,
    cancel: Cancel,
    seed: Seed,
) -> Result<Summary, CrawlError> {
    let started = Instant::now();
    let egress = Egress::new(config.egress.clone())?;
    let site = seed.host.site();
    store.seeds_add(&[Seed { revisit_now: true, ..seed }], clock::now()).await?;
    let tracker = TaskTracker::new();
    let pace = Pace::start(store.clone(), config.delay, config.rate, groups::life(config.lease), &tracker);
    let groups = groups_of(&config, &store, Share::None);
    if let Some(SiteGroup { group, owner: None }) = store.site_group(&site).await? {
        groups.claim(&store, group).await?;
    }
    let events = open_events(&config)?;
    let priors = PathPriors::default();
    priors.re_estimate(&store).await?;
    let reader = Reader::start(store.clone(), config.reader.clone(), &tracker);
    let text_records = config.text_records;
    let mut fleet = Fleet {
        writer: VisitWriter::start(store.clone(), &tracker),
        passing: Gatherer::start(&Passing(store.clone()), &tracker),
        tools: Tools { egress, store, pace, groups, events, text_records, priors, reader },
        worker: config.worker,
        concurrency: 1,
        lease: config.lease,
        cancel,
        summary: Summary::default(),
        progress: &|_: Progress<'_>| (),
        only: Some(vec![site]),
    };
    let park_wait = config.mode.park_wait();
    let ran = fleet.run(Mode::Once { park_wait }).await;
    let mut summary = fleet.summary;
    drop((fleet.tools, fleet.writer, fleet.passing));
    tracker.close();
    tracker.wait().await;
    ran?;
    summary.end(started.elapsed());
    Ok(summary)
}

/// How a visit of [`check`] ended, in words.
pub fn end_in_words(end: VisitEnd) -> &'static str {
    match end {
        VisitEnd::Completed => "everything planned was asked",
        VisitEnd::NothingNew => "everything known is fresh, so nothing was asked",
        VisitEnd::DnsDead => "the name does not exist",
        VisitEnd::DnsFailed => "the name servers failed",
        VisitEnd::Unreachable => "no connection to any address",
        VisitEnd::TlsFailed => "the TLS handshake failed or the certificate is not valid",
        VisitEnd::RobotsDenied => "robots.txt forbids everything we would ask",
        VisitEnd::RobotsUnreachable => "robots.txt could not be read, so nothing may be asked",
        VisitEnd::RateLimited => "the site asked for a pause",
        VisitEnd::Blocked => "the site refuses us",
        VisitEnd::ServerErrors => "the server failed twice",
        VisitEnd::TransportErrors => "the connection failed twice in a row",
        VisitEnd::CatchAll => "the host answers every path with a page",
        VisitEnd::OutOfTime => "the visit used up its time",
        VisitEnd::OverBudget => "the day's budget of requests is used up",
        VisitEnd::Parked => "waiting; the visit goes on at the next path",
        VisitEnd::Interrupted => "the crawler was stopped; the visit goes on at the next path",
        VisitEnd::OptedOut => "the owner asked to be left out",
        VisitEnd::LeaseLost => "another worker has taken the site over",
        VisitEnd::AddressRefused => "the name leads to addresses that are refused",
    }
}

/// The site that a domain or URL typed by a person belongs to.
pub fn site_of(text: &str) -> Result<SiteName, manifest::NameError> {
    if text.contains("://") {
        manifest::ManifestUrl::parse(text).map(|url| url.site())
    } else {
        SiteName::parse(text)
    }
}
