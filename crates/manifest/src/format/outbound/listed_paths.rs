//! Paths that a text lists behind a label, `Endpoints: /api/rates/info (free), /series/{symbol} (0.02 USD)`, or calls free, `free
//! /api/rates/quote`.

use serde_json::{Map, Value};

use crate::address;
use crate::name::URL_BYTES_MAX;
use crate::text;

/// Labels of lists of paths.
const LABELS: &[&str] = &["endpoints", "discovery", "sub-routes", "subroutes", "routes", "paths"];
/// Maximum number of lists of one text, and of words of one list, that are read.
const LISTS_MAX: usize = 10;
const WORDS_MAX: usize = 100;
/// Members with the address of an element.
const ADDRESS_KEYS: &[&str] = &["endpoint", "url", "path"];

/// The listed paths of a text. A list ends with its sentence.
pub(super) fn in_text(text: &str) -> impl Iterator<Item = &str> {
    let may_list = text::has_three(text, *b": /") || text::has_four(text, *b"ee /");
    let text = if may_list { text } else { "" };
    let listed = text.match_indices(": /").take(LISTS_MAX).filter_map(|(at, mark)| {
        let (before, after) = (text.get(..at)?, text.get(at + mark.len() - 1..)?);
        let mut words = before.rsplit(char::is_whitespace);
        let (label, adjective) = (words.next()?, words.next().unwrap_or_default());
        // Free endpoints are calls.
        let is_known = LABELS.iter().any(|known| label.eq_ignore_ascii_case(known))
            && !adjective.eq_ignore_ascii_case("free");
        is_known.then(|| after.split(". ").next().unwrap_or_default().split_whitespace().take(WORDS_MAX))
    });
    let free = text.match_indices("ree /").take(LISTS_MAX).filter_map(|(at, mark)| {
        let before = text.get(..at)?;
        let is_word = before.ends_with(['F', 'f'])
            && !before.trim_end_matches(['F', 'f']).ends_with(char::is_alphanumeric);
        text.get(at + mark.len() - 1..).filter(|_| is_word)?.split_whitespace().next()
    });
    let is_deep = |path: &&str| path.trim_end_matches('/').matches('/').count() > 1;
    listed.flatten().filter_map(path).chain(free.filter_map(path).filter(is_deep))
}

/// The path that a word is, without the marks around it.
fn path(word: &str) -> Option<&str> {
    let path = word.trim_start_matches(['(', '`', '"']).trim_end_matches([',', '.', ';', ':', ')', '`', '"']);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.{}~%:".contains(&byte);
    let is_path = path.starts_with('/') && !path.starts_with("//") && path.len() > 1;
    (is_path && path.bytes().all(is_plain) && !address::is_pattern(path)).then_some(path)
}

/// A path below the address of the element whose text lists it; `None` if the path repeats the first segment of that address.
pub(super) fn below(element: &Map<String, Value>, path: &str) -> Option<String> {
    let stated = ADDRESS_KEYS.iter().find_map(|key| element.get(*key)?.as_str())?;
    if stated.len() > URL_BYTES_MAX {
        return None;
    }
    let (_, stated) = address::split_method(stated);
    let (origin, own) = match stated.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split('/').next().unwrap_or_default();
            stated.split_at_checked(scheme.len() + "://".len() + host.len())?
        }
        None => ("", stated),
    };
    let own = own.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let first = own.split('/').nth(1).filter(|first| !first.is_empty());
    let repeats = first.is_some() && path.split('/').nth(1) == first;
    let folder = if repeats { "" } else { own };
    (!origin.is_empty() || !folder.is_empty()).then(|| [origin, folder, path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_paths_behind_a_label() {
        let of = |text| in_text(text).collect::<Vec<_>>();
        assert_eq!(
            of("Rates. Endpoints: /api/rates/info (free), /list and /series/{symbol} (0.02). Not /other."),
            ["/api/rates/info", "/list", "/series/{symbol}"]
        );
        assert_eq!(of("Sub-routes: /trend (7-day), /top"), ["/trend", "/top"]);
        assert_eq!(of("Free /api/quote for all, free /api/info."), ["/api/quote", "/api/info"]);
        for text in [
            "See: /api/rates",
            "Free endpoints: /api/rates",
            "Endpoints: many",
            "free /now",
            "carefree /api/quote",
            "Paths: //a",
        ] {
            assert_eq!(of(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn listed_paths_are_below_the_address_of_their_element() {
        let element = |address: &str| json!({"endpoint": address}).as_object().unwrap().clone();
        let of = |address: &str, path: &str| below(&element(address), path).unwrap_or_default();
        assert_eq!(of("/api/rates/", "/trend"), "/api/rates/trend");
        assert_eq!(of("/api/rates", "/api/rates/info"), "");
        assert_eq!(of("GET https://a.example/api/rates?x=1", "/trend"), "https://a.example/api/rates/trend");
        assert_eq!(of("https://a.example/api/rates", "/api/info"), "https://a.example/api/info");
        assert_eq!(of("https://a.example", "/api/info"), "https://a.example/api/info");
    }
}
