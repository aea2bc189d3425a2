//! The host names of this server. A request is trusted as local only if its `Host` is one of them.
//!
//! A page in a browser on this machine can point its own domain name at a loopback address (DNS rebinding). Its requests then come from
//! this machine, but with that name as their `Host`. A page of any origin can also send a request to a loopback address directly; the
//! browser then names the origin.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use url::Url;

pub(crate) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Browsers send it to state whether a page of the same origin sends the request, even without `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of this server.
#[derive(Debug, Clone)]
pub(crate) struct ServerNames {
    /// Loopback names and the listen address, which programs on this machine use.
    local: Vec<Authority>,
    /// The host of `--public-url`. A proxy on this machine forwards it for remote clients, so it does not prove that a client is local.
    public: Option<Authority>,
}

impl ServerNames {
    pub(crate) fn new(listen: IpAddr, public_url: Option<&Url>) -> Self {
        let listen = (!listen.is_unspecified()).then(|| match listen {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        let names = LOOPBACK.iter().map(|name| (*name).to_owned()).chain(listen);
        let public = public_url.and_then(authority).and_then(|name| name.parse().ok());
        Self { local: names.filter_map(|name| name.parse().ok()).collect(), public }
    }

    #[cfg(test)]
    pub(crate) fn of_loopback() -> Self {
        Self { local: LOOPBACK.iter().filter_map(|name| name.parse().ok()).collect(), public: None }
    }

    /// The names as text, for the MCP library. It ignores case but not a final dot, so each name is listed with and without one.
    pub(crate) fn list(&self) -> Vec<String> {
        let with_dot = |name: &Authority| {
            let port = name.port().map_or_else(String::new, |port| format!(":{port}"));
            format!("{}.{port}", name.host())
        };
        let all = self.local.iter().chain(&self.public);
        let names = all.flat_map(|name| [name.as_str().to_owned(), with_dot(name)]);
        names.collect()
    }

    /// Whether a request from this machine was sent by a program, or by a page of this server under a local name: its `Host`, and the host
    /// of its URI if there is one, are local names. A browser on this machine names the origin of a page of another origin.
    pub(crate) fn match_local_request(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(host) = host(headers) else { return false };
        let is_of_host = |origin: &HeaderValue| {
            let origin = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
            origin
                .and_then(|origin| authority(&origin))
                .is_some_and(|of| of.eq_ignore_ascii_case(host.as_str()))
        };
        self.include(&host)
            && uri.authority().is_none_or(|named| self.include(named))
            && headers.get_all(header::ORIGIN).iter().all(is_of_host)
            && is_of_own_page(headers)
    }

    /// A name without a port matches any port.
    fn include(&self, requested: &Authority) -> bool {
        self.local.iter().any(|own| {
            comparable(own.host()) == comparable(requested.host())
                && own.port_u16().is_none_or(|port| requested.port_u16() == Some(port))
        })
    }
}

/// Whether the headers of the browser state that no page of another origin sent the request. Programs send no such headers.
pub(crate) fn is_of_own_page(headers: &HeaderMap) -> bool {
    let is_own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    headers.get_all(SEC_FETCH_SITE).iter().all(is_own)
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
        let public = public.map(|url| Url::parse(url).unwrap());
        ServerNames::new(listen.parse().unwrap(), public.as_ref())
    }

    fn headers(hosts: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        headers
    }

    fn asks(names: &ServerNames, uri: &str, hosts: &[&str]) -> bool {
        names.match_local_request(&uri.parse().unwrap(), &headers(hosts))
    }

    #[test]
    fn only_requests_under_local_names_count_as_local() {
        let names = names("192.0.2.7", Some("https://agentdex.example"));
        for host in
            ["localhost", "LOCALHOST:8080", "127.0.0.1:9", "[::1]:8080", "192.0.2.7:8080", "LOCALHOST."]
        {
            assert!(asks(&names, "/metrics", &[host]), "{host}");
        }
        for host in [
            "agentdex.example",
            "agentdex.example.:443",
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
    fn the_public_name_with_its_port_is_a_name_of_this_server() {
        let names = names("192.0.2.7", Some("http://dex.example:81")).list();
        assert!(names.iter().any(|name| name == "dex.example:81"));
        assert!(!names.iter().any(|name| name == "dex.example"));
    }

    #[test]
    fn requests_of_pages_of_other_origins_are_not_of_this_machine() {
        let names = names("127.0.0.1", None);
        let is_local = |sent: &[(&'static str, &str)]| {
            let mut headers = headers(&["localhost:8080"]);
            for (name, value) in sent {
                headers.append(*name, value.parse().unwrap());
            }
            names.match_local_request(&"/metrics".parse().unwrap(), &headers)
        };
        for own in [
            &[][..],
            &[("origin", "http://localhost:8080"), ("sec-fetch-site", "same-origin")],
            &[("sec-fetch-site", "none")],
        ] {
            assert!(is_local(own), "{own:?}");
        }
        for other in [
            &[("origin", "https://evil.example")][..],
            &[("origin", "null")],
            &[("origin", "http://localhost:3000")],
            &[("origin", "http://localhost:8080"), ("origin", "https://evil.example")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
        ] {
            assert!(!is_local(other), "{other:?}");
        }
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
