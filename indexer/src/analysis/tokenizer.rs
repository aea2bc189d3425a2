//! The same words as a tokenizer of tantivy, for what tantivy analyses itself: snippets.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::{Stemming, is_stop_word, words};

/// Words, stemmed, without stop words, with offsets into the text.
#[derive(Debug, Clone)]
pub(crate) struct CapabilityTokenizer {
    pub(crate) stemming: Stemming,
    /// First letters of the stems that are looked for. Other English words stay as they are, since their stems begin as
    /// they do, and stemming takes most of the time of a snippet.
    pub(crate) initials: Vec<char>,
}

impl CapabilityTokenizer {
    fn stem(&self, word: String) -> String {
        let is_other = self.stemming == Stemming::English && !word.starts_with(self.initials.as_slice());
        if is_other { word } else { self.stemming.stem(&word).into_owned() }
    }
}

impl Tokenizer for CapabilityTokenizer {
    type TokenStream<'a> = Words;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Words {
        let tokens = words(text)
            .enumerate()
            .filter(|(_, word)| !is_stop_word(&word.text))
            .map(|(position, word)| Token {
                offset_from: word.span.start,
                offset_to: word.span.end,
                position,
                text: self.stem(word.text),
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
