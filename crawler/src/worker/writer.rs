//! Saves visits that end at about the same time in one transaction.

use std::sync::Arc;

use store::{Backend, LeaseToken, Store, StoreError, VisitRecord, VisitSaved};
use tokio_util::task::TaskTracker;

use crate::batcher::{BatchWriter, Batcher};
use crate::retry::retry_while_unavailable;

/// Maximum number of visits saved by one transaction. On a server, more would keep rows locked for longer and gain little. An embedded
/// database is locked as a whole, and clocks are written between transactions, so it needs larger transactions.
const BATCH_MAX: usize = 16;
const BATCH_MAX_EMBEDDED: usize = 128;
/// Number of concurrent transactions on a server. An embedded database allows one at a time.
const WRITERS: usize = 4;

/// Saves visits in batches, and one by one after a batch has failed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct VisitWriter {
    batcher: Batcher<Visits>,
    store: Store,
}

impl VisitWriter {
    pub(crate) fn start(store: Store, tracker: &TaskTracker) -> Self {
        Self { batcher: Batcher::start(&Visits(store.clone()), tracker), store }
    }

    /// Saves a visit; while the database is unavailable, retries without a limit.
    pub(super) async fn save(&self, token: LeaseToken, visit: VisitRecord) -> Result<VisitSaved, StoreError> {
        let visit = Arc::new((token, visit));
        match self.batcher.write(visit.clone()).await? {
            // the database became unavailable while the visits of a batch were saved one by one
            Err(error) if error.is_transient() => {
                let alone =
                    retry_while_unavailable("save visit", || self.store.visit_save(&visit.0, &visit.1));
                Box::pin(alone).await
            }
            saved => saved,
        }
    }
}

/// Writes a batch of visits in one transaction.
#[derive(Clone)]
struct Visits(Store);

impl BatchWriter for Visits {
    type Row = Arc<(LeaseToken, VisitRecord)>;
    type Answer = Result<VisitSaved, StoreError>;

    const ROW: &'static str = "visit";
    const OPERATION: &'static str = "save visits";
    const BUSY_ROWS_MIN: usize = 2;

    fn rows_max(&self) -> usize {
        match self.0.backend() {
            Backend::Sqlite => BATCH_MAX_EMBEDDED,
            Backend::Postgres => BATCH_MAX,
        }
    }

    fn concurrency(&self) -> usize {
        match self.0.backend() {
            Backend::Sqlite => 1,
            Backend::Postgres => WRITERS,
        }
    }

    async fn write(&self, visits: &[Self::Row]) -> Result<Vec<Self::Answer>, StoreError> {
        let visits: Vec<_> = visits.iter().map(|visit| (&visit.0, &visit.1)).collect();
        self.0.visits_save(&visits).await
    }
}
