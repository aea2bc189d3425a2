//! Saves visits that end together in one transaction.

use std::sync::Arc;

use store::{Backend, LeaseToken, Store, StoreError, VisitRecord, VisitSaved};
use tokio_util::task::TaskTracker;

use crate::gather::{Batches, Gatherer};
use crate::patience::patiently;

/// Visits saved by one transaction. More would keep rows locked for longer and gain little on a server; an embedded database
/// is locked whole, and clocks take their turns between transactions, so that small ones would fall behind.
const BATCH_MAX: usize = 16;
const BATCH_MAX_EMBEDDED: usize = 128;
/// Transactions at the same time on a server; an embedded database takes one at a time.
const WRITERS: usize = 4;

/// Saves visits, each for itself where that is needed; cheap to clone.
#[derive(Clone)]
pub(crate) struct VisitWriter {
    gatherer: Gatherer<Visits>,
    store: Store,
}

impl VisitWriter {
    pub(crate) fn start(store: Store, tracker: &TaskTracker) -> Self {
        Self { gatherer: Gatherer::start(&Visits(store.clone()), tracker), store }
    }

    /// Returns when the visit is saved, however long the database is away.
    pub(super) async fn save(&self, token: LeaseToken, visit: VisitRecord) -> Result<VisitSaved, StoreError> {
        let visit = Arc::new((token, visit));
        match self.gatherer.write(visit.clone()).await? {
            // the database went away while the visits of a batch were saved one by one
            Err(error) if error.is_transient() => {
                let alone = patiently("a visit to be saved", || self.store.visit_save(&visit.0, &visit.1));
                Box::pin(alone).await
            }
            saved => saved,
        }
    }
}

/// Visits, in transactions of many.
#[derive(Clone)]
struct Visits(Store);

impl Batches for Visits {
    type Row = Arc<(LeaseToken, VisitRecord)>;
    type Answer = Result<VisitSaved, StoreError>;

    const ROW: &'static str = "visit";
    const WAITS: &'static str = "visits to be saved";
    const BUSY: usize = 2;

    fn rows_max(&self) -> usize {
        match self.0.backend() {
            Backend::Sqlite => BATCH_MAX_EMBEDDED,
            Backend::Postgres => BATCH_MAX,
        }
    }

    fn at_once(&self) -> usize {
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
