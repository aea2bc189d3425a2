//! Hands visits over to the workers that own their next addresses. Uses batches, because in a first pass nearly every site is handed over
//! to the owner of its address.

use store::{HandOver, LeaseToken, Store, StoreError};

use crate::batcher::BatchWriter;

/// Maximum number of visits handed over by one statement.
const BATCH_MAX: usize = 500;

/// The result for a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandOverAnswer {
    HandedOver,
    /// The lease was lost, so nothing was written.
    LeaseLost,
}

/// Hands visits over.
#[derive(Clone)]
pub(crate) struct HandOverWriter(pub(crate) Store);

impl BatchWriter for HandOverWriter {
    type Row = (LeaseToken, HandOver);
    type Answer = HandOverAnswer;

    const ROW: &'static str = "visit";
    const OPERATION: &'static str = "hand visits over";
    const BUSY_ROWS_MIN: usize = 2;

    fn rows_max(&self) -> usize {
        BATCH_MAX
    }

    async fn write(&self, visits: &[Self::Row]) -> Result<Vec<HandOverAnswer>, StoreError> {
        let handed_over = self.0.visits_hand_over(visits).await?;
        let answer = |(token, _): &Self::Row| {
            if handed_over.contains(&token.site) {
                HandOverAnswer::HandedOver
            } else {
                HandOverAnswer::LeaseLost
            }
        };
        Ok(visits.iter().map(answer).collect())
    }
}
