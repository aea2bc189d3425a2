//! Registers the index as a reader of the change feed, so that retention keeps the entries that it has not read.

use std::path::{Path, absolute};

use chrono::{DateTime, Utc};
use store::{FeedPosition, Store};

/// A unique name: the host and the directory of the index.
pub(crate) fn name(dir: &Path) -> String {
    let dir = absolute(dir).unwrap_or_else(|_| dir.to_owned());
    format!("indexer {} {}", store::machine(), dir.display())
}

/// Saves the position. Fails on a read-only database replica; its readers are not registered and rebuild the index if entries are missing.
pub(crate) async fn register(store: &Store, name: &str, position: FeedPosition) {
    if let Err(error) = store.feed_reader_save(name, position, now()).await {
        tracing::debug!(%error, reader = name, "cannot register the reader");
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn now() -> DateTime<Utc> {
    Utc::now()
}
