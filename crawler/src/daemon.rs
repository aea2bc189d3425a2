//! Scheduled tasks of a daemon: reading its seeds again, housekeeping, and a report.
//!
//! A task that fails is logged and runs again at its next time. A stop takes effect between two tasks.

use chrono::{DateTime, Utc};
use store::{Retained, Stats};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::CrawlConfig;
use crate::error::CrawlError;
use crate::events::Event;
use crate::schedule::ScheduledTask;
use crate::seed_files::{self, ReadAgain, SeedFiles};
use crate::seeding::{Reading, seed};
use crate::seeds::SeedReport;
use crate::visit::Tools;

/// Maximum number of skipped lines of lists that a log line names.
const SKIPPED_MAX: usize = 3;

/// Shared state of the scheduled tasks.
#[derive(Clone)]
pub(crate) struct DaemonContext {
    pub(crate) config: CrawlConfig,
    /// Shared with the visits, because requests for seed lists use the same clocks.
    pub(crate) tools: Tools,
}

/// Runs every task at its time, until stopped.
pub(crate) async fn run_schedules(context: DaemonContext, stop: CancellationToken) {
    let DaemonContext { config, tools } = &context;
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
            let came_to = result.unwrap_or_else(|error| format!("failed: {error}"));
            // the operator requested the report, so it is logged at every level that shows warnings
            if task == ScheduledTask::Report {
                tracing::info!(target: "crawler::progress", %task, result = came_to, "scheduled task done");
            } else {
                tracing::info!(%task, result = came_to, "scheduled task done");
            }
            tools.events.write(Event::Scheduled { task: &task.to_string(), came_to: &came_to });
        }
        after = at.max(clock::now());
    }
}

/// Reads the seeds again each time a seed file has changed, until stopped.
pub(crate) async fn follow_seed_files(
    context: DaemonContext,
    read_at: DateTime<Utc>,
    stop: CancellationToken,
) {
    let mut files = SeedFiles::read_at(&context.config.seeds, read_at);
    while stop.run_until_cancelled(tokio::time::sleep(seed_files::POLL_INTERVAL)).await.is_some() {
        let Some(why) = files.poll() else { continue };
        let Some(read) = stop.run_until_cancelled(seeds_read_again(&context, &stop)).await else { return };
        let came_to = match read {
            Ok(came_to) => came_to,
            Err(error) => {
                let is_transient = matches!(&error, CrawlError::Store(error) if error.is_transient());
                let came_to = if is_transient {
                    files.forget();
                    format!("failed, and is tried again: {error}")
                } else {
                    format!("failed: {error}")
                };
                tracing::warn!(result = came_to, "seed files not read again");
                let task = &ScheduledTask::Seeds.to_string();
                context.tools.events.write(Event::Scheduled { task, came_to: &came_to });
                continue;
            }
        };
        match why {
            ReadAgain::Changed => {
                tracing::info!(target: "crawler::progress", result = came_to, "a seed file has changed");
            }
            ReadAgain::Uncertain => tracing::info!(result = came_to, "seed files read again"),
        }
        context
            .tools
            .events
            .write(Event::Scheduled { task: &ScheduledTask::Seeds.to_string(), came_to: &came_to });
    }
}

async fn seeds_read_again(context: &DaemonContext, stop: &CancellationToken) -> Result<String, CrawlError> {
    let config = context.config.for_reading_again();
    let report = seed(&config, &context.tools, Reading::Again, stop, &|_| ()).await?;
    Ok(read_again_in_words(&report))
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
) -> Result<String, CrawlError> {
    let DaemonContext { config, tools } = context;
    let Tools { store, priors, .. } = tools;
    match task {
        ScheduledTask::Seeds => {
            seed_files::settled(&config.seeds).await;
            seeds_read_again(context, stop).await
        }
        ScheduledTask::Housekeeping => {
            let kept = store.housekeeping(clock::now()).await?;
            let sites = priors.re_estimate(store).await?;
            let retained = store.retain(&config.retention, clock::now()).await?;
            Ok(format!(
                "{} clocks of addresses and {} interrupted visits deleted, {} sites without manifests compacted, \
                 paths ranked by {sites} sites with manifests, {}",
                kept.address_clocks,
                kept.interrupted_visits,
                kept.sites_compacted,
                retention_text(&retained)
            ))
        }
        ScheduledTask::Report => Ok(report_line(&store.stats(clock::now()).await?)),
    }
}

/// The result of retention. A feed reader that delays it is logged.
fn retention_text(retained: &Retained) -> String {
    let Retained { feed_entries, versions, .. } = retained;
    let waits = retained.feed_held_back_by.as_ref().map_or(String::new(), |reader| {
        tracing::warn!(reader, "feed entries are retained for a reader that has not read them");
        format!("; older changes wait for the reader {reader}")
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
