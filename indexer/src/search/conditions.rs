//! The conditions on every result beside its words: filters, phrases and exclusions.

use std::collections::BTreeSet;

use tantivy::Term;

use crate::analysis::{Stemming, bigram, terms, words};
use crate::filter::FacetKey;
use crate::index::Fields;
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

    /// The filters, except those of one facet.
    pub(super) fn filters(&self, without: Option<FacetKey>) -> impl Iterator<Item = &Restriction> {
        let counts = move |part: &&FilterPart| without.is_none() || part.facet != without;
        self.filters.iter().filter(counts).map(|part| &part.restriction)
    }
}

/// A condition on the text of a document.
pub(super) enum TextCondition {
    /// It has each of the terms.
    AllOf(BTreeSet<Term>),
    /// It has the terms next to each other, in this order.
    Phrase(Vec<Term>),
}

/// Adjacent words as they are written, stop words included; a single word in any of its forms.
pub(super) fn phrase(fields: &Fields, text: &str) -> Option<TextCondition> {
    let written: Vec<String> = words(text).map(|word| word.text).collect();
    match (written.as_slice(), terms(text, Stemming::English).as_slice()) {
        (_, []) => None,
        ([_], [only, ..]) => Some(any_form(fields, only)),
        _ => {
            let written = written.iter().map(|word| Term::from_field_text(fields.word, word));
            Some(TextCondition::Phrase(written.collect()))
        }
    }
}

/// What to exclude: a word in any of its forms, or all bigrams of a phrase.
pub(super) fn exclusion(fields: &Fields, text: &str) -> Option<TextCondition> {
    match terms(text, Stemming::English).as_slice() {
        [] => None,
        [only] => Some(any_form(fields, only)),
        several => {
            let bigrams = several.windows(2).filter_map(|pair| match pair {
                [first, second] => Some(Term::from_field_text(fields.bigram, &bigram(first, second))),
                _ => None,
            });
            Some(TextCondition::AllOf(bigrams.collect()))
        }
    }
}

fn any_form(fields: &Fields, stem: &str) -> TextCondition {
    TextCondition::AllOf(BTreeSet::from([Term::from_field_text(fields.all, stem)]))
}
