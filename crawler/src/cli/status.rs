//! `status`: the queue, the results of the last day, and which sites are slow or fail.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Format, Host};
use policy::Status as SiteStatus;
use serde::Serialize;
use store::{DatabaseUrl, FailingSite, FailingTask, SlowSite, Stats, Store, WorkerLoad};

use super::duration::in_words;
use super::report::{counted, format_counted, outcomes_in_words, plural};
use crate::clock;
use crate::output::{self, OutputFormat};
use crate::summary::SiteAndHost;

/// Maximum number of parked visits shown.
const PARKED_MAX: u32 = 10;
/// Maximum number of workers shown.
const WORKERS_MAX: u32 = 100;
/// Maximum number of failing tasks shown.
const TASKS_MAX: u32 = 20;
/// Maximum number of failing sites shown, and of slow sites.
const SITES_MAX: u32 = 10;

/// Sites whose mean time to the first byte is at least this are shown as slow. For these sites the delay, which is five times the response
/// time, is at least the default.
const SLOW_MIN: Duration = Duration::from_millis(600);

/// Everything that `status` shows.
#[derive(Debug, Serialize)]
struct Status {
    #[serde(flatten)]
    stats: Stats,
    /// Seconds since the oldest due visit became due.
    lag_seconds: u64,
    /// When the next visit becomes due. In the past if it is already due.
    next_due_at: Option<DateTime<Utc>>,
    workers: Vec<WorkerLoad>,
    failing: Vec<Failing>,
    #[serde(skip)]
    has_more_failing: bool,
    slowest: Vec<SlowSite>,
    /// Background tasks that fail, of all programs.
    failing_tasks: Vec<FailingTask>,
}

/// A failing site, with the host that failed in the last visit if its name differs from that of the site.
#[derive(Debug, Serialize)]
struct Failing {
    #[serde(flatten)]
    site: FailingSite,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<Host>,
}

/// Shows the state of the crawl. The text names the database, because an environment variable may have set it unnoticed.
pub(super) async fn run(store: &Store, database: &DatabaseUrl, format: OutputFormat) -> anyhow::Result<()> {
    let now = clock::now();
    let stats = store.stats(now).await?;
    // reads one more than is shown, to know whether there are more
    let failing = store.sites_failing(SITES_MAX + 1).await?;
    let report = Status {
        lag_seconds: lag(&stats, now).as_secs(),
        next_due_at: store.next_due_at().await?,
        stats,
        workers: store.workers_list(now, WORKERS_MAX).await?,
        has_more_failing: failing.len() > SITES_MAX as usize,
        failing: with_hosts(store, failing).await?,
        slowest: store.sites_slowest(now - TimeDelta::days(1), SITES_MAX).await?,
        failing_tasks: store.tasks_failing(TASKS_MAX).await?,
    };
    if format == OutputFormat::Json {
        return Ok(output::json(&report)?);
    }
    output::line(&format!("Database: {database}"))?;
    for line in lines(&report) {
        output::line(&line)?;
    }
    for (site, at, reason) in store.parked_idle_list(now, PARKED_MAX).await? {
        output::line(&format!("Parked: {site} until {}: {reason}", at.format("%Y-%m-%d %H:%M:%S UTC")))?;
    }
    Ok(())
}

/// The failing sites that are shown, each with its host.
async fn with_hosts(store: &Store, failing: Vec<FailingSite>) -> anyhow::Result<Vec<Failing>> {
    let mut named = Vec::new();
    for site in failing.into_iter().take(SITES_MAX as usize) {
        let report = store.site_report(&site.site, 1).await?;
        let visit = report.as_ref().and_then(|report| report.visits.first());
        let host = visit.and_then(|visit| SiteAndHost::of_report(&site.site, visit).host);
        named.push(Failing { site, host });
    }
    Ok(named)
}

/// The manifests that were read, as pages count them, and the documents that could not be read as one.
fn manifests_line(stats: &Stats) -> String {
    let unreadable = stats.manifests_by_format.iter().find(|(format, _)| *format == Format::Malformed);
    let unreadable = unreadable.map_or(0, |(_, count)| *count);
    let unread = if unreadable == 0 { String::new() } else { format!(", {unreadable} unreadable") };
    format!(
        "Manifests: {} with {}{unread}, in {}",
        stats.manifests.saturating_sub(unreadable),
        plural(stats.capabilities, "capability", "capabilities"),
        counted(stats.documents, "document")
    )
}

/// Time since the oldest due visit became due.
fn lag(stats: &Stats, now: DateTime<Utc>) -> Duration {
    stats.oldest_due_at.map(|due| (now - due).to_std().unwrap_or_default()).unwrap_or_default()
}

fn lines(report: &Status) -> Vec<String> {
    let stats = &report.stats;
    let listed = |counts: Vec<String>| if counts.is_empty() { "none".to_owned() } else { counts.join(", ") };
    let formats = stats.manifests_by_format.iter().map(|(format, count)| format_counted(*format, *count));
    let ends = stats.ends_last_day.iter().map(|(end, count)| format!("{count} {}", end.label()));
    let outcomes = outcomes_in_words(stats.outcomes_last_day.iter().copied());
    let suspended = stats.sites_by_status.iter().find(|(status, _)| *status == SiteStatus::Suspended);
    let suspended = suspended.map_or(0, |(_, count)| *count);
    let mut lines = vec![
        format!(
            "Sites: {} ({} due, {} being visited, {} blocked, {suspended} suspended{})",
            stats.sites,
            stats.sites_due,
            stats.sites_leased,
            stats.sites_blocked,
            match stats.sites_parked {
                0 => String::new(),
                // a site with a parked visit may be due as well
                1 => "; 1 visit of these sites is parked".to_owned(),
                parked => format!("; {parked} visits of these sites are parked"),
            }
        ),
        manifests_line(stats),
        format!("By format: {}", listed(formats.collect())),
        format!("Visits in the last day: {}", listed(ends.collect())),
        format!("Fetches in the last day: {}", listed(outcomes.requested)),
    ];
    if !outcomes.unrequested.is_empty() {
        lines.push(format!("Without a request: {}", outcomes.unrequested.join(", ")));
    }
    if report.lag_seconds > 0 {
        let late = in_words(Duration::from_secs(report.lag_seconds));
        lines.push(format!("The oldest visit has been due for {late}."));
    } else if let Some(at) = report.next_due_at {
        lines.push(format!("The next site is due at {}.", at.format("%Y-%m-%d %H:%M:%S UTC")));
    }
    lines.extend(report.failing_tasks.iter().map(failing_task));
    for load in &report.workers {
        let visits = format!("Worker: {}, visits {}", load.worker.in_words(), counted(load.sites, "site"));
        lines.push(match load.addresses_owned() {
            None => visits,
            Some(addresses) => format!("{visits}, owns {addresses}"),
        });
    }
    for Failing { site: failing, host } in &report.failing {
        let end = failing.last_end.map(policy::VisitEnd::description).unwrap_or_default();
        let FailingSite { site, failures_in_row, .. } = failing;
        let site = SiteAndHost { site: site.clone(), host: host.clone() };
        let times = match *failures_in_row {
            1 => String::new(),
            times => format!(", {times} times in a row"),
        };
        lines.push(format!("Failing: {site}{times}: {end}"));
    }
    if report.has_more_failing {
        lines.push(format!("Failing: more than these {SITES_MAX}, which failed most often"));
    }
    for SlowSite { site, first_byte_ms } in &report.slowest {
        let first_byte = Duration::from_millis((*first_byte_ms).into());
        if first_byte >= SLOW_MIN {
            lines.push(format!("Slow: {site}, {} to the first byte", in_words(first_byte)));
        }
    }
    lines
}

fn failing_task(failing: &FailingTask) -> String {
    let FailingTask { task, machine, since, last_at, failures, reason } = failing;
    let at = |time: &DateTime<Utc>| time.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    let times = match failures {
        1 => format!("at {}", at(since)),
        times => format!("{times} times since {}, last at {}", at(since), at(last_at)),
    };
    format!("Task failing: {} on {machine}, {times}: {reason}", task.label())
}

#[cfg(test)]
mod tests {
    use policy::{FetchOutcome, VisitEnd};
    use store::WorkerId;

    use super::*;

    #[test]
    fn reports_the_lag_of_due_visits() {
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let due = |at| Stats { oldest_due_at: Some(at), ..Stats::default() };
        assert_eq!(lag(&due(now - TimeDelta::hours(2)), now), Duration::from_hours(2));
        assert_eq!(lag(&due(now + TimeDelta::hours(2)), now), Duration::ZERO);
        assert_eq!(lag(&Stats::default(), now), Duration::ZERO);
        let workers = vec![WorkerLoad { worker: WorkerId::new("here/1"), sites: 1, groups: 1_024 }];
        let stats = Stats {
            ends_last_day: vec![(VisitEnd::DnsDead, 2)],
            outcomes_last_day: vec![(FetchOutcome::NotFound, 7), (FetchOutcome::DnsFailed, 2)],
            manifests: 38,
            manifests_by_format: vec![(Format::Awp, 37), (Format::Malformed, 1)],
            documents: 60,
            ..Stats::default()
        };
        let late = Status { lag_seconds: 7_200, workers, stats, ..status() };
        let late = lines(&late);
        let worker = "Worker: process 1 on here, visits 1 site, owns 25 % of the addresses";
        for line in [
            worker,
            "Visits in the last day: 2 with an unknown name",
            "Manifests: 37 with 0 capabilities, 1 unreadable, in 60 documents",
            "Fetches in the last day: 7 not there",
            "Without a request: 2 names not resolved",
        ] {
            assert!(late.iter().any(|shown| shown == line), "{late:?}");
        }
        assert!(
            late.iter().any(|line| line.starts_with("The oldest visit has been due for 2 h")),
            "{late:?}"
        );
    }

    fn status() -> Status {
        Status {
            stats: Stats::default(),
            lag_seconds: 0,
            next_due_at: None,
            workers: Vec::new(),
            failing: Vec::new(),
            has_more_failing: false,
            slowest: Vec::new(),
            failing_tasks: Vec::new(),
        }
    }

    #[test]
    fn shows_only_sites_whose_response_time_lengthens_their_delay() {
        let slow = |name: &str, first_byte_ms| SlowSite {
            site: manifest::SiteName::parse(name).unwrap(),
            first_byte_ms,
        };
        let slowest = vec![slow("slow.example", 1_500), slow("quick.example", 2)];
        let shown = lines(&Status { slowest, ..status() });
        assert!(shown.iter().any(|line| line == "Slow: slow.example, 1.5 s to the first byte"), "{shown:?}");
        assert!(!shown.iter().any(|line| line.contains("quick.example")), "{shown:?}");
    }

    #[test]
    fn reports_that_more_sites_fail_than_are_shown() {
        let failing = |name: &str, failures_in_row| Failing {
            site: FailingSite {
                site: manifest::SiteName::parse(name).unwrap(),
                failures_in_row,
                last_end: Some(VisitEnd::Unreachable),
            },
            host: Host::parse("wwww.b.example").ok().filter(|_| name == "b.example"),
        };
        let stats =
            Stats { sites_by_status: vec![(SiteStatus::Suspended, 3)], sites_parked: 1, ..Stats::default() };
        let failing = vec![failing("a.example", 4), failing("b.example", 1)];
        let shown = lines(&Status { stats, failing, has_more_failing: true, ..status() });
        for line in [
            "Sites: 0 (0 due, 0 being visited, 0 blocked, 3 suspended; 1 visit of these sites is parked)",
            "Failing: a.example, 4 times in a row: no connection to any address",
            "Failing: wwww.b.example of the site b.example: no connection to any address",
            "Failing: more than these 10, which failed most often",
        ] {
            assert!(shown.iter().any(|shown| shown == line), "{line} is not in {shown:?}");
        }
    }

    #[test]
    fn shows_the_tasks_that_fail() {
        let at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let failing = |failures| FailingTask {
            task: store::BackgroundTask::PublishSnapshots,
            machine: "vm".to_owned(),
            since: at,
            last_at: at + TimeDelta::hours(2),
            failures,
            reason: "the directory is full; free some space".to_owned(),
        };
        let shown = lines(&Status { failing_tasks: vec![failing(1), failing(7)], ..status() });
        for line in [
            "Task failing: publishing snapshots on vm, at 2024-10-04 00:00:00 UTC: the directory is full; free some space",
            "Task failing: publishing snapshots on vm, 7 times since 2024-10-04 00:00:00 UTC, last at 2024-10-04 02:00:00 UTC: the directory is full; free some space",
        ] {
            assert!(shown.iter().any(|shown| shown == line), "{line} is not in {shown:?}");
        }
    }

    #[test]
    fn reports_the_next_due_time_if_no_site_is_due() {
        let at = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let next = "The next site is due at 2024-10-04 00:00:00 UTC.";
        let shown = |lag_seconds| lines(&Status { lag_seconds, next_due_at: Some(at), ..status() });
        assert!(shown(0).iter().any(|line| line == next), "{:?}", shown(0));
        assert!(!shown(5).iter().any(|line| line == next), "{:?}", shown(5));
    }
}
