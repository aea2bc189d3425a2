//! Metrics for Prometheus. Every label value comes from a closed set: a slug of an enum of `policy`, or a platform of its table.
//!
//! Without `--metrics`, every call here does nothing.

use std::net::SocketAddr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use policy::delay::Scope;
use policy::liveness::HostCheckOutcome;
use policy::{FetchOutcome, VisitEnd};
use runtime::MetricsError;
use store::VisitSaved;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::summary::VisitCounts;

const VISITS: &str = "agentdex_crawler_visits_total";
const FETCHES: &str = "agentdex_crawler_fetches_total";
const REQUESTS: &str = "agentdex_crawler_requests_total";
const BYTES_IN: &str = "agentdex_crawler_received_bytes_total";
const MANIFESTS: &str = "agentdex_crawler_manifests_total";
const LINKS_REFUSED: &str = "agentdex_crawler_links_refused_total";
const PARKED: &str = "agentdex_crawler_visits_parked_total";
const LEASES_LOST: &str = "agentdex_crawler_leases_lost_total";
const HANDED_OVER: &str = "agentdex_crawler_visits_handed_over_total";
const MEMBERSHIPS_LOST: &str = "agentdex_crawler_memberships_lost_total";
const GROUPS: &str = "agentdex_crawler_address_groups";
const OWN_FAILURES: &str = "agentdex_crawler_own_failures_total";
const DATABASE_WAITS: &str = "agentdex_crawler_database_waits_total";
const DELIVERIES: &str = "agentdex_crawler_deliveries_total";
const HOST_CHECKS: &str = "agentdex_crawler_host_checks_total";
const COPIES_USED: &str = "agentdex_crawler_copies_used_total";
const WAIT_SECONDS: &str = "agentdex_crawler_wait_seconds";
const REQUEST_SECONDS: &str = "agentdex_crawler_request_seconds";
const OPEN_VISITS: &str = "agentdex_crawler_open_visits";
const PARKED_VISITS: &str = "agentdex_crawler_parked_visits";
const LAG_SECONDS: &str = "agentdex_crawler_lag_seconds";
const PLATFORM_RATE: &str = "agentdex_crawler_platform_requests_per_second";
const OPEN_FILES: &str = "agentdex_crawler_open_files";
const RESIDENT_BYTES: &str = "agentdex_crawler_resident_bytes";
/// Upper bounds in seconds: they include typical gaps, slow servers, and the limits of each phase.
const BUCKETS: [f64; 12] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0];
/// Bytes of a memory page, in which `/proc/self/statm` counts. This is the default of all supported machines.
const PAGE_BYTES: u64 = 4_096;

/// Serves the metrics under `/metrics` on an address, until the crawl ends.
pub(crate) fn serve(
    address: SocketAddr,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Result<(), MetricsError> {
    runtime::serve_metrics(address, &BUCKETS, tracker, stop)?;
    describe();
    begin();
    Ok(())
}

fn describe() {
    describe_counter!(VISITS, "visits saved, by how they ended");
    describe_counter!(FETCHES, "fetches saved, by outcome");
    describe_counter!(REQUESTS, "requests of visits that were saved");
    describe_counter!(BYTES_IN, Unit::Bytes, "bytes of bodies received, as encoded");
    describe_counter!(MANIFESTS, "manifests that were added, changed or removed");
    describe_counter!(LINKS_REFUSED, "links to other sites that were not added because a limit was reached");
    describe_counter!(PARKED, "visits parked, by scope");
    describe_counter!(LEASES_LOST, "visits that another worker took over");
    describe_counter!(HANDED_OVER, "visits handed over to the worker that owns their next address");
    describe_counter!(MEMBERSHIPS_LOST, "times that the fleet declared this worker dead");
    describe_gauge!(GROUPS, "address groups that this worker of a fleet owns");
    describe_counter!(OWN_FAILURES, "visits that failed because of an error in this crawler");
    describe_counter!(DATABASE_WAITS, "attempts that found the database unavailable");
    describe_counter!(DELIVERIES, "attempts to send a message to a webhook, by outcome");
    describe_counter!(HOST_CHECKS, "daily checks of hosts of endpoints, by outcome");
    describe_counter!(COPIES_USED, "requests that were avoided or shortened by a stored copy");
    describe_histogram!(WAIT_SECONDS, Unit::Seconds, "waits for a permit, by scope");
    describe_histogram!(
        REQUEST_SECONDS,
        Unit::Seconds,
        "time from sending a request to the end of its response"
    );
    describe_gauge!(OPEN_VISITS, "visits in progress");
    describe_gauge!(PARKED_VISITS, "parked visits that this process knows of");
    describe_gauge!(LAG_SECONDS, Unit::Seconds, "time since the oldest due visit became due");
    describe_gauge!(PLATFORM_RATE, "requests per second to a shared platform");
    describe_gauge!(OPEN_FILES, "file descriptors of the process");
    describe_gauge!(RESIDENT_BYTES, Unit::Bytes, "resident memory of the process");
}

pub(crate) fn visit_saved(visit: &VisitCounts, saved: &VisitSaved) {
    counter!(VISITS, "end" => visit.end.as_str()).increment(1);
    counter!(REQUESTS).increment(visit.requests.into());
    counter!(BYTES_IN).increment(visit.bytes_in);
    for outcome in &visit.outcomes {
        counter!(FETCHES, "outcome" => outcome.as_str()).increment(1);
        match outcome {
            FetchOutcome::Fresh => copy_used("fresh"),
            FetchOutcome::NotModified => copy_used("not_modified"),
            _ => {}
        }
    }
    counter!(LINKS_REFUSED).increment(saved.links_refused);
    for (change, count) in [
        ("added", saved.manifests_added),
        ("changed", saved.manifests_changed),
        ("removed", saved.manifests_removed),
    ] {
        counter!(MANIFESTS, "change" => change).increment(count.into());
    }
}

pub(crate) fn visit_parked(scope: Option<Scope>) {
    counter!(PARKED, "scope" => scope.map_or("none", Scope::as_str)).increment(1);
}

pub(crate) fn lease_lost() {
    counter!(LEASES_LOST).increment(1);
}

pub(crate) fn visit_handed_over() {
    counter!(HANDED_OVER).increment(1);
}

pub(crate) fn membership_lost() {
    counter!(MEMBERSHIPS_LOST).increment(1);
}

pub(crate) fn groups_owned(count: usize) {
    gauge!(GROUPS).set(number(count));
}

pub(crate) fn own_failure() {
    counter!(OWN_FAILURES).increment(1);
}

pub(crate) fn database_wait() {
    counter!(DATABASE_WAITS).increment(1);
}

/// `outcome` is one of the constants of the deliveries.
pub(crate) fn delivery(outcome: &'static str) {
    counter!(DELIVERIES, "outcome" => outcome).increment(1);
}

pub(crate) fn host_checked(outcome: HostCheckOutcome) {
    counter!(HOST_CHECKS, "outcome" => outcome.as_str()).increment(1);
}

/// `kind` is a constant of the caller, never text of a site.
pub(crate) fn copy_used(kind: &'static str) {
    counter!(COPIES_USED, "kind" => kind).increment(1);
}

pub(crate) fn waited(scope: Scope, wait: Duration) {
    histogram!(WAIT_SECONDS, "scope" => scope.as_str()).record(wait.as_secs_f64());
}

pub(crate) fn answered(took: Duration) {
    histogram!(REQUEST_SECONDS).record(took.as_secs_f64());
}

pub(crate) fn platform_rate(platform: &'static str, gap: Duration) {
    gauge!(PLATFORM_RATE, "platform" => platform).set(1.0 / gap.as_secs_f64());
}

/// The state of the queue and of the process, updated at every heartbeat.
pub(crate) fn state(open: usize, parked: usize, oldest_due_at: Option<DateTime<Utc>>, now: DateTime<Utc>) {
    let lag = oldest_due_at.map(|at| (now - at).to_std().unwrap_or_default()).unwrap_or_default();
    gauge!(LAG_SECONDS).set(lag.as_secs_f64());
    gauge!(OPEN_VISITS).set(number(open));
    gauge!(PARKED_VISITS).set(number(parked));
    if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
        gauge!(OPEN_FILES).set(number(files.count()));
    }
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    if let Some(pages) = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()) {
        gauge!(RESIDENT_BYTES).set(number(usize::try_from(pages * PAGE_BYTES).unwrap_or(usize::MAX)));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; counts of this size are exact enough")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Counters start at zero, so that the first event shows as an increase.
fn begin() {
    for end in VisitEnd::ALL {
        counter!(VISITS, "end" => end.as_str()).increment(0);
    }
    counter!(LEASES_LOST).increment(0);
    counter!(HANDED_OVER).increment(0);
    counter!(MEMBERSHIPS_LOST).increment(0);
    counter!(OWN_FAILURES).increment(0);
    counter!(LINKS_REFUSED).increment(0);
    counter!(DATABASE_WAITS).increment(0);
}
