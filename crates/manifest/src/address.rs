//! Addresses inside manifests: absolute or relative, with variables in any published form (`{id}`, `{{id}}`, `{id?}`, `${id}`,
//! `:id`, `<int:id>`, `[id]`), made absolute and uniform.
//!
//! Nothing is fetched or looked up. An address keeps its published scheme; a finding reports one that is not https.

use std::borrow::Cow;

use url::{Position, Url};

use crate::name::{Host, ManifestUrl, URL_BYTES_MAX, has_long_host};

/// An absolute address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Fixed(String),
    /// A URL with `{name}` variables (RFC 6570 level 1).
    Template(String),
}

impl Address {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Fixed(text) | Self::Template(text) => text,
        }
    }

    pub(crate) fn into_string(self) -> String {
        match self {
            Self::Fixed(text) | Self::Template(text) => text,
        }
    }
}

/// Schemes of endpoints. Other schemes belong to commands, identifiers or mistakes.
const SCHEMES: &[&str] = &["https", "http", "wss", "ws"];
/// Placeholder for a variable while the URL is parsed, because the parser percent-encodes braces.
const MARK: &str = "zqvarqz";
/// Maximum number of variables in one address; real ones have up to six.
const VARIABLES_MAX: usize = 32;

/// Resolves a published address against the root of an origin (AWP endpoints, ATP endpoints, agents.json endpoints).
pub(crate) fn on_origin(document: &ManifestUrl, text: &str) -> Option<Address> {
    if let Some(plain) = plain(document.as_url(), text.trim()) {
        return Some(Address::Fixed(plain));
    }
    let root = Url::parse(&document.origin()).ok()?;
    resolve(&root, text)
}

/// Resolves a published address against the document that contains it (RFC 3986 section 5).
pub(crate) fn on_document(document: &ManifestUrl, text: &str) -> Option<Address> {
    resolve(document.as_url(), text)
}

pub(crate) fn resolve(base: &Url, text: &str) -> Option<Address> {
    let text = text.trim();
    if let Some(plain) = plain(base, text) {
        return Some(Address::Fixed(plain));
    }
    if text.is_empty()
        || text.len() > URL_BYTES_MAX
        || text.contains(char::is_whitespace)
        || text.contains(MARK)
        || has_long_host(text)
    {
        return None;
    }
    let text = &*without_alternatives(text);
    let simple = simple_variables(text);
    let (marked, names) = mark_variables(simple.as_deref().unwrap_or(text));
    if names.len() > VARIABLES_MAX {
        return None;
    }
    let url = base.join(&marked).ok()?;
    if !SCHEMES.contains(&url.scheme()) || url.host_str().is_none_or(str::is_empty) {
        return None;
    }
    if names.is_empty() {
        return Some(Address::Fixed(url.into()));
    }
    let mut address = String::from(url);
    for (index, name) in names.iter().enumerate().rev() {
        address = address.replace(&mark(index), &format!("{{{name}}}"));
    }
    Some(Address::Template(address))
}

/// Whether a text is an address pattern: `/oauth/*`.
pub(crate) fn is_pattern(address: &str) -> bool {
    address.ends_with("/*") || address.contains("/*/")
}

/// A path below a base. A path that repeats the path of the base is kept.
pub(crate) fn below(base: &Url, path: &str) -> String {
    let prefix = base.path().trim_end_matches('/');
    let path = path.trim_start_matches('/');
    let full = ["/", path].concat();
    let repeats = full.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if repeats { full } else { [prefix, full.as_str()].concat() }
}

/// The absolute form of an address that has no variables and that URL parsers do not change, which is the usual case: an absolute URL or an
/// absolute path of plain characters. `None` for others.
fn plain(base: &Url, text: &str) -> Option<String> {
    let (origin, path) = match plain_origin(text) {
        Some((scheme, host)) => text.split_at_checked(scheme.len() + host.len())?,
        None if SCHEMES.contains(&base.scheme()) && base.has_host() => (&base[..Position::BeforePath], text),
        None => return None,
    };
    let path = if path.is_empty() && !text.is_empty() { "/" } else { path };
    let is_plain = text.len() <= URL_BYTES_MAX && is_plain_path(path) && !text.contains(MARK);
    is_plain.then(|| [origin, path].concat())
}

/// Scheme (with slashes) and host of a web URL whose host URL parsers do not change. `None` for other URLs.
pub(crate) fn plain_origin(url: &str) -> Option<(&str, &str)> {
    let scheme =
        ["https://", "http://", "wss://", "ws://"].into_iter().find(|scheme| url.starts_with(scheme))?;
    let rest = url.get(scheme.len()..)?;
    let end = rest.bytes().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    let host = rest.get(..end)?;
    Host::is_plain(host).then_some((scheme, host))
}

/// Whether a text is an absolute path, with or without a query, that has no variable and that URL parsers do not change.
fn is_plain_path(text: &str) -> bool {
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'/' | b'-' | b'_' | b'.' | b'~' | b',' | b'=' | b'&' | b'?' | b'+')
    };
    let has_dots = || text.contains("/.") && text.split('/').any(|segment| matches!(segment, "." | ".."));
    text.starts_with('/') && !text.starts_with("//") && text.bytes().all(is_plain) && !has_dots()
}

/// Replaces the expressions of RFC 6570 beyond level 1 by plain variables: `{?lat,lon}` by `?lat={lat}&lon={lon}`.
///
/// `None` if the address has none, or one that is malformed.
fn simple_variables(text: &str) -> Option<String> {
    let is_beyond = |inner: &str| {
        inner.starts_with(['?', '&', '/', '+', '#', ';', '.']) || inner.contains([',', '*', ':'])
    };
    let mut expressions = text.split('{').skip(1).filter_map(|part| part.split_once('}'));
    if !expressions.any(|(inner, _)| is_beyond(inner)) {
        return None;
    }
    let mut simple = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (inner, tail) = after.split_once('}')?;
        simple.push_str(before);
        expand(inner, &mut simple)?;
        rest = tail;
    }
    simple.push_str(rest);
    Some(simple)
}

/// Appends one expression as plain variables (RFC 6570 section 3.2).
fn expand(inner: &str, simple: &mut String) -> Option<()> {
    let operator = inner.chars().next().filter(|first| "?&/+#;.".contains(*first));
    let names = operator.and_then(|operator| inner.strip_prefix(operator)).unwrap_or(inner);
    let has_query = simple.contains('?');
    for (index, name) in names.split(',').enumerate() {
        let name = name.split(':').next()?.trim_end_matches('*');
        let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        if name.is_empty() || !name.chars().all(is_plain) {
            return None;
        }
        let separator = match operator {
            Some('?' | '&') if index > 0 || has_query => "&",
            Some('?' | '&') => "?",
            Some('/') => "/",
            Some(';') => ";",
            Some('.') => ".",
            Some('#') if index == 0 => "#",
            _ if index > 0 => ",",
            _ => "",
        };
        simple.push_str(separator);
        if matches!(operator, Some('?' | '&' | ';')) {
            simple.push_str(name);
            simple.push('=');
        }
        for part in ["{", name, "}"] {
            simple.push_str(part);
        }
    }
    Some(())
}

/// Replaces the listed values of a query parameter (`?kind={room|desk}`) by a variable.
fn without_alternatives(published: &str) -> Cow<'_, str> {
    let Some((path, query)) = published.split_once('?').filter(|(_, query)| query.contains('|')) else {
        return Cow::Borrowed(published);
    };
    let pairs = query.split('&').map(|pair| match pair.split_once("={") {
        Some((name, values)) if values.contains('|') && values.ends_with('}') => format!("{name}={{{name}}}"),
        _ => pair.to_owned(),
    });
    Cow::Owned([path, "?", &pairs.collect::<Vec<_>>().join("&")].concat())
}

fn mark(index: usize) -> String {
    format!("{MARK}{index}z")
}

/// Replaces every variable with a mark; returns the text and the names in order.
fn mark_variables(text: &str) -> (String, Vec<&str>) {
    let mut marked = String::with_capacity(text.len());
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '<', ':', '[', '$']) {
        let (before, from) = rest.split_at(at);
        marked.push_str(before);
        let segment = from.strip_prefix('$').filter(|rest| rest.starts_with('{')).unwrap_or(from);
        if let Some((name, after)) = variable(marked.ends_with('/'), segment) {
            marked.push_str(&mark(names.len()));
            names.push(name);
            rest = after;
        } else {
            let mut letters = from.chars();
            marked.extend(letters.next());
            rest = letters.as_str();
        }
    }
    marked.push_str(rest);
    (marked, names)
}

/// Splits `text` into the variable at its start and the rest. `:id` and `[id]` are variables only directly after a slash, so that the
/// colons of schemes and ports and the brackets of IPv6 hosts stay.
fn variable(after_slash: bool, text: &str) -> Option<(&str, &str)> {
    let (open, close) = match text.chars().next()? {
        '{' if text.starts_with("{{") => ("{{", "}}"),
        '{' => ("{", "}"),
        '<' => ("<", ">"),
        '[' if after_slash => ("[", "]"),
        ':' if after_slash => return variable_of_colon(text.get(1..)?),
        _ => return None,
    };
    let (inner, after) = text.strip_prefix(open)?.split_once(close)?;
    let name = match open {
        // `<int:id>`: the type of the value precedes the name.
        "<" => inner.rsplit(':').next()?,
        "[" => inner.trim_start_matches("..."),
        _ => inner.trim_end_matches('?'),
    };
    let is_segment = open != "[" || after.is_empty() || after.starts_with(['/', '?', '#', '.']);
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let name_ok = is_segment && !name.is_empty() && name.chars().all(plain);
    name_ok.then_some((name, after))
}

/// The name of the variable after a colon, and the rest: `id` in `:id` and `:id?`.
fn variable_of_colon(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    let is_end = |rest: &&str| rest.is_empty() || rest.starts_with('/');
    let after = after.strip_prefix('?').filter(is_end).unwrap_or(after);
    name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_').then_some((name, after))
}

/// Completes an address that lacks its beginning: a host without scheme (`mcp.acme.example/mcp`) or a path without slash (`rwa/alpha`).
/// `None` for other texts, and for texts that begin like an address.
pub(crate) fn completed(text: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/{}%".contains(letter);
    if text.starts_with('/') || text.len() > URL_BYTES_MAX || !text.chars().all(is_plain) {
        return None;
    }
    let (first, rest) = text.split_once('/')?;
    let is_method_of_protocol = matches!(first, "tools" | "resources" | "prompts" | "message" | "tasks");
    let is_relative = first.chars().all(|letter| letter == '.');
    if rest.is_empty() || is_method_of_protocol || is_relative {
        return None;
    }
    Some(if is_host(first) { ["https://", text].concat() } else { ["/", text].concat() })
}

/// Whether the first part of a path is a host: labels, of which the last consists of letters and is not a file extension.
fn is_host(text: &str) -> bool {
    let endings =
        ["json", "txt", "html", "htm", "php", "md", "yaml", "yml", "xml", "aspx", "js", "py", "well-known"];
    text.rsplit_once('.').is_some_and(|(labels, last)| {
        let is_name = last.len() >= 2 && last.bytes().all(|letter| letter.is_ascii_alphabetic());
        !labels.is_empty() && is_name && !endings.contains(&last) && !text.contains(['{', '}', '%', '~', '_'])
    })
}

/// File extensions that are also top-level domains.
const FILE_DOMAINS: &[&str] = &["md", "rs", "py", "sh", "pl", "cc", "ps", "zip", "mov"];
/// First labels of names in reverse domain order, as in Java packages: `com.shop.app/tools`.
const REVERSED: &[&str] = &["com", "org", "net", "io"];

/// Whether a word of a text is a host without its scheme, with a path: `api.shop.com/v1/rooms`. The host is in lower case and ends with a
/// public suffix, which excludes names of files, versions and alternatives.
pub(crate) fn names_host(word: &str) -> bool {
    let Some((host, path)) = word.split_once('/').filter(|(host, _)| host.contains('.')) else {
        return false;
    };
    let is_public =
        || psl::domain(host.as_bytes()).is_some_and(|domain| domain.suffix().is_known()) && is_host(host);
    let is_named = |names: &[&str], label: Option<&str>| label.is_some_and(|label| names.contains(&label));
    Host::is_plain(host)
        && !path.is_empty()
        && !path.starts_with('/')
        && !is_named(FILE_DOMAINS, host.rsplit('.').next())
        && !is_named(REVERSED, host.split('.').next())
        && is_public()
}

/// An address from a text; a host without a scheme gets one.
pub(crate) fn with_scheme(published: &str) -> Cow<'_, str> {
    if names_host(published) {
        Cow::Owned(["https://", published].concat())
    } else {
        Cow::Borrowed(published)
    }
}

/// Splits an HTTP method from an address such as `GET https://…` or `POST /orders`.
pub(crate) fn split_method(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    if !text.starts_with(['D', 'G', 'H', 'O', 'P']) {
        return (None, text);
    }
    match text.split_once(char::is_whitespace) {
        Some((method, rest)) if is_method(method) => (Some(method), rest.trim()),
        _ => (None, text),
    }
}

/// HTTP methods (RFC 9110 section 9.3 and RFC 5789).
pub(crate) const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// Whether a word is an HTTP method in capital letters.
pub(crate) fn is_method(word: &str) -> bool {
    METHODS.contains(&word)
}

/// Whether a word is an HTTP method in letters of any case.
pub(crate) fn is_method_in_any_case(word: &str) -> bool {
    METHODS.iter().any(|method| method.eq_ignore_ascii_case(word))
}

/// Names of the variables of a template, in order.
pub(crate) fn variables(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(text: &str) -> Option<String> {
        let document = ManifestUrl::parse("https://shop.example/.well-known/agent.json").unwrap();
        on_origin(&document, text).map(Address::into_string)
    }

    #[test]
    fn normalises_addresses_to_absolute_urls() {
        for (text, address) in [
            ("/api/search", Some("https://shop.example/api/search")),
            ("api/search?q={query}", Some("https://shop.example/api/search?q={query}")),
            ("/orders/:id/items/:item_id", Some("https://shop.example/orders/{id}/items/{item_id}")),
            ("/orders/<id>", Some("https://shop.example/orders/{id}")),
            ("/orders/<int:id>/x", Some("https://shop.example/orders/{id}/x")),
            ("/orders/{{id}}/x", Some("https://shop.example/orders/{id}/x")),
            ("/orders/{id?}", Some("https://shop.example/orders/{id}")),
            ("/orders/:id?", Some("https://shop.example/orders/{id}")),
            ("/orders/${id}/x", Some("https://shop.example/orders/{id}/x")),
            ("/orders/[id]/[...rest]", Some("https://shop.example/orders/{id}/{rest}")),
            ("/price/$5", Some("https://shop.example/price/$5")),
            ("https://[2001:db8::1]/x", Some("https://[2001:db8::1]/x")),
            ("https://api.example:8443/x", Some("https://api.example:8443/x")),
            ("wss://live.example/feed", Some("wss://live.example/feed")),
            ("https://{tenant}.example/x", Some("https://{tenant}.example/x")),
            ("/points{?lat,lon}", Some("https://shop.example/points?lat={lat}&lon={lon}")),
            ("/points?unit=m{&lat,lon*}", Some("https://shop.example/points?unit=m&lat={lat}&lon={lon}")),
            ("/points?unit=m{?lat}", Some("https://shop.example/points?unit=m&lat={lat}")),
            ("/files{/folder,name}{.ending}", Some("https://shop.example/files/{folder}/{name}.{ending}")),
            ("https://shop.example/{+path}/x{;v:3}", Some("https://shop.example/{path}/x;v={v}")),
            ("/at/{lat,lon}", Some("https://shop.example/at/{lat},{lon}")),
            ("npx run-server", None),
            ("did:web:shop.example", None),
            ("", None),
        ] {
            assert_eq!(on(text).as_deref(), address, "{text}");
        }
    }

    /// The shortcut for plain addresses must return the same result as the URL parser.
    #[test]
    fn plain_addresses_are_unchanged_by_the_parser() {
        let base = Url::parse("https://shop.example:8443/.well-known/agent.json?x=y").unwrap();
        let origins = ["", "https://a.example", "http://b-1.example", "wss://c_2.example"];
        for path in ["/", "/a/b.json", "/.well-known/x", "/a//b", "/a?b=c&d=e,f+g", "/a/..b/...", "/?", "/a?"]
        {
            for address in origins.map(|origin| [origin, path].concat()) {
                let parsed = base.join(&address).unwrap();
                assert_eq!(plain(&base, &address).as_deref(), Some(parsed.as_str()), "{address}");
            }
        }
        assert_eq!(plain(&base, "https://a.example").as_deref(), Some("https://a.example/"));
        for other in [
            "a",
            "//b.example/x",
            "/./x",
            "/a/..",
            "/a/../b",
            "/a b",
            "/ä",
            "/{id}",
            "/:id",
            "/[id]",
            "/a#b",
            "/a%2e",
            "https://A.example/",
            "https://a.example:443/",
            "https://1.2.3.4/",
            "https://a.example?x",
            "https:/a.example/",
            "ftp://a.example/",
            "https://a.example/\\b",
            "https://u@a.example/",
            "https://localhost/",
        ] {
            assert_eq!(plain(&base, other), None, "{other}");
        }
    }

    #[test]
    fn completes_addresses_without_their_beginning() {
        for (text, address) in [
            ("rwa/alpha", Some("/rwa/alpha")),
            ("v1.2/items/{id}", Some("/v1.2/items/{id}")),
            ("mcp.acme.example/mcp", Some("https://mcp.acme.example/mcp")),
            ("index.html/x", Some("/index.html/x")),
            ("/rwa", None),
            ("https://a.example/x", None),
            ("search", None),
            ("tools/call", None),
            ("../x", None),
            ("npx run/it now", None),
        ] {
            assert_eq!(completed(text).as_deref(), address, "{text}");
        }
    }

    #[test]
    fn replaces_listed_query_values_by_a_variable() {
        assert_eq!(without_alternatives("/a?kind={x|y}&n=1"), "/a?kind={kind}&n=1");
        assert_eq!(without_alternatives("/a?kind={kind}"), "/a?kind={kind}");
    }

    #[test]
    fn finds_hosts_without_a_scheme() {
        for word in ["api.shop.com/v1/rooms", "shop.co.uk/x?a={b}", "alice.github.io/notes"] {
            assert_eq!(with_scheme(word), ["https://", word].concat(), "{word}");
        }
        for word in [
            "/v1/rooms",
            "https://api.shop.com/v1",
            "and/or",
            "application/vnd.api+json",
            "1.5/2",
            "README.md/x",
            "llms.txt/mcp.json",
            "com.shop.app/tools",
            "io.modelcontextprotocol/ui",
            "ASP.NET/IIS",
            "shop.com/",
            "shop.com//x",
            "user@shop.com/x",
            "e.g./i.e.",
        ] {
            assert_eq!(with_scheme(word), word);
        }
    }

    #[test]
    fn splits_the_method_from_an_address() {
        assert_eq!(split_method("GET  https://a.example/x"), (Some("GET"), "https://a.example/x"));
        assert_eq!(split_method("get /x"), (None, "get /x"));
        assert_eq!(variables("/a/{b}/c/{d}").collect::<Vec<_>>(), ["b", "d"]);
    }
}
