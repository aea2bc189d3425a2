//! The host that a whole text names: a domain, or an address with one.

use manifest::Host;

/// What may precede a domain that identifies a publisher.
const PREFIXES: [&str; 2] = ["did:web:", "urn:air:"];

/// The host of a text in lower case such as `example.org.`, `https://www.example.org:443/path`, `@example.org`, `did:web:example.org` and
/// `urn:air:example.org:agents:one`. `None` for other texts. People and models paste a domain in any of these forms.
pub(crate) fn named_host(text: &str) -> Option<Host> {
    let text = text.trim();
    let identified = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    let rest = match identified {
        Some(rest) => rest.split([':', '%']).next()?,
        None => text.split_once("://").map_or(text, |(_, rest)| rest).trim_start_matches('/'),
    };
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    Host::parse(host).ok().filter(|host| host.as_str().contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_recognised_in_each_form() {
        for text in [
            "victim.example",
            " victim.example. ",
            "victim.example:443",
            "victim.example:",
            "victim.example/",
            "@victim.example",
            "pay@victim.example",
            "//victim.example",
            "https://victim.example/.well-known/agent-card.json",
            "https://someone:secret@victim.example:8443?a=https://evil.example",
            "mcp://victim.example#a",
            "did:web:victim.example",
            "did:web:victim.example%3a443:a",
            "urn:air:victim.example:agents:x",
            "victim\u{ff0e}example",
        ] {
            assert_eq!(named_host(text).as_ref().map(Host::as_str), Some("victim.example"), "{text}");
        }
        assert_eq!(named_host("www.victim.example").as_ref().map(Host::as_str), Some("www.victim.example"));
        for text in
            ["", "victim", "open account at victim.example", "book_seat", "urn:isbn:1", "10.0.0.1", "a, b"]
        {
            assert_eq!(named_host(text), None, "{text}");
        }
    }
}
