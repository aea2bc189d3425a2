//! Query parameters in the example or the description of an element: `"example": "GET /prices?ticker=AAPL"`, "Supports ?limit=N&offset=M".

use serde_json::{Map, Value};

use crate::address;
use crate::model::Capability;
use crate::object::Object;
use crate::schema::{Location, Parameters, Presence};

/// Maximum number of parameters of one query that are read; published ones have up to 12.
const PARAMETERS_MAX: usize = 32;

/// Adds the parameters that an example call or the description shows, if the element describes none.
pub(crate) fn read(object: &Object<'_>, address: Option<&str>, capability: &mut Capability) {
    let method = capability.invocation.method.as_deref();
    let is_query = method.is_none_or(|method| matches!(method, "GET" | "HEAD" | "DELETE"));
    if capability.parameters.is_some() || !is_query || capability.invocation.endpoint().is_none() {
        return;
    }
    let shown = ["example", "example_url", "exampleUrl", "example_call", "exampleCall"];
    let shown = shown.iter().filter_map(|key| object.text(key)).find_map(|text| query_of(text, address?));
    let described = || object.text_of(&["description", "summary", "note", "notes"]);
    capability.parameters = match shown {
        Some(query) => parameters(names(query)),
        None => described().and_then(parameters_in),
    };
}

/// Adds the parameters that an example call of the address shows to a capability without any.
pub(crate) fn read_shown(example: &str, address: &str, capability: &mut Capability) {
    if capability.parameters.is_none() {
        capability.parameters = query_of(example, address).and_then(|query| parameters(names(query)));
    }
}

/// The parameters that a sentence shows: "Supports ?limit=N&offset=M", "Filters: ?search, ?section".
pub(crate) fn parameters_in(sentence: &str) -> Option<Value> {
    parameters(shown_in(sentence).into_iter())
}

fn parameters<'t>(names: impl Iterator<Item = &'t str>) -> Option<Value> {
    let mut parameters = Parameters::default();
    for name in names {
        let schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
        parameters.add(name, schema, Location::Query, Presence::Optional);
    }
    parameters.finish()
}

/// The query of an example of the same address.
fn query_of<'t>(text: &'t str, address: &str) -> Option<&'t str> {
    let call = address::split_method(text).1.split_whitespace().next()?;
    let (path, query) = call.split_once('?')?;
    // The example may repeat the origin.
    (!address.is_empty() && path.ends_with(address)).then_some(query)
}

/// The names of the parameters among the words of a sentence. A name without a value (`?search`) counts if the sentence announces it.
fn shown_in(sentence: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    if !sentence.contains('?') {
        return found;
    }
    let announces = ANNOUNCING.iter().any(|part| sentence.contains(part));
    let marks = |letter: char| "`'\"(),.;".contains(letter);
    let words = sentence.split_whitespace().take(WORDS_MAX).map(|word| word.trim_matches(marks));
    for query in words.filter_map(|word| word.strip_prefix('?')) {
        let bare = Some(query).filter(|name| announces && is_name(name));
        for name in names(query).chain(bare) {
            if found.len() < PARAMETERS_MAX && !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// Maximum number of words of one sentence that are searched.
const WORDS_MAX: usize = 400;
/// Parts of the words that announce the names of parameters: "Filters", "supports", "parameters", "query", "options", "accepts".
const ANNOUNCING: &[&str] = &["ilter", "upport", "aram", "uery", "ption", "ccept"];

fn is_name(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The parameter names of a query; empty if a pair has no name.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name = move |pair: &'_ str| {
        let end = pair.find('=')?;
        Some(end).filter(|end| *end > 0 && pair.bytes().take(*end).all(is_plain))
    };
    let is_query = query.split('&').all(|pair| name(pair).is_some());
    let pairs = query.split('&').take(PARAMETERS_MAX).filter(move |_| is_query);
    pairs.filter_map(|pair| pair.split_once('=').map(|(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_queries_in_examples_and_sentences() {
        assert_eq!(query_of("GET /prices?ticker=AAPL", "/prices"), Some("ticker=AAPL"));
        assert_eq!(query_of("https://a.example/prices?ticker=AAPL", "/prices"), Some("ticker=AAPL"));
        assert_eq!(query_of("GET /rates?ticker=AAPL", "/prices"), None);
        assert_eq!(shown_in("Supports `?limit=N&offset=M`."), ["limit", "offset"]);
        assert_eq!(shown_in("Filters: ?search, ?section, ?lang=en"), ["search", "section", "lang"]);
        assert!(shown_in("Is it open? A=1 ?yes").is_empty());
        assert_eq!(names("limit=N&offset=M").collect::<Vec<_>>(), ["limit", "offset"]);
        assert!(names("limit").next().is_none());
    }
}
