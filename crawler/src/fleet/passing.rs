//! Hands visits over to the workers that own their next addresses, many by one statement: in a first pass nearly every site
//! finds its owner that way.

use std::collections::HashSet;
use std::time::Duration;

use manifest::SiteName;
use store::{HandOver, LeaseToken, Store, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::patience::patiently;

/// Visits handed over by one statement.
const BATCH_MAX: usize = 500;
/// How long a batch gathers where the one before was of several visits; nobody waits for it.
const GATHER_TIME: Duration = Duration::from_millis(20);

struct Waiting {
    visit: (LeaseToken, HandOver),
    done: oneshot::Sender<Result<Passed, StoreError>>,
}

/// What became of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    On,
    /// The lease had been lost; nothing was written.
    Lost,
}

/// Hands visits to the task that hands them over; cheap to clone.
#[derive(Clone)]
pub(crate) struct Passing(mpsc::Sender<Waiting>);

impl Passing {
    pub(crate) fn start(store: Store, tracker: &TaskTracker) -> Self {
        let (sender, receiver) = mpsc::channel(BATCH_MAX);
        tracker.spawn(pass_all(store, receiver));
        Self(sender)
    }

    /// Returns when it is written, however long the database is away.
    pub(super) async fn pass(&self, token: LeaseToken, hand_over: HandOver) -> Result<Passed, StoreError> {
        let gone = || StoreError::Unstorable { what: "visit", reason: "the crawler is stopping".to_owned() };
        let (done, passed) = oneshot::channel();
        self.0.send(Waiting { visit: (token, hand_over), done }).await.map_err(|_| gone())?;
        passed.await.map_err(|_| gone())?
    }
}

async fn pass_all(store: Store, mut receiver: mpsc::Receiver<Waiting>) {
    let (mut batch, mut passed_last) = (Vec::new(), 0);
    while receiver.recv_many(&mut batch, BATCH_MAX).await > 0 {
        if passed_last > 1 {
            tokio::time::sleep(GATHER_TIME).await;
            while batch.len() < BATCH_MAX
                && let Ok(waiting) = receiver.try_recv()
            {
                batch.push(waiting);
            }
        }
        passed_last = batch.len();
        let (visits, mut waiting): (Vec<_>, Vec<_>) =
            batch.drain(..).map(|waiting| (waiting.visit, waiting.done)).unzip();
        let passed = tokio::select! {
            passed = patiently("visits to be handed over", || store.visits_hand_over(&visits)) => passed,
            () = all_dropped(&mut waiting) => continue,
        };
        tell(&visits, waiting, &passed);
    }
}

fn tell(
    visits: &[(LeaseToken, HandOver)],
    waiting: Vec<oneshot::Sender<Result<Passed, StoreError>>>,
    passed: &Result<HashSet<SiteName>, StoreError>,
) {
    for ((token, _), done) in visits.iter().zip(waiting) {
        let told = match passed {
            Ok(sites) if sites.contains(&token.site) => Ok(Passed::On),
            Ok(_) => Ok(Passed::Lost),
            Err(error) => Err(StoreError::Unstorable { what: "visit", reason: error.to_string() }),
        };
        // a visit that was dropped no longer listens
        drop(done.send(told));
    }
}

async fn all_dropped<T>(waiting: &mut [oneshot::Sender<T>]) {
    for done in waiting {
        done.closed().await;
    }
}
