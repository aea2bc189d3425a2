//! Decides which addresses are on the public Internet: IP addresses, and the hosts of URLs.
//!
//! Refuses every range that is not globally reachable (RFC 6890 and the IANA registries), even if it is embedded in an IPv6 address:
//! mapped, 6to4, Teredo, NAT64. All of IPv6 outside `2000::/3` is refused, including ranges that are assigned in the future. It makes no
//! DNS queries: a public name may still resolve to a private address.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::Manifest;
use crate::address;
use crate::model::{Auth, AuthScheme, Capability, SCHEMES_PER_CAPABILITY_MAX, UsageTerms};
use crate::name::{SiteName, parse_url};
use crate::site_scope;

crate::string_enum! {
    /// Why an address is refused.
    AddressRefusal, "address refusal" {
        /// 0.0.0.0/8, or the unspecified address.
        ThisNetwork = "this_network",
        /// 127.0.0.0/8, `::1`.
        Loopback = "loopback",
        /// RFC 1918, or IPv6 unique local.
        Private = "private",
        /// 100.64.0.0/10, carrier-grade NAT.
        Shared = "shared",
        /// 169.254.0.0/16, `fe80::/10`; includes the metadata services of clouds.
        LinkLocal = "link_local",
        /// IETF protocol assignments and deprecated anycast.
        ProtocolAssignment = "protocol_assignment",
        /// Addresses for examples in documents.
        Documentation = "documentation",
        /// Addresses for benchmark tests of network devices (RFC 2544).
        Benchmarking = "benchmarking",
        /// Multicast groups.
        Multicast = "multicast",
        /// 240.0.0.0/4 and the broadcast address.
        Reserved = "reserved",
        /// IPv6 outside global unicast space.
        NotGlobalUnicast = "not_global_unicast",
    }
}

/// Schemes of the web.
const SCHEMES: &[&str] = &["https", "http", "wss", "ws"];
/// Maximum number of declared schemes of a manifest that are compared with the schemes of a capability.
const AUTHS_EXAMINED_MAX: usize = 1_000;
/// The scheme of local commands, which open no connection.
const COMMAND_SCHEME: &str = "stdio";

impl Manifest {
    /// An address in the manifest, if agents may be sent to it: a web URL whose host may be public.
    pub fn address_for_agents<'a>(&self, address: &'a str) -> Option<&'a str> {
        let is_web = parsed(address).is_ok_and(|url| SCHEMES.contains(&url.scheme()) && url.has_host());
        (is_web && !self.leads_inside(address)).then_some(address)
    }

    /// Whether an address in the manifest would send agents into a private network. Manifests of a private network may name its hosts.
    pub fn leads_inside(&self, address: &str) -> bool {
        let served_as = self.final_url.as_ref().unwrap_or(&self.url);
        not_public(address).is_some() && not_public(served_as.as_str()).is_none()
    }

    /// The site or IP address to which an address leads, if it is not the site that serves the manifest. `None` if the host is not known.
    pub fn other_site_of(&self, address: &str) -> Option<String> {
        let of_number = || match parsed(address).ok()?.host()? {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.to_string()),
            Host::Ipv6(address) => Some(address.to_string()),
        };
        let site = site_of_address(address).map(|site| site.to_string()).or_else(of_number)?;
        (site != self.url.site().as_str()).then_some(site)
    }

    /// The declared schemes that a capability accepts, with what a caller needs to use them. If several of one kind are declared, only
    /// those that apply to the capability. Omits schemes with an address that agents must not be sent to.
    pub fn authentication_for_agents(&self, capability: &Capability) -> Vec<&Auth> {
        let is_usable = |auth: &&Auth| {
            let flows =
                auth.flows.iter().flat_map(|flow| [&flow.authorize_url, &flow.token_url, &flow.refresh_url]);
            let own = [
                &auth.authorize_url,
                &auth.token_url,
                &auth.refresh_url,
                &auth.registration_url,
                &auth.docs_url,
            ];
            own.into_iter().chain(flows).flatten().all(|url| self.address_for_agents(url).is_some())
        };
        let is_of_kind =
            |auth: &&Auth| auth.scheme != AuthScheme::None && capability.auth.schemes.contains(&auth.scheme);
        let of_kind: Vec<&Auth> = self.auth.iter().take(AUTHS_EXAMINED_MAX).filter(is_of_kind).collect();
        let is_of_call = |auth: &&Auth| auth.applies_to.covers(&capability.native_id);
        let applying: HashSet<AuthScheme> =
            of_kind.iter().copied().filter(is_of_call).map(|auth| auth.scheme).collect();
        let accepted =
            of_kind.into_iter().filter(|auth| !applying.contains(&auth.scheme) || is_of_call(auth));
        accepted.take(SCHEMES_PER_CAPABILITY_MAX).filter(is_usable).collect()
    }

    /// The publisher's requirements for the caller, without addresses that agents must not be sent to.
    pub fn usage_terms(&self) -> Option<UsageTerms<'_>> {
        let mut terms = self.policies.usage_terms()?;
        terms.terms_url = terms.terms_url.and_then(|url| self.address_for_agents(url));
        Some(terms)
    }
}

/// The site of a web address, for all values of its variables. `None` if a variable determines the site, and for IP addresses.
pub fn site_of_address(address: &str) -> Option<SiteName> {
    let url = parsed(address).ok().filter(|url| SCHEMES.contains(&url.scheme()))?;
    let site = crate::Host::parse(url.host_str()?).ok()?.site();
    (!site.as_str().contains(VARIABLE)).then_some(site)
}

/// Why the host of a URL is not on the public Internet, or why people could mistake it for another host. `None` if agents may call it, or
/// if the URL has no host.
///
/// The host is the one that URL parsers connect to (WHATWG URL): `https:///10.0.0.1`, `https:\\10.0.0.1` and hosts with percent-encoded or
/// removed characters included. A text that looks like a URL and cannot be parsed is refused, because other programs may connect to it. For
/// a host with `{name}` variables, the other labels decide.
pub(crate) fn not_public(address: &str) -> Option<&'static str> {
    if let Some((_, host)) = address::plain_origin(address.trim_start()) {
        return name_is_not_public(host);
    }
    let Ok(url) = parsed(address) else {
        let has_host = address.contains("://") || address.trim_start().starts_with("//");
        return has_host.then_some("it is not a URL");
    };
    let is_web = SCHEMES.contains(&url.scheme());
    if is_web && (!url.username().is_empty() || url.password().is_some()) {
        // `https://bank.example@other.example/` calls other.example.
        return Some("it has a user name before its host");
    }
    if is_web && address.split(['?', '#']).next().is_some_and(|address| address.contains('\\')) {
        // Browsers read it as a slash, other clients as a part of the user name.
        return Some("it has a backslash, which clients interpret in different ways");
    }
    // The parser does not normalise the hosts of other schemes.
    let host = match url.host().filter(|_| url.scheme() != COMMAND_SCHEME)?.to_owned() {
        Host::Domain(name) if !is_web => Host::parse(&name).unwrap_or(Host::Domain(name)),
        host => host,
    };
    match host {
        Host::Domain(name) if name.contains(VARIABLE) => template_is_not_public(&name),
        Host::Domain(name) if is_web => name_is_not_public(name.trim_end_matches('.')),
        Host::Domain(name) => site_scope::special_use(name.trim_end_matches('.')),
        Host::Ipv4(address) => AddressRefusal::of(IpAddr::V4(address)).map(AddressRefusal::in_words),
        Host::Ipv6(address) => AddressRefusal::of(IpAddr::V6(address)).map(AddressRefusal::in_words),
    }
}

/// The URL as an agent would read it: https if the scheme is missing or a variable, with values for the variables.
fn parsed(address: &str) -> Result<Url, url::ParseError> {
    let address = address.trim_start();
    let fixed = without_variables(address);
    let fixed = fixed.as_deref().unwrap_or(address);
    match fixed.split_once("//") {
        Some((scheme, rest)) if scheme.is_empty() || is_variable_scheme(scheme) => {
            parse_url(&format!("https://{rest}"))
        }
        _ => parse_url(fixed),
    }
}

fn is_variable_scheme(text: &str) -> bool {
    text.strip_suffix(':')
        .is_some_and(|scheme| scheme.contains(VARIABLE) && !scheme.contains(['/', '?', '#']))
}

/// Replaces a variable in a host. No site has this label.
const VARIABLE: &str = "agentdex-variable";

/// Why a host is not public for any value of its variables: the other labels belong to a private network or address.
fn template_is_not_public(name: &str) -> Option<&'static str> {
    let has_other_labels = name.split('.').any(|label| !label.contains(VARIABLE));
    match Host::parse(&name.replace(VARIABLE, "1")).ok().filter(|_| has_other_labels)? {
        Host::Ipv4(address) => AddressRefusal::of(IpAddr::V4(address)).map(AddressRefusal::in_words),
        Host::Domain(name) => site_scope::special_use(name.trim_end_matches('.')),
        Host::Ipv6(_) => None,
    }
}

/// The URL with its variables replaced: a port by a number, anything else by [`VARIABLE`]. `None` without variables.
fn without_variables(url: &str) -> Option<String> {
    let mut fixed = String::new();
    let mut rest = url;
    while let Some((before, after)) = rest.split_once(['{', '<', '$']) {
        let end = after.find(['}', '>', '/', '?', '#', ':', '.']).unwrap_or(after.len());
        let closes = after.get(end..).is_some_and(|rest| rest.starts_with(['}', '>']));
        fixed.push_str(before);
        fixed.push_str(if before.ends_with(':') { "1" } else { VARIABLE });
        rest = after.get(end + usize::from(closes)..).unwrap_or_default();
    }
    fixed.push_str(rest);
    (fixed.len() != url.len() || fixed != url).then_some(fixed)
}

fn name_is_not_public(name: &str) -> Option<&'static str> {
    let without_dot =
        || (!name.contains('.')).then_some("a name without a dot exists only in a local network");
    site_scope::special_use(name).or_else(without_dot)
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

/// Special-purpose IPv6 ranges (IANA registry). `2001::/23` contains benchmarking, ORCHID, AMT and anycast assignments, none of which is
/// used for the web. Teredo is inside it, and is unwrapped before this table is used.
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

impl AddressRefusal {
    /// Why an address is not globally reachable; `None` if it is.
    pub fn of(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(address) => refusal_v4(address),
            IpAddr::V6(address) => refusal_v6(address),
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::ThisNetwork => "the address is of \"this network\", RFC 1122",
            Self::Loopback => "the address is a loopback address, RFC 1122",
            Self::Private => "the address is private, RFC 1918 and RFC 4193",
            Self::Shared => "the address is shared behind a provider's NAT, RFC 6598",
            Self::LinkLocal => "the address is link-local, RFC 3927 and RFC 4291",
            Self::ProtocolAssignment => "the address is assigned to a protocol, RFC 6890",
            Self::Documentation => "the address is for documentation, RFC 5737 and RFC 3849",
            Self::Benchmarking => "the address is for benchmarks, RFC 2544",
            Self::Multicast => "the address is a multicast address, RFC 5771",
            Self::Reserved => "the address is reserved, RFC 1112",
            Self::NotGlobalUnicast => "the address is outside global unicast, RFC 4291",
        }
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<AddressRefusal> {
    let contains =
        |network: Ipv4Addr, bits: u8| (u32::from(network) ^ u32::from(address)) >> (32 - bits) == 0;
    REFUSED_V4.iter().find(|(network, bits, _)| contains(*network, *bits)).map(|(_, _, reason)| *reason)
}

fn refusal_v6(address: Ipv6Addr) -> Option<AddressRefusal> {
    if let Some(embedded) = embedded_v4(address) {
        return embedded.into_iter().flatten().find_map(refusal_v4);
    }
    let contains =
        |network: Ipv6Addr, bits: u8| (u128::from(network) ^ u128::from(address)) >> (128 - bits) == 0;
    let listed =
        REFUSED_V6.iter().find(|(network, bits, _)| contains(*network, *bits)).map(|(_, _, reason)| *reason);
    let global_unicast = address.segments()[0] & 0xe000 == 0x2000;
    listed.or(if global_unicast { None } else { Some(AddressRefusal::NotGlobalUnicast) })
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
        // NAT64 with the well-known prefix, RFC 6052 §2.1; the local prefix 64:ff9b:1::/48 is refused
        (0x64, 0xff9b) if address.segments()[2..6] == [0; 4] => Some([Some(join(s6, s7)), None]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_private_hosts_are_not_public() {
        for url in [
            "https://127.0.0.1/x",
            "https://169.254.169.254/latest",
            "https://100.64.0.1/",
            "http://10.1.2.3:8080/x",
            "https://192.168.1.1?x",
            "https://[fd00::1]/",
            "https://[fe80::1]:8443/",
            "https://[::1]",
            "https://[::ffff:10.0.0.1]/",
            "https://[::ffff:a00:1]/",
            "https://[64:ff9b::10.0.0.1]/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0x7f.1/",
            "https://017700000001/",
            "https://127.1/",
            "https://user@localhost:3000/",
            "https://LOCALHOST/",
            "https://localhost./",
            "https://db.internal/",
            "https://kubernetes.default.svc/mcp",
            "https://foo.localdomain/mcp",
            "https://printer.local/{id}",
            "https://app.localhost/",
            "https://intranet/x",
            "wss://nas.home.arpa/",
            "https://a.invalid/",
            "https://x.onion/",
            "https:///169.254.169.254/",
            "https:////10.0.0.1/",
            "https://\\10.0.0.1/",
            "https:\\\\10.0.0.1\\x",
            "https:/10.0.0.1/",
            "https:10.0.0.1",
            "https://1\t0.0.0.1/",
            "https://10.0.\n0.1/",
            "https://localhost%2e/",
            "https://%31%30.0.0.1/",
            "https://１０.0.0.1/",
            "https://10。0。0。1/",
            "https:///10.0.0.1/{id}",
            "https://10.0.0.1:{port}/{id}",
            "https://x:{password}@10.0.0.1/",
            "https://api.example@10.0.0.1/",
            "https://[::1%25lo]/zone",
            "https://[fe80::1%25eth0]/zone",
            "https://10.0.0.1:99999/x",
            "https://localhost%00.com/",
            "https://{n}.0.0.1/",
            "//169.254.169.254/x",
            "\t//127.0.0.1/x",
            "{scheme}://127.0.0.1/x",
            "$SCHEME://127.0.0.1/x",
            "{scheme}s://localhost/x",
            "https://127.0.0.{n}/x",
            "https://10.{a}.{b}.1/x",
            "https://{tenant}.internal/x",
            "https://{tenant}.localhost:{port}/x",
            "gopher://127.0.0.1:6379/_x",
            "grpc://10.0.0.1:50051",
            "redis://localhost:6379",
            "ftp://0x7f000001/",
            "ssh://[::1]/",
        ] {
            assert!(not_public(url).is_some(), "{url}");
        }
    }

    #[test]
    fn urls_with_a_user_name_are_refused() {
        for url in [
            "https://bank.example@other.example/mcp",
            "https://bank.example:443@other.example/a2a",
            "https://bank.example%40@other.example/",
            "https://{tenant}@other.example/x",
            "wss://bank.example@other.example/{id}",
            "https://bank.example\\@other.example@third.example/",
            "//bank.example@other.example/",
        ] {
            assert!(not_public(url).is_some(), "{url}");
        }
        for url in [
            "https://shop.example/@user/x",
            "https://shop.example/x?to=a@b.example&p=a\\b",
            "ssh://git@shop.example/x",
        ] {
            assert_eq!(not_public(url), None, "{url}");
        }
    }

    #[test]
    fn urls_of_other_hosts_may_be_public() {
        for url in [
            "https://shop.example/x",
            "https://site1.test/",
            "https://8.8.8.8/",
            "https://[2606:4700::1]/",
            "https://[::ffff:8.8.8.8]/",
            "https://10.example.com/",
            "https://127.0.0.1.example.org/",
            "https://internal.example.com/",
            "https://my-local.example/",
            "https://xn--bcher-kva.example/",
            "https://{tenant}/x",
            "https://{tenant}:{port}/x",
            "https://{a}.{b}/x",
            "https://8.8.8.{n}/x",
            "{scheme}://shop.example/x",
            "//shop.example/x",
            "{base}/x",
            "/books//10.0.0.1/x",
            "grpc://shop.example:50051",
            "app://open",
            "unix:///var/run/x.sock",
            "npx -y server",
            "https://${HOST}/x",
            "https://$HOST:8080/x",
            "https://<your-host>/x",
            "https://{region}.shop.example/x",
            "https://shop.example/10.0.0.1/{id}",
            "did:web:localhost",
            "stdio://localhost",
            "",
        ] {
            assert_eq!(not_public(url), None, "{url}");
        }
    }

    fn served_from(url: &str) -> Manifest {
        let url = crate::ManifestUrl::parse(url).unwrap();
        crate::read(&crate::Document {
            bytes: b"{}",
            url: &url,
            final_url: None,
            discovery: crate::Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        })
    }

    #[test]
    fn names_only_public_web_addresses_to_agents() {
        let manifest = served_from("https://shop.example/agent.json");
        for address in ["https://shop.example/x", "wss://shop.example/x", "https://{tenant}.shop.example/x"] {
            assert_eq!(manifest.address_for_agents(address), Some(address));
        }
        for address in [
            "https://10.0.0.1/x",
            "http://localhost:3000/mcp",
            "https://[::1%25lo]/x",
            "unix:///var/run/docker.sock",
            "file:///etc/passwd",
            "gopher://shop.example/",
            "javascript:alert(1)",
            "stdio:/bin/sh",
            "npx -y server",
            "/relative",
            "",
        ] {
            assert_eq!(manifest.address_for_agents(address), None, "{address}");
        }
        // Agents of a private network read the manifests of its own hosts.
        let inside = served_from("https://shop.internal/agent.json");
        assert_eq!(inside.address_for_agents("https://10.0.0.1/x"), Some("https://10.0.0.1/x"));
        assert_eq!(inside.address_for_agents("file:///etc/passwd"), None);
    }

    #[test]
    fn finds_addresses_on_another_site() {
        let manifest = served_from("https://shop.example/agent.json");
        for (address, expected) in [
            ("https://api.shop.example/x", None),
            ("https://{tenant}.shop.example:{port}/{id}", None),
            ("wss://api.bank.example/{id}", Some("bank.example")),
            ("https://{tenant}.bank.example/x", Some("bank.example")),
            ("http://192.0.2.7:8080/x", Some("192.0.2.7")),
            ("https://{shop}.example/x", None),
            ("https://bank{n}.example/x", None),
            ("/relative", None),
            ("npx -y server", None),
        ] {
            assert_eq!(manifest.other_site_of(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn omits_terms_at_private_addresses() {
        let mut manifest = served_from("https://shop.example/agent.json");
        for (url, named) in [("https://shop.example/terms", true), ("http://169.254.169.254/", false)] {
            manifest.policies.terms_url = Some(url.to_owned());
            let terms = manifest.usage_terms().unwrap();
            assert_eq!(terms.terms_url, named.then_some(url));
        }
    }
}
