//! The same words as a tokenizer of tantivy, for what tantivy analyses itself: snippets.

use std::collections::BTreeSet;

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::{Stemming, is_stop_word, words};

/// Words with offsets into the text; those that may be looked for are stemmed, the others have no text.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityTokenizer {
    pub(crate) stemming: Stemming,
    /// How the stems begin that are looked for. Stemming takes most of the time of a snippet, and English stems begin as
    /// their words do.
    pub(crate) beginnings: Vec<String>,
}

impl CapabilityTokenizer {
    /// Looks for these stems.
    pub(crate) fn new<'a>(stemming: Stemming, stems: impl Iterator<Item = &'a str>) -> Self {
        let beginnings: BTreeSet<String> = stems.map(|stem| beginning(stem).to_owned()).collect();
        Self { stemming, beginnings: beginnings.into_iter().collect() }
    }

    fn stem(&self, word: &str) -> String {
        let may_match = self.stemming != Stemming::English
            || self.beginnings.iter().any(|known| beginning(word) == known.as_str());
        if !may_match || is_stop_word(word) { String::new() } else { self.stemming.stem(word).into_owned() }
    }
}

/// The first two characters; before `y`, which stemming may change (`dying`, `die`), the first.
fn beginning(word: &str) -> &str {
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
    fn words_that_may_match_are_stemmed_and_the_others_keep_their_place() {
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
