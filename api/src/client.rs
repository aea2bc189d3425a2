//! Who asks: the address that limits are counted by.
//!
//! A proxy in front hides its clients behind its own address; only a proxy that was named as trusted may say who they
//! are, and only the last address that no trusted proxy wrote is believed, since a client can write the others itself.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use ipnet::IpNet;
pub(crate) use runtime::client_network;

use crate::names::OwnNames;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// What proxies write: whoever has one of them asks on behalf of somebody else.
const WRITTEN_BY_PROXIES: [HeaderName; 6] = [
    FORWARDED_FOR,
    HeaderName::from_static("forwarded"),
    header::VIA,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// Whose request it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    /// A program on this machine, which asks for a name of this machine and not on behalf of somebody else. Whatever is
    /// for this machine alone goes by this.
    pub(crate) is_local: bool,
}

impl Client {
    pub(crate) fn of(request: &Request, trusted: &[IpNet], names: &OwnNames) -> Self {
        let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
            // Without a connection there is nobody outside: the router is called as a library.
            return Self::on_this_machine();
        };
        Self::connected(peer.ip(), request.uri(), request.headers(), trusted, names)
    }

    /// Who asks over a connection.
    pub(crate) fn connected(
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
        trusted: &[IpNet],
        names: &OwnNames,
    ) -> Self {
        let client = Self::behind(peer, headers, trusted);
        let is_local = client.is_local && names.are_asked_for(uri, headers);
        Self { is_local, ..client }
    }

    /// Whoever started this process, over its standard streams.
    pub(crate) const fn on_this_machine() -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), is_local: true }
    }

    fn behind(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        if !is_trusted(peer, trusted) {
            let speaks_for_others = WRITTEN_BY_PROXIES.iter().any(|name| headers.contains_key(name));
            return Self {
                address: client_network(peer),
                is_local: peer.is_loopback() && !speaks_for_others,
            };
        }
        let listed = headers.get_all(&FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
        let listed: Vec<&str> = listed.flat_map(|value| value.split(',')).map(str::trim).collect();
        let addresses = listed.into_iter().rev().map_while(parsed);
        let client = addresses.into_iter().find(|address| !is_trusted(*address, trusted));
        Self { address: client_network(client.unwrap_or(peer)), is_local: false }
    }
}

/// An address as proxies write it, with or without a port.
fn parsed(text: &str) -> Option<IpAddr> {
    let bare = text.trim_matches(['[', ']']);
    let address =
        bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))?;
    Some(IpAddr::to_canonical(&address))
}

/// Whether an address may say on whose behalf it asks.
pub(crate) fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_speak_for_others() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()];
        for (peer, forwarded, trusted, address, is_local) in [
            ("127.0.0.1", None, &[][..], "127.0.0.1", true),
            ("127.0.0.1", Some("8.8.8.8"), &[][..], "127.0.0.1", false),
            ("9.9.9.9", Some("8.8.8.8"), &trusted[..], "9.9.9.9", false),
            ("10.1.1.1", Some("8.8.8.8"), &trusted[..], "8.8.8.8", false),
            ("10.1.1.1", Some("1.1.1.1, 8.8.8.8, 10.2.2.2"), &trusted[..], "8.8.8.8", false),
            ("10.1.1.1", Some("1.1.1.1, nonsense, 10.2.2.2"), &trusted[..], "10.1.1.1", false),
            ("10.1.1.1", Some("8.8.8.8:4711"), &trusted[..], "8.8.8.8", false),
            ("10.1.1.1", Some("[2001:db8:1:2:3:4:5:6]"), &trusted[..], "2001:db8:1:2::", false),
            ("10.1.1.1", None, &trusted[..], "10.1.1.1", false),
            ("::ffff:127.0.0.1", None, &[][..], "127.0.0.1", true),
            ("2001:db8:1:2:ffff::1", None, &[][..], "2001:db8:1:2::", false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(forwarded) = forwarded {
                headers.insert(FORWARDED_FOR, forwarded.parse().unwrap());
            }
            let client = Client::behind(peer.parse().unwrap(), &headers, trusted);
            let expected = Client { address: address.parse().unwrap(), is_local };
            assert_eq!(client, expected, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn whatever_a_proxy_adds_says_that_the_request_is_not_of_this_machine() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(Client::behind(loopback, &HeaderMap::new(), &[]).is_local);
        for name in
            ["x-forwarded-for", "forwarded", "via", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"]
        {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), "x".parse().unwrap())]);
            assert!(!Client::behind(loopback, &headers, &[]).is_local, "{name}");
        }
    }
}
