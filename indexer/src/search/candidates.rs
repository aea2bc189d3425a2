//! Which documents are looked at closely: the best by text.
//!
//! Words alone are added up ([`super::accumulate`]), which also counts what matches. Under filters, phrases and exclusions the
//! engine searches: few terms with a collector that skips what cannot be among the best; many terms cost less when every
//! match is scored and counted.

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocAddress, Score, Term};

use super::accumulate::accumulate;
use super::deadline::{Deadline, Timed};
use super::frequencies::Known;
use super::loaded::Loaded;
use crate::analysis::{Stemming, bigram, terms, words};
use crate::error::IndexError;
use crate::index::Fields;
use crate::query::{FilterPart, Phrase, Plan, QueryTerm, Role};
use crate::request::FacetKey;

/// Documents that are looked at closely.
pub(super) const WINDOW: usize = 200;
/// Terms up to which skipping wins over counting.
const SKIPPING_TERMS_MAX: usize = 4;
/// Terms that select candidates; synonyms beyond are left out.
const SELECTING_TERMS_MAX: usize = 160;

/// What every result must fulfil beside the words.
pub(super) struct Conditions {
    pub(super) filters: Vec<FilterPart>,
    pub(super) required: Vec<Box<dyn Query>>,
    pub(super) excluded: Vec<Box<dyn Query>>,
}

impl Conditions {
    /// Whether anything goes.
    fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.required.is_empty() && self.excluded.is_empty()
    }

    /// A query under these conditions; a facet is counted without its own filter.
    pub(super) fn apply(&self, query: Option<&dyn Query>, without: Option<FacetKey>) -> Box<dyn Query> {
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        clauses.extend(query.map(|query| (Occur::Must, query.box_clone())));
        let filters = self.filters.iter().filter(|part| without.is_none() || part.facet != without);
        clauses.extend(filters.map(|part| (Occur::Must, part.query.box_clone())));
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
fn selecting(plan: &Plan) -> impl Iterator<Item = &QueryTerm> {
    plan.terms.iter().filter(|term| term.role != Role::Association).take(SELECTING_TERMS_MAX)
}

/// Whether the selection scores every term of a plan, and its sum is what ranking needs of them.
pub(super) fn is_scored_whole(plan: &Plan) -> bool {
    plan.parts.is_empty() && plan.selecting() <= SELECTING_TERMS_MAX
}

fn weighted(term: Term, of: &QueryTerm) -> Box<dyn Query> {
    let query = TermQuery::new(term, IndexRecordOption::WithFreqs);
    if (of.weight - 1.0).abs() < f32::EPSILON {
        Box::new(query)
    } else {
        Box::new(BoostQuery::new(Box::new(query), of.weight))
    }
}

/// Whether a query of so many terms is searched by skipping.
pub(super) fn is_skipping(terms: usize) -> bool {
    terms <= SKIPPING_TERMS_MAX
}

/// The best documents by text, and how many match.
pub(super) struct Selected {
    pub(super) best: Vec<(Score, DocAddress)>,
    pub(super) total: u64,
    pub(super) total_is_exact: bool,
}

/// Selects among the documents that have any word of the plans, under conditions.
pub(super) fn select(
    loaded: &Loaded,
    plans: &[Plan],
    conditions: &Conditions,
    deadline: Deadline,
) -> Result<Selected, IndexError> {
    let failed = IndexError::engine("search");
    if conditions.is_empty() {
        let terms = plans.iter().flat_map(selecting);
        let found = accumulate(loaded, terms, WINDOW, || deadline.pass()).map_err(&failed)?;
        return Ok(Selected { best: found.best, total: found.total, total_is_exact: true });
    }
    let query = conditions.apply(text_query(&loaded.fields, plans).as_deref(), None);
    let terms = plans.iter().map(Plan::selecting).sum();
    let best = TopDocs::with_limit(WINDOW).order_by_score();
    let (searcher, known) = (&loaded.searcher, Known(loaded));
    if !is_skipping(terms) {
        let counted = Timed { collector: (best, Count), deadline };
        let (best, total) =
            searcher.search_with_statistics_provider(&query, &counted, &known).map_err(&failed)?;
        return Ok(Selected { best, total: total as u64, total_is_exact: true });
    }
    let skipping = Timed { collector: best, deadline };
    let best = searcher.search_with_statistics_provider(&query, &skipping, &known).map_err(&failed)?;
    let total = best.len() as u64;
    Ok(Selected { total_is_exact: best.len() < WINDOW, best, total })
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
                let here = conditions.apply(Some(query.as_ref()), None);
                loaded.searcher.search(&here, &Count).map_err(IndexError::engine("count a phrase"))? > 0
            }
        };
        if holds {
            conditions.required.push(query);
        }
    }
    Ok(())
}
