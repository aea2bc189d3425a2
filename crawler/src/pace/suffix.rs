//! Turns at suffixes below which strangers live. Their sites lie at addresses of many owners, so that their pace is kept in the
//! store, for every worker there is: a request takes its turn there before it is sent, and gives it back when it has ended. Its
//! address is queued for as late as that allows.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use policy::delay::{Pace as Decision, Scope, ScopeState};
use store::{Store, StoreError, SuffixPermitOutcome, SuffixPermitRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::book::{Claim, Key, Taken};
use super::{Asked, Pace, Turn, asked, later};
use crate::patience::patiently;
use crate::{clock, metrics};

/// The longest that a turn is waited for.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// How often it is looked whether an open turn has ended, and how long the queue is at the address of one that comes later.
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
    suffix: String,
    /// When the request leaves.
    pub(super) at: DateTime<Utc>,
    number: i64,
    ended: mpsc::UnboundedSender<i64>,
}

/// The part of a request's turn that the whole fleet takes turns for.
#[derive(Debug)]
pub(super) struct Below {
    claim: Claim,
    pub(super) turn: SuffixTurn,
}

/// What asking the store came to.
#[derive(Debug)]
enum Offer {
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
    async fn take(&self, suffix: &str, lead: Duration) -> Result<Offer, StoreError> {
        let latest = later(clock::now(), WAIT_MAX);
        let limits = Scope::PublicSuffix.limits();
        loop {
            let answer = patiently("a turn at a suffix", || {
                let request = SuffixPermitRequest {
                    suffix: suffix.to_owned(),
                    from: later(clock::now(), lead),
                    latest,
                    // so that the gap holds, too, when one request leaves late and the next one in time
                    gap: limits.gap + LATE_MAX.to_std().unwrap_or_default(),
                    open_max: limits.in_flight_max,
                    life: LIFE,
                };
                async move { self.store.suffix_permit_take(&request).await }
            });
            match answer.await? {
                SuffixPermitOutcome::Taken(turn) => {
                    let (suffix, ended) = (suffix.to_owned(), self.ended.clone());
                    let turn = SuffixTurn { suffix, at: turn.at, number: turn.number, ended };
                    return Ok(Offer::Turn(turn));
                }
                SuffixPermitOutcome::Late { until } => return Ok(Offer::Crowded { until }),
                SuffixPermitOutcome::Full => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }
}

impl Pace {
    /// Below a public suffix a request has its turn among those of all workers. The next visit of this one asks for its own when
    /// that time has nearly come, so that each worker has one turn ahead, however many visits wait. The address is queued for
    /// only when the turn comes near, so that others go on there meanwhile.
    pub(super) async fn take_suffix_turn(
        &self,
        key: &Key,
        addresses: &[Key],
        decide: impl Fn(&[ScopeState], DateTime<Utc>) -> Decision,
    ) -> Result<Result<Below, Asked>, StoreError> {
        let (book, queued) = (&self.0.book, Instant::now());
        let claim = match book.take(std::slice::from_ref(key), decide).await {
            Taken::Go(claim) => claim,
            Taken::Crowded { until, scope } => return Ok(Err(Asked::Crowded { until, scope })),
            Taken::Never(later) => return Ok(Err(asked(later, clock::now()))),
        };
        let began = Instant::now();
        let before = || book.wait_at(addresses).saturating_add(self.0.write_time());
        let asked = self.0.suffixes.take(key.suffix().unwrap_or_default(), before()).await?;
        let Offer::Turn(turn) = asked else {
            let (until, scope) = book.promise(std::slice::from_ref(key));
            return Ok(Err(Asked::Crowded { until, scope }));
        };
        while turn.is_later_than(before()) {
            // the queue at the address may grow meanwhile
            tokio::time::timeout(LOOK_AGAIN, turn.wait(before())).await.ok();
        }
        metrics::waited(Scope::PublicSuffix, queued.elapsed());
        // behind each visit of this process the next one waits as long
        book.observe_wait(key, began.elapsed());
        Ok(Ok(Below { claim, turn }))
    }

    /// Both parts of a turn together. The address rests until the turn's time, and after it; a time that passed while the
    /// address was waited for goes to nobody, and the visit asks again.
    pub(super) async fn join(&self, address: Claim, mut below: Below) -> Asked {
        if !below.turn.is_in_time() {
            return Asked::Wait { until: clock::now(), scope: Scope::PublicSuffix };
        }
        address.rest_from(below.turn.at);
        below.turn.wait(self.0.write_time()).await;
        below.claim.leave_queue();
        Asked::Go(Turn { address, below: Some(below) })
    }

    /// Another turn in place of one that has passed while the database was slow.
    pub(super) async fn renew(&self, turn: &mut Turn) -> Result<(), StoreError> {
        let Some(below) = turn.below.take() else { return Ok(()) };
        let (suffix, claim) = (below.turn.suffix.clone(), below.claim);
        // the one that passed is given back first
        drop(below.turn);
        loop {
            let lead = self.0.write_time();
            match self.0.suffixes.take(&suffix, lead).await? {
                Offer::Turn(next) => {
                    turn.address.rest_from(next.at);
                    next.wait(lead).await;
                    turn.below = Some(Below { claim, turn: next });
                    return Ok(());
                }
                Offer::Crowded { until } => {
                    tokio::time::sleep((until - clock::now()).to_std().unwrap_or_default()).await;
                }
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
    fn is_later_than(&self, lead: Duration) -> bool {
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
        if let Err(error) = store.suffix_permits_release(&numbers).await {
            tracing::debug!(%error, turns = numbers.len(), "turns end by themselves");
        }
        numbers.clear();
    }
}
