//! Decides which names can be sites, for seeds, submissions and links.
//!
//! Special-use names (RFC 6761 and later), public suffixes, other ports than 443 and other schemes than https are refused.
//! `.test` and `.example` are accepted although they are reserved: demos and tests use them.

use crate::name::{Host, ManifestUrl, SiteName};
use crate::name_error::NameError;

const HTTPS_PORT: u16 = 443;

/// Names of private networks, and the reason why each is reserved.
const PRIVATE: [(&str, &str); 12] = [
    ("internal", "reserved by ICANN for private use"),
    ("local", "multicast DNS, RFC 6762"),
    ("localhost", "this machine, RFC 6761"),
    ("localdomain", "local networks, by convention of resolvers"),
    ("home.arpa", "home networks, RFC 8375"),
    ("intranet", "private use, RFC 6762 appendix G"),
    ("private", "private use, RFC 6762 appendix G"),
    ("corp", "private use, RFC 6762 appendix G"),
    ("home", "private use, RFC 6762 appendix G"),
    ("lan", "private use, RFC 6762 appendix G"),
    ("svc", "services of a cluster, as in kubernetes.default.svc"),
    ("pod", "programs of a cluster, as in 10-0-0-1.default.pod"),
];

/// Names that cannot be web sites.
const NO_SITE: [(&str, &str); 4] = [
    ("invalid", "it is reserved to be invalid, RFC 6761"),
    ("onion", "it is a Tor service, which must not be resolved by DNS, RFC 7686"),
    ("alt", "it is a name outside of DNS, RFC 9476"),
    ("arpa", "it belongs to the infrastructure of the Internet, like in-addr.arpa and ip6.arpa, RFC 3172"),
];

/// The names that are accepted from a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteScope {
    /// Public names: for submissions, links and seeds.
    Public,
    /// Also private names: for seeds of an operator who allows private addresses.
    WithPrivateNames,
}

impl SiteScope {
    /// Whether a host may be visited.
    pub fn check_host(self, host: &Host) -> Result<(), NameError> {
        let name = host.as_str();
        let reason = |names: &[(&str, &'static str)]| {
            names.iter().find(|(suffix, _)| is_at_or_below(name, suffix)).map(|(_, reason)| *reason)
        };
        match reason(&PRIVATE) {
            Some(_) if self == Self::WithPrivateNames => {}
            Some(reason) => return Err(NameError::PrivateName(name.to_owned(), reason)),
            None => {
                if let Some(reason) = reason(&NO_SITE) {
                    return Err(NameError::NoSite(name.to_owned(), reason));
                }
            }
        }
        let is_suffix = psl::domain_str(name).is_none() && SiteName::of(host).as_str() == name;
        if is_suffix { Err(NameError::PublicSuffix(name.to_owned())) } else { Ok(()) }
    }

    /// Whether a URL may be visited: host and port.
    pub fn check_url(self, url: &ManifestUrl) -> Result<(), NameError> {
        if url.port() != HTTPS_PORT {
            return Err(NameError::Port(url.as_str().to_owned(), url.port()));
        }
        self.check_host(&url.host())
    }
}

/// Why no public web site can have this name; `None` if it is possible.
pub(crate) fn special_use(name: &str) -> Option<&'static str> {
    let reserved = PRIVATE.iter().chain(&NO_SITE).find(|(suffix, _)| is_at_or_below(name, suffix));
    reserved.map(|(_, reason)| *reason)
}

fn is_at_or_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scope: SiteScope, name: &str) -> Result<(), NameError> {
        Host::parse(name).and_then(|host| scope.check_host(&host))
    }

    #[test]
    fn accepts_public_and_test_names() {
        for name in [
            "example.org",
            "www.example.co.uk",
            "alice.github.io",
            "site1.test",
            "kiosk.example",
            "xn--bcher-kva.example",
            "my-local.example",
            "internal.example.com",
            "notlocal.example",
            "new.gtldofthefuture",
        ] {
            assert_eq!(check(SiteScope::Public, name), Ok(()), "{name}");
            assert_eq!(check(SiteScope::WithPrivateNames, name), Ok(()), "{name}");
        }
    }

    #[test]
    fn rejects_special_use_names_in_every_scope() {
        for (name, says) in [
            ("a.invalid", "RFC 6761"),
            ("x.onion", "RFC 7686"),
            ("a.b.onion", "RFC 7686"),
            ("a.alt", "RFC 9476"),
            ("127.in-addr.arpa", "in-addr.arpa"),
            ("1.0.0.127.in-addr.arpa", "in-addr.arpa"),
            ("8.b.d.0.1.0.0.2.ip6.arpa", "ip6.arpa"),
            ("ipv4only.arpa", "RFC 3172"),
            ("a.service.arpa", "RFC 3172"),
            ("co.uk", "public suffix"),
            ("github.io", "public suffix"),
            ("localhost", "name of this machine"),
            ("com", "not a host name"),
            ("10.0.0.1", "IP address"),
        ] {
            for scope in [SiteScope::Public, SiteScope::WithPrivateNames] {
                let error = check(scope, name).unwrap_err().to_string();
                assert!(error.contains(says), "{name}: {error}");
            }
        }
    }

    #[test]
    fn accepts_private_names_only_in_the_private_scope() {
        for name in [
            "a.internal",
            "a.local",
            "foo.localdomain",
            "kubernetes.default.svc",
            "printer.a.local",
            "app.localhost",
            "nas.home.arpa",
            "wiki.intranet",
            "a.private",
            "mail.corp",
            "tv.home",
            "router.lan",
            "a.localdomain",
            "localhost.localdomain",
            "kubernetes.default.svc",
            "db.default.svc",
            "10-0-0-1.default.pod",
        ] {
            let error = check(SiteScope::Public, name).unwrap_err();
            assert!(matches!(error, NameError::PrivateName(..)), "{name}: {error}");
            assert!(error.to_string().contains("--allow-addresses"), "{error}");
            assert_eq!(check(SiteScope::WithPrivateNames, name), Ok(()), "{name}");
        }
        assert!(check(SiteScope::Public, "home.arpa").is_err());
        assert!(check(SiteScope::WithPrivateNames, "home.arpa").is_err(), "a suffix, not a site");
    }

    #[test]
    fn rejects_urls_with_other_ports() {
        let check = |text: &str| ManifestUrl::parse(text).and_then(|url| SiteScope::Public.check_url(&url));
        assert_eq!(check("https://a.example:443/agent.json"), Ok(()));
        for (url, says) in [
            ("https://a.com:22/", "port 22"),
            ("https://a.example:8443/agent.json", "port 443"),
            ("http://a.example/", "https"),
            ("https://u:p@a.example/", "user name"),
            ("https://a.internal/", "--allow-addresses"),
            ("https://[::1]/", "IP address"),
        ] {
            let error = check(url).unwrap_err().to_string();
            assert!(error.contains(says), "{url}: {error}");
        }
    }
}
