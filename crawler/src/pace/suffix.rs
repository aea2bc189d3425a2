//! Rate limits for public suffixes such as `github.io`, shared by all workers.
//!
//! The sites below a suffix have addresses that belong to many workers, so their permits are reserved in the database. A request reserves a
//! permit before it is sent, and releases it when it has ended. It queues for its address as late as possible.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use policy::delay::{Pace as Decision, Scope, ScopeState};
use store::{Store, StoreError, SuffixPermitOutcome, SuffixPermitRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use super::limiter::{Key, Limiter, Slot, SlotAnswer};
use super::permit::{LATE_MAX, Permit, PermitAnswer, Reservation, SuffixPermit, later};
use super::writer::WriteTime;
use crate::groups::LEAVES_WITHIN_MAX;
use crate::retry::retry_while_unavailable;
use crate::{clock, metrics};
use egress::REQUEST_TIME_MAX;

/// Longest wait for a reserved time.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Poll interval while every permit is in use, and shortly before a reserved time.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time after which a permit expires if it is not released: longer than it takes to send a request and to receive its response.
const LIFE: Duration = Duration::from_secs(90);
const _: () = assert!(LEAVES_WITHIN_MAX.as_secs() + REQUEST_TIME_MAX.as_secs() < LIFE.as_secs());
/// Maximum number of permits released by one statement.
const RELEASED_MAX: usize = 100;

/// Reserves permits and releases them.
pub(super) struct SuffixPermits {
    store: Store,
    limiter: Limiter,
    write_time: Arc<WriteTime>,
    released: mpsc::UnboundedSender<i64>,
}

/// The result of a reservation in the database.
enum ReservationAnswer {
    Reserved(Reservation),
    /// No permit is free before this time.
    Crowded {
        until: DateTime<Utc>,
    },
}

impl SuffixPermits {
    pub(super) fn start(
        store: Store,
        limiter: Limiter,
        write_time: Arc<WriteTime>,
        tracker: &TaskTracker,
    ) -> Self {
        let (released, receiver) = mpsc::unbounded_channel();
        tracker.spawn(release_all(store.clone(), receiver));
        Self { store, limiter, write_time, released }
    }

    /// Acquires the part of a permit for the suffix of `key`. The next visit of this process makes its reservation only shortly before the
    /// reserved time of this visit. So each worker has at most one further reservation, however many visits wait. The visit joins the queue
    /// of the address only shortly before the reserved time, so that others may use the address until then.
    pub(super) async fn acquire(
        &self,
        key: &Key,
        addresses: &[Key],
        decide: impl Fn(&[ScopeState], DateTime<Utc>) -> Decision,
    ) -> Result<Result<SuffixPermit, PermitAnswer>, StoreError> {
        let (limiter, queued) = (&self.limiter, Instant::now());
        let slot = match limiter.acquire(std::slice::from_ref(key), decide).await {
            SlotAnswer::Granted(slot) => slot,
            SlotAnswer::Crowded { until, scope } => return Ok(Err(PermitAnswer::Crowded { until, scope })),
            SlotAnswer::Refused(decision) => {
                return Ok(Err(PermitAnswer::refused(decision, clock::now())));
            }
        };
        let began = Instant::now();
        let lead = || limiter.wait_at(addresses).saturating_add(self.write_time.allowed());
        let ReservationAnswer::Reserved(reservation) =
            self.reserve(key.suffix().unwrap_or_default(), lead()).await?
        else {
            let (until, scope) = limiter.assign_later(std::slice::from_ref(key));
            return Ok(Err(PermitAnswer::Crowded { until, scope }));
        };
        while reservation.is_later_than(lead()) {
            // poll, because the queue at the address may grow meanwhile
            tokio::time::timeout(POLL_INTERVAL, reservation.wait(lead())).await.ok();
        }
        metrics::waited(Scope::PublicSuffix, queued.elapsed());
        // the next visit in the queue of this process is expected to wait as long
        limiter.observe_wait(key, began.elapsed());
        Ok(Ok(SuffixPermit { slot, reservation }))
    }

    /// Combines both parts of a permit. The gap of the address begins at the reserved time. If that time has passed while the visit waited
    /// in the queue of the address, the visit must request another permit.
    pub(super) async fn join(&self, address: Slot, mut suffix: SuffixPermit) -> PermitAnswer {
        if !suffix.reservation.is_in_time() {
            return PermitAnswer::Wait { until: clock::now(), scope: Scope::PublicSuffix };
        }
        address.delay_from(suffix.reservation.at);
        suffix.reservation.wait(self.write_time.allowed()).await;
        suffix.slot.leave_queue();
        PermitAnswer::Granted(Permit { address, suffix: Some(suffix) })
    }

    /// Replaces a reservation whose time passed while the database was slow, or at whose time the address is used by another worker. The
    /// new one is not before `earliest`.
    pub(super) async fn renew(&self, permit: &mut Permit, earliest: DateTime<Utc>) -> Result<(), StoreError> {
        let Some(SuffixPermit { slot, reservation }) = permit.suffix.take() else { return Ok(()) };
        let suffix = reservation.suffix.clone();
        // release the reservation that has passed first
        drop(reservation);
        loop {
            let lead = (earliest - clock::now()).to_std().unwrap_or_default().max(self.write_time.allowed());
            match self.reserve(&suffix, lead).await? {
                ReservationAnswer::Reserved(reservation) => {
                    permit.address.delay_from(reservation.at);
                    reservation.wait(self.write_time.allowed()).await;
                    permit.suffix = Some(SuffixPermit { slot, reservation });
                    return Ok(());
                }
                ReservationAnswer::Crowded { until } => {
                    tokio::time::sleep((until - clock::now()).to_std().unwrap_or_default()).await;
                }
            }
        }
    }

    /// Reserves a time after `lead`, in which the clocks of the request are written.
    async fn reserve(&self, suffix: &str, lead: Duration) -> Result<ReservationAnswer, StoreError> {
        let latest = later(clock::now(), WAIT_MAX);
        let limits = Scope::PublicSuffix.limits();
        loop {
            let answer = retry_while_unavailable("reserve suffix permit", || {
                let request = SuffixPermitRequest {
                    suffix: suffix.to_owned(),
                    from: later(clock::now(), lead),
                    latest,
                    // keeps the gap if one request is sent late and the next one on time
                    gap: limits.gap + LATE_MAX.to_std().unwrap_or_default(),
                    open_max: limits.in_flight_max,
                    life: LIFE,
                };
                async move { self.store.suffix_permit_take(&request).await }
            });
            match answer.await? {
                SuffixPermitOutcome::Taken(taken) => {
                    let (suffix, released) = (suffix.to_owned(), self.released.clone());
                    let (at, number) = (taken.at, taken.number);
                    return Ok(ReservationAnswer::Reserved(Reservation { suffix, at, number, released }));
                }
                SuffixPermitOutcome::Late { until } => return Ok(ReservationAnswer::Crowded { until }),
                SuffixPermitOutcome::Full => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

/// Releases permits in batches. Those that cannot be released expire.
async fn release_all(store: Store, mut released: mpsc::UnboundedReceiver<i64>) {
    let mut numbers = Vec::new();
    while released.recv_many(&mut numbers, RELEASED_MAX).await > 0 {
        if let Err(error) = store.suffix_permits_release(&numbers).await {
            tracing::debug!(%error, permits = numbers.len(), "suffix permits are left to expire");
        }
        numbers.clear();
    }
}
