//! The progress that a crawl reports while it runs.

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::{STATE_EVERY, Work, Worker};
use crate::activity::ActivityCounts;
use crate::config::Mode;
use crate::schedule::ScheduledTask;
use crate::summary::{ParkedSite, Summary};

/// Progress of a crawl.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// Seeds are being added.
    Seeding { seeds_read: u64 },
    /// Seeds were read and added.
    Seeded { summary: &'a Summary, mode: Mode },
    /// The next times of a scheduled task.
    Scheduled { task: ScheduledTask, next: &'a [DateTime<Utc>] },
    /// The state of the crawl, once a second.
    State(&'a CrawlState<'a>),
    /// A visit waits.
    Parked(&'a ParkedSite),
    /// Nothing is due, and the crawl waits for parked visits, the first of which resumes at `next_at`.
    Waiting { parked: usize, next_at: DateTime<Utc>, until: DateTime<Utc> },
    /// Nothing is due, but other processes hold sites. These processes may have ended.
    Held { sites: u64, until: DateTime<Utc> },
}

/// The state of a crawl.
#[derive(Debug, Clone, Copy)]
pub struct CrawlState<'a> {
    pub summary: &'a Summary,
    /// Number of sites that were due at the start. `None` until they are counted.
    pub sites_known: Option<u64>,
    /// Visits in progress.
    pub open: usize,
    /// Whether no further visit can begin before one ends.
    pub is_full: bool,
    /// Visits that are parked.
    pub parked: usize,
    pub activity: ActivityCounts,
}

impl Worker<'_> {
    /// Reports the state of the crawl.
    pub(super) fn show_state(&self, work: &mut Work) {
        work.next_state_at = Instant::now() + STATE_EVERY;
        if let Some(counted) = work.count.try_join_next() {
            work.sites_known = counted.ok().flatten();
        }
        (self.progress)(Progress::State(&CrawlState {
            summary: self.summary,
            // sites may be added during a pass
            sites_known: work
                .sites_known
                .map(|known| known.max(self.summary.sites_visited + work.running.len() as u64)),
            open: work.running.len(),
            is_full: work.running.len() >= self.concurrency,
            parked: work.parked.len(),
            activity: self.tools.activity.counts(),
        }));
    }
}
