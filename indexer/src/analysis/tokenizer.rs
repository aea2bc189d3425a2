//! A tantivy tokenizer over the same words, for snippets.

use std::collections::BTreeSet;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::language::Stemming;
use super::stop::is_stop_word;
use super::words::words;

/// Tokens with offsets; those that may match are stemmed, the others have no text.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityTokenizer {
    pub(crate) stemming: Stemming,
    /// Prefixes of the wanted stems. Stemming takes most of the time of a snippet, and an English stem has the prefix of its
    /// word.
    pub(crate) prefixes: Vec<String>,
}

impl CapabilityTokenizer {
    pub(crate) fn new<'a>(stemming: Stemming, stems: impl Iterator<Item = &'a str>) -> Self {
        let prefixes: BTreeSet<String> = stems.map(|stem| prefix(stem).to_owned()).collect();
        Self { stemming, prefixes: prefixes.into_iter().collect() }
    }

    fn stem(&self, word: &str) -> String {
        let may_match = self.stemming != Stemming::English
            || self.prefixes.iter().any(|known| prefix(word) == known.as_str());
        if !may_match || is_stop_word(word) { String::new() } else { self.stemming.stem(word).into_owned() }
    }
}

/// The first two characters; only one before `y`, which stemming may change (`dying`, `die`).
fn prefix(word: &str) -> &str {
    let mut chars = word.char_indices();
    chars.next();
    match chars.next() {
        Some((at, 'y' | 'i')) => word.get(..at).unwrap_or(word),
        Some((at, c)) => word.get(..at + c.len_utf8()).unwrap_or(word),
        None => word,
    }
}

impl Tokenizer for CapabilityTokenizer {
    type TokenStream<'a> = Words;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Words {
        let tokens = words(text)
            .enumerate()
            .map(|(position, word)| Token {
                offset_from: word.span.start,
                offset_to: word.span.end,
                position,
                text: self.stem(&word.text),
                position_length: 1,
            })
            .collect();
        Words { tokens, next: 0 }
    }
}

/// The tokens of one text.
#[derive(Debug)]
pub(crate) struct Words {
    tokens: Vec<Token>,
    next: usize,
}

impl TokenStream for Words {
    fn advance(&mut self) -> bool {
        self.next += 1;
        self.next <= self.tokens.len()
    }

    fn token(&self) -> &Token {
        &self.tokens[self.next - 1]
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.tokens[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_only_words_that_may_match() {
        let mut tokenizer = CapabilityTokenizer::new(Stemming::English, ["fli", "die", "book"].into_iter());
        let mut stream = tokenizer.token_stream("Flies were dying in the bookings of Oslo");
        let mut found = Vec::new();
        while stream.advance() {
            let Token { offset_from, text, .. } = stream.token();
            found.push((*offset_from, text.clone()));
        }
        let known: Vec<(usize, &str)> = found
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .map(|(at, text)| (*at, text.as_str()))
            .collect();
        assert_eq!((found.len(), known), (8, vec![(0, "fli"), (11, "die"), (24, "book")]));
    }
}
