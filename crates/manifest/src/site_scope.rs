//! Which names may be a site: the one answer for seeds, submissions and links.
//!
//! A name that no public name server may answer for (RFC 6761 and those after it), a public suffix, an address with a
//! port, and anything that is not https are refused. `.test` and `.example` are reserved too, and taken: they lead
//! nowhere on the public web, and demos and tests stand on them.

use crate::name::{Host, ManifestUrl, NameError, SiteName};

/// The port of https, the one that is visited.
const HTTPS_PORT: u16 = 443;

/// Names of machines inside a network, with what reserves them. Their addresses are private, and another network has
/// others of the same name.
const PRIVATE: [(&str, &str); 9] = [
    ("internal", "reserved by ICANN for private use"),
    ("local", "multicast DNS, RFC 6762"),
    ("localhost", "this machine, RFC 6761"),
    ("home.arpa", "home networks, RFC 8375"),
    ("intranet", "private use, RFC 6762 appendix G"),
    ("private", "private use, RFC 6762 appendix G"),
    ("corp", "private use, RFC 6762 appendix G"),
    ("home", "private use, RFC 6762 appendix G"),
    ("lan", "private use, RFC 6762 appendix G"),
];

/// Names that no web site has.
const NO_SITE: [(&str, &str); 4] = [
    ("invalid", "it is reserved to be invalid, RFC 6761"),
    ("onion", "it is a Tor service, which DNS must not be asked for, RFC 7686"),
    ("alt", "it is a name outside of DNS, RFC 9476"),
    ("arpa", "it is infrastructure of the Internet such as in-addr.arpa and ip6.arpa, RFC 3172"),
];

/// Which names are taken, by who names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteScope {
    /// Names of the public web: what clients submit, other sites link to and an operator lists.
    Public,
    /// Names of private networks too: what an operator lists who allows addresses of their own.
    WithPrivateNames,
}

impl SiteScope {
    /// Whether a host may be visited; the error says what is wrong and what would be right.
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

    /// Whether a URL may be visited: one of a host that may be, on the port of https.
    pub fn check_url(self, url: &ManifestUrl) -> Result<(), NameError> {
        if url.port() != HTTPS_PORT {
            return Err(NameError::Port(url.as_str().to_owned(), url.port()));
        }
        self.check_host(&url.host())
    }
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
    fn names_of_the_public_web_and_of_tests_are_sites() {
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
    fn special_use_names_are_no_sites_for_anybody() {
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
            ("localhost", "not a host name"),
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
    fn private_names_are_sites_for_operators_alone() {
        for name in [
            "a.internal",
            "a.local",
            "printer.a.local",
            "app.localhost",
            "nas.home.arpa",
            "wiki.intranet",
            "a.private",
            "mail.corp",
            "tv.home",
            "router.lan",
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
    fn urls_are_visited_on_the_port_of_https_alone() {
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
