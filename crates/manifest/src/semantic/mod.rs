//! Infers the semantic type of a capability (`namespace:type`, ATP section 3.5.2) where none is declared.
//!
//! The type follows from words of id and name, with less confidence from words of the description. An inferred type has
//! its rule and its confidence; a declared type is never changed.

mod vocabulary;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use vocabulary::{Entry, VOCABULARY};

use crate::model::{Capability, SemanticType, TypeSource};
use crate::text;

/// Confidence subtracted when a word comes from the description.
const DESCRIPTION_PENALTY: f64 = 0.35;
/// Lowest confidence of an inferred type.
const CONFIDENCE_MIN: f64 = 0.3;
/// Characters of a description that are used: the first sentence says what the capability does.
const DESCRIPTION_CHARS: usize = 160;
/// Words of one capability that are used.
const WORDS_MAX: usize = 48;

/// The matched groups of each entry, as bits.
type Filled = [u8; VOCABULARY.len()];

/// A word with the entries and groups that it matches.
type Word = (&'static str, Vec<(usize, u8)>);

/// The words by their first letter, sorted: most words of a text are rejected without a hash.
static INDEX: LazyLock<[Vec<Word>; 26]> = LazyLock::new(|| {
    let mut words: BTreeMap<&'static str, Vec<(usize, u8)>> = BTreeMap::new();
    for (at, entry) in VOCABULARY.iter().enumerate() {
        for (group, listed) in entry.groups.iter().enumerate() {
            for word in listed.split(' ') {
                words.entry(word).or_default().push((at, 1_u8 << group));
            }
        }
    }
    let mut index: [Vec<Word>; 26] = Default::default();
    for (word, fills) in words {
        if let Some(list) = letter(word).and_then(|letter| index.get_mut(letter)) {
            list.push((word, fills));
        }
    }
    index
});

fn letter(word: &str) -> Option<usize> {
    let first = word.bytes().next().filter(u8::is_ascii_lowercase)?;
    Some(usize::from(first - b'a'))
}

fn fills(word: &str) -> &'static [(usize, u8)] {
    let words = letter(word).and_then(|letter| INDEX.get(letter)).map_or(&[][..], Vec::as_slice);
    let found = words.binary_search_by(|(known, _)| known.cmp(&word)).ok().and_then(|at| words.get(at));
    found.map_or(&[], |(_, fills)| fills)
}

/// Gives an untyped capability its most specific type.
pub(crate) fn infer(capability: &mut Capability) {
    if !capability.semantic_types.is_empty() {
        return;
    }
    let mut filled: Filled = [0; VOCABULARY.len()];
    let name = capability.title.as_deref().unwrap_or(&capability.name);
    fill(&mut filled, [capability.native_id.as_str(), name]);
    let by_name = best(&filled, 0.0).map(|found| (found, "semantic.name"));
    let found = by_name.or_else(|| {
        fill(&mut filled, [text::capped(capability.description.as_deref()?, DESCRIPTION_CHARS)]);
        best(&filled, DESCRIPTION_PENALTY).map(|found| (found, "semantic.description"))
    });
    if let Some(((entry, confidence), rule)) = found {
        capability.semantic_types.push(SemanticType {
            name: entry.name.to_owned(),
            source: TypeSource::Inferred,
            confidence,
            rule: Some(rule.to_owned()),
        });
    }
}

fn fill<'t>(filled: &mut Filled, texts: impl IntoIterator<Item = &'t str>) {
    let mut words_left = WORDS_MAX;
    for text in texts {
        text::each_word(text, |word| {
            if words_left > 0 {
                words_left -= 1;
                fill_word(filled, word);
            }
        });
    }
}

fn fill_word(filled: &mut Filled, word: &str) {
    let singular = word.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.as_deref().or_else(|| word.strip_suffix('s'));
    for spelling in std::iter::once(word).chain(singular) {
        for (at, group) in fills(spelling) {
            if let Some(groups) = filled.get_mut(*at) {
                *groups |= group;
            }
        }
    }
}

/// The complete entry of highest confidence, the first of equals: the vocabulary lists specific entries first.
fn best(filled: &Filled, penalty: f64) -> Option<(&'static Entry, f64)> {
    let complete = VOCABULARY
        .iter()
        .zip(filled)
        .filter(|(entry, groups)| groups.count_ones() as usize == entry.groups.len());
    let mut best: Option<(&Entry, f64)> = None;
    for (entry, _) in complete {
        let confidence = ((entry.confidence - penalty) * 100.0).round() / 100.0;
        if confidence >= CONFIDENCE_MIN && best.is_none_or(|(_, so_far)| confidence > so_far) {
            best = Some((entry, confidence));
        }
    }
    best
}

/// A declared type.
pub(crate) fn declared(name: &str) -> SemanticType {
    SemanticType {
        name: text::capped(name, 100).to_ascii_lowercase(),
        source: TypeSource::Declared,
        confidence: 1.0,
        rule: None,
    }
}

/// A type that a dialect's own vocabulary implies.
pub(crate) fn implied(name: &str, confidence: f64, rule: &str) -> SemanticType {
    SemanticType {
        name: name.to_owned(),
        source: TypeSource::Inferred,
        confidence,
        rule: Some(rule.to_owned()),
    }
}

/// Every type that may be inferred, with the words that imply it: for documentation and for the list of known types.
pub fn known_types() -> impl Iterator<Item = (&'static str, String)> {
    VOCABULARY.iter().map(|entry| {
        let groups: Vec<String> = entry.groups.iter().map(|words| words.replace(' ', " or ")).collect();
        (entry.name, groups.join("; and "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CapabilityKind, Format};
    use crate::name::ManifestUrl;

    fn inferred(id: &str, description: &str) -> Option<(String, f64)> {
        let url = ManifestUrl::parse("https://a.example/agent.json").unwrap();
        let mut capability =
            Capability::new(&url, Format::Awp, id, id, CapabilityKind::Action, String::new());
        capability.description = Some(description.to_owned());
        infer(&mut capability);
        capability.semantic_types.pop().map(|found| (found.name, found.confidence))
    }

    #[test]
    fn infers_types_from_words() {
        for (id, description, expected) in [
            ("book_flight", "", Some("travel:flight-booking")),
            ("searchFlights", "", Some("travel:flight-search")),
            ("cart.add", "", Some("commerce:cart-add")),
            ("get-forecast", "Weather for the next days", Some("weather:forecast")),
            ("reserve", "Reserve a table at our restaurant", Some("travel:restaurant-booking")),
            ("send_message", "", Some("communication:message-send")),
            ("frobnicate", "", None),
        ] {
            assert_eq!(inferred(id, description).map(|(name, _)| name).as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn words_from_the_description_lower_the_confidence() {
        let by_name = inferred("book_flight", "").unwrap().1;
        let by_description = inferred("book", "Book a flight").unwrap().1;
        assert!(by_name > by_description);
    }

    #[test]
    fn every_entry_is_well_formed_and_unique() {
        let mut names: Vec<&str> = VOCABULARY.iter().map(|entry| entry.name).collect();
        assert!(names.iter().all(|name| name.split(':').count() == 2));
        assert!(VOCABULARY.iter().all(|entry| entry.groups.len() <= 3 && entry.confidence <= 0.95));
        let words = VOCABULARY.iter().flat_map(|entry| entry.groups).flat_map(|words| words.split(' '));
        assert!(
            words.into_iter().all(|word| letter(word).is_some()),
            "a word without a first letter is never found"
        );
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
