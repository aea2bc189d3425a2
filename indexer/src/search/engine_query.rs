//! The candidate selection expressed as a tantivy query. Benchmarks compare its speed with a search, and tests compare the results.

use std::ops::Bound;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, RangeQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{Searcher, Term};

use super::conditions::{Conditions, TextCondition};
use super::executor::execute;
use super::opened::OpenedIndex;
use super::phrasings::parse_phrasings;
use super::selection::{WINDOW, selecting};
use super::source::Source;
use crate::error::{IndexError, SearchError};
use crate::query::{QueryTerm, Restriction, Role};
use crate::request::SearchRequest;

/// With more terms than this, tantivy is faster if it also counts all matches; with fewer, if it may skip documents that are not among the
/// best.
const SKIPPING_TERMS_MAX: usize = 4;
/// More terms than this become a `TermSetQuery`, for which tantivy first builds a dictionary.
const SEPARATE_TERMS_MAX: usize = 16;

/// A query, and the searcher to run it on.
pub struct EngineQuery {
    searcher: Searcher,
    query: Box<dyn Query>,
    terms: usize,
}

impl EngineQuery {
    /// The query of a request; `None` if it has no words, or filters by what is not in its documents.
    pub(super) fn of(opened: &OpenedIndex, request: &SearchRequest) -> Result<Option<Self>, SearchError> {
        execute(Source::Local(opened), None, request, parse_phrasings(&request.phrasings)?, |executor| {
            let terms: Vec<&QueryTerm> = executor.query.plans.iter().flat_map(selecting).collect();
            if terms.is_empty() {
                return Ok(None);
            }
            let Some(query) = query(opened, &terms, &executor.query.conditions) else { return Ok(None) };
            Ok(Some(Self { searcher: opened.searcher.clone(), query, terms: terms.len() }))
        })
    }

    /// Collects as many documents as a search, with the faster collector, and returns how many there are.
    pub fn run(&self) -> Result<usize, IndexError> {
        let failed = IndexError::engine("search");
        let best = TopDocs::with_limit(WINDOW).order_by_score();
        if self.terms <= SKIPPING_TERMS_MAX {
            return Ok(self.searcher.search(&self.query, &best).map_err(failed)?.len());
        }
        let (best, _) = self.searcher.search(&self.query, &(best, Count)).map_err(failed)?;
        Ok(best.len())
    }
}

/// The documents that have any of the terms, scored by them, under conditions.
pub(super) fn query(
    opened: &OpenedIndex,
    terms: &[&QueryTerm],
    conditions: &Conditions,
) -> Option<Box<dyn Query>> {
    let word = |term: &&QueryTerm| -> (Occur, Box<dyn Query>) {
        let field = if term.role == Role::Bigram { opened.fields.bigram } else { opened.fields.all };
        let query = TermQuery::new(Term::from_field_text(field, &term.text), IndexRecordOption::WithFreqs);
        (Occur::Should, Box::new(BoostQuery::new(Box::new(query), term.weight)))
    };
    let words: Box<dyn Query> = Box::new(BooleanQuery::new(terms.iter().map(word).collect()));
    let mut clauses = vec![(Occur::Must, words)];
    for restriction in conditions.filters(None) {
        clauses.push((Occur::Must, restriction_query(restriction)?));
    }
    clauses.extend(conditions.required.iter().map(|text| (Occur::Must, text_query(text))));
    clauses.extend(conditions.excluded.iter().map(|text| (Occur::MustNot, text_query(text))));
    Some(match clauses.as_slice() {
        [(_, words)] => words.box_clone(),
        _ => Box::new(BooleanQuery::new(clauses)),
    })
}

fn text_query(condition: &TextCondition) -> Box<dyn Query> {
    let query: Box<dyn Query> = match condition {
        TextCondition::AnyOf(terms) => any_of(&terms.iter().cloned().collect::<Vec<_>>()),
        TextCondition::AllOf(terms) => {
            Box::new(BooleanQuery::new(terms.iter().map(|term| (Occur::Must, with_term(term))).collect()))
        }
        TextCondition::Phrase(terms) => Box::new(PhraseQuery::new(terms.clone())),
    };
    Box::new(ConstScoreQuery::new(query, 0.0))
}

fn with_term(term: &Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term.clone(), IndexRecordOption::Basic))
}

fn restriction_query(restriction: &Restriction) -> Option<Box<dyn Query>> {
    let query: Box<dyn Query> = match restriction {
        Restriction::AnyOf(terms) => any_of(terms),
        Restriction::NoneOf(terms) => {
            let all: Box<dyn Query> = Box::new(AllQuery);
            Box::new(BooleanQuery::new(vec![(Occur::Must, all), (Occur::MustNot, any_of(terms))]))
        }
        Restriction::Since(from) => {
            Box::new(RangeQuery::new(Bound::Included(from.clone()), Bound::Unbounded))
        }
        Restriction::OfSitesWith(_) => return None,
    };
    Some(Box::new(ConstScoreQuery::new(query, 0.0)))
}

fn any_of(terms: &[Term]) -> Box<dyn Query> {
    match terms {
        [only] => with_term(only),
        _ if terms.len() > SEPARATE_TERMS_MAX => Box::new(TermSetQuery::new(terms.to_vec())),
        _ => Box::new(BooleanQuery::new(terms.iter().map(|term| (Occur::Should, with_term(term))).collect())),
    }
}
