//! The same words as a tokenizer of tantivy, for what tantivy analyses itself: snippets.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::{Stemming, is_stop_word, words};

/// Words, stemmed, without stop words, with offsets into the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CapabilityTokenizer {
    pub(crate) stemming: Stemming,
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
                text: self.stemming.stem(&word.text).into_owned(),
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
