//! Decides which IP addresses may be connected to.
//!
//! Refuses every address that is not globally reachable ([`AddressRefusal`]). Only networks that the operator names are
//! exempt. The connector checks every resolved address, for every hop and every retry.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use manifest::{AddressRefusal, SiteScope};

use crate::spread::Seed;

/// Whether an address may be connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressVerdict {
    /// Globally reachable; every politeness rule applies.
    Global,
    /// In a network of the operator; exempt from budgets and from the minimum delay.
    Own(IpNet),
    /// Never connected to.
    Refused(AddressRefusal),
}

/// The networks that the operator named as their own (`--allow-addresses`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNetworks(Vec<IpNet>);

impl OwnNetworks {
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// The host names that the operator's seeds may have. Own networks may have private names.
    pub const fn site_scope(&self) -> SiteScope {
        if self.0.is_empty() { SiteScope::Public } else { SiteScope::WithPrivateNames }
    }

    fn containing(&self, address: IpAddr) -> Option<IpNet> {
        self.0.iter().copied().find(|network| network.contains(&address))
    }

    /// The verdict on a resolved address.
    pub fn judge(&self, address: IpAddr) -> AddressVerdict {
        let inner = unwrap_mapped(address);
        if let Some(network) = self.containing(address).or_else(|| self.containing(inner)) {
            return AddressVerdict::Own(network);
        }
        AddressRefusal::of(inner).map_or(AddressVerdict::Global, AddressVerdict::Refused)
    }
}

/// Converts a mapped IPv4 address to IPv4, as the operating system does.
fn unwrap_mapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The number of address groups. A worker of a fleet owns whole groups.
pub const ADDRESS_GROUPS: u16 = 4_096;

/// The group of an address: a hash of its /24 or /48, so that neighbouring addresses of a hoster are in one group.
pub fn address_group(address: IpAddr) -> u16 {
    let network = shorten(unwrap_mapped(address), 24, 48);
    let group = Seed::of(&network.to_string()).below(u64::from(ADDRESS_GROUPS));
    u16::try_from(group).unwrap_or_default()
}

/// The unit of a budget: one IPv4 address, or an IPv6 /56, which is the usual assignment to one customer.
pub fn budget_network(address: IpAddr) -> IpNet {
    shorten(unwrap_mapped(address), 32, 56)
}

fn shorten(address: IpAddr, bits_v4: u8, bits_v6: u8) -> IpNet {
    match address {
        IpAddr::V4(address) => IpNet::V4(Ipv4Net::new_assert(address, bits_v4).trunc()),
        IpAddr::V6(address) => IpNet::V6(Ipv6Net::new_assert(address, bits_v6).trunc()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn judge(address: &str) -> AddressVerdict {
        OwnNetworks::default().judge(address.parse().unwrap())
    }

    #[test]
    fn refuses_special_ranges_at_both_ends() {
        let table = [
            ("0.0.0.0", AddressRefusal::ThisNetwork),
            ("0.255.255.255", AddressRefusal::ThisNetwork),
            ("10.0.0.0", AddressRefusal::Private),
            ("10.255.255.255", AddressRefusal::Private),
            ("100.64.0.0", AddressRefusal::Shared),
            ("100.127.255.255", AddressRefusal::Shared),
            ("127.0.0.1", AddressRefusal::Loopback),
            ("127.255.255.255", AddressRefusal::Loopback),
            ("169.254.169.254", AddressRefusal::LinkLocal),
            ("172.16.0.0", AddressRefusal::Private),
            ("172.31.255.255", AddressRefusal::Private),
            ("192.0.0.8", AddressRefusal::ProtocolAssignment),
            ("192.0.2.1", AddressRefusal::Documentation),
            ("192.88.99.1", AddressRefusal::ProtocolAssignment),
            ("192.168.1.1", AddressRefusal::Private),
            ("198.18.0.0", AddressRefusal::Benchmarking),
            ("198.19.255.255", AddressRefusal::Benchmarking),
            ("198.51.100.7", AddressRefusal::Documentation),
            ("203.0.113.9", AddressRefusal::Documentation),
            ("224.0.0.1", AddressRefusal::Multicast),
            ("239.255.255.255", AddressRefusal::Multicast),
            ("240.0.0.1", AddressRefusal::Reserved),
            ("255.255.255.255", AddressRefusal::Reserved),
            ("::", AddressRefusal::ThisNetwork),
            ("::1", AddressRefusal::Loopback),
            ("::8.8.8.8", AddressRefusal::NotGlobalUnicast),
            ("fc00::1", AddressRefusal::Private),
            ("fdff::1", AddressRefusal::Private),
            ("fe80::1", AddressRefusal::LinkLocal),
            ("febf::1", AddressRefusal::LinkLocal),
            ("fec0::1", AddressRefusal::NotGlobalUnicast),
            ("ff02::1", AddressRefusal::Multicast),
            ("100::1", AddressRefusal::NotGlobalUnicast),
            ("2001:2::1", AddressRefusal::ProtocolAssignment),
            ("2001:10::1", AddressRefusal::ProtocolAssignment),
            ("2001:db8::1", AddressRefusal::Documentation),
            ("3fff:fff::1", AddressRefusal::Documentation),
            ("5f00::1", AddressRefusal::NotGlobalUnicast),
            ("64:ff9b:1::1", AddressRefusal::NotGlobalUnicast),
            ("4000::1", AddressRefusal::NotGlobalUnicast),
        ];
        for (address, reason) in table {
            assert_eq!(judge(address), AddressVerdict::Refused(reason), "{address}");
        }
    }

    #[test]
    fn classifies_tunnels_by_their_embedded_addresses() {
        let table = [
            ("::ffff:127.0.0.1", Some(AddressRefusal::Loopback)),
            ("::ffff:169.254.169.254", Some(AddressRefusal::LinkLocal)),
            ("::ffff:8.8.8.8", None),
            ("2002:7f00:1::1", Some(AddressRefusal::Loopback)),
            ("2002:0a00:1::1", Some(AddressRefusal::Private)),
            ("2002:0808:0808::1", None),
            ("64:ff9b::10.0.0.1", Some(AddressRefusal::Private)),
            ("64:ff9b::8.8.8.8", None),
            // Teredo: server 8.8.8.8, client 192.168.0.1 flipped
            ("2001:0:808:808:0:0:3f57:fffe", Some(AddressRefusal::Private)),
            // Teredo: server 10.0.0.1, client 8.8.8.8 flipped
            ("2001:0:a00:1:0:0:f7f7:f7f7", Some(AddressRefusal::Private)),
        ];
        for (address, reason) in table {
            let expected = reason.map_or(AddressVerdict::Global, AddressVerdict::Refused);
            assert_eq!(judge(address), expected, "{address}");
        }
    }

    #[test]
    fn addresses_next_to_special_ranges_are_global() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2606:4700::1",
            "2a00::1",
        ] {
            assert_eq!(judge(address), AddressVerdict::Global, "{address}");
        }
    }

    #[test]
    fn exempts_only_named_networks() {
        let own = OwnNetworks::new(["127.0.0.0/16".parse().unwrap(), "fd00::/8".parse().unwrap()]);
        assert_eq!(
            own.judge("127.0.5.6".parse().unwrap()),
            AddressVerdict::Own("127.0.0.0/16".parse().unwrap())
        );
        assert_eq!(
            own.judge("::ffff:127.0.5.6".parse().unwrap()),
            AddressVerdict::Own("127.0.0.0/16".parse().unwrap())
        );
        assert!(matches!(own.judge("fd12::1".parse().unwrap()), AddressVerdict::Own(_)));
        assert_eq!(
            own.judge("127.1.0.1".parse().unwrap()),
            AddressVerdict::Refused(AddressRefusal::Loopback)
        );
    }

    #[test]
    fn addresses_of_one_network_share_group_and_budget() {
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(address_group(parse("8.8.8.8")), address_group(parse("8.8.8.250")));
        assert_eq!(address_group(parse("::ffff:8.8.8.8")), address_group(parse("8.8.8.8")));
        assert_eq!(budget_network(parse("8.8.8.8")).to_string(), "8.8.8.8/32");
        assert_eq!(budget_network(parse("2a00:1:2:3ff::1")).to_string(), "2a00:1:2:300::/56");
    }

    proptest! {
        /// Addresses that the standard library classifies as special are refused, in IPv4 and mapped into IPv6.
        #[test]
        fn refuses_every_special_address(bits: u32) {
            let address = Ipv4Addr::from(bits);
            let special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_broadcast() || address.is_multicast() || address.is_documentation()
                || address.is_unspecified();
            for form in [IpAddr::V4(address), IpAddr::V6(address.to_ipv6_mapped())] {
                let verdict = OwnNetworks::default().judge(form);
                prop_assert!(!special || matches!(verdict, AddressVerdict::Refused(_)), "{form}: {verdict:?}");
            }
        }

        #[test]
        fn address_group_is_less_than_the_number_of_groups(bits: u128) {
            prop_assert!(address_group(IpAddr::V6(Ipv6Addr::from(bits))) < ADDRESS_GROUPS);
        }
    }
}
