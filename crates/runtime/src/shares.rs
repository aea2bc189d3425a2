//! Fair shares of limited resources: connections, requests in flight, bytes buffered for clients, streams.
//!
//! There is a limit for all clients together and one for each, so that one client cannot exhaust the resource. The first share of a client
//! may exceed the client's limit, so that a response larger than the limit can still be sent. Such a share is at most half of the limit for
//! all clients, and the total by which all clients exceed their limits is at most the excess of one such share.
//!
//! If all requests need a resource, a few clients with full shares would leave nothing for others. Therefore the limit of a client
//! decreases with the free amount ([`Shares::shrinking`]): ten clients that take as much as they can leave a twentieth free, and each
//! further one slightly less. Units that are held for long, such as connections, are also released ([`Shares::holds_too_much`]), so that
//! twenty-five such clients leave a tenth free.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prefix length that identifies a customer network rather than one of its machines.
const IPV6_CLIENT_BITS: u32 = 64;
/// Prefix length of the largest network that providers assign to one customer. It contains 65,536 clients.
const IPV6_SITE_BITS: u32 = 48;

/// One resource with its limits.
#[derive(Debug)]
pub struct Shares {
    all_max: usize,
    is_shrinking: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    client_max: usize,
    all: usize,
    by_client: HashMap<IpAddr, usize>,
    /// The number of units that all clients of a customer hold together ([`customer`]).
    by_customer: HashMap<IpAddr, usize>,
}

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitReached {
    /// The limit of this client.
    Client,
    /// The limit of all clients together.
    All,
    /// The limit of one share, even if nothing else is held.
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
        Self::with_limits(all_max, client_max, false)
    }

    /// Limits for all clients together, and for each. The limit of each client decreases with the free amount. A client holds at most a
    /// third of what it leaves free, so that ten clients that take as much as they can leave a twentieth. A limit of more than a quarter of
    /// all units decreases in proportion. The clients of one IPv6 /48 together hold at most as much as they leave free. The first share of
    /// a client may be larger if it is one unit or leaves as much free as it takes.
    pub fn shrinking(all_max: usize, client_max: usize) -> Arc<Self> {
        Self::with_limits(all_max, client_max, true)
    }

    fn with_limits(all_max: usize, client_max: usize, is_shrinking: bool) -> Arc<Self> {
        let state = State { client_max, all: 0, by_client: HashMap::new(), by_customer: HashMap::new() };
        Arc::new(Self { all_max, is_shrinking, state: Mutex::new(state) })
    }

    /// Sets the limit for each client; it applies to new shares.
    pub fn set_client_max(&self, client_max: usize) {
        self.state().client_max = client_max;
    }

    /// Takes a share for a client, if the limits of the client and of all clients allow it.
    pub fn take(self: &Arc<Self>, client: IpAddr, amount: usize) -> Result<Share, LimitReached> {
        let mut share = Share { of: Arc::clone(self), client, amount: 0 };
        share.grow(amount)?;
        Ok(share)
    }

    /// The sum of all shares.
    pub fn taken(&self) -> usize {
        self.state().all
    }

    /// Whether the customer of a client holds at least the average of all customers with shares. False for a client without a share.
    pub fn holds_fair_share(&self, client: IpAddr) -> bool {
        let state = self.state();
        let held = state.by_customer.get(&customer(client)).copied().unwrap_or(0);
        state.by_client.contains_key(&client) && held.saturating_mul(state.by_customer.len()) >= state.all
    }

    /// Whether a client or its customer holds more than it could take now, while less than a quarter is free. Callers then release shares
    /// of this client, so that the same limits apply to early clients, and new clients find free units. Never true for a customer's only
    /// unit, or if limits do not decrease.
    pub fn holds_too_much(&self, client: IpAddr) -> bool {
        let state = self.state();
        let free = self.all_max.saturating_sub(state.all);
        let held = state.by_customer.get(&customer(client)).copied().unwrap_or(0);
        self.is_shrinking && free < self.all_max / 4 && held > 1 && !self.leaves_room(&state, client, 0, 0)
    }

    /// Whether the limit of a client is reached, not counting an amount that the caller holds for it.
    pub fn is_at_limit(&self, client: IpAddr, besides: usize) -> bool {
        let state = self.state();
        state.by_client.get(&client).is_some_and(|held| held.saturating_sub(besides) >= state.client_max)
    }

    /// Whether the limit for all clients is reached.
    pub fn is_exhausted(&self) -> bool {
        self.taken() >= self.all_max
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a client whose share of `own` grows by `more`, and the IPv6 site that it belongs to, leave enough free for others.
    fn leaves_room(&self, state: &State, client: IpAddr, own: usize, more: usize) -> bool {
        let free = self.all_max.saturating_sub(state.all.saturating_add(more));
        let fits = |before: Option<&usize>, max: usize| {
            let before = before.copied().unwrap_or(0);
            let rest = self.all_max.saturating_sub(max);
            let share = own.saturating_add(more);
            let is_first = before == own && (share == 1 || share <= free);
            is_first || before.saturating_add(more).saturating_mul(rest) <= free.saturating_mul(max)
        };
        let site = ipv6_site(client).and_then(|site| state.by_customer.get(&site));
        // a limit of less than a quarter of all units decreases later
        let client_max = state.client_max.max(self.all_max / 4);
        let site_max = state.client_max.max(self.all_max / 2);
        fits(state.by_client.get(&client), client_max) && fits(site, site_max)
    }
}

impl Share {
    /// Whether the share should be released, see [`Shares::holds_too_much`].
    pub fn is_too_much(&self) -> bool {
        self.of.holds_too_much(self.client)
    }

    pub const fn amount(&self) -> usize {
        self.amount
    }

    /// Enlarges the share to at least this amount.
    pub fn grow_to(&mut self, amount: usize) -> Result<(), LimitReached> {
        match amount.saturating_sub(self.amount) {
            0 => Ok(()),
            more => self.grow(more),
        }
    }

    /// Enlarges the share. A client's only share may grow to the limit of a first share.
    pub fn grow(&mut self, more: usize) -> Result<(), LimitReached> {
        if more == 0 {
            return Ok(());
        }
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
        if self.of.is_shrinking && !self.of.leaves_room(&state, self.client, self.amount, more) {
            let by_others = state.all.saturating_sub(before);
            let is_by_others = by_others > self.of.all_max / 2;
            return Err(if is_by_others { LimitReached::All } else { LimitReached::Client });
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
        *state.by_customer.entry(customer(self.client)).or_default() += more;
        drop(state);
        self.amount = amount;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut state = self.of.state();
        state.all = state.all.saturating_sub(self.amount);
        release(&mut state.by_client, self.client, self.amount);
        release(&mut state.by_customer, customer(self.client), self.amount);
    }
}

/// Subtracts an amount, and removes the entry if nothing is left.
fn release(held: &mut HashMap<IpAddr, usize>, holder: IpAddr, amount: usize) {
    let left = held.get(&holder).map_or(0, |held| held.saturating_sub(amount));
    if left == 0 {
        held.remove(&holder);
    } else {
        held.insert(holder, left);
    }
}

/// The unit of a client: an IPv4 address, or the /64 of an IPv6 address.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => prefix(v6, IPV6_CLIENT_BITS),
    }
}

/// The network of the customer that an IPv6 client belongs to: its /48. `None` for an IPv4 client.
pub fn ipv6_site(client: IpAddr) -> Option<IpAddr> {
    match client {
        IpAddr::V4(_) => None,
        IpAddr::V6(v6) => Some(prefix(v6, IPV6_SITE_BITS)),
    }
}

/// The network by which clients take turns: the address of an IPv4 client, or the /48 of an IPv6 client.
pub fn customer(client: IpAddr) -> IpAddr {
    ipv6_site(client).unwrap_or(client)
}

fn prefix(address: Ipv6Addr, bits: u32) -> IpAddr {
    let mask = u128::MAX << (128 - bits);
    IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
