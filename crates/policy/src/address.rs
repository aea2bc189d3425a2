//! Decides which IP addresses may be connected to.
//!
//! Refuses every range that is not globally reachable (RFC 6890 and the IANA registries), also when it is embedded in an
//! IPv6 address: mapped, 6to4, Teredo, NAT64. All of IPv6 outside `2000::/3` is refused, ranges assigned in the future
//! included. Only networks that the operator names are exempt. The connector checks every resolved address, for every hop
//! and every retry.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use manifest::{SiteScope, string_enum};

use crate::spread::Seed;

string_enum! {
    /// Why an address is refused.
    AddressRefusal, "address refusal" {
        /// 0.0.0.0/8, or the unspecified address.
        ThisNetwork = "this_network",
        /// 127.0.0.0/8, ::1.
        Loopback = "loopback",
        /// RFC 1918, or IPv6 unique local.
        Private = "private",
        /// 100.64.0.0/10, carrier-grade NAT.
        Shared = "shared",
        /// 169.254.0.0/16, fe80::/10; includes the metadata services of clouds.
        LinkLocal = "link_local",
        /// IETF protocol assignments and deprecated anycast.
        ProtocolAssignment = "protocol_assignment",
        /// Addresses for examples in documents.
        Documentation = "documentation",
        /// Addresses for measuring devices.
        Benchmarking = "benchmarking",
        /// Multicast groups.
        Multicast = "multicast",
        /// 240.0.0.0/4 and the broadcast address.
        Reserved = "reserved",
        /// IPv6 outside global unicast space.
        NotGlobalUnicast = "not_global_unicast",
    }
}

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
        refusal(inner).map_or(AddressVerdict::Global, AddressVerdict::Refused)
    }
}

/// Special-purpose IPv4 ranges (IANA registry, RFC 6890) that are not globally reachable.
const REFUSED_V4: &[(Ipv4Addr, u8, AddressRefusal)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, AddressRefusal::ThisNetwork),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressRefusal::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressRefusal::Shared),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressRefusal::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressRefusal::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressRefusal::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressRefusal::ProtocolAssignment),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressRefusal::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressRefusal::ProtocolAssignment),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressRefusal::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressRefusal::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressRefusal::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressRefusal::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, AddressRefusal::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, AddressRefusal::Reserved),
];

/// Special-purpose IPv6 ranges (IANA registry). `2001::/23` holds benchmarking, ORCHID, AMT and anycast assignments, none
/// of which serves the web; Teredo is inside it and is unwrapped before this table is read.
const REFUSED_V6: &[(Ipv6Addr, u8, AddressRefusal)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, AddressRefusal::ThisNetwork),
    (Ipv6Addr::LOCALHOST, 128, AddressRefusal::Loopback),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, AddressRefusal::Private),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, AddressRefusal::LinkLocal),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, AddressRefusal::Multicast),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, AddressRefusal::ProtocolAssignment),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, AddressRefusal::Documentation),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, AddressRefusal::Documentation),
];

fn refusal(address: IpAddr) -> Option<AddressRefusal> {
    match address {
        IpAddr::V4(address) => refusal_v4(address),
        IpAddr::V6(address) => refusal_v6(address),
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<AddressRefusal> {
    let contains = |network: Ipv4Addr, bits| Ipv4Net::new_assert(network, bits).contains(&address);
    REFUSED_V4.iter().find(|(network, bits, _)| contains(*network, *bits)).map(|(_, _, reason)| *reason)
}

fn refusal_v6(address: Ipv6Addr) -> Option<AddressRefusal> {
    if let Some(embedded) = embedded_v4(address) {
        return embedded.into_iter().flatten().find_map(refusal_v4);
    }
    let contains = |network: Ipv6Addr, bits| Ipv6Net::new_assert(network, bits).contains(&address);
    let listed =
        REFUSED_V6.iter().find(|(network, bits, _)| contains(*network, *bits)).map(|(_, _, reason)| *reason);
    let global_unicast = address.segments()[0] & 0xe000 == 0x2000;
    listed.or(if global_unicast { None } else { Some(AddressRefusal::NotGlobalUnicast) })
}

/// Converts a mapped IPv4 address to IPv4, as the operating system does.
fn unwrap_mapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The IPv4 addresses embedded in a tunnel or translation address; all of them must be global.
fn embedded_v4(address: Ipv6Addr) -> Option<[Option<Ipv4Addr>; 2]> {
    let [s0, s1, s2, s3, .., s6, s7] = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (s0, s1) {
        // 6to4, RFC 3056 §2
        (0x2002, _) => Some([Some(join(s1, s2)), None]),
        // Teredo, RFC 4380 §4: the server, and the client with its bits flipped
        (0x2001, 0) => Some([Some(join(s2, s3)), Some(join(!s6, !s7))]),
        // NAT64 with the well-known prefix, RFC 6052 §2.1; the local prefix 64:ff9b:1::/48 stays refused
        (0x64, 0xff9b) if address.segments()[2..6] == [0; 4] => Some([Some(join(s6, s7)), None]),
        _ => None,
    }
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
        fn every_group_is_below_the_limit(bits: u128) {
            prop_assert!(address_group(IpAddr::V6(Ipv6Addr::from(bits))) < ADDRESS_GROUPS);
        }
    }
}
