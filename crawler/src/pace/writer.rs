//! Writes clocks in batches, and asks in the same breath whether a site has opted out.
//!
//! Whatever gathers while one statement is on its way goes into the next. While there is much to write, a batch also
//! gathers for a moment, which a gap of a second hides; a quiet crawler waits for nothing. While the database is away the
//! batch is tried again, and the requests behind it wait.

use std::collections::HashSet;
use std::time::Duration;

use chrono::TimeDelta;
use manifest::SiteName;
use store::{ClockWrite, MemberId, Membership, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::patience::patiently;

/// Clocks written by one statement.
const BATCH_MAX: usize = 500;
/// So many clocks at once are much to write.
const BATCH_BUSY: usize = 8;
/// How long a batch gathers then.
const GATHER_TIME: Duration = Duration::from_millis(20);

/// Whether the request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleared {
    Go,
    /// The owner asked to be left out.
    OptedOut,
    /// The address is another worker's now.
    Moved,
}

struct Waiting {
    write: ClockWrite,
    done: oneshot::Sender<Result<Cleared, StoreError>>,
}

/// Hands clocks to the task that writes them.
pub(super) struct ClockWriter(mpsc::Sender<Waiting>);

impl ClockWriter {
    /// `life` is how long a membership of the fleet lives from each clock on that is written under it.
    pub(super) fn start(store: Store, life: Duration, tracker: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH_MAX);
        tracker.spawn(write_all(store, life, receiver));
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

async fn write_all(store: Store, life: Duration, mut receiver: mpsc::Receiver<Waiting>) {
    let (mut batch, mut written) = (Vec::new(), 0);
    while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if written >= BATCH_BUSY {
            tokio::time::sleep(GATHER_TIME).await;
            while batch.len() < BATCH_MAX
                && let Ok(waiting) = receiver.try_recv()
            {
                batch.push(waiting);
            }
        }
        written = batch.len();
        let (writes, waiting): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|waiting| (waiting.write, waiting.done)).unzip();
        match write_batch(&store, life, &writes).await {
            Ok(refused) => {
                for (write, done) in writes.iter().zip(waiting) {
                    // a visit that was cancelled no longer listens
                    drop(done.send(Ok(refused.says_of(write))));
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

/// Whose requests of a batch may not be sent.
struct Refused {
    sites: Vec<SiteName>,
    members: HashSet<MemberId>,
}

impl Refused {
    fn says_of(&self, write: &ClockWrite) -> Cleared {
        if self.sites.contains(&write.host.site()) {
            Cleared::OptedOut
        } else if write.member.is_some_and(|membership| self.members.contains(&membership.member)) {
            Cleared::Moved
        } else {
            Cleared::Go
        }
    }
}

/// Writes the batch, however long the database is away.
async fn write_batch(store: &Store, life: Duration, writes: &[ClockWrite]) -> Result<Refused, StoreError> {
    let mut sites: Vec<SiteName> = writes.iter().map(|write| write.host.site()).collect();
    sites.sort_unstable();
    sites.dedup();
    patiently("requests to be sent", || async {
        // after an outage a membership is renewed from now on, not from before it
        let alive_until = clock::now() + TimeDelta::from_std(life).unwrap_or(TimeDelta::MAX);
        let renewed = |membership: Membership| Membership { alive_until, ..membership };
        let writes: Vec<ClockWrite> = writes
            .iter()
            .map(|write| ClockWrite { member: write.member.map(renewed), ..write.clone() })
            .collect();
        let members = store.clocks_save(&writes).await?;
        Ok(Refused { members, sites: store.blocked_among(&sites).await? })
    })
    .await
}
