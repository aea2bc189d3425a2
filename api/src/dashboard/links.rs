//! Links: to our own pages with their filters, and to publishers' URLs if they
//! are harmless.

use manifest::CapabilityId;
use url::Url;
use url::form_urlencoded::Serializer;

use crate::parameters::QueryPairs;

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) text: String,
    pub(crate) href: String,
}

/// Maximum length of a publisher's URL that becomes a link; longer ones are shown as text.
const HREF_BYTES_MAX: usize = 2_048;

/// `/search` with the given pairs.
pub(crate) fn search<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    with_query("/search", pairs)
}

pub(crate) fn with_query<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let query = Serializer::new(String::new()).extend_pairs(pairs).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// An email address, or an address of the web, as a link.
pub(crate) fn contact(contact: &str) -> Link {
    let href = if contact.contains("://") { contact.to_owned() } else { format!("mailto:{contact}") };
    Link { text: contact.to_owned(), href }
}

pub(crate) fn capability(id: &CapabilityId) -> String {
    format!("/capabilities/{id}")
}

/// The search with one value of a key toggled.
pub(crate) fn toggled(query: &QueryPairs, key: &str, value: &str) -> String {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    let mut was_there = false;
    for (name, text) in query.pairs().filter(|(name, _)| !matches!(*name, "cursor" | "page")) {
        if name != key {
            pairs.push((name, text));
            continue;
        }
        for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            if one == value {
                was_there = true;
            } else {
                pairs.push((name, one));
            }
        }
    }
    if !was_there {
        pairs.push((key, value));
    }
    search(pairs)
}

/// The URL with one key set.
pub(crate) fn with(path: &str, query: &QueryPairs, key: &str, value: &str) -> String {
    let others = query.pairs().filter(|(name, _)| *name != key);
    with_query(path, others.chain([(key, value)]))
}

/// A publisher's URL, if it may become a link: https or http, without credentials, of limited length.
pub(crate) fn harmless(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|_| address.len() <= HREF_BYTES_MAX)?;
    let is_plain =
        matches!(url.scheme(), "https" | "http") && url.username().is_empty() && url.password().is_none();
    is_plain.then(|| url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toggling_a_facet_adds_and_removes_its_value() {
        let query = QueryPairs::parse("q=book+flight&format=awp,atp&cursor=abc").unwrap();
        assert_eq!(
            toggled(&query, "format", "woa"),
            "/search?q=book+flight&format=awp&format=atp&format=woa"
        );
        assert_eq!(toggled(&query, "format", "awp"), "/search?q=book+flight&format=atp");
        assert_eq!(toggled(&QueryPairs::parse("format=awp").unwrap(), "format", "awp"), "/search");
    }

    #[test]
    fn only_http_addresses_become_links() {
        assert!(harmless("https://skyhop.example/api").is_some());
        for address in
            ["javascript:alert(1)", "data:text/html,x", "//x", "https://a:b@x.example/", "/relative"]
        {
            assert_eq!(harmless(address), None, "{address}");
        }
    }
}
