//! Common words of languages, which are never taken for a misspelling of another word.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::synonyms::synonyms;
use super::word_weights::WordWeights;
use crate::analysis::{Stemming, is_chat_verb, words};

/// The common words of one language per line.
const WORDS: &str = include_str!("../../data/common_words.txt");

static COMMON: LazyLock<FxHashSet<String>> = LazyLock::new(|| {
    let lines = WORDS.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(words).map(|word| word.text).collect()
});

/// Whether a word, folded, is one of them, or an English word that requests are known to have.
pub(super) fn is_common_word(word: &str) -> bool {
    let stem = Stemming::English.stem(word);
    COMMON.contains(word)
        || is_chat_verb(word)
        || !synonyms(&stem).is_empty()
        || WordWeights::built_in().get(&stem).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_several_languages_are_common() {
        for word in ["train", "meteo", "argent", "paket", "zimmer", "trenes", "pogoda", "bilet", "поезд"]
        {
            assert!(is_common_word(word), "{word}");
        }
        for word in ["dentsit", "wether", "flihgt"] {
            assert!(!is_common_word(word), "{word}");
        }
    }
}
