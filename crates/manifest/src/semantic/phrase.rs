//! Parses a short text into a phrase, and finds the vocabulary entries that match it.

use super::lexicon::{self, Meaning};
use super::vocabulary::COMPOUNDS;
use crate::text;

/// Maximum number of words of a phrase with one meaning. A longer text has several meanings.
const WORDS_MAX: usize = 6;

/// The words of a phrase without stop words, in order.
#[derive(Debug, Default)]
pub(super) struct Phrase {
    words: Vec<Meaning>,
}

impl Phrase {
    /// The first words of a description, up to a punctuation mark or a word such as "with".
    pub(super) fn leading(description: &str, site_name: &[String]) -> Self {
        let clause = first_clause(description);
        let mut words = String::with_capacity(clause.len());
        let mut ended = false;
        let mut content_words = 0;
        text::each_word(clause, |word| {
            if ended {
                return;
            }
            let meaning = lexicon::meaning(word);
            // In "Search for flights" the object follows "for"; in "Search flights for a date" it precedes "for".
            ended = content_words >= 2 && meaning.is_boundary();
            if !meaning.is_boundary() {
                content_words += usize::from(!meaning.is_neutral());
                words.push_str(word);
                words.push(' ');
            }
        });
        Self::of(&words, site_name)
    }

    /// The phrase of lower-case words separated by spaces. Words of the site's name are omitted, as in `skyhop_book_flight`.
    pub(super) fn of(words: &str, site_name: &[String]) -> Self {
        let mut kept = Vec::with_capacity(WORDS_MAX);
        let mut rest = words.split(' ').filter(|word| !word.is_empty()).peekable();
        while let Some(word) = rest.next() {
            let compound = rest.peek().and_then(|next| {
                COMPOUNDS
                    .iter()
                    .find(|(first, second, _)| *first == word && second == next)
                    .map(|(_, _, one)| *one)
            });
            if compound.is_some() {
                rest.next();
            }
            let meaning = lexicon::meaning(compound.unwrap_or(word));
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            let is_of_site = || meaning.is_unknown() && site_name.iter().any(|name| name == word);
            if compound.is_none() && (meaning.is_neutral() || is_number || is_of_site()) {
                continue;
            }
            if kept.len() == WORDS_MAX {
                return Self::default();
            }
            kept.push(meaning);
        }
        Self { words: kept }
    }

    /// Positions of the entries whose words make up the phrase.
    pub(super) fn entries(&self) -> impl Iterator<Item = usize> {
        let first = self.words.first().into_iter().flat_map(Meaning::fills).map(|(at, _)| at);
        first.filter(|at| self.matches_entry(*at))
    }

    /// Whether the phrase has a word of an entry, or no word with a meaning.
    pub(super) fn agrees_with(&self, at: usize) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| word.groups_of(at) != 0)
    }

    fn matches_entry(&self, at: usize) -> bool {
        let Some(needs) = lexicon::needs(at) else { return false };
        let ends = self.words.last().is_some_and(|word| word.groups_of(at) != 0);
        if !ends && !needs.takes_any_object {
            return false;
        }
        let (mut filled, mut others) = (0, 0);
        for word in &self.words {
            let groups = word.groups_of(at);
            filled |= groups;
            others += usize::from(groups == 0);
        }
        let complete = needs.required & !filled == 0;
        complete && (needs.takes_any_object || others <= 1)
    }
}

/// A text up to its first punctuation mark; `agents.txt` has none.
fn first_clause(text: &str) -> &str {
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let before_space = letters.peek().is_none_or(|(_, next)| next.is_whitespace());
        let ends = match letter {
            '(' | '\u{2014}' | '\u{2013}' | '\n' => true,
            '.' | ',' | ';' | ':' | '!' | '?' => before_space,
            _ => false,
        };
        if ends {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}
