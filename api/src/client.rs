//! The client of a request, as an address for rate limits.
//!
//! A proxy hides its clients behind its own address. Only a trusted proxy may state the client. The client is the last address in the
//! header that is not a trusted proxy, because a client can forge the addresses before it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use ipnet::IpNet;
pub(crate) use runtime::client_network;

use crate::server_names::ServerNames;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Headers that proxies add: a request with one of them is forwarded for another client.
const WRITTEN_BY_PROXIES: [HeaderName; 6] = [
    FORWARDED_FOR,
    HeaderName::from_static("forwarded"),
    header::VIA,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    /// A program on this machine, or a page of this server in a browser there: the `Host` is a local name, no proxy forwarded the request,
    /// and no page of another origin sent it. Some content is served only to such clients.
    pub(crate) is_local: bool,
}

impl Client {
    pub(crate) fn of(request: &Request, trusted: &[IpNet], names: &ServerNames) -> Self {
        let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
            // no connection: the router is used as a library
            return Self::on_this_machine();
        };
        Self::connected(peer.ip(), request.uri(), request.headers(), trusted, names)
    }

    pub(crate) fn connected(
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
        trusted: &[IpNet],
        names: &ServerNames,
    ) -> Self {
        let client = Self::of_peer(peer, headers, trusted);
        let is_local = client.is_local && names.match_local_request(uri, headers);
        Self { is_local, ..client }
    }

    /// The program that started this process, over its standard streams.
    pub(crate) const fn on_this_machine() -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::LOCALHOST), is_local: true }
    }

    fn of_peer(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> Self {
        let peer = peer.to_canonical();
        if !is_trusted(peer, trusted) {
            let speaks_for_others = WRITTEN_BY_PROXIES.iter().any(|name| headers.contains_key(name));
            return Self {
                address: client_network(peer),
                is_local: peer.is_loopback() && !speaks_for_others,
            };
        }
        // A client may send bytes that are not text. The address that a proxy appended is still read, and the header still counts as
        // present.
        let values = headers.get_all(&FORWARDED_FOR).iter();
        let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let listed: Vec<&str> = values.iter().flat_map(|value| value.split(',')).map(str::trim).collect();
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

/// Whether an address is a proxy that may forward requests.
pub(crate) fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_trusted_proxies_may_forward_addresses() {
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
            let client = Client::of_peer(peer.parse().unwrap(), &headers, trusted);
            let expected = Client { address: address.parse().unwrap(), is_local };
            assert_eq!(client, expected, "{peer} {forwarded:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_do_not_hide_a_forwarded_address() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        for (values, address) in [
            (&[&b"\xff, 8.8.8.8"[..]][..], "8.8.8.8"),
            (&[b"1.1.1.1", b"\xff, 8.8.8.8"], "8.8.8.8"),
            (&[b"1.1.1.1", b"\xff, 10.2.2.2"], "10.1.1.1"),
            (&[b"1.1.1.1", b"\xff"], "10.1.1.1"),
            (&[b"1.1.1.1", b""], "10.1.1.1"),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED_FOR, HeaderValue::from_bytes(value).unwrap());
            }
            let client = Client::of_peer("10.1.1.1".parse().unwrap(), &headers, &trusted);
            assert_eq!(client.address, address.parse::<IpAddr>().unwrap(), "{values:?}");
        }
    }

    #[test]
    fn proxy_headers_mark_requests_as_not_local() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(Client::of_peer(loopback, &HeaderMap::new(), &[]).is_local);
        for name in
            ["x-forwarded-for", "forwarded", "via", "x-real-ip", "x-forwarded-host", "x-forwarded-proto"]
        {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), "x".parse().unwrap())]);
            assert!(!Client::of_peer(loopback, &headers, &[]).is_local, "{name}");
        }
    }
}
