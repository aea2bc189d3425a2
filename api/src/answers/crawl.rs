//! The health of the crawl: the queue, the last day by the hour, and the sites that fail.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde::Serialize;
use store::{FailingSite, SlowSite, Store, VisitsOfHour, WorkerLoad};
use utoipa::ToSchema;

use super::stats::{Count, counts};
use crate::problem::Problem;

/// How old an answer may be: whole tables are read for it.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(1);
const HOURS: i32 = 24;
const SITES_MAX: u32 = 10;
/// Maximum number of listed workers.
const WORKERS_MAX: u32 = 100;

/// The queue, the last day, and the sites that fail.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CrawlAnswer {
    pub(crate) queue: Queue,
    /// Each of the last 24 hours, the earliest first.
    pub(crate) hours: Vec<Hour>,
    pub(crate) visit_ends_last_day: Vec<Count>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) workers: Vec<WorkerLoad>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) slowest: Vec<SlowSite>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) failing: Vec<FailingSite>,
    /// Sites that are known, for the page.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) sites: u64,
    /// Requests of the last 24 hours, for the page.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) requests_last_day: u64,
}

/// The work that is due.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Queue {
    pub(crate) due: u64,
    pub(crate) leased: u64,
    pub(crate) parked: u64,
    pub(crate) blocked: u64,
    pub(crate) oldest_due_at: Option<DateTime<Utc>>,
    /// For how long the oldest due site has been due, in seconds.
    pub(crate) lag_s: u64,
}

/// Visits that ended within an hour.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hour {
    pub(crate) at: DateTime<Utc>,
    pub(crate) visits: u64,
    /// Of these, visits that failed: the site could not be reached or did not answer.
    pub(crate) troubled: u64,
}

/// Reads the health of the crawl at this moment.
pub(crate) async fn crawl(store: &Store, now: DateTime<Utc>) -> Result<CrawlAnswer, Problem> {
    let stats = store.stats(now).await?;
    let this_hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
    let since = this_hour - TimeDelta::hours(i64::from(HOURS - 1));
    let ended = store.visits_by_hour(since).await?;
    let lag = stats.oldest_due_at.map(|at| (now - at).num_seconds()).unwrap_or_default();
    Ok(CrawlAnswer {
        sites: stats.sites,
        requests_last_day: stats.outcomes_last_day.iter().map(|(_, count)| count).sum(),
        queue: Queue {
            due: stats.sites_due,
            leased: stats.sites_leased,
            parked: stats.sites_parked,
            blocked: stats.sites_blocked,
            oldest_due_at: stats.oldest_due_at,
            lag_s: u64::try_from(lag).unwrap_or(0),
        },
        hours: (0..HOURS).map(|index| hour(since + TimeDelta::hours(i64::from(index)), &ended)).collect(),
        visit_ends_last_day: counts(stats.ends_last_day),
        workers: store.workers_list(now, WORKERS_MAX).await?,
        slowest: store.sites_slowest(now - TimeDelta::days(1), SITES_MAX).await?,
        failing: store.sites_failing(SITES_MAX).await?,
    })
}

fn hour(at: DateTime<Utc>, ended: &[VisitsOfHour]) -> Hour {
    let of_hour = || ended.iter().filter(|visits| visits.hour == at);
    Hour {
        at,
        visits: of_hour().map(|visits| visits.count).sum(),
        troubled: of_hour().filter(|visits| visits.end.is_failure()).map(|visits| visits.count).sum(),
    }
}
