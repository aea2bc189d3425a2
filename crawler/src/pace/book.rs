//! Clocks that visits share: one entry an address, one a public suffix under which anybody may register.
//!
//! A claim takes every key at once or none, so two visits cannot wait for each other.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ipnet::IpNet;
use manifest::Host;
use policy::address::budget_network;
use policy::delay::{Pace, PlatformRate, RateChange, Sample, Scope, ScopeState, day_of, platform_of};
use tokio::sync::Notify;

use crate::metrics;

/// Entries after which idle ones are dropped; about 20 MB.
const IDLE_ENTRIES_MAX: usize = 100_000;
/// A release that nobody was told of (its waiter gave up) is found out after this.
const RELEASE_POLL: Duration = Duration::from_secs(1);

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

    const fn scope(&self) -> Scope {
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
}

impl Entry {
    fn new(key: &Key) -> Self {
        let scope = key.scope();
        let rate = (scope == Scope::Platform).then(Box::default);
        Self { state: ScopeState::idle(scope), rate, released: Arc::default() }
    }

    /// From one request to the next.
    fn gap(&self) -> TimeDelta {
        let gap = self.rate.as_ref().map_or_else(|| self.state.scope.limits().gap, |rate| rate.gap());
        TimeDelta::from_std(gap).unwrap_or(TimeDelta::MAX)
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
}

impl Book {
    /// Lets `decide` look at the states of the keys, and claims them if it says go.
    pub(super) fn claim(
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
        (decision, Some(Claim { book: self.clone(), keys: keys.to_vec() }))
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
            entries.retain(|_, entry| entry.state.in_flight > 0 || entry.state.day == today);
        }
    }

    /// Waits until one of the keys is released.
    pub(super) async fn wait_for_release(&self, keys: &[Key]) {
        let released = {
            let mut entries = self.lock();
            keys.iter().map(|key| Arc::clone(&entry(&mut entries, key).released)).next()
        };
        if let Some(released) = released {
            // the time-out is no error: the states are looked at again either way
            drop(tokio::time::timeout(RELEASE_POLL, released.notified()).await);
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
