//! Assigns addresses to the workers of a fleet.
//!
//! Each group of addresses has one owner, so that one process enforces the limits of an address. The preferred owner is determined by the
//! names of the workers (rendezvous hashing), so a worker that joins or leaves moves only its own share of the groups. The store records
//! the actual owner.

use std::net::IpAddr;

use crate::address::{ADDRESS_GROUPS, address_group};
use crate::delay::platform_of;
use crate::spread::Seed;

/// The group of an address. The addresses of a platform form one group, because they share one rate.
fn group_of(address: IpAddr) -> u16 {
    platform_of(address).map_or_else(
        || address_group(address),
        |platform| u16::try_from(Seed::of(platform).below(ADDRESS_GROUPS.into())).unwrap_or_default(),
    )
}

/// The index in `workers` of the preferred owner: the one with the highest hash of name and group.
pub fn worker_for(group: u16, workers: &[Seed]) -> Option<usize> {
    let hash = |worker: &Seed| worker.with_counter(group.into()).below(u64::MAX);
    (0..workers.len()).max_by_key(|index| workers.get(*index).map(hash))
}

/// The addresses that a visit uses for a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The chosen address, followed by the fallback addresses, with owned ones first.
    pub addresses: Vec<IpAddr>,
    /// The group of the first address.
    pub group: u16,
}

/// Chooses one of the addresses of a host: one in an owned group, otherwise the one that every worker would choose, so that workers do not
/// hand a site back and forth. Prefers IPv4, because not every machine has IPv6.
pub fn choose(addresses: &[IpAddr], is_owned: impl Fn(u16) -> bool) -> Option<Choice> {
    let first_family = |address: &&IpAddr| address.is_ipv4() || addresses.iter().all(IpAddr::is_ipv6);
    let owned = |address: &IpAddr| is_owned(group_of(*address));
    let candidates = || addresses.iter().filter(first_family).copied();
    let chosen = candidates().find(|address| owned(address)).or_else(|| candidates().min())?;
    let mut others: Vec<IpAddr> = addresses.iter().copied().filter(|address| *address != chosen).collect();
    others.sort_by_key(|address| !owned(address));
    Some(Choice { addresses: std::iter::once(chosen).chain(others).collect(), group: group_of(chosen) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn workers(count: usize) -> Vec<Seed> {
        (0..count).map(|number| Seed::of(&format!("host{number}/1"))).collect()
    }

    #[test]
    fn groups_addresses_by_platform_and_by_neighbourhood() {
        let group = |text: &str| group_of(text.parse().unwrap());
        assert_eq!(group("104.16.1.1"), group("2606:4700::1111"));
        assert_eq!(group("8.8.8.8"), group("8.8.8.4"));
        assert_ne!(group("8.8.8.8"), group("8.8.4.4"));
    }

    #[test]
    fn spreads_groups_evenly_and_moves_few_to_a_new_worker() {
        let (three, four) = (workers(3), workers(4));
        let mut counts = [0_u32; 4];
        for group in 0..ADDRESS_GROUPS {
            let (before, after) = (worker_for(group, &three).unwrap(), worker_for(group, &four).unwrap());
            assert!(after == before || after == 3, "group {group} moved from {before} to {after}");
            counts[after] += 1;
        }
        assert!(counts.iter().all(|count| (900..1_150).contains(count)), "{counts:?}");
        assert_eq!(worker_for(1, &[]), None);
    }

    #[test]
    fn chooses_an_owned_address_and_otherwise_the_same_one_everywhere() {
        let all = addresses(&["9.9.9.9", "8.8.8.8", "2a00:1::1", "2a00:1::2"]);
        let ours = group_of(all[1]);
        let choice = choose(&all, |group| group == ours).unwrap();
        assert_eq!((choice.addresses[0], choice.group), (all[1], ours));
        assert_eq!(choice.addresses.len(), all.len(), "the other addresses are fallbacks");
        let reversed: Vec<IpAddr> = all.iter().rev().copied().collect();
        for order in [&all, &reversed] {
            let choice = choose(order, |_| false).unwrap();
            assert_eq!((choice.addresses[0], choice.group), (all[1], ours), "the lowest IPv4 address");
        }
        let six = choose(&all[2..], |group| group == group_of(all[3])).unwrap();
        assert_eq!(six.addresses, all[2..], "one /48");
        assert_eq!(choose(&[], |_| true), None);
    }

    proptest! {
        #[test]
        fn chooses_an_owned_address_of_the_family_if_there_is_one(bits: Vec<u32>, ours: u16) {
            let all: Vec<IpAddr> = bits.iter().map(|bits| IpAddr::from(bits.to_be_bytes())).collect();
            let is_owned = |group: u16| group % 3 == ours % 3;
            let choice = choose(&all, is_owned);
            prop_assert_eq!(choice.is_some(), !all.is_empty());
            if let Some(choice) = choice {
                let has_owned = all.iter().any(|address| is_owned(group_of(*address)));
                prop_assert_eq!(is_owned(choice.group), has_owned);
                prop_assert_eq!(choice.group, group_of(choice.addresses[0]));
            }
        }
    }
}
