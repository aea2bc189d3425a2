//! Prometheus metrics of the indexer, without labels.
//!
//! Without a recorder, these functions do nothing. `indexer --metrics` installs a recorder, and so does the API in `agentdex`.

use std::net::SocketAddr;
use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use runtime::MetricsError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const COMMIT_SECONDS: &str = "agentdex_indexer_commit_seconds";
const DOCUMENTS: &str = "agentdex_indexer_documents";
const FEED_LAG: &str = "agentdex_indexer_feed_lag";
const DATABASE_WAITS: &str = "agentdex_indexer_database_waits_total";
const VECTORS: &str = "agentdex_indexer_vectors";
const VECTORS_MISSING: &str = "agentdex_indexer_vectors_missing";
/// Histogram buckets in seconds: from commits of a few changes to commits of tens of thousands of capabilities.
const BUCKETS: [f64; 10] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// Serves the metrics under `/metrics` on an address, until `stop`.
pub(crate) fn serve(
    address: SocketAddr,
    tracker: &TaskTracker,
    stop: CancellationToken,
) -> Result<(), MetricsError> {
    runtime::serve_metrics(address, &BUCKETS, tracker, stop)?;
    describe_histogram!(COMMIT_SECONDS, Unit::Seconds, "durations of commits");
    describe_gauge!(DOCUMENTS, "documents in the index after the last commit");
    describe_gauge!(FEED_LAG, "changes of the feed that the index does not have");
    describe_counter!(DATABASE_WAITS, "attempts that found the database unavailable");
    describe_gauge!(VECTORS, "vectors of texts, with --embedder");
    describe_gauge!(VECTORS_MISSING, "texts without a vector, with --embedder");
    // Counters start at zero, so that the first event shows as an increase.
    counter!(DATABASE_WAITS).increment(0);
    Ok(())
}

pub(crate) fn committed(took: Duration, documents: u64) {
    histogram!(COMMIT_SECONDS).record(took);
    gauge!(DOCUMENTS).set(number(documents));
}

pub(crate) fn feed_lag(changes: u64) {
    gauge!(FEED_LAG).set(number(changes));
}

pub(crate) fn database_wait() {
    counter!(DATABASE_WAITS).increment(1);
}

pub(crate) fn vectors(known: u64, missing: u64) {
    gauge!(VECTORS).set(number(known));
    gauge!(VECTORS_MISSING).set(number(missing));
}

#[expect(clippy::cast_precision_loss, reason = "gauges are floats; counts are far below 2^52")]
fn number(count: u64) -> f64 {
    count as f64
}
