//! Platforms that serve many sites from few addresses.
//!
//! Contains only networks that their owners publish as front ends for customers' sites. Requests to other platforms are limited per
//! address, which is slower but safe. Sources: cloudflare.com/ips, api.fastly.com/public-ip-list, api.github.com/meta (`pages`).

use std::net::IpAddr;
use std::sync::LazyLock;

use ipnet::IpNet;

const PLATFORMS: &[(&str, &[&str])] = &[
    (
        "cloudflare",
        &[
            "103.21.244.0/22",
            "103.22.200.0/22",
            "103.31.4.0/22",
            "104.16.0.0/13",
            "104.24.0.0/14",
            "108.162.192.0/18",
            "131.0.72.0/22",
            "141.101.64.0/18",
            "162.158.0.0/15",
            "172.64.0.0/13",
            "173.245.48.0/20",
            "188.114.96.0/20",
            "190.93.240.0/20",
            "197.234.240.0/22",
            "198.41.128.0/17",
            "2400:cb00::/32",
            "2405:8100::/32",
            "2405:b500::/32",
            "2606:4700::/32",
            "2803:f800::/32",
            "2a06:98c0::/29",
            "2c0f:f248::/32",
        ],
    ),
    ("fastly", &["146.75.0.0/17", "151.101.0.0/16", "199.232.0.0/16", "2a04:4e40::/32", "2a04:4e42::/32"]),
    ("github_pages", &["185.199.108.0/22", "2606:50c0:8000::/46"]),
];

static NETWORKS: LazyLock<Vec<(IpNet, &'static str)>> = LazyLock::new(|| {
    let parsed = |(name, networks): &(&'static str, &'static [&'static str])| {
        let name = *name;
        networks.iter().filter_map(move |network| Some((network.parse().ok()?, name)))
    };
    PLATFORMS.iter().flat_map(parsed).collect()
});

/// The platform of an address. The sites of a platform share one rate, [`super::PlatformRate`].
pub fn platform_of(address: IpAddr) -> Option<&'static str> {
    let address = address.to_canonical();
    NETWORKS.iter().find(|(network, _)| network.contains(&address)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_network_of_the_table_parses_and_is_global() {
        assert_eq!(NETWORKS.len(), PLATFORMS.iter().map(|(_, networks)| networks.len()).sum::<usize>());
        for (network, name) in NETWORKS.iter() {
            let verdict = crate::address::OwnNetworks::default().judge(network.addr());
            assert_eq!(verdict, crate::address::AddressVerdict::Global, "{name} {network}");
            assert_eq!(network.trunc(), *network, "{name} {network}");
        }
    }

    #[test]
    fn finds_the_platform_of_an_address() {
        let table = [
            ("104.16.132.229", Some("cloudflare")),
            ("::ffff:104.16.132.229", Some("cloudflare")),
            ("2606:4700::6810:84e5", Some("cloudflare")),
            ("151.101.1.69", Some("fastly")),
            ("185.199.108.153", Some("github_pages")),
            ("2606:50c0:8000::153", Some("github_pages")),
            ("93.184.215.14", None),
            ("104.32.0.1", None),
        ];
        for (address, platform) in table {
            assert_eq!(platform_of(address.parse().unwrap()), platform, "{address}");
        }
    }
}
