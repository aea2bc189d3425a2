//! English words of interfaces for everyday words of other languages, because most manifests are in English but many requests are not.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::analysis::{Stemming, words};

/// One concept per line, in English and in the languages of [`LANGUAGES`].
const CONCEPTS: &str = include_str!("../../data/translations.txt");

/// The columns after the English one.
const LANGUAGES: [&str; 11] = ["de", "fr", "es", "pt", "it", "nl", "pl", "tr", "ru", "ar", "ja"];

/// The English stems of a concept, the closest first.
pub(crate) type Concept = Vec<String>;

/// The concepts of a word, by its term in its language.
static BY_TERM: LazyLock<HashMap<String, Vec<Concept>>> = LazyLock::new(|| {
    let mut by_term: HashMap<String, Vec<Concept>> = HashMap::new();
    for line in CONCEPTS.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('|');
        let english = words(columns.next().unwrap_or_default());
        let concept: Concept = english.map(|word| Stemming::English.stem(&word.text).into_owned()).collect();
        // Chinese, the last column, has no stems.
        for (at, column) in columns.enumerate() {
            let stemming = LANGUAGES.get(at).map_or(Stemming::Plain, |tag| Stemming::for_language(tag));
            for word in words(column) {
                let known = by_term.entry(stemming.term(&word.text).into_owned()).or_default();
                if !known.contains(&concept) {
                    known.push(concept.clone());
                }
            }
        }
    }
    by_term
});

/// The words of other languages as they are written, folded.
static WRITTEN: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let lines = CONCEPTS.lines().filter(|line| !line.starts_with('#'));
    let foreign = lines.flat_map(|line| line.split('|').skip(1));
    foreign.flat_map(words).map(|word| word.text).collect()
});

/// Whether a folded word is in the table as it is written, and English at most by its stem: the French "commande" is no form of "command".
pub(crate) fn is_only_foreign(word: &str) -> bool {
    WRITTEN.contains(word) && Stemming::English.stem(word) != word
}

/// The translations of a folded word in any inflection, in the language of the request or else in any language.
pub(crate) fn translations(word: &str, language: Stemming) -> Vec<&'static Concept> {
    let of = |stemming: Stemming| BY_TERM.get(stemming.term(word).as_ref()).into_iter().flatten();
    let own: Vec<&Concept> = match language {
        Stemming::Other(_) => of(language).collect(),
        Stemming::English | Stemming::Plain => Vec::new(),
    };
    if !own.is_empty() {
        return own;
    }
    let mut found: Vec<&Concept> = Vec::new();
    let languages = LANGUAGES.iter().map(|tag| Stemming::for_language(tag));
    for concept in languages.chain([Stemming::Plain]).flat_map(of) {
        if !found.contains(&concept) {
            found.push(concept);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::common::is_english_word;
    use super::*;

    #[test]
    fn every_concept_has_english_words_and_a_column_for_each_language() {
        for line in CONCEPTS.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('|').collect();
            assert_eq!(columns.len(), LANGUAGES.len() + 2, "{line}");
            assert!(columns.iter().all(|column| !column.trim().is_empty()), "{line}");
        }
    }

    #[test]
    fn inflected_words_are_found_by_their_stem() {
        let first =
            |word: &str| translations(word, Stemming::English).first().map(|concept| concept[0].clone());
        for (word, stem) in [
            ("wetter", "weather"),
            ("fluge", "flight"),
            ("vuelos", "flight"),
            ("chambres", "hotel"),
            ("trenes", "train"),
            ("погоды", "weather"),
            ("天気", "weather"),
            ("天气", "weather"),
            ("otel", "hotel"),
            ("pogoda", "weather"),
        ] {
            assert_eq!(first(word).as_deref(), Some(stem), "{word}");
        }
        assert!(first("zebra").is_none());
    }

    /// If a word of the table were also an English word, it would change English requests.
    #[test]
    fn english_words_have_no_translation() {
        for word in
            ["order", "camera", "command", "car", "stage", "plan", "status", "route", "weather", "train"]
        {
            assert!(is_english_word(word) && !is_only_foreign(word), "{word}");
        }
        for word in ["commande", "colis", "reduction"] {
            assert!(is_only_foreign(word), "{word}");
        }
        assert!(!is_english_word("天气"), "a learned weight has it");
    }
}
