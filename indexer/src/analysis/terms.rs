//! Terms, bigrams and character grams.

use std::collections::BTreeSet;

use super::language::{Stemming, language_of};
use super::stop::is_stop_word;
use super::words::words;

/// The stems of a text without stop words, in order and with repeats.
pub(crate) fn terms(text: &str, stemming: Stemming) -> Vec<String> {
    words(text)
        .filter(|word| !is_stop_word(&word.text))
        .map(|word| stemming.stem(&word.text).into_owned())
        .collect()
}

/// The distinct terms of a request.
#[doc(hidden)]
pub fn stems_of(request: &str) -> BTreeSet<String> {
    let stemming = Stemming::for_language(&language_of(None, request));
    let stems = terms(request, stemming).into_iter();
    stems.filter(|stem| !stem.is_empty() && !stem.contains(' ') && !stem.starts_with('#')).collect()
}

/// Joins two neighbouring terms into the term of the bigram field.
pub(crate) fn bigram(first: &str, second: &str) -> String {
    let mut joined = String::with_capacity(first.len() + second.len() + 1);
    joined.push_str(first);
    joined.push('_');
    joined.push_str(second);
    joined
}

/// Characters of a gram. Grams match misspelt and compound words.
const GRAM_CHARS: usize = 4;

/// The character grams of a word; none for words shorter than a gram.
pub(crate) fn grams(word: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = word.char_indices().map(|(start, _)| start).chain([word.len()]).collect();
    let count = starts.len().saturating_sub(GRAM_CHARS);
    (0..count).filter_map(move |at| {
        let (start, end) = (starts.get(at)?, starts.get(at + GRAM_CHARS)?);
        word.get(*start..*end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_terms_and_removes_stop_words() {
        assert_eq!(terms("Could you please cancel my bookings?", Stemming::English), ["cancel", "book"]);
        assert_eq!(terms("getFlightStatus_v2", Stemming::English), ["get", "flight", "status", "v", "2"]);
    }

    #[test]
    fn splits_grams_at_character_boundaries() {
        assert_eq!(grams("flüge").collect::<Vec<_>>(), ["flüg", "lüge"]);
        assert_eq!(grams("car").count(), 0);
    }
}
