//! Addresses inside manifests: absolute or relative, with `{id}`, `:id` or `<id>` variables, made absolute and uniform.
//!
//! Nothing is fetched or looked up. An address keeps its published scheme; a finding reports one that is not https.

use url::Url;

use crate::name::{ManifestUrl, URL_BYTES_MAX};

/// An absolute address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    Fixed(String),
    /// With `{name}` variables (RFC 6570 level 1).
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
/// Replaces a variable while the URL is parsed, since the parser percent-encodes braces.
const MARK: &str = "zqvarqz";
/// Variables in one address; real ones have up to six.
const VARIABLES_MAX: usize = 32;

/// Resolves a published address against the root of an origin (AWP endpoints, ATP endpoints, agents.json endpoints).
pub(crate) fn on_origin(document: &ManifestUrl, text: &str) -> Option<Address> {
    let root = Url::parse(&document.origin()).ok()?;
    resolve(&root, text)
}

/// Resolves a published address against the document that holds it (RFC 3986 section 5).
pub(crate) fn on_document(document: &ManifestUrl, text: &str) -> Option<Address> {
    resolve(document.as_url(), text)
}

pub(crate) fn resolve(base: &Url, text: &str) -> Option<Address> {
    let text = text.trim();
    if text.is_empty()
        || text.len() > URL_BYTES_MAX
        || text.contains(char::is_whitespace)
        || text.contains(MARK)
    {
        return None;
    }
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

fn mark(index: usize) -> String {
    format!("{MARK}{index}z")
}

/// Replaces every variable with a mark; returns the text and the names in order.
fn mark_variables(text: &str) -> (String, Vec<&str>) {
    let mut marked = String::with_capacity(text.len());
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '<', ':']) {
        let (before, from) = rest.split_at(at);
        marked.push_str(before);
        if let Some((name, after)) = variable(marked.ends_with('/'), from) {
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

/// The variable at the start of `text` and the rest. `:id` is a variable only directly after a slash, so that the colons of
/// schemes and ports stay.
fn variable(after_slash: bool, text: &str) -> Option<(&str, &str)> {
    let close = match text.chars().next()? {
        '{' => '}',
        '<' => '>',
        _ => {
            let name = text.get(1..)?;
            let end =
                name.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            let named =
                after_slash && name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
            return named.then_some((name, after));
        }
    };
    let inner = text.get(1..)?;
    let end = inner.find(close)?;
    let name = inner.get(..end)?;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
    let name_ok = !name.is_empty() && name.chars().all(plain);
    name_ok.then_some((name, inner.get(end + 1..)?))
}

/// Splits a method off an address such as `GET https://…` or `POST /orders`.
pub(crate) fn split_method(text: &str) -> (Option<&str>, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((method, rest)) if is_method(method) => (Some(method), rest.trim()),
        _ => (None, text),
    }
}

/// Whether a word is an HTTP method in capital letters (RFC 9110 section 9.3 and RFC 5789).
pub(crate) fn is_method(word: &str) -> bool {
    matches!(word, "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "PATCH" | "OPTIONS")
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

    #[test]
    fn splits_a_method_off_an_address() {
        assert_eq!(split_method("GET  https://a.example/x"), (Some("GET"), "https://a.example/x"));
        assert_eq!(split_method("get /x"), (None, "get /x"));
        assert_eq!(variables("/a/{b}/c/{d}").collect::<Vec<_>>(), ["b", "d"]);
    }
}
