//! Which documents are looked at closely: the best by text.
//!
//! Which documents filters, phrases and exclusions admit is found first ([`super::admitted`]); what those have of the words is
//! added up ([`super::accumulate`]), which also counts them.

use tantivy::Term;
use tantivy::collector::Count;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use super::accumulate::{Accumulated, accumulate};
use super::admitted::admitted;
use super::deadline::Deadline;
use super::loaded::Loaded;
use crate::analysis::{Stemming, bigram, terms, words};
use crate::error::IndexError;
use crate::index::Fields;
use crate::query::{Admits, FilterPart, Phrase, Plan, QueryTerm, Role};
use crate::request::FacetKey;

/// Documents that are looked at closely.
pub(super) const WINDOW: usize = 200;
/// Terms that select candidates; synonyms beyond are left out.
const SELECTING_TERMS_MAX: usize = 160;

/// What every result must fulfil beside the words.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) filters: Vec<FilterPart>,
    pub(super) required: Vec<Box<dyn Query>>,
    pub(super) excluded: Vec<Box<dyn Query>>,
}

impl Conditions {
    /// Whether anything goes.
    pub(super) fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.required.is_empty() && self.excluded.is_empty()
    }

    /// The filters but those of one facet.
    pub(super) fn filters(&self, without: Option<FacetKey>) -> impl Iterator<Item = &Admits> {
        let counts = move |part: &&FilterPart| without.is_none() || part.facet != without;
        self.filters.iter().filter(counts).map(|part| &part.admits)
    }

    /// A query under these conditions.
    pub(super) fn apply(&self, query: Option<&dyn Query>) -> Box<dyn Query> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        clauses.extend(query.map(|query| (Occur::Must, query.box_clone())));
        clauses.extend(self.filters(None).map(|admits| (Occur::Must, admits.query())));
        clauses.extend(self.required.iter().map(|query| (Occur::Must, query.box_clone())));
        if clauses.is_empty() {
            let all = ConstScoreQuery::new(Box::new(tantivy::query::AllQuery), 0.0);
            clauses.push((Occur::Must, Box::new(all)));
        }
        clauses.extend(self.excluded.iter().map(|query| (Occur::MustNot, query.box_clone())));
        match clauses.as_slice() {
            [(Occur::Must, only)] => only.box_clone(),
            _ => Box::new(BooleanQuery::new(clauses)),
        }
    }
}

/// The documents that have any word of any plan; `None` when there is none.
pub(super) fn text_query(fields: &Fields, plans: &[Plan]) -> Option<Box<dyn Query>> {
    let mut clauses: Vec<(Occur, Box<dyn Query>)> =
        plans.iter().filter_map(|plan| Some((Occur::Should, selecting_query(fields, plan)?))).collect();
    match (clauses.pop(), clauses.is_empty()) {
        (Some((_, only)), true) => Some(only),
        (None, _) => None,
        (last, _) => {
            clauses.extend(last);
            Some(Box::new(BooleanQuery::new(clauses)))
        }
    }
}

/// The documents that have any of the terms, scored by them.
fn selecting_query(fields: &Fields, plan: &Plan) -> Option<Box<dyn Query>> {
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for term in selecting(plan) {
        let field = if term.role == Role::Bigram { fields.bigram } else { fields.all };
        clauses.push((Occur::Should, weighted(Term::from_field_text(field, &term.text), term)));
    }
    match clauses.len() {
        0 => None,
        _ => Some(Box::new(BooleanQuery::new(clauses))),
    }
}

/// The terms that select.
pub(super) fn selecting(plan: &Plan) -> impl Iterator<Item = &QueryTerm> {
    plan.terms.iter().filter(|term| term.role != Role::Association).take(SELECTING_TERMS_MAX)
}

/// Whether the selection scores every term of a plan, and its sum is what ranking needs of them.
pub(super) fn is_scored_whole(plan: &Plan) -> bool {
    plan.parts.is_empty() && plan.terms_that_select() <= SELECTING_TERMS_MAX
}

fn weighted(term: Term, of: &QueryTerm) -> Box<dyn Query> {
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    if (of.weight - 1.0).abs() < f32::EPSILON {
        Box::new(query)
    } else {
        Box::new(BoostQuery::new(Box::new(query), of.weight))
    }
}

/// The best of the documents that have any word of the plans, under conditions, and how many there are.
pub(super) fn select(
    loaded: &Loaded,
    plans: &[Plan],
    conditions: &Conditions,
    deadline: Deadline,
) -> Result<Accumulated, IndexError> {
    let go_on = || deadline.pass();
    admitted(loaded, conditions, None, go_on)
        .and_then(|admitted| {
            let terms = plans.iter().flat_map(selecting);
            accumulate(loaded, terms, admitted.as_deref(), WINDOW, go_on)
        })
        .map_err(IndexError::engine("search"))
}

/// Words side by side as they are written, stop words included; one word in any of its forms.
pub(super) fn phrase_query(fields: &Fields, text: &str) -> Option<Box<dyn Query>> {
    let written: Vec<String> = words(text).map(|word| word.text).collect();
    let query: Box<dyn Query> = match (written.as_slice(), terms(text, Stemming::English).as_slice()) {
        (_, []) => return None,
        ([_], [only, ..]) => {
            let term = Term::from_field_text(fields.all, only);
            Box::new(TermQuery::new(term, IndexRecordOption::Basic))
        }
        _ => {
            let written = written.iter().map(|word| Term::from_field_text(fields.word, word));
            Box::new(PhraseQuery::new(written.collect()))
        }
    };
    Some(Box::new(ConstScoreQuery::new(query, 0.0)))
}

/// What must not appear: a word in any of its forms, a phrase as its neighbouring pairs. (The engine's own phrases break
/// an assertion of the engine where they exclude.)
pub(super) fn excluded_query(fields: &Fields, text: &str) -> Option<Box<dyn Query>> {
    let terms = terms(text, Stemming::English);
    let basic = |term: Term| -> Box<dyn Query> {
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        Box::new(ConstScoreQuery::new(Box::new(query), 0.0))
    };
    match terms.as_slice() {
        [] => None,
        [only] => Some(basic(Term::from_field_text(fields.all, only))),
        _ => {
            let pairs = terms.windows(2).filter_map(|pair| match pair {
                [first, second] => Some(bigram(first, second)),
                _ => None,
            });
            let clauses = pairs.map(|pair| (Occur::Must, basic(Term::from_field_text(fields.bigram, &pair))));
            Some(Box::new(BooleanQuery::new(clauses.collect())))
        }
    }
}

/// Adds the phrases that hold: strict ones always, others when a document fulfils them.
pub(super) fn add_phrases(
    loaded: &Loaded,
    conditions: &mut Conditions,
    phrases: &[Phrase],
) -> Result<(), IndexError> {
    for phrase in phrases {
        let Some(query) = phrase_query(&loaded.fields, phrase.text()) else { continue };
        let holds = match phrase {
            Phrase::Strict(_) => true,
            Phrase::IfAny(_) => {
                let here = conditions.apply(Some(query.as_ref()));
                loaded.searcher.search(&here, &Count).map_err(IndexError::engine("count a phrase"))? > 0
            }
        };
        if holds {
            conditions.required.push(query);
        }
    }
    Ok(())
}
