//! Texts that are written to match many requests: repeated words, and capabilities that differ in a few words.
//!
//! The thresholds were chosen on 10,000 capabilities of 1,300 published manifests and tools, none of which exceeds them; docs/SEARCH.md has
//! the numbers. Names, titles, descriptions and tags are judged. Schemas are not judged, because the schemas of one interface naturally
//! repeat words.

use std::collections::HashSet;
use std::hash::BuildHasher;

use manifest::Capability;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::SpamReason;
use crate::analysis::{is_stop_word, words};

/// Maximum number of words of a capability that are judged.
const WORDS_MAX: usize = 400;
/// A word is repeated too often if it occurs at least `REPEATED_MIN` times and makes up at least this percentage of all words. In published
/// texts with 8 occurrences, the maximum is 28 %.
const REPEATED_MIN: usize = 8;
const REPEATED_PERCENT: usize = 35;
/// A text of at least this many words repeats its words too often if each occurs `REPEATED_TEXT_TIMES` times on average. In published
/// texts, the maximum is 2.95 times.
const REPEATED_TEXT_WORDS_MIN: usize = 24;
const REPEATED_TEXT_TIMES: usize = 4;
/// Minimum number of capabilities that are near copies of each other. No published document has as many.
const COPIES_MIN: usize = 20;
/// The title and description of a near copy contain at least `SHARED_WORDS_MIN` of the words that half of the document's capabilities
/// contain, and at most `OWN_WORDS_MAX` other words. Names and tags are ignored: they are similar within an interface, and a capability may
/// have no other texts.
const SHARED_WORDS_MIN: usize = 6;
const OWN_WORDS_MAX: usize = 3;

/// The bits of the reasons of each capability of a document, in order. Linear in the length of the texts.
pub(crate) fn judge(capabilities: &[Capability]) -> Vec<u64> {
    // hashes take a fifth of the memory of words
    let numbers = |words: Vec<String>| words.iter().map(|word| FxBuildHasher.hash_one(word)).collect();
    let texts: Vec<Vec<u64>> = capabilities.iter().map(judged_words).map(numbers).collect();
    let described = capabilities.iter().map(|of| {
        let texts = of.title.iter().chain(&of.description);
        numbers(judged(texts.map(String::as_str).collect()))
    });
    let copies = near_copies(described);
    let of_text = |(at, text): (usize, &Vec<u64>)| {
        let repeated = if repeats_words(text) { SpamReason::RepeatedWords.bit() } else { 0 };
        let copy = if copies.contains(&at) { SpamReason::NearCopies.bit() } else { 0 };
        repeated | copy
    };
    texts.iter().enumerate().map(of_text).collect()
}

/// The words of the texts of a capability, without stop words and numbers.
pub(super) fn judged_words(capability: &Capability) -> Vec<String> {
    let Capability { name, title, description, tags, .. } = capability;
    let texts = [Some(name), title.as_ref(), description.as_ref()];
    judged(texts.into_iter().flatten().chain(tags).map(String::as_str).collect())
}

fn judged(texts: Vec<&str>) -> Vec<String> {
    let words = texts.into_iter().flat_map(words).map(|word| word.text);
    words.filter(|word| !is_stop_word(word) && !word.chars().all(char::is_numeric)).take(WORDS_MAX).collect()
}

fn repeats_words(text: &[u64]) -> bool {
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for word in text {
        *counts.entry(*word).or_default() += 1;
    }
    let most = counts.values().copied().max().unwrap_or_default();
    (most >= REPEATED_MIN && most * 100 >= text.len() * REPEATED_PERCENT)
        || (text.len() >= REPEATED_TEXT_WORDS_MIN && text.len() >= counts.len() * REPEATED_TEXT_TIMES)
}

/// The positions of near copies, if there are many.
fn near_copies(texts: impl ExactSizeIterator<Item = Vec<u64>>) -> HashSet<usize> {
    if texts.len() < COPIES_MIN {
        return HashSet::new();
    }
    let texts: Vec<FxHashSet<u64>> = texts.map(|text| text.into_iter().collect()).collect();
    let mut counts: FxHashMap<u64, usize> = FxHashMap::default();
    for word in texts.iter().flatten() {
        *counts.entry(*word).or_default() += 1;
    }
    let is_copy = |text: &FxHashSet<u64>| {
        let is_shared = |word: &&u64| counts.get(*word).is_some_and(|of| of * 2 >= texts.len());
        let shared = text.iter().filter(is_shared).count();
        shared >= SHARED_WORDS_MIN && text.len() - shared <= OWN_WORDS_MAX
    };
    let copies: HashSet<usize> =
        texts.iter().enumerate().filter(|(_, text)| is_copy(text)).map(|(at, _)| at).collect();
    if copies.len() < COPIES_MIN { HashSet::new() } else { copies }
}

#[cfg(test)]
mod tests {
    use manifest::ManifestUrl;
    use manifest::model::{CapabilityKind, Format};

    use super::*;

    fn capabilities(texts: &[(&str, &str)]) -> Vec<Capability> {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let capability = |(name, description): &(&str, &str)| {
            let kind = CapabilityKind::Action;
            let mut capability = Capability::new(&url, Format::Awp, name, name, kind, String::new());
            capability.description = Some((*description).to_owned());
            capability
        };
        texts.iter().map(capability).collect()
    }

    fn judged(texts: &[(&str, &str)]) -> Vec<u64> {
        judge(&capabilities(texts))
    }

    #[test]
    fn repeated_words_are_spam_and_a_topic_is_not() {
        let stuffed = "flight ".repeat(12);
        let list = "flight hotel taxi train ferry museum dentist weather parcel invoice ".repeat(5);
        let honest = "Searches flights. A flight has an origin and a destination; without a date, flights of the \
                      next week are listed, the cheapest flight first. Flights with a stop are marked.";
        assert_eq!(
            judged(&[("book", &stuffed), ("any", &list), ("search_flights", honest), ("x", "")]),
            [SpamReason::RepeatedWords.bit(), SpamReason::RepeatedWords.bit(), 0, 0]
        );
    }

    #[test]
    fn many_copies_that_differ_in_a_word_are_spam() {
        let described =
            |at: usize| format!("Book the cheapest flight to city{at} today with free cancellation");
        let all: Vec<String> = (0..COPIES_MIN).map(described).collect();
        let copies: Vec<(&str, &str)> = all.iter().map(|text| ("book", text.as_str())).collect();
        assert!(judged(&copies).iter().all(|bits| *bits == SpamReason::NearCopies.bit()));
        assert!(
            judged(&copies[1..]).iter().all(|bits| *bits == 0),
            "fewer near copies are a legitimate catalogue"
        );
        let mut with_other = copies;
        with_other.push(("refund", "Pays the fare of a cancelled trip back to the card of the traveller."));
        assert_eq!(judged(&with_other).last(), Some(&0));
    }

    #[test]
    fn capabilities_of_one_interface_are_not_copies() {
        let verbs = ["List", "Create", "Delete", "Update", "Export"];
        let objects = ["invoices", "customers", "projects", "payments", "webhooks"];
        let all: Vec<String> = verbs
            .iter()
            .flat_map(|verb| objects.map(|object| format!("{verb} the {object} of an account by their id")))
            .collect();
        let texts: Vec<(&str, &str)> = all.iter().map(|text| ("call", text.as_str())).collect();
        assert!(judged(&texts).iter().all(|bits| *bits == 0));
    }

    #[test]
    fn capabilities_with_the_same_tags_and_short_texts_are_not_copies() {
        let objects = 'a'..='z';
        let names: Vec<(String, String)> = objects
            .map(|object| (format!("crm_list_{object}items"), format!("Lists {object}items of the Acme CRM")))
            .collect();
        let texts: Vec<(&str, &str)> =
            names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let mut capabilities = capabilities(&texts);
        for (at, capability) in capabilities.iter_mut().enumerate() {
            capability.tags =
                ["crm", "sales", "cloud", "records", "customers", "acme"].map(str::to_owned).to_vec();
            if at % 2 == 0 {
                capability.description = None;
            }
        }
        assert!(judge(&capabilities).iter().all(|bits| *bits == 0));
    }
}
