//! Prometheus metrics of the API.
//!
//! Labels have few values: the template of the route, the method, and the class of the status; never clients or queries. API keys are
//! labelled by the names that the operator gave them.

use std::sync::LazyLock;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use chrono::TimeDelta;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Bounds of the durations, in seconds: from a cached response to the deadline.
const SECONDS: [f64; 12] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 10.0];
const DURATION: &str = "agentdex_api_request_duration_seconds";
const PEER_DURATION: &str = "agentdex_api_peer_duration_seconds";

/// One recorder for all servers of this process.
static RECORDED: LazyLock<PrometheusHandle> = LazyLock::new(|| {
    let builder = PrometheusBuilder::new();
    let builder = builder
        .set_buckets_for_metric(Matcher::Suffix("_duration_seconds".to_owned()), &SECONDS)
        .unwrap_or_else(|_| PrometheusBuilder::new());
    let recorder = builder.build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!(
            "another part of this process already records metrics; the metrics of the API are not exported"
        );
    }
    handle
});

pub(crate) fn start() {
    LazyLock::force(&RECORDED);
}

pub(crate) fn rendered() -> String {
    RECORDED.render()
}

/// Bounds the memory of the histograms; called on a timer.
pub(crate) fn upkeep() {
    RECORDED.run_upkeep();
}

pub(crate) fn answered(route: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
    let route = route.unwrap_or("none").to_owned();
    let method = known(method);
    let class = match status.as_u16() {
        100..=199 => "1xx",
        200..=299 => "2xx",
        300..=399 => "3xx",
        400..=499 => "4xx",
        _ => "5xx",
    };
    let labels = [("route", route), ("method", method.to_owned()), ("status", class.to_owned())];
    counter!("agentdex_api_requests_total", &labels).increment(1);
    histogram!(DURATION, &labels).record(took.as_secs_f64());
}

pub(crate) fn requests_in_progress(count: usize) {
    #[expect(clippy::cast_precision_loss, reason = "at most a few thousand")]
    gauge!("agentdex_api_requests_under_way").set(count as f64);
}

/// Bytes of large responses and of bodies that are kept in memory for clients.
pub(crate) fn buffered(bytes: usize) {
    #[expect(clippy::cast_precision_loss, reason = "exact for any memory size")]
    gauge!("agentdex_api_buffered_bytes").set(bytes as f64);
}

/// Counts a disconnected client: `slow_reader` did not read its response, `slow_body` did not send its request, and `connections` and
/// `streams` had too many of these while few were free.
pub(crate) fn cut(reason: &'static str) {
    counter!("agentdex_api_cut_total", "reason" => reason).increment(1);
}

/// Counts a rejected request: because of a limit of the client (`rate`, `connections`, `requests`, `documents`, `bytes`), or because of the
/// load of the process (`load`).
pub(crate) fn rejected(reason: &'static str) {
    counter!("agentdex_api_turned_away_total", "reason" => reason).increment(1);
}

/// A request with an API key. Operators name the keys, and there are at most a thousand.
pub(crate) fn reader_request(reader: &str, is_within_limit: bool) {
    let outcome = if is_within_limit { "admitted" } else { "refused" };
    counter!("agentdex_api_reader_requests_total", "reader" => reader.to_owned(), "outcome" => outcome)
        .increment(1);
}

/// A peer that a search considered, by its host. Operators configure at most eight.
pub(crate) fn peer(host: &str, outcome: &'static str, took: Duration) {
    let labels = [("peer", host.to_owned()), ("outcome", outcome.to_owned())];
    counter!("agentdex_api_peer_requests_total", &labels).increment(1);
    if outcome != "skipped" {
        histogram!(PEER_DURATION, &labels).record(took.as_secs_f64());
    }
}

/// Changes that the index does not show yet.
pub(crate) fn index_behind(changes: i64) {
    #[expect(clippy::cast_precision_loss, reason = "exact for any feed")]
    gauge!("agentdex_api_index_changes_behind").set(changes as f64);
}

/// Age of the served snapshot, on a replica that fetches its index.
pub(crate) fn snapshot_age(age: TimeDelta) {
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    gauge!("agentdex_api_snapshot_age_seconds").set(age.num_seconds() as f64);
}

fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
