//! A tantivy tokenizer for snippets. It splits text into the same words as the index.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::language::Stemming;
use super::stop::is_stop_word;
use super::words::words;

/// Returns tokens with offsets. Tokens that may match are stemmed; the others have empty text.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityTokenizer {
    /// The wanted terms.
    terms: FxHashSet<String>,
    /// Prefixes of the wanted stems. Stemming takes most of the time of a snippet, so words with other prefixes are not stemmed: an English
    /// stem begins like its word.
    prefixes: Vec<String>,
    /// Languages other than English that have wanted terms.
    languages: Vec<Stemming>,
}

impl CapabilityTokenizer {
    /// Builds a tokenizer for terms in English and in some of the languages.
    pub(crate) fn new<'a>(languages: &[Stemming], terms: impl Iterator<Item = &'a str>) -> Self {
        let terms: FxHashSet<String> = terms.map(str::to_owned).collect();
        let prefixes: BTreeSet<String> = terms.iter().map(|term| prefix(term).to_owned()).collect();
        let wanted = |language: &&Stemming| terms.iter().any(|term| language.marks(term));
        let languages = languages.iter().filter(wanted).copied().collect();
        Self { prefixes: prefixes.into_iter().collect(), languages, terms }
    }

    /// The wanted term of a word; empty if there is none.
    fn term(&self, word: &str) -> String {
        if is_stop_word(word) {
            return String::new();
        }
        let has_prefix = self.prefixes.iter().any(|known| prefix(word) == known.as_str());
        let forms = has_prefix.then_some([Stemming::English, Stemming::Plain]).into_iter().flatten();
        let terms = forms.chain(self.languages.iter().copied()).map(|form| form.term(word).into_owned());
        terms.into_iter().find(|term| self.terms.contains(term)).unwrap_or_default()
    }
}

/// The first two characters, or only the first if the second is `y` or `i`, because stemming may change these (`dying`, `die`).
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
                text: self.term(&word.text),
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
    fn returns_only_the_wanted_terms() {
        let german = Stemming::for_language("de");
        let mut tokenizer =
            CapabilityTokenizer::new(&[german], ["fli", "die", "book", "zimm~de"].into_iter());
        let mut stream = tokenizer.token_stream("Flies were dying in the bookings of Zimmer");
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
        assert_eq!((found.len(), known), (8, vec![(0, "fli"), (11, "die"), (24, "book"), (36, "zimm~de")]));
    }
}
