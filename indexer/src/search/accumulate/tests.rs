//! What is added up is what the engine finds.

use std::cell::Cell;
use std::path::Path;

use manifest::{ManifestId, ManifestUrl};
use store::FeedPosition;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{BooleanQuery, BoostQuery, Occur, Query, TermQuery};
use tantivy::{TantivyDocument, TantivyError, Term};

use super::*;
use crate::index::{Fields, Generations, Writer, schema};
use crate::query::Associations;

const WORDS: [&str; 7] = ["book", "flight", "hotel", "room", "seat", "train", "weather"];

/// Numbers that look like chance.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ (number >> 29)
}

fn manifest(number: u64) -> ManifestId {
    ManifestId::of(&ManifestUrl::parse(&format!("https://n{number}.example/agent.json")).unwrap())
}

/// A document whose words and pairs depend on its number; the first word is in most documents, the last in few.
fn document(fields: &Fields, number: u64) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    let is_in = |at: usize| mixed(number * 31 + at as u64).is_multiple_of(2 + (at * at * 20) as u64);
    let said: Vec<&str> =
        WORDS.iter().enumerate().filter(|(at, _)| is_in(*at)).map(|(_, word)| *word).collect();
    let times = 1 + usize::try_from(mixed(number) % 4).unwrap();
    let length = 1 + usize::try_from(mixed(number + 7) % 60).unwrap();
    let words = said
        .iter()
        .flat_map(|word| std::iter::repeat_n(*word, times))
        .chain(std::iter::repeat_n("else", length));
    document.add_text(fields.all, words.collect::<Vec<_>>().join(" "));
    let pairs: Vec<String> = said.windows(2).map(|pair| pair.join("_")).collect();
    document.add_text(fields.bigram, pairs.join(" "));
    document.add_text(fields.manifest, manifest(number).as_str());
    for field in [fields.tie, fields.site_number, fields.text_number] {
        document.add_u64(field, number);
    }
    document.add_f64(fields.prior, 1.0);
    document
}

/// An index of so many documents, some of them deleted. It has several segments, one of which has four tenths of them or more:
/// two threads share the last commit.
fn opened(dir: &Path, count: u64) -> Loaded {
    let generations = Generations::new(dir);
    let path = generations.prepare_next().unwrap();
    let mut writer = Writer::create(&path, "feed").unwrap();
    let fields = schema().fields;
    for part in [0..count / 10, count / 10..count / 5, count / 5..count] {
        writer.add(part.map(|number| document(&fields, number)).collect()).unwrap();
        writer.commit(FeedPosition(1)).unwrap();
    }
    for number in (0..count).filter(|number| number % 11 == 0) {
        writer.remove(&manifest(number));
    }
    writer.commit(FeedPosition(2)).unwrap();
    generations.switch_to(&path).unwrap();
    writer.finish().unwrap();
    Loaded::open(&generations, &Associations::built_in()).unwrap()
}

fn terms(said: &[(&str, f32)]) -> Vec<QueryTerm> {
    let role = |text: &str| if text.contains('_') { Role::Bigram } else { Role::Word };
    let term = |(text, weight): &(&str, f32)| QueryTerm {
        text: (*text).to_owned(),
        role: role(text),
        weight: *weight,
        word: 0,
    };
    said.iter().map(term).collect()
}

/// The same as a query of the engine, all matches scored one by one.
fn of_the_engine(loaded: &Loaded, terms: &[QueryTerm], limit: usize) -> (Vec<(Score, DocAddress)>, u64) {
    let clause = |term: &QueryTerm| -> (Occur, Box<dyn Query>) {
        let field = if term.role == Role::Bigram { loaded.fields.bigram } else { loaded.fields.all };
        let query = TermQuery::new(Term::from_field_text(field, &term.text), IndexRecordOption::WithFreqs);
        (Occur::Should, Box::new(BoostQuery::new(Box::new(query), term.weight)))
    };
    let query = BooleanQuery::new(terms.iter().map(clause).collect());
    let collector = (TopDocs::with_limit(limit).order_by_score(), Count);
    let (best, total) = loaded.searcher.search(&query, &collector).unwrap();
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
            let found = accumulate(&loaded, terms.iter(), limit, || Ok(())).unwrap();
            let (best, total) = of_the_engine(&loaded, &terms, limit);
            assert_eq!((found.best, found.total), (best, total), "{said:?}, {limit}");
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
    accumulate(&loaded, terms.iter(), 10, || look(u32::MAX)).unwrap();
    assert_eq!(looks.get(), all);
    looks.set(0);
    assert!(accumulate(&loaded, terms.iter(), 10, || look(2)).is_err());
    assert_eq!(looks.get(), 3, "nothing is read on once time is over");
}
