//! Tests of limits and fair shares of clients that take much or little.

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
    assert_eq!(shares.take(client(3), 9).unwrap_err(), LimitReached::All, "12 + 12 are 8 beyond the limits");
    let within = shares.take(client(3), 8).unwrap();
    drop(large);
    assert!(shares.take(client(4), 16).is_ok());
    drop(within);
}

#[test]
fn the_fair_share_is_the_average_of_clients_with_a_share() {
    let shares = Shares::new(1_000, 1_000);
    assert!(!shares.holds_fair_share(client(1)), "a client that holds nothing has no fair share");
    let greedy: Vec<_> = (0..90).map(|_| shares.take(client(1), 1).unwrap()).collect();
    assert!(shares.holds_fair_share(client(1)), "alone, it holds everything");
    let _modest: Vec<_> = (0..10).map(|_| shares.take(client(2), 1).unwrap()).collect();
    assert!(shares.holds_fair_share(client(1)) && !shares.holds_fair_share(client(2)));
    assert!(!shares.holds_fair_share(client(3)));
    drop(greedy);
    assert!(shares.holds_fair_share(client(2)));
    let of = |network: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, network, 0, 0, 0, 0));
    let _networks: Vec<_> = (0..90).map(|network| shares.take(of(network), 1).unwrap()).collect();
    assert!(shares.holds_fair_share(of(0)), "the networks of one customer have one fair share");
    assert!(!shares.holds_fair_share(client(2)), "10 of 100, of two customers");
}

/// The shares of these clients after each has taken as much as it gets.
fn all_that_is_granted(shares: &Arc<Shares>, clients: impl IntoIterator<Item = IpAddr>) -> Vec<Share> {
    let granted = |client| std::iter::from_fn(move || shares.take(client, 1).ok());
    clients.into_iter().flat_map(granted).collect()
}

#[test]
fn many_greedy_clients_leave_a_part_free() {
    let shares = Shares::shrinking(2_000, 500);
    let first = all_that_is_granted(&shares, [client(1)]);
    assert_eq!(first.len(), 500, "a client alone has its whole limit");
    let more = all_that_is_granted(&shares, (2..=10).map(client));
    let free = 2_000 - shares.taken();
    assert!((100..=125).contains(&free), "{free}");
    assert_eq!(shares.take(client(10), 1).unwrap_err(), LimitReached::All, "the others hold too much");
    let modest = all_that_is_granted(&shares, [client(11)]);
    assert!(modest.len() >= 20, "{}", modest.len());
    drop((first, more, modest));
    assert_eq!(all_that_is_granted(&shares, [client(11)]).len(), 500, "the limit grows again");
}

#[test]
fn greedy_clients_that_release_their_excess_leave_a_tenth() {
    let shares = Shares::shrinking(2_000, 500);
    let mut greedy: Vec<(IpAddr, Vec<Share>)> =
        (1..=25).map(|number| (client(number), all_that_is_granted(&shares, [client(number)]))).collect();
    assert!(2_000 - shares.taken() < 10, "together they hold nearly all units");
    assert!(shares.holds_too_much(client(1)) && !shares.holds_too_much(client(100)));
    for _ in 0..600 {
        for (client, held) in &mut greedy {
            if shares.holds_too_much(*client) {
                held.pop();
            }
            held.extend(shares.take(*client, 1).ok());
        }
    }
    let free = 2_000 - shares.taken();
    assert!((200..=230).contains(&free), "{free}");
    assert!(greedy.iter().all(|(_, held)| held.len() > 60), "each client holds about the same amount");
    assert!(all_that_is_granted(&shares, [client(100)]).len() >= 40, "a new client gets a share");
}

#[test]
fn the_only_unit_of_a_client_is_never_too_much() {
    let shares = Shares::shrinking(40, 10);
    let _single: Vec<Share> = (1..=40).map(|number| shares.take(client(number), 1).unwrap()).collect();
    assert!((1..=40).all(|number| !shares.holds_too_much(client(number))));
    let of = |network: u16| IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, network, 0, 0, 0, 0));
    let shares = Shares::shrinking(40, 10);
    let _site: Vec<Share> = (0..20).map(|network| shares.take(of(network), 1).unwrap()).collect();
    let _others: Vec<Share> = (1..=16).map(|number| shares.take(client(number), 1).unwrap()).collect();
    assert!(shares.holds_too_much(of(3)), "the customer of the client holds half of all units");
    let counted = Shares::new(4, 4);
    let _all = all_that_is_granted(&counted, [client(1)]);
    assert!(!counted.holds_too_much(client(1)), "these limits do not decrease");
}

#[test]
fn the_clients_of_one_ipv6_site_hold_at_most_half() {
    let shares = Shares::shrinking(2_000, 500);
    let of = |site: u16, network: u16| {
        client_network(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, 1)))
    };
    let greedy = all_that_is_granted(&shares, (0..2_000).map(|network| of(1, network)));
    assert_eq!(greedy.len(), 1_000, "65,536 clients, one customer");
    assert!(all_that_is_granted(&shares, [of(2, 0)]).len() > 200);
    assert!(all_that_is_granted(&shares, [client(1)]).len() > 200);
    drop(greedy);
    assert!(shares.state().by_customer.is_empty(), "networks that hold nothing are forgotten");
    let counted = Shares::new(2_000, 500);
    let held = all_that_is_granted(&counted, (0..4).map(|network| of(1, network)));
    assert_eq!(held.len(), 2_000, "other limits do not decrease");
    let small = Shares::shrinking(2_000, 2);
    let held = all_that_is_granted(&small, (1..=100).map(client));
    assert_eq!(held.len(), 200, "a small limit decreases only when little is free");
}

#[test]
fn a_new_limit_applies_to_new_shares() {
    let shares = Shares::new(10, 1);
    let _first = shares.take(client(1), 1).unwrap();
    assert_eq!(shares.take(client(1), 1).unwrap_err(), LimitReached::Client);
    shares.set_client_max(2);
    assert!(shares.take(client(1), 1).is_ok());
}

/// A document of more than a quarter of all units is read in one share, which grows to its actual length.
#[test]
fn only_share_of_a_client_can_grow_to_the_size_of_a_first_share() {
    let shares = Shares::shrinking(32, 8);
    let mut only = shares.take(client(1), 12).unwrap();
    assert_eq!(only.grow(0), Ok(()));
    assert_eq!(only.grow(4), Ok(()));
    assert_eq!(only.grow(1), Err(LimitReached::Share));
    let mut other = shares.take(client(2), 1).unwrap();
    assert!(other.grow(9).is_err(), "it would leave less free than it takes");
    assert_eq!(shares.take(client(1), 1).unwrap_err(), LimitReached::Client);
}
