//! Fair shares of limited resources: connections, requests in flight, bytes buffered for clients, streams.
//!
//! There is a limit for all clients together and one for each, so that one client cannot exhaust the resource. The first
//! share of a client may exceed its limit, so that a response larger than that can still be sent. It has at most half of the
//! limit for all clients, and what all clients have beyond their limits is bounded by what one such share has.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prefix length that identifies a customer network rather than one of its machines.
const IPV6_CLIENT_BITS: u32 = 64;

/// One resource with its limits.
#[derive(Debug)]
pub struct Shares {
    all_max: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    client_max: usize,
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// The limit of this client.
    Client,
    /// The limit of all clients together.
    All,
    /// The limit of one share, even if all other shares are free.
    Share,
}

/// A share of one client; released on drop.
#[derive(Debug)]
pub struct Share {
    of: Arc<Shares>,
    client: IpAddr,
    amount: usize,
}

impl Shares {
    /// Limits for all clients together, and for each.
    pub fn new(all_max: usize, client_max: usize) -> Arc<Self> {
        let state = State { client_max, all: 0, by_client: HashMap::new() };
        Arc::new(Self { all_max, state: Mutex::new(state) })
    }

    /// Sets the limit for each client; it applies to new shares.
    pub fn set_client_max(&self, client_max: usize) {
        self.state().client_max = client_max;
    }

    /// Takes a share for a client, if its limit and the limit for all clients permit.
    pub fn take(self: &Arc<Self>, client: IpAddr, amount: usize) -> Result<Share, LimitReached> {
        let mut share = Share { of: Arc::clone(self), client, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    /// The sum of all shares.
    pub fn taken(&self) -> usize {
        self.state().all
    }

    /// Whether a client holds at least the average of the clients that hold a share. False for a client without a share.
    pub fn holds_fair_share(&self, client: IpAddr) -> bool {
        let state = self.state();
        let held = state.by_client.get(&client).copied().unwrap_or(0);
        held > 0 && held.saturating_mul(state.by_client.len()) >= state.all
    }

    /// Whether the limit of a client is reached.
    pub fn is_at_limit(&self, client: IpAddr) -> bool {
        let state = self.state();
        state.by_client.get(&client).is_some_and(|held| *held >= state.client_max)
    }

    /// Whether the limit for all clients is reached.
    pub fn is_exhausted(&self) -> bool {
        self.taken() >= self.all_max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Enlarges the share.
    pub fn grow(&mut self, more: usize) -> Result<(), LimitReached> {
        let mut state = self.of.state();
        let client_max = state.client_max.min(self.of.all_max);
        let share_max = client_max.max(self.of.all_max / 2);
        let amount = self.amount.saturating_add(more);
        if amount > share_max {
            return Err(LimitReached::Share);
        }
        let before = state.by_client.get(&self.client).copied().unwrap_or(0);
        let held = before.saturating_add(more);
        let holds_others = before > self.amount;
        if holds_others && held > client_max {
            return Err(LimitReached::Client);
        }
        let all = state.all.saturating_add(more);
        if all > self.of.all_max {
            return Err(LimitReached::All);
        }
        if held > client_max {
            let others = state.by_client.iter().filter(|(client, _)| **client != self.client);
            let beyond: usize = others.map(|(_, held)| held.saturating_sub(client_max)).sum();
            if beyond.saturating_add(held) > share_max {
                return Err(LimitReached::All);
            }
        }
        state.all = all;
        state.by_client.insert(self.client, held);
        drop(state);
        self.amount = amount;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.all = state.all.saturating_sub(self.amount);
        let left = state.by_client.get(&self.client).map_or(0, |held| held.saturating_sub(self.amount));
        if left == 0 {
            state.by_client.remove(&self.client);
        } else {
            state.by_client.insert(self.client, left);
        }
    }
}

/// The unit of a client: an IPv4 address, or the /64 of an IPv6 address.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let mask = u128::MAX << (128 - IPV6_CLIENT_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const fn client(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))
    }

    #[test]
    fn one_client_cannot_exhaust_the_resource() {
        let shares = Shares::new(10, 4);
        let greedy: Vec<_> = (0..4).map(|_| shares.take(client(1), 1).unwrap()).collect();
        assert_eq!(shares.take(client(1), 1).unwrap_err(), LimitReached::Client);
        let others = [shares.take(client(2), 3).unwrap(), shares.take(client(3), 3).unwrap()];
        assert_eq!(shares.take(client(4), 1).unwrap_err(), LimitReached::All);
        assert!(shares.is_exhausted());
        drop((greedy, others));
        assert_eq!(shares.taken(), 0);
        assert!(shares.state().by_client.is_empty(), "clients that hold nothing are forgotten");
    }

    #[test]
    fn the_first_share_of_a_client_may_exceed_its_limit_up_to_half_of_all() {
        let shares = Shares::new(32, 8);
        let mut large = shares.take(client(1), 15).unwrap();
        assert_eq!(large.grow(1), Ok(()));
        assert_eq!(large.grow(1), Err(LimitReached::Share), "even if nothing else is held");
        assert_eq!(shares.take(client(2), 17).unwrap_err(), LimitReached::Share);
        assert_eq!(shares.take(client(1), 1).unwrap_err(), LimitReached::Client);
        let others = [shares.take(client(2), 8).unwrap(), shares.take(client(3), 8).unwrap()];
        assert_eq!(shares.take(client(4), 1).unwrap_err(), LimitReached::All);
        drop((large, others));
        assert_eq!(shares.taken(), 0);
    }

    #[test]
    fn large_first_shares_leave_half_to_clients_within_their_limits() {
        let shares = Shares::new(32, 8);
        let large = [shares.take(client(1), 12).unwrap(), shares.take(client(2), 12).unwrap()];
        assert_eq!(
            shares.take(client(3), 9).unwrap_err(),
            LimitReached::All,
            "12 + 12 are 8 beyond the limits"
        );
        let within = shares.take(client(3), 8).unwrap();
        drop(large);
        assert!(shares.take(client(4), 16).is_ok());
        drop(within);
    }

    #[test]
    fn the_fair_share_is_the_average_of_clients_with_a_share() {
        let shares = Shares::new(1_000, 1_000);
        assert!(!shares.holds_fair_share(client(1)), "a client that holds nothing has none");
        let greedy: Vec<_> = (0..90).map(|_| shares.take(client(1), 1).unwrap()).collect();
        assert!(shares.holds_fair_share(client(1)), "alone, it holds everything");
        let _modest: Vec<_> = (0..10).map(|_| shares.take(client(2), 1).unwrap()).collect();
        assert!(shares.holds_fair_share(client(1)) && !shares.holds_fair_share(client(2)));
        assert!(!shares.holds_fair_share(client(3)));
        drop(greedy);
        assert!(shares.holds_fair_share(client(2)));
    }

    #[test]
    fn a_new_limit_applies_to_new_shares() {
        let shares = Shares::new(10, 1);
        let _first = shares.take(client(1), 1).unwrap();
        assert_eq!(shares.take(client(1), 1).unwrap_err(), LimitReached::Client);
        shares.set_client_max(2);
        assert!(shares.take(client(1), 1).is_ok());
    }
}
