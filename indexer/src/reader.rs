//! The index as a registered reader of the change feed: retention does not cut the feed before it.

use std::path::{Path, absolute};

use chrono::{DateTime, Utc};
use store::{FeedPosition, Store};

/// Names this index among the readers of a fleet: its host and its folder.
pub(crate) fn name(dir: &Path) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "host" } else { host.trim() };
    let dir = absolute(dir).unwrap_or_else(|_| dir.to_owned());
    format!("indexer {host} {}", dir.display())
}

/// Says how far the index has come. A replica takes no writes, so its readers are not registered; they notice by
/// themselves when the feed was cut behind them.
pub(crate) async fn register(store: &Store, name: &str, position: FeedPosition) {
    if let Err(error) = store.feed_reader_save(name, position, now()).await {
        tracing::debug!(%error, reader = name, "the reader is not registered");
    }
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program, where time comes in")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
