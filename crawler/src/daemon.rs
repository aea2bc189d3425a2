//! What a daemon does by schedule beside visiting: reading its seeds again, housekeeping, and a report.
//!
//! A task that fails is told and tried again at its next time. A stop is heeded between two tasks.

use std::fmt;

use chrono::{DateTime, Utc};
use store::{Retained, Stats};
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::config::CrawlConfig;
use crate::crontab::Crontab;
use crate::events::Event;
use crate::run::CrawlError;
use crate::seeding::seed;
use crate::visit::Tools;

/// When a daemon does what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedules {
    /// Reads every source of seeds again, stdin apart.
    pub seeds: Option<Crontab>,
    /// Removes what nothing needs any more and what is older than is to be kept, and ranks the paths by what was found.
    pub housekeeping: Option<Crontab>,
    /// Tells how the crawl stands.
    pub report: Option<Crontab>,
}

/// Something that is done by schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledTask {
    Seeds,
    Housekeeping,
    Report,
}

impl fmt::Display for ScheduledTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seeds => "seeds",
            Self::Housekeeping => "housekeeping",
            Self::Report => "report",
        })
    }
}

impl Schedules {
    /// Each task with its schedule.
    pub fn tasks(&self) -> impl Iterator<Item = (ScheduledTask, &Crontab)> {
        let seeds = self.seeds.as_ref().map(|schedule| (ScheduledTask::Seeds, schedule));
        let housekeeping = self.housekeeping.as_ref().map(|schedule| (ScheduledTask::Housekeeping, schedule));
        let report = self.report.as_ref().map(|schedule| (ScheduledTask::Report, schedule));
        [seeds, housekeeping, report].into_iter().flatten()
    }

    fn next_after(&self, now: DateTime<Utc>) -> Option<(DateTime<Utc>, ScheduledTask)> {
        let next = |(task, schedule): (ScheduledTask, &Crontab)| Some((schedule.next_after(now)?, task));
        self.tasks().filter_map(next).min_by_key(|(at, _)| *at)
    }
}

/// What the tasks work on.
pub(crate) struct Around {
    pub(crate) config: CrawlConfig,
    /// Those of the visits, whose clocks the lists of seeds go by too.
    pub(crate) tools: Tools,
}

/// Does everything at its time, until stopped.
pub(crate) async fn follow(around: Around, stop: CancellationToken) {
    let Around { config, tools } = &around;
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
            let done = tokio::select! {
                done = perform(task, &around, &stop) => done,
                () = stop.cancelled() => return,
            };
            let came_to = done.unwrap_or_else(|error| format!("failed: {error}"));
            tracing::info!(%task, came_to, "done by schedule");
            tools.events.tell(Event::Scheduled { task: &task.to_string(), came_to: &came_to });
        }
        after = at.max(clock::now());
    }
}

async fn perform(
    task: ScheduledTask,
    around: &Around,
    stop: &CancellationToken,
) -> Result<String, CrawlError> {
    let Around { config, tools } = around;
    let Tools { store, priors, .. } = tools;
    match task {
        ScheduledTask::Seeds => {
            let report = seed(&config.without_stdin(), tools, stop, &|_| ()).await?;
            Ok(format!(
                "{} seeds read, {} lines passed over, {} sites forgotten",
                report.read, report.rejected_count, report.sites_forgotten
            ))
        }
        ScheduledTask::Housekeeping => {
            let kept = store.housekeeping(clock::now()).await?;
            let sites = priors.re_estimate(store).await?;
            let retained = store.retain(&config.retention, clock::now()).await?;
            Ok(format!(
                "{} clocks of addresses and {} broken-off visits forgotten, {} sites with nothing put to rest, \
                 paths ranked by {sites} sites with manifests, {}",
                kept.address_clocks,
                kept.interrupted_visits,
                kept.sites_compacted,
                told(&retained)
            ))
        }
        ScheduledTask::Report => Ok(in_one_line(&store.stats(clock::now()).await?)),
    }
}

/// What retention did; a reader that holds it back is never passed over in silence.
fn told(retained: &Retained) -> String {
    let Retained { feed_entries, versions, .. } = retained;
    let waits = retained.feed_held_back_by.as_ref().map_or(String::new(), |reader| {
        tracing::warn!(reader, "entries of the feed are kept for a reader that has not come for them");
        format!("; older changes wait for the reader {reader}")
    });
    format!("{feed_entries} changes and {versions} versions removed by age{waits}")
}

fn in_one_line(stats: &Stats) -> String {
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

    #[test]
    fn the_earliest_task_comes_first() {
        let at = |text: &str| Some(Crontab::parse(text).unwrap());
        let schedules = Schedules { seeds: at("0 3 * * *"), housekeeping: at("0 2 * * *"), report: None };
        let now = "2026-01-01T02:30:00Z".parse().unwrap();
        assert_eq!(schedules.next_after(now).unwrap().1, ScheduledTask::Seeds);
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        assert_eq!(schedules.next_after(now).unwrap().1, ScheduledTask::Housekeeping);
        assert_eq!(Schedules::default().next_after(now), None);
    }
}
