//! Turns at suffixes below which strangers live. Their sites lie at addresses of many owners, so that their pace is kept in the
//! store, for every worker there is: a request takes its turn there before it is sent, and gives it back when it has ended.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use policy::delay::Scope;
use store::{Store, StoreError, TurnAnswer, TurnRequest};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::later;
use crate::clock;
use crate::patience::patiently;

/// The longest that a turn is waited for.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// How often it is looked whether an open turn has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// How long a turn lives of which nobody says that it has ended: longer than a request may take.
const LIFE: Duration = Duration::from_mins(1);
/// A request that leaves later than this after its time would come too near to the next one.
const LATE_MAX: TimeDelta = TimeDelta::milliseconds(50);
/// Turns ended by one statement.
const ENDED_MAX: usize = 100;

/// Takes turns, and ends them.
pub(super) struct Suffixes {
    store: Store,
    ended: mpsc::UnboundedSender<i64>,
}

/// A turn; ended when it is dropped.
#[derive(Debug)]
pub(super) struct SuffixTurn {
    pub(super) suffix: String,
    /// When the request leaves.
    pub(super) at: DateTime<Utc>,
    number: i64,
    ended: mpsc::UnboundedSender<i64>,
}

/// What asking came to.
#[derive(Debug)]
pub(super) enum Asked {
    Turn(SuffixTurn),
    /// None is free before this.
    Crowded {
        until: DateTime<Utc>,
    },
}

impl Suffixes {
    pub(super) fn start(store: Store, tracker: &TaskTracker) -> Self {
        let (ended, receiver) = mpsc::unbounded_channel();
        tracker.spawn(end_all(store.clone(), receiver));
        Self { store, ended }
    }

    /// Takes a turn that is no sooner than after `lead`, in which the clocks of the request are written.
    pub(super) async fn take(&self, suffix: &str, lead: Duration) -> Result<Asked, StoreError> {
        let latest = later(clock::now(), WAIT_MAX);
        let limits = Scope::PublicSuffix.limits();
        loop {
            let answer = patiently("a turn at a suffix", || {
                let request = TurnRequest {
                    suffix: suffix.to_owned(),
                    from: later(clock::now(), lead),
                    latest,
                    // so that the gap holds, too, when one request leaves late and the next one in time
                    gap: limits.gap + LATE_MAX.to_std().unwrap_or_default(),
                    open_max: limits.in_flight_max,
                    life: LIFE,
                };
                async move { self.store.suffix_turn_take(&request).await }
            });
            match answer.await? {
                TurnAnswer::Taken(turn) => {
                    let (suffix, ended) = (suffix.to_owned(), self.ended.clone());
                    let turn = SuffixTurn { suffix, at: turn.at, number: turn.number, ended };
                    return Ok(Asked::Turn(turn));
                }
                TurnAnswer::Late { until } => return Ok(Asked::Crowded { until }),
                TurnAnswer::Full => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }
}

impl SuffixTurn {
    /// Whether its time is now, or still to come.
    pub(super) fn is_in_time(&self) -> bool {
        clock::now() <= self.at + LATE_MAX
    }

    /// Whether there is more time than `lead` before its time.
    pub(super) fn is_later_than(&self, lead: Duration) -> bool {
        later(clock::now(), lead) < self.at
    }

    /// Sleeps until `lead` before its time.
    pub(super) async fn wait(&self, lead: Duration) {
        let until = self.at - TimeDelta::from_std(lead).unwrap_or_default();
        tokio::time::sleep((until - clock::now()).to_std().unwrap_or_default()).await;
    }
}

impl Drop for SuffixTurn {
    fn drop(&mut self) {
        if self.ended.send(self.number).is_err() {
            tracing::debug!(suffix = self.suffix, "the turn ends by itself");
        }
    }
}

/// Ends turns as they come. Those that a database that is away does not hear of end by themselves.
async fn end_all(store: Store, mut ended: mpsc::UnboundedReceiver<i64>) {
    let mut numbers = Vec::new();
    while ended.recv_many(&mut numbers, ENDED_MAX).await > 0 {
        if let Err(error) = store.suffix_turns_end(&numbers).await {
            tracing::debug!(%error, turns = numbers.len(), "turns end by themselves");
        }
        numbers.clear();
    }
}
