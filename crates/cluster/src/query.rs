//! Searches as queries of the engine.
//!
//! Conditions are sets of documents to the engine, not scores: each is a Boolean query of its own. One condition more demands any of the
//! scored terms, because scored terms beside conditions are optional to the engine.

use crate::documents::{IS_MARKER, of_phrase};
use crate::interface::{EngineCondition, EngineSearch, EngineTerm};
use crate::proto::query::Query as Kind;
use crate::proto::{AllQuery, BooleanQuery, BoostQuery, Query, RangeQuery, TermQuery};
use crate::schema::{MANIFEST, MARKER, kept};

/// Maximum number of terms that the engine scores.
const SCORED_MAX: usize = 64;
/// A term that no document has.
const ABSENT: &str = "\u{1}";

/// The best documents of a search; `None` if none can match.
pub(crate) fn best(search: &EngineSearch) -> Option<Query> {
    let mut query = matching(search)?;
    let mut scored: Vec<&(EngineTerm, f32)> = search.scored.iter().collect();
    scored.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let scored = scored.into_iter().take(SCORED_MAX);
    query.should = scored.filter_map(|(scored, weight)| Some(boosted(term(scored)?, *weight))).collect();
    Some(boolean(query))
}

/// A query that visits every document of a search, so that they are counted; `None` if none can match.
pub(crate) fn counted(search: &EngineSearch) -> Option<Query> {
    let mut query = matching(search)?;
    // the engine does not prune queries that exclude documents
    query.must_not.push(of_term("all", ABSENT.to_owned()));
    Some(boolean(query))
}

/// The documents of manifests.
pub(crate) fn of_manifests(manifests: &[String]) -> Option<Query> {
    let terms = manifests.iter().filter_map(|id| Some(of_term(MANIFEST, kept(id)?)));
    any_of(terms.collect())
        .map(|any| boolean(BooleanQuery { must: vec![all(), any], ..BooleanQuery::default() }))
}

/// The markers of a commit.
pub(crate) fn of_commit(commit: &str) -> Query {
    let must = vec![
        all(),
        boolean(BooleanQuery { should: vec![of_term(MARKER, commit.to_owned())], ..BooleanQuery::default() }),
    ];
    boolean(BooleanQuery { must, ..BooleanQuery::default() })
}

/// Every term whose frequency is asked for, and one term of each field whose mean length is.
pub(crate) fn statistics(terms: &[EngineTerm]) -> Query {
    let asked = terms.iter().filter_map(term);
    let of_lengths = ["all", "bigram"].map(|field| of_term(field, ABSENT.to_owned()));
    let of_markers = of_term(MARKER, IS_MARKER.to_owned());
    let should = asked.chain(of_lengths).chain([of_markers]).collect();
    boolean(BooleanQuery { should, ..BooleanQuery::default() })
}

/// The conditions of a search; `None` if no document can satisfy them.
fn matching(search: &EngineSearch) -> Option<BooleanQuery> {
    let mut must = vec![all()];
    if !search.scored.is_empty() {
        must.push(any_of(search.scored.iter().filter_map(|(scored, _)| term(scored)).collect())?);
    }
    for condition in &search.required {
        must.extend(required(condition)?);
    }
    let markers = of_term(MARKER, IS_MARKER.to_owned());
    let excluded = search.excluded.iter().filter_map(excluded);
    let must_not = std::iter::once(markers).chain(excluded).collect();
    Some(BooleanQuery { must, must_not, ..BooleanQuery::default() })
}

/// `None` if no document satisfies the condition.
fn required(condition: &EngineCondition) -> Option<Vec<Query>> {
    match condition {
        EngineCondition::AnyOf(terms) => Some(vec![any_of(terms.iter().filter_map(term).collect())?]),
        EngineCondition::AllOf(terms) => terms.iter().map(|each| any_of(vec![term(each)?])).collect(),
        EngineCondition::Phrase(terms) => {
            let pairs = pairs(terms);
            if pairs.is_empty() { None } else { pairs.into_iter().map(|pair| any_of(vec![pair])).collect() }
        }
        EngineCondition::Since { field, from_ms } => Some(vec![since(field, *from_ms)]),
    }
}

/// `None` if no document satisfies the condition, so that it excludes nothing.
fn excluded(condition: &EngineCondition) -> Option<Query> {
    let all_of = |must: Vec<Query>| {
        (!must.is_empty()).then(|| boolean(BooleanQuery { must, ..BooleanQuery::default() }))
    };
    match condition {
        EngineCondition::AnyOf(terms) => any_of(terms.iter().filter_map(term).collect()),
        EngineCondition::AllOf(terms) => all_of(terms.iter().map(term).collect::<Option<_>>()?),
        EngineCondition::Phrase(terms) => all_of(pairs(terms)),
        EngineCondition::Since { field, from_ms } => Some(since(field, *from_ms)),
    }
}

fn pairs(terms: &[EngineTerm]) -> Vec<Query> {
    let Some(first) = terms.first() else { return Vec::new() };
    of_phrase(terms.iter().map(|each| each.text.as_str()))
        .into_iter()
        .map(|pair| of_term(first.field, pair))
        .collect()
}

/// Documents with any of many terms. The engine leaves terms out of a query with more than [`SCORED_MAX`] alternatives, and joins
/// alternatives that are nested directly, so each part is a condition of a query of its own.
fn any_of(mut should: Vec<Query>) -> Option<Query> {
    if should.is_empty() {
        return None;
    }
    let part = |should| boolean(BooleanQuery { should, ..BooleanQuery::default() });
    if should.len() <= SCORED_MAX {
        return Some(part(should));
    }
    let mut parts = Vec::with_capacity(should.len().div_ceil(SCORED_MAX));
    while !should.is_empty() {
        let rest = should.split_off(should.len().min(SCORED_MAX));
        parts.push(boolean(BooleanQuery { must: vec![part(should)], ..BooleanQuery::default() }));
        should = rest;
    }
    Some(part(parts))
}

fn since(field: &str, from_ms: i64) -> Query {
    let range = RangeQuery { field: field.to_owned(), min_i64: Some(from_ms), max_i64: None };
    query(Kind::Range(range))
}

/// `None` for a term that nothing is left of.
fn term(term: &EngineTerm) -> Option<Query> {
    Some(of_term(term.field, kept(&term.text)?))
}

fn of_term(field: &str, term: String) -> Query {
    query(Kind::Term(TermQuery { field: field.to_owned(), term }))
}

fn boosted(inner: Query, boost: f32) -> Query {
    query(Kind::Boost(Box::new(BoostQuery { query: Some(Box::new(inner)), boost })))
}

fn all() -> Query {
    query(Kind::All(AllQuery {}))
}

fn boolean(inner: BooleanQuery) -> Query {
    query(Kind::Boolean(inner))
}

fn query(kind: Kind) -> Query {
    Query { query: Some(kind) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(number: usize) -> EngineTerm {
        EngineTerm { field: "all", text: format!("w{number}") }
    }

    fn parts(query: Option<Query>) -> BooleanQuery {
        match query.and_then(|query| query.query) {
            Some(Kind::Boolean(parts)) => parts,
            other => panic!("{other:?} is no Boolean query"),
        }
    }

    #[test]
    fn the_terms_with_the_highest_weights_are_scored_and_all_of_them_select() {
        let weight = |number: usize| if number < 100 { 0.5 } else { 1.0 };
        let scored: Vec<(EngineTerm, f32)> = (0..150).map(|number| (term(number), weight(number))).collect();
        let search = EngineSearch { scored, ..EngineSearch::default() };
        let best = parts(best(&search));
        assert_eq!(best.should.len(), SCORED_MAX);
        let with_half = best.should.iter().filter(|query| {
            matches!(&query.query, Some(Kind::Boost(boost)) if (boost.boost - 0.5).abs() < f32::EPSILON)
        });
        assert_eq!(with_half.count(), SCORED_MAX - 50);
        let selecting = parts(best.must.into_iter().nth(1));
        assert_eq!(selecting.should.len(), 3);
    }

    #[test]
    fn a_condition_without_terms_matches_nothing_and_excludes_nothing() {
        let nothing = EngineCondition::AnyOf(vec![EngineTerm { field: "all", text: " ".to_owned() }]);
        let required = EngineSearch { required: vec![nothing.clone()], ..EngineSearch::default() };
        assert_eq!(best(&required), None);
        let excluded = EngineSearch { excluded: vec![nothing], ..EngineSearch::default() };
        assert_eq!(parts(best(&excluded)).must_not.len(), 1);
    }
}
