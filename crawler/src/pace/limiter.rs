//! Rate limits that all visits of a process share: one entry per address, platform, and public suffix.
//!
//! A slot takes all of its keys at once or none, so that two visits cannot deadlock. Visits queue for keys in order of arrival. Only the
//! visit at the head of a queue reads the clocks and sleeps until they allow a request.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ipnet::IpNet;
use manifest::Host;
use policy::address::budget_network;
use policy::delay::{Pace, PlatformRate, RateChange, Sample, Scope, ScopeState, day_of, platform_of};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::{clock, metrics};

/// Number of entries, about 20 MB, above which idle ones are dropped.
const IDLE_ENTRIES_MAX: usize = 100_000;
/// Longest wait of a visit that keeps its connection.
pub(super) const QUEUE_WAIT_MAX: Duration = Duration::from_secs(15);

/// The scope of a shared rate limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Address(IpNet),
    /// A platform that serves very many sites from few addresses: all of its addresses together.
    Platform(&'static str),
    /// A private suffix of the Public Suffix List: `github.io`.
    Suffix(String),
}

impl Key {
    pub(super) fn of_address(address: IpAddr) -> Self {
        platform_of(address).map_or_else(|| Self::Address(budget_network(address)), Self::Platform)
    }

    pub(super) fn of_private_suffix(host: &Host) -> Option<Self> {
        let suffix = psl::suffix(host.as_str().as_bytes())?;
        let is_private = suffix.typ() == Some(psl::Type::Private);
        let text = std::str::from_utf8(suffix.as_bytes()).ok()?;
        is_private.then(|| Self::Suffix(text.to_owned()))
    }

    /// The public suffix, whose limit the whole fleet shares.
    pub(super) fn suffix(&self) -> Option<&str> {
        if let Self::Suffix(suffix) = self { Some(suffix) } else { None }
    }

    pub(super) const fn scope(&self) -> Scope {
        match self {
            Self::Address(_) => Scope::Address,
            Self::Platform(_) => Scope::Platform,
            Self::Suffix(_) => Scope::PublicSuffix,
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    state: ScopeState,
    /// Request rate; set only for platforms.
    rate: Option<Box<PlatformRate>>,
    released: Arc<Notify>,
    /// Held by the visit at the head of the queue; fair.
    head: Arc<Semaphore>,
    /// Number of visits in the queue, including the one at its head.
    queued: u32,
    /// The latest time that was assigned to a rejected visit.
    assigned_until: Option<DateTime<Utc>>,
    /// How long the last visit waited for its reservation, for a suffix that other workers use too.
    reservation_wait: Option<TimeDelta>,
}

impl Entry {
    fn new(key: &Key) -> Self {
        let scope = key.scope();
        let rate = (scope == Scope::Platform).then(Box::default);
        let (released, head) = (Arc::default(), Arc::new(Semaphore::new(1)));
        Self {
            state: ScopeState::idle(scope),
            rate,
            released,
            head,
            queued: 0,
            assigned_until: None,
            reservation_wait: None,
        }
    }

    /// Gap between two requests.
    fn gap(&self) -> TimeDelta {
        let gap = self.rate.as_ref().map_or_else(|| self.state.scope.limits().gap, |rate| rate.gap());
        TimeDelta::from_std(gap).unwrap_or(TimeDelta::MAX)
    }

    /// Gap between two visits of the queue.
    fn queue_gap(&self) -> TimeDelta {
        self.gap().max(self.reservation_wait.unwrap_or_default())
    }

    /// How long a visit that arrives now would wait.
    fn wait(&self, now: DateTime<Utc>) -> TimeDelta {
        let rest = self.state.next_ok_at.map_or(TimeDelta::zero(), |at| (at - now).max(TimeDelta::zero()));
        let queue = self.gap().checked_mul(i32::try_from(self.queued).unwrap_or(i32::MAX));
        queue.and_then(|queue| queue.checked_add(&rest)).unwrap_or(TimeDelta::MAX)
    }

    /// Whether another visit in the queue would have to wait too long.
    fn is_crowded(&self) -> bool {
        let wait = self.queue_gap().checked_mul(i32::try_from(self.queued).unwrap_or(i32::MAX));
        wait.is_none_or(|wait| wait.to_std().unwrap_or_default() >= QUEUE_WAIT_MAX)
    }

    /// Assigns a time to a rejected visit: after the queue, and one gap after the visit that was rejected before it.
    fn assign_later(&mut self, now: DateTime<Utc>) -> DateTime<Utc> {
        let behind_queue = now + TimeDelta::from_std(QUEUE_WAIT_MAX).unwrap_or(TimeDelta::MAX);
        let until =
            self.assigned_until.map_or(behind_queue, |until| until.max(behind_queue)) + self.queue_gap();
        self.assigned_until = Some(until);
        until
    }

    fn delay_from(&mut self, now: DateTime<Utc>) {
        self.state.next_ok_at = self.state.next_ok_at.max(Some(now + self.gap()));
    }
}

/// All shared rate limits of a process; cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct Limiter(Arc<Mutex<HashMap<Key, Entry>>>);

/// Keys that one request uses; released when dropped.
#[derive(Debug)]
pub(super) struct Slot {
    limiter: Limiter,
    keys: Vec<Key>,
    /// Set while the visit waits for something besides these keys.
    position: Option<QueuePosition>,
}

/// A position in the queues of some keys. Dropping it leaves the queues.
#[derive(Debug)]
struct QueuePosition {
    limiter: Limiter,
    keys: Vec<Key>,
    heads: Vec<OwnedSemaphorePermit>,
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        let mut entries = self.limiter.lock();
        for key in &self.keys {
            let entry = entry(&mut entries, key);
            entry.queued = entry.queued.saturating_sub(1);
        }
    }
}

/// The result of a request for a slot.
#[derive(Debug)]
pub(super) enum SlotAnswer {
    Granted(Slot),
    /// The queue is too long. This visit is assigned its own later time.
    Crowded {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// The clocks require a longer delay than a connection is kept open.
    Refused(Pace),
}

impl Limiter {
    /// Waits for a slot at every key, in order of arrival, until `decide` allows one by the states of the keys.
    pub(super) async fn acquire(
        &self,
        keys: &[Key],
        decide: impl Fn(&[ScopeState], DateTime<Utc>) -> Pace,
    ) -> SlotAnswer {
        let Some(mut position) = self.enqueue(keys) else { return self.reject(keys) };
        let deadline = Instant::now() + QUEUE_WAIT_MAX;
        let heads: Vec<Arc<Semaphore>> = {
            let mut entries = self.lock();
            keys.iter().map(|key| Arc::clone(&entry(&mut entries, key).head)).collect()
        };
        for head in heads {
            match timeout_at(deadline, head.acquire_owned()).await {
                // the semaphore is never closed
                Ok(permit) => position.heads.extend(permit),
                Err(_) => return self.reject(keys),
            }
        }
        loop {
            let now = clock::now();
            let (decision, slot) = self.try_acquire(keys, now, |states| decide(states, now));
            match (decision, slot) {
                (_, Some(mut slot)) => {
                    slot.position = keys.iter().any(|key| key.suffix().is_some()).then_some(position);
                    return SlotAnswer::Granted(slot);
                }
                (Pace::Wait { until, .. }, None) => {
                    clock::sleep_until(until).await;
                }
                (Pace::Busy { scope }, None) => {
                    let Some(released) = self.released(keys, scope) else { return self.reject(keys) };
                    if timeout_at(deadline, released.notified()).await.is_err() {
                        return self.reject(keys);
                    }
                }
                (refused, None) => return SlotAnswer::Refused(refused),
            }
        }
    }

    /// A position at the end of each queue, unless one is too long.
    fn enqueue(&self, keys: &[Key]) -> Option<QueuePosition> {
        let mut entries = self.lock();
        if keys.iter().any(|key| entry(&mut entries, key).is_crowded()) {
            return None;
        }
        for key in keys {
            entry(&mut entries, key).queued += 1;
        }
        Some(QueuePosition { limiter: self.clone(), keys: keys.to_vec(), heads: Vec::new() })
    }

    fn reject(&self, keys: &[Key]) -> SlotAnswer {
        let (until, scope) = self.assign_later(keys);
        SlotAnswer::Crowded { until, scope }
    }

    /// Assigns a time to a rejected visit, and names the scope that is crowded.
    pub(super) fn assign_later(&self, keys: &[Key]) -> (DateTime<Utc>, Scope) {
        let now = clock::now();
        let mut entries = self.lock();
        let times = keys.iter().map(|key| (entry(&mut entries, key).assign_later(now), key.scope()));
        times.max_by_key(|(until, _)| *until).unwrap_or((now, Scope::Address))
    }

    /// Records how long a visit waited for a reservation.
    pub(super) fn observe_wait(&self, key: &Key, wait: Duration) {
        entry(&mut self.lock(), key).reservation_wait = TimeDelta::from_std(wait).ok();
    }

    /// How long a visit that arrives now would wait in these queues.
    pub(super) fn wait_at(&self, keys: &[Key]) -> Duration {
        let now = clock::now();
        let mut entries = self.lock();
        let waits = keys.iter().map(|key| entry(&mut entries, key).wait(now));
        waits.max().and_then(|wait| wait.to_std().ok()).unwrap_or_default().min(QUEUE_WAIT_MAX)
    }

    /// Notifies when a request of the full key has ended, even if it ended before this call.
    fn released(&self, keys: &[Key], scope: Scope) -> Option<Arc<Notify>> {
        let key = keys.iter().find(|key| key.scope() == scope)?;
        Some(Arc::clone(&entry(&mut self.lock(), key).released))
    }

    /// Takes the keys if `decide` allows it by their states.
    fn try_acquire(
        &self,
        keys: &[Key],
        now: DateTime<Utc>,
        decide: impl FnOnce(&[ScopeState]) -> Pace,
    ) -> (Pace, Option<Slot>) {
        let mut entries = self.lock();
        let states: Vec<ScopeState> = keys.iter().map(|key| entry(&mut entries, key).state).collect();
        let decision = decide(&states);
        if decision != Pace::Go {
            return (decision, None);
        }
        for key in keys {
            let entry = entry(&mut entries, key);
            entry.state.in_flight += 1;
            // where several requests may be in flight, the gap is between their starts
            entry.delay_from(now);
        }
        (decision, Some(Slot { limiter: self.clone(), keys: keys.to_vec(), position: None }))
    }

    /// Applies a clock that another process wrote.
    pub(super) fn load(&self, key: &Key, next_ok_at: DateTime<Utc>) {
        let mut entries = self.lock();
        let state = &mut entry(&mut entries, key).state;
        state.next_ok_at = state.next_ok_at.max(Some(next_ok_at));
    }

    /// Counts a request that has ended. Its sample adapts the rate of its platform.
    pub(super) fn finish(&self, keys: &[Key], now: DateTime<Utc>, sample: Option<Sample>) {
        let mut entries = self.lock();
        for key in keys {
            let entry = entry(&mut entries, key);
            if let (Key::Platform(platform), Some(rate), Some(sample)) = (key, &mut entry.rate, sample) {
                observe(platform, rate, sample);
            }
            if entry.state.scope == Scope::Address {
                entry.delay_from(now);
            }
            let state = &mut entry.state;
            if state.day != day_of(now) {
                (state.day, state.requests_today) = (day_of(now), 0);
            }
            state.requests_today += 1;
        }
        if entries.len() > IDLE_ENTRIES_MAX {
            let today = day_of(now);
            let is_used = |entry: &Entry| entry.state.in_flight > 0 || entry.queued > 0;
            entries.retain(|_, entry| is_used(entry) || entry.state.day == today);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<'a>(entries: &'a mut HashMap<Key, Entry>, key: &Key) -> &'a mut Entry {
    entries.entry(key.clone()).or_insert_with(|| Entry::new(key))
}

fn observe(platform: &'static str, rate: &mut PlatformRate, sample: Sample) {
    let change = rate.observe(sample);
    if change != RateChange::Kept {
        let gap_ms = rate.gap().as_millis();
        tracing::info!(platform, %change, gap_ms, "the rate of a platform changed");
        metrics::platform_rate(platform, rate.gap());
    }
}

impl Slot {
    /// Starts the gap at the time at which the request is sent.
    pub(super) fn delay_from(&self, leaves_at: DateTime<Utc>) {
        let mut entries = self.limiter.lock();
        for key in &self.keys {
            entry(&mut entries, key).delay_from(leaves_at);
        }
    }

    /// Leaves the queue, so that the next visit moves to its head.
    pub(super) fn leave_queue(&mut self) {
        self.position = None;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut entries = self.limiter.lock();
        for key in &self.keys {
            let entry = entry(&mut entries, key);
            entry.state.in_flight = entry.state.in_flight.saturating_sub(1);
            entry.released.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
