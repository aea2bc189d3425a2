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
use policy::delay::{Pace, Scope, ScopeState, day_of};
use tokio::sync::Notify;

/// Entries after which idle ones are dropped; about 20 MB.
const IDLE_ENTRIES_MAX: usize = 100_000;
/// A release that nobody was told of (its waiter gave up) is found out after this.
const RELEASE_POLL: Duration = Duration::from_secs(1);

/// What visits share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Address(IpNet),
    /// A private suffix of the Public Suffix List: `github.io`.
    Suffix(String),
}

impl Key {
    pub(super) fn of_address(address: IpAddr) -> Self {
        Self::Address(budget_network(address))
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
            Self::Suffix(_) => Scope::PublicSuffix,
        }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    state: ScopeState,
    released: Arc<Notify>,
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
        decide: impl FnOnce(&[ScopeState]) -> Pace,
    ) -> (Pace, Option<Claim>) {
        let mut entries = self.lock();
        let states: Vec<ScopeState> = keys.iter().map(|key| entry(&mut entries, key).state).collect();
        let decision = decide(&states);
        if decision != Pace::Go {
            return (decision, None);
        }
        for key in keys {
            let state = &mut entry(&mut entries, key).state;
            state.in_flight += 1;
        }
        (decision, Some(Claim { book: self.clone(), keys: keys.to_vec() }))
    }

    /// Takes over what another process wrote.
    pub(super) fn learn(&self, key: &Key, next_ok_at: DateTime<Utc>) {
        let mut entries = self.lock();
        let state = &mut entry(&mut entries, key).state;
        state.next_ok_at = state.next_ok_at.max(Some(next_ok_at));
    }

    /// Counts a request that has ended.
    pub(super) fn finish(&self, keys: &[Key], now: DateTime<Utc>) {
        let mut entries = self.lock();
        for key in keys {
            let state = &mut entry(&mut entries, key).state;
            let gap = TimeDelta::from_std(state.scope.limits().gap).unwrap_or_default();
            state.next_ok_at = Some(now + gap);
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
    entries
        .entry(key.clone())
        .or_insert_with(|| Entry { state: ScopeState::idle(key.scope()), released: Arc::default() })
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
mod tests {
    use super::*;
    use policy::delay::{Network, next_request_at};

    #[test]
    fn an_address_is_claimed_by_one_request_and_then_rests() {
        let book = Book::default();
        let keys = [Key::of_address("93.184.216.34".parse().unwrap())];
        let now = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
        let decide = |states: &[ScopeState]| next_request_at(states, Network::Global, now);
        let (_, claim) = book.claim(&keys, decide);
        assert!(claim.is_some());
        assert!(matches!(book.claim(&keys, decide).0, Pace::Busy { scope: Scope::Address }));
        book.finish(&keys, now);
        drop(claim);
        assert!(matches!(book.claim(&keys, decide).0, Pace::Wait { scope: Scope::Address, .. }));
    }

    #[test]
    fn neighbours_under_a_private_suffix_share_its_clock() {
        let key = |name: &str| Key::of_private_suffix(&Host::parse(name).unwrap());
        assert_eq!(key("alice.github.io"), key("docs.bob.github.io"));
        assert!(key("alice.github.io").is_some());
        assert_eq!(key("example.co.uk"), None);
    }

    #[test]
    fn addresses_of_one_customer_are_one_key() {
        let key = |text: &str| Key::of_address(text.parse().unwrap());
        assert_eq!(key("2001:db8:0:1::1"), key("2001:db8:0:1::2"));
        assert_ne!(key("93.184.216.34"), key("93.184.216.35"));
    }
}
