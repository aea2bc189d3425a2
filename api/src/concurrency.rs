//! A concurrency limit for blocking work. Searches and pages each have their own limit.
//!
//! The work runs on the blocking pool and needs a permit. Waiting clients get permits in turn (see `fair_permits`); work that waits
//! for too long is rejected. Started work holds its permit until it ends, even if its client has disconnected. Documents of clients
//! are read elsewhere (see `document_readers`).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::client::Client;
use crate::fair_permits::{FairPermits, Permit};
use crate::problem::Problem;

/// Maximum wait for a permit. The work takes milliseconds, so a queue with a longer wait would only grow.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Concurrent pieces of work per core: two, so that one may wait for the disk.
const PER_CORE: usize = 2;

/// A permit in use; it is released before waiting clients are notified, also after a panic.
#[derive(Debug)]
struct RunningWork {
    permit: Option<Permit>,
    of: Arc<Shared>,
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.of.ended.notify_waiters();
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ConcurrencyLimit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    permits: FairPermits,
    /// Notified whenever work ends.
    ended: Notify,
}

impl ConcurrencyLimit {
    pub(crate) fn for_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::new(cores * PER_CORE)
    }

    pub(crate) fn new(permits: usize) -> Self {
        Self(Arc::new(Shared { permits: FairPermits::new(permits), ended: Notify::new() }))
    }

    /// Whether a permit is free, or some work ends within this time. True even if the queue is long.
    pub(crate) async fn make_progress(&self, within: Duration) -> bool {
        let ended = self.0.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        self.0.permits.free() > 0 || tokio::time::timeout(within, ended).await.is_ok()
    }

    #[cfg(test)]
    pub(crate) fn are_free(&self) -> bool {
        self.0.permits.free() > 0
    }

    /// Runs one piece of blocking work for a client.
    pub(crate) async fn run<T, F>(&self, client: Client, work: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let permit = tokio::time::timeout(WAIT_MAX, self.permit(client.address))
            .await
            .map_err(|_| Problem::unavailable("too many requests in progress; try again in a moment"))??;
        let running = RunningWork { permit: Some(permit), of: Arc::clone(&self.0) };
        let worked = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(running);
            result
        });
        worked.await.map_err(|error| Problem::internal(&error))
    }

    async fn permit(&self, client: IpAddr) -> Result<Permit, Problem> {
        self.0.permits.acquire(client, 1).await.map_err(|error| Problem::internal(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn client_with_many_waiting_searches_delays_another_by_one() {
        let permits = ConcurrencyLimit::new(1);
        let client = |number: u8| Client { address: [192, 0, 2, number].into(), is_local: false };
        let (end, ended) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut searches = JoinSet::new();
        let blocking = permits.clone();
        searches.spawn(async move { blocking.run(client(1), move || assert!(ended.recv().is_err())).await });
        while permits.are_free() {
            tokio::task::yield_now().await;
        }
        for number in std::iter::repeat_n(1, 20).chain([2]) {
            let (permits, order) = (permits.clone(), Arc::clone(&order));
            searches.spawn(async move {
                permits.run(client(number), move || order.lock().unwrap().push(number)).await
            });
            tokio::task::yield_now().await;
        }
        drop(end);
        while let Some(searched) = searches.join_next().await {
            searched.unwrap().unwrap();
        }
        let order = order.lock().unwrap();
        let at = order.iter().position(|number| *number == 2).unwrap();
        assert!(at <= 1, "{at} searches of the other client ran first");
        assert_eq!(order.len(), 21);
    }
}
