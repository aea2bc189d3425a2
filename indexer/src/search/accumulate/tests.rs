//! What is added up is what the engine finds.

use std::cell::Cell;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::{TantivyError, Term};

use super::super::admitted::admitted;
use super::super::candidates::{Conditions, excluded_query, phrase_query};
use super::super::made::{opened, terms};
use super::*;
use crate::index::Fields;
use crate::query::{Admits, FilterPart};
use crate::request::FacetKey;

/// Any of the terms, as a query of the engine.
fn words_query(loaded: &Loaded, terms: &[QueryTerm]) -> Box<dyn Query> {
    let clause = |term: &QueryTerm| -> (Occur, Box<dyn Query>) {
        let field = if term.role == Role::Bigram { loaded.fields.bigram } else { loaded.fields.all };
        let query = TermQuery::new(Term::from_field_text(field, &term.text), IndexRecordOption::WithFreqs);
        (Occur::Should, Box::new(BoostQuery::new(Box::new(query), term.weight)))
    };
    Box::new(BooleanQuery::new(terms.iter().map(clause).collect()))
}

/// What the engine finds, all matches scored one by one.
fn of_the_engine(loaded: &Loaded, query: &dyn Query, limit: usize) -> (Vec<(Score, DocAddress)>, u64) {
    let collector = (TopDocs::with_limit(limit).order_by_score(), Count);
    let (best, total) = loaded.searcher.search(query, &collector).unwrap();
    (best, total as u64)
}

#[test]
fn what_is_found_and_its_scores_are_the_engines() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = opened(dir.path(), 30_000);
    let segments = loaded.searcher.segment_readers();
    assert!(segments.len() > 1 && segments.iter().any(SegmentReader::has_deletes));
    assert!(segments.iter().any(|segment| segment.max_doc() > 2 * STRETCH));
    let asked: [&[(&str, f32)]; 6] = [
        &[("book", 1.0)],
        &[("weather", 1.1), ("unheard", 1.0)],
        &[("flight", 1.0), ("book_flight", 0.3)],
        &[
            ("book", 1.2),
            ("flight", 1.0),
            ("book_flight", 0.3),
            ("hotel", 0.15),
            ("seat", 0.15),
            ("train", 0.8),
        ],
        &[("else", 0.4), ("room", 1.0), ("weather", 1.0)],
        &[("unheard", 1.0)],
    ];
    for said in asked {
        let terms = terms(said);
        for limit in [1, 10, 200] {
            let found = accumulate(&loaded, terms.iter(), None, limit, || Ok(())).unwrap();
            let (best, total) = of_the_engine(&loaded, words_query(&loaded, &terms).as_ref(), limit);
            assert_eq!((found.best, found.total), (best, total), "{said:?}, {limit}");
        }
    }
}

/// Conditions of every kind: alone, and all that leave anything together.
fn conditions(fields: &Fields) -> Vec<Conditions> {
    let part = |admits| FilterPart { facet: Some(FacetKey::Method), admits };
    let methods =
        |names: &[&str]| names.iter().map(|name| Term::from_field_text(fields.method, name)).collect();
    let sites = |names: &[&str]| names.iter().map(|name| Term::from_field_text(fields.site, name)).collect();
    let since = |number| Admits::Since(Term::from_field_i64(fields.updated_ms, number));
    let filters = |filters: Vec<Admits>| Conditions {
        filters: filters.into_iter().map(part).collect(),
        ..Conditions::default()
    };
    let required = |text| Conditions {
        required: phrase_query(fields, text).into_iter().collect(),
        ..Conditions::default()
    };
    let excluded = |text| Conditions {
        excluded: excluded_query(fields, text).into_iter().collect(),
        ..Conditions::default()
    };
    vec![
        filters(Vec::new()),
        filters(vec![Admits::AnyOf(methods(&["get"]))]),
        filters(vec![Admits::AnyOf(methods(&["put"]))]),
        filters(vec![Admits::AnyOf(methods(&["get", "put", "unheard"]))]),
        filters(vec![Admits::AnyOf(methods(&["get"])), Admits::AnyOf(methods(&["post"]))]),
        filters(vec![Admits::AnyOf(Vec::new())]),
        filters(vec![Admits::AnyOf(sites(&["s7.example", "s299.example"]))]),
        filters(vec![Admits::NoneOf(sites(&["s0.example"])), Admits::NoneOf(methods(&["post"]))]),
        filters(vec![since(29_000)]),
        required("book flight"),
        excluded("hotel"),
        excluded("book flight"),
        // So few documents are left that the engine looks at these alone.
        Conditions {
            required: phrase_query(fields, "book flight").into_iter().collect(),
            excluded: excluded_query(fields, "flight hotel").into_iter().collect(),
            ..filters(vec![Admits::AnyOf(sites(&["s67.example"])), since(6_000)])
        },
        Conditions {
            required: phrase_query(fields, "flight").into_iter().collect(),
            excluded: excluded_query(fields, "hotel").into_iter().collect(),
            ..filters(vec![Admits::AnyOf(methods(&["get"])), since(100)])
        },
    ]
}

#[test]
fn under_conditions_too_it_is_what_the_engine_finds() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = opened(dir.path(), 30_000);
    let asked: [&[(&str, f32)]; 3] = [
        &[("book", 1.2), ("flight", 1.0), ("book_flight", 0.3)],
        &[("weather", 1.0)],
        &[("else", 0.4), ("train", 1.0), ("hotel", 1.0)],
    ];
    // Twice, for what is kept from the first time.
    for (conditions, number) in conditions(&loaded.fields).iter().chain(&conditions(&loaded.fields)).zip(0..)
    {
        let admitted = admitted(&loaded, conditions, None, || Ok(())).unwrap();
        let mut all = 0;
        for said in asked {
            let terms = terms(said);
            let found = accumulate(&loaded, terms.iter(), admitted.as_deref(), 50, || Ok(())).unwrap();
            let query = conditions.apply(Some(words_query(&loaded, &terms).as_ref()));
            let (best, total) = of_the_engine(&loaded, query.as_ref(), 50);
            assert_eq!((found.best, found.total), (best, total), "condition {number}, {said:?}");
            all += total;
        }
        let is_empty =
            conditions.filters.iter().any(|part| matches!(&part.admits, Admits::AnyOf(of) if of.is_empty()));
        assert_eq!(all == 0, is_empty, "condition {number}");
    }
}

#[test]
fn segments_of_every_size_are_searched_to_their_ends() {
    for count in [1, 63, 64, 65, 127, 128, 129, 4_096, 5_120] {
        let dir = tempfile::tempdir().unwrap();
        let loaded = opened(dir.path(), count);
        for conditions in &conditions(&loaded.fields) {
            let admitted = admitted(&loaded, conditions, None, || Ok(())).unwrap();
            for said in [[("else", 1.0), ("book", 1.0)], [("train", 1.0), ("room", 1.0)]] {
                let terms = terms(&said);
                let found = accumulate(&loaded, terms.iter(), admitted.as_deref(), 10, || Ok(())).unwrap();
                let query = conditions.apply(Some(words_query(&loaded, &terms).as_ref()));
                assert_eq!((found.best, found.total), of_the_engine(&loaded, query.as_ref(), 10), "{count}");
            }
        }
    }
}

#[test]
fn the_clock_is_looked_at_before_every_stretch_of_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let loaded = opened(dir.path(), 30_000);
    let longest = loaded.searcher.segment_readers().iter().map(SegmentReader::max_doc).max().unwrap();
    let all: u32 = loaded.searcher.segment_readers().iter().map(|of| of.max_doc().div_ceil(STRETCH)).sum();
    assert!(longest > 2 * STRETCH, "a segment has several stretches");
    let looks = Cell::new(0);
    let look = |most: u32| {
        looks.set(looks.get() + 1);
        if looks.get() > most { Err(TantivyError::InternalError("over".to_owned())) } else { Ok(()) }
    };
    let terms = terms(&[("else", 1.0)]);
    accumulate(&loaded, terms.iter(), None, 10, || look(u32::MAX)).unwrap();
    assert_eq!(looks.get(), all);
    looks.set(0);
    assert!(accumulate(&loaded, terms.iter(), None, 10, || look(2)).is_err());
    assert_eq!(looks.get(), 3, "nothing is read on once time is over");
}
