//! Scheduled tasks of a daemon: reading its seeds again, housekeeping, and a report.
//!
//! A task that fails is reported and runs again at its next time. A stop cancels a running task at its next await point.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use store::{BackgroundTask, Retained, Stats, StoreError, TaskFailure, TaskMonitor};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::config::{CrawlConfig, SeedLists};
use crate::error::CrawlError;
use crate::events::Event;
use crate::schedule::ScheduledTask;
use crate::seed_files::{self, ReadAgain, SeedFiles};
use crate::seeding::seed;
use crate::seeds::Reading;
use crate::seeds::SeedReport;
use crate::visit::Tools;

/// Maximum number of skipped lines of lists that a log line names.
const SKIPPED_MAX: usize = 3;

/// Shared state of the scheduled tasks.
#[derive(Clone)]
pub(crate) struct DaemonContext {
    /// Without sources that can be read only once ([`CrawlConfig::for_reading_again`]).
    pub(crate) config: CrawlConfig,
    /// Shared with the visits, because requests for seed lists use the same clocks.
    pub(crate) tools: Tools,
    /// Reports the result of each reading of the seeds, the first one included.
    pub(crate) seeds_monitor: Arc<TaskMonitor>,
}

/// Runs every task at its scheduled time, until stopped. Reading the seeds can take long, so it has its own loop and delays no other task.
pub(crate) fn start_schedules(context: &DaemonContext, tracker: &TaskTracker, stop: &CancellationToken) {
    for schedules in context.config.schedules.split_seeds() {
        let config = CrawlConfig { schedules, ..context.config.clone() };
        tracker.spawn(run_schedules(DaemonContext { config, ..context.clone() }, stop.clone()));
    }
}

/// Runs tasks one after the other, each at its time.
async fn run_schedules(context: DaemonContext, stop: CancellationToken) {
    let DaemonContext { config, tools, seeds_monitor } = &context;
    let monitor = |task| TaskMonitor::new(tools.store.clone(), task);
    let (housekeeping, report) = (monitor(BackgroundTask::Housekeeping), monitor(BackgroundTask::Report));
    let mut after = clock::now();
    while let Some((at, _)) = config.schedules.next_after(after) {
        let wait = (at - clock::now()).to_std().unwrap_or_default();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
        let due: Vec<ScheduledTask> = config
            .schedules
            .tasks()
            .filter(|(_, schedule)| schedule.next_after(after) == Some(at))
            .map(|(task, _)| task)
            .collect();
        for task in due {
            let result = tokio::select! {
                result = perform(task, &context, &stop) => result,
                () = stop.cancelled() => return,
            };
            let monitor = match task {
                ScheduledTask::Seeds => seeds_monitor,
                ScheduledTask::Housekeeping => &housekeeping,
                ScheduledTask::Report => &report,
            };
            match (&result, task) {
                // the operator scheduled this report, so it has the target that is logged at `warn` too
                (Ok(summary), ScheduledTask::Report) => {
                    tracing::info!(target: "crawler::progress", %task, result = summary, "scheduled task done");
                }
                (Ok(summary), _) => tracing::info!(%task, result = summary, "scheduled task done"),
                (Err(_), _) => {}
            }
            monitor.ended(write_event(tools, task, result), clock::now()).await;
        }
        after = at.max(clock::now());
    }
}

/// Writes the event of the end of a run.
fn write_event(
    tools: &Tools,
    task: ScheduledTask,
    result: Result<String, TaskFailure>,
) -> Result<(), TaskFailure> {
    let (summary, result) = match result {
        Ok(summary) => (summary, Ok(())),
        Err(failure) => (format!("failed: {failure}"), Err(failure)),
    };
    tools.events.write(Event::Scheduled { task: &task.to_string(), came_to: &summary });
    result
}

/// Reads the seeds again each time a seed file has changed, until stopped.
pub(crate) async fn follow_seed_files(
    context: DaemonContext,
    read_at: DateTime<Utc>,
    stop: CancellationToken,
) {
    let mut files = SeedFiles::read_at(&context.config.seeds, read_at);
    while stop.run_until_cancelled(tokio::time::sleep(seed_files::POLL_INTERVAL)).await.is_some() {
        let why = files.poll();
        for path in files.take_gone() {
            let missing = TaskFailure::advised(seed_files::missing(&path));
            context.seeds_monitor.ended(Err(missing), clock::now()).await;
        }
        let Some(why) = why else { continue };
        let Some(read) = stop.run_until_cancelled(files_read_again(&context, &stop)).await else { return };
        match (&read, why) {
            (Ok(summary), ReadAgain::Changed) => {
                tracing::info!(target: "crawler::progress", result = summary, "a seed file has changed");
            }
            (Ok(summary), ReadAgain::Uncertain) => {
                tracing::info!(result = summary, "seed files read again");
            }
            (Err(failure), _) if failure.is_outage() => files.forget(),
            (Err(_), _) => {}
        }
        let read = write_event(&context.tools, ScheduledTask::Seeds, read);
        // what was wrong with sources on the web remains known until they are read again
        let result = read.and_then(|()| context.tools.sources_on_web.last_result());
        context.seeds_monitor.ended(result, clock::now()).await;
    }
}

async fn seeds_read_again(context: &DaemonContext, stop: &CancellationToken) -> Result<String, TaskFailure> {
    read_again(&context.config, &context.tools, stop).await
}

/// Reads the local sources after a change. Sources on the web may take long and have their own times. If the lists are followed, they are read
/// too, because a site is deleted only if no source names it.
async fn files_read_again(context: &DaemonContext, stop: &CancellationToken) -> Result<String, TaskFailure> {
    let mut config = context.config.clone();
    if config.seed_lists == SeedLists::Added {
        config.seeds.retain(|source| !source.is_on_web());
    }
    read_again(&config, &context.tools, stop).await
}

async fn read_again(
    config: &CrawlConfig,
    tools: &Tools,
    stop: &CancellationToken,
) -> Result<String, TaskFailure> {
    let began = Instant::now();
    let read = seed(config, tools, Reading::Again, stop).await;
    seeds_result(&read, began).map(read_again_in_words)
}

/// Converts the result of reading the seeds to that of a task. The task failed if a source could not be read.
pub(crate) fn seeds_result(
    read: &Result<SeedReport, CrawlError>,
    began: Instant,
) -> Result<&SeedReport, TaskFailure> {
    match read {
        Ok(report) => report.failures().map_or(Ok(report), |failures| Err(TaskFailure::advised(failures))),
        Err(CrawlError::Store(error)) => Err(TaskFailure::of_store(error, began)),
        Err(error) => Err(TaskFailure::advised(error)),
    }
}

/// The counts of lists that were read again, and the first lines that were skipped.
fn read_again_in_words(report: &SeedReport) -> String {
    let deleted = match report.sites_forgotten {
        0 => String::new(),
        1 => ", 1 site deleted".to_owned(),
        sites => format!(", {sites} sites deleted"),
    };
    let skipped = report.rejected.iter().take(SKIPPED_MAX).map(|rejected| format!("; {rejected}"));
    let left = report.rejected_count.saturating_sub(SKIPPED_MAX as u64);
    let more = if left > 0 { format!("; and {left} more") } else { String::new() };
    format!("{}{deleted}{}{more}", report.counts(), skipped.collect::<String>())
}

async fn perform(
    task: ScheduledTask,
    context: &DaemonContext,
    stop: &CancellationToken,
) -> Result<String, TaskFailure> {
    let began = Instant::now();
    let done = match task {
        ScheduledTask::Seeds => {
            seed_files::settled(&context.config.seeds).await;
            return seeds_read_again(context, stop).await;
        }
        ScheduledTask::Housekeeping => housekeeping(context).await,
        ScheduledTask::Report => {
            context.tools.store.stats(clock::now()).await.map(|stats| report_line(&stats))
        }
    };
    done.map_err(|error| TaskFailure::of_store(&error, began))
}

async fn housekeeping(context: &DaemonContext) -> Result<String, StoreError> {
    let DaemonContext { config, tools, .. } = context;
    let Tools { store, priors, .. } = tools;
    let done = store.housekeeping(clock::now()).await?;
    let sites = priors.re_estimate(store).await?;
    let retained = store.retain(&config.retention, clock::now()).await?;
    Ok(format!(
        "{} clocks of addresses and {} interrupted visits deleted, {} sites without manifests compacted, \
         path statistics updated from {sites} sites with manifests, {}",
        done.address_clocks,
        done.interrupted_visits,
        done.sites_compacted,
        retention_text(&retained)
    ))
}

/// The result of retention. A feed reader that delays it is logged.
fn retention_text(retained: &Retained) -> String {
    let Retained { feed_entries, versions, .. } = retained;
    let waits = retained.feed_held_back_by.as_ref().map_or(String::new(), |reader| {
        tracing::warn!(reader, "feed entries are retained for an indexer that has not read them");
        format!("; older changes are kept until the indexer {reader} has read them")
    });
    format!("{feed_entries} changes and {versions} versions removed by age{waits}")
}

fn report_line(stats: &Stats) -> String {
    let visits: u64 = stats.ends_last_day.iter().map(|(_, count)| count).sum();
    let fetches: u64 = stats.outcomes_last_day.iter().map(|(_, count)| count).sum();
    format!(
        "{} sites, {} due, {} parked; {} manifests with {} capabilities; in the last day {visits} visits and {fetches} fetches",
        stats.sites, stats.sites_due, stats.sites_parked, stats.manifests, stats.capabilities
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::Rejected;

    #[test]
    fn names_the_skipped_lines_of_lists_that_are_read_again() {
        let rejected = |line| Rejected {
            source: "live.txt".to_owned(),
            line,
            text: "typo,site".to_owned(),
            reason: "it is not a host name".to_owned(),
        };
        let report = |lines: u64| SeedReport {
            read: 2,
            rejected_count: lines,
            rejected: (1..=lines).map(rejected).collect(),
            ..SeedReport::default()
        };
        assert_eq!(read_again_in_words(&report(0)), "2 seeds read");
        let one = "2 seeds read, 1 line skipped; live.txt, line 1: it is not a host name";
        assert_eq!(read_again_in_words(&report(1)), one);
        let many = read_again_in_words(&SeedReport { sites_forgotten: 1, ..report(5) });
        assert!(
            many.starts_with("2 seeds read, 5 lines skipped, 1 site deleted; live.txt, line 1:"),
            "{many}"
        );
        assert!(many.ends_with("; and 2 more"), "{many}");
    }
}
