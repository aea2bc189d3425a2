//! Tests that the selection gives the same results and scores as tantivy.

use std::cell::Cell;

use tantivy::collector::{Count, TopDocs};
use tantivy::query::Query;
use tantivy::{DocAddress, Score, SegmentReader, TantivyError, Term};

use super::super::accumulate::{RANGE, TopDocuments, accumulate};
use super::super::admitted::Admitted;
use super::super::conditions::{Conditions, exclusion, phrase};
use super::super::engine_query::query;
use super::super::opened::OpenedIndex;
use super::sample_index::{opened, terms};
use crate::filter::FacetKey;
use crate::query::{FilterPart, QueryTerm, Restriction};

/// The query of some terms under conditions.
fn query_of(opened: &OpenedIndex, terms: &[QueryTerm], conditions: &Conditions) -> Box<dyn Query> {
    query(opened, &terms.iter().collect::<Vec<_>>(), conditions).unwrap()
}

fn accumulated(
    opened: &OpenedIndex,
    terms: &[QueryTerm],
    conditions: &Conditions,
    limit: usize,
) -> (Vec<(Score, DocAddress)>, u64) {
    let admitted = Admitted::of(opened, conditions, None, || Ok(())).unwrap();
    let mut top = TopDocuments::new(limit);
    let total = accumulate(opened, terms.iter(), &admitted, &mut top, || Ok(())).unwrap();
    (top.into_sorted(), total)
}

fn by_tantivy(opened: &OpenedIndex, query: &dyn Query, limit: usize) -> (Vec<(Score, DocAddress)>, u64) {
    let collector = (TopDocs::with_limit(limit).order_by_score(), Count);
    let (best, total) = opened.searcher.search(query, &collector).unwrap();
    (best, total as u64)
}

#[test]
fn returns_the_documents_and_scores_of_tantivy() {
    let dir = tempfile::tempdir().unwrap();
    let opened = opened(dir.path(), 30_000);
    let segments = opened.searcher.segment_readers();
    assert!(segments.len() > 1 && segments.iter().any(SegmentReader::has_deletes));
    assert!(segments.iter().any(|segment| segment.max_doc() > 2 * RANGE));
    let requests: [&[(&str, f32)]; 6] = [
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
    for texts in requests {
        let terms = terms(texts);
        for limit in [1, 10, 200] {
            let none = Conditions::default();
            let expected = by_tantivy(&opened, query_of(&opened, &terms, &none).as_ref(), limit);
            assert_eq!(accumulated(&opened, &terms, &none, limit), expected, "{texts:?}, {limit}");
        }
    }
}

/// Conditions of every kind, each alone, and combinations.
fn conditions(opened: &OpenedIndex) -> Vec<Conditions> {
    let fields = &opened.fields;
    let part = |restriction| FilterPart { facet: Some(FacetKey::Method), restriction };
    let methods = |names: &[&str]| {
        names.iter().map(|name| Term::from_field_text(fields.facet(FacetKey::Method), name)).collect()
    };
    let sites = |names: &[&str]| {
        names.iter().map(|name| Term::from_field_text(fields.facet(FacetKey::Site), name)).collect()
    };
    let since = |number| Restriction::Since(Term::from_field_i64(fields.updated_ms, number));
    let filters = |filters: Vec<Restriction>| Conditions {
        filters: filters.into_iter().map(part).collect(),
        ..Conditions::default()
    };
    let required =
        |text| Conditions { required: phrase(opened, text).into_iter().collect(), ..Conditions::default() };
    let excluded = |text| Conditions {
        excluded: exclusion(opened, text).into_iter().collect(),
        ..Conditions::default()
    };
    vec![
        filters(Vec::new()),
        filters(vec![Restriction::AnyOf(methods(&["get"]))]),
        filters(vec![Restriction::AnyOf(methods(&["put"]))]),
        filters(vec![Restriction::AnyOf(methods(&["get", "put", "unheard"]))]),
        filters(vec![Restriction::AnyOf(methods(&["get"])), Restriction::AnyOf(methods(&["post"]))]),
        filters(vec![Restriction::AnyOf(Vec::new())]),
        filters(vec![Restriction::AnyOf(sites(&["s7.example", "s299.example"]))]),
        filters(vec![Restriction::NoneOf(sites(&["s0.example"])), Restriction::NoneOf(methods(&["post"]))]),
        filters(vec![since(29_000)]),
        required("book flight"),
        excluded("hotel"),
        excluded("book flight"),
        // So few documents are left that these alone are checked.
        Conditions {
            required: phrase(opened, "book flight").into_iter().collect(),
            excluded: exclusion(opened, "flight hotel").into_iter().collect(),
            ..filters(vec![Restriction::AnyOf(sites(&["s67.example"])), since(6_000)])
        },
        Conditions {
            required: phrase(opened, "flight").into_iter().collect(),
            excluded: exclusion(opened, "hotel").into_iter().collect(),
            ..filters(vec![Restriction::AnyOf(methods(&["get"])), since(100)])
        },
    ]
}

#[test]
fn returns_the_same_documents_as_tantivy_for_every_condition() {
    let dir = tempfile::tempdir().unwrap();
    let opened = opened(dir.path(), 30_000);
    let requests: [&[(&str, f32)]; 3] = [
        &[("book", 1.2), ("flight", 1.0), ("book_flight", 0.3)],
        &[("weather", 1.0)],
        &[("else", 0.4), ("train", 1.0), ("hotel", 1.0)],
    ];
    // twice, because the first pass fills the caches
    for (conditions, number) in conditions(&opened).iter().chain(&conditions(&opened)).zip(0..) {
        let mut all = 0;
        for texts in requests {
            let terms = terms(texts);
            let found = accumulated(&opened, &terms, conditions, 50);
            let query = query_of(&opened, &terms, conditions);
            assert_eq!(found, by_tantivy(&opened, query.as_ref(), 50), "condition {number}, {texts:?}");
            all += found.1;
        }
        let is_empty = conditions
            .filters
            .iter()
            .any(|part| matches!(&part.restriction, Restriction::AnyOf(terms) if terms.is_empty()));
        assert_eq!(all == 0, is_empty, "condition {number}");
    }
}

#[test]
fn searches_segments_of_every_size_to_the_end() {
    for count in [1, 63, 64, 65, 127, 128, 129, 4_096, 5_120] {
        let dir = tempfile::tempdir().unwrap();
        let opened = opened(dir.path(), count);
        for conditions in &conditions(&opened) {
            for texts in [[("else", 1.0), ("book", 1.0)], [("train", 1.0), ("room", 1.0)]] {
                let terms = terms(&texts);
                let query = query_of(&opened, &terms, conditions);
                let found = accumulated(&opened, &terms, conditions, 10);
                assert_eq!(found, by_tantivy(&opened, query.as_ref(), 10), "{count}");
            }
        }
    }
}

#[test]
fn checks_the_deadline_before_every_range_of_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let opened = opened(dir.path(), 30_000);
    let longest = opened.searcher.segment_readers().iter().map(SegmentReader::max_doc).max().unwrap();
    let all: u32 =
        opened.searcher.segment_readers().iter().map(|segment| segment.max_doc().div_ceil(RANGE)).sum();
    assert!(longest > 2 * RANGE, "a segment has several ranges");
    let checks = Cell::new(0);
    let check = |most: u32| {
        checks.set(checks.get() + 1);
        if checks.get() > most { Err(TantivyError::InternalError("over".to_owned())) } else { Ok(()) }
    };
    let terms = terms(&[("else", 1.0)]);
    let admitted = Admitted::of(&opened, &Conditions::default(), None, || Ok(())).unwrap();
    let run =
        |most: u32| accumulate(&opened, terms.iter(), &admitted, &mut TopDocuments::new(10), || check(most));
    run(u32::MAX).unwrap();
    assert_eq!(checks.replace(0), all);
    assert!(run(2).is_err());
    assert_eq!(checks.get(), 3, "reads nothing after the deadline");
}
