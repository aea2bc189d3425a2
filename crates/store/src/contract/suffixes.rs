//! Turns at suffixes below which strangers live: one clock for every worker on the database.

use super::{ATTEMPTS_MAX, Pools, Store};
use crate::fault::Outcome;
use crate::model::{TurnAnswer, TurnRequest};
use crate::{StoreError, postgres, sqlite};

impl Store {
    /// Takes the next turn at a suffix. It is written before this returns: no two workers get turns less than the gap apart, nor
    /// more than may be open, and one that is killed leaves its turn taken until its life has passed.
    pub async fn suffix_turn_take(&self, request: &TurnRequest) -> Result<TurnAnswer, StoreError> {
        writing!(self, "suffix_turn_take", suffix::turn_take(request))
    }

    /// Ends turns whose requests have ended; those that are not there are passed over.
    pub async fn suffix_turns_end(&self, numbers: &[i64]) -> Result<(), StoreError> {
        if numbers.is_empty() {
            return Ok(());
        }
        writing!(self, "suffix_turns_end", suffix::turns_end(numbers))
    }
}
