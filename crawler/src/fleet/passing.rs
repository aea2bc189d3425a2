//! Hands visits over to the workers that own their next addresses, many by one statement: in a first pass nearly every site
//! finds its owner that way.

use store::{HandOver, LeaseToken, Store, StoreError};

use crate::gather::Batches;

/// Visits handed over by one statement.
const BATCH_MAX: usize = 500;

/// What became of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    On,
    /// The lease had been lost; nothing was written.
    Lost,
}

/// Hands visits over.
#[derive(Clone)]
pub(crate) struct Passing(pub(crate) Store);

impl Batches for Passing {
    type Row = (LeaseToken, HandOver);
    type Answer = Passed;

    const ROW: &'static str = "visit";
    const WAITS: &'static str = "visits to be handed over";
    const BUSY: usize = 2;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, visits: &[Self::Row]) -> Result<Vec<Passed>, StoreError> {
        let on = self.0.visits_hand_over(visits).await?;
        let passed =
            |(token, _): &Self::Row| if on.contains(&token.site) { Passed::On } else { Passed::Lost };
        Ok(visits.iter().map(passed).collect())
    }
}
