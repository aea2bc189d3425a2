//! The health of the crawl: the queue, the last day by the hour, and the sites that fail.

use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use manifest::SiteName;
use policy::{Status, VisitEnd};
use serde::Serialize;
use store::{FailingSite, LatestVisit, SlowSite, Store, VisitsOfInterval, WorkerLoad};
use utoipa::ToSchema;

use super::stats::{Count, counts};
use crate::problem::Problem;

/// How long an answer is cached: it needs scans of whole tables.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(1);
const HOURS: u32 = 24;
const MINUTES: u32 = 60;
/// Number of full minutes over which the request rate is averaged, because a visit reports its requests only when it ends.
const RATE_MINUTES: u32 = 5;
/// Latest visits that are listed: one screen.
const VISITS_MAX: u32 = 30;
const SITES_MAX: u32 = 10;
/// Maximum number of listed workers.
const WORKERS_MAX: u32 = 100;

/// The queue, the last day, and the sites that fail.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct CrawlAnswer {
    pub(crate) queue: Queue,
    /// The latest saved visits of all sites, at most 30, newest first.
    pub(crate) visits: Vec<Visit>,
    /// Requests per second, averaged over the visits that ended in the last five full minutes.
    pub(crate) requests_per_second: f64,
    /// Each of the last 60 minutes, the earliest first.
    pub(crate) minutes: Vec<Interval>,
    /// Each of the last 24 hours, the earliest first.
    pub(crate) hours: Vec<Interval>,
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
    /// Requests of the visits that ended in the last 24 hours, for the page.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) requests_last_day: u64,
    /// Number of blocked or suspended sites, for the page. Their visits are deleted.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) excluded: u64,
}

/// The work that is due.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Queue {
    pub(crate) due: u64,
    pub(crate) leased: u64,
    pub(crate) parked: u64,
    pub(crate) blocked: u64,
    pub(crate) oldest_due_at: Option<DateTime<Utc>>,
    /// For how long the oldest due site has been due, in seconds.
    pub(crate) lag_s: u64,
}

/// Visits that ended within an hour or a minute. The site answered all visits that were neither refused nor failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Interval {
    /// When the interval begins.
    pub(crate) at: DateTime<Utc>,
    pub(crate) visits: u64,
    /// Visits that failed because the site could not be reached or did not answer.
    pub(crate) troubled: u64,
    /// Visits that the site refused: by robots.txt, by refusing several requests, or by opting out.
    pub(crate) refused: u64,
}

/// A visit of a site.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Visit {
    /// Number of the visit in this database.
    pub(crate) id: i64,
    #[schema(value_type = String)]
    pub(crate) site: SiteName,
    pub(crate) started_at: DateTime<Utc>,
    pub(crate) ended_at: DateTime<Utc>,
    /// How it ended.
    #[schema(value_type = String)]
    pub(crate) end: VisitEnd,
    /// Requests that were sent.
    pub(crate) requests: u32,
    /// How many fetches had each outcome.
    pub(crate) outcomes: Vec<Count>,
}

/// The latest visits. Reads a few rows.
pub(crate) async fn latest_visits(store: &Store) -> Result<Vec<Visit>, Problem> {
    let visit = |visit: LatestVisit| Visit {
        id: visit.id,
        site: visit.site,
        started_at: visit.started_at,
        ended_at: visit.ended_at,
        end: visit.end,
        requests: visit.requests,
        outcomes: counts(visit.outcomes.into_iter().map(|(of, count)| (of, u64::from(count))).collect()),
    };
    Ok(store.visits_latest(VISITS_MAX).await?.into_iter().map(visit).collect())
}

/// Reads the health of the crawl at this moment, without the latest visits. Reads whole tables.
pub(crate) async fn crawl(store: &Store, now: DateTime<Utc>) -> Result<CrawlAnswer, Problem> {
    let stats = store.stats(now).await?;
    let (by_hour, hours) = intervals(store, now, TimeDelta::hours(1), HOURS).await?;
    let (by_minute, minutes) = intervals(store, now, TimeDelta::minutes(1), MINUTES).await?;
    let lag = stats.oldest_due_at.map(|at| (now - at).num_seconds()).unwrap_or_default();
    let suspended = stats.sites_by_status.iter().find(|(status, _)| *status == Status::Suspended);
    Ok(CrawlAnswer {
        sites: stats.sites,
        excluded: stats.sites_blocked + suspended.map_or(0, |(_, count)| *count),
        requests_last_day: by_hour.iter().map(|visits| visits.requests).sum(),
        queue: Queue {
            due: stats.sites_due,
            leased: stats.sites_leased,
            parked: stats.sites_parked,
            blocked: stats.sites_blocked,
            oldest_due_at: stats.oldest_due_at,
            lag_s: u64::try_from(lag).unwrap_or(0),
        },
        visits: Vec::new(),
        requests_per_second: requests_per_second(&by_minute, now),
        minutes,
        hours,
        visit_ends_last_day: counts(stats.ends_last_day),
        workers: store.workers_list(now, WORKERS_MAX).await?,
        slowest: store.sites_slowest(now - TimeDelta::days(1), SITES_MAX).await?,
        failing: store.sites_failing(SITES_MAX).await?,
    })
}

/// The visits of the last intervals, the current one included, and their sums.
async fn intervals(
    store: &Store,
    now: DateTime<Utc>,
    length: TimeDelta,
    count: u32,
) -> Result<(Vec<VisitsOfInterval>, Vec<Interval>), Problem> {
    let current = now.duration_trunc(length).unwrap_or(now);
    let back = |intervals: u32| current - length * i32::try_from(intervals).unwrap_or(i32::MAX);
    let ended = store.visits_by_interval(back(count - 1), length).await?;
    let sums = (0..count).rev().map(|index| interval(back(index), &ended)).collect();
    Ok((ended, sums))
}

fn interval(at: DateTime<Utc>, ended: &[VisitsOfInterval]) -> Interval {
    let sum = |counts: fn(VisitEnd) -> bool| -> u64 {
        let of_interval = ended.iter().filter(|visits| visits.begins_at == at && counts(visits.end));
        of_interval.map(|visits| visits.count).sum()
    };
    Interval { at, visits: sum(|_| true), troubled: sum(VisitEnd::is_failure), refused: sum(is_refusal) }
}

/// Whether the site refused access to its documents.
pub(crate) const fn is_refusal(end: VisitEnd) -> bool {
    matches!(end, VisitEnd::RobotsDenied | VisitEnd::Blocked | VisitEnd::OptedOut)
}

/// Requests per second over the last full minutes.
fn requests_per_second(by_minute: &[VisitsOfInterval], now: DateTime<Utc>) -> f64 {
    let this_minute = now.duration_trunc(TimeDelta::minutes(1)).unwrap_or(now);
    let since = this_minute - TimeDelta::minutes(i64::from(RATE_MINUTES));
    let counted =
        by_minute.iter().filter(|visits| visits.begins_at >= since && visits.begins_at < this_minute);
    let requests = counted.map(|visits| visits.requests).sum::<u64>();
    let requests = u32::try_from(requests).unwrap_or(u32::MAX);
    (f64::from(requests) / f64::from(RATE_MINUTES * 60) * 100.0).round() / 100.0
}
