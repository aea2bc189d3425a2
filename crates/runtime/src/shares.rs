//! Fair shares of what this process has little of: connections, requests under way, bytes kept for clients, streams.
//!
//! There is a limit for all clients together and one for each, so that one client cannot use up what all need. A client
//! that holds nothing yet gets its first share whatever its size, as long as all together have room for it: an answer
//! larger than one client's limit can still be read.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an IPv6 address that name a customer rather than one of its machines.
const IPV6_CUSTOMER_BITS: u32 = 64;

/// One kind of thing that is shared.
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

/// Whose limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// This client's own.
    Client,
    /// That of all clients together.
    All,
}

/// What one client holds; given back when it is dropped.
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

    /// Another limit for each client, for what is taken from now on.
    pub fn set_client_max(&self, client_max: usize) {
        self.state().client_max = client_max;
    }

    /// Takes a share for a client, if its limit and that of all leave room for it.
    pub fn take(self: &Arc<Self>, client: IpAddr, amount: usize) -> Result<Share, Full> {
        let mut share = Share { of: Arc::clone(self), client, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    /// What all clients hold together.
    pub fn taken(&self) -> usize {
        self.state().all
    }

    /// Whether a client holds its fair part of what is taken, or more: all of it, divided by the clients that hold some.
    /// A client that holds nothing does not.
    pub fn has_fair_part(&self, client: IpAddr) -> bool {
        let state = self.state();
        let held = state.by_client.get(&client).copied().unwrap_or(0);
        held > 0 && held.saturating_mul(state.by_client.len()) >= state.all
    }

    /// Whether a client can take nothing more.
    pub fn is_at_limit(&self, client: IpAddr) -> bool {
        let state = self.state();
        state.by_client.get(&client).is_some_and(|held| *held >= state.client_max)
    }

    /// Whether no client can take anything more.
    pub fn is_used_up(&self) -> bool {
        self.taken() >= self.all_max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes more of the same.
    pub fn grow(&mut self, more: usize) -> Result<(), Full> {
        let mut state = self.of.state();
        let held = state.by_client.get(&self.client).copied().unwrap_or(0);
        let holds_others = held > self.amount;
        if holds_others && held.saturating_add(more) > state.client_max {
            return Err(Full::Client);
        }
        let others_hold = state.all > self.amount;
        if others_hold && state.all.saturating_add(more) > self.of.all_max {
            return Err(Full::All);
        }
        state.all = state.all.saturating_add(more);
        state.by_client.insert(self.client, held.saturating_add(more));
        drop(state);
        self.amount = self.amount.saturating_add(more);
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

/// What counts as one client: an IPv4 address, or the part of an IPv6 address that names a customer.
pub fn customer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => {
            let mask = u128::MAX << (128 - IPV6_CUSTOMER_BITS);
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
    fn one_client_cannot_use_up_what_all_share() {
        let shares = Shares::new(10, 4);
        let greedy: Vec<_> = (0..4).map(|_| shares.take(client(1), 1).unwrap()).collect();
        assert_eq!(shares.take(client(1), 1).unwrap_err(), Full::Client);
        let others = [shares.take(client(2), 3).unwrap(), shares.take(client(3), 3).unwrap()];
        assert_eq!(shares.take(client(4), 1).unwrap_err(), Full::All);
        assert!(shares.is_used_up());
        drop((greedy, others));
        assert_eq!(shares.taken(), 0);
        assert!(shares.state().by_client.is_empty(), "clients that hold nothing are forgotten");
    }

    #[test]
    fn the_first_share_of_a_client_may_be_larger_than_its_limit() {
        let shares = Shares::new(10, 4);
        let mut large = shares.take(client(1), 9).unwrap();
        assert_eq!(large.grow(2), Ok(()), "no other client holds anything");
        assert_eq!(shares.take(client(1), 1).unwrap_err(), Full::Client);
        assert_eq!(shares.take(client(2), 1).unwrap_err(), Full::All);
        drop(large);
        let small = shares.take(client(2), 2).unwrap();
        assert_eq!(shares.take(client(1), 9).unwrap_err(), Full::All);
        drop(small);
    }

    #[test]
    fn a_fair_part_is_what_is_taken_divided_by_those_who_hold_some() {
        let shares = Shares::new(1_000, 1_000);
        assert!(!shares.has_fair_part(client(1)), "a client that holds nothing has none");
        let greedy: Vec<_> = (0..90).map(|_| shares.take(client(1), 1).unwrap()).collect();
        assert!(shares.has_fair_part(client(1)), "alone, it holds everything");
        let _modest: Vec<_> = (0..10).map(|_| shares.take(client(2), 1).unwrap()).collect();
        assert!(shares.has_fair_part(client(1)) && !shares.has_fair_part(client(2)));
        assert!(!shares.has_fair_part(client(3)));
        drop(greedy);
        assert!(shares.has_fair_part(client(2)));
    }

    #[test]
    fn a_new_limit_holds_for_what_is_taken_from_then_on() {
        let shares = Shares::new(10, 1);
        let _first = shares.take(client(1), 1).unwrap();
        assert_eq!(shares.take(client(1), 1).unwrap_err(), Full::Client);
        shares.set_client_max(2);
        assert!(shares.take(client(1), 1).is_ok());
    }
}
