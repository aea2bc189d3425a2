//! The hosts that a text names: a domain, an address with one, or an identifier.

use manifest::Host;

/// What may precede a domain that identifies a publisher.
const PREFIXES: [&str; 6] = ["did:web:", "did:wba:", "urn:air:", "web:", "https:", "http:"];
/// Number of hosts after which no further one is read in a text.
const NAMES_MAX: usize = 8;
/// Characters that are read as a dot in a domain (UTS 46) or look like one, its escape, and how people write one so that it is no link.
const DOTS: [&str; 10] =
    ["\u{3002}", "\u{ff0e}", "\u{ff61}", "\u{2024}", "%2e", "[.]", "(.)", "\\.", "..", " ."];

/// The host of a text in lower case such as `example.org.`, `https://www.example.org:443/path`, `@example.org`, `did:web:example.org` and
/// `urn:air:example.org:agents:one`, also in quotes or brackets and before a comma. `None` for other texts. People and models paste a domain
/// in any of these forms.
pub(crate) fn named_host(text: &str) -> Option<Host> {
    let is_kept = |c: char| c.is_alphanumeric() || matches!(c, '/' | '@' | ':');
    let plain = with_dots(text);
    let text = plain.trim_matches(|c| !is_kept(c)).trim_start_matches(':');
    let address = text.split_once("://").map(|(_, rest)| rest);
    let identified = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix));
    let rest = match (address, identified) {
        (Some(rest), _) => rest.trim_start_matches('/'),
        (None, Some(rest)) => rest.trim_start_matches('/').split([':', '%']).next()?,
        (None, None) => text.trim_start_matches('/'),
    };
    let authority = rest.split(['/', '\\', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(host, _)| host);
    host_of(host)
}

/// The first hosts that a text in lower case may name anywhere: each word with dots, and for the namespace of a server, as in
/// `org.example/server`, also the same in reverse order. Most are no hosts of known sites. A name such as `flights.search` is usually that of a
/// tool, so it is not read in reverse order: otherwise the owner of `search.flights` would own the name.
pub(crate) fn named_hosts(text: &str) -> Vec<Host> {
    let plain = with_dots(text);
    let words = plain.split_inclusive(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-')));
    let mut hosts = Vec::new();
    let mut before = ' ';
    for word in words {
        let is_namespace = word.ends_with('/') && !matches!(before, '/' | '@');
        before = word.chars().next_back().unwrap_or(' ');
        let name = word.trim_matches(|c: char| !c.is_alphanumeric());
        if !name.contains('.') {
            continue;
        }
        hosts.extend(host_of(name));
        if is_namespace {
            hosts.extend(host_of(&name.split('.').rev().collect::<Vec<_>>().join(".")));
        }
        if hosts.len() >= NAMES_MAX {
            break;
        }
    }
    hosts
}

fn with_dots(text: &str) -> String {
    DOTS.iter().fold(text.to_owned(), |text, dot| text.replace(dot, "."))
}

fn host_of(name: &str) -> Option<Host> {
    Host::parse(name).ok().filter(|host| host.as_str().contains('.'))
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
            "victim.example,",
            "(victim.example)",
            "<https://victim.example>",
            "\u{201c}victim.example\u{201d}",
            "\"victim.example\"",
            "victim\u{2024}example",
            "victim%2eexample",
            "victim\\.example",
            "victim..example",
            "`victim.example`",
            "[victim](https://victim.example)",
            "https:victim.example",
            "https:/victim.example",
            "*.victim.example",
            "did:wba:victim.example:user",
            "web:victim.example",
            "mailto:pay@victim.example",
            "victim[.]example",
            "victim .example",
            "\u{200b}victim.example\u{200b}",
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

    #[test]
    fn hosts_are_recognised_in_sentences_and_registry_names() {
        for text in [
            "open account at victim.example",
            "victim.example:pay",
            "example.victim/mcp",
            "https://victim.example https://victim.example",
            "pay_victim.example_now",
            "pay victim .example now",
        ] {
            let hosts = named_hosts(text);
            assert!(hosts.iter().any(|host| host.as_str() == "victim.example"), "{text}: {hosts:?}");
        }
        assert_eq!(named_hosts("open account, v1 2.0 ... 10.0.0.1"), []);
        assert_eq!(named_hosts(&"a.example ".repeat(100)).len(), NAMES_MAX);
        for text in ["flights.search", "call flights.search now", "https://flights.search/a"] {
            let hosts = named_hosts(text);
            assert!(hosts.iter().all(|host| host.as_str() == "flights.search"), "{text}: {hosts:?}");
        }
    }
}
