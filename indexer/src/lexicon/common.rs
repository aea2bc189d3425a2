//! Common words of languages, which are never taken for a misspelling of another word.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::synonyms::synonyms;
use super::translations::translations;
use super::word_weights::WordWeights;
use crate::analysis::{Stemming, is_chat_verb, words};

/// The common words of one language per line.
const WORDS: &str = include_str!("../../data/common_words.txt");

static COMMON: LazyLock<FxHashSet<String>> = LazyLock::new(|| {
    let lines = WORDS.lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(words).map(|word| word.text).collect()
});

/// The common English words, which are on the first line.
static ENGLISH: LazyLock<FxHashSet<String>> = LazyLock::new(|| {
    let line = WORDS.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
    words(line).map(|word| word.text).collect()
});

/// Whether a folded word is a common word, or a word of any language that is known to occur in requests.
pub(crate) fn is_common_word(word: &str) -> bool {
    COMMON.contains(word) || is_english_word(word) || !translations(word, Stemming::English).is_empty()
}

/// Whether a folded word is an English word that is known to occur in requests.
pub(crate) fn is_english_word(word: &str) -> bool {
    // the learned weights have words of other languages, too
    if !word.is_ascii() {
        return false;
    }
    let stem = Stemming::English.stem(word);
    ENGLISH.contains(word)
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
