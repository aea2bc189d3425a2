//! Clocks that visits share: one entry an address, one a public suffix under which anybody may register.
//!
//! A claim takes every key at once or none, so two visits cannot wait for each other. Visits that want a key that is not
//! free queue before its door, first come, first served: only the one at the door watches the clock, and it sleeps until
//! the time that the clock tells. Who needs a turn at a suffix, too, queues for that first.

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

/// Entries after which idle ones are dropped; about 20 MB.
const IDLE_ENTRIES_MAX: usize = 100_000;
/// The longest that a visit keeps its connection for a turn at shared keys.
pub(super) const TURN_WAIT_MAX: Duration = Duration::from_secs(15);

/// What visits share.
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

    /// The suffix, of one that is shared by the whole fleet.
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
    /// Of a platform.
    rate: Option<Box<PlatformRate>>,
    released: Arc<Notify>,
    /// Passed by one visit at a time, in the order of coming.
    door: Arc<Semaphore>,
    /// Visits before the door and at it.
    queued: u32,
    /// Until when turns were promised to visits that were sent away.
    promised_until: Option<DateTime<Utc>>,
    /// How long the last turn was waited for that other workers take turns from, too.
    turn_wait: Option<TimeDelta>,
}

impl Entry {
    fn new(key: &Key) -> Self {
        let scope = key.scope();
        let rate = (scope == Scope::Platform).then(Box::default);
        let (released, door) = (Arc::default(), Arc::new(Semaphore::new(1)));
        Self {
            state: ScopeState::idle(scope),
            rate,
            released,
            door,
            queued: 0,
            promised_until: None,
            turn_wait: None,
        }
    }

    /// From one request to the next.
    fn gap(&self) -> TimeDelta {
        let gap = self.rate.as_ref().map_or_else(|| self.state.scope.limits().gap, |rate| rate.gap());
        TimeDelta::from_std(gap).unwrap_or(TimeDelta::MAX)
    }

    /// From one visit of the queue to the next.
    fn turn_gap(&self) -> TimeDelta {
        self.gap().max(self.turn_wait.unwrap_or_default())
    }

    /// How long a visit that comes now would wait.
    fn wait(&self, now: DateTime<Utc>) -> TimeDelta {
        let rest = self.state.next_ok_at.map_or(TimeDelta::zero(), |at| (at - now).max(TimeDelta::zero()));
        let queue = self.gap().checked_mul(i32::try_from(self.queued).unwrap_or(i32::MAX));
        queue.and_then(|queue| queue.checked_add(&rest)).unwrap_or(TimeDelta::MAX)
    }

    /// Whether another visit in the queue would have to wait too long.
    fn is_crowded(&self) -> bool {
        let wait = self.turn_gap().checked_mul(i32::try_from(self.queued).unwrap_or(i32::MAX));
        wait.is_none_or(|wait| wait.to_std().unwrap_or_default() >= TURN_WAIT_MAX)
    }

    /// A time for a visit that is sent away: behind the queue, and one gap after the time given to the one before.
    fn promise(&mut self, now: DateTime<Utc>) -> DateTime<Utc> {
        let behind_queue = now + TimeDelta::from_std(TURN_WAIT_MAX).unwrap_or(TimeDelta::MAX);
        let until =
            self.promised_until.map_or(behind_queue, |until| until.max(behind_queue)) + self.turn_gap();
        self.promised_until = Some(until);
        until
    }

    fn rest_from(&mut self, now: DateTime<Utc>) {
        self.state.next_ok_at = self.state.next_ok_at.max(Some(now + self.gap()));
    }
}

/// All shared clocks of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Book(Arc<Mutex<HashMap<Key, Entry>>>);

/// Keys that are in use by one request; released when dropped.
#[derive(Debug)]
pub(super) struct Claim {
    book: Book,
    keys: Vec<Key>,
    /// Kept while there is more to wait for than these keys.
    place: Option<Place>,
}

/// A place in the queues of some keys; given up when dropped.
#[derive(Debug)]
struct Place {
    book: Book,
    keys: Vec<Key>,
    doors: Vec<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut entries = self.book.lock();
        for key in &self.keys {
            let entry = entry(&mut entries, key);
            entry.queued = entry.queued.saturating_sub(1);
        }
    }
}

/// What waiting for a turn at shared keys came to.
#[derive(Debug)]
pub(super) enum Taken {
    Go(Claim),
    /// Too many want the same; a time was kept for this visit.
    Crowded {
        until: DateTime<Utc>,
        scope: Scope,
    },
    /// The clocks say that it takes longer than a connection is kept for, or that it is not for today.
    Never(Pace),
}

impl Book {
    /// Waits for a turn at every key, in the order of coming; `decide` looks at the states of the keys.
    pub(super) async fn take(
        &self,
        keys: &[Key],
        decide: impl Fn(&[ScopeState], DateTime<Utc>) -> Pace,
    ) -> Taken {
        let Some(mut place) = self.queue_up(keys) else { return self.send_away(keys) };
        let deadline = Instant::now() + TURN_WAIT_MAX;
        let doors: Vec<Arc<Semaphore>> = {
            let mut entries = self.lock();
            keys.iter().map(|key| Arc::clone(&entry(&mut entries, key).door)).collect()
        };
        for door in doors {
            match timeout_at(deadline, door.acquire_owned()).await {
                // doors are never closed
                Ok(passed) => place.doors.extend(passed),
                Err(_) => return self.send_away(keys),
            }
        }
        loop {
            let now = clock::now();
            let (decision, claim) = self.claim(keys, now, |states| decide(states, now));
            match (decision, claim) {
                (_, Some(mut claim)) => {
                    claim.place = keys.iter().any(|key| key.suffix().is_some()).then_some(place);
                    return Taken::Go(claim);
                }
                (Pace::Wait { until, .. }, None) => {
                    clock::sleep_until(until).await;
                }
                (Pace::Busy { scope }, None) => {
                    let Some(released) = self.released(keys, scope) else { return self.send_away(keys) };
                    if timeout_at(deadline, released.notified()).await.is_err() {
                        return self.send_away(keys);
                    }
                }
                (never, None) => return Taken::Never(never),
            }
        }
    }

    /// A place at the end of each queue, unless one is too long.
    fn queue_up(&self, keys: &[Key]) -> Option<Place> {
        let mut entries = self.lock();
        if keys.iter().any(|key| entry(&mut entries, key).is_crowded()) {
            return None;
        }
        for key in keys {
            entry(&mut entries, key).queued += 1;
        }
        Some(Place { book: self.clone(), keys: keys.to_vec(), doors: Vec::new() })
    }

    fn send_away(&self, keys: &[Key]) -> Taken {
        let (until, scope) = self.promise(keys);
        Taken::Crowded { until, scope }
    }

    /// A time for a visit that is sent away, and what it is for.
    pub(super) fn promise(&self, keys: &[Key]) -> (DateTime<Utc>, Scope) {
        let now = clock::now();
        let mut entries = self.lock();
        let promises = keys.iter().map(|key| (entry(&mut entries, key).promise(now), key.scope()));
        promises.max_by_key(|(until, _)| *until).unwrap_or((now, Scope::Address))
    }

    /// How long a turn that other workers take turns from was waited for.
    pub(super) fn observe_wait(&self, key: &Key, wait: Duration) {
        entry(&mut self.lock(), key).turn_wait = TimeDelta::from_std(wait).ok();
    }

    /// How long it takes until a visit that comes now has its turn, as far as the queues tell.
    pub(super) fn wait_at(&self, keys: &[Key]) -> Duration {
        let now = clock::now();
        let mut entries = self.lock();
        let waits = keys.iter().map(|key| entry(&mut entries, key).wait(now));
        waits.max().and_then(|wait| wait.to_std().ok()).unwrap_or_default().min(TURN_WAIT_MAX)
    }

    /// What tells that a request of the full key has ended. A release before this was called is told too.
    fn released(&self, keys: &[Key], scope: Scope) -> Option<Arc<Notify>> {
        let key = keys.iter().find(|key| key.scope() == scope)?;
        Some(Arc::clone(&entry(&mut self.lock(), key).released))
    }

    /// Lets `decide` look at the states of the keys, and claims them if it says go.
    fn claim(
        &self,
        keys: &[Key],
        now: DateTime<Utc>,
        decide: impl FnOnce(&[ScopeState]) -> Pace,
    ) -> (Pace, Option<Claim>) {
        let mut entries = self.lock();
        let states: Vec<ScopeState> = keys.iter().map(|key| entry(&mut entries, key).state).collect();
        let decision = decide(&states);
        if decision != Pace::Go {
            return (decision, None);
        }
        for key in keys {
            let entry = entry(&mut entries, key);
            entry.state.in_flight += 1;
            // where several may be under way, the gap is one between their starts
            entry.rest_from(now);
        }
        (decision, Some(Claim { book: self.clone(), keys: keys.to_vec(), place: None }))
    }

    /// Takes over what another process wrote.
    pub(super) fn learn(&self, key: &Key, next_ok_at: DateTime<Utc>) {
        let mut entries = self.lock();
        let state = &mut entry(&mut entries, key).state;
        state.next_ok_at = state.next_ok_at.max(Some(next_ok_at));
    }

    /// Counts a request that has ended. What it says about its platform moves the platform's rate.
    pub(super) fn finish(&self, keys: &[Key], now: DateTime<Utc>, sample: Option<Sample>) {
        let mut entries = self.lock();
        for key in keys {
            let entry = entry(&mut entries, key);
            if let (Key::Platform(platform), Some(rate), Some(sample)) = (key, &mut entry.rate, sample) {
                observe(platform, rate, sample);
            }
            if entry.state.scope == Scope::Address {
                entry.rest_from(now);
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
        tracing::info!(platform, %change, gap_ms, "the pace of a platform changed");
        metrics::platform_rate(platform, rate.gap());
    }
}

impl Claim {
    /// The request leaves at that time, and its gap counts from there.
    pub(super) fn rest_from(&self, leaves_at: DateTime<Utc>) {
        let mut entries = self.book.lock();
        for key in &self.keys {
            entry(&mut entries, key).rest_from(leaves_at);
        }
    }

    /// Lets the next visit of the queue to the door.
    pub(super) fn leave_queue(&mut self) {
        self.place = None;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut entries = self.book.lock();
        for key in &self.keys {
            let entry = entry(&mut entries, key);
            entry.state.in_flight = entry.state.in_flight.saturating_sub(1);
            entry.released.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "book_tests.rs"]
mod tests;
