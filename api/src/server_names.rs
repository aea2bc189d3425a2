//! The host names of this server. A request is trusted as local only if its `Host` is one of them.
//!
//! A page in a browser on this machine can point its own domain name at a loopback address (DNS rebinding). Its
//! requests then come from this machine, but with that name as their `Host`.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, header};
use url::Url;

pub(crate) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Loopback names, the listen address, and the host of `--public-url`.
#[derive(Debug, Clone)]
pub(crate) struct ServerNames(Vec<Authority>);

impl ServerNames {
    pub(crate) fn new(listen: IpAddr, public_url: Option<&Url>) -> Self {
        let listen = (!listen.is_unspecified()).then(|| match listen {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let public = public_url.and_then(authority);
        let names = LOOPBACK.iter().map(|name| (*name).to_owned()).chain(listen).chain(public);
        Self(names.filter_map(|name| name.parse().ok()).collect())
    }

    #[cfg(test)]
    pub(crate) fn of_loopback() -> Self {
        Self(LOOPBACK.iter().filter_map(|name| name.parse().ok()).collect())
    }

    /// The names as text, for the MCP library. It ignores case but not a final dot, so each name is listed with and without one.
    pub(crate) fn list(&self) -> Vec<String> {
        let with_dot = |name: &Authority| {
            let port = name.port().map_or_else(String::new, |port| format!(":{port}"));
            format!("{}.{port}", name.host())
        };
        let names = self.0.iter().flat_map(|name| [name.as_str().to_owned(), with_dot(name)]);
        names.collect()
    }

    /// Whether the `Host` of a request, and the host of its URI if there is one, are names of this server.
    pub(crate) fn match_request(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(host) = host(headers) else { return false };
        self.include(&host) && uri.authority().is_none_or(|named| self.include(named))
    }

    /// A name without a port matches any port.
    fn include(&self, requested: &Authority) -> bool {
        self.0.iter().any(|own| {
            comparable(own.host()) == comparable(requested.host())
                && own.port_u16().is_none_or(|port| requested.port_u16() == Some(port))
        })
    }
}

/// Normalizes a host name for comparisons: lower case, without a final dot.
pub(crate) fn comparable(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// The `Host` of a request, if it has exactly one that is well-formed (RFC 9112 §3.2).
pub(crate) fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut values = headers.get_all(header::HOST).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let host: Authority = value.to_str().ok()?.parse().ok()?;
    let has_port_of_digits = host
        .as_str()
        .rsplit_once(':')
        .is_none_or(|(_, port)| port.ends_with(']') || port.is_empty() || port.parse::<u16>().is_ok());
    (!host.as_str().contains('@') && !host.host().is_empty() && has_port_of_digits).then_some(host)
}

/// Host and port as clients send them: without the default port of the scheme.
pub(crate) fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listen: &str, public: Option<&str>) -> ServerNames {
        let authorities = LOOPBACK.iter().map(|name| (*name).to_owned()).chain([listen.to_owned()]);
        let public = public.and_then(|url| authority(&Url::parse(url).unwrap()));
        ServerNames(authorities.chain(public).map(|name| name.parse().unwrap()).collect())
    }

    fn headers(hosts: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        headers
    }

    fn asks(names: &ServerNames, uri: &str, hosts: &[&str]) -> bool {
        names.match_request(&uri.parse().unwrap(), &headers(hosts))
    }

    #[test]
    fn accepts_only_hosts_of_this_server() {
        let names = names("192.0.2.7", Some("https://agentdex.example"));
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1:9",
            "[::1]:8080",
            "192.0.2.7:8080",
            "agentdex.example",
            "agentdex.example.:443",
            "LOCALHOST.",
        ] {
            assert!(asks(&names, "/metrics", &[host]), "{host}");
        }
        for host in [
            "rebound.example",
            "localhost.rebound.example",
            "127.0.0.1.rebound.example:8080",
            "user@localhost",
            "localhost:http",
            "localhost..",
        ] {
            assert!(!asks(&names, "/metrics", &[host]), "{host}");
        }
        assert!(!asks(&names, "/metrics", &[]));
        assert!(!asks(&names, "http://rebound.example/metrics", &["localhost"]));
        assert!(asks(&names, "http://localhost/metrics", &["localhost"]));
    }

    #[test]
    fn public_url_port_must_match() {
        let names = names("192.0.2.7", Some("http://dex.example:81"));
        assert!(asks(&names, "/", &["dex.example:81"]));
        assert!(!asks(&names, "/", &["dex.example"]));
    }

    #[test]
    fn requires_one_well_formed_host() {
        assert!(host(&headers(&["a.example"])).is_some());
        for wrong in
            [&[][..], &["a.example", "a.example"], &[""], &["a b"], &["a/b"], &["u@a.example"], &["a:b"]]
        {
            assert!(host(&headers(wrong)).is_none(), "{wrong:?}");
        }
    }
}
