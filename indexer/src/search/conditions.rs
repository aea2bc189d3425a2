//! The conditions that every result has to satisfy in addition to matching words: filters, phrases and exclusions.

use std::collections::BTreeSet;

use tantivy::Term;

use super::opened::OpenedIndex;
use crate::analysis::{Stemming, bigram, is_stop_word, terms, words};
use crate::filter::FacetKey;
use crate::query::{FilterPart, Restriction};

#[derive(Default)]
pub(super) struct Conditions {
    pub(super) filters: Vec<FilterPart>,
    pub(super) required: Vec<TextCondition>,
    pub(super) excluded: Vec<TextCondition>,
}

impl Conditions {
    /// Whether every document satisfies them.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.required.is_empty() && self.excluded.is_empty()
    }

    /// Whether a filter restricts the values of a facet.
    pub(super) fn has_filter_of(&self, facet: FacetKey) -> bool {
        self.filters.iter().any(|part| part.facet == Some(facet))
    }

    /// The filters, except the filters of one facet.
    pub(super) fn filters(&self, without: Option<FacetKey>) -> impl Iterator<Item = &Restriction> {
        let is_included = move |part: &&FilterPart| without.is_none() || part.facet != without;
        self.filters.iter().filter(is_included).map(|part| &part.restriction)
    }
}

/// A condition on the text of a document.
pub(super) enum TextCondition {
    /// Contains any of the terms.
    AnyOf(BTreeSet<Term>),
    /// Contains all of the terms.
    AllOf(BTreeSet<Term>),
    /// Contains the terms next to each other, in this order.
    Phrase(Vec<Term>),
}

/// The condition of a quoted phrase: its words, including stop words, are adjacent as written. A single word matches in any form.
pub(super) fn phrase(opened: &OpenedIndex, text: &str) -> Option<TextCondition> {
    let fields = &opened.fields;
    let written: Vec<String> = words(text).map(|word| word.text).collect();
    match (written.as_slice(), terms(text, Stemming::English).as_slice()) {
        (_, []) => None,
        ([only], _) => Some(any_form(opened, only)),
        _ => {
            let written = written.iter().map(|word| Term::from_field_text(fields.word, word));
            Some(TextCondition::Phrase(written.collect()))
        }
    }
}

/// The condition that excluded documents satisfy: a word in any of its forms, or all bigrams of a phrase.
pub(super) fn exclusion(opened: &OpenedIndex, text: &str) -> Option<TextCondition> {
    let fields = &opened.fields;
    if let Some(only) = only_word(text) {
        return Some(any_form(opened, &only));
    }
    match terms(text, Stemming::English).as_slice() {
        [] => None,
        several => {
            let bigrams = several.windows(2).filter_map(|pair| match pair {
                [first, second] => Some(Term::from_field_text(fields.bigram, &bigram(first, second))),
                _ => None,
            });
            Some(TextCondition::AllOf(bigrams.collect()))
        }
    }
}

/// The only word of a text, ignoring stop words; `None` if there are none or several.
fn only_word(text: &str) -> Option<String> {
    let mut words = words(text).map(|word| word.text).filter(|word| !is_stop_word(word));
    words.next().filter(|_| words.next().is_none())
}

/// A word in the forms of every language of the index.
fn any_form(opened: &OpenedIndex, word: &str) -> TextCondition {
    let forms = [Stemming::English, Stemming::Plain].iter().chain(&opened.languages);
    let term = |form: &Stemming| Term::from_field_text(opened.fields.all, &form.term(word));
    TextCondition::AnyOf(forms.map(term).collect())
}
