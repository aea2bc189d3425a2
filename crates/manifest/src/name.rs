//! Names used in all crates: hosts, sites, manifest URLs, content hashes and ids.
//!
//! Input is parsed into one of these types once; no other code passes a host or a URL as a string. Parsing refuses IP-literal hosts, user
//! information and every scheme other than https (AWP, ATP and WoA all require https).

use std::fmt;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use ring::digest;
use serde::{Deserialize, Serialize, Serializer};
use url::{Position, Url};

use crate::name_error::{NameError, reject_control_characters};

/// Longest host name in bytes (RFC 1035 section 2.3.4, without the final dot).
const HOST_BYTES_MAX: usize = 253;
/// Longest label of a host name in bytes (RFC 1035 section 2.3.4).
const LABEL_BYTES_MAX: usize = 63;
/// Longest URL in bytes; longer ones are refused. RFC 9110 section 4.1 recommends at least 8,000.
pub(crate) const URL_BYTES_MAX: usize = 8_192;

/// A host name in ASCII form, lower case, without final dot: `xn--bcher-kva.example`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Host(String);

impl Host {
    /// Parses a host name, mapping internationalised names to ASCII (UTS 46).
    pub fn parse(text: &str) -> Result<Self, NameError> {
        reject_control_characters(text)?;
        Self::from_stored(text)?.reject_outer_hyphens(text)
    }

    /// Refuses labels that begin or end with a hyphen (RFC 1123 section 2.1, RFC 5891 section 4.2.3.1), because no certificate can contain
    /// them.
    fn reject_outer_hyphens(self, text: &str) -> Result<Self, NameError> {
        match self.0.split('.').find(|label| label.starts_with('-') || label.ends_with('-')) {
            Some(label) => Err(NameError::Hyphen(text.to_owned(), label.to_owned())),
            None => Ok(self),
        }
    }

    /// A name from a database. It may be older than the rule about hyphens.
    fn from_stored(text: &str) -> Result<Self, NameError> {
        let trimmed = text.trim().trim_end_matches('.');
        if Self::is_plain(trimmed) {
            return Ok(Self(trimmed.to_owned()));
        }
        Self::map(trimmed, text)
    }

    /// Maps a name to ASCII.
    fn map(trimmed: &str, text: &str) -> Result<Self, NameError> {
        if trimmed.eq_ignore_ascii_case("localhost") {
            return Err(NameError::NoSite(text.to_owned(), "it is the name of this machine (RFC 6761)"));
        }
        if let Some(port) = port_after_name(trimmed) {
            return Err(NameError::Port(text.to_owned(), port));
        }
        let wrong = || NameError::Host(text.to_owned());
        let ascii =
            idna::domain_to_ascii_cow(trimmed.as_bytes(), idna::AsciiDenyList::URL).map_err(|_| wrong())?;
        match url::Host::parse(&ascii) {
            Ok(url::Host::Domain(name)) if Self::is_well_formed(&name) => Ok(Self(name)),
            Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => Err(NameError::IpLiteral(text.to_owned())),
            _ => Err(wrong()),
        }
    }

    /// Whether mapping keeps a name unchanged, which is the usual case: lower-case ASCII without Punycode, and without a number at the end,
    /// because such a name is an IP address.
    pub(crate) fn is_plain(name: &str) -> bool {
        let is_plain = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        let (mut labels, mut last) = (0, b"".as_slice());
        for label in name.as_bytes().split(|byte| *byte == b'.') {
            let has_length = (1..=LABEL_BYTES_MAX).contains(&label.len());
            if !has_length || !label.iter().all(is_plain) || label.starts_with(b"xn--") {
                return false;
            }
            (labels, last) = (labels + 1, label);
        }
        labels > 1 && name.len() <= HOST_BYTES_MAX && last.first().is_some_and(u8::is_ascii_lowercase)
    }

    fn is_well_formed(name: &str) -> bool {
        let label_ok = |label: &str| {
            !label.is_empty()
                && label.len() <= LABEL_BYTES_MAX
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        };
        name.len() <= HOST_BYTES_MAX && name.contains('.') && name.split('.').all(label_ok)
    }

    /// Whether this is a placeholder for an unknown name: below `.invalid`, where no site can be (RFC 6761 §6.4).
    pub(crate) fn is_nowhere(&self) -> bool {
        self.0.ends_with(".invalid")
    }

    /// The site this host belongs to; a host that is itself a public suffix is its own site.
    pub fn site(&self) -> SiteName {
        SiteName::of(self)
    }

    /// Whether this host may publish under the name of another one: its own name without `www.`, and the names of its parent hosts and
    /// subdomains within the site. Sibling hosts may belong to different users of the site.
    pub(crate) fn may_use_name_of(&self, name: &Self) -> bool {
        let own = self.without_www();
        let is_in_line = own == name.0 || is_below(own, &name.0) || is_below(&name.0, own);
        is_in_line && self.site() == name.site()
    }

    /// Whether this host, without `www.`, is a subdomain of another one.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        is_below(self.without_www(), &other.0)
    }

    /// Whether this host has a name, or is the `www.` host of the name.
    pub fn is_main_of(&self, name: &Self) -> bool {
        HostOfSite { site: &name.0, host: &self.0 }.is_main()
    }

    fn without_www(&self) -> &str {
        self.0.strip_prefix("www.").unwrap_or(&self.0)
    }
}

/// Whether a host is the domain of a site or its `www.` host. Anybody can link to or submit any other host below a site.
pub fn is_main_host(site: &SiteName, host: &Host) -> bool {
    HostOfSite { site: &site.0, host: &host.0 }.is_main()
}

/// Names of a host and its site that a database returned.
#[derive(Debug, Clone, Copy)]
pub struct HostOfSite<'a> {
    pub site: &'a str,
    pub host: &'a str,
}

impl HostOfSite<'_> {
    /// See [`is_main_host`].
    pub fn is_main(self) -> bool {
        self.host == self.site || self.host.strip_prefix("www.") == Some(self.site)
    }
}

fn is_below(host: &str, above: &str) -> bool {
    host.strip_suffix(above).is_some_and(|labels| labels.ends_with('.'))
}

/// The port in `example.org:8443`.
fn port_after_name(text: &str) -> Option<u16> {
    let (name, port) = text.split_once(':')?;
    Host::map(name, name).ok().and_then(|_| port.parse().ok())
}

/// A registrable domain according to the whole Public Suffix List, including its private section: `alice.github.io`, `example.co.uk`.
/// Leases and rate limits apply to a site.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct SiteName(String);

impl SiteName {
    pub(crate) fn of(host: &Host) -> Self {
        psl::domain_str(host.as_str()).map_or_else(|| Self(host.0.clone()), |domain| Self(domain.to_owned()))
    }

    /// Parses any host name and returns the site it belongs to.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        Host::parse(text).map(|host| Self::of(&host))
    }

    fn from_stored(text: &str) -> Result<Self, NameError> {
        Host::from_stored(text).map(|host| Self::of(&host))
    }

    /// The name with its international letters: `bücher.example` for `xn--bcher-kva.example`. `None` if it has none. Different names may
    /// look alike with these letters, so a page shows both forms.
    pub fn in_unicode(&self) -> Option<String> {
        if !self.0.split('.').any(|label| label.starts_with("xn--")) {
            return None;
        }
        let (unicode, decoded) = idna::domain_to_unicode(&self.0);
        decoded.is_ok().then_some(unicode).filter(|unicode| *unicode != self.0)
    }

    /// The host with the name of the site.
    pub fn apex(&self) -> Host {
        Host(self.0.clone())
    }
}

/// Maximum bytes of the authority of a URL, with user information and port: a host name has at most 253 bytes (RFC 1035 §2.3.4).
const AUTHORITY_BYTES_MAX: usize = 300;

/// Whether the host of a web URL is longer than a name can be. Parsing takes time quadratic in the length of a label, because international
/// labels are encoded first (RFC 3492).
pub(crate) fn has_long_host(url: &str) -> bool {
    let is_slash = |letter: char| matches!(letter, '/' | '\\');
    let url = url.trim_start();
    let price_after_scheme = match url.split_once(':') {
        Some((scheme, rest)) if !scheme.contains(['/', '\\', '?', '#']) => {
            let is_web = ["https", "http", "wss", "ws"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
            if !is_web && !rest.starts_with("//") {
                return false;
            }
            rest
        }
        _ if url.chars().take(2).filter(|letter| is_slash(*letter)).count() == 2 => url,
        _ => return false,
    };
    let authority = price_after_scheme.trim_start_matches(is_slash);
    authority.find(['/', '\\', '?', '#']).unwrap_or(authority.len()) > AUTHORITY_BYTES_MAX
}

/// Parses a published URL.
pub(crate) fn parse_url(text: &str) -> Result<Url, url::ParseError> {
    if has_long_host(text) { Err(url::ParseError::IdnaError) } else { Url::parse(text) }
}

/// The folder in which only the operator of the host publishes (RFC 8615).
const WELL_KNOWN: &str = "/.well-known/";

/// An absolute https URL with a host name, without user information and without fragment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ManifestUrl(Url);

impl ManifestUrl {
    pub fn parse(text: &str) -> Result<Self, NameError> {
        reject_control_characters(text)?;
        let url = Self::from_stored(text)?;
        url.host().reject_outer_hyphens(text)?;
        Ok(url)
    }

    fn from_stored(text: &str) -> Result<Self, NameError> {
        if text.len() > URL_BYTES_MAX {
            let start: String = text.chars().take(60).collect();
            return Err(NameError::Url(format!("{start}…"), format!("longer than {URL_BYTES_MAX} bytes")));
        }
        let url = parse_url(text).map_err(|error| {
            let reason = if text.contains(':') {
                error.to_string()
            } else {
                "it does not begin with https://, as in https://example.org/agent.json".to_owned()
            };
            NameError::Url(text.to_owned(), reason)
        })?;
        Self::of_url(url)
    }

    fn of_url(mut url: Url) -> Result<Self, NameError> {
        if url.scheme() != "https" {
            return Err(NameError::Scheme(url.into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NameError::UserInfo(url.into()));
        }
        let host = match url.host() {
            Some(url::Host::Domain(name)) => Host::from_stored(name)?,
            Some(_) => return Err(NameError::IpLiteral(url.into())),
            None => return Err(NameError::Host(url.into())),
        };
        // the final dot is not part of the name
        if url.host_str() != Some(host.as_str()) && url.set_host(Some(host.as_str())).is_err() {
            return Err(NameError::Host(url.into()));
        }
        url.set_fragment(None);
        Ok(Self(url))
    }

    /// The URL of `path` (which begins with `/`) on a host, port 443.
    pub fn on_host(host: &Host, path: &str) -> Result<Self, NameError> {
        Self::parse(&format!("https://{}{}", host.as_str(), path))
    }

    /// Resolves a reference found in this document (RFC 3986 section 5).
    pub fn join(&self, reference: &str) -> Result<Self, NameError> {
        if has_long_host(reference) {
            return Err(NameError::Url(
                reference.to_owned(),
                "its host is longer than a name can be".to_owned(),
            ));
        }
        let url = self
            .0
            .join(reference)
            .map_err(|error| NameError::Url(reference.to_owned(), error.to_string()))?;
        Self::parse(url.as_str())
    }

    pub fn as_url(&self) -> &Url {
        &self.0
    }

    pub fn host(&self) -> Host {
        Host(self.0.host_str().unwrap_or_default().to_owned())
    }

    pub fn site(&self) -> SiteName {
        self.host().site()
    }

    pub fn port(&self) -> u16 {
        self.0.port().unwrap_or(443)
    }

    /// Path and query, as sent in a request and as matched against robots.txt.
    pub fn path_and_query(&self) -> String {
        self.0.query().map_or_else(|| self.0.path().to_owned(), |query| format!("{}?{query}", self.0.path()))
    }

    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// Whether it is a plain path below `/.well-known/`, where users of a host cannot write files. A server may decode escaped characters
    /// and leave the folder (`..%2F`), so a plain path contains no escapes.
    pub fn is_well_known(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        let rest = self.path().strip_prefix(WELL_KNOWN).filter(|_| self.0.query().is_none());
        rest.is_some_and(|rest| rest.chars().all(is_plain) && !rest.contains("..") && !rest.contains("//"))
    }

    /// Scheme, host and port as served: `https://example.org`, `https://example.org:8443`.
    pub fn origin(&self) -> String {
        self.0[..Position::BeforePath].to_owned()
    }
}

impl TryFrom<Url> for ManifestUrl {
    type Error = NameError;

    fn try_from(url: Url) -> Result<Self, NameError> {
        let url = Self::of_url(url)?;
        url.host().reject_outer_hyphens(url.as_str())?;
        Ok(url)
    }
}

/// SHA-256 of a document's bytes, lower-case hex. Also the id of a manifest's version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ContentHash(String);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(HEXLOWER.encode(digest::digest(&digest::SHA256, bytes).as_ref()))
    }

    /// One hash over several parts.
    pub(crate) fn of_parts<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in parts {
            context.update(part);
        }
        Self(HEXLOWER.encode(context.finish().as_ref()))
    }

    pub fn parse(text: &str) -> Result<Self, NameError> {
        let ok = text.len() == 64 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if ok { Ok(Self(text.to_owned())) } else { Err(NameError::Id(text.to_owned())) }
    }
}

/// 80 bits, so that a billion ids collide with a probability below one in a million.
const ID_HASH_BYTES: usize = 10;

fn short_id(prefix: char, text: &str) -> String {
    let hash = digest::digest(&digest::SHA256, text.as_bytes());
    let mut id = String::with_capacity(17);
    id.push(prefix);
    BASE32_NOPAD.encode_append(hash.as_ref().get(..ID_HASH_BYTES).unwrap_or_default(), &mut id);
    id.make_ascii_lowercase();
    id
}

fn parse_id(prefix: char, text: &str) -> Result<String, NameError> {
    let well_formed = text.len() == 17
        && text.starts_with(prefix)
        && text.bytes().skip(1).all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b));
    if well_formed { Ok(text.to_owned()) } else { Err(NameError::Id(text.to_owned())) }
}

/// Short base32 hash of a manifest's resource URL, stable across versions: `m` and 16 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ManifestId(String);

impl ManifestId {
    pub fn of(url: &ManifestUrl) -> Self {
        Self(short_id('m', url.as_str()))
    }

    pub fn parse(text: &str) -> Result<Self, NameError> {
        parse_id('m', text).map(Self)
    }
}

/// Short base32 hash of a capability's key `<manifest URL>#<format>:<native id>`: `c` and 16 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct CapabilityId(String);

impl CapabilityId {
    pub fn of_key(key: &str) -> Self {
        Self(short_id('c', key))
    }

    pub fn parse(text: &str) -> Result<Self, NameError> {
        parse_id('c', text).map(Self)
    }
}

/// Conversions of every name: text, display, strict parsing of input, and reading from JSON or a database by the given
/// function.
macro_rules! name_conversions {
    ($($name:ident: $read_back:ident),*) => {$(
        impl $name {
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::$read_back(&text)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.into()
            }
        }
    )*};
}

name_conversions!(
    Host: from_stored, SiteName: from_stored, ManifestUrl: from_stored, ContentHash: parse, ManifestId: parse, CapabilityId: parse
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_join_two_names() {
        for (text, expected) in [
            ("a.example\tx", r#""a.example\tx" has a tab in it: write one name a line"#),
            ("a.exa\nmple", r#""a.exa\nmple" has a control character in it: remove it"#),
            (
                "a\0.\0b\0",
                r#""a\0.\0b\0" has a NUL character in it, as a text in UTF-16 has: save it as UTF-8"#,
            ),
        ] {
            let host = Host::parse(text).unwrap_err();
            assert_eq!(host.quoting(text).to_string(), expected);
            let url = format!("https://{text}");
            let refused = ManifestUrl::parse(&url).unwrap_err().quoting(text).to_string();
            assert_eq!(refused, expected.replacen('"', "\"https://", 1));
        }
        assert!(Host::parse(" a.example\t").is_ok_and(|host| host.as_str() == "a.example"));
    }

    #[test]
    fn a_host_may_use_the_names_of_its_parents_and_subdomains_in_the_site() {
        let host = |text: &str| Host::parse(text).unwrap();
        for (of, name) in [
            ("shop.example", "shop.example"),
            ("www.shop.example", "shop.example"),
            ("www.shop.example", "api.shop.example"),
            ("shop.example", "api.shop.example"),
            ("a.api.shop.example", "shop.example"),
        ] {
            assert!(host(of).may_use_name_of(&host(name)), "{of} {name}");
        }
        for (of, name) in [
            ("user.shop.example", "api.shop.example"),
            ("myshop.example", "shop.example"),
            ("api.myshop.example", "shop.example"),
            ("github.io", "alice.github.io"),
            ("www.github.io", "alice.github.io"),
        ] {
            assert!(!host(of).may_use_name_of(&host(name)), "{of} {name}");
        }
        for (main, of, expected) in [
            ("shop.example", "shop.example", true),
            ("www.shop.example", "shop.example", true),
            ("www.example", "www.example", true),
            ("www.www.example", "www.example", true),
            ("api.shop.example", "shop.example", false),
            ("www.www.shop.example", "shop.example", false),
            ("shop.example", "www.shop.example", false),
        ] {
            assert_eq!(host(main).is_main_of(&host(of)), expected, "{main} of {of}");
            let site = SiteName(of.to_owned());
            assert_eq!(is_main_host(&site, &host(main)), expected, "{main} of {of}");
        }
    }

    #[test]
    fn hosts_that_are_longer_than_a_name_are_not_parsed() {
        let (long, fits) = ("ü".repeat(151), "ü".repeat(150));
        for start in [
            "https://",
            "HTTP:",
            "//",
            "\\\\",
            "https:\\\\",
            "https:///",
            "wss://u:p@",
            "custom://",
            " https://",
        ] {
            assert!(has_long_host(&format!("{start}{long}/x")), "{start}");
        }
        for url in [
            format!("https://{fits}/{long}"),
            format!("/{long}"),
            long.clone(),
            format!("?u=https://{long}"),
            format!("stdio:{long}"),
            format!("urn:air:{long}"),
        ] {
            assert!(!has_long_host(&url), "{url}");
        }
        let base = ManifestUrl::parse("https://shop.example/agent.json").unwrap();
        assert!(base.join(&format!("//{long}.example/")).is_err());
        assert!(ManifestUrl::parse(&format!("https://{long}.example/")).is_err());
    }

    #[test]
    fn international_names_are_decoded() {
        let decoded = |name: &str| SiteName::parse(name).unwrap().in_unicode();
        assert_eq!(decoded("bücher.example").as_deref(), Some("bücher.example"));
        assert_eq!(decoded("books.example"), None);
    }

    #[test]
    fn normalises_and_validates_hosts() {
        assert_eq!(Host::parse("BÜCHER.example.").unwrap().as_str(), "xn--bcher-kva.example");
        assert_eq!(Host::parse("10.0.0.1"), Err(NameError::IpLiteral("10.0.0.1".into())));
        let port = NameError::Port("example.net:8443".into(), 8443);
        assert_eq!(Host::parse("example.net:8443"), Err(port.clone()));
        assert_eq!(SiteName::parse("example.net:8443"), Err(port));
        for wrong in ["example.net:x", "10.0.0.1:80", "::1", "a:b:80"] {
            assert!(matches!(Host::parse(wrong), Err(NameError::Host(_))), "{wrong}");
        }
        for wrong in ["", "localhost", "a b.example", "-", "..", "exa/mple.org"] {
            assert!(Host::parse(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn rejects_labels_with_outer_hyphens() {
        for (wrong, label) in [("-bad-.com", "-bad-"), ("a-.example", "a-"), ("A.-B.example", "-b")] {
            let hyphen = NameError::Hyphen(wrong.to_owned(), label.to_owned());
            assert_eq!(Host::parse(wrong).unwrap_err(), hyphen);
            assert_eq!(SiteName::parse(wrong).unwrap_err(), hyphen);
            assert!(ManifestUrl::parse(&format!("https://{wrong}/agent.json")).is_err());
            let from_stored = SiteName::try_from(wrong.to_owned()).unwrap();
            assert_eq!(
                from_stored.as_str(),
                wrong.to_ascii_lowercase().trim_start_matches("a."),
                "older rows are read"
            );
        }
        for right in [
            "a--b.example",
            "xn--bcher-kva.example",
            "xn--p1ai.example",
            "_dmarc.x.example",
            "a-1.b-2.example",
        ] {
            assert!(Host::parse(right).is_ok(), "{right}");
        }
    }

    #[test]
    fn plain_names_are_unchanged_by_mapping() {
        for name in [
            "example.org",
            "a--b.example",
            "-a-.example",
            "_dmarc.x.example",
            "0x10.example",
            "1.2.example",
            "0.a1",
        ] {
            assert!(Host::is_plain(name), "{name}");
            assert_eq!(Host::map(name, name), Ok(Host(name.to_owned())));
        }
        for other in
            ["Example.org", "xn--bcher-kva.example", "a.xn--p1ai", "1.2.3.4", "a.0x10", "a.1", "localhost"]
        {
            assert!(!Host::is_plain(other), "{other}");
        }
    }

    #[test]
    fn site_is_the_registrable_domain_by_the_public_suffix_list() {
        for (host, site) in [
            ("www.example.co.uk", "example.co.uk"),
            ("docs.alice.github.io", "alice.github.io"),
            ("github.io", "github.io"),
            ("site1.test", "site1.test"),
            ("api.site1.test", "site1.test"),
        ] {
            assert_eq!(SiteName::parse(host).unwrap().as_str(), site);
        }
    }

    #[test]
    fn accepts_https_urls_without_user_and_drops_the_fragment() {
        let url = ManifestUrl::parse("https://Example.org:8443/a?b=c#d").unwrap();
        assert_eq!(url.as_str(), "https://example.org:8443/a?b=c");
        assert_eq!(url.origin(), "https://example.org:8443");
        assert_eq!(url.path_and_query(), "/a?b=c");
        assert!(matches!(ManifestUrl::parse("http://example.org/"), Err(NameError::Scheme(_))));
        assert!(matches!(ManifestUrl::parse("https://u:p@example.org/"), Err(NameError::UserInfo(_))));
        assert!(matches!(ManifestUrl::parse("https://[::1]/"), Err(NameError::IpLiteral(_))));
    }

    #[test]
    fn removes_the_final_dot_of_a_host_in_a_url() {
        let plain = ManifestUrl::parse("https://example.org/x").unwrap();
        assert_eq!(ManifestUrl::parse("https://Example.org./x"), Ok(plain.clone()));
        assert_eq!(plain.join("//example.org./x"), Ok(plain.clone()));
        assert_eq!(ManifestUrl::try_from(Url::parse("https://example.org./x").unwrap()), Ok(plain.clone()));
        let with_port = ManifestUrl::parse("https://example.org.:8443/").unwrap();
        assert_eq!((with_port.as_str(), with_port.host()), ("https://example.org:8443/", plain.host()));
        assert_eq!(with_port.site(), plain.site());
    }

    #[test]
    fn ids_can_be_parsed_from_their_text() {
        let url = ManifestUrl::parse("https://skyhop.example/agent.json").unwrap();
        let id = ManifestId::of(&url);
        assert_eq!(ManifestId::parse(id.as_str()).unwrap(), id);
        let capability = CapabilityId::of_key("https://skyhop.example/agent.json#awp:book_seat");
        assert_eq!(capability.as_str().len(), 17);
        assert!(ManifestId::parse(capability.as_str()).is_err());
    }
}
