//! A crawl of many sites over simulated days. The store, the schedule and the database are real; the clock and the responses of the sites
//! are generated, so that a month takes minutes.
//!
//! All sites are seeded at the beginning. Each simulated hour leases and saves at most `sites / (24 × days of the pass)` visits, so the
//! first pass takes that many days, and visits that fall due later compete with it. The database sees the writes of a month within minutes:
//! vacuum has far less time than in operation.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use manifest::SiteName;
use policy::schedule::{self, ManifestPresence, SiteHistory};
use policy::{FetchOutcome, Seed, VisitEnd};
use serde_json::json;
use store::{DatabaseUrl, LeaseRequest, LeasedSite, NextVisit, Store, StoreConfig, VisitRecord, WorkerId};

use crate::by_hand::Hand;
use crate::visits::{Finding, start, visit};
use crate::{WORKERS, bytes, clock, rate, seed};

/// Visits saved by one transaction, as in a busy crawl.
const TOGETHER: usize = 64;
/// Requests of the first visit to a site without a manifest, of the first visit to one with a manifest, and of a later visit
/// (docs/BENCHMARKS.md, *Requests of a visit*).
const REQUESTS: [usize; 3] = [10, 20, 4];
/// One site in this many has a manifest.
const WITH_MANIFEST_ONE_IN: u64 = 100;
/// Sites without a DNS name, in percent.
const DEAD_PERCENT: u64 = 16;
/// A manifest changes at one visit in this many.
const CHANGED_ONE_IN: u64 = 10;

/// The size of a simulation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simulation {
    pub(crate) sites: usize,
    /// Days in which every site is visited once.
    pub(crate) pass_days: u32,
    /// All days.
    pub(crate) days: u32,
}

/// What happened in one simulated day.
#[derive(Debug, Default)]
struct Day {
    visits: u64,
    first_visits: u64,
    /// Visits that found a manifest, changed or not.
    with_manifest: u64,
    /// Greatest time between the planned and the actual time of a visit that is not the first one.
    lag: TimeDelta,
}

impl Day {
    fn add(&mut self, other: &Self) {
        self.visits += other.visits;
        self.first_visits += other.first_visits;
        self.with_manifest += other.with_manifest;
        self.lag = self.lag.max(other.lag);
    }
}

/// Runs a simulation, and prints one JSON object per day.
pub(crate) async fn simulate(url: DatabaseUrl, simulation: Simulation) {
    let store = Store::open(&StoreConfig::new(url.clone())).await.unwrap();
    let mut hand = Hand::open(&url).await;
    let seeds_per_s = seed(&store, simulation.sites).await;
    println!(
        "{}",
        json!({"seeded": simulation.sites, "seeds_per_s": seeds_per_s, "bytes": bytes(&store).await})
    );
    let hourly = simulation.sites.div_ceil(24 * simulation.pass_days as usize);
    for day in 0..simulation.days {
        let began = clock();
        let mut done = Day::default();
        for hour in 0..24 {
            let now = start() + TimeDelta::days(i64::from(day)) + TimeDelta::hours(hour + 1);
            done.add(&visit_due(&store, hourly, now).await);
        }
        let visiting = began.elapsed();
        let visits_per_s = rate(done.visits, began);
        let began = clock();
        let now = start() + TimeDelta::days(i64::from(day) + 1);
        let compacted = store.housekeeping(now).await.unwrap().sites_compacted;
        report(&store, &mut hand, (day + 1, &done), (visiting, visits_per_s), (compacted, began.elapsed()))
            .await;
    }
    store.close().await;
}

async fn report(
    store: &Store,
    hand: &mut Hand,
    (day, done): (u32, &Day),
    (visiting, visits_per_s): (Duration, u64),
    (compacted, housekeeping): (u64, Duration),
) {
    let spaces = store.space().await.unwrap();
    let site = spaces.iter().find(|space| space.name == "site" || space.name.starts_with("site_p"));
    let dead_rows: u64 = spaces.iter().filter_map(|space| space.dead_rows).sum();
    let vacuums = match hand {
        Hand::Postgres(_) => {
            let sum = "SELECT CAST(SUM(autovacuum_count) AS TEXT) FROM pg_stat_user_tables";
            hand.lines(sum.to_owned()).await.pop()
        }
        Hand::Sqlite(_) => None,
    };
    println!(
        "{}",
        json!({
            "day": day, "visits": done.visits, "first_visits": done.first_visits, "with_manifest": done.with_manifest,
            "visits_per_s": visits_per_s, "seconds": visiting.as_secs_f64(), "lag_minutes": done.lag.num_minutes(),
            "sites_compacted": compacted, "housekeeping_seconds": housekeeping.as_secs_f64(),
            "bytes": bytes(store).await, "bytes_of_site": site.map(|space| space.bytes), "dead_rows": dead_rows,
            "autovacuums": vacuums, "feed": store.feed_head().await.unwrap().0,
        })
    );
}

/// Leases due sites and saves their visits, with several workers at once.
async fn visit_due(store: &Store, at_most: usize, now: DateTime<Utc>) -> Day {
    let mut workers = tokio::task::JoinSet::new();
    for worker in 0..WORKERS {
        let store = store.clone();
        let mut left = at_most.div_ceil(WORKERS);
        workers.spawn(async move {
            let mut done = Day::default();
            while left > 0 {
                let id = WorkerId::new(&format!("worker{worker}"));
                let request = LeaseRequest::due_now(id, u32::try_from(left.min(TOGETHER)).unwrap(), now);
                let leased = store.sites_lease(&request, now).await.unwrap();
                if leased.is_empty() {
                    break;
                }
                left -= leased.len().min(left);
                save(&store, &leased, now, &mut done).await;
            }
            done
        });
    }
    let mut done = Day::default();
    for of_worker in workers.join_all().await {
        done.add(&of_worker);
    }
    done
}

async fn save(store: &Store, leased: &[LeasedSite], now: DateTime<Utc>, done: &mut Day) {
    let visits: Vec<VisitRecord> = leased.iter().map(|leased| visit_at(leased, now)).collect();
    let batch: Vec<_> = leased.iter().map(|leased| &leased.token).zip(&visits).collect();
    for saved in store.visits_save(&batch).await.unwrap() {
        saved.unwrap();
    }
    for (leased, visit) in leased.iter().zip(&visits) {
        done.visits += 1;
        if leased.site.visits == 0 {
            done.first_visits += 1;
        } else {
            done.lag = done.lag.max(now - leased.token.due_at);
        }
        let is_found = |outcome| matches!(outcome, FetchOutcome::Found | FetchOutcome::NotModified);
        done.with_manifest += u64::from(visit.fetches.iter().any(|fetch| is_found(fetch.outcome)));
    }
}

/// What a site responds; its name decides.
fn finding(site: &SiteName) -> Option<Finding> {
    let seed = Seed::of(site.as_str());
    if seed.below(100) < DEAD_PERCENT {
        return None;
    }
    let has_manifest = seed.with_counter(1).below(WITH_MANIFEST_ONE_IN) == 0;
    Some(if has_manifest { Finding::Manifest } else { Finding::Nothing })
}

/// The visit of a leased site, planned as the crawler plans it.
fn visit_at(leased: &LeasedSite, now: DateTime<Utc>) -> VisitRecord {
    let site = &leased.site;
    let finding = finding(&site.name);
    let is_first = site.visits == 0;
    let mut record = visit(&site.name, finding.unwrap_or(Finding::Nothing));
    record.fetches.truncate(match (finding, is_first) {
        (None, _) => 0,
        (Some(_), false) => REQUESTS[2],
        (Some(Finding::Nothing), true) => REQUESTS[0],
        (Some(Finding::Manifest), true) => REQUESTS[1],
    });
    let changes =
        Seed::of(site.name.as_str()).with_counter(u64::from(site.visits)).below(CHANGED_ONE_IN) == 0;
    let is_changed = finding == Some(Finding::Manifest) && (is_first || changes);
    for fetch in &mut record.fetches {
        fetch.at = now;
        if fetch.outcome == FetchOutcome::Found && !is_changed {
            (fetch.outcome, fetch.status, fetch.body, fetch.manifest) =
                (FetchOutcome::NotModified, Some(304), None, None);
        } else if let (Some(manifest), false) = (&mut fetch.manifest, is_first) {
            let body = format!("{{\"awp_version\": \"0.1\", \"visit\": {}}}", site.visits).into_bytes();
            manifest.content_hash = manifest::ContentHash::of(&body);
            (fetch.content_hash, fetch.body) = (Some(manifest.content_hash.clone()), Some(body));
        }
    }
    if finding.is_none() {
        record.robots.clear();
    }
    for robots in &mut record.robots {
        (robots.fetched_at, robots.expires_at) = (now, now + TimeDelta::days(1));
    }
    let end = if finding.is_some() { VisitEnd::Completed } else { VisitEnd::DnsDead };
    let is_positive = finding == Some(Finding::Manifest);
    let history = SiteHistory {
        visits: site.visits + 1,
        changes: site.changes + u32::from(is_changed),
        first_visit_at: site.first_visit_at,
        previous_visit_at: site.last_visit_at,
        failures_in_row: if finding.is_none() { site.failures_in_row + 1 } else { 0 },
        negatives_in_row: if finding == Some(Finding::Nothing) { site.negatives_in_row + 1 } else { 0 },
        ..SiteHistory::first(
            end,
            if is_positive { ManifestPresence::Present } else { ManifestPresence::Absent },
        )
    };
    let next = schedule::next_visit(&history, None, Seed::of(site.name.as_str()), now);
    let requests = u32::try_from(record.fetches.len() + record.robots.len()).unwrap();
    VisitRecord {
        started_at: now,
        ended_at: now + TimeDelta::seconds(i64::from(requests) * 3),
        end,
        status: schedule::status_after(&history, site.status),
        next_visit: NextVisit { at: next.at, reason: next.reason.as_str().into() },
        changed_any: is_changed,
        failures_in_row: history.failures_in_row,
        negatives_in_row: history.negatives_in_row,
        requests,
        ..record
    }
}
