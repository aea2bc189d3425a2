//! When a daemon runs tasks other than visits.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::crontab::Crontab;

/// When a daemon runs each task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schedules {
    /// Reads every source of seeds again, except stdin.
    pub seeds: Option<Crontab>,
    /// Removes expired data and ranks the paths by the manifests found.
    pub housekeeping: Option<Crontab>,
    /// Logs the state of the crawl.
    pub report: Option<Crontab>,
}

/// A scheduled task.
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

    /// The schedule of the seeds, and those of the other tasks, which do not wait for requests.
    pub(crate) fn split_seeds(&self) -> [Self; 2] {
        [Self { seeds: self.seeds.clone(), ..Self::default() }, Self { seeds: None, ..self.clone() }]
    }

    pub(crate) fn next_after(&self, now: DateTime<Utc>) -> Option<(DateTime<Utc>, ScheduledTask)> {
        let next = |(task, schedule): (ScheduledTask, &Crontab)| Some((schedule.next_after(now)?, task));
        self.tasks().filter_map(next).min_by_key(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of a registry may take an hour.
    #[test]
    fn reading_the_seeds_delays_no_other_task() {
        let at = |text: &str| Some(Crontab::parse(text).unwrap());
        let all =
            Schedules { seeds: at("0 3 * * *"), housekeeping: at("0 2 * * *"), report: at("0 1 * * *") };
        let [seeds, others] = all.split_seeds();
        let tasks = |schedules: &Schedules| schedules.tasks().map(|(task, _)| task).collect::<Vec<_>>();
        assert_eq!(tasks(&seeds), [ScheduledTask::Seeds]);
        assert_eq!(tasks(&others), [ScheduledTask::Housekeeping, ScheduledTask::Report]);
    }

    #[test]
    fn runs_the_earliest_task_first() {
        let at = |text: &str| Some(Crontab::parse(text).unwrap());
        let schedules = Schedules { seeds: at("0 3 * * *"), housekeeping: at("0 2 * * *"), report: None };
        let now = "2026-01-01T02:30:00Z".parse().unwrap();
        assert_eq!(schedules.next_after(now).unwrap().1, ScheduledTask::Seeds);
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        assert_eq!(schedules.next_after(now).unwrap().1, ScheduledTask::Housekeeping);
        assert_eq!(Schedules::default().next_after(now), None);
    }
}
