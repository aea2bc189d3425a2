//! Saves visits that end together in one transaction.
//!
//! Whatever gathers while transactions are on their way goes into the next. While visits end one after the other, a
//! transaction also gathers for a moment: nobody waits for it, and many rows cost a database little more than one.

use std::sync::Arc;
use std::time::Duration;

use store::{Backend, LeaseToken, Store, StoreError, VisitRecord, VisitSaved};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::patience::patiently;

/// Visits saved by one transaction. More would keep rows locked for longer and gain little on a server; an embedded database
/// is locked whole, and clocks take their turns between transactions, so that small ones would fall behind.
const BATCH_MAX: usize = 16;
const BATCH_MAX_EMBEDDED: usize = 128;
/// How long a batch gathers where the one before was of several visits.
const GATHER_TIME: Duration = Duration::from_millis(20);
/// Transactions at the same time on a server; an embedded database takes one at a time.
const WRITERS: usize = 4;

struct Waiting {
    visit: Arc<(LeaseToken, VisitRecord)>,
    done: oneshot::Sender<Result<VisitSaved, StoreError>>,
}

/// Hands visits to the task that saves them; cheap to clone.
#[derive(Clone)]
pub(crate) struct VisitWriter {
    sender: mpsc::Sender<Waiting>,
    store: Store,
}

impl VisitWriter {
    pub(crate) fn start(store: Store, tracker: &TaskTracker) -> Self {
        let (writers, batch_max) = match store.backend() {
            Backend::Sqlite => (1, BATCH_MAX_EMBEDDED),
            Backend::Postgres => (WRITERS, BATCH_MAX),
        };
        let (sender, receiver) = mpsc::channel(batch_max);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..writers {
            tracker.spawn(save_all(store.clone(), receiver.clone(), batch_max));
        }
        Self { sender, store }
    }

    /// Returns when the visit is saved, however long the database is away.
    pub(super) async fn save(&self, token: LeaseToken, visit: VisitRecord) -> Result<VisitSaved, StoreError> {
        let visit = Arc::new((token, visit));
        let (done, saved) = oneshot::channel();
        let gone = || StoreError::Unstorable { what: "visit", reason: "the crawler is stopping".to_owned() };
        self.sender.send(Waiting { visit: visit.clone(), done }).await.map_err(|_| gone())?;
        match saved.await.map_err(|_| gone())? {
            // the database went away while the visits of a batch were saved one by one
            Err(error) if error.is_transient() => {
                let alone = patiently("a visit to be saved", || self.store.visit_save(&visit.0, &visit.1));
                Box::pin(alone).await
            }
            saved => saved,
        }
    }
}

async fn save_all(store: Store, receiver: Arc<Mutex<mpsc::Receiver<Waiting>>>, batch_max: usize) {
    let (mut batch, mut saved_last) = (Vec::with_capacity(batch_max), 0);
    loop {
        gather(&mut *receiver.lock().await, &mut batch, batch_max, saved_last).await;
        if batch.is_empty() {
            return;
        }
        saved_last = batch.len();
        save_batch(&store, &mut batch).await;
    }
}

/// Waits for a visit, and takes along what else is there; nothing comes when the crawler stops.
async fn gather(
    receiver: &mut mpsc::Receiver<Waiting>,
    batch: &mut Vec<Waiting>,
    batch_max: usize,
    saved_last: usize,
) {
    let gathered = receiver.recv_many(batch, batch_max).await;
    if saved_last > 1 && (1..batch_max).contains(&gathered) {
        tokio::time::sleep(GATHER_TIME).await;
        while batch.len() < batch_max
            && let Ok(waiting) = receiver.try_recv()
        {
            batch.push(waiting);
        }
    }
}

/// Saves the batch, however long the database is away, unless every visit of it was dropped meanwhile.
async fn save_batch(store: &Store, batch: &mut Vec<Waiting>) {
    let visits: Vec<_> = batch.iter().map(|waiting| waiting.visit.clone()).collect();
    let visits: Vec<_> = visits.iter().map(|visit| (&visit.0, &visit.1)).collect();
    let saved = tokio::select! {
        saved = patiently("visits to be saved", || store.visits_save(&visits)) => saved,
        () = all_dropped(batch) => Ok(Vec::new()),
    };
    let mut saved = match saved {
        Ok(saved) => saved.into_iter(),
        Err(error) => {
            tracing::error!(%error, "visits could not be saved");
            Vec::new().into_iter()
        }
    };
    for waiting in batch.drain(..) {
        if let Some(saved) = saved.next() {
            // a visit that was dropped no longer listens
            drop(waiting.done.send(saved));
        }
    }
}

async fn all_dropped(batch: &mut [Waiting]) {
    for waiting in batch {
        waiting.done.closed().await;
    }
}
