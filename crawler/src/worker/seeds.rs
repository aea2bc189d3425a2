//! Sources of seeds that are read during the visits of a pass.

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Work, Worker};

impl Worker<'_> {
    /// Adds the sites that are due now to a pass, once all sources of seeds are read.
    pub(super) fn extend_pass(&mut self, work: &mut Work, now: DateTime<Utc>) {
        if self.seeds_under_way.take_if(|read| read.is_cancelled()).is_none() {
            return;
        }
        work.due_before = work.due_before.map(|_| now);
        work.next_poll_at = Instant::now();
        let (store, visited) = (self.tools.store.clone(), self.summary.sites_visited);
        work.count.spawn(async move { store.sites_due(now).await.ok().map(|due| due + visited) });
    }
}

/// Waits until a token is cancelled; without one, forever.
pub(super) async fn ended(token: Option<&CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}
