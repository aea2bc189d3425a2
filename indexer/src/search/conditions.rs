//! The conditions on every result beside its words: filters, phrases and exclusions.

use tantivy::Term;
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use crate::analysis::{Stemming, bigram, terms, words};
use crate::filter::FacetKey;
use crate::index::Fields;
use crate::query::{FilterPart, Restriction};

#[derive(Default)]
pub(super) struct Conditions {
    pub(super) filters: Vec<FilterPart>,
    pub(super) required: Vec<Box<dyn Query>>,
    pub(super) excluded: Vec<Box<dyn Query>>,
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

fn any_form(term: Term) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(TermQuery::new(term, IndexRecordOption::Basic)), 0.0))
}

/// Adjacent words as they are written, stop words included; a single word in any of its forms.
pub(super) fn phrase_query(fields: &Fields, text: &str) -> Option<Box<dyn Query>> {
    let written: Vec<String> = words(text).map(|word| word.text).collect();
    match (written.as_slice(), terms(text, Stemming::English).as_slice()) {
        (_, []) => None,
        ([_], [only, ..]) => Some(any_form(Term::from_field_text(fields.all, only))),
        _ => {
            let written = written.iter().map(|word| Term::from_field_text(fields.word, word));
            let phrase = PhraseQuery::new(written.collect());
            Some(Box::new(ConstScoreQuery::new(Box::new(phrase), 0.0)))
        }
    }
}

/// The documents to exclude: those with a word in any of its forms, or with all bigrams of a phrase. (A `PhraseQuery` that
/// excludes breaks an assertion of tantivy.)
pub(super) fn excluded_query(fields: &Fields, text: &str) -> Option<Box<dyn Query>> {
    match terms(text, Stemming::English).as_slice() {
        [] => None,
        [only] => Some(any_form(Term::from_field_text(fields.all, only))),
        several => {
            let bigrams = several.windows(2).filter_map(|pair| match pair {
                [first, second] => Some(bigram(first, second)),
                _ => None,
            });
            let clause = |text: String| (Occur::Must, any_form(Term::from_field_text(fields.bigram, &text)));
            Some(Box::new(BooleanQuery::new(bigrams.map(clause).collect())))
        }
    }
}
