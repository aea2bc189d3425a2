//! Writes clocks in batches, and asks in the same breath whether a site has opted out.
//!
//! Whatever gathers while one statement is on its way goes into the next, so a slow database makes larger batches and a
//! fast one adds no delay. While the database is away the batch is tried again, and the requests behind it wait.

use manifest::SiteName;
use store::{ClockWrite, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::patience::patiently;

/// Clocks written by one statement.
const BATCH_MAX: usize = 500;

/// Whether the request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleared {
    Go,
    /// The owner asked to be left out.
    OptedOut,
}

struct Waiting {
    write: ClockWrite,
    done: oneshot::Sender<Result<Cleared, StoreError>>,
}

/// Hands clocks to the task that writes them.
pub(super) struct ClockWriter(mpsc::Sender<Waiting>);

impl ClockWriter {
    pub(super) fn start(store: Store, tracker: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH_MAX);
        tracker.spawn(write_all(store, receiver));
        Self(sender)
    }

    /// Returns when the clock is written.
    pub(super) async fn write(&self, write: ClockWrite) -> Result<Cleared, StoreError> {
        let (done, written) = oneshot::channel();
        let gone = || StoreError::Unstorable { what: "clock", reason: "the crawler is stopping".to_owned() };
        self.0.send(Waiting { write, done }).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

async fn write_all(store: Store, mut receiver: mpsc::Receiver<Waiting>) {
    let mut batch = Vec::new();
    while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
        let (writes, waiting): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|waiting| (waiting.write, waiting.done)).unzip();
        match write_batch(&store, &writes).await {
            Ok(blocked) => {
                for (write, done) in writes.iter().zip(waiting) {
                    let is_blocked = blocked.contains(&write.host.site());
                    // a visit that was cancelled no longer listens
                    drop(done.send(Ok(if is_blocked { Cleared::OptedOut } else { Cleared::Go })));
                }
            }
            Err(error) => {
                let reason = error.to_string();
                for done in waiting {
                    let error = StoreError::Unstorable { what: "clock", reason: reason.clone() };
                    drop(done.send(Err(error)));
                }
            }
        }
    }
}

/// Writes the batch, however long the database is away, and returns the sites that opted out.
async fn write_batch(store: &Store, writes: &[ClockWrite]) -> Result<Vec<SiteName>, StoreError> {
    let mut sites: Vec<SiteName> = writes.iter().map(|write| write.host.site()).collect();
    sites.sort_unstable();
    sites.dedup();
    patiently("requests to be sent", || async {
        store.clocks_save(writes).await?;
        store.blocked_among(&sites).await
    })
    .await
}
